/*
 * fuzz_handle.c -- file handles: no bytes from outside are taken for one of ours; one of ours is
 * read as it was made, and with any bit turned over, or cut, or longer, it is none.
 *
 * Input: mode (1 byte). Even: the rest is a handle as it came. Odd: export id (4 bytes), type,
 * which bit to turn over (2 bytes), then the kernel's handle.
 */
#include "file/handle.h"
#include "fuzz.h"

static const struct mac_key key = {{UINT64_C(0x0123456789abcdef), UINT64_C(0xfedcba9876543210)}};

static void check_foreign(struct bytes fh)
{
    uint8_t *copy = fuzz_copy(fh);
    uint32_t export_id = 0;
    struct handle_object object = {0};
    /* The chance of a right MAC is 2^-64; a fuzzer does not know the key's. */
    CHECK(!handle_read(&key, (struct bytes){copy, fh.len}, &export_id, &object));
    free(copy);
}

static void check_own(struct fuzz *fuzz)
{
    uint32_t export_id = fuzz_u32(fuzz), read_id = 0;
    struct handle_object object = {.type = fuzz_u8(fuzz)}, read = {0};
    uint32_t bit = fuzz_u16(fuzz);
    struct bytes bytes = fuzz_slice(fuzz, HANDLE_OBJECT_MAX);
    struct nfs_fh fh = {0};
    object.len = (uint8_t)bytes.len;
    if (bytes.len > 0)
        memcpy(object.bytes, bytes.at, bytes.len);
    handle_make(&key, export_id, &object, &fh);
    CHECK(fh.len <= HANDLE_MAX && fh.len % 4 == 0);
    CHECK(handle_read(&key, (struct bytes){fh.data, fh.len}, &read_id, &read));
    CHECK(read_id == export_id && read.type == object.type && read.len == object.len);
    CHECK(memcmp(read.bytes, object.bytes, sizeof object.bytes) == 0);
    for (uint32_t len = 0; len <= NFS_FH_MAX; len++)
        if (len != fh.len)
            CHECK(!handle_read(&key, (struct bytes){fh.data, len}, &read_id, &read));
    bit %= 8 * fh.len;
    fh.data[bit / 8] = (uint8_t)(fh.data[bit / 8] ^ 1u << bit % 8);
    CHECK(!handle_read(&key, (struct bytes){fh.data, fh.len}, &read_id, &read));
    const struct mac_key other = {{key.words[0], key.words[1] ^ 1}};
    fh.data[bit / 8] = (uint8_t)(fh.data[bit / 8] ^ 1u << bit % 8);
    CHECK(!handle_read(&other, (struct bytes){fh.data, fh.len}, &read_id, &read));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz fuzz = {data, size};
    if (fuzz_u8(&fuzz) % 2 == 0)
        check_foreign(fuzz_slice(&fuzz, NFS_FH_MAX));
    else
        check_own(&fuzz);
    return 0;
}

/*
 * fuzz_mount.c -- any bytes as the arguments of any MOUNT procedure: a path that is accepted stays
 * inside the message and its limit, is the same when a client writes it again, and is refused one
 * byte shorter or longer. The lists of mounts and exports that hold it have the length they should.
 *
 * Input: procedure (1 byte), then the arguments.
 */
#include "codec/mount_xdr.h"
#include "fuzz.h"

static bool get(enum mount_procedure procedure, const uint8_t *data, size_t len, struct bytes *ret)
{
    struct xdr_in in = xdr_in_of((struct bytes){data, (uint32_t)len});
    return mount_xdr_get_args(&in, procedure, ret);
}

static void check_accepted(enum mount_procedure procedure, const uint8_t *data, size_t len,
                           struct bytes path)
{
    bool has_path = procedure == MOUNT_MNT || procedure == MOUNT_UMNT;
    CHECK(fuzz_is_inside(path, data, len));
    CHECK(path.len <= MOUNT_PATH_MAX && (has_path || path.len == 0));
    uint8_t *again = malloc(len + 1);
    CHECK(again != NULL);
    struct bytes second;
    if (len > 0)
        memcpy(again, data, len);
    again[len] = 0;
    CHECK(!get(procedure, again, len + 1, &second));
    CHECK(len == 0 || !get(procedure, again, len - 1, &second));
    struct xdr_out out = xdr_out_of(again, (uint32_t)len);
    if (has_path)
        xdr_put_opaque(&out, path);
    CHECK(!out.overflowed && xdr_out_len(&out) == len);
    CHECK(get(procedure, again, len, &second));
    CHECK(bytes_equal(path, second));
    free(again);
}

/* An entry of each list with this path, and the ends of the lists. */
static void check_lists(struct bytes path)
{
    static uint8_t bytes[MOUNT_RECORD_MAX];
    uint32_t padded = (path.len + 3) / 4 * 4;
    struct xdr_out out = xdr_out_of(bytes, sizeof bytes);
    mount_xdr_put_mount(&out, bytes_of_text("host"), path);
    mount_xdr_put_end(&out);
    CHECK(!out.overflowed);
    CHECK(xdr_out_len(&out) == 4 + 8 + 4 + padded + 4);
    out = xdr_out_of(bytes, sizeof bytes);
    mount_xdr_put_export(&out, path);
    mount_xdr_put_group(&out, bytes_of_text("net1"));
    mount_xdr_put_end(&out);
    mount_xdr_put_end(&out);
    CHECK(!out.overflowed);
    CHECK(xdr_out_len(&out) == 4 + 4 + padded + 4 + 8 + 4 + 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz fuzz = {data, size};
    enum mount_procedure procedure = (enum mount_procedure)(fuzz_u8(&fuzz) % MOUNT_PROCEDURE_COUNT);
    struct bytes rest = fuzz_slice(&fuzz, UINT16_MAX), path = {0};
    uint8_t *copy = fuzz_copy(rest);
    if (get(procedure, copy, rest.len, &path)) {
        check_accepted(procedure, copy, rest.len, path);
        check_lists(path);
    }
    free(copy);
    return 0;
}

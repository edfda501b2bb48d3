/*
 * fuzz_record.c -- stored records: what decodes encodes to the same bytes, damage is never taken
 * for a record, and a batch is read back as it was written.
 *
 * Input: mode (1 byte), then
 *   0  kind, slot (4 bytes, but none for the server record), the value as it is
 *   1  the same, but the checksum is made right first: the fuzzer gets past it
 *   2  the same as 1, then one bit is flipped: it must be found
 *   3  changes of a batch: kind, slot (1 byte each), length of the value (2 bytes; 0 deletes),
 * value
 */
#include "fuzz.h"
#include "store/crc32c.h"
#include "store/record.h"

enum {
    HEADER_LEN = 8,
    CHECKSUM_AT = 4,
    CHANGES_MAX = 32,
    ZONE_DIGITS_MAX = 20, /* of two addresses */
};

static enum record_kind kind_of(uint8_t choice)
{
    return (enum record_kind)(RECORD_SERVER + choice % (RECORD_KIND_END - RECORD_SERVER));
}

/* Where a decoded record puts its names and handles, and what it encodes to. */
struct outcome {
    enum record_result result;
    struct bytes views[3];
    uint32_t len; /* of what it encodes to */
};

static struct outcome decode_nsm(enum record_kind kind, uint32_t slot, struct bytes value,
                                 uint8_t *again)
{
    struct record_server server;
    struct record_registrant registrant;
    struct record_notice notice;
    struct outcome outcome = {.result = RECORD_CORRUPT};
    if (kind == RECORD_SERVER) {
        outcome.result = record_get_server(value, &server);
        if (outcome.result == RECORD_GOOD)
            outcome.len = record_put_server(again, &server);
    } else if (kind == RECORD_REGISTRANT) {
        outcome.result = record_get_registrant(value, slot, &registrant);
        if (outcome.result == RECORD_GOOD) {
            outcome.views[0] = registrant.mon_name;
            outcome.views[1] = registrant.my_name;
            outcome.len = record_put_registrant(again, slot, &registrant);
        }
    } else {
        outcome.result = record_get_notice(value, slot, &notice);
        if (outcome.result == RECORD_GOOD) {
            outcome.views[0] = notice.mon_name;
            outcome.len = record_put_notice(again, slot, &notice);
        }
    }
    return outcome;
}

static struct outcome decode_nlm(enum record_kind kind, uint32_t slot, struct bytes value,
                                 uint8_t *again)
{
    struct record_client client;
    struct record_lock lock;
    struct record_waiter waiter;
    struct record_share share;
    struct outcome outcome = {.result = RECORD_CORRUPT};
    if (kind == RECORD_CLIENT) {
        outcome.result = record_get_client(value, slot, &client);
        if (outcome.result == RECORD_GOOD) {
            outcome.views[0] = client.caller_name;
            outcome.len = record_put_client(again, slot, &client);
        }
    } else if (kind == RECORD_LOCK) {
        outcome.result = record_get_lock(value, slot, &lock);
        if (outcome.result == RECORD_GOOD) {
            outcome.views[0] = lock.fh;
            outcome.views[1] = lock.oh;
            outcome.len = record_put_lock(again, slot, &lock);
        }
    } else if (kind == RECORD_WAITER) {
        outcome.result = record_get_waiter(value, slot, &waiter);
        if (outcome.result == RECORD_GOOD) {
            outcome.views[0] = waiter.fh;
            outcome.views[1] = waiter.oh;
            outcome.views[2] = waiter.caller_name;
            outcome.len = record_put_waiter(again, slot, &waiter);
        }
    } else {
        outcome.result = record_get_share(value, slot, &share);
        if (outcome.result == RECORD_GOOD) {
            outcome.views[0] = share.fh;
            outcome.views[1] = share.oh;
            outcome.len = record_put_share(again, slot, &share);
        }
    }
    return outcome;
}

static struct outcome decode_tracked(uint32_t slot, struct bytes value, uint8_t *again)
{
    struct record_tracked tracked;
    struct outcome outcome = {.result = record_get_tracked(value, slot, &tracked)};
    if (outcome.result != RECORD_GOOD)
        return outcome;
    outcome.views[0] = tracked.protocol;
    outcome.views[1] = tracked.key;
    outcome.views[2] = tracked.bytes;
    outcome.len = record_put_tracked(again, slot, &tracked);
    return outcome;
}

static struct outcome decode(enum record_kind kind, uint32_t slot, struct bytes value,
                             uint8_t *again)
{
    if (kind == RECORD_TRACKED)
        return decode_tracked(slot, value, again);
    return kind < RECORD_CLIENT ? decode_nsm(kind, slot, value, again)
                                : decode_nlm(kind, slot, value, again);
}

/* An older format is shorter: a server record had a field less, a zone was a number, not a name.
 * What it says must be what its bytes in today's format say, and nothing else may have changed. */
static void check_older(enum record_kind kind, uint32_t slot, struct bytes value,
                        struct bytes today)
{
    static uint8_t again[RECORD_VALUE_MAX];
    struct outcome outcome = decode(kind, slot, today, again);
    CHECK(outcome.result == RECORD_GOOD);
    CHECK(bytes_equal(today, (struct bytes){again, outcome.len}));
    bool has_grown = kind == RECORD_SERVER && value.at[3] < 3;
    uint32_t len = value.len + (has_grown ? 4 : 0);
    CHECK(today.len >= len && today.len <= len + ZONE_DIGITS_MAX);
    if (today.len == len)
        CHECK(memcmp(today.at + HEADER_LEN, value.at + HEADER_LEN, value.len - HEADER_LEN) == 0);
}

/* Decodes; a good value must encode to itself. */
static enum record_result check_value(enum record_kind kind, uint32_t slot, struct bytes value)
{
    static uint8_t again[RECORD_VALUE_MAX];
    struct outcome outcome = decode(kind, slot, value, again);
    if (outcome.result != RECORD_GOOD)
        return outcome.result;
    struct bytes today = {again, outcome.len};
    for (uint32_t i = 0; i < 3; i++)
        CHECK(fuzz_is_inside(outcome.views[i], value.at, value.len));
    CHECK(again[0] == value.at[0] && again[1] == value.at[1]);
    if (value.at[3] == RECORD_FORMAT)
        CHECK(bytes_equal(value, today));
    else
        check_older(kind, slot, value, today);
    return RECORD_GOOD;
}

/* The checksum by the description at the top of record.c, not by its code. */
static void repair(enum record_kind kind, uint32_t slot, uint8_t *value, uint32_t len)
{
    uint8_t key[8];
    store_be32(key, (uint32_t)kind);
    store_be32(key + 4, slot);
    uint32_t crc = crc32c(0, (struct bytes){key, sizeof key});
    crc = crc32c(crc, (struct bytes){value, CHECKSUM_AT});
    crc = crc32c(crc, (struct bytes){value + HEADER_LEN, len - HEADER_LEN});
    store_be32(value + CHECKSUM_AT, crc);
}

static void fuzz_value(struct fuzz *fuzz, uint8_t mode)
{
    enum record_kind kind = kind_of(fuzz_u8(fuzz));
    uint32_t slot = kind == RECORD_SERVER ? 0 : fuzz_u32(fuzz);
    uint32_t flip = mode == 2 ? fuzz_u16(fuzz) : 0;
    struct bytes given = fuzz_slice(fuzz, 2 * RECORD_VALUE_MAX);
    uint8_t *value = fuzz_copy(given);
    if (mode != 0 && given.len >= HEADER_LEN) {
        repair(kind, slot, value, given.len);
        enum record_result result = check_value(kind, slot, (struct bytes){value, given.len});
        if (result == RECORD_GOOD && kind != RECORD_SERVER) {
            /* The same bytes under another key are damage. */
            CHECK(check_value(kind, slot ^ 1, (struct bytes){value, given.len}) == RECORD_CORRUPT);
        }
    }
    if (mode == 2 && given.len >= HEADER_LEN) {
        /* A checksum of 32 bits finds every single flipped bit, also in the version. */
        value[flip / 8 % given.len] ^= (uint8_t)(1U << flip % 8);
        CHECK(check_value(kind, slot, (struct bytes){value, given.len}) == RECORD_CORRUPT);
    }
    if (mode == 0)
        (void)check_value(kind, slot, (struct bytes){value, given.len});
    free(value);
}

static void fuzz_batch(struct fuzz *fuzz)
{
    static uint8_t memory[1 << 16];
    struct record_change changes[CHANGES_MAX];
    struct batch_writer writer = {.start = memory, .max = sizeof memory};
    uint32_t count = 0;
    while (fuzz->left > 0 && count < CHANGES_MAX) {
        struct record_change *change = &changes[count];
        change->kind = kind_of(fuzz_u8(fuzz));
        change->slot = fuzz_u8(fuzz) * UINT32_C(0x01010101);
        change->value = fuzz_slice(fuzz, fuzz_u16(fuzz) % (RECORD_VALUE_MAX + 1));
        change->deleted = change->value.len < HEADER_LEN;
        if (change->deleted)
            change->value = (struct bytes){0};
        if (writer.max - writer.len < (uint64_t)BATCH_CHANGE_OVERHEAD + change->value.len)
            break;
        if (change->deleted)
            batch_delete(&writer, change->kind, change->slot);
        else
            batch_put(&writer, change->kind, change->slot, change->value);
        count++;
    }
    CHECK(writer.count == count);
    struct store_batch batch = {.count = count, .changes = {memory, writer.len}};
    struct record_change change;
    uint64_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        CHECK(batch_next(&batch, &at, &change));
        CHECK(change.kind == changes[i].kind);
        CHECK(change.slot == changes[i].slot);
        CHECK(change.deleted == changes[i].deleted);
        CHECK(bytes_equal(change.value, changes[i].value));
    }
    CHECK(!batch_next(&batch, &at, &change));
    CHECK(at == writer.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz fuzz = {data, size};
    uint8_t mode = fuzz_u8(&fuzz) % 4;
    if (mode == 3)
        fuzz_batch(&fuzz);
    else
        fuzz_value(&fuzz, mode);
    return 0;
}

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
#include "store/record_layout.h"

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

/* Names and handles of a decoded record are views into its value. */
static void check_views(enum record_kind kind, const union record_any *record, struct bytes value)
{
    const struct record_layout *layout = record_layout_of(kind);
    for (uint32_t i = 0; i < layout->count; i++) {
        const struct record_field *field = &layout->fields[i];
        if (field->type == FIELD_NAME || field->type == FIELD_HANDLE || field->type == FIELD_WORD)
            CHECK(fuzz_is_inside(record_layout_bytes(field, record), value.at, value.len));
    }
}

/* What a field takes that an older format lacked: zero, and of an address only its family. */
static uint32_t len_of_missing(enum record_type type)
{
    if (type == FIELD_ADDRESS)
        return 1;
    if (type == FIELD_PRIV)
        return RECORD_PRIV_LEN;
    return type == FIELD_U32 ? 4 : 8;
}

/* How much longer today's format is than one that lacked the last fields of the kind. */
static uint32_t growth_since(enum record_kind kind, uint8_t format)
{
    const struct record_layout *layout = record_layout_of(kind);
    uint32_t len = 0;
    for (uint32_t i = 0; i < layout->count; i++)
        if (layout->fields[i].since > format)
            len += len_of_missing(layout->fields[i].type);
    return len;
}

/* An older format is shorter: fields were missing, and a zone was a number, not a name.
 * What it says must be what its bytes in today's format say, and nothing else may have changed. */
static void check_older(enum record_kind kind, uint32_t slot, struct bytes value,
                        struct bytes today)
{
    static uint8_t again[RECORD_VALUE_MAX];
    union record_any record;
    CHECK(record_get(today, kind, slot, &record) == RECORD_GOOD);
    CHECK(bytes_equal(today, (struct bytes){again, record_put(again, kind, slot, &record)}));
    uint32_t len = value.len + growth_since(kind, value.at[3]);
    CHECK(today.len >= len && today.len <= len + ZONE_DIGITS_MAX);
    if (today.len == len)
        CHECK(memcmp(today.at + HEADER_LEN, value.at + HEADER_LEN, value.len - HEADER_LEN) == 0);
}

/* Decodes; a good value must encode to itself. */
static enum record_result check_value(enum record_kind kind, uint32_t slot, struct bytes value)
{
    static uint8_t again[RECORD_VALUE_MAX];
    union record_any record;
    enum record_result result = record_get(value, kind, slot, &record);
    if (result != RECORD_GOOD)
        return result;
    check_views(kind, &record, value);
    struct bytes today = {again, record_put(again, kind, slot, &record)};
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
            store_batch_delete(&writer, change->kind, change->slot);
        else
            store_batch_put(&writer, change->kind, change->slot, change->value);
        count++;
    }
    CHECK(writer.count == count);
    struct store_batch batch = {.count = count, .changes = {memory, writer.len}};
    struct record_change change;
    uint64_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        CHECK(store_batch_next(&batch, &at, &change));
        CHECK(change.kind == changes[i].kind);
        CHECK(change.slot == changes[i].slot);
        CHECK(change.deleted == changes[i].deleted);
        CHECK(bytes_equal(change.value, changes[i].value));
    }
    CHECK(!store_batch_next(&batch, &at, &change));
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

/*
 * record_bytes.h -- one field of a record to its bytes and back; for record.c only.
 *
 * The layout of a value's header, and of every type of field, stands at the top of record.c.
 *
 * put_field and get_field are told by a row (record_layout.h) what the field is. Where the compiler
 * knows the row, nothing is left of that but the few instructions for this very field: a start
 * decodes a million locks, and every batch encodes up to a thousand. So everything here is inline,
 * those two by force.
 */
#ifndef STORE_RECORD_BYTES_H
#define STORE_RECORD_BYTES_H

#include "base/check.h"
#include "store/crc32c.h"
#include "store/record_layout.h"

enum {
    HEADER_LEN = 8,
    CHECKSUM_AT = 4,
    ZONES_SINCE = 4, /* the format that names interfaces */
};

_Static_assert(RECORD_NAME_MAX <= UINT16_MAX, "a name's length has two bytes");
_Static_assert(RECORD_FH_MAX <= UINT8_MAX, "a file handle's length has one byte");

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* May an encoder write this number? */
static ALWAYS_INLINE bool is_allowed(const struct record_field *field, uint64_t number,
                                     const void *record)
{
    switch (field->rule) {
    case RULE_ANY:
        return true;
    case RULE_ODD:
        return number % 2 == 1;
    case RULE_NOT_ZERO:
        return number != 0;
    case RULE_ONE_OF:
        return number < 64 && (field->known >> number & 1) != 0;
    case RULE_FLAGS:
        return (number & ~field->known) == 0;
    case RULE_SLOT:
        return number < RECORD_SLOT_MAX;
    case RULE_SLOT_OR_NONE:
        return number < RECORD_SLOT_MAX || number == UINT32_MAX;
    case RULE_END:
        return number >= record_layout_number(field - 1, record);
    }
    UNREACHABLE();
}

/* The checksum of a value under its key. The value has a header. */
static inline uint32_t checksum(enum record_kind kind, uint32_t slot, struct bytes value)
{
    uint8_t start[8 + CHECKSUM_AT];
    store_be32(start, (uint32_t)kind);
    store_be32(start + 4, slot);
    memcpy(start + 8, value.at, CHECKSUM_AT);
    uint32_t crc = crc32c(0, (struct bytes){start, sizeof start});
    return crc32c(crc, (struct bytes){value.at + HEADER_LEN, value.len - HEADER_LEN});
}

/* Completes a value: its header, whose checksum comes last. */
static inline void seal(uint8_t *value, uint32_t len, enum record_kind kind, uint32_t slot)
{
    CHECK(len <= RECORD_VALUE_MAX);
    value[0] = (uint8_t)kind;
    value[1] = 0;
    value[2] = RECORD_FORMAT >> 8;
    value[3] = RECORD_FORMAT & 0xff;
    store_be32(value + CHECKSUM_AT, checksum(kind, slot, (struct bytes){value, len}));
}

static inline uint32_t version_of(struct bytes value)
{
    return (uint32_t)value.at[2] << 8 | value.at[3];
}

/* Is this a value of the kind, in a format from `since` on? */
static inline enum record_result check_header(struct bytes value, enum record_kind kind,
                                              uint32_t slot, uint32_t since)
{
    if (value.len < HEADER_LEN)
        return RECORD_CORRUPT;
    if (load_be32(value.at + CHECKSUM_AT) != checksum(kind, slot, value))
        return RECORD_CORRUPT;
    if (version_of(value) > RECORD_FORMAT)
        return RECORD_NEWER;
    if (version_of(value) < since || value.at[0] != kind || value.at[1] != 0)
        return RECORD_CORRUPT;
    return RECORD_GOOD;
}

/* ---- writing ---- */

/* Appends to a buffer of RECORD_VALUE_MAX bytes. The longest value of each kind fits into it
 * (tests/vectors/store_vectors.c), so nothing is measured on the way. */
struct writer {
    uint8_t *start;
    uint32_t len;
};

static inline void put_u8(struct writer *out, uint8_t value)
{
    out->start[out->len++] = value;
}

static inline void put_u32(struct writer *out, uint32_t value)
{
    store_be32(out->start + out->len, value);
    out->len += 4;
}

static inline void put_u64(struct writer *out, uint64_t value)
{
    store_be64(out->start + out->len, value);
    out->len += 8;
}

static inline void put_raw(struct writer *out, const uint8_t *at, uint32_t len)
{
    if (len > 0)
        memcpy(out->start + out->len, at, len);
    out->len += len;
}

static inline void put_address(struct writer *out, const struct address *address)
{
    CHECK(address->family == 0 || address->family == 4 || address->family == 6);
    uint32_t zone_len = (uint32_t)strlen(address->zone);
    CHECK(zone_len == 0 || address_is_link_local(address));
    put_u8(out, (uint8_t)address->family);
    if (address->family == 4)
        put_raw(out, address->bytes, 4);
    if (address->family == 6) {
        put_raw(out, address->bytes, 16);
        put_u32(out, zone_len);
        put_raw(out, (const uint8_t *)address->zone, zone_len);
    }
}

static inline void put_bytes(struct writer *out, enum record_type type, struct bytes bytes)
{
    if (type == FIELD_NAME) {
        CHECK(bytes.len <= RECORD_NAME_MAX);
        put_u8(out, (uint8_t)(bytes.len >> 8));
    } else if (type == FIELD_HANDLE) {
        CHECK(bytes.len > 0 && bytes.len <= RECORD_FH_MAX);
    } else {
        CHECK(record_is_protocol(bytes));
    }
    put_u8(out, (uint8_t)bytes.len);
    put_raw(out, bytes.at, bytes.len);
}

static ALWAYS_INLINE void put_field(struct writer *out, const struct record_field *field,
                                    const void *record)
{
    const uint8_t *member = (const uint8_t *)record + field->offset;
    uint64_t number = 0;
    switch (field->type) {
    case FIELD_U32:
        number = record_layout_number(field, record);
        CHECK(is_allowed(field, number, record));
        put_u32(out, (uint32_t)number);
        return;
    case FIELD_U64:
    case FIELD_TIME:
        number = record_layout_number(field, record);
        CHECK(is_allowed(field, number, record));
        put_u64(out, number);
        return;
    case FIELD_ADDRESS:
        put_address(out, record_layout_address(field, record));
        return;
    case FIELD_NAME:
    case FIELD_HANDLE:
    case FIELD_WORD:
        put_bytes(out, field->type, record_layout_bytes(field, record));
        return;
    case FIELD_PRIV:
        put_raw(out, member, RECORD_PRIV_LEN);
        return;
    }
    UNREACHABLE();
}

/* ---- reading ---- */

/* A cursor over a body: it remembers the first failure and reads zeros after it, so that all fields
 * are read in a row and it is asked once at the end. */
struct reader {
    struct bytes rest;
    bool failed;
    uint32_t version; /* the format it was written in */
};

static inline struct reader read_body(struct bytes value)
{
    return (struct reader){
        {value.at + HEADER_LEN, value.len - HEADER_LEN}, false, version_of(value)};
}

static ALWAYS_INLINE const uint8_t *get_raw(struct reader *in, uint32_t len)
{
    static const uint8_t zeros[RECORD_PRIV_LEN];
    if (in->rest.len < len)
        in->failed = true;
    if (in->failed)
        return len <= sizeof zeros ? zeros : NULL;
    const uint8_t *at = in->rest.at;
    in->rest.at += len;
    in->rest.len -= len;
    return at;
}

static ALWAYS_INLINE struct bytes get_bytes(struct reader *in, enum record_type type)
{
    uint32_t len = get_raw(in, 1)[0], max = RECORD_NAME_MAX;
    if (type == FIELD_NAME)
        len = len << 8 | get_raw(in, 1)[0];
    else
        max = type == FIELD_HANDLE ? RECORD_FH_MAX : RECORD_PROTOCOL_MAX;
    if (len > max || (len == 0 && type != FIELD_NAME))
        in->failed = true;
    struct bytes bytes = {get_raw(in, len), len};
    if (!in->failed && type == FIELD_WORD && !record_is_protocol(bytes))
        in->failed = true;
    return in->failed ? (struct bytes){NULL, 0} : bytes;
}

/* Formats before ZONES_SINCE had the number of the interface, which says nothing any more: it
 * becomes a zone of digits, that nobody who calls has. */
static inline void put_digits(uint32_t number, char ret[static ADDRESS_ZONE_MAX])
{
    char digits[10];
    uint32_t count = 0, at = 0;
    for (; number > 0; number /= 10)
        digits[count++] = (char)('0' + number % 10);
    while (count > 0)
        ret[at++] = digits[--count];
}

static inline void get_zone(struct reader *in, struct address *address)
{
    uint32_t number = load_be32(get_raw(in, 4));
    if (number == 0 || in->failed)
        return;
    if (!address_is_link_local(address)) {
        in->failed = true;
    } else if (in->version < ZONES_SINCE) {
        put_digits(number, address->zone);
    } else if (number > ADDRESS_ZONE_LEN_MAX) {
        in->failed = true;
    } else {
        const uint8_t *zone = get_raw(in, number);
        if (in->failed || !address_is_zone((struct bytes){zone, number}))
            in->failed = true;
        else
            memcpy(address->zone, zone, number);
    }
}

static inline struct address get_address(struct reader *in)
{
    struct address address = {.family = get_raw(in, 1)[0]};
    if (address.family == 4) {
        memcpy(address.bytes, get_raw(in, 4), 4);
    } else if (address.family == 6) {
        memcpy(address.bytes, get_raw(in, 16), 16);
        get_zone(in, &address);
    } else if (address.family != 0) {
        in->failed = true;
    }
    return address;
}

/* What is not in a record of an older format stays 0, unless it is like another member. */
static ALWAYS_INLINE void get_field(struct reader *in, const struct record_field *field,
                                    void *record)
{
    void *member = (uint8_t *)record + field->offset;
    uint64_t number = 0;
    if (in->version < field->since) {
        if (field->like_len > 0)
            memcpy(member, (uint8_t *)record + field->like, field->like_len);
        return;
    }
    switch (field->type) {
    case FIELD_U32:
        number = *(uint32_t *)member = load_be32(get_raw(in, 4));
        break;
    case FIELD_U64:
    case FIELD_TIME:
        number = *(uint64_t *)member = load_be64(get_raw(in, 8));
        break;
    case FIELD_ADDRESS:
        *(struct address *)member = get_address(in);
        return;
    case FIELD_NAME:
    case FIELD_HANDLE:
    case FIELD_WORD:
        *(struct bytes *)member = get_bytes(in, field->type);
        return;
    case FIELD_PRIV:
        memcpy(member, get_raw(in, RECORD_PRIV_LEN), RECORD_PRIV_LEN);
        return;
    }
    if (!is_allowed(field, number, record))
        in->failed = true;
}

#endif

/*
 * record_bytes.h -- reading and writing the bytes of a stored value; for record*.c only.
 *
 * The layout of a value's header, and of addresses and names, stands at the top of record.c.
 *
 * A writer appends to a buffer of RECORD_VALUE_MAX bytes; the longest value of each kind is proven
 * to fit by a _Static_assert beside its encoder, so nothing is measured on the way. A reader is a
 * cursor over a body: it remembers the first failure and reads zeros after it, so that a decoder
 * reads all its fields in a row and asks once at the end.
 *
 * Everything here is inline: a start decodes a million locks, and every batch encodes up to a
 * thousand.
 */
#ifndef STORE_RECORD_BYTES_H
#define STORE_RECORD_BYTES_H

#include "base/check.h"
#include "store/crc32c.h"
#include "store/record.h"

enum {
    HEADER_LEN = 8,
    CHECKSUM_AT = 4,
    ZONES_SINCE = 4, /* the format that names interfaces */
    ADDRESS_LEN_MAX = 1 + 16 + 4 + ADDRESS_ZONE_LEN_MAX,
    NAME_LEN_MAX = 2 + RECORD_NAME_MAX,
    HANDLE_LEN_MAX = 1 + RECORD_FH_MAX,
};

_Static_assert(RECORD_NAME_MAX <= UINT16_MAX, "a name's length has two bytes");
_Static_assert(RECORD_FH_MAX <= UINT8_MAX, "a file handle's length has one byte");

static inline bool has_only(uint32_t flags, uint32_t known)
{
    return (flags & ~known) == 0;
}

static inline bool is_transport(uint32_t transport)
{
    return transport == RECORD_TCP || transport == RECORD_UDP;
}

/* The checksum of a value under its key. The value has a header. */
static inline uint32_t checksum(enum record_kind kind, uint32_t slot, struct bytes value)
{
    uint8_t key[8];
    store_be32(key, (uint32_t)kind);
    store_be32(key + 4, slot);
    uint32_t crc = crc32c(0, (struct bytes){key, sizeof key});
    crc = crc32c(crc, (struct bytes){value.at, CHECKSUM_AT});
    return crc32c(crc, (struct bytes){value.at + HEADER_LEN, value.len - HEADER_LEN});
}

/* ---- writing ---- */

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

static inline void put_name(struct writer *out, struct bytes name)
{
    CHECK(name.len <= RECORD_NAME_MAX);
    put_u8(out, (uint8_t)(name.len >> 8));
    put_u8(out, (uint8_t)name.len);
    put_raw(out, name.at, name.len);
}

static inline void put_handle(struct writer *out, struct bytes fh)
{
    CHECK(fh.len > 0 && fh.len <= RECORD_FH_MAX);
    put_u8(out, (uint8_t)fh.len);
    put_raw(out, fh.at, fh.len);
}

static inline void put_address(struct writer *out, const struct address *address)
{
    CHECK(address->family == 0 || address->family == 4 || address->family == 6);
    uint32_t zone_len = (uint32_t)strlen(address->zone);
    CHECK(address_is_link_local(address) || zone_len == 0);
    put_u8(out, (uint8_t)address->family);
    if (address->family == 4)
        put_raw(out, address->bytes, 4);
    if (address->family == 6) {
        put_raw(out, address->bytes, 16);
        put_u32(out, zone_len);
        put_raw(out, (const uint8_t *)address->zone, zone_len);
    }
}

static inline struct writer put_header(uint8_t *buffer, enum record_kind kind)
{
    struct writer out = {buffer, 0};
    put_u8(&out, (uint8_t)kind);
    put_u8(&out, 0);
    put_u8(&out, RECORD_FORMAT >> 8);
    put_u8(&out, RECORD_FORMAT & 0xff);
    put_u32(&out, 0); /* the checksum: filled in by put_checksum */
    return out;
}

/* The last step; the length of the whole value. */
static inline uint32_t put_checksum(const struct writer *out, enum record_kind kind, uint32_t slot)
{
    CHECK(out->len <= RECORD_VALUE_MAX);
    struct bytes value = {out->start, out->len};
    store_be32(out->start + CHECKSUM_AT, checksum(kind, slot, value));
    return out->len;
}

/* ---- reading ---- */

struct reader {
    struct bytes rest;
    bool failed;
    uint32_t version; /* the format it was written in */
};

static inline const uint8_t *get_raw(struct reader *in, uint32_t len)
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

static inline uint8_t get_u8(struct reader *in)
{
    return get_raw(in, 1)[0];
}

static inline uint32_t get_u32(struct reader *in)
{
    return load_be32(get_raw(in, 4));
}

static inline uint64_t get_u64(struct reader *in)
{
    return load_be64(get_raw(in, 8));
}

static inline struct bytes get_name(struct reader *in)
{
    uint32_t len = (uint32_t)get_u8(in) << 8;
    len |= get_u8(in);
    if (len > RECORD_NAME_MAX)
        in->failed = true;
    const uint8_t *at = get_raw(in, len);
    return in->failed ? (struct bytes){NULL, 0} : (struct bytes){at, len};
}

static inline struct bytes get_handle(struct reader *in)
{
    uint32_t len = get_u8(in);
    if (len == 0 || len > RECORD_FH_MAX)
        in->failed = true;
    const uint8_t *at = get_raw(in, len);
    return in->failed ? (struct bytes){NULL, 0} : (struct bytes){at, len};
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
    uint32_t number = get_u32(in);
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
    struct address address = {.family = get_u8(in)};
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

/* Verifies the header; the body is left in *ret_in. `since` is the first format with this kind. */
static inline enum record_result get_header(struct bytes value, enum record_kind kind,
                                            uint32_t slot, uint32_t since, struct reader *ret_in)
{
    if (value.len < HEADER_LEN)
        return RECORD_CORRUPT;
    if (load_be32(value.at + CHECKSUM_AT) != checksum(kind, slot, value))
        return RECORD_CORRUPT;
    uint32_t version = (uint32_t)value.at[2] << 8 | value.at[3];
    if (version > RECORD_FORMAT)
        return RECORD_NEWER;
    if (version < since || value.at[0] != kind || value.at[1] != 0)
        return RECORD_CORRUPT;
    *ret_in = (struct reader){{value.at + HEADER_LEN, value.len - HEADER_LEN}, false, version};
    return RECORD_GOOD;
}

static inline bool is_done(const struct reader *in)
{
    return !in->failed && in->rest.len == 0;
}

#endif

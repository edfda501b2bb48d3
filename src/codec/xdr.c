/*
 * xdr.c -- the XDR cursor and builder of xdr.h (RFC 4506).
 *
 * Reader, always true:
 *  (1) `at` never passes `end`, and every view returned lies between the two.
 *  (2) The first item that does not fit sets `failed` and moves `at` to `end`. From there every
 *      read finds nothing, returns zero or an empty view, and leaves `failed` set: a decoder can
 *      neither loop on a count it failed to read nor act on half an item.
 *  (3) A length is compared with what is left before anything is added to it, so no length on the
 *      wire can wrap.
 *
 * Builder, always true:
 *  (4) `at` never passes `end`. An item that does not fit is not begun: `overflowed` is set, and
 *      nothing is written from then on, so what is there is a prefix made of whole items.
 *
 * Padding is written as zeros and read as anything: RFC 4506 asks senders for zeros and says
 * nothing of receivers, and libtirpc and Linux skip it unread.
 */
#include "codec/xdr.h"

#include "base/check.h"

static const uint8_t zeros[4];

static uint32_t padding_of(uint32_t len)
{
    return (4 - len % 4) % 4;
}

struct xdr_in xdr_in_of(struct bytes data)
{
    return (struct xdr_in){.at = data.at, .end = data.len > 0 ? data.at + data.len : data.at};
}

/* The next `len` bytes and the padding behind them, or NULL and the cursor has failed. */
static const uint8_t *take(struct xdr_in *in, uint32_t len, uint32_t padding)
{
    size_t left = (size_t)(in->end - in->at);
    if (in->failed || len > left || padding > left - len) {
        in->failed = true;
        in->at = in->end;
        return NULL;
    }
    const uint8_t *item = in->at;
    if (len > 0)
        in->at += len + padding;
    return item;
}

uint64_t xdr_get_u64(struct xdr_in *in)
{
    const uint8_t *item = take(in, 8, 0);
    return item != NULL ? load_be64(item) : 0;
}

bool xdr_get_bool(struct xdr_in *in)
{
    return xdr_get_u32(in) != 0;
}

struct bytes xdr_get_opaque(struct xdr_in *in, uint32_t len_max)
{
    uint32_t len = xdr_get_u32(in);
    if (len > len_max) {
        in->failed = true;
        in->at = in->end;
        return (struct bytes){0};
    }
    return xdr_get_fixed(in, len);
}

struct bytes xdr_get_fixed(struct xdr_in *in, uint32_t len)
{
    const uint8_t *item = take(in, len, padding_of(len));
    return item != NULL ? (struct bytes){item, len} : (struct bytes){0};
}

void xdr_in_fail(struct xdr_in *in)
{
    in->failed = true;
    in->at = in->end;
}

bool xdr_in_ok(const struct xdr_in *in)
{
    return !in->failed;
}

bool xdr_in_done(const struct xdr_in *in)
{
    return !in->failed && in->at == in->end;
}

struct bytes xdr_in_rest(const struct xdr_in *in)
{
    return (struct bytes){in->at, (uint32_t)(in->end - in->at)};
}

struct xdr_out xdr_out_of(uint8_t *buffer, uint32_t size)
{
    return (struct xdr_out){.start = buffer, .at = buffer, .end = buffer + size};
}

void xdr_put_u64(struct xdr_out *out, uint64_t value)
{
    uint8_t *item = xdr_put_room(out, 8);
    if (item != NULL)
        store_be64(item, value);
}

/* Bytes and their padding, at memory that has room for both. */
static void write_padded(uint8_t *at, struct bytes data)
{
    if (data.len == 0)
        return;
    memcpy(at, data.at, data.len);
    memcpy(at + data.len, zeros, padding_of(data.len));
}

void xdr_put_opaque(struct xdr_out *out, struct bytes data)
{
    uint8_t *item = xdr_put_room(out, 4 + (uint64_t)data.len + padding_of(data.len));
    if (item == NULL)
        return;
    store_be32(item, data.len);
    write_padded(item + 4, data);
}

void xdr_put_fixed(struct xdr_out *out, struct bytes data)
{
    uint8_t *item = xdr_put_room(out, (uint64_t)data.len + padding_of(data.len));
    if (item != NULL)
        write_padded(item, data);
}

uint32_t xdr_out_len(const struct xdr_out *out)
{
    CHECK(out->at - out->start <= UINT32_MAX);
    return (uint32_t)(out->at - out->start);
}

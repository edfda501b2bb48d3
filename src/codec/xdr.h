/*
 * xdr.h -- reading and writing XDR (RFC 4506) without copying.
 *
 * A reader is a cursor over bytes it does not own. It remembers the first failure and reads zeros
 * and empty views after it, so a decoder is straight-line code with one test at its end. Every
 * variable-length item has a named maximum.
 *
 * Words are read and written inline: a message is mostly words, and a function call for each is a
 * fifth of the server's work for a NULL.
 */
#ifndef CODEC_XDR_H
#define CODEC_XDR_H

#include "base/bytes.h"

/* Only xdr.h and xdr.c touch the fields. xdr.c has the invariants. */
struct xdr_in {
    const uint8_t *at, *end;
    bool failed;
};

struct xdr_in xdr_in_of(struct bytes data);

static inline uint32_t xdr_get_u32(struct xdr_in *in)
{
    if (in->end - in->at < 4) { /* also after a failure */
        in->failed = true;
        in->at = in->end;
        return 0;
    }
    in->at += 4;
    return load_be32(in->at - 4);
}
uint64_t xdr_get_u64(struct xdr_in *in);
/* Any value but 0 is true, as libtirpc and Linux read it. */
bool xdr_get_bool(struct xdr_in *in);
/* A view of a string or opaque<len_max>; its padding is skipped, whatever it contains. */
struct bytes xdr_get_opaque(struct xdr_in *in, uint32_t len_max);
/* A view of opaque[len]; its padding likewise. */
struct bytes xdr_get_fixed(struct xdr_in *in, uint32_t len);

/* For a decoder that meets what it does not know: as if the bytes had ended here. */
void xdr_in_fail(struct xdr_in *in);
/* True when nothing failed so far. */
bool xdr_in_ok(const struct xdr_in *in);
/* True when nothing failed and nothing is left over. */
bool xdr_in_done(const struct xdr_in *in);
/* What is still unread; empty after a failure. */
struct bytes xdr_in_rest(const struct xdr_in *in);

/*
 * A builder in the caller's memory. An item that does not fit whole is not written and stops the
 * builder: `overflowed` says so, and what was written before it stays.
 */
struct xdr_out {
    uint8_t *start, *at, *end;
    bool overflowed;
};

struct xdr_out xdr_out_of(uint8_t *buffer, uint32_t size);

/* Room for an item of `len` bytes, which its caller writes; NULL: the builder has stopped. */
static inline uint8_t *xdr_put_room(struct xdr_out *out, uint64_t len)
{
    if (out->overflowed || len > (uint64_t)(out->end - out->at)) {
        out->overflowed = true;
        return NULL;
    }
    uint8_t *item = out->at;
    out->at += len;
    return item;
}

static inline void xdr_put_u32(struct xdr_out *out, uint32_t value)
{
    uint8_t *item = xdr_put_room(out, 4);
    if (item != NULL)
        store_be32(item, value);
}
void xdr_put_u64(struct xdr_out *out, uint64_t value);
/* With its length word in front and zeros up to a multiple of four behind. */
void xdr_put_opaque(struct xdr_out *out, struct bytes data);
/* Without the length word. */
void xdr_put_fixed(struct xdr_out *out, struct bytes data);

/* Bytes written so far. */
uint32_t xdr_out_len(const struct xdr_out *out);

#endif

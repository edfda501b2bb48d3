/*
 * codec_check.h -- what every vector is put through, whichever program's it is.
 */
#ifndef VECTORS_CODEC_CHECK_H
#define VECTORS_CODEC_CHECK_H

#include "base/text.h"
#include "codec/xdr.h"
#include "vector.h"

/* Canonical text. */
void codec_check_add_string(struct text *text, const char *key, struct bytes value);
void codec_check_add_number(struct text *text, const char *key, uint64_t value);

/* Decodes `data`, all of it, and adds what it means. False: refused. `row` says what it is. */
typedef bool (*codec_check_decode_fn)(const void *row, struct bytes data, struct text *text);
/* Encodes what a text says. */
typedef void (*codec_check_encode_fn)(struct xdr_out *out, const void *row, const char *text);

/*
 * The bytes of the vector are accepted, if that is expected, and mean its text; every proper prefix
 * and every extension by one byte, whatever the byte, is refused (P6). Bytes are decoded in
 * allocations of exactly their size, so that the sanitizer build sees any read beyond them.
 */
bool codec_check_decode(codec_check_decode_fn decode, const void *row, const struct vector *vector,
                        bool expected);

/* The text becomes the bytes of the vector; with less room than they need, the builder says so. */
bool codec_check_encode(codec_check_encode_fn encode, const void *row, const struct vector *vector);

#endif

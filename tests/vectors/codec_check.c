/*
 * codec_check.c -- see codec_check.h.
 */
#include "codec_check.h"

#include <stdlib.h>

void codec_check_add_string(struct text *text, const char *key, struct bytes value)
{
    text_add(text, key);
    text_add(text, "=\"");
    text_add_escaped(text, value, UINT32_MAX);
    text_add_char(text, '"');
}

void codec_check_add_number(struct text *text, const char *key, uint64_t value)
{
    text_add(text, key);
    text_add_char(text, '=');
    text_add_u64(text, value);
}

/* Decodes an exact copy; `text` receives what it means. */
static bool decode_copy(codec_check_decode_fn decode, const void *row, const uint8_t *bytes,
                        size_t len, char text[static VECTOR_TEXT_MAX])
{
    uint8_t *copy = malloc(len > 0 ? len : 1);
    if (copy == NULL)
        exit(99);
    memcpy(copy, bytes, len);
    struct text builder;
    text_init(&builder, text, VECTOR_TEXT_MAX);
    bool good = decode(row, (struct bytes){copy, (uint32_t)len}, &builder);
    free(copy);
    return good;
}

/* Everything but the bytes themselves is refused. */
static bool neighbours_are_refused(codec_check_decode_fn decode, const void *row,
                                   const struct vector *vector)
{
    static char text[VECTOR_TEXT_MAX];
    for (size_t len = 0; len < vector->len; len++) {
        if (decode_copy(decode, row, vector->bytes, len, text)) {
            vector_say("the first %zu of %zu bytes were accepted: %s", len, vector->len, text);
            return false;
        }
    }
    static uint8_t longer[VECTOR_BYTES_MAX + 1];
    memcpy(longer, vector->bytes, vector->len);
    for (unsigned last = 0; last < 256; last++) {
        longer[vector->len] = (uint8_t)last;
        if (decode_copy(decode, row, longer, vector->len + 1, text)) {
            vector_say("one byte more (%02x) was accepted: %s", last, text);
            return false;
        }
    }
    return true;
}

bool codec_check_decode(codec_check_decode_fn decode, const void *row, const struct vector *vector,
                        bool expected)
{
    static char text[VECTOR_TEXT_MAX];
    bool good = decode_copy(decode, row, vector->bytes, vector->len, text);
    if (good != expected) {
        vector_say("it was %s", good ? "accepted" : "refused");
        return false;
    }
    bool compare = vector->kind != VECTOR_GARBAGE && vector->kind != VECTOR_BAD_RESULT;
    if (compare && strcmp(text, vector->text) != 0) {
        vector_say("expected %s", vector->text);
        vector_say("got      %s", text);
        return false;
    }
    if (!compare && strcmp(vector->text, "refused") != 0) {
        vector_say("the text of such a vector is 'refused'");
        return false;
    }
    /* What is refused may have a neighbour that is not; a refused header may not. */
    return !compare || neighbours_are_refused(decode, row, vector);
}

bool codec_check_encode(codec_check_encode_fn encode, const void *row, const struct vector *vector)
{
    static uint8_t bytes[VECTOR_BYTES_MAX];
    for (uint32_t room = 0; room <= vector->len + 4; room++) {
        memset(bytes, 0xee, sizeof bytes);
        struct xdr_out out = xdr_out_of(bytes, room);
        encode(&out, row, vector->text);
        if (out.overflowed != (room < vector->len)) {
            vector_say("in %u bytes of room: %s", room,
                       out.overflowed ? "overflow" : "no overflow");
            return false;
        }
        if (bytes[room] != 0xee) {
            vector_say("in %u bytes of room: wrote beyond them", room);
            return false;
        }
        if (room >= vector->len &&
            (xdr_out_len(&out) != vector->len || memcmp(bytes, vector->bytes, vector->len) != 0)) {
            static char hex[2 * VECTOR_BYTES_MAX + 1];
            struct text text;
            text_init(&text, hex, sizeof hex);
            text_add_hex(&text, (struct bytes){bytes, xdr_out_len(&out)});
            vector_say("encoded as %s", hex);
            return false;
        }
    }
    return true;
}

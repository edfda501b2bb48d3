/*
 * text.h -- text built into a fixed buffer; what does not fit is cut, never written past the end.
 *
 * The result is always NUL-terminated. Bytes from the network go in through text_add_escaped only
 * (R-SEC-8): printable ASCII stays, everything else becomes \xNN, and long values end in "...".
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include "base/address.h"

struct text {
    char *start;
    uint32_t len; /* without the NUL */
    uint32_t max; /* room for text without the NUL */
};

/* `size` counts the NUL and is at least 1. */
void text_init(struct text *text, char *buffer, uint32_t size);

void text_add(struct text *text, const char *string);
void text_add_char(struct text *text, char c);
void text_add_u64(struct text *text, uint64_t value);
/* With thousands separators, as people read it: 1,311. */
void text_add_count(struct text *text, uint64_t value);
/* "1 lock", "1,311 locks" */
void text_add_plural(struct text *text, uint64_t count, const char *noun);
void text_add_hex(struct text *text, struct bytes data);
void text_add_address(struct text *text, const struct address *address);

/* Peer data for logs: at most `len_max` bytes of it, in quotes are the caller's business. */
void text_add_escaped(struct text *text, struct bytes data, uint32_t len_max);

#endif

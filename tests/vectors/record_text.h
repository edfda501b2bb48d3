/*
 * record_text.h -- a stored record as one line of text, for tests.
 *
 *   slot=0 of.client_id=18 of.client=0 ... start=0 end=99 len=100 svid=7 flags=1 fh=0102 oh=7@web3
 *
 * Every field of its layout (store/record_layout.h) in the order of its bytes, named as in its
 * struct. Numbers are decimal and times nanoseconds. Handles and priv are hexadecimal. Bytes of
 * names other than printable ASCII, '%' and blanks are %XX; an empty name is "%".
 */
#ifndef VECTORS_RECORD_TEXT_H
#define VECTORS_RECORD_TEXT_H

#include "store/record.h"

#include <stdio.h>

/* Without a newline. */
void record_text_print(FILE *out, enum record_kind kind, uint32_t slot,
                       const union record_any *record);

void record_text_name(FILE *out, struct bytes name);
void record_text_hex(FILE *out, struct bytes bytes);

#endif

/*
 * lines.h -- the lines in which a server hands over a copy of its store, and back.
 *
 * A record in hexadecimal; the last line of a whole copy; that of one that broke off:
 *
 *   {"kind": "lock", "slot": 3, "record": "0507..."}
 *   {"kind": "end", "records": 12, "digest": "0123456789abcdef"}
 *   {"kind": "error", "error": "..."}
 *
 * They are what `holdfast store import` reads, which takes any JSON. Reading here is strict: these
 * bytes and no others. So a million of them cost a second, and not ten.
 */
#ifndef STORE_LINES_H
#define STORE_LINES_H

#include "store/digest.h"

#define LINES_MAX (2 * RECORD_VALUE_MAX + 128) /* bytes of a line, with its newline */

/* The length; there is no NUL behind it. A longer value or sentence is cut. */
uint32_t lines_put_record(char ret[static LINES_MAX], enum record_kind kind, uint32_t slot,
                          struct bytes value);
uint32_t lines_put_end(char ret[static LINES_MAX], const struct digest *digest);
uint32_t lines_put_error(char ret[static LINES_MAX], const char *sentence);

enum lines_kind { LINES_RECORD, LINES_END, LINES_ERROR, LINES_OTHER };

struct lines_read {
    struct record_change record; /* its value is in `buffer` */
    struct digest end;
    struct bytes error;
    uint8_t buffer[RECORD_VALUE_MAX];
};

/* A line with its newline. Whether a record is intact is not looked at. */
enum lines_kind lines_get(struct bytes line, struct lines_read *ret);

#endif

/*
 * writer.h -- JSON written into memory that grows, value by value.
 *
 * Inside an object every value has a key, a constant of this program; inside a list, and at the
 * top, the key is NULL. The writer adds commas. When out of memory it fails: it writes nothing
 * more, and writer_take reports it.
 *
 * Lines of fixed size (the log, exported records, errors) are written by it, too: writer_into.
 *
 * A list of a million rows is written here, so nothing is built before it is written, and memory is
 * requested only when the text outgrows its buffer.
 */
#ifndef ADMIN_WRITER_H
#define ADMIN_WRITER_H

#include "base/address.h"

#include <stddef.h>

/* All zero: empty. */
struct writer {
    char *at;
    size_t len, size;
    bool has_before; /* a value of the same object or list, before the next one */
    bool has_failed;
    bool is_fixed;  /* the memory is the caller's and does not grow */
    bool is_ascii;  /* what is not printable ASCII is escaped */
    bool is_spaced; /* a blank behind commas and colons */
};

/* Writes into this memory, in ASCII; what does not fit makes it fail. */
struct writer writer_into(char *at, size_t size);

void writer_free(struct writer *writer);
/* The text, NUL-terminated, malloc'ed; the writer is empty again. NULL: it failed.
 * */
char *writer_take(struct writer *writer, size_t *ret_len);

void writer_object(struct writer *writer, const char *key);
void writer_end_object(struct writer *writer);
void writer_list(struct writer *writer, const char *key);
void writer_end_list(struct writer *writer);
/* The next value of a list starts a new line. */
void writer_line(struct writer *writer);
/* Text around the JSON, as it is. */
void writer_plain(struct writer *writer, const char *text);

void writer_null(struct writer *writer, const char *key);
void writer_bool(struct writer *writer, const char *key, bool value);
/* As an integer up to 2^63 - 1, which most readers handle and no file exceeds, and as the nearest
 * floating-point number beyond. */
void writer_number(struct writer *writer, const char *key, uint64_t value);
/* All digits. */
void writer_integer(struct writer *writer, const char *key, uint64_t value);
/* Seconds, with a fraction. */
void writer_seconds(struct writer *writer, const char *key, uint64_t ns);
/* A string of this program; null for NULL. */
void writer_text(struct writer *writer, const char *key, const char *text);
/* Bytes from a peer as a string: as UTF-8 if valid, else each byte as Latin-1. */
void writer_bytes(struct writer *writer, const char *key, struct bytes bytes);
/* Of more than `len_max` bytes the rest is "...". */
void writer_cut(struct writer *writer, const char *key, struct bytes bytes, uint32_t len_max);
/* Would writer_bytes show them as they are? */
bool writer_is_utf8(struct bytes bytes);
/* Would writer_bytes show them as this text? Ignores ASCII case. */
bool writer_shows(struct bytes bytes, struct bytes text);
void writer_hex(struct writer *writer, const char *key, struct bytes bytes);
/* null for none */
void writer_address(struct writer *writer, const char *key, const struct address *address);
/* "c17" */
void writer_id(struct writer *writer, const char *key, uint64_t id);
/* RFC 3339 to the millisecond, UTC; null for 0. */
void writer_time(struct writer *writer, const char *key, uint64_t wall_ns);

#endif

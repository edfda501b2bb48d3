/*
 * writer.h -- JSON written into memory that grows, value by value.
 *
 * Inside an object every value has a key, a constant of this program; inside a list, and at the
 * top, the key is NULL. Commas are the writer's business. Without memory it fails: from then on it
 * writes nothing, and whoever takes the text finds out.
 *
 * A list of a million rows is written here, so nothing is built before it is written, and memory is
 * asked for only when the text outgrows what is there.
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
};

void writer_free(struct writer *writer);
/* The text, with a NUL behind it, as memory of malloc; the writer is empty again. NULL: it failed.
 */
char *writer_take(struct writer *writer, size_t *ret_len);

void writer_object(struct writer *writer, const char *key);
void writer_end_object(struct writer *writer);
void writer_list(struct writer *writer, const char *key);
void writer_end_list(struct writer *writer);
/* The next value of a list begins a line. */
void writer_line(struct writer *writer);
/* Text around the JSON, as it is. */
void writer_plain(struct writer *writer, const char *text);

void writer_null(struct writer *writer, const char *key);
void writer_bool(struct writer *writer, const char *key, bool value);
/* As an integer as far as those of most readers go, 2^63 - 1, which is further than any file does,
 * and as the nearest floating-point number beyond. */
void writer_number(struct writer *writer, const char *key, uint64_t value);
/* Seconds, with a fraction. */
void writer_seconds(struct writer *writer, const char *key, uint64_t ns);
/* A string of this program; null for NULL. */
void writer_text(struct writer *writer, const char *key, const char *text);
/* Bytes of a peer as a string: as UTF-8 if they are, else each byte as the character of that number
 * (Latin-1). */
void writer_bytes(struct writer *writer, const char *key, struct bytes bytes);
/* Would writer_bytes show them as this text? Letters of ASCII count as equal in either case. */
bool writer_shows(struct bytes bytes, struct bytes text);
void writer_hex(struct writer *writer, const char *key, struct bytes bytes);
/* null for none */
void writer_address(struct writer *writer, const char *key, const struct address *address);
/* "c17" */
void writer_id(struct writer *writer, const char *key, uint64_t id);
/* RFC 3339 to the millisecond, UTC; null for 0. */
void writer_time(struct writer *writer, const char *key, uint64_t wall_ns);

#endif

/*
 * print.h -- values of the server as text for a terminal.
 *
 * What a client chose, its name for instance, may hold anything: control characters never reach the
 * terminal.
 */
#ifndef CLI_PRINT_H
#define CLI_PRINT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Of numbers that are no integers, as JSON: whoever reads them gets what the server said. */
enum { PRINT_DIGITS = 17 };

/* A string member, with control characters as "?"; "-" when it is missing. */
void print_safe(FILE *out, const char *text);
/* The same as a string of malloc; NULL: no memory. */
char *print_safe_copy(const char *text);
/* Characters of UTF-8, each one column wide. */
size_t print_width(const char *text);
const char *print_string(const json_t *object, const char *key);
long long print_integer(const json_t *object, const char *key);

/* The digits of a number; what the JSON library has no integers for is rounded. */
void print_number(char *ret, size_t size, const json_t *number);

/* 1,311 */
void print_count(FILE *out, long long value);
/* "3 locks", "1 lock" */
void print_plural(FILE *out, long long count, const char *noun);
/* "12 s", "4 min", "3 h 10 min", "2 d 4 h" */
void print_duration(FILE *out, long long seconds);

/* "12 s ago", "3 h ago" for an RFC 3339 time; "-": there is none. */
void print_ago(char *ret, size_t size, const char *time);

/* Words, broken into lines that fit any terminal. */
void print_wrapped(FILE *out, const char *text);

/* The value itself, as JSON. */
void print_json(const json_t *value);

#endif

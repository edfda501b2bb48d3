/*
 * print.h -- formats the server's values for a terminal.
 *
 * Names are chosen by clients and may contain anything: control characters never reach the
 * terminal.
 */
#ifndef CLI_PRINT_H
#define CLI_PRINT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Digits of non-integers in JSON: readers get exactly what the server sent. */
enum { PRINT_DIGITS = 17 };

/* A string member, with control characters as "?"; "-" when it is missing. */
void print_safe(FILE *out, const char *text);
/* The same as a string of malloc; NULL: no memory. */
char *print_safe_copy(const char *text);
/* Characters of UTF-8, each one column wide. */
size_t print_width(const char *text);
const char *print_string(const json_t *object, const char *key);
long long print_integer(const json_t *object, const char *key);
/* The file of a lock: its name, or its handle where it has none. */
const char *print_file(const json_t *lock);

/* The digits of a number; beyond the JSON library's integers it is rounded. */
void print_number(char *ret, size_t size, const json_t *number);

/* 1,311 */
void print_count(FILE *out, long long value);
/* "3 locks", "1 lock" */
void print_plural(FILE *out, long long count, const char *noun);
/* "12 s", "4 min", "3 h 10 min", "2 d 4 h" */
void print_duration(FILE *out, long long seconds);

/* "12 s ago", "3 h ago" for an RFC 3339 time; "-": there is none. */
void print_ago(char *ret, size_t size, const char *time);
/* The same of a time to come: "12 s left", "over". */
void print_until(char *ret, size_t size, const char *time);

/* Words, broken into lines that fit any terminal. */
void print_wrapped(FILE *out, const char *text);

/* The value itself, as JSON. */
void print_json(const json_t *value);

#endif

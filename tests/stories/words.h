/*
 * words.h -- one line of a story as words, for script.c.
 *
 * words_refuse names the line and ends the program; so does everything here that does not find what
 * it needs.
 */
#ifndef STORIES_WORDS_H
#define STORIES_WORDS_H

#include <stdbool.h>
#include <stdint.h>

/* From here on lines are of this file, which is named in messages. */
void words_of_file(const char *file);
const char *words_file(void);
/* The next line of it, as it is. */
void words_next_line(const char *text);
uint32_t words_line(void);
const char *words_text(void);

__attribute__((format(printf, 1, 2), noreturn)) void words_refuse(const char *format, ...);

/* Takes this part of the line apart; the words that follow are its words. */
void words_split(const char *text);
uint32_t words_count(void);
/* Those that are not read yet. */
uint32_t words_left(void);
void words_skip(void);

/* The next word, which stays; empty: there is none. */
const char *words_peek(void);
/* Is this the next word, or are these the next ones? Then they are read. */
bool words_take(const char *words);
/* The next word, whatever it is. */
const char *words_any(const char *what);
/* 17, 0x11, 2^63-1. */
bool words_is_number(const char *text, uint64_t *ret);
uint64_t words_number(const char *what);
/* Which of these, up to NULL, the next word is. */
uint32_t words_choice(const char *const *list, const char *what);

#endif

/*
 * sorter.h -- the first rows of a sorted list, of however many, in bounded memory.
 *
 * Every row is added once, as a key; only the first `max` of those behind the last row of the page
 * before are kept. So a page of a sorted list costs one look at every row, and no list is kept
 * between two pages: the key of its last row is where the next one begins.
 *
 * Keys are in the order of their numbers, then of their texts, then of their ids, which no two
 * share. Texts are compared as people read them: ignoring ASCII case, and a run of digits is a
 * number, so that web2 is before web10. Of a longer text the first SORTER_TEXT_MAX bytes count.
 */
#ifndef ADMIN_SORTER_H
#define ADMIN_SORTER_H

#include "base/bytes.h"

#include <stdbool.h>

#define SORTER_TEXT_MAX   128
#define SORTER_CURSOR_MAX (2 * 21 + 2 * SORTER_TEXT_MAX + 1)

struct sorter_key {
    uint64_t number, id;
    uint64_t place; /* where the row is found; the caller's */
    uint32_t len;
    uint8_t text[SORTER_TEXT_MAX];
};

struct sorter {
    bool is_text;            /* the text decides, and is turned round by: */
    bool is_down;            /* largest first; else it is the number that is turned round */
    bool has_after;          /* only rows behind this one: */
    struct sorter_key after; /* its place does not count */
    struct sorter_key *kept; /* the caller's memory, */
    uint32_t max;            /* for so many */

    uint32_t count;         /* of those kept */
    uint64_t total, before; /* of all rows; of those that are not behind `after` */
};

void sorter_set_text(struct sorter_key *key, struct bytes text);

/* Less than 0: `a` comes first. Of equal keys the ids are equal. */
int sorter_compare(const struct sorter *sorter, const struct sorter_key *a,
                   const struct sorter_key *b);

void sorter_add(struct sorter *sorter, const struct sorter_key *key);
/* All were added: those kept are in order from now on. */
void sorter_finish(struct sorter *sorter);

/* A key as a word that fits into a URL, and back. False: it is none. */
void sorter_put_cursor(const struct sorter_key *key, char ret[static SORTER_CURSOR_MAX]);
bool sorter_parse_cursor(const char *text, struct sorter_key *ret);

#endif

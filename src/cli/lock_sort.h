/*
 * lock_sort.h -- rows of locks or waiting requests in another order than the server's.
 */
#ifndef CLI_LOCK_SORT_H
#define CLI_LOCK_SORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define LOCK_SORT_WORDS "age|client|file|waiting"

enum lock_sort_by {
    LOCK_SORT_NONE,
    LOCK_SORT_AGE,     /* oldest first */
    LOCK_SORT_CLIENT,  /* by name, then id */
    LOCK_SORT_FILE,    /* by its name or handle, then offset */
    LOCK_SORT_WAITING, /* that most wait for; of waiting requests: that are behind most others */
};

struct lock_sort_row {
    json_t *row; /* with a reference */
};

struct lock_sort {
    enum lock_sort_by by;
    bool is_waiting;
    size_t limit;
    struct lock_sort_row *rows; /* `count` of them */
    size_t count, max;
    bool has_failed; /* no memory */
};

/* From the value of --sort; NULL: no order. False: there is no such word, which was printed. */
bool lock_sort_read(const char *word, bool is_waiting, size_t limit, struct lock_sort *ret);

/* False: no memory. Of more than twice the limit the worst half is forgotten. */
bool lock_sort_add(struct lock_sort *sort, const json_t *row);
/* Puts them in order, at most the limit. */
void lock_sort_finish(struct lock_sort *sort);
void lock_sort_done(struct lock_sort *sort);

#endif

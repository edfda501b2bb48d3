/*
 * lock_sort.c -- see lock_sort.h.
 */
#include "cli/lock_sort.h"

#include "cli/print.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool lock_sort_read(const char *word, bool is_waiting, size_t limit, struct lock_sort *ret)
{
    static const char *const words[] = {[LOCK_SORT_AGE] = "age",
                                        [LOCK_SORT_CLIENT] = "client",
                                        [LOCK_SORT_FILE] = "file",
                                        [LOCK_SORT_WAITING] = "waiting"};
    *ret = (struct lock_sort){.is_waiting = is_waiting, .limit = limit};
    if (word == NULL)
        return true;
    for (size_t i = LOCK_SORT_AGE; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(word, words[i]) == 0) {
            ret->by = (enum lock_sort_by)i;
            return true;
        }
    (void)fprintf(stderr, "holdfast locks: --sort %s: no such order; allowed: %s\n", word,
                  LOCK_SORT_WORDS);
    return false;
}

static int compare_numbers(double a, double b)
{
    return a < b ? -1 : a > b;
}

/* "c9" comes before "c10". */
static int compare_clients(const json_t *a, const json_t *b)
{
    const char *left = print_string(a, "client"), *right = print_string(b, "client");
    int by_name = strcmp(print_string(a, "name"), print_string(b, "name"));
    int by_length = compare_numbers((double)strlen(left), (double)strlen(right));
    return by_name != 0 ? by_name : by_length != 0 ? by_length : strcmp(left, right);
}

static int compare_files(const json_t *a, const json_t *b)
{
    int by_name = strcmp(print_file(a), print_file(b));
    return by_name != 0 ? by_name
                        : compare_numbers(json_number_value(json_object_get(a, "offset")),
                                          json_number_value(json_object_get(b, "offset")));
}

static int compare(const void *left, const void *right, void *context)
{
    const struct lock_sort *sort = context;
    const json_t *a = ((const struct lock_sort_row *)left)->row;
    const json_t *b = ((const struct lock_sort_row *)right)->row;
    const char *age = sort->is_waiting ? "queued_at" : "granted_at";
    const char *count = sort->is_waiting ? "ahead" : "waiters";
    int order = 0;
    switch (sort->by) {
    case LOCK_SORT_NONE:
        break;
    case LOCK_SORT_AGE:
        order = strcmp(print_string(a, age), print_string(b, age)); /* RFC 3339 sorts by time */
        break;
    case LOCK_SORT_CLIENT:
        order = compare_clients(a, b);
        break;
    case LOCK_SORT_FILE:
        order = compare_files(a, b);
        break;
    case LOCK_SORT_WAITING:
        order = compare_numbers((double)print_integer(b, count), (double)print_integer(a, count));
        break;
    }
    return order != 0 ? order : compare_files(a, b);
}

void lock_sort_finish(struct lock_sort *sort)
{
    if (sort->count > 0)
        qsort_r(sort->rows, sort->count, sizeof sort->rows[0], compare, sort);
    while (sort->count > sort->limit)
        json_decref(sort->rows[--sort->count].row);
}

bool lock_sort_add(struct lock_sort *sort, const json_t *row)
{
    if (sort->limit < SIZE_MAX / 2 && sort->count >= 2 * sort->limit)
        lock_sort_finish(sort);
    if (sort->count == sort->max) {
        size_t max = sort->max == 0 ? 64 : 2 * sort->max;
        struct lock_sort_row *rows = realloc(sort->rows, max * sizeof *rows);
        sort->has_failed = rows == NULL;
        if (rows == NULL)
            return false;
        sort->rows = rows;
        sort->max = max;
    }
    sort->rows[sort->count++].row = json_incref((json_t *)(uintptr_t)row);
    return true;
}

void lock_sort_done(struct lock_sort *sort)
{
    while (sort->count > 0)
        json_decref(sort->rows[--sort->count].row);
    free(sort->rows);
    sort->rows = NULL;
}

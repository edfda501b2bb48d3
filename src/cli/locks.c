/*
 * locks.c -- `holdfast locks`: locks or waiting requests, filtered, sorted and counted.
 *
 * The server's list is read page by page and printed as it is read, so a million locks need no
 * memory here and the first appear at once. Only --sort keeps rows: all of them, or with --limit
 * twice as many as are shown.
 */
#include "cli/find.h"
#include "cli/grid.h"
#include "cli/lock_match.h"
#include "cli/lock_sort.h"
#include "cli/print.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AGO_MAX = 32, NUMBER_MAX = 64 };

static const struct grid_column lock_columns[] = {
    {.title = "CLIENT"},
    {.title = "NAME", .cut_min = 8},
    {.title = "OWNER", .is_number = true, .rank = 2},
    {.title = "MODE"},
    {.title = "OFFSET", .is_number = true},
    {.title = "LENGTH", .is_number = true},
    {.title = "AGE", .rank = 3},
    {.title = "STATE", .rank = 5},
    {.title = "WAITING", .is_number = true, .rank = 4},
    {.title = "SHARE", .cut_min = 7, .rank = 1},
    {.title = "FILE", .cut_min = 17, .has_tail = true, .rank = 6},
};

static const struct grid_column waiter_columns[] = {
    {.title = "CLIENT"},
    {.title = "NAME", .cut_min = 8},
    {.title = "OWNER", .is_number = true, .rank = 1},
    {.title = "MODE"},
    {.title = "OFFSET", .is_number = true},
    {.title = "LENGTH", .is_number = true},
    {.title = "WAITS"},
    {.title = "FOR"},
    {.title = "AHEAD", .is_number = true, .rank = 2},
    {.title = "FILE", .cut_min = 17, .has_tail = true, .rank = 3},
};

struct lock_list {
    struct grid *grid; /* NULL: JSON */
    struct find_json json;
    bool is_waiting;
    char handle[LOCK_MATCH_HEX_MAX]; /* in those of files; empty: any */
    const char *prefix;              /* they begin with it; NULL: any */
    size_t limit;                    /* SIZE_MAX: none */
    bool is_total_known;             /* nothing needs to be counted beyond the limit */
    struct lock_sort sort;
    size_t found_count, shown_count;
};

static void add_range(struct grid *grid, const json_t *row)
{
    const json_t *length = json_object_get(row, "length");
    char offset[NUMBER_MAX], text[NUMBER_MAX] = "to end";
    print_number(offset, sizeof offset, json_object_get(row, "offset"));
    if (json_number_value(length) > 0)
        print_number(text, sizeof text, length);
    grid_add(grid, print_string(row, "client"));
    grid_add(grid, print_string(row, "name"));
    grid_add_number(grid, print_integer(row, "svid"));
    grid_add(grid, json_is_true(json_object_get(row, "exclusive")) ? "write" : "read");
    grid_add(grid, offset);
    grid_add(grid, text);
}

static void add_duration(struct grid *grid, long long seconds)
{
    char text[AGO_MAX];
    FILE *out = fmemopen(text, sizeof text, "w");
    if (out != NULL) {
        print_duration(out, seconds);
        (void)fclose(out);
    }
    grid_add(grid, out != NULL ? text : NULL);
}

static void add_cells(struct lock_list *list, const json_t *row)
{
    struct grid *grid = list->grid;
    add_range(grid, row);
    add_duration(grid, print_integer(row, list->is_waiting ? "waiting_seconds" : "held_seconds"));
    if (list->is_waiting) {
        grid_add(grid, print_string(json_object_get(row, "blocked_by"), "client"));
        grid_add_number(grid, print_integer(row, "ahead"));
    } else {
        grid_add(grid, print_string(row, "state"));
        grid_add_number(grid, print_integer(row, "waiters"));
        grid_add(grid, print_string(row, "share"));
    }
    grid_add(grid, print_file(row));
}

/* False: no memory. */
static bool show(struct lock_list *list, const json_t *row)
{
    list->shown_count++;
    if (list->grid == NULL)
        return find_json_row(&list->json, row);
    add_cells(list, row);
    return !grid_has_failed(list->grid);
}

static bool visit(void *context, const json_t *row)
{
    struct lock_list *list = context;
    const char *file = print_string(row, "file");
    if (!lock_match_is_in(file, list->handle) ||
        (list->prefix != NULL && !lock_match_begins(file, list->prefix)))
        return true;
    list->found_count++;
    if (list->sort.by != LOCK_SORT_NONE)
        return lock_sort_add(&list->sort, row);
    if (list->shown_count < list->limit)
        return show(list, row);
    return !list->is_total_known;
}

/* The titles are as wide as the first rows that are printed: those that are yet to be sorted are
 * waited for. */
static void print_page(void *context)
{
    struct lock_list *list = context;
    bool is_sorting = list->sort.count > 0 && list->shown_count == 0;
    if (list->grid != NULL && !is_sorting && (list->shown_count > 0 || list->handle[0] == '\0'))
        grid_print(list->grid);
}

/* ---- what is asked for ---- */

/* --limit: a number, SIZE_MAX if it is not given; 0: it is none, and that was printed. */
static size_t read_limit(const struct arguments *arguments)
{
    const char *text = arguments_value(arguments, "limit");
    size_t limit = 0;
    if (text == NULL)
        return SIZE_MAX;
    for (const char *at = text; *at >= '0' && *at <= '9' && limit < SIZE_MAX / 100; at++) {
        limit = limit * 10 + (size_t)(*at - '0');
        if (at[1] == '\0' && limit > 0)
            return limit;
    }
    (void)fprintf(stderr, "holdfast locks: --limit %s: not a number above 0\n", text);
    return 0;
}

/* EXIT_OK, or after saying what is wrong. */
static int read_arguments(const struct arguments *arguments, struct lock_list *ret)
{
    const char *file = arguments_value(arguments, "file"),
               *path = arguments_value(arguments, "path");
    ret->is_waiting = arguments_has(arguments, "waiting");
    ret->limit = read_limit(arguments);
    if (ret->limit == 0)
        return EXIT_USAGE;
    if (!lock_sort_read(arguments_value(arguments, "sort"), ret->is_waiting, ret->limit,
                        &ret->sort))
        return EXIT_USAGE;
    if (file != NULL && !lock_match_is_prefix(file)) {
        (void)fprintf(stderr,
                      "holdfast locks: --file %s: not a file handle, nor the beginning of one; use "
                      "hex digits, 128 at most (for the name of a file: --path)\n",
                      file);
        return EXIT_USAGE;
    }
    return path != NULL ? lock_match_read(path, ret->handle) : EXIT_OK;
}

/* The path of the list, with the filters that the server applies. An exit code. */
static int lock_path(struct http_client *http, const struct arguments *arguments,
                     char ret[static FIND_PATH_MAX])
{
    const char *client = arguments_value(arguments, "client");
    char id[FIND_ID_MAX] = "";
    if (client != NULL) {
        json_t *row;
        int exit_code = find_locker(http, client, &row);
        if (exit_code != EXIT_OK)
            return exit_code;
        (void)snprintf(id, sizeof id, "%s", print_string(row, "id"));
        json_decref(row);
    }
    (void)snprintf(ret, FIND_PATH_MAX, "/api/v1/%s",
                   arguments_has(arguments, "waiting") ? "waiters" : "locks");
    if (find_add_parameter(ret, FIND_PATH_MAX, "client", client != NULL ? id : NULL) &&
        find_add_parameter(ret, FIND_PATH_MAX, "export", arguments_value(arguments, "export")))
        return EXIT_OK;
    (void)fputs("holdfast locks: --export: the path is too long\n", stderr);
    return EXIT_USAGE;
}

/* ---- the answer ---- */

static bool stop_at_first(void *context, const json_t *row)
{
    (void)row;
    *(bool *)context = true;
    return false;
}

/* The server finds the locks of a whole handle at once; others are picked from all. */
static int narrow(struct http_client *http, const char *file, struct lock_list *list, char *path)
{
    char exact[FIND_PATH_MAX];
    bool is_there = false;
    int exit_code = EXIT_OK;
    if (file == NULL)
        return EXIT_OK;
    (void)snprintf(exact, sizeof exact, "%s", path);
    if (arguments_is_handle(file) && find_add_parameter(exact, sizeof exact, "file", file))
        exit_code = find_rows(http, exact, list->is_waiting ? "waiters" : "locks", stop_at_first,
                              NULL, &is_there);
    if (is_there)
        (void)snprintf(path, FIND_PATH_MAX, "%s", exact);
    else
        list->prefix = file;
    return exit_code;
}

/* How many there are in all, if nothing is filtered: so many as the server says. */
static void ask_total(struct http_client *http, struct lock_list *list, long long *ret)
{
    json_t *status = http_client_try(http, "/api/v1/status");
    *ret = list->is_waiting ? print_integer(status, "waiters")
                            : print_integer(status, "locks") + print_integer(status, "offers");
    list->is_total_known = status != NULL;
    json_decref(status);
}

static void show_sorted(struct lock_list *list)
{
    lock_sort_finish(&list->sort);
    for (size_t i = 0; i < list->sort.count; i++)
        if (!show(list, list->sort.rows[i].row))
            break;
    print_page(list);
}

/* "3 locks", "2 of 3 waiting requests" */
static void print_total(const struct lock_list *list, long long total)
{
    (void)puts("");
    if ((long long)list->shown_count < total) {
        print_count(stdout, (long long)list->shown_count);
        (void)fputs(" of ", stdout);
    }
    print_plural(stdout, total, list->is_waiting ? "waiting request" : "lock");
    (void)puts("");
}

/* A filter that lets nothing through says so. */
static int print_nothing(const struct arguments *arguments)
{
    const char *path = arguments_value(arguments, "path"),
               *file = arguments_value(arguments, "file");
    if (path != NULL)
        (void)fprintf(stderr,
                      "holdfast locks: no lock on %s, or its NFS server makes its own handles (use "
                      "--file)\n",
                      path);
    else if (file != NULL)
        (void)fprintf(stderr,
                      "holdfast locks: no lock on a file whose handle is, or begins with, %s\n",
                      file);
    return path != NULL || file != NULL ? EXIT_NO : EXIT_OK;
}

static int print_list(struct http_client *http, const struct arguments *arguments, const char *path,
                      struct lock_list *list)
{
    const char *name = list->is_waiting ? "waiters" : "locks";
    bool is_all = strchr(path, '?') == NULL && list->prefix == NULL && list->handle[0] == '\0';
    long long total = 0;
    if (list->limit != SIZE_MAX && is_all && list->sort.by == LOCK_SORT_NONE)
        ask_total(http, list, &total);
    int exit_code = find_rows(http, path, name, visit, print_page, list);
    if (exit_code != EXIT_OK)
        return exit_code;
    if (list->sort.by != LOCK_SORT_NONE)
        show_sorted(list);
    if (!list->is_total_known || total < (long long)list->found_count)
        total = (long long)list->found_count;
    if (list->grid == NULL)
        exit_code = find_json_end(&list->json, total);
    else if (list->found_count > 0 || (list->handle[0] == '\0' && list->prefix == NULL))
        print_total(list, total);
    return exit_code == EXIT_OK && list->found_count == 0 ? print_nothing(arguments) : exit_code;
}

int locks_run(struct http_client *http, const struct arguments *arguments)
{
    char path[FIND_PATH_MAX];
    struct lock_list list = {0};
    bool is_json = arguments_has(arguments, "json");
    int exit_code = read_arguments(arguments, &list);
    if (exit_code == EXIT_OK)
        exit_code = lock_path(http, arguments, path);
    if (exit_code == EXIT_OK)
        exit_code = narrow(http, arguments_value(arguments, "file"), &list, path);
    if (exit_code != EXIT_OK)
        return exit_code;
    list.json = (struct find_json){.name = list.is_waiting ? "waiters" : "locks"};
    if (!is_json)
        list.grid = list.is_waiting
                        ? grid_new(waiter_columns, sizeof waiter_columns / sizeof waiter_columns[0])
                        : grid_new(lock_columns, sizeof lock_columns / sizeof lock_columns[0]);
    if (!is_json && list.grid == NULL)
        return grid_finish(NULL);
    exit_code = print_list(http, arguments, path, &list);
    bool has_failed = list.sort.has_failed;
    lock_sort_done(&list.sort);
    if (has_failed) {
        (void)fputs("holdfast locks: out of memory; use --limit with --sort\n", stderr);
        exit_code = EXIT_NO;
    }
    int grid_code = is_json ? EXIT_OK : grid_finish(list.grid);
    return exit_code == EXIT_OK ? grid_code : exit_code;
}

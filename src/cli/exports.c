/*
 * exports.c -- `holdfast exports`: what is exported to whom, and how much it is used.
 */
#include "cli/find.h"
#include "cli/grid.h"
#include "cli/print.h"

#include <stdio.h>
#include <stdlib.h>

static const struct grid_column columns[] = {
    {.title = "DIRECTORY", .cut_min = 20, .has_tail = true},
    {.title = "FSID", .is_number = true, .rank = 1},
    {.title = "MOUNTS", .is_number = true, .rank = 3},
    {.title = "OPEN", .is_number = true, .rank = 2},
    {.title = "LOCKS", .is_number = true},
    {.title = "CLIENTS", .cut_min = 20},
};

struct table {
    struct grid *grid;
    size_t count;
};

/* *(rw,sync) 10.0.0.0/8(ro,sync); NULL: no memory. */
static char *clients_of(const json_t *row)
{
    char *said = NULL;
    size_t len = 0, index;
    const json_t *client;
    FILE *out = open_memstream(&said, &len);
    if (out == NULL)
        return NULL;
    json_array_foreach(json_object_get(row, "clients"), index, client)(void)
        fprintf(out, "%s%s(%s)", index > 0 ? " " : "", print_string(client, "client"),
                print_string(client, "options"));
    if (fclose(out) == 0)
        return said;
    free(said);
    return NULL;
}

/* With a word for a file system that does not answer; NULL: no memory. */
static char *directory_of(const json_t *row)
{
    char *said = NULL;
    bool hangs = json_is_true(json_object_get(row, "hangs"));
    int len = asprintf(&said, "%s%s", print_string(row, "directory"), hangs ? " (hangs)" : "");
    return len < 0 ? NULL : said;
}

static bool add_export(void *context, const json_t *row)
{
    struct table *table = context;
    struct grid *grid = table->grid;
    char *clients = clients_of(row);
    char *directory = directory_of(row);
    grid_add(grid, directory);
    free(directory);
    grid_add_number(grid, print_integer(row, "fsid"));
    grid_add_number(grid, print_integer(row, "mounts"));
    grid_add_number(grid, print_integer(row, "open_files"));
    grid_add_number(grid, print_integer(row, "locks"));
    grid_add(grid, clients);
    free(clients);
    table->count++;
    return !grid_has_failed(grid);
}

static void print_page(void *context)
{
    struct table *table = context;
    if (table->count > 0)
        grid_print(table->grid);
}

static int print_exports(struct http_client *http, const char *path)
{
    struct table table = {.grid = grid_new(columns, sizeof columns / sizeof columns[0])};
    int exit_code = table.grid == NULL
                        ? EXIT_OK
                        : find_rows(http, path, "exports", add_export, print_page, &table);
    bool is_empty = table.grid != NULL && table.count == 0;
    int grid_code = grid_finish(table.grid);
    if (exit_code == EXIT_OK && is_empty)
        (void)puts("No exports: this server serves locks for files of another one.");
    return exit_code == EXIT_OK ? grid_code : exit_code;
}

int exports_run(struct http_client *http, const struct arguments *arguments)
{
    static const char path[] = "/api/v1/exports";
    int exit_code = arguments_has(arguments, "json") ? find_print_json(http, path, "exports")
                                                     : print_exports(http, path);
    return exit_code;
}

/*
 * host.c -- `holdfast hosts`; see host.h.
 */
#include "cli/host.h"

#include "cli/find.h"
#include "cli/grid.h"
#include "cli/print.h"

#include <stdio.h>
#include <string.h>

enum { AGO_MAX = 32 };

static const struct grid_column columns[] = {
    {.title = "ID"},
    {.title = "HOST", .cut_min = 8},
    {.title = "ADDRESS", .cut_min = 15, .rank = 2},
    {.title = "WATCHED", .rank = 3},
    {.title = "OWED"},
    {.title = "NOTIFIED", .rank = 4},
    {.title = "TRIES", .is_number = true, .rank = 1},
    {.title = "LAST NOTICE"},
};

int host_ask_role(struct http_client *http, bool *ret_is_monitor)
{
    int exit_code;
    json_t *status = http_client_get(http, "/api/v1/status", &exit_code);
    *ret_is_monitor = strcmp(print_string(status, "role"), "monitor") == 0;
    json_decref(status);
    return exit_code;
}

const char *host_owed_words(const json_t *host)
{
    bool is_owed = json_is_true(json_object_get(host, "owed"));
    bool has_upcall = json_is_true(json_object_get(host, "upcall_owed"));
    return is_owed && has_upcall ? "notice, upcall"
           : is_owed             ? "notice"
           : has_upcall          ? "upcall"
                                 : "-";
}

static bool add_host(void *context, const json_t *row)
{
    struct grid *grid = context;
    char since[AGO_MAX], heard[AGO_MAX];
    const json_t *host = json_object_get(row, "host");
    const json_t *notification = json_object_get(row, "notification");
    const char *owed = host_owed_words(host), *news = print_string(notification, "state");
    bool is_resolved = json_is_true(json_object_get(host, "resolved"));
    print_ago(since, sizeof since, print_string(row, "registered_at"));
    print_ago(heard, sizeof heard, print_string(row, "rebooted_at"));
    grid_add(grid, print_string(row, "id"));
    grid_add(grid, print_string(row, "name"));
    grid_add(grid, is_resolved ? print_string(row, "address") : "not resolved");
    grid_add(grid, since);
    grid_add(grid, owed);
    grid_add(grid, strcmp(news, "none") == 0 ? "-" : news);
    grid_add_number(grid, print_integer(notification, "attempts"));
    grid_add(grid, heard);
    grid_colour(grid, !is_resolved || strcmp(news, "given_up") == 0 ? "31"
                      : strcmp(owed, "-") != 0                      ? "33"
                                                                    : NULL);
    return !grid_has_failed(grid);
}

static void print_page(void *context)
{
    grid_print(context);
}

int host_print_table(struct http_client *http, const char *path)
{
    struct grid *grid = grid_new(columns, sizeof columns / sizeof columns[0]);
    int exit_code =
        grid == NULL ? EXIT_OK : find_rows(http, path, "clients", add_host, print_page, grid);
    int grid_code = grid_finish(grid);
    return exit_code == EXIT_OK ? grid_code : exit_code;
}

static int print_hosts(struct http_client *http, bool is_json)
{
    static const char path[] = "/api/v1/clients?protocol=nsm";
    bool is_monitor;
    int exit_code = host_ask_role(http, &is_monitor);
    if (exit_code != EXIT_OK)
        return exit_code;
    if (!is_monitor) {
        (void)fputs("holdfast hosts: this server is no status monitor (--role monitor); holdfast "
                    "clients lists its clients\n",
                    stderr);
        return EXIT_NO;
    }
    return is_json ? find_print_json(http, path, "clients") : host_print_table(http, path);
}

int host_run(struct http_client *http, const struct arguments *arguments)
{
    int exit_code = print_hosts(http, arguments_has(arguments, "json"));
    return exit_code;
}

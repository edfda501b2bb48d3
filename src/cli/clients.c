/*
 * clients.c -- `holdfast clients`: the list, read and printed page by page, or one client.
 */
#include "cli/client_text.h"
#include "cli/find.h"
#include "cli/grid.h"
#include "cli/host.h"
#include "cli/print.h"

#include <stdio.h>
#include <string.h>

enum { AGO_MAX = 32 };

static const struct grid_column client_columns[] = {
    {.title = "ID"},
    {.title = "PROTOCOL", .rank = 3},
    {.title = "NAME", .cut_min = 8},
    {.title = "ADDRESS", .cut_min = 15, .rank = 6},
    {.title = "STATE"},
    {.title = "LOCKS", .is_number = true},
    {.title = "WAITING", .is_number = true, .rank = 5},
    {.title = "TOLD", .rank = 4},
    {.title = "LAST SEEN"},
    {.title = "WINDOW", .rank = 1}, /* these two of tracked clients */
    {.title = "DEADLINE", .rank = 2},
};

/* Whether it was notified of the last restart; "-": it came later, or has no need to be. */
static const char *told_word(const json_t *notification)
{
    const char *state = print_string(notification, "state");
    return strcmp(state, "none") == 0 ? "-" : state;
}

/* How long it may stay away, and how much of that is left. */
static void add_window(struct grid *grid, const json_t *tracked)
{
    char window[AGO_MAX], left[AGO_MAX];
    (void)snprintf(window, sizeof window, "%lld s", print_integer(tracked, "window_s"));
    print_until(left, sizeof left, print_string(tracked, "deadline"));
    grid_add(grid, json_is_object(tracked) ? window : NULL);
    grid_add(grid, json_is_object(tracked) ? left : NULL);
}

static bool add_client(void *context, const json_t *row)
{
    struct grid *grid = context;
    char seen[AGO_MAX];
    const char *state = print_string(row, "state");
    print_ago(seen, sizeof seen, print_string(row, "last_seen"));
    grid_add(grid, print_string(row, "id"));
    grid_add(grid, print_string(row, "protocol"));
    grid_add(grid, print_string(row, "name"));
    grid_add(grid, print_string(row, "address"));
    grid_add(grid, state);
    grid_add_number(grid, print_integer(row, "locks"));
    grid_add_number(grid, print_integer(row, "waiters"));
    grid_add(grid, told_word(json_object_get(row, "notification")));
    grid_add(grid, seen);
    add_window(grid, json_object_get(row, "tracked"));
    bool is_bad = strcmp(state, "crashed") == 0 || strcmp(state, "given_up") == 0 ||
                  strcmp(state, "expired") == 0;
    bool is_away = strcmp(state, "recovering") == 0 || strcmp(state, "disconnected") == 0;
    grid_colour(grid, is_bad ? "31" : is_away ? "33" : NULL);
    return !grid_has_failed(grid);
}

static void print_page(void *context)
{
    grid_print(context);
}

static int print_client(struct http_client *http, const char *word, bool is_json)
{
    json_t *client;
    int exit_code = find_client(http, word, &client);
    if (exit_code != EXIT_OK)
        return exit_code;
    if (is_json)
        print_json(client);
    else
        client_text_print(client);
    json_decref(client);
    return EXIT_OK;
}

static bool is_state(const char *word)
{
    static const char states[] = COMMAND_STATES;
    const char *at = strstr(states, word);
    size_t len = strlen(word);
    return at != NULL && len > 0 && strchr(word, '|') == NULL && (at == states || at[-1] == '|') &&
           (at[len] == '|' || at[len] == '\0');
}

static const char *const client_filters[] = {"state", "protocol", "name", "mon-name"};

/* The server's word for each is the same, with an underscore. An exit code. */
static int client_path(const struct arguments *arguments, char ret[static FIND_PATH_MAX])
{
    const char *state = arguments_value(arguments, "state");
    if (state != NULL && !is_state(state)) {
        (void)fprintf(stderr, "holdfast clients: --state %s: no such state; allowed: %s\n", state,
                      COMMAND_STATES);
        return EXIT_USAGE;
    }
    (void)snprintf(ret, FIND_PATH_MAX, "/api/v1/clients");
    if (find_add_parameter(ret, FIND_PATH_MAX, "state", state) &&
        find_add_parameter(ret, FIND_PATH_MAX, "protocol",
                           arguments_value(arguments, "protocol")) &&
        find_add_parameter(ret, FIND_PATH_MAX, "name", arguments_value(arguments, "name")) &&
        find_add_parameter(ret, FIND_PATH_MAX, "mon_name", arguments_value(arguments, "mon-name")))
        return EXIT_OK;
    (void)fputs("holdfast clients: name too long; the limit is 1024 bytes\n", stderr);
    return EXIT_USAGE;
}

static int print_clients(struct http_client *http, const struct arguments *arguments)
{
    char path[FIND_PATH_MAX];
    int exit_code = client_path(arguments, path);
    if (exit_code != EXIT_OK)
        return exit_code;
    if (arguments_has(arguments, "json"))
        return find_print_json(http, path, "clients");
    bool is_monitor;
    exit_code = host_ask_role(http, &is_monitor);
    if (exit_code != EXIT_OK || is_monitor)
        return exit_code != EXIT_OK ? exit_code : host_print_table(http, path);
    struct grid *grid = grid_new(client_columns, sizeof client_columns / sizeof client_columns[0]);
    exit_code =
        grid == NULL ? EXIT_OK : find_rows(http, path, "clients", add_client, print_page, grid);
    int grid_code = grid_finish(grid);
    return exit_code == EXIT_OK ? grid_code : exit_code;
}

int clients_check(const struct arguments *arguments)
{
    for (size_t i = 0; i < sizeof client_filters / sizeof client_filters[0]; i++) {
        if (arguments->word_count == 0 || !arguments_has(arguments, client_filters[i]))
            continue;
        (void)fprintf(stderr,
                      "holdfast clients: --%s filters the list; use either it or a client\n",
                      client_filters[i]);
        return EXIT_USAGE;
    }
    return EXIT_OK;
}

int clients_run(struct http_client *http, const struct arguments *arguments)
{
    return arguments->word_count > 0
               ? print_client(http, arguments->words[0], arguments_has(arguments, "json"))
               : print_clients(http, arguments);
}

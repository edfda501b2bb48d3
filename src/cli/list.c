/*
 * list.c -- `holdfast clients` and `holdfast locks`.
 *
 * Both read the server's lists page by page and print as they read, so a million locks need no
 * memory here and the first appear at once.
 */
#include "base/text.h"
#include "cli/find.h"
#include "cli/grid.h"
#include "cli/host.h"
#include "cli/print.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_LENGTH = 1024, AGO_MAX = 32, NUMBER_MAX = 64, HEX_MAX = 2 * MAX_HANDLE_SZ + 1 };
enum { PADDING_DIGITS = 6 }; /* three bytes in hex are the most that pad a handle */

/* ---- clients ---- */

static const struct grid_column client_columns[] = {
    {.title = "ID"},
    {.title = "PROTOCOL", .rank = 1},
    {.title = "NAME", .cut_min = 8},
    {.title = "ADDRESS", .cut_min = 15, .rank = 4},
    {.title = "STATE"},
    {.title = "LOCKS", .is_number = true},
    {.title = "WAITING", .is_number = true, .rank = 3},
    {.title = "TOLD", .rank = 2},
    {.title = "LAST SEEN"},
};

/* Whether it was notified of the last restart; "-": it came later, or has no need to be. */
static const char *told_word(const json_t *notification)
{
    const char *state = print_string(notification, "state");
    return strcmp(state, "none") == 0 ? "-" : state;
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
    bool is_bad = strcmp(state, "crashed") == 0 || strcmp(state, "given_up") == 0;
    grid_colour(grid, is_bad ? "31" : strcmp(state, "recovering") == 0 ? "33" : NULL);
    return !grid_has_failed(grid);
}

static void print_page(void *context)
{
    grid_print(context);
}

static void print_member(const char *key, const json_t *value)
{
    if (json_is_null(value))
        return;
    (void)printf("%-18s ", key);
    if (json_is_string(value)) {
        print_safe(stdout, json_string_value(value));
        (void)puts("");
        return;
    }
    char *text =
        json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(PRINT_DIGITS));
    (void)puts(text != NULL ? text : "");
    free(text);
}

static int print_client(struct http_client *http, const char *word, bool is_json)
{
    json_t *client;
    int exit_code = find_client(http, word, &client);
    if (exit_code != EXIT_OK)
        return exit_code;
    const char *key;
    json_t *value;
    if (is_json)
        print_json(client);
    else
        json_object_foreach(client, key, value) print_member(key, value);
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
        return find_print_json(http, path, "clients", NULL, NULL);
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

int list_check_clients(const struct arguments *arguments)
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

int list_clients(struct http_client *http, const struct arguments *arguments)
{
    return arguments->word_count > 0
               ? print_client(http, arguments->words[0], arguments_has(arguments, "json"))
               : print_clients(http, arguments);
}

/* ---- locks ---- */

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
    struct grid *grid;
    bool is_waiting;
    char handle[HEX_MAX]; /* the end of file handles, in hex; empty: any */
    size_t shown_count;
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

/* holdfast's own handles: version, type, length of the kernel's handle, a zero, four bytes, that
 * handle, padded, and eight bytes. */
static bool is_own_handle_of(const char *file, const char *wanted)
{
    enum { HEAD = 16, TAIL = 16, QUAD = 8 }; /* in digits */
    size_t wanted_len = strlen(wanted), padded = (wanted_len + QUAD - 1) / QUAD * QUAD;
    char length[3];
    (void)snprintf(length, sizeof length, "%02x", (unsigned)(wanted_len / 2) & 0xff);
    return strlen(file) == HEAD + padded + TAIL && strncmp(file, "01", 2) == 0 &&
           strncmp(file + 4, length, 2) == 0 && strncmp(file + HEAD, wanted, wanted_len) == 0;
}

/* Is the lock on the file asked for? File servers put the kernel's handle at the end of theirs, and
 * some pad it to a multiple of four bytes. The same bytes anywhere else belong to another file:
 * handles are short, and full of zeros. */
static bool is_wanted(void *context, const json_t *row)
{
    struct lock_list *list = context;
    const char *file = print_string(row, "file");
    size_t len = strlen(file), wanted_len = strlen(list->handle), end = len;
    bool is_found = wanted_len > 0 && is_own_handle_of(file, list->handle);
    for (; !is_found && end >= wanted_len && len - end <= PADDING_DIGITS; end -= 2) {
        is_found = memcmp(file + end - wanted_len, list->handle, wanted_len) == 0;
        if (end < 2 || memcmp(file + end - 2, "00", 2) != 0)
            break;
    }
    list->shown_count += is_found;
    return is_found;
}

static bool add_lock(void *context, const json_t *row)
{
    struct lock_list *list = context;
    struct grid *grid = list->grid;
    if (!is_wanted(list, row))
        return true;
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
    return !grid_has_failed(grid);
}

static void print_lock_page(void *context)
{
    struct lock_list *list = context;
    if (list->shown_count > 0 || list->handle[0] == '\0')
        grid_print(list->grid);
}

/* The kernel's handle of a file: servers that export it put these bytes into theirs. */
static int read_handle(const char *path, char ret[static HEX_MAX])
{
    union {
        struct file_handle handle;
        char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
    } at;
    int mount_id;
    at.handle.handle_bytes = MAX_HANDLE_SZ;
    if (name_to_handle_at(AT_FDCWD, path, &at.handle, &mount_id, AT_SYMLINK_FOLLOW) != 0) {
        (void)fprintf(stderr, "holdfast locks: --path %s: %s%s\n", path, strerror(errno),
                      errno == EOPNOTSUPP
                          ? "; its file system has no file handles, so it cannot be exported"
                          : "");
        return EXIT_USAGE;
    }
    struct text text;
    text_init(&text, ret, HEX_MAX);
    text_add_hex(&text, (struct bytes){at.handle.f_handle, at.handle.handle_bytes});
    return EXIT_OK;
}

/* The path of the list, with its filters. An exit code. */
static int lock_path(struct http_client *http, const struct arguments *arguments,
                     char ret[static PATH_LENGTH])
{
    const char *client = arguments_value(arguments, "client");
    const char *file = arguments_value(arguments, "file");
    char id[FIND_ID_MAX] = "";
    if (file != NULL && !arguments_is_handle(file)) {
        (void)fprintf(stderr,
                      "holdfast locks: --file %s: not a file handle; pairs of hex digits, 64 at "
                      "most\n",
                      file);
        return EXIT_USAGE;
    }
    if (client != NULL) {
        json_t *row;
        int exit_code = find_locker(http, client, &row);
        if (exit_code != EXIT_OK)
            return exit_code;
        (void)snprintf(id, sizeof id, "%s", print_string(row, "id"));
        json_decref(row);
    }
    (void)snprintf(ret, PATH_LENGTH, "/api/v1/%s%s%s%s%s%s",
                   arguments_has(arguments, "waiting") ? "waiters" : "locks",
                   client != NULL || file != NULL ? "?" : "", client != NULL ? "client=" : "", id,
                   file != NULL ? (client != NULL ? "&file=" : "file=") : "",
                   file != NULL ? file : "");
    return EXIT_OK;
}

static int print_table(struct http_client *http, const char *path, const char *name,
                       struct lock_list *list)
{
    list->grid = list->is_waiting
                     ? grid_new(waiter_columns, sizeof waiter_columns / sizeof waiter_columns[0])
                     : grid_new(lock_columns, sizeof lock_columns / sizeof lock_columns[0]);
    int exit_code =
        list->grid == NULL ? EXIT_OK : find_rows(http, path, name, add_lock, print_lock_page, list);
    int grid_code = grid_finish(list->grid);
    return exit_code == EXIT_OK ? grid_code : exit_code;
}

int list_locks(struct http_client *http, const struct arguments *arguments)
{
    char path[PATH_LENGTH];
    struct lock_list list = {.is_waiting = arguments_has(arguments, "waiting")};
    const char *file = arguments_value(arguments, "path");
    int exit_code = lock_path(http, arguments, path);
    if (exit_code == EXIT_OK && file != NULL)
        exit_code = read_handle(file, list.handle);
    if (exit_code != EXIT_OK)
        return exit_code;
    const char *name = list.is_waiting ? "waiters" : "locks";
    exit_code = arguments_has(arguments, "json")
                    ? find_print_json(http, path, name, is_wanted, &list)
                    : print_table(http, path, name, &list);
    if (exit_code == EXIT_OK && file != NULL && list.shown_count == 0) {
        (void)fprintf(
            stderr,
            "holdfast locks: no lock on %s, or its NFS server makes its own handles (use --file)\n",
            file);
        exit_code = EXIT_NO;
    }
    return exit_code;
}

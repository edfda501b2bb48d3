/*
 * explain.c -- `holdfast explain CLIENT`: what happens to its locks if something crashes now, and
 * why, from what the server knows about the client and the options in force.
 */
#include "cli/find.h"
#include "cli/grid.h"
#include "cli/host.h"
#include "cli/print.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { PATH_LENGTH = 256, VALUE_MAX = 64 };

/* The options that matter here. */
struct rules {
    char recovery[VALUE_MAX], unreachable[VALUE_MAX], grace[VALUE_MAX];
    char store[VALUE_MAX], sync[VALUE_MAX];
};

static void read_rule(const json_t *option, const char *name, char ret[static VALUE_MAX])
{
    if (strcmp(print_string(option, "name"), name) != 0)
        return;
    const char *value = json_string_value(json_array_get(json_object_get(option, "values"), 0));
    (void)snprintf(ret, VALUE_MAX, "%s", value != NULL ? value : "");
}

static int read_rules(struct http_client *http, struct rules *ret)
{
    int exit_code;
    json_t *config = http_client_get(http, "/api/v1/config", &exit_code), *option;
    size_t index;
    *ret = (struct rules){0};
    json_array_foreach(json_object_get(config, "options"), index, option)
    {
        read_rule(option, "recovery", ret->recovery);
        read_rule(option, "unreachable", ret->unreachable);
        read_rule(option, "grace", ret->grace);
        read_rule(option, "store", ret->store);
        read_rule(option, "sync", ret->sync);
    }
    json_decref(config);
    return exit_code;
}

/* What happens to one lock, in a few words. */
static const char *after_server_crash(const struct rules *rules, bool is_monitored,
                                      const char *state)
{
    if (strcmp(state, "freeing") == 0)
        return "released: its client rebooted";
    if (strncmp(rules->store, "memory:", 7) == 0)
        return "lost: nothing is stored";
    if (strcmp(rules->recovery, "resume") == 0)
        return "still held";
    return is_monitored ? "kept if reclaimed in grace" : "lost: not notified";
}

static const char *after_client_crash(bool is_monitored)
{
    return is_monitored ? "released when it reboots" : "held until FREE_ALL or release";
}

static const struct grid_column columns[] = {
    {.title = "FILE", .cut_min = 9, .has_tail = true},
    {.title = "OFFSET", .is_number = true},
    {.title = "LENGTH", .is_number = true},
    {.title = "MODE", .rank = 2},
    {.title = "STATE", .rank = 1},
    {.title = "SERVER CRASHES", .cut_min = 26},
    {.title = "CLIENT CRASHES", .cut_min = 22},
};

struct lock_table {
    struct grid *grid;
    const struct rules *rules;
    json_t *rows; /* for --json, instead of the grid */
    bool has_failed;
};

static bool add_lock(void *context, const json_t *row)
{
    struct lock_table *table = context;
    struct grid *grid = table->grid;
    bool is_monitored = json_is_true(json_object_get(row, "monitored"));
    const json_t *length = json_object_get(row, "length");
    char offset[VALUE_MAX], text[VALUE_MAX] = "to end";
    print_number(offset, sizeof offset, json_object_get(row, "offset"));
    if (json_number_value(length) > 0)
        print_number(text, sizeof text, length);
    grid_add(grid, print_file(row));
    grid_add(grid, offset);
    grid_add(grid, text);
    grid_add(grid, json_is_true(json_object_get(row, "exclusive")) ? "write" : "read");
    grid_add(grid, print_string(row, "state"));
    grid_add(grid, after_server_crash(table->rules, is_monitored, print_string(row, "state")));
    grid_add(grid, after_client_crash(is_monitored));
    return !grid_has_failed(grid);
}

/* The same for --json. */
static bool add_row(void *context, const json_t *row)
{
    struct lock_table *table = context;
    bool is_monitored = json_is_true(json_object_get(row, "monitored"));
    json_t *copy = json_copy((json_t *)(uintptr_t)row);
    (void)json_object_set_new(
        copy, "server_crashes",
        json_string(after_server_crash(table->rules, is_monitored, print_string(row, "state"))));
    (void)json_object_set_new(copy, "client_crashes",
                              json_string(after_client_crash(is_monitored)));
    table->has_failed = json_array_append_new(table->rows, copy) != 0;
    return !table->has_failed;
}

static void print_page(void *context)
{
    grid_print(((struct lock_table *)context)->grid);
}

static void print_server_crash(const json_t *client, const struct rules *rules)
{
    bool is_monitored = json_is_true(json_object_get(client, "monitored"));
    (void)puts("\nIf the server crashes now:");
    if (strncmp(rules->store, "memory:", 7) == 0) {
        (void)puts(
            "  All its locks are lost: --store memory: keeps nothing. The client keeps writing\n"
            "  as if it still held them.");
        return;
    }
    (void)printf(
        "  Every lock is stored%s.\n",
        strcmp(rules->sync, "process") == 0
            ? "; it survives a crash of the server, but not a power failure (--sync process)"
            : " and survives a power failure");
    if (strcmp(rules->recovery, "resume") == 0) {
        (void)puts("  The next start carries on with them unchanged and notifies nobody\n"
                   "  (--recovery resume).");
        return;
    }
    if (!is_monitored) {
        (void)puts(
            "  None of them is monitored: the client is not notified of the restart, does not\n"
            "  reclaim them, and they are released when the grace period ends.");
        return;
    }
    (void)printf("  The next start notifies it (SM_NOTIFY) at %s, and it has a grace period\n"
                 "  of %s s to reclaim them; nobody else gets them before. If it is unreachable,\n",
                 print_string(client, "address"), rules->grace);
    (void)puts(strcmp(rules->unreachable, "hold") == 0
                   ? "  they stay held until --give-up has passed (--unreachable hold)."
                   : "  they are released when the grace period ends (--unreachable release).\n"
                     "  holdfast check-client shows whether it is reachable now.");
}

static void print_client_crash(const json_t *client)
{
    bool is_monitored = json_is_true(json_object_get(client, "monitored"));
    (void)puts("\nIf the client crashes now:");
    if (is_monitored)
        (void)puts(
            "  After it reboots, its status monitor sends SM_NOTIFY and all its locks are\n"
            "  released at once. If that message is lost, its first LOCK with a newer state\n"
            "  number has the same effect.");
    else
        (void)puts(
            "  It has no status monitor that could notify this server. Its locks are released\n"
            "  by FREE_ALL from its address, if this kind of client sends that.");
    (void)printf("  If it never comes back, its locks stay held: holdfast release %s\n",
                 print_string(client, "id"));
}

/* An SM_MON registration has no locks. */
static int explain_json(struct http_client *http, json_t *client, bool is_nlm)
{
    struct rules rules;
    char path[PATH_LENGTH];
    int exit_code = read_rules(http, &rules);
    struct lock_table table = {.rules = &rules, .rows = json_array()};
    (void)snprintf(path, sizeof path, "/api/v1/locks?client=%s", print_string(client, "id"));
    if (exit_code == EXIT_OK && is_nlm)
        exit_code = find_rows(http, path, "locks", add_row, NULL, &table);
    json_t *all = json_pack("{s:O, s:o}", "client", client, "locks", table.rows);
    if (exit_code == EXIT_OK && (all == NULL || table.has_failed)) {
        (void)fputs("holdfast explain: out of memory\n", stderr);
        exit_code = EXIT_NO;
    }
    if (exit_code == EXIT_OK)
        print_json(all);
    json_decref(all);
    return exit_code;
}

static int explain(struct http_client *http, const json_t *client)
{
    struct rules rules;
    char path[PATH_LENGTH];
    int exit_code = read_rules(http, &rules);
    if (exit_code != EXIT_OK)
        return exit_code;
    struct lock_table table = {.grid = grid_new(columns, sizeof columns / sizeof columns[0]),
                               .rules = &rules};
    if (table.grid == NULL)
        return grid_finish(NULL);
    (void)printf("%s ", print_string(client, "id"));
    print_safe(stdout, print_string(client, "name"));
    (void)printf(" at %s holds ", print_string(client, "address"));
    print_plural(stdout, print_integer(client, "locks"), "lock");
    if (print_integer(client, "share_reservations") > 0) {
        (void)fputs(" and ", stdout);
        print_plural(stdout, print_integer(client, "share_reservations"), "share reservation");
    }
    (void)puts(".\n");
    (void)snprintf(path, sizeof path, "/api/v1/locks?client=%s", print_string(client, "id"));
    if (print_integer(client, "locks") > 0)
        exit_code = find_rows(http, path, "locks", add_lock, print_page, &table);
    int grid_code = grid_finish(table.grid);
    if (exit_code != EXIT_OK || grid_code != EXIT_OK)
        return exit_code != EXIT_OK ? exit_code : grid_code;
    if (print_integer(client, "locks") == 0 && print_integer(client, "share_reservations") == 0) {
        (void)puts("It holds nothing that could be lost.");
        return EXIT_OK;
    }
    print_server_crash(client, &rules);
    print_client_crash(client);
    return EXIT_OK;
}

/* Of a status monitor: its locks are in the lock manager of this machine. */
static void explain_host(const json_t *client)
{
    const json_t *host = json_object_get(client, "host");
    bool is_current = json_is_true(json_object_get(host, "registered_in_this_boot"));
    (void)printf("%s ", print_string(client, "id"));
    print_safe(stdout, print_string(client, "name"));
    (void)puts(
        is_current
            ? " is watched for the lock manager of this machine, which knows its locks.\n"
            : " was watched before the last reboot of this machine. It is kept until it has\n"
              "been notified of that reboot.\n");
    (void)puts(
        "If this machine reboots, it is notified (SM_NOTIFY) and reclaims its locks. If this\n"
        "monitor restarts, nothing happens to them.");
    if (is_current)
        (void)puts(
            "When it reports a reboot, the lock manager is notified and releases its locks.");
    (void)printf("Owed: %s\n",
                 strcmp(host_owed_words(host), "-") == 0 ? "nothing" : host_owed_words(host));
}

int explain_run(struct http_client *http, const struct arguments *arguments)
{
    json_t *client = NULL;
    int exit_code = find_locker(http, arguments->words[0], &client);
    bool is_nlm = strcmp(print_string(client, "protocol"), "nlm") == 0;
    if (exit_code == EXIT_OK && arguments_has(arguments, "json")) {
        exit_code = explain_json(http, client, is_nlm);
    } else if (exit_code == EXIT_OK && json_object_get(client, "host") != NULL) {
        explain_host(client);
    } else if (exit_code == EXIT_OK && !is_nlm) {
        (void)printf(
            "%s is registered with SM_MON and holds no locks. It is notified when this server\n"
            "restarts or the host it monitors reboots.\n",
            print_string(client, "id"));
    } else if (exit_code == EXIT_OK) {
        exit_code = explain(http, client);
    }
    json_decref(client);
    return exit_code;
}

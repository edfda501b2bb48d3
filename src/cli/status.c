/*
 * status.c -- `holdfast status`: one screen in words.
 */
#include "cli/print.h"
#include "cli/server.h"

#include <string.h>

static void print_waiting(const json_t *client)
{
    long long left = print_integer(client, "unsettled_locks");
    long long reclaimed = print_integer(client, "reclaimed");
    const json_t *reached = json_object_get(client, "reached_seconds_ago");
    (void)printf("%s ", print_string(client, "id"));
    print_safe(stdout, print_string(client, "name"));
    (void)fputs(" (", stdout);
    if (json_is_integer(reached)) {
        (void)fputs("heard of ", stdout);
        print_duration(stdout, json_integer_value(reached));
        (void)printf(" ago, %lld of %lld reclaimed)", reclaimed, reclaimed + left);
    } else {
        bool is_told = strcmp(print_string(client, "notification"), "told") == 0;
        (void)printf("%s, attempt %lld, ", is_told ? "told" : "not reached",
                     print_integer(client, "attempts"));
        print_plural(stdout, left, "lock");
        (void)fputc(')', stdout);
    }
}

static void print_grace(const json_t *grace)
{
    const json_t *waiting = json_object_get(grace, "waiting_for");
    size_t count = json_array_size(waiting);
    bool is_more = json_is_true(json_object_get(grace, "waiting_for_more"));
    bool is_on = json_is_true(json_object_get(grace, "active"));
    long long left = print_integer(grace, "unsettled_locks");
    if (!is_on && left == 0) {
        (void)puts("grace     over");
        return;
    }
    if (is_on)
        (void)printf("grace     %lld s left", print_integer(grace, "remaining_seconds"));
    else
        (void)fputs("grace     over, but some clients are still coming back", stdout);
    if (left > 0) {
        (void)fputs(", waiting for ", stdout);
        print_plural(stdout, left, "lock");
        (void)fputs(" of ", stdout);
        if (is_more)
            (void)fputs("more than ", stdout);
        print_plural(stdout, (long long)count, "client");
        (void)fputc(':', stdout);
    }
    for (size_t i = 0; i < count; i++) {
        (void)fputs("\n            ", stdout);
        print_waiting(json_array_get(waiting, i));
    }
    (void)puts("");
}

static void print_store(const json_t *store)
{
    double seconds = json_real_value(json_object_get(store, "commit_seconds"));
    (void)fputs("store     ", stdout);
    print_safe(stdout, print_string(store, "url"));
    if (seconds > 1)
        (void)printf(", has not finished a commit for %.0f s", seconds);
    if (!json_is_true(json_object_get(store, "has_room")))
        (void)fputs(", no room: new locks are refused", stdout);
    if (json_is_true(json_object_get(store, "incomplete")))
        (void)fputs(", may have lost records", stdout);
    (void)puts("");
}

static void print_rpcbind(const json_t *rpcbind)
{
    bool is_found = json_is_true(json_object_get(rpcbind, "registered"));
    bool is_off = strcmp(print_string(rpcbind, "mode"), "off") == 0;
    (void)printf("rpcbind   %s: ", print_string(rpcbind, "mode"));
    print_safe(stdout, is_off     ? "clients must know the port"
                       : is_found ? "clients find us"
                                  : print_string(rpcbind, "reason"));
    (void)puts("");
}

static void print_status(const json_t *status)
{
    (void)printf("holdfast  %s, up ", print_string(status, "version"));
    print_duration(stdout, print_integer(status, "uptime_seconds"));
    (void)printf(", state %lld, start %lld\n", print_integer(status, "state"),
                 print_integer(status, "epoch"));
    (void)fputs("clients   ", stdout);
    print_count(stdout, print_integer(status, "clients"));
    (void)fputs(" that lock, ", stdout);
    print_count(stdout, print_integer(status, "registrants"));
    (void)fputs(" that monitor\nlocks     ", stdout);
    print_count(stdout, print_integer(status, "locks"));
    (void)fputs(" held, ", stdout);
    print_plural(stdout, print_integer(status, "waiters"), "request");
    (void)puts(" waiting");
    print_grace(json_object_get(status, "grace"));
    print_store(json_object_get(status, "store"));
    print_rpcbind(json_object_get(status, "rpcbind"));
}

int status_run(const struct command *command, int argc, char **argv)
{
    struct arguments arguments;
    int exit_code;
    if (!arguments_read(command, argc, argv, 0, 0, &arguments, &exit_code))
        return exit_code;
    struct server *server = server_find(&arguments);
    if (server == NULL)
        return EXIT_UNREACHABLE;
    json_t *status = server_get(server, "/api/v1/status", &exit_code);
    if (status != NULL && arguments_has(&arguments, "json"))
        print_json(status);
    else if (status != NULL)
        print_status(status);
    json_decref(status);
    server_free(server);
    return exit_code == EXIT_OK ? arguments_finish() : exit_code;
}

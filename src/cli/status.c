/*
 * status.c -- `holdfast status`: one screen in words.
 */
#include "cli/grid.h"
#include "cli/print.h"
#include "cli/server.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

/* How far a client has come: [######------] */
static void print_bar(long long done, long long all)
{
    enum { WIDTH = 30 };
    long long filled = all > 0 ? done * WIDTH / all : 0;
    (void)fputs(" [", stdout);
    for (int i = 0; i < WIDTH; i++)
        (void)putchar(i < filled ? '#' : '-');
    (void)printf("] %lld of %lld", done, all);
}

static void print_progress(const json_t *grace)
{
    const json_t *client;
    size_t index;
    json_array_foreach(json_object_get(grace, "waiting_for"), index, client)
    {
        long long left = print_integer(client, "unsettled_locks");
        long long done = print_integer(client, "reclaimed");
        (void)printf("          %-6s", print_string(client, "id"));
        print_bar(done, done + left);
        (void)fputs("  ", stdout);
        print_safe(stdout, print_string(client, "name"));
        (void)puts("");
    }
}

/* blocked 4 min by 10.0.0.5 (c17, web3), silent for 3 h 2 min, does not answer */
static void print_silent(const json_t *holders)
{
    const json_t *holder;
    size_t index;
    json_array_foreach(holders, index, holder)
    {
        if (grid_has_colours())
            (void)fputs("\033[31m", stdout);
        (void)fputs("blocked   ", stdout);
        print_duration(stdout, print_integer(holder, "blocked_seconds"));
        (void)printf(" by %s (%s, ", print_string(holder, "address"), print_string(holder, "id"));
        print_safe(stdout, print_string(holder, "name"));
        (void)fputs("), silent for ", stdout);
        print_duration(stdout, print_integer(holder, "silent_seconds"));
        (void)printf(", does not answer; holdfast release %s", print_string(holder, "id"));
        (void)puts(grid_has_colours() ? "\033[0m" : "");
    }
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

static void print_standby(const json_t *status)
{
    (void)fputs("\nstandby   ", stdout);
    print_safe(stdout, print_string(status, "reason"));
    (void)fputs("\nstore     ", stdout);
    print_safe(stdout, print_string(json_object_get(status, "store"), "url"));
    (void)puts("");
}

static void print_status(const json_t *status)
{
    (void)printf("holdfast  %s, up ", print_string(status, "version"));
    print_duration(stdout, print_integer(status, "uptime_seconds"));
    if (strcmp(print_string(status, "role"), "standby") == 0) {
        print_standby(status);
        return;
    }
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
    print_silent(json_object_get(status, "silent_holders"));
    print_store(json_object_get(status, "store"));
    print_rpcbind(json_object_get(status, "rpcbind"));
}

/* Until it is interrupted, or the server is gone. */
static int watch(struct server *server)
{
    for (;;) {
        int exit_code;
        json_t *status = server_get(server, "/api/v1/status", &exit_code);
        if (status == NULL)
            return exit_code;
        if (isatty(STDOUT_FILENO))
            (void)fputs("\033[H\033[J", stdout); /* home, and clear what follows */
        print_status(status);
        print_progress(json_object_get(status, "grace"));
        json_decref(status);
        if (arguments_finish() != EXIT_OK)
            return EXIT_NO;
        const struct timespec pause = {.tv_sec = 1};
        (void)nanosleep(&pause, NULL); /* cut short is as good */
    }
}

static int show(struct server *server, bool is_json)
{
    int exit_code;
    json_t *status = server_get(server, "/api/v1/status", &exit_code);
    if (status != NULL && is_json)
        print_json(status);
    else if (status != NULL)
        print_status(status);
    json_decref(status);
    return exit_code == EXIT_OK ? arguments_finish() : exit_code;
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
    exit_code = arguments_has(&arguments, "watch")
                    ? watch(server)
                    : show(server, arguments_has(&arguments, "json"));
    server_free(server);
    return exit_code;
}

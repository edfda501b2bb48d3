/*
 * status.c -- `holdfast status`: one screen in words.
 *
 * --watch shows it again every second, with bars for the clients of a recovery, and goes on when
 * the server is away: a restart is what it is for.
 */
#include "cli/grid.h"
#include "cli/print.h"
#include "cli/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    OTHER_LINES = 10, /* of a picture, beside those of clients that are missing */
    PICTURE_BYTES = 64 * 1024,
};

/* "told 12 s ago, 1 of 3 reclaimed", "unreachable, attempt 4, 3 locks" */
static void print_news(const json_t *client)
{
    long long left = print_integer(client, "unsettled_locks");
    long long reclaimed = print_integer(client, "reclaimed");
    long long attempts = print_integer(client, "attempts");
    const json_t *told = json_object_get(client, "told_seconds_ago");
    const json_t *reached = json_object_get(client, "reached_seconds_ago");
    if (json_is_integer(told) || json_is_integer(reached)) {
        bool is_told = json_is_integer(told);
        (void)fputs(is_told ? "told " : "heard of ", stdout);
        print_duration(stdout, json_integer_value(is_told ? told : reached));
        (void)printf(" ago, %lld of %lld reclaimed", reclaimed, reclaimed + left);
        return;
    }
    if (attempts == 0)
        (void)fputs("being told, ", stdout);
    else
        (void)printf("unreachable, attempt %lld, ", attempts);
    print_plural(stdout, left, "lock");
}

/* How far a client has come: [######------] */
static void print_bar(long long done, long long all)
{
    enum { WIDTH = 20 };
    long long filled = all > 0 ? done * WIDTH / all : 0;
    (void)putchar('[');
    for (int i = 0; i < WIDTH; i++)
        (void)putchar(i < filled ? '#' : '-');
    (void)fputs("] ", stdout);
}

static void print_waiting(const json_t *client, bool has_bar)
{
    long long done = print_integer(client, "reclaimed");
    (void)printf("\n            %*s ", has_bar ? -5 : 0, print_string(client, "id"));
    if (has_bar)
        print_bar(done, done + print_integer(client, "unsettled_locks"));
    print_safe(stdout, print_string(client, "name"));
    (void)fputs(" (", stdout);
    print_news(client);
    (void)fputc(')', stdout);
}

static void print_grace(const json_t *grace, bool is_watched)
{
    const json_t *waiting = json_object_get(grace, "waiting_for");
    size_t count = json_array_size(waiting), height = grid_terminal_height();
    size_t shown = is_watched && height > OTHER_LINES && count > height - OTHER_LINES
                       ? height - OTHER_LINES
                       : count;
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
    for (size_t i = 0; i < shown; i++)
        print_waiting(json_array_get(waiting, i), is_watched);
    if (shown < count || is_more)
        (void)fputs("\n            and others: holdfast clients lists them", stdout);
    (void)puts("");
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

static void print_status(const json_t *status, bool is_watched)
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
    print_grace(json_object_get(status, "grace"), is_watched);
    print_silent(json_object_get(status, "silent_holders"));
    print_store(json_object_get(status, "store"));
    print_rpcbind(json_object_get(status, "rpcbind"));
}

static void print_line(const json_t *status)
{
    char *text = json_dumps(status, JSON_COMPACT | JSON_REAL_PRECISION(12));
    if (text != NULL)
        (void)puts(text);
    free(text);
}

/* One picture of --watch; NULL: the server does not answer. */
static void print_picture(const json_t *status, bool is_json)
{
    if (is_json && status != NULL)
        print_line(status);
    if (is_json)
        return;
    if (isatty(STDOUT_FILENO))
        (void)fputs("\033[H\033[J", stdout); /* home, and clear what follows */
    if (status != NULL)
        print_status(status, true);
    else
        (void)puts("holdfast  does not answer; it is asked again every second");
    if (!isatty(STDOUT_FILENO))
        (void)puts("");
}

/* Until it is interrupted. Only a server that is not there at first is an error. */
static int watch(struct server *server, bool is_json)
{
    int exit_code;
    json_t *status = server_get(server, "/api/v1/status", &exit_code);
    if (status == NULL)
        return exit_code;
    static char buffer[PICTURE_BYTES];
    (void)setvbuf(stdout, buffer, _IOFBF, sizeof buffer); /* a picture appears at once */
    for (;;) {
        print_picture(status, is_json);
        json_decref(status);
        if (arguments_finish() != EXIT_OK)
            return EXIT_NO;
        const struct timespec pause = {.tv_sec = 1};
        (void)nanosleep(&pause, NULL); /* cut short is as good */
        status = server_try(server, "/api/v1/status");
    }
}

static int show(struct server *server, bool is_json)
{
    int exit_code;
    json_t *status = server_get(server, "/api/v1/status", &exit_code);
    if (status != NULL && is_json)
        print_json(status);
    else if (status != NULL)
        print_status(status, false);
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
    bool is_json = arguments_has(&arguments, "json");
    exit_code = arguments_has(&arguments, "watch") ? watch(server, is_json) : show(server, is_json);
    server_free(server);
    return exit_code;
}

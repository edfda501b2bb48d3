/*
 * change.c -- the commands that change something: release, end-grace.
 *
 * Both take back a promise to clients (P2 (4)), so they say which, and `release` asks before it
 * acts. The server answers when the change is durable.
 */
#include "cli/find.h"
#include "cli/print.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    PATH_MAX_LEN = 512,
    TRIES_MAX = 100, /* of an order that the server puts off */
    PAUSE_MS = 100,
};

static void pause_a_moment(void)
{
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
    (void)nanosleep(&pause, NULL); /* cut short is as good */
}

static long long now_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec;
}

/* Gives the order until it is not put off any more. An exit code; *ret is to be freed. */
static int order(struct server *server, const char *method, const char *path,
                 struct server_reply *ret)
{
    for (int i = 0;; i++) {
        int exit_code = server_ask(server, method, path, ret);
        if (exit_code != EXIT_OK)
            return exit_code;
        if (ret->status == 200 || ret->status == 202)
            return EXIT_OK;
        if (ret->status != 503 || i == TRIES_MAX)
            return server_print_error(server, ret);
        server_reply_done(ret);
        pause_a_moment();
    }
}

int change_end_grace(const struct command *command, int argc, char **argv)
{
    struct arguments arguments;
    struct server_reply reply = {0};
    int exit_code;
    if (!arguments_read(command, argc, argv, 0, 0, &arguments, &exit_code))
        return exit_code;
    struct server *server = server_find(&arguments);
    if (server == NULL)
        return EXIT_UNREACHABLE;
    exit_code = order(server, "DELETE", "/api/v1/grace", &reply);
    if (exit_code == EXIT_OK)
        (void)puts("Grace is over. Locks that nobody has reclaimed are given up; their clients may "
                   "still believe in them.");
    server_reply_done(&reply);
    server_free(server);
    return exit_code == EXIT_OK ? arguments_finish() : exit_code;
}

static bool is_hex(const char *text)
{
    size_t len = strlen(text);
    return len > 0 && len % 2 == 0 && strspn(text, "0123456789abcdefABCDEF") == len;
}

/* True: it is meant. */
static bool is_confirmed(const struct arguments *arguments, const json_t *client)
{
    char answer[16];
    const char *file = arguments_value(arguments, "file");
    if (arguments_has(arguments, "yes"))
        return true;
    (void)printf("This frees %s%s of %s ", file != NULL ? "what is held in file " : "everything",
                 file != NULL ? file : "", print_string(client, "id"));
    print_safe(stdout, print_string(client, "name"));
    (void)printf(" at %s, which holds ", print_string(client, "address"));
    print_plural(stdout, print_integer(client, "locks"), "lock");
    if (print_integer(client, "share_reservations") > 0) {
        (void)fputs(" and ", stdout);
        print_plural(stdout, print_integer(client, "share_reservations"), "share reservation");
    }
    (void)fputs(
        ".\nIt may still rely on them. Others can then lock the same bytes: two clients may "
        "write at\nonce, the one thing that is otherwise promised never to happen (P2). Go on? "
        "[y/N] ",
        stdout);
    (void)fflush(stdout);
    if (fgets(answer, sizeof answer, stdin) == NULL)
        return false;
    return answer[0] == 'y' || answer[0] == 'Y';
}

/*
 * A client that holds very much is freed in pieces. That is over when the server says another word
 * of it than "freeing", or that it is gone, and nothing else is taken for it. What is left gets
 * less meanwhile, or this gives up.
 */
static int wait_for_the_end(struct server *server, const char *id)
{
    struct server_reply reply;
    char path[PATH_MAX_LEN];
    long long least_left = -1, since_s = now_s();
    (void)snprintf(path, sizeof path, "/api/v1/clients/%s", id);
    for (;;) {
        pause_a_moment();
        int exit_code = server_ask(server, "GET", path, &reply);
        if (exit_code != EXIT_OK)
            return exit_code;
        const char *state = json_string_value(json_object_get(reply.body, "state"));
        bool is_over = reply.status == 404 ||
                       (reply.status == 200 && state != NULL && strcmp(state, "freeing") != 0);
        if (!is_over && (reply.status != 200 || state == NULL))
            exit_code = server_print_error(server, &reply);
        long long left =
            print_integer(reply.body, "locks") + print_integer(reply.body, "share_reservations");
        server_reply_done(&reply);
        if (is_over || exit_code != EXIT_OK)
            return exit_code;
        if (least_left < 0 || left < least_left) {
            least_left = left;
            since_s = now_s();
        } else if (now_s() - since_s >= SERVER_PATIENCE_CHANGE_S) {
            (void)fprintf(stderr,
                          "holdfast release: %s is being freed, but nothing more of it was for %d "
                          "s; holdfast status says whether the store stalls\n",
                          id, SERVER_PATIENCE_CHANGE_S);
            return EXIT_NO;
        }
    }
}

/* What the server says of that is not held back until it is durable, so two more batches are waited
 * for, or a moment without one. */
static int wait_until_stored(struct server *server)
{
    enum { BATCHES = 2 };
    long long first_txn = -1, last_txn = -1, since_s = now_s();
    for (int idle = 0; idle < BATCHES;) {
        int exit_code;
        pause_a_moment();
        json_t *status = server_get(server, "/api/v1/status", &exit_code);
        if (status == NULL)
            return exit_code;
        const json_t *store = json_object_get(status, "store");
        bool is_busy = json_number_value(json_object_get(store, "commit_seconds")) > 0;
        long long txn = print_integer(store, "durable_txn");
        json_decref(status);
        first_txn = first_txn < 0 ? txn : first_txn;
        idle = txn >= first_txn + BATCHES ? BATCHES : is_busy ? 0 : idle + 1;
        if (txn != last_txn) {
            last_txn = txn;
            since_s = now_s();
        } else if (now_s() - since_s >= SERVER_PATIENCE_CHANGE_S) {
            (void)fprintf(stderr,
                          "holdfast release: it is freed, but the store has kept nothing of it for "
                          "%d s; holdfast status says since when\n",
                          SERVER_PATIENCE_CHANGE_S);
            return EXIT_NO;
        }
    }
    return EXIT_OK;
}

static int wait_until_freed(struct server *server, const char *id)
{
    int exit_code = wait_for_the_end(server, id);
    return exit_code == EXIT_OK ? wait_until_stored(server) : exit_code;
}

static int release(struct server *server, const struct arguments *arguments, const json_t *client)
{
    struct server_reply reply = {0};
    const char *file = arguments_value(arguments, "file"), *id = print_string(client, "id");
    char path[PATH_MAX_LEN];
    (void)snprintf(path, sizeof path, "/api/v1/clients/%s%s%s", id, file != NULL ? "?file=" : "",
                   file != NULL ? file : "");
    if (!arguments_has(arguments, "yes") && !isatty(STDIN_FILENO)) {
        (void)fputs("holdfast release: this has to be confirmed, and standard input is no "
                    "terminal; add --yes if it is meant\n",
                    stderr);
        return EXIT_USAGE;
    }
    if (!is_confirmed(arguments, client))
        return EXIT_NO;
    int exit_code = order(server, "DELETE", path, &reply);
    if (exit_code == EXIT_OK && reply.status == 202)
        exit_code = wait_until_freed(server, id);
    if (exit_code == EXIT_OK)
        (void)printf("%s: released, holds nothing%s any more. %s\n", id,
                     file != NULL ? " in that file" : "",
                     json_is_true(json_object_get(client, "monitored"))
                         ? "It is told, so that its kernel says what it lost."
                         : "It has no status monitor, so it cannot be told.");
    server_reply_done(&reply);
    return exit_code;
}

int change_release(const struct command *command, int argc, char **argv)
{
    struct arguments arguments;
    int exit_code;
    if (!arguments_read(command, argc, argv, 1, 1, &arguments, &exit_code))
        return exit_code;
    const char *file = arguments_value(&arguments, "file");
    if (file != NULL && (!is_hex(file) || strlen(file) > 128)) {
        (void)fprintf(stderr,
                      "holdfast release: --file %s: not a file handle; pairs of hex "
                      "digits, 64 at most\n",
                      file);
        return EXIT_USAGE;
    }
    struct server *server = server_find(&arguments);
    if (server == NULL)
        return EXIT_UNREACHABLE;
    json_t *client = NULL;
    exit_code = find_locker(server, arguments.words[0], &client);
    if (exit_code == EXIT_OK && strcmp(print_string(client, "protocol"), "nlm") != 0) {
        (void)fprintf(stderr, "holdfast release: %s is registered with SM_MON and holds no locks\n",
                      print_string(client, "id"));
        exit_code = EXIT_NO;
    }
    if (exit_code == EXIT_OK)
        exit_code = release(server, &arguments, client);
    json_decref(client);
    server_free(server);
    return exit_code == EXIT_OK ? arguments_finish() : exit_code;
}

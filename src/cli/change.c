/*
 * change.c -- the commands that change something: release, end-grace.
 *
 * Both take back a promise to clients (P2 (4)), so they say which, and `release` asks before it
 * acts. The server answers when the change is durable.
 */
#include "cli/server.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    PATH_MAX_LEN = 512,
    TRIES_MAX = 100, /* of an order that the server puts off */
    PAUSE_MS = 100,
};

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
        const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
        (void)nanosleep(&pause, NULL); /* cut short is as good */
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

/* "c17" or "17". */
static bool is_id(const char *text)
{
    if (*text == 'c')
        text++;
    return *text != '\0' && strspn(text, "0123456789") == strlen(text);
}

/* True: it is meant. */
static bool is_confirmed(const struct arguments *arguments, const char *client)
{
    char answer[16];
    const char *file = arguments_value(arguments, "file");
    if (arguments_has(arguments, "yes"))
        return true;
    (void)printf(
        "This frees %s%s of %s, whether that client still relies on it or not. Others can\n"
        "then lock the same bytes: two clients may write at once, the one thing that is\n"
        "otherwise promised never to happen (P2). Go on? [y/N] ",
        file != NULL ? "what is held in file " : "everything", file != NULL ? file : "", client);
    (void)fflush(stdout);
    if (fgets(answer, sizeof answer, stdin) == NULL)
        return false;
    return answer[0] == 'y' || answer[0] == 'Y';
}

int change_release(const struct command *command, int argc, char **argv)
{
    struct arguments arguments;
    struct server_reply reply = {0};
    int exit_code;
    if (!arguments_read(command, argc, argv, 1, 1, &arguments, &exit_code))
        return exit_code;
    const char *client = arguments.words[0], *file = arguments_value(&arguments, "file");
    if (!is_id(client) || strlen(client) > 24) {
        (void)fprintf(stderr, "holdfast release: \"%s\" is not the id of a client, like c17\n",
                      client);
        return EXIT_USAGE;
    }
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
    char path[PATH_MAX_LEN];
    (void)snprintf(path, sizeof path, "/api/v1/clients/%s%s%s", client,
                   file != NULL ? "?file=" : "", file != NULL ? file : "");
    exit_code = EXIT_NO;
    if (!arguments_has(&arguments, "yes") && !isatty(STDIN_FILENO)) {
        (void)fputs("holdfast release: this has to be confirmed, and standard input is no "
                    "terminal; add --yes if it is meant\n",
                    stderr);
        exit_code = EXIT_USAGE;
    } else if (is_confirmed(&arguments, client)) {
        exit_code = order(server, "DELETE", path, &reply);
    }
    if (exit_code == EXIT_OK)
        (void)printf("%s. It is told, so that its kernel says what it lost.\n",
                     reply.status == 202 ? "Begun: it holds very much, which is freed in a moment"
                     : file != NULL      ? "Released: it holds nothing in that file any more"
                                         : "Released: it holds nothing any more");
    server_reply_done(&reply);
    server_free(server);
    return exit_code == EXIT_OK ? arguments_finish() : exit_code;
}

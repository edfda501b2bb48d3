/*
 * http_client.h -- talks to the server: HTTP over its control socket.
 *
 * Places searched for the socket; the first that accepts a connection wins:
 *
 *   --control PATH                  if it is given, nowhere else
 *   HOLDFAST_CONTROL                if it is set, nowhere else
 *   the default stores' directories, then /run/holdfast/control.sock
 */
#ifndef CLI_HTTP_CLIENT_H
#define CLI_HTTP_CLIENT_H

#include "cli/arguments.h"

#include <jansson.h>

struct http_client;

struct http_client_reply {
    long status;
    json_t *body; /* NULL: not JSON */
};

/* Runs a command that talks to the server: reads and checks its arguments, connects, asks. Its exit
 * code. */
int http_client_run(const struct command *command, int argc, char **argv);

/* NULL: unreachable; that was printed, and means EXIT_UNREACHABLE. */
struct http_client *http_client_find(const struct arguments *arguments);
void http_client_free(struct http_client *http);

/*
 * 0, or an exit code if no reply came; that was printed. Free with http_client_reply_done. A read
 * times out after HTTP_CLIENT_PATIENCE_S. A change may take long, with many locks or a slow store:
 * it is waited for as long as the server replies to others.
 */
#ifndef HTTP_CLIENT_PATIENCE_S
#define HTTP_CLIENT_PATIENCE_S 10
#endif
int http_client_ask(struct http_client *http, const char *method, const char *path,
                    struct http_client_reply *ret);
void http_client_reply_done(struct http_client_reply *reply);

/* GET that fails silently: NULL. For callers that poll. */
json_t *http_client_try(struct http_client *http, const char *path);

/* GET that must succeed: the body, or NULL with *ret_exit_code after printing what went wrong. */
json_t *http_client_get(struct http_client *http, const char *path, int *ret_exit_code);

/* "holdfast release: error; hint", from a body with both. EXIT_NO. */
int http_client_print_error(const struct http_client *http, const struct http_client_reply *reply);

#endif

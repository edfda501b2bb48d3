/*
 * server.h -- talks to the server: HTTP over its control socket.
 *
 * Places searched for the socket; the first that accepts a connection wins:
 *
 *   --control PATH                  if it is given, nowhere else
 *   HOLDFAST_CONTROL                if it is set, nowhere else
 *   the default stores' directories, then /run/holdfast/control.sock
 */
#ifndef CLI_SERVER_H
#define CLI_SERVER_H

#include "cli/arguments.h"

#include <jansson.h>

struct server;

struct server_reply {
    long status;
    json_t *body; /* NULL: not JSON */
};

/* NULL: unreachable; that was printed, and means EXIT_UNREACHABLE. */
struct server *server_find(const struct arguments *arguments);
void server_free(struct server *server);

/* 0, or an exit code if no reply came; that was printed. Free with server_reply_done. A read times
 * out after SERVER_PATIENCE_S; a change, which waits for the store, later. */
#define SERVER_PATIENCE_S        10
#define SERVER_PATIENCE_CHANGE_S 120
int server_ask(struct server *server, const char *method, const char *path,
               struct server_reply *ret);
void server_reply_done(struct server_reply *reply);

/* GET that fails silently: NULL. For callers that poll. */
json_t *server_try(struct server *server, const char *path);

/* GET that must succeed: the body, or NULL with *ret_exit_code after printing what went wrong. */
json_t *server_get(struct server *server, const char *path, int *ret_exit_code);

/* "holdfast release: error; hint", from a body with both. EXIT_NO. */
int server_print_error(const struct server *server, const struct server_reply *reply);

#endif

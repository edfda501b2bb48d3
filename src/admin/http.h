/*
 * http.h -- an HTTP endpoint: libmicrohttpd, driven by the server's own loop.
 *
 * There are two of them, with the same routes (route.h): one over TCP, which only reads, and one
 * over the control socket, which may change. The peer there must be root or the user we run as,
 * whatever the file's mode.
 *
 * The response to a change is held back until http_stored reports the change durable (P1).
 */
#ifndef ADMIN_HTTP_H
#define ADMIN_HTTP_H

#include "admin/admin.h"

#include <uv.h>

#define HTTP_EXIT_IN_USE 69 /* exit codes of http_new's failures */
#define HTTP_EXIT_USAGE  2

struct http;

/*
 * Listens on the address; port 0 takes any free one. NULL with a sentence in *ret_why and an exit
 * code: the address is in use, not ours, or not permitted. `admin` is borrowed.
 */
struct http *http_new(uv_loop_t *loop, const struct address *address, uint16_t port,
                      const struct admin *admin, int *ret_exit_code, struct text *ret_why);

/* The same on the socket of control_open, which it takes over. NULL: no memory. */
struct http *http_new_control(uv_loop_t *loop, int fd, const struct admin *admin);

/* The port it listens on. */
uint16_t http_port(const struct http *http);

/* Where a browser on this machine finds the page. */
void http_add_url(const struct http *http, struct text *text);

/* A batch is durable: responses that waited for it leave. NULL is legal. */
void http_stored(struct http *http);
/* Once per turn: looks again at requests that wait (exchange.is_pending). NULL is legal. */
void http_turn(struct http *http);
/* Responses waiting for the store. */
uint32_t http_waiting(const struct http *http);

/* A stream has nothing to send now: its connection sleeps until it is woken. Its reader must return
 * to libmicrohttpd what this returns: an error if others need its place, and then it does not
 * sleep. */
struct exchange;
__attribute__((warn_unused_result)) ssize_t http_sleep(struct exchange *exchange);
void http_wake(struct exchange *exchange);
/* All that sleep look whether there is something now. NULL is legal. */
void http_wake_all(struct http *http);

/*
 * Closes the socket and every connection at once. The memory is freed when the loop has closed the
 * handles, in its next turn, so run the loop until it ends before closing it. NULL is legal.
 */
void http_free(struct http *http);

#endif

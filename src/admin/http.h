/*
 * http.h -- the HTTP endpoint: libmicrohttpd, driven by the server's own loop.
 *
 *   GET /healthz   200: the loop turns
 *   GET /readyz    200: clients are served; 503: the reason in words
 *
 * Everything here reads; nothing changes the server. Errors are JSON, {"error": ..., "hint": ...}.
 *
 * A browser on this machine can be lured into asking us under a name that its attacker controls
 * (DNS rebinding), so a request is answered only when its Host is a name or an address of ours.
 */
#ifndef ADMIN_HTTP_H
#define ADMIN_HTTP_H

#include "base/address.h"
#include "base/text.h"

#include <uv.h>

#define HTTP_EXIT_IN_USE 69 /* exit codes of http_new's failures */
#define HTTP_EXIT_USAGE  2

struct http;

struct http_hooks {
    void *context;
    /* True: clients are served. Otherwise *ret_reason says, in words, why they are not. */
    bool (*is_ready)(void *context, struct text *ret_reason);
};

/*
 * Listens on the address; port 0 takes any free one. NULL with a sentence in *ret_why and an exit
 * code: the address is in use, is not ours, or is not permitted.
 */
struct http *http_new(uv_loop_t *loop, const struct address *address, uint16_t port,
                      const struct http_hooks *hooks, int *ret_exit_code, struct text *ret_why);

/* The port it listens on. */
uint16_t http_port(const struct http *http);

/*
 * Closes the port and every connection at once. The memory goes when the loop has closed the
 * handles: in its next turn, so run the loop until it ends before closing it. NULL is legal.
 */
void http_free(struct http *http);

#endif

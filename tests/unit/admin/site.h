/*
 * site.h -- a server's HTTP for a test: a core, a loop that the test turns, and readers on sockets.
 *
 * What is asked for and what the clock says is the test's, in `admin`.
 */
#ifndef UNIT_ADMIN_SITE_H
#define UNIT_ADMIN_SITE_H

#include "admin/admin.h"

#include <stddef.h>
#include <uv.h>

struct http;

struct site {
    uv_loop_t loop;
    struct admin admin; /* has the core */
    struct http *http;
};

/* The loop and the core; site_serve begins to answer, when all that the routes need is there. */
void site_init(struct site *site);
void site_serve(struct site *site);
/* First no more answers, then, when all else is closed that is on the loop, nothing is left. */
void site_stop(struct site *site);
void site_done(struct site *site);

/* Asks for this, with header lines that end in "\r\n" or none. The socket is the caller's. */
int site_ask(const struct site *site, const char *path, const char *headers);
/* Turns the loop once and waits a moment for the socket. False: the other side has closed it. What
 * came is behind the *len bytes of `text`, which ends with a 0. */
bool site_read(struct site *site, int fd, char *text, size_t size, size_t *len);

#endif

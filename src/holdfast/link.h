/*
 * link.h -- the connection to the control socket: one HTTP request, one response, each within its
 * time.
 */
#ifndef HOLDFAST_LINK_H
#define HOLDFAST_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOLDFAST_REPLY_MAX 16384

struct holdfast_link {
    const char *path; /* borrowed */
    int fd;           /* -1: not connected */
    int error;        /* errno of the last failure; 0: the server closed the connection */
    unsigned status;  /* of the last response, */
    char *body;       /* its body, with a NUL behind it, inside `reply`, */
    size_t body_len;
    bool is_last; /* and the server closes the connection behind it */
    char reply[HOLDFAST_REPLY_MAX + 1];
};

/* Milliseconds of a clock that only runs forward. */
uint64_t holdfast_link_now_ms(void);

/* Sends the request and reads the response, over a new connection if there is none. False: no
 * response, and the connection is closed; whether the request arrived is not known. */
bool holdfast_link_ask(struct holdfast_link *link, const char *request, size_t len,
                       uint64_t until_ms);
void holdfast_link_close(struct holdfast_link *link);

#endif

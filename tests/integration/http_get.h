/*
 * http_get.h -- HTTP requests of the integration tests, with libcurl; answers read with jansson.
 */
#ifndef INTEGRATION_HTTP_GET_H
#define INTEGRATION_HTTP_GET_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct http_reply {
    long status;
    char *body; /* NULL: empty */
    size_t len;
    char headers[4096];
    json_t *json; /* NULL: it is not JSON */
    uint64_t took_ns;
};

/* Where requests go: over TCP, or, with a path, over that unix socket. */
struct http_place {
    uint16_t port;
    const char *socket;
};

/* `header` may be NULL. Status 0: no answer. Free with http_reply_done. */
struct http_reply http_ask(const struct http_place *place, const char *method, const char *path,
                           const char *header);
void http_reply_done(struct http_reply *reply);
/* The port that a server says in its log, if it was told to take any; 0: it does not. It says so
 * after it has said that it is ready. */
uint16_t http_port(const char *log);

#endif

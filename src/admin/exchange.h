/*
 * exchange.h -- one request and its response, as the routes see them.
 *
 * A route calls exactly one of the functions that respond, or sets is_pending. Nothing of a request
 * reaches a response unescaped. Every response forbids caching, framing, sniffing, and reading by
 * pages of other origins.
 */
#ifndef ADMIN_EXCHANGE_H
#define ADMIN_EXCHANGE_H

#include "admin/admin.h"
#include "admin/body.h"
#include "admin/writer.h"

#include <microhttpd.h>

struct http;
struct route;

struct exchange {
    struct http *http;
    const struct admin *admin;
    struct MHD_Connection *connection;
    const char *path;
    bool is_head;    /* only the headers are wanted */
    bool is_control; /* came over the control socket, from `who` */
    bool is_tracker; /* who may track clients, and nothing else */
    struct admin_caller who;
    const struct route *route;
    void (*answer)(struct exchange *exchange); /* the route's, for the method asked for */
    struct bytes id;  /* what the first {} of the route's path stands for, */
    struct bytes key; /* and the second */
    struct body body; /* of routes that take one */

    bool is_pending;  /* no response yet: `answer` is called again in the next turn */
    uint64_t freeing; /* what view_handle said of the client whose release has begun; 0: none */
    uint64_t reading; /* of the options, which has begun; 0: none */

    struct MHD_Response *response; /* NULL: not answered yet */
    unsigned status;
    uint64_t after_txn; /* must be durable before the response leaves; 0: nothing */
};

/* The value of a query parameter; NULL: not given. */
const char *exchange_parameter(const struct exchange *exchange, const char *name);

/* Takes over a body of malloc. */
void exchange_body(struct exchange *exchange, unsigned status, const char *type, char *body,
                   size_t len);
/* A 200 with a part of the program. */
void exchange_constant(struct exchange *exchange, const char *type, const void *body, size_t len);
void exchange_text(struct exchange *exchange, unsigned status, const char *text);
/* {"error": error + shown, "hint": hint}; `shown` comes from the request and may be cut. */
void exchange_error(struct exchange *exchange, unsigned status, const char *error,
                    struct bytes shown, const char *hint);
/* Takes what was written; a writer that failed, because there was no memory, is a 500. */
void exchange_json(struct exchange *exchange, unsigned status, struct writer *writer);

/* A 200 that is written while it is sent; takes `context` over, even when out of memory. */
void exchange_stream(struct exchange *exchange, const char *type, size_t block,
                     MHD_ContentReaderCallback reader, void *context,
                     MHD_ContentReaderFreeCallback free_context);

/* Adds a header to an existing response. */
void exchange_header(struct exchange *exchange, const char *name, const char *value);

/* Call before another request, or when the connection is gone. */
void exchange_reset(struct exchange *exchange);

/* The number of "c17" or "17"; false: neither. */
bool exchange_parse_id(struct bytes text, uint64_t *ret);

#endif

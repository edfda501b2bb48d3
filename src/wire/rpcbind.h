/*
 * rpcbind.h -- carries the passes of rpc/registration.h to the system's rpcbind and back.
 *
 * It tries rpcbind's Unix socket, then the loopback interface, without reading any file in /etc
 * (U10). Over TCP it calls from a privileged port if it may: some rpcbinds accept registrations
 * from no other. The connection is kept after a pass, so that the end of rpcbind is noticed at
 * once; rpcbind itself closes idle connections, which looks the same and costs one more pass.
 *
 * Nothing blocks: a pass ends in a callback, at the latest at its timeout.
 */
#ifndef WIRE_RPCBIND_H
#define WIRE_RPCBIND_H

#include "rpc/registration.h"

#include <uv.h>

struct rpcbind;

enum rpcbind_result {
    RPCBIND_DONE, /* as the registration_outcome of the same name */
    RPCBIND_FOREIGN,
    RPCBIND_REFUSED,
    RPCBIND_GARBLED,
    RPCBIND_ABSENT, /* nothing listens where rpcbind would */
    RPCBIND_SILENT, /* something does, but did not reply in time */
};

struct rpcbind_hooks {
    void *context;
    /* A pass ended; the next one may be begun from here. */
    void (*on_end)(void *context, enum registration_goal goal, enum rpcbind_result result);
    /* rpcbind closed the connection between two passes. */
    void (*on_lost)(void *context);
};

/* NULL: no memory. The registration is borrowed. */
struct rpcbind *rpcbind_new(uv_loop_t *loop, struct registration *registration,
                            const struct rpcbind_hooks *hooks);

/* Begins a pass; one in progress is dropped silently. */
void rpcbind_begin(struct rpcbind *rpcbind, enum registration_goal goal, uint32_t timeout_ms);

/* Closes the connection: the next pass opens another, with the privileges we have then. */
void rpcbind_disconnect(struct rpcbind *rpcbind);

/* Where rpcbind was reached last; "" when it never was. */
const char *rpcbind_place(const struct rpcbind *rpcbind);

/* Ends everything; the memory goes with rpcbind_free, after the loop has closed the handles. */
void rpcbind_close(struct rpcbind *rpcbind);
void rpcbind_free(struct rpcbind *rpcbind);

#endif

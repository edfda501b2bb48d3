/*
 * portmapper.h -- our own portmapper on port 111, for hosts that run no rpcbind.
 *
 * It knows itself and what was to be registered, and answers everybody; SET and UNSET change
 * nothing for callers from elsewhere. Nothing that it says depends on stored state, so its replies
 * wait for nothing.
 */
#ifndef DAEMON_PORTMAPPER_H
#define DAEMON_PORTMAPPER_H

#include "core/core.h"
#include "daemon/config.h"
#include "daemon/log.h"
#include "rpc/portmap.h"
#include "rpc/registration.h"
#include "wire/clock.h"
#include "wire/listen.h"
#include "wire/wire.h"

/* All zero: not bound, not served. */
struct portmapper {
    struct listen_set sockets;
    struct portmap *portmap;
    const struct program *programs[1];
    struct rpc_server *server;
    struct wire *wire; /* NULL: it is not served */
    uint64_t refused_told, refused_told_ns;
};

/* What a portmapper says of a program that is reached through these sockets: an entry for each
 * version, family and protocol. Returns how many; there is room for `max`. */
uint32_t portmapper_services(const struct program *program, const struct listen_set *sockets,
                             struct portmap_service *ret, uint32_t max);

/* Takes port 111 at these addresses. 0, or as listen_open. */
__attribute__((warn_unused_result)) int portmapper_bind(struct portmapper *portmapper,
                                                        const struct config_addresses *listen,
                                                        struct listen_failure *ret_failure);

/* Serves a bound port 111 with these registrations. NULL, or why it cannot. */
__attribute__((warn_unused_result)) const char *
portmapper_serve(struct portmapper *portmapper, const struct registration *registration,
                 struct core *core, uv_loop_t *loop, struct clock *clock);

/* The end of a turn: replies leave, and refused calls are logged now and then. */
void portmapper_turn(struct portmapper *portmapper, struct clock *clock, struct log *log);

/* As of wire.h, and legal where nothing was bound or served. */
void portmapper_quiesce(struct portmapper *portmapper);
void portmapper_close(struct portmapper *portmapper);
void portmapper_free(struct portmapper *portmapper);

#endif

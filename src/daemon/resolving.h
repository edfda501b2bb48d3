/*
 * resolving.h -- passes names that the core wants resolved to the resolver, and the results back
 * (core_next_lookup).
 */
#ifndef DAEMON_RESOLVING_H
#define DAEMON_RESOLVING_H

#include "rpc/server.h"

#include <uv.h>

/* At once: libuv gives no more of its threads to resolvers. */
#define RESOLVING_MAX 2

struct resolving;

/* NULL: no memory. Core and server are borrowed. */
struct resolving *resolving_new(uv_loop_t *loop, struct core *core, struct rpc_server *server);
/* After resolving_close, when the loop has closed all handles. */
void resolving_free(struct resolving *resolving);

/* Passes results to the core, as far as its open batch has room for the changes, and starts new
 * queries. Once per turn. */
void resolving_turn(struct resolving *resolving, uint64_t now_ns, uint64_t wall_ns);
/* When there is something to do here next; UINT64_MAX: when an answer comes. */
uint64_t resolving_deadline_ns(const struct resolving *resolving);

/* No more queries or results. False: as resolver_close. */
__attribute__((warn_unused_result)) bool resolving_close(struct resolving *resolving);

#endif

/*
 * net.h -- the network: what is sent arrives, late, twice or never.
 */
#ifndef SIM_NET_H
#define SIM_NET_H

#include "world.h"

/* A connection of this owner to the running server; NULL: nobody listens. */
struct connection *net_connect(struct world *world, struct owner *owner);
/* It is given up: what was sent on it may still arrive, for as long as the kernel likes. */
void net_close(struct connection *connection);
/* Its host is gone, and all its connections with it. */
void net_reset(struct world *world, const struct owner *owner);
/* The server died: every connection is gone, and the owners notice; or it was replaced, and its
 * kernel lives on. */
void net_break_connections(struct world *world, bool is_replaced);
/* The server of this run, which was replaced, ends. */
void net_end(struct world *world, uint32_t run);

/* The owner's outstanding call, once more. */
void net_send_call(struct world *world, struct owner *owner);
void net_send_reply(struct world *world, struct call *call, struct connection *connection,
                    struct bytes message);

/* Another copy of a call, sent long ago, arrives now. */
void net_arrive_late(struct world *world, struct call *call);

/* A packet reaches its end of the network. */
void net_arrive(struct world *world, struct parcel *parcel);

/* Connections of strangers have larger numbers than anybody else's. */
#define NET_STRANGER_ROUTE (UINT64_C(1) << 41)

/* Whose call this answers; NULL: of nobody we model. */
struct call *net_find_call(struct world *world, const struct rpc_reply *reply,
                           struct connection **ret_connection);

#endif

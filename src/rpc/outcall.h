/*
 * outcall.h -- carries calls from the core to the client and their results back.
 *
 * The core says what to tell whom, in no protocol's bytes; here it becomes arguments. Pure, so that
 * the simulator runs it as the daemon does.
 */
#ifndef RPC_OUTCALL_H
#define RPC_OUTCALL_H

#include "core/core.h"
#include "rpc/client.h"
#include "rpc/server.h"

/*
 * Starts every call that the core has ready and the client has room for, and tells the core what
 * ended, as long as its open batch has room for what that changes. What an answer says of a host's
 * restart makes the server and the client forget it. Called once per turn.
 */
void outcall_turn(struct core *core, struct rpc_client *client, struct rpc_server *server,
                  uint64_t now_ns, uint64_t wall_ns);

/* When there is something to do here next; UINT64_MAX: when something happens. */
uint64_t outcall_deadline_ns(const struct core *core, const struct rpc_client *client);

#endif

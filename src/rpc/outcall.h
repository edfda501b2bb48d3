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

/*
 * With a shared store whatever a call has to send, a retransmission too, needs a commit that began
 * after it was due, and that is recent: a server that stood still may have been replaced meanwhile.
 * This asks for the commits and releases what they allow. At most two are asked for at a time, the
 * one in flight and the open one. `may_send`: the last commit is recent.
 */
struct outcall_asks {
    struct {
        uint64_t txn, ticket; /* txn 0: none */
    } at[2];                  /* the older one first */
};
void outcall_ask(struct outcall_asks *asks, struct core *core, struct rpc_client *client,
                 bool may_send);

/* When there is something to do here next; UINT64_MAX: when something happens. */
uint64_t outcall_deadline_ns(const struct core *core, const struct rpc_client *client);

#endif

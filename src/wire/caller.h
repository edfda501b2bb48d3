/*
 * caller.h -- the sockets of outgoing calls: does what an rpc_client asks for and reports back.
 *
 * A few UDP sockets carry all port lookups and calls over UDP; every TCP call has its own
 * connection. A call leaves from the address the host knows us by (R-NOTIFY-1). If we do not have
 * that address now, the call fails as if refused and is retried later: a client notified from
 * another address would reclaim where nobody answers (R-NOTIFY-7).
 *
 * A call that asks for it leaves from a privileged port if we may use one and one is free,
 * otherwise from any port (R-NOTIFY-3). With --source-ports all calls leave from that range, these
 * included: it is what a firewall lets through.
 *
 * Calls over UDP that must come from where we listen are handed to the wire that listens.
 *
 * A socket error is reported to the rpc_client and has no other effect.
 */
#ifndef WIRE_CALLER_H
#define WIRE_CALLER_H

#include "rpc/client.h"
#include "wire/clock.h"
#include "wire/wire.h"

#include <uv.h>

struct caller;

struct caller_options {
    uint16_t source_port_low, source_port_high; /* --source-ports; 0: any */
    struct wire *listener; /* borrowed; NULL: there is none, and no call asks for it */
    int privileged_fd;     /* of caller_udp_bind_privileged, which is ours from here on; 0: none */
};

/* NULL: no memory. The loop, the client and the clock are borrowed. No socket is opened yet. */
struct caller *caller_new(uv_loop_t *loop, struct rpc_client *client, struct clock *clock,
                          const struct caller_options *options);

/*
 * The end of a turn: does what the client asked for, and makes the loop wake up for its next
 * deadline. Work beyond a few milliseconds is left for the next turn, which then comes at once. The
 * owner fetches the results of calls, before or after.
 */
void caller_turn(struct caller *caller);

/* Closes all sockets. Free the memory when the loop has closed their handles. */
void caller_close(struct caller *caller);
void caller_free(struct caller *caller);

#endif

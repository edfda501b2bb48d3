/*
 * caller.h -- the sockets of the calls that we make: does what an rpc_client asks for and tells it
 * what happened.
 *
 * A few UDP sockets of our own serve all look-ups and calls over UDP; every TCP call has a
 * connection of its own. A call leaves from the address that the host knows us by (R-NOTIFY-1).
 * When we do not have that address now, the call fails like one that is refused, and is tried again
 * later: who is told from elsewhere would reclaim at an address where nobody answers (R-NOTIFY-7).
 *
 * A call that asks for it leaves from a privileged port if we may have one and one is free,
 * otherwise from any (R-NOTIFY-3). With --source-ports all calls leave from its range, these too:
 * it says what a firewall lets through.
 *
 * Calls over UDP that must come from where we listen are handed to the wire that listens.
 *
 * An error of a socket is news for the client and never more than that.
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
};

/* NULL: no memory. The loop, the client and the clock are borrowed. No socket is opened yet. */
struct caller *caller_new(uv_loop_t *loop, struct rpc_client *client, struct clock *clock,
                          const struct caller_options *options);

/*
 * The end of a turn: does what the client wants done, and sees to it that the loop wakes up for its
 * next deadline. Work beyond a few milliseconds is left for the next turn, which then comes at
 * once. Results of calls are the owner's to fetch, before or after.
 */
void caller_turn(struct caller *caller);

/* Closes all sockets. Free the memory when the loop has closed their handles. */
void caller_close(struct caller *caller);
void caller_free(struct caller *caller);

#endif

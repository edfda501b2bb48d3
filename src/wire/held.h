/*
 * held.h -- datagrams that the server could not take yet, in the order in which they came.
 *
 * A connection that is refused keeps its record and is not read; a datagram has no such place, and
 * without this its caller would have to send it again. What a caller sends behind a held datagram
 * is held as well: a CANCEL must not overtake the LOCK that it cancels. When there is no room, or
 * its time is over, a datagram is lost, as datagrams are; udp.c sees to it that there mostly is.
 */
#ifndef WIRE_HELD_H
#define WIRE_HELD_H

#include "rpc/server.h"

enum { HELD_MAX = 256, HELD_PATIENCE_S = 6 };

struct held {
    struct held_datagram {
        struct rpc_source from;
        uint64_t since_ns;
        uint8_t *bytes; /* owned */
        uint32_t len;
    } at[HELD_MAX]; /* oldest first */
    uint32_t count;
};

void held_done(struct held *held);
/* Is a datagram of this caller held? Then the next one is, too. */
bool held_has(const struct held *held, const struct address *from);
void held_add(struct held *held, const struct rpc_source *from, struct bytes datagram,
              uint64_t now_ns);

/* Offers each once more, but none behind one of the same caller that is refused. */
void held_offer(struct held *held, uint64_t now_ns,
                bool (*deliver)(void *context, const struct rpc_source *from,
                                struct bytes datagram),
                void *context);

#endif

/*
 * outbox.h -- encoded replies that wait for the store, oldest first (P1).
 *
 * A queue of entries over a ring of bytes, both fixed at start. `after_txn` never decreases, so
 * only the head need be looked at. An entry can be redirected while it waits: a caller that lost
 * its connection and repeats the call gets the reply on its new connection (R-DRC-1).
 *
 * The result of a message waits here too: a whole call, which leaves instead of a reply.
 *
 * Most answers go back over a connection, which knows who is at its other end. Only where that has
 * to be remembered, for a datagram or for a call, it is, and not in the entry: thousands of them
 * wait at a time, and each has a line of the processor's cache to itself.
 */
#ifndef RPC_OUTBOX_H
#define RPC_OUTBOX_H

#include "rpc/server.h"

struct outbox;

struct outbox_entry {
    uint64_t route;    /* where it goes; the outbox writes it, like place, len and has_peer */
    uint64_t taken_by; /* the route that brought the call, also after a redirection */
    uint64_t after_txn;
    uint64_t cache_entry; /* of the duplicate request cache, or DRC_NONE */
    uint64_t place;       /* of the message in the ring */
    uint64_t received_ns; /* for the meter, like the row and is_error */
    uint32_t len;
    uint32_t meter_row;
    bool is_error;
    bool is_call; /* the result of a message */
    bool has_peer;
};
_Static_assert(sizeof(struct outbox_entry) == 64, "one line of the processor's cache");

/* Room for `entries_max` replies of at most `message_max` bytes, and `bytes_max` in total. */
struct outbox *outbox_new(uint32_t entries_max, uint32_t message_max, uint64_t bytes_max);
void outbox_free(struct outbox *outbox);

/* True when one more reply of the maximum size fits. */
bool outbox_has_room(const struct outbox *outbox);

/* Where the next message is to be encoded: message_max bytes. Only while outbox_has_room, and until
 * the next outbox_pop. */
uint8_t *outbox_reserve(struct outbox *outbox);
/* Appends what was encoded there, and goes to `to`. The number returned names the entry while it
 * waits. */
uint64_t outbox_add(struct outbox *outbox, const struct outbox_entry *entry,
                    const struct rpc_source *to, uint32_t len);

/* What the newest entry ever added waits, or waited, for: nothing can leave earlier any more. */
uint64_t outbox_txn_newest(const struct outbox *outbox);

/* The entry of that number while it still waits, else NULL. */
struct outbox_entry *outbox_find(struct outbox *outbox, uint64_t number);
/* An entry that waits goes there instead. */
void outbox_redirect(struct outbox *outbox, struct outbox_entry *entry,
                     const struct rpc_source *to);

/* The oldest entry if it may leave once `durable_txn` is durable, else NULL. */
const struct outbox_entry *outbox_head(const struct outbox *outbox, uint64_t durable_txn);
struct bytes outbox_message(const struct outbox *outbox, const struct outbox_entry *entry);
/* Who gets a datagram or a call; NULL: an answer over a connection. */
const struct peer *outbox_peer(const struct outbox *outbox, const struct outbox_entry *entry);
void outbox_pop(struct outbox *outbox);

uint32_t outbox_count(const struct outbox *outbox);

#endif

/*
 * namesake.h -- requests that were refused by a lock or a share of a client with the same name
 * elsewhere, and reclaims of what only that one has (D17).
 *
 * Two addresses are two clients. One that is refused by its own name may be another host that
 * happens to have it, or the very same one under a new address, whose old lock nobody will ever
 * give back: from here the two look alike, and neither silence nor a state number tells them apart
 * (a host may be unable to answer and call us all the time; a clone has its master's numbers). So
 * nothing moves by itself. Who met whom is remembered for people, who can know, and who can then
 * order it (ORDER_MOVE).
 *
 * The list is short and not stored. A pair leaves it when the holder has nothing here any more,
 * when it moved, a day after the last refusal, or for a newer pair when there is no room.
 */
#ifndef CORE_NAMESAKE_H
#define CORE_NAMESAKE_H

#include "core/message.h"

struct core;

#define NAMESAKES_MAX 64

struct namesake {
    uint64_t client;      /* handle: who holds the lock; 0: this place is free */
    struct address from;  /* who was refused, */
    struct address local; /* and which address of ours it asked */
    uint64_t heard_ns;    /* monotonic: its last refusal, */
    uint64_t logged_ns;   /* and the last that was an event */
    uint64_t heard_wall_ns;
    uint64_t count; /* of refusals */
};

struct namesakes {
    struct namesake at[NAMESAKES_MAX];
    uint64_t refused; /* requests, since the start */
};

/* This lock is in the way of a request: is it perhaps of this very client, at another address? */
void namesake_of_lock(struct core *core, const struct peer *from, const struct lock_request *r,
                      uint32_t lock);
/* These were refused. Is it for a client of their name elsewhere: one whose reservation denies this
 * SHARE; one that has what is to be reclaimed? */
void namesake_of_share(struct core *core, const struct peer *from, const struct lock_request *r);
void namesake_of_reclaim(struct core *core, const struct peer *from, const struct lock_request *r);
void namesake_of_share_reclaim(struct core *core, const struct peer *from,
                               const struct lock_request *r);

/* The pair in this place; NULL: there is none, or it is over. */
const struct namesake *namesake_at(const struct core *core, uint32_t index);
uint32_t namesake_count(const struct core *core);
/* The pair of this client and this address; NULL: it was not refused. */
const struct namesake *namesake_find(const struct core *core, uint32_t client,
                                     const struct address *from);
/* Is this client the holder of any pair? */
bool namesake_is_met(const struct core *core, uint32_t client);

#endif

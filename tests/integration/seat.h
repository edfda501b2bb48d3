/*
 * seat.h -- contenders for the same bytes: what each of them knows, and what a store may then hold.
 *
 * A contender asks with LOCK(block), waits, is granted by an answer or by a callback, holds, and
 * unlocks; now and then it gives up waiting. It relies on the lock from the moment at which it
 * knows of it until it sends UNLOCK (P2).
 *
 *           LOCK: BLOCKED            GRANTED, by an answer or a callback
 *   IDLE ------------------> WAITING -----------------------------------> HOLDING
 *    ^  \________________________|_________________________________________/ |
 *    +---- CANCEL, UNLOCK -------+                                 UNLOCK ---+
 *
 * Who waits may have an offer in the store, with its waiter, and not know of it yet. Who was told
 * that he has nothing, by the answer to UNLOCK or CANCEL, has nothing there.
 *
 * An offer without a waiter is one whose callback was under way when its request ended: the poll
 * was granted, and it stands beside the lock; or UNLOCK or CANCEL was executed, and is answered
 * only when that offer is gone. After a crash it is its owner's lock, and stored as an offer until
 * the owner gives it up: only then may a contender rely on it alone.
 *
 * An echo is nobody's (decision 025): whatever its owner knows, there may be one for 12 s after a
 * takeover, and it keeps others out.
 */
#ifndef INTEGRATION_SEAT_H
#define INTEGRATION_SEAT_H

#include <stdbool.h>
#include <stdint.h>

enum seat_state { SEAT_IDLE, SEAT_WAITING, SEAT_HOLDING };
enum seat_call { SEAT_NO_CALL, SEAT_LOCK, SEAT_UNLOCK, SEAT_CANCEL };

struct seat_contender {
    enum seat_state state;
    enum seat_call pending;
    bool exclusive;
    bool is_adopted; /* it holds what it found to be stored, and has not called since */
    uint64_t due_ns; /* when it does something next */
};

/* What a store holds of a contender. */
struct seat_found {
    uint32_t held, offered;   /* locks; offers with a waiter */
    uint32_t alone, echoes;   /* offers without one; offers that are nobody's */
    bool exclusive, is_mixed; /* the mode of all of them; not all are of one mode */
    bool waits;               /* its request is stored */
};

/* Is anything there that keeps others out? And that is the contender's? */
bool seat_is_stored(const struct seat_found *found);
bool seat_is_owned(const struct seat_found *found);

/* A call leaves. */
void seat_begin(struct seat_contender *contender, enum seat_call call);
/* Its answer came; an enum peer_nlm_status. False: this answer is wrong. */
bool seat_answered(struct seat_contender *contender, uint32_t status);
/* GRANTED arrived; what it answers. */
uint32_t seat_called(struct seat_contender *contender, bool exclusive);

/* Does it rely on the lock? */
bool seat_relies(const struct seat_contender *contender);
/* NULL when that is right, or what is wrong. */
const char *seat_judge(const struct seat_contender *contender, const struct seat_found *found);
/* From here on that is what it knows. */
void seat_adopt(struct seat_contender *contender, const struct seat_found *found);

#endif

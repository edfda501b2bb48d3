/*
 * grant.h -- from an offer to a lock: the GRANTED callbacks of a waiter (R-BLK-1..7, 19, D13).
 *
 *               durable, its time has come          GRANTED, or DENIED to a repeat (R-DRC-3)
 *   OFFERED ------------------------------> CALLING ----------------------------> held, waiter gone
 *     ^  ^                                   |  |  |
 *     |  | no answer, or "in grace"          |  |  +-- DENIED to the first ------> offer withdrawn
 *     |  +-----------------------------------+  |
 *     |                                         | GRANTED_MSG was received
 *     |  no GRANTED_RES for 30 s                v
 *     +------------------------------------ EXPECTING ---- GRANTED_RES --------> held or withdrawn
 *
 *   no attempt can have reached the client, 5 s after the first: PASSED, the offer stays (D13)
 *
 * Silence never takes an offer back. Its client ends it by any word: an answer, the same LOCK again
 * (a poll: the reply says GRANTED), CANCEL, UNLOCK.
 *
 * When that happens while a callback is in flight, the callback lingers (callback.h): its bytes are
 * nobody else's, and the answer to CANCEL and UNLOCK waits, until nothing of it can arrive any
 * more. Datagrams that left before are the network's (P2 (5)).
 */
#ifndef CORE_GRANT_H
#define CORE_GRANT_H

#include "base/hash_index.h"
#include "base/list.h"
#include "core/claim.h"
#include "core/message.h"
#include "core/status.h"

struct core;
struct core_call;

struct grants {
    struct hash_index by_cookie; /* hash of the cookie; slots of waiters */
    struct list gated;           /* waiters whose callback is due and not durable yet */
    struct list turns;           /* clients with callbacks that may leave, in turn (turn.h) */
    uint32_t next_cookie;
    struct grant_counters counters;
};

__attribute__((warn_unused_result)) int grant_init(struct core *core, const uint32_t slots[]);
void grant_done(struct core *core);

/* An offer was made for this queued waiter: the first callback follows. */
void grant_begin(struct core *core, uint32_t waiter, uint32_t offer);

/* The same for an offer of the run before, which may have been taken already (D12). */
void grant_restore(struct core *core, uint32_t waiter, uint32_t offer, uint64_t cookie);

/* The client takes the lock, or (`is_certain` false) may have taken it. False: no slots for it; the
 * offer stays. The waiter is gone when true. */
__attribute__((warn_unused_result)) bool grant_accept(struct core *core, uint32_t waiter,
                                                      bool is_certain);
/* The offer goes, or stays with its callback, which lingers; the waiter is the caller's. */
void grant_withdraw(struct core *core, uint32_t waiter);

/* CANCEL: as far as the client is concerned it is over. */
void grant_cancel(struct core *core, uint32_t waiter);
/* UNLOCK: of the owner's waiters, those inside the claim end; an offer that only overlaps it and
 * may have been taken becomes held first. False: no slots for that. */
__attribute__((warn_unused_result)) bool grant_unlock(struct core *core, const struct claim *claim);
/* A reclaim of bytes that were offered to it: it must have taken them. */
void grant_reclaim(struct core *core, const struct claim *claim);
/* The client rebooted: it waits for nothing. */
void grant_drop_client(struct core *core, uint32_t client);
/* The same on one file; returns how many waits that were. */
uint32_t grant_drop_file(struct core *core, uint32_t client, uint32_t file);
/* The same, but for what it asked for in the life that its stamps say it is in (client_is_over). */
void grant_drop_older(struct core *core, uint32_t client);
/* Everybody asks again: waiters end, and offers that nobody was called for (D6). One that a client
 * may have taken stays, without its waiter; it is its lock by then (R-BLK-19). */
void grant_drop_all(struct core *core);
/* The lock table frees an offer of this waiter, unless it has a callback from now on. */
void grant_lost(struct core *core, uint32_t waiter);

/* GRANTED_RES: by cookie, and from the client's own address only (P5). */
void grant_result(struct core *core, const struct peer *from, struct bytes cookie, uint32_t status);

/* The time of this waiter's timer has come; its phase is OFFERED or EXPECTING. */
void grant_due(struct core *core, uint32_t waiter);
void grant_stored(struct core *core);
bool grant_next_call(struct core *core, struct core_call *ret);
/* A callback can begin now. */
bool grant_has_call(const struct core *core);
struct core_input;
void grant_call_done(struct core *core, uint32_t waiter, const struct core_input *input);
/* Nothing of its callbacks is left; called when a waiter goes. */
void grant_forget(struct core *core, uint32_t waiter);

void grant_check(const struct core *core);

#endif

/*
 * waiter.h -- blocked requests and their queue (R-BLK-8..18). What follows an offer is grant.h's.
 *
 *               +------- offered by the run before (D12) ---+
 *               |                                           v
 *    (none) -- NEW --> QUEUED -- lock_offer_make ----> OFFERED <----> CALLING --> EXPECTING
 *                      ^ ^  |                           ^              |              |
 *           LOCK again | |  | no room for an offer      +--------------|--------------+
 *                      | |  v                        no GRANTED_RES    |
 *                      | +- PASSED <-----------------------------------+
 *                      |   LOCK again        nobody was there, 5 s (D13)
 *                      |
 *                    PLACE <-- CANCEL, from any other phase (R-BLK-12)
 *
 * A waiter goes from any phase: its lock is held, it is denied or overdue, its client is gone, or
 * it has kept its place for 5 s. waiter_set_phase has the moves as a table.
 *
 * A queued waiter is attached to one blocker: a lock or offer of another owner, or an earlier
 * waiter (R-BLK-15). When the blocker changes, and only then, the waiter is examined again: it gets
 * an offer or is attached to the next blocker. Of several waiters that block each other, a later
 * one is attached to the latest earlier one, so one unlock wakes one waiter, not the queue (P7). It
 * stays attached while that one is being offered what both want.
 *
 * PASSED and PLACE block nobody.
 */
#ifndef CORE_WAITER_H
#define CORE_WAITER_H

#include "base/chains.h"
#include "base/hash_index.h"
#include "base/list.h"
#include "base/table.h"
#include "base/timers.h"
#include "base/tree.h"
#include "base/units.h"
#include "core/claim.h"
#include "core/message.h"
#include "core/waiter_own.h"
#include "core/waiter_queue.h"
#include "core/waiter_wake.h"

#define WAITER_PATIENCE_NS (300 * SECOND_NS) /* R-BLK-6: not heard from for that long, it goes */

struct core;

enum waiter_phase {
    WAITER_NEW, /* linked, and blocking nobody yet */
    WAITER_QUEUED,
    WAITER_OFFERED,   /* the next callback waits for its time or for the store */
    WAITER_CALLING,   /* a callback is in flight */
    WAITER_EXPECTING, /* GRANTED_MSG arrived; its GRANTED_RES may come */
    WAITER_PASSED,    /* the client was unreachable: it must ask again (D13) */
    WAITER_PLACE,     /* cancelled: only its place is kept (R-BLK-12) */
};

/* The callbacks of one offer; see grant.h. */
struct grant {
    uint32_t offer;            /* lock slot; SLOT_NONE: none */
    uint32_t callback;         /* CALLING: the one in flight (callback.h); else SLOT_NONE */
    uint64_t cookie;           /* of all its callbacks (R-BLK-4) */
    uint64_t after_txn;        /* the offer must be durable before they leave (P1) */
    uint64_t first_attempt_ns; /* 0: none yet */
    uint32_t attempt_count;    /* begun */
    uint32_t failure_count;    /* of them, without an answer: the ladder of R-BLK-5 */
    uint32_t proc, transport;  /* of the callback in flight or next */
    bool may_have_arrived;     /* one that ended may have reached the client (D13, R-DRC-3) */
    bool is_repeated;          /* the last one may have arrived more than once */
    bool is_ready;             /* to leave (turn.h) */
    bool is_denied;            /* GRANTED_RES said so before the callback in flight has ended */
    struct list queue;         /* at the gate, or its client's of those ready to leave */
};

struct waiter {
    uint64_t order; /* place in the queue of everything */
    uint64_t asked; /* as of a lock (lock.h), by the life that asked for it last */
    struct claim claim;
    uint64_t len;           /* as sent; the claim's start is the offset */
    uint64_t heard_ns;      /* its client's last word about it */
    uint64_t queued_ns;     /* wall clock */
    uint64_t client_cookie; /* of a LOCK_MSG with 8 bytes; 0: another (R-BLK-4) */
    uint32_t oh, caller_name;
    uint32_t state, version, transport;
    struct address local;
    enum waiter_phase phase;
    bool is_message;
    bool on_waiter;         /* attached to a waiter, else to a lock */
    bool is_woken;          /* to be looked at again */
    uint32_t hangs_on;      /* SLOT_NONE: on nothing here, because it is woken or not queued, */
    struct list on_program; /* or because a program on this machine is in the way (mirror.h) */
    struct waiter_reach any, exclusives; /* of its subtree of queued waiters */
    struct waiter_span own;              /* of its subtree of its owner's */
    uint64_t searched_to;                /* where the last search for a circle ended (deadlock.c) */
    struct grant grant;
    struct list place; /* among those that keep one, oldest first */
};

struct waiters {
    struct table table;       /* of struct waiter */
    struct hash_index by_key; /* hash of (owner, file, start, len) */
    struct tree own;          /* by file and range; roots: struct owner.waiters */
    struct chains behind;     /* chain = owner slot: those of it attached to waiters */
    struct chains by_client;  /* chain = client slot */
    struct chains on_lock;    /* chain = lock slot: waiters attached to it */
    struct chains on_waiter;  /* chain = waiter slot: the same */
    struct tree queued;       /* by (start, later first); roots: struct file.waiters */
    struct tree woken;        /* to be looked at again, in order; roots: struct file.woken */
    struct list wake_turns;   /* addresses that have files with such, in turn */
    struct timers timers;     /* next callback, end of patience, end of a kept place */
    struct list places;       /* cancelled: they keep a place for a moment, and wait for nothing */
    uint32_t place_count;
    uint64_t next_order;
    uint64_t deadlocks, expired; /* counted since the start */
};

__attribute__((warn_unused_result)) int waiter_init(struct core *core, const uint32_t slots[]);
void waiter_done(struct core *core);

struct waiter *waiter_at(const struct core *core, uint32_t slot);
/* It has an offer. */
bool waiter_is_offered(const struct waiter *waiter);
uint32_t waiter_client(const struct core *core, const struct waiter *waiter);
/* Those that wait; one that only keeps a place does not, and does not count (--max-waiters). */
uint32_t waiter_count(const struct core *core);

/* The waiter of this owner with this request, whatever its mode (R-BLK-8); SLOT_NONE: none. `len`
 * is as it was sent. */
uint32_t waiter_find(const struct core *core, const struct claim *claim, uint64_t len);

/* The only way from one phase to the next, which CHECKs that there is such a move. What a phase has
 * (a place in the queue, a timer, a callback) is the caller's. */
void waiter_set_phase(struct core *core, uint32_t slot, enum waiter_phase phase);

/* For waiter_load.c: a waiter in a live slot gets its place in every index, taking references to
 * what it names; it joins the queue, to be looked at. */
void waiter_link(struct core *core, uint32_t slot, const struct waiter *content);
void waiter_enter_queue(struct core *core, uint32_t slot);
/* Its client's word came just now: it is not dropped before 5 min without another (R-BLK-6). */
void waiter_be_patient(struct core *core, uint32_t slot);

/* Queues a blocked request; LOCK_BLOCKED, or LOCK_NO_RESOURCES. */
enum lock_status waiter_add(struct core *core, const struct claim *claim, const struct peer *from,
                            const struct request *request);
/* The same request again, in this state (0: unknown): it is of that life from now on, and so is
 * what it is offered. */
void waiter_saw_state(struct core *core, uint32_t slot, uint32_t state);
/* The same request again: its client is alive, and back in the queue if it had left it. As
 * waiter_add: one who has only kept its place is a new one. */
enum lock_status waiter_heard(struct core *core, uint32_t slot, const struct peer *from,
                              const struct request *request);
/* Not queued and not offered any more: only its place is kept, for 5 s after the reply, which may
 * take as long as this. */
void waiter_keep_place(struct core *core, uint32_t slot, uint64_t untold_ns);
/* The client was unreachable: it must ask again. */
void waiter_pass(struct core *core, uint32_t slot);
/* Gone; waiters attached to it are examined again. Its offer is accepted, withdrawn or lost before.
 * */
void waiter_remove(struct core *core, uint32_t slot);

/* Nothing is in its way any more: this lock is offered to it. */
void waiter_offered(struct core *core, uint32_t slot, uint32_t lock);

/* Examines waiters whose blocker changed, and ends those overdue. True: there is more. */
bool waiter_work(struct core *core);
uint64_t waiter_deadline_ns(const struct core *core);

/* A stored waiter comes back, its client and its offer are loaded before; resume mode only. False:
 * it cannot be. */
bool waiter_load(struct core *core, uint32_t slot, const struct record_waiter *record);
/* After loading: every waiter's timeout starts now. */
void waiter_start(struct core *core);
/* Kept waiters only have a place, which no run outlives. */
bool waiter_is_stored(const struct core *core, uint32_t slot);
uint32_t waiter_encode(const struct core *core, uint32_t slot, uint8_t *buffer);

void waiter_check(const struct core *core);

#endif

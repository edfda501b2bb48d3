/*
 * lock.h -- byte-range locks: who holds which bytes, and in which mode.
 *
 * Two kinds of element live in one table and one store kind. A *held* lock belongs to its owner:
 * the held locks of one owner in one file never overlap, and adjacent ones of the same mode and
 * stamp are one (R-RNG-3). An *offer* is taken for a waiter that has not acknowledged it
 * (R-BLK-19): it blocks other owners like a lock, may overlap what its owner holds, and becomes
 * held by lock_offer_accept.
 *
 *              lock_take                    lock_offer_accept
 *   (nothing) -----------> HELD <---------------------------- OFFERED <---- lock_offer_make
 *                           |  lock_release, lock_drain          |
 *                           v                                    v  lock_offer_withdraw, lock_drain
 *                       (nothing)                            (nothing)
 *
 * A file's elements are a tree by first byte that knows, for every subtree, the furthest end of any
 * element and of any exclusive one, each with its owner and the furthest end of the other owners:
 * the first conflict of a range is found in O(log n), however many compatible locks overlap it.
 * An owner's held locks in one file are a second set, so that its own operations do not walk over
 * those of others.
 *
 * A stamp is (client's incarnation, client's state at the grant, monitored or not). Locks with
 * another stamp are never merged: a reboot frees some of them and not the others (R-SEC-3).
 *
 * Whenever an element stops standing where it stood (freed, shrunk, split, weakened, moved),
 * waiter_wake_lock_changed(slot) is called: no path that frees bytes can forget the waiters
 * (R-BLK-17).
 */
#ifndef CORE_LOCK_H
#define CORE_LOCK_H

#include "base/chains.h"
#include "base/hash_index.h"
#include "base/intern.h"
#include "base/table.h"
#include "base/tree.h"
#include "core/admit.h"
#include "core/claim.h"
#include "core/file.h"
#include "core/message.h"

struct core;

struct lock {
    struct claim claim;
    uint8_t flags;         /* enum record_lock_flag, but for the mode, which the claim has */
    bool is_left_over : 1; /* an offer of a run before; see leftover.h */
    bool is_echoed : 1;    /* an offer that was stored when we took over; see echo.h */
    bool is_doubtful : 1; /* an offer that its client denied, but may have taken before (R-DRC-3) */
    bool is_lingering : 1; /* an offer without a waiter whose callback lingers (callback.h) */
    bool is_unsettled : 1; /* all of it, and held (unsettled.h) */
    uint64_t len;          /* as sent, while the lock is as it was asked for; else computed */
    uint64_t granted_ns;   /* wall clock */
    uint64_t serial;       /* grows with every change of any element; 0: as it was loaded */
    uint64_t asked;        /* the serial when its client asked for it; 0: of a run before */
    uint32_t oh;
    uint32_t link; /* of a held lock its holding, of an offer its waiter; see lock_holding */
    uint32_t state, incarnation;
};
_Static_assert(sizeof(struct lock) == 80, "there may be a million of them");

/* Of (owner, file); SLOT_NONE: an offer. */
static inline uint32_t lock_holding(const struct lock *lock)
{
    return (lock->flags & RECORD_LOCK_OFFER) != 0 ? SLOT_NONE : lock->link;
}

/* SLOT_NONE: held, or an offer whose waiter did not survive a restart. */
static inline uint32_t lock_waiter(const struct lock *lock)
{
    return (lock->flags & RECORD_LOCK_OFFER) != 0 ? lock->link : SLOT_NONE;
}

/* The held locks of one owner in one file. */
struct holding {
    uint32_t owner, file;
    span_root locks;     /* by start; at least one */
    tree_root unsettled; /* parts of locks that wait to be reclaimed; unsettled.h */
};

struct locks {
    struct table table;             /* of struct lock; slots are the store's keys */
    struct spans by_start;          /* roots: struct file.locks */
    struct spans own;               /* roots: struct holding.locks */
    struct chains by_client;        /* chain = client slot; what is new goes to the front */
    struct table holdings;          /* of struct holding */
    struct hash_index far_holdings; /* by owner and file: all that are not struct owner.near */
    struct intern ohs;
    uint32_t offer_count;
    struct chains left_over;                 /* chain = client slot: offers of a run before */
    struct tree left_over_own;               /* the same; roots: struct owner.left_over */
    uint64_t *left_over_ends;                /* by slot: the furthest in its subtree of these */
    uint64_t serial;                         /* of the last change */
    uint32_t file_set_counts[FILE_SETS_MAX]; /* elements by the file set they are in (D14) */
    bool is_built;          /* all records are loaded; until then the roots in files are piles */
    uint32_t refused_count; /* of them, because they contradict others */
};

/* What is to be locked. */
struct lock_want {
    struct claim claim;
    uint64_t len; /* as sent */
    uint32_t state;
    bool is_unmonitored;
    struct bytes oh;
    uint64_t wall_ns;
    uint64_t asked; /* of an offer: see struct lock; lock_take is asked now */
};

__attribute__((warn_unused_result)) int lock_init(struct core *core, const uint32_t slots[]);
void lock_done(struct core *core);

struct lock *lock_at(const struct core *core, uint32_t slot);

/* The element with the lowest start that conflicts with this claim; SLOT_NONE: none. */
uint32_t lock_find_conflict(const struct core *core, const struct claim *claim);
/* The next such element in order of start, for the search for deadlocks; `after` was the last. */
uint32_t lock_next_conflict(const struct core *core, const struct claim *claim, uint32_t after);

/* Do the owner's held locks of its client's present incarnation cover the range, in that mode or a
 * stronger one? */
bool lock_covers(const struct core *core, const struct claim *claim);

/* If it is to be freed because its client rebooted, it is, now, and counted there. The caller
 * keeps the file. */
bool lock_free_if_doomed(struct core *core, uint32_t slot);

/* Limits, bytes and store space allow one more lock of this client (R-SEC-6, R-PER-8);
 * SLOT_NONE: of a new one. */
enum admission lock_room(const struct core *core, uint32_t client);

/*
 * Makes the claim a lock of its owner: what it held there in another mode is replaced, rests
 * are split off, neighbours merged. Nobody else may be in the way (asserted). Only after lock_room
 * said ADMIT_NEW; false: no bytes for oh after all, nothing changed. Takes its own reference to the
 * file.
 */
__attribute__((warn_unused_result)) bool lock_take(struct core *core, const struct lock_want *want);

/*
 * The owner gives up the bytes of this claim that it holds, in whatever mode; what it does not hold
 * is not looked at.
 * False: a split needs one more slot than the table has; nothing changed (R-RNG-5: the table has a
 * reserve that only this may use).
 */
__attribute__((warn_unused_result)) bool lock_release(struct core *core, const struct claim *claim);

/* The same where not the owner asks for it but its time is over: false only when no slot is left.
 */
__attribute__((warn_unused_result)) bool lock_give_up(struct core *core, const struct claim *claim);
/* So many pieces a client's locks may be cut into (R-RNG-5). */
uint64_t lock_most_pieces(const struct core *core, uint32_t client);

/*
 * Accepting an offer puts at most this many records. All the offers accepted in one step, however
 * many, put at most this many more than batch_puts_max into the open batch.
 */
#define LOCK_ACCEPT_PUTS_MAX 64

/*
 * Frees locks and offers of a client that its present incarnation did not take, at most `max`
 * looked at, from where the last call stopped (client->life.drain_at). Returns how many that were.
 * Offers go by way of grant_lost; those of lingering callbacks, and echoes, are passed by.
 */
uint32_t lock_drain(struct core *core, uint32_t client, uint32_t max);
/* Frees what a client has on one file, which the caller keeps; returns how many. */
uint32_t lock_free_file(struct core *core, uint32_t client, uint32_t file);

/* Frees what anybody holds on it, at most `max`; returns how many. Offers stay. The caller keeps
 * the file. */
uint32_t lock_free_held(struct core *core, uint32_t file, uint32_t max);

/* A stored record comes back; the client is loaded before. False: it cannot be. */
bool lock_load(struct core *core, uint32_t slot, const struct record_lock *record);
/* All have come: they can be searched from now on. Those that contradict others, like overlapping
 * held locks of one owner, are damage and go by way of recover_refuse. */
void lock_build(struct core *core);
uint32_t lock_encode(const struct core *core, uint32_t slot, uint8_t *buffer);

void lock_check(const struct core *core);

#endif

/*
 * deadlock.c -- the search for a circle of owners that wait for each other; see deadlock.h.
 *
 * An owner waits for every owner that has a lock or an offer in the way of one of its queued
 * requests. The search follows all of these edges from the owners that a new request would wait
 * for, and asks whether one leads back. An owner is visited once per search (a stamp says so), so
 * the search ends; it is also bounded, because it runs while everybody else waits. What lies beyond
 * the bound counts as no circle: the request is then queued, as it is by servers that do not look
 * at all.
 *
 * Only owners that hold something and wait are part of a circle: where there is no other such
 * owner, nothing is searched, however many readers are in the way. Of very many obstacles one
 * search looks at a part; the next one of the same request, when it is polled, continues from
 * there.
 *
 * Waiting behind an earlier waiter is no edge: only owners without locks do that (R-BLK-15), and
 * nobody waits for an owner without locks.
 */
#include "core/deadlock.h"

#include "base/check.h"
#include "core/state.h"

enum {
    PENDING_MAX = 256, /* owners found and not yet followed */
    EDGES_MAX = 512,   /* locks and waiters looked at */
};

struct circle {
    uint32_t pending[PENDING_MAX];
    uint32_t pending_count, edge_count;
    uint32_t owner; /* who would wait */
    uint64_t visit;
    bool is_closed;
};

/* Owners in the way of one request join the search. Returns where it ended; 0: at the last. */
static uint64_t follow(struct core *core, struct circle *circle, const struct claim *claim)
{
    uint32_t lock = lock_find_conflict(core, claim);
    while (lock != SLOT_NONE && !circle->is_closed && circle->edge_count++ < EDGES_MAX) {
        uint32_t other = lock_at(core, lock)->claim.owner;
        struct owner *seen = owner_at(core, other);
        bool goes_anyway = /* in a few seconds */
            lock_at(core, lock)->is_lingering || echo_is(core, lock);
        circle->is_closed = other == circle->owner && !goes_anyway;
        bool is_waiting = !list_is_empty(&seen->waiting) && !goes_anyway;
        if (is_waiting && seen->visit != circle->visit && circle->pending_count < PENDING_MAX) {
            seen->visit = circle->visit;
            circle->pending[circle->pending_count++] = other;
        }
        uint32_t last = lock;
        lock = lock_next_conflict(core, claim, last);
        if (lock != SLOT_NONE && circle->edge_count >= EDGES_MAX)
            return lock_at(core, lock)->claim.start;
    }
    return 0;
}

bool deadlock_closes(struct core *core, const struct claim *claim, uint32_t waiter)
{
    /* Nobody can wait for an owner that has nothing. */
    const struct owner *asks = owner_at(core, claim->owner);
    if (asks->lock_count == 0)
        return false;
    uint32_t is_waiting = list_is_empty(&asks->waiting) ? 0 : 1;
    if (core->owners.waiting_count == is_waiting)
        return false;
    struct circle circle = {.owner = claim->owner, .visit = ++core->owners.visit_last};
    struct claim rest = *claim;
    if (waiter != SLOT_NONE && waiter_at(core, waiter)->searched_to > rest.start)
        rest.start = waiter_at(core, waiter)->searched_to;
    uint64_t ended = follow(core, &circle, &rest);
    if (waiter != SLOT_NONE)
        waiter_at(core, waiter)->searched_to = ended;
    circle.edge_count = 0; /* what was found is followed, however much that took */
    const struct tree *own = &core->waiters.own;
    while (circle.pending_count > 0 && !circle.is_closed) {
        uint32_t at = circle.pending[--circle.pending_count];
        uint32_t slot = tree_first(own, owner_at(core, at)->waiters);
        for (; slot != SLOT_NONE && !circle.is_closed && circle.edge_count++ < EDGES_MAX;
             slot = tree_next(own, slot)) {
            const struct waiter *w = waiter_at(core, slot);
            if (w->phase == WAITER_QUEUED)
                (void)follow(core, &circle, &w->claim);
        }
    }
    if (circle.is_closed) {
        MARK("deadlock_found");
        core->waiters.deadlocks++;
    }
    return circle.is_closed;
}

/*
 * deadlock.c -- would this wait close a circle of owners (R-BLK-18)?
 *
 * An owner waits for every owner that has a lock or an offer in the way of one of its queued
 * requests. The search follows all of these edges from the owners that a new request would wait
 * for, and asks whether one leads back. An owner is visited once per search (a stamp says so), so
 * the search ends; it is also bounded, because it runs while everybody else waits. What lies beyond
 * the bound counts as no circle: the request is then queued, as it is by servers that do not look
 * at all.
 *
 * Waiting behind an earlier waiter is no edge: only owners without locks do that (R-BLK-15), and
 * nobody waits for an owner without locks.
 */
#include "base/check.h"
#include "core/state.h"

enum {
    PENDING_MAX = 256, /* owners found and not yet followed */
    EDGES_MAX = 4096,  /* locks and waiters looked at */
};

struct circle {
    uint32_t pending[PENDING_MAX];
    uint32_t pending_count, edge_count;
    uint32_t owner; /* who would wait */
    uint64_t visit;
    bool is_closed;
};

/* Owners in the way of one request join the search. */
static void follow(struct core *core, struct circle *circle, uint32_t owner, uint32_t file,
                   uint64_t start, uint64_t end, bool exclusive)
{
    uint32_t lock = lock_find_conflict(core, file, start, end, exclusive, owner);
    while (lock != SLOT_NONE && !circle->is_closed && circle->edge_count++ < EDGES_MAX) {
        uint32_t other = lock_at(core, lock)->owner;
        struct owner *seen = owner_at(core, other);
        circle->is_closed = other == circle->owner;
        if (seen->visit != circle->visit && circle->pending_count < PENDING_MAX) {
            seen->visit = circle->visit;
            circle->pending[circle->pending_count++] = other;
        }
        lock = lock_next_conflict(core, file, start, end, exclusive, owner, lock);
    }
}

bool waiter_is_deadlock(struct core *core, uint32_t owner, uint32_t file, uint64_t start,
                        uint64_t end, bool exclusive)
{
    /* Nobody can wait for an owner that has nothing. */
    if (owner_at(core, owner)->lock_count == 0)
        return false;
    struct circle circle = {.owner = owner, .visit = ++core->owners.visit_last};
    follow(core, &circle, owner, file, start, end, exclusive);
    const struct chains *by_owner = &core->waiters.by_owner;
    while (circle.pending_count > 0 && !circle.is_closed) {
        uint32_t at = circle.pending[--circle.pending_count];
        uint32_t slot = chains_first(by_owner, at);
        for (; slot != SLOT_NONE && !circle.is_closed && circle.edge_count++ < EDGES_MAX;
             slot = chains_next(by_owner, slot)) {
            const struct waiter *w = waiter_at(core, slot);
            if (w->phase == WAITER_QUEUED)
                follow(core, &circle, at, w->file, w->start, w->end, w->exclusive);
        }
    }
    if (circle.is_closed) {
        MARK("deadlock_found");
        core->waiters.deadlocks++;
    }
    return circle.is_closed;
}

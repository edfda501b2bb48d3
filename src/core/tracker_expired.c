/*
 * tracker_expired.c -- clients of other protocols whose time has run out, until their protocol has
 * cleaned up after them.
 *
 *             take                      TRACKER_AGAIN_NS later
 *   waiting --------> taken --------------------------------------> taken, due
 *                       ^                                               |
 *                       +-----------------------------------------------+
 *                                            take
 *   removed from any of them; a restart: waiting
 *
 * Who takes one may die before it has cleaned up, or never get the answer, while we run on. So one
 * that was taken is handed out again, until it is removed. Both lists are of one protocol, and in
 * the order of time: a waiting one is appended when it expires, a taken one when it is taken, and
 * all of these become due after the same time.
 *
 * Always true, and asserted by tracker_check():
 *  (1) An expired client is on one of the two lists of its protocol; on `taken` exactly while
 *      again_ns is not 0.
 *  (2) No other client is on any.
 */
#include "base/check.h"
#include "core/state.h"

void tracker_queue_expired(struct core *core, uint32_t slot)
{
    struct tracked *tracked = tracker_at(core, slot);
    tracked->again_ns = 0;
    list_append(&core->tracker.expired[tracked->protocol], &tracked->expired);
}

/* The next to hand out; NULL: none. Who was handed out before and is due has waited longest. */
static struct tracked *next(const struct tracker *tracker, uint32_t protocol, uint64_t now_ns)
{
    const struct list *taken = &tracker->taken[protocol], *waiting = &tracker->expired[protocol];
    if (!list_is_empty(taken)) {
        struct tracked *oldest = LIST_ELEMENT(taken->next, struct tracked, expired);
        if (oldest->again_ns <= now_ns)
            return oldest;
    }
    return list_is_empty(waiting) ? NULL : LIST_ELEMENT(waiting->next, struct tracked, expired);
}

bool tracker_take_expired(struct core *core, struct bytes protocol, struct tracker_view *ret)
{
    struct tracker *tracker = &core->tracker;
    uint32_t of = intern_find(&tracker->protocols, protocol);
    struct tracked *tracked = of == SLOT_NONE ? NULL : next(tracker, of, core->now_ns);
    if (tracked == NULL)
        return false;
    tracked->again_ns = core->now_ns + TRACKER_AGAIN_NS;
    list_remove(&tracked->expired);
    list_append(&tracker->taken[of], &tracked->expired);
    tracker_view_slot(core, table_slot(&tracker->table, tracked), ret);
    return true;
}

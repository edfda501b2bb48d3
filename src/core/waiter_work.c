/*
 * waiter_work.c -- what becomes of waiters without a call of theirs; see waiter.h.
 *
 * Those whose blocker changed are examined again and offered what they wait for; those overdue end.
 */
#include "base/check.h"
#include "core/state.h"

enum {
    WOKEN_PER_TURN = 256,
    OVERDUE_PER_TURN = 256,
};

static void offer(struct core *core, uint32_t slot)
{
    struct waiter *w = waiter_at(core, slot);
    struct lock_want want = {
        .claim = w->claim,
        .len = w->len,
        .state = w->state,
        .asked = w->asked,
        .oh = intern_bytes(&core->locks.ohs, w->oh),
        .wall_ns = core->wall_ns,
    };
    uint32_t lock = SLOT_NONE;
    if (lock_room(core, waiter_client(core, w)) == ADMIT_NEW)
        lock = lock_offer_make(core, &want, slot);
    if (lock == SLOT_NONE) {
        MARK("waiter_no_room_for_offer");
        mirror_loosen(core, &w->claim);
        waiter_pass(core, slot); /* its own poll learns why */
        return;
    }
    waiter_offered(core, slot, lock);
}

/* Is something still in the way? Then it waits on that; else it gets its offer. */
static void look_again(struct core *core, uint32_t slot)
{
    const struct waiter *w = waiter_at(core, slot);
    uint32_t thing = SLOT_NONE;
    if (owner_at(core, w->claim.owner)->lock_count == 0)
        thing = waiter_queue_earlier(core, &w->claim, w->order);
    if (thing != SLOT_NONE) {
        MARK("waiter_behind_waiter");
        waiter_wake_hang(core, slot, true, thing);
        return;
    }
    thing = lock_find_conflict(core, &w->claim);
    if (thing != SLOT_NONE) {
        waiter_wake_hang(core, slot, false, thing);
    } else if (mirror_take(core, &w->claim) == MIRROR_TAKEN) {
        offer(core, slot);
    } else {
        MARK("waiter_behind_a_program");
        waiter_wake_hang_on_program(core, slot);
    }
}

/* R-BLK-6: any call of its client counts as a word of it. Then it is looked at again later. */
static bool is_client_alive(struct core *core, uint32_t slot)
{
    const struct waiter *w = waiter_at(core, slot);
    uint64_t until_ns = client_at(core, waiter_client(core, w))->life.seen_ns + WAITER_PATIENCE_NS;
    if (until_ns <= core->now_ns)
        return false;
    timers_set(&core->waiters.timers, slot, until_ns);
    return true;
}

static void overdue(struct core *core, uint32_t slot)
{
    switch (waiter_at(core, slot)->phase) {
    case WAITER_QUEUED:
        if (is_client_alive(core, slot))
            return;
        __attribute__((fallthrough));
    case WAITER_PASSED: /* only its own poll brings it back, so only that counts */
        MARK("waiter_silent_too_long");
        core->waiters.expired++;
        waiter_remove(core, slot);
        return;
    case WAITER_PLACE:
        waiter_remove(core, slot);
        return;
    case WAITER_OFFERED:
    case WAITER_EXPECTING:
        grant_due(core, slot);
        return;
    case WAITER_NEW:
    case WAITER_CALLING:
        break;
    }
    UNREACHABLE();
}

bool waiter_work(struct core *core)
{
    struct waiters *all = &core->waiters;
    uint32_t slot;
    for (uint32_t i = 0; i < OVERDUE_PER_TURN; i++) {
        if ((slot = timers_take(&all->timers, core->now_ns)) == SLOT_NONE)
            break;
        overdue(core, slot);
    }
    waiter_wake_leavers(core);
    for (uint32_t i = 0; i < WOKEN_PER_TURN && !core_is_full(core); i++) {
        if ((slot = waiter_wake_take(core)) == SLOT_NONE)
            break;
        look_again(core, slot);
    }
    return !list_is_empty(&all->wake_turns) || timers_next_ns(&all->timers) <= core->now_ns;
}

uint64_t waiter_deadline_ns(const struct core *core)
{
    /* A full batch lets nobody in; what is durable next brings the next turn by itself. */
    if (!list_is_empty(&core->waiters.wake_turns) && !core_is_full(core))
        return core->now_ns;
    if (!list_is_empty(&core->owners.leaving))
        return core->now_ns;
    return timers_next_ns(&core->waiters.timers);
}

/*
 * lock_plan.c -- see lock_plan.h.
 *
 * Taking a range, with what the owner already holds there and right beside it:
 *
 *            start        end
 *   ====A====|             |===A===      alike (mode and stamp): one of them becomes the new lock
 *   ----B----|-----        |             of another kind, reaching out: cut off, a rest stays
 *            | --C--       |             of another kind, inside: goes; if nothing is alike, one of
 *            |             |             these becomes the new lock
 *   ---------|------D------|-------      reaching out on both sides: split in two
 *
 * So a slot is changed rather than freed and used again, and a repeat writes nothing. All of it is
 * in one batch, because a batch is taken between steps and never inside one (R-RNG-4).
 */
#include "core/lock_plan.h"

#include "base/check.h"
#include "core/lock_element.h"
#include "core/lock_range.h"
#include "core/state.h"

/*
 * A client may still send an old state while what it took under older ones is being freed. What is
 * granted now is not among that: it is stamped as the oldest that stays.
 */
bool lock_plan_shape(struct core *core, const struct lock_want *want, struct lock *ret)
{
    CHECK(want->claim.start <= want->claim.end);
    const struct client *client = client_at(core, owner_at(core, want->claim.owner)->client);
    struct lock fresh = {
        .claim = want->claim,
        .len = want->len,
        .granted_ns = want->wall_ns,
        .link = SLOT_NONE,
        .asked = want->asked,
        .state = client_stamp(client, want->state),
        .incarnation = client->stored.incarnation,
        .flags = want->is_unmonitored ? RECORD_LOCK_UNMONITORED : 0U,
    };
    fresh.oh = intern_add(&core->locks.ohs, want->oh);
    if (fresh.oh == SLOT_NONE)
        return false;
    *ret = fresh;
    return true;
}

/* Nothing of it is left when the owner takes or gives up this range of it. */
static bool is_cleared(const struct core *core, const struct lock *lock, const struct claim *range)
{
    return claim_is_inside(&lock->claim, range) || lock_element_is_doomed(core, lock);
}

bool lock_plan_is_split(const struct core *core, const struct lock *lock, const struct claim *range)
{
    struct claim_rests rests = claim_rests(&lock->claim, range);
    return rests.has_left && rests.has_right && !lock_element_is_doomed(core, lock);
}

void lock_plan_settle(struct core *core, const struct lock *lock)
{
    CHECK(unsettled_settle(core, &lock->claim));
}

void lock_plan_cut(struct core *core, uint32_t slot, const struct claim *range)
{
    struct lock rest = *lock_at(core, slot);
    if (is_cleared(core, &rest, range)) {
        lock_plan_settle(core, &rest);
        lock_element_remove(core, slot);
        return;
    }
    struct claim_rests rests = claim_rests(&rest.claim, range);
    if (rests.has_left) {
        rest.claim = rests.left;
        rest.len = claim_len(&rest.claim);
        lock_element_change(core, slot, &rest);
    }
    if (rests.has_right) {
        rest.claim = rests.right;
        rest.len = claim_len(&rest.claim);
        if (!rests.has_left) {
            lock_element_change(core, slot, &rest);
        } else {
            MARK("lock_split");
            (void)lock_element_add(core, &rest);
        }
    }
}

struct lock_plan lock_plan_make(const struct core *core, const struct lock *fresh)
{
    struct lock_plan plan = {.reach = claim_widened(&fresh->claim),
                             .merged = fresh->claim,
                             .asked = fresh->asked,
                             .kept = SLOT_NONE,
                             .is_alone = true};
    bool has_alike = false, has_split = false;
    plan.first = lock_range_first_own(core, &plan.reach);
    uint32_t slot = plan.first;
    for (; slot != SLOT_NONE; slot = lock_range_next_own(core, slot)) {
        const struct lock *lock = lock_at(core, slot);
        if (!claim_overlaps(&lock->claim, &plan.reach))
            break;
        if (lock_element_is_alike(lock, fresh)) {
            if (!has_alike)
                plan.kept = slot;
            has_alike = true;
            if (lock->asked > plan.asked)
                plan.asked = lock->asked;
            if (lock->claim.start < plan.merged.start)
                plan.merged.start = lock->claim.start;
            if (lock->claim.end > plan.merged.end)
                plan.merged.end = lock->claim.end;
        } else if (claim_overlaps(&lock->claim, &fresh->claim)) {
            if (plan.kept == SLOT_NONE && is_cleared(core, lock, &fresh->claim))
                plan.kept = slot;
            has_split = has_split || lock_plan_is_split(core, lock, &fresh->claim);
        } else {
            continue;
        }
        plan.is_alone = false;
    }
    plan.slots = (plan.kept == SLOT_NONE ? 1U : 0U) + (has_split ? 1U : 0U);
    return plan;
}

/* Everything of the owner's that is in the way of the plan, but for what is kept. Something is kept
 * if anything goes, so that owner, file and holding stay. */
static void clear_range(struct core *core, const struct lock *fresh, const struct lock_plan *plan)
{
    uint32_t next;
    for (uint32_t slot = plan->first; slot != SLOT_NONE; slot = next) {
        const struct lock *lock = lock_at(core, slot);
        if (!claim_overlaps(&lock->claim, &plan->reach))
            return;
        next = lock_range_next_own(core, slot);
        if (slot == plan->kept)
            continue;
        if (lock_element_is_alike(lock, fresh)) {
            MARK("lock_merged");
            lock_element_remove(core, slot);
        } else if (claim_overlaps(&lock->claim, &fresh->claim)) {
            lock_plan_cut(core, slot, &fresh->claim);
        }
    }
}

/* The kept lock becomes the fresh one. */
static void renew(struct core *core, const struct lock *fresh, const struct lock_plan *plan)
{
    struct lock *old = lock_at(core, plan->kept);
    struct lock to = *fresh;
    to.claim = plan->merged;
    to.asked = plan->asked;
    bool is_as_asked = claim_is_same_range(&to.claim, &fresh->claim);
    bool is_same = claim_is_same_range(&to.claim, &old->claim) && lock_element_is_alike(old, &to);
    if (is_same && old->oh == to.oh) {
        MARK("lock_repeated");
        /* It was asked for again, also if only in part, and the answer says that it is held. */
        old->serial = ++core->locks.serial;
        old->asked = to.asked;
        old->is_doubtful = false;
        return;
    }
    if (lock_element_is_doomed(core, old))
        lock_plan_settle(core, old); /* nobody will reclaim what it covered beyond the fresh one */
    if (is_same)
        to.granted_ns = old->granted_ns; /* only its oh is new */
    if (!is_as_asked)
        to.len = is_same ? old->len : claim_len(&to.claim);
    lock_element_change(core, plan->kept, &to);
}

void lock_plan_carry_out(struct core *core, const struct lock *fresh, const struct lock_plan *plan)
{
    clear_range(core, fresh, plan);
    if (plan->kept == SLOT_NONE)
        (void)lock_element_add(core, fresh);
    else
        renew(core, fresh, plan);
}

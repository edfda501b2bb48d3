/*
 * lock_range.c -- finding locks by range; see lock_range.h and lock.h.
 *
 * Who is in the way of a range is the business of span.h; what an owner holds is a tree of its own.
 */
#include "core/lock_range.h"

#include "core/lock_element.h"
#include "core/state.h"

bool lock_range_before(const void *context, uint32_t a, uint32_t b)
{
    const struct core *core = context;
    uint64_t start_a = lock_at(core, a)->claim.start;
    uint64_t start_b = lock_at(core, b)->claim.start;
    return start_a != start_b ? start_a < start_b : a < b;
}

const struct claim *lock_range_claim(const void *context, uint32_t slot)
{
    return &lock_at(context, slot)->claim;
}

uint32_t lock_find_conflict(const struct core *core, const struct claim *claim)
{
    return span_find(&core->locks.by_start, file_at(core, claim->file)->locks, claim);
}

uint32_t lock_next_conflict(const struct core *core, const struct claim *claim, uint32_t after)
{
    return span_find_after(&core->locks.by_start, file_at(core, claim->file)->locks, claim, after);
}

uint32_t lock_range_first_own(const struct core *core, const struct claim *claim)
{
    uint32_t holding = lock_element_holding(core, claim->owner, claim->file);
    if (holding == SLOT_NONE)
        return SLOT_NONE;
    /* They do not overlap, so they are in order of their ends too. */
    const struct tree *tree = &core->locks.own;
    const struct holding *own = table_at(&core->locks.holdings, holding);
    uint32_t slot = tree_top(own->locks), found = SLOT_NONE;
    while (slot != SLOT_NONE) {
        if (lock_at(core, slot)->claim.end >= claim->start) {
            found = slot;
            slot = tree_left(tree, slot);
        } else {
            slot = tree_right(tree, slot);
        }
    }
    return found;
}

bool lock_covers(const struct core *core, const struct claim *claim)
{
    struct claim rest = *claim;
    uint32_t slot = lock_range_first_own(core, &rest);
    for (; slot != SLOT_NONE; slot = tree_next(&core->locks.own, slot)) {
        const struct lock *lock = lock_at(core, slot);
        if (lock->claim.start > rest.start || lock_element_is_doomed(core, lock) ||
            !claim_has_mode(&lock->claim, claim))
            return false;
        if (lock->claim.end >= claim->end)
            return true;
        rest.start = lock->claim.end + 1;
    }
    return false;
}

/*
 * lock_range.c -- finding locks by range; see lock_range.h and lock.h.
 *
 * Who is in the way of a range is the business of span.h. What an owner holds in a file is a set of
 * its own, and the first of it that reaches a byte is the first that is in the way of somebody who
 * wants everything from there on.
 */
#include "core/lock_range.h"

#include "core/lock_element.h"
#include "core/state.h"

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
    const struct claim all_behind = {.start = claim->start,
                                     .end = UINT64_MAX,
                                     .owner = SLOT_NONE,
                                     .file = claim->file,
                                     .exclusive = true};
    const struct holding *own = table_at(&core->locks.holdings, holding);
    return span_find(&core->locks.own, own->locks, &all_behind);
}

uint32_t lock_range_next_own(const struct core *core, uint32_t slot)
{
    const struct holding *own = table_at(&core->locks.holdings, lock_holding(lock_at(core, slot)));
    return span_next(&core->locks.own, own->locks, slot);
}

bool lock_covers(const struct core *core, const struct claim *claim)
{
    struct claim rest = *claim;
    uint32_t slot = lock_range_first_own(core, &rest);
    for (; slot != SLOT_NONE; slot = lock_range_next_own(core, slot)) {
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

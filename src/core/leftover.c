/*
 * leftover.c -- see leftover.h.
 *
 * Always true, and asserted by lock_check(): a left-over offer is on the chain of its client, which
 * counts it; it has no waiter.
 */
#include "core/leftover.h"

#include "base/check.h"
#include "core/lock_element.h"
#include "core/lock_range.h"
#include "core/state.h"

enum { CUT_MAX = 16 }; /* of one request; each puts two records at most */

void leftover_add(struct core *core, uint32_t slot)
{
    struct lock *lock = lock_at(core, slot);
    CHECK((lock->flags & RECORD_LOCK_OFFER) && lock->waiter == SLOT_NONE);
    if (!lock->is_left_over)
        lock_element_leave_over(core, slot);
}

static uint32_t client_of(const struct core *core, uint32_t owner)
{
    return owner_at(core, owner)->client;
}

/* One of the owner's left-over offers that this byte is in, in that mode. */
static uint32_t find_at(const struct core *core, uint32_t owner, uint32_t file, uint64_t byte,
                        bool exclusive)
{
    const struct chains *chains = &core->locks.left_over;
    uint32_t slot = chains_first(chains, client_of(core, owner));
    for (; slot != SLOT_NONE; slot = chains_next(chains, slot)) {
        const struct lock *lock = lock_at(core, slot);
        bool is_strong = !exclusive || (lock->flags & RECORD_LOCK_EXCLUSIVE) != 0;
        if (lock->owner == owner && lock->file == file && lock->start <= byte &&
            lock->end >= byte && is_strong && !lock_element_is_doomed(core, lock))
            break;
    }
    return slot;
}

bool leftover_covers(const struct core *core, uint32_t owner, uint32_t file, uint64_t start,
                     uint64_t end, bool exclusive)
{
    if (client_at(core, client_of(core, owner))->left_over_count == 0)
        return false;
    for (uint64_t from = start;;) {
        uint32_t slot = lock_range_first_own(core, owner, file, from);
        if (slot == SLOT_NONE || lock_at(core, slot)->start > from ||
            !lock_covers(core, owner, file, from, from, exclusive))
            slot = find_at(core, owner, file, from, exclusive);
        if (slot == SLOT_NONE)
            return false;
        if (lock_at(core, slot)->end >= end)
            return true;
        from = lock_at(core, slot)->end + 1;
    }
}

static void add_rest(struct core *core, struct lock rest, uint64_t start, uint64_t end)
{
    rest.start = start;
    rest.end = end;
    rest.len = lock_element_len(start, end);
    leftover_add(core, lock_element_add(core, &rest));
}

/* Takes a range out of an offer. False: a rest finds no slot. */
static bool cut(struct core *core, uint32_t slot, uint64_t start, uint64_t end)
{
    struct lock offer = *lock_at(core, slot);
    bool has_left = offer.start<start, has_right = offer.end> end;
    if (has_left && has_right && lock_element_free_count(core) == 0)
        return false;
    uint32_t oh = intern_add(&core->locks.ohs, intern_bytes(&core->locks.ohs, offer.oh));
    CHECK(oh == offer.oh);
    file_keep(core, offer.file);
    lock_element_remove(core, slot);
    offer.is_left_over = false;
    if (has_left)
        add_rest(core, offer, offer.start, start - 1);
    if (has_right)
        add_rest(core, offer, end + 1, offer.end);
    file_release(core, offer.file);
    (void)intern_release(&core->locks.ohs, oh);
    return true;
}

void leftover_settle(struct core *core, uint32_t owner, uint32_t file, uint64_t start, uint64_t end)
{
    const struct chains *chains = &core->locks.left_over;
    uint32_t client = client_of(core, owner), left = CUT_MAX, next;
    for (uint32_t slot = chains_first(chains, client); slot != SLOT_NONE && left > 0; slot = next) {
        const struct lock *lock = lock_at(core, slot);
        next = chains_next(chains, slot); /* rests go to the front */
        if (lock->owner != owner || lock->file != file || lock->start > end || lock->end < start)
            continue;
        MARK("leftover_cut");
        left -= cut(core, slot, start, end) ? 1 : 0;
    }
}

uint32_t leftover_drop(struct core *core, uint32_t client, uint32_t max)
{
    uint32_t count = 0, slot;
    while (count < max && (slot = chains_first(&core->locks.left_over, client)) != SLOT_NONE) {
        MARK("leftover_dropped");
        lock_withdraw(core, slot);
        count++;
    }
    return count;
}

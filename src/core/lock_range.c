/*
 * lock_range.c -- finding locks by range; see lock_range.h and lock.h.
 *
 * The elements of a file are in order of their first byte, so those that may overlap a range are a
 * prefix of the order: the ones that begin before its end. Which of them reach into it the order
 * does not say; a hundred thousand may lie before it and end before it. So every subtree knows how
 * far it reaches, and a search never goes down where nothing reaches far enough.
 *
 * "How far" must leave out the asker's own elements, or an owner with many locks would search
 * through all of them. It is enough to know two ends per subtree: the furthest, and the furthest of
 * all owners but the one that has the furthest. For any owner one of the two is the answer, and
 * both follow from those of the children (see `join`): exactly, not as a guess. A shared request
 * looks at exclusive elements only, so there is a second pair for these.
 *
 * With exact sums a search never turns back: where the sum of a left subtree says that something in
 * it reaches into the range, the first such element is in there, and if that one begins behind the
 * range, so does everything after it. One way down, O(log n).
 *
 * Always true, and asserted by lock_check(): the sums of an element are those of its subtree.
 */
#include "core/lock_range.h"

#include "base/check.h"
#include "core/lock_element.h"
#include "core/state.h"

bool lock_range_before(const void *context, uint32_t a, uint32_t b)
{
    const struct core *core = context;
    uint64_t start_a = lock_at(core, a)->claim.start;
    uint64_t start_b = lock_at(core, b)->claim.start;
    return start_a != start_b ? start_a < start_b : a < b;
}

static const struct lock_reach nothing = {.owner = SLOT_NONE, .other_owner = SLOT_NONE};

/* One more end of one owner. */
static void extend(struct lock_reach *reach, uint64_t end, uint32_t owner)
{
    if (owner == SLOT_NONE)
        return;
    if (reach->owner == SLOT_NONE || owner == reach->owner) {
        if (reach->owner == SLOT_NONE || end > reach->end)
            reach->end = end;
        reach->owner = owner;
    } else if (end > reach->end) {
        reach->other_end = reach->end;
        reach->other_owner = reach->owner;
        reach->end = end;
        reach->owner = owner;
    } else if (reach->other_owner == SLOT_NONE || end > reach->other_end) {
        reach->other_end = end;
        reach->other_owner = owner;
    }
}

/*
 * Two pairs into one. Whatever owner O is left out, the furthest end of the rest in `from` is one
 * of the two ends it has, and belongs to another owner than O: so adding both ends loses nothing.
 */
static void join(struct lock_reach *reach, const struct lock_reach *from)
{
    extend(reach, from->end, from->owner);
    extend(reach, from->other_end, from->other_owner);
}

static bool is_same(const struct lock_reach *a, const struct lock_reach *b)
{
    return a->end == b->end && a->other_end == b->other_end && a->owner == b->owner &&
           a->other_owner == b->other_owner;
}

bool lock_range_sum(void *context, uint32_t slot, uint32_t left, uint32_t right)
{
    const struct core *core = context;
    struct lock *lock = lock_at(core, slot);
    struct lock_reach any = nothing, exclusives = nothing;
    extend(&any, lock->claim.end, lock->claim.owner);
    if (lock->claim.exclusive)
        extend(&exclusives, lock->claim.end, lock->claim.owner);
    const uint32_t children[] = {left, right};
    for (uint32_t i = 0; i < 2; i++) {
        if (children[i] == SLOT_NONE)
            continue;
        const struct lock *child = lock_at(core, children[i]);
        join(&any, &child->any);
        join(&exclusives, &child->exclusives);
    }
    bool is_changed = !is_same(&any, &lock->any) || !is_same(&exclusives, &lock->exclusives);
    lock->any = any;
    lock->exclusives = exclusives;
    return is_changed;
}

/* Does another owner than the claim's reach its first byte or go beyond it? */
static bool reaches(const struct lock_reach *reach, const struct claim *claim)
{
    if (reach->owner != claim->owner)
        return reach->owner != SLOT_NONE && reach->end >= claim->start;
    return reach->other_owner != SLOT_NONE && reach->other_end >= claim->start;
}

void lock_range_see_none(struct lock_range_seen *ret)
{
    *ret = (struct lock_range_seen){nothing, nothing};
}

bool lock_range_see(struct lock_range_seen *seen, const struct claim *claim)
{
    bool is_met = reaches(claim->exclusive ? &seen->any : &seen->exclusives, claim);
    extend(&seen->any, claim->end, claim->owner);
    if (claim->exclusive)
        extend(&seen->exclusives, claim->end, claim->owner);
    return is_met;
}

/* Does anything below and in this slot, of another owner and in a mode that matters, reach the
 * claim's first byte or go beyond it? */
static bool subtree_reaches(const struct core *core, uint32_t slot, const struct claim *claim)
{
    if (slot == SLOT_NONE)
        return false;
    const struct lock *lock = lock_at(core, slot);
    return reaches(claim->exclusive ? &lock->any : &lock->exclusives, claim);
}

/* The first element of a subtree that conflicts with the claim. */
static uint32_t find_below(const struct core *core, uint32_t slot, const struct claim *claim)
{
    const struct tree *tree = &core->locks.by_start;
    if (!subtree_reaches(core, slot, claim))
        return SLOT_NONE;
    for (;;) {
        uint32_t left = tree_left(tree, slot);
        if (subtree_reaches(core, left, claim)) {
            slot = left;
            continue;
        }
        const struct lock *lock = lock_at(core, slot);
        if (lock->claim.start > claim->end)
            return SLOT_NONE;
        if (claim_conflicts(&lock->claim, claim))
            return slot;
        slot = tree_right(tree, slot);
        CHECK(subtree_reaches(core, slot, claim)); /* the sum said so, and it is nowhere else */
    }
}

uint32_t lock_find_conflict(const struct core *core, const struct claim *claim)
{
    return find_below(core, tree_top(file_at(core, claim->file)->locks), claim);
}

uint32_t lock_next_conflict(const struct core *core, const struct claim *claim, uint32_t after)
{
    const struct tree *tree = &core->locks.by_start;
    /* On the way down to `after`, the last slot that comes behind it and has something: what is
     * below `after` itself comes first, then that slot, then what is right of that slot. */
    uint32_t slot = tree_top(file_at(core, claim->file)->locks), later = SLOT_NONE;
    while (slot != after) {
        CHECK(slot != SLOT_NONE);
        if (!lock_range_before(core, after, slot)) {
            slot = tree_right(tree, slot);
            continue;
        }
        if (claim_conflicts(&lock_at(core, slot)->claim, claim) ||
            subtree_reaches(core, tree_right(tree, slot), claim))
            later = slot;
        slot = tree_left(tree, slot);
    }
    uint32_t right = tree_right(tree, after);
    if (subtree_reaches(core, right, claim))
        return find_below(core, right, claim);
    if (later == SLOT_NONE || lock_at(core, later)->claim.start > claim->end)
        return SLOT_NONE;
    if (claim_conflicts(&lock_at(core, later)->claim, claim))
        return later;
    return find_below(core, tree_right(tree, later), claim);
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

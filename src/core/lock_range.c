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
    uint64_t start_a = lock_at(core, a)->start, start_b = lock_at(core, b)->start;
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
    struct lock_reach any = nothing, exclusive = nothing;
    extend(&any, lock->end, lock->owner);
    if (lock->flags & RECORD_LOCK_EXCLUSIVE)
        extend(&exclusive, lock->end, lock->owner);
    const uint32_t children[] = {left, right};
    for (uint32_t i = 0; i < 2; i++) {
        if (children[i] == SLOT_NONE)
            continue;
        const struct lock *child = lock_at(core, children[i]);
        join(&any, &child->any);
        join(&exclusive, &child->exclusive);
    }
    bool is_changed = !is_same(&any, &lock->any) || !is_same(&exclusive, &lock->exclusive);
    lock->any = any;
    lock->exclusive = exclusive;
    return is_changed;
}

/* What stands in the way of whom. */
struct search {
    uint64_t start, end;
    bool exclusive;
    uint32_t owner; /* SLOT_NONE: nobody's */
};

/* Does anything below and in this slot, of another owner and in a mode that matters, reach the
 * range's first byte or go beyond it? */
static bool subtree_reaches(const struct core *core, uint32_t slot, const struct search *search)
{
    if (slot == SLOT_NONE)
        return false;
    const struct lock *lock = lock_at(core, slot);
    const struct lock_reach *reach = search->exclusive ? &lock->any : &lock->exclusive;
    if (reach->owner != search->owner)
        return reach->owner != SLOT_NONE && reach->end >= search->start;
    return reach->other_owner != SLOT_NONE && reach->other_end >= search->start;
}

static bool reaches(const struct lock *lock, const struct search *search)
{
    return lock->owner != search->owner && lock->end >= search->start &&
           (search->exclusive || (lock->flags & RECORD_LOCK_EXCLUSIVE));
}

/* The first element of a subtree that reaches the range, if it begins in or before it. */
static uint32_t find_below(const struct core *core, uint32_t slot, const struct search *search)
{
    const struct tree *tree = &core->locks.by_start;
    if (!subtree_reaches(core, slot, search))
        return SLOT_NONE;
    for (;;) {
        uint32_t left = tree_left(tree, slot);
        if (subtree_reaches(core, left, search)) {
            slot = left;
            continue;
        }
        const struct lock *lock = lock_at(core, slot);
        if (lock->start > search->end)
            return SLOT_NONE;
        if (reaches(lock, search))
            return slot;
        slot = tree_right(tree, slot);
        CHECK(subtree_reaches(core, slot, search)); /* the sum said so, and it is nowhere else */
    }
}

uint32_t lock_find_conflict(const struct core *core, uint32_t file, uint64_t start, uint64_t end,
                            bool exclusive, uint32_t owner)
{
    struct search search = {start, end, exclusive, owner};
    return find_below(core, tree_top(file_at(core, file)->locks), &search);
}

uint32_t lock_next_conflict(const struct core *core, uint32_t file, uint64_t start, uint64_t end,
                            bool exclusive, uint32_t owner, uint32_t after)
{
    const struct tree *tree = &core->locks.by_start;
    struct search search = {start, end, exclusive, owner};
    /* On the way down to `after`, the last slot that comes behind it and has something: what is
     * below `after` itself comes first, then that slot, then what is right of that slot. */
    uint32_t slot = tree_top(file_at(core, file)->locks), later = SLOT_NONE;
    while (slot != after) {
        CHECK(slot != SLOT_NONE);
        if (!lock_range_before(core, after, slot)) {
            slot = tree_right(tree, slot);
            continue;
        }
        if (reaches(lock_at(core, slot), &search) ||
            subtree_reaches(core, tree_right(tree, slot), &search))
            later = slot;
        slot = tree_left(tree, slot);
    }
    uint32_t right = tree_right(tree, after);
    if (subtree_reaches(core, right, &search))
        return find_below(core, right, &search);
    if (later == SLOT_NONE || lock_at(core, later)->start > end)
        return SLOT_NONE;
    if (reaches(lock_at(core, later), &search))
        return later;
    return find_below(core, tree_right(tree, later), &search);
}

uint32_t lock_range_first_own(const struct core *core, uint32_t owner, uint32_t file, uint64_t from)
{
    uint32_t holding = lock_element_holding(core, owner, file);
    if (holding == SLOT_NONE)
        return SLOT_NONE;
    /* They do not overlap, so they are in order of their ends too. */
    const struct tree *tree = &core->locks.own;
    const struct holding *own = table_at(&core->locks.holdings, holding);
    uint32_t slot = tree_top(own->locks), found = SLOT_NONE;
    while (slot != SLOT_NONE) {
        if (lock_at(core, slot)->end >= from) {
            found = slot;
            slot = tree_left(tree, slot);
        } else {
            slot = tree_right(tree, slot);
        }
    }
    return found;
}

bool lock_covers(const struct core *core, uint32_t owner, uint32_t file, uint64_t start,
                 uint64_t end, bool exclusive)
{
    uint32_t slot = lock_range_first_own(core, owner, file, start);
    for (; slot != SLOT_NONE; slot = tree_next(&core->locks.own, slot)) {
        const struct lock *lock = lock_at(core, slot);
        if (lock->start > start || lock_element_is_doomed(core, lock))
            return false;
        if (exclusive && !(lock->flags & RECORD_LOCK_EXCLUSIVE))
            return false;
        if (lock->end >= end)
            return true;
        start = lock->end + 1;
    }
    return false;
}

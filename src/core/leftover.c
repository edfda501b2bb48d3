/*
 * leftover.c -- see leftover.h.
 *
 * Always true, and asserted by lock_check(): a left-over offer is on the chain of its client, which
 * counts it, and in the tree of its owner; it has no waiter.
 *
 * The tree of an owner is by file and first byte, with the furthest end of each subtree. What that
 * says of a subtree with several files is too much rather than too little; such subtrees lie only
 * on the two edges of a file, so a search costs O(log n) (P7).
 */
#include "core/leftover.h"

#include "base/check.h"
#include "core/lock_element.h"
#include "core/lock_range.h"
#include "core/state.h"

enum { CUT_MAX = 2000, CUT_PUTS_MAX = 40 }; /* of one request; each puts three records at most */

static bool comes_before(const void *context, uint32_t a, uint32_t b)
{
    const struct core *core = context;
    const struct lock *x = lock_at(core, a), *y = lock_at(core, b);
    if (x->file != y->file)
        return x->file < y->file;
    return x->start != y->start ? x->start < y->start : a < b;
}

static bool sum_up(void *context, uint32_t slot, uint32_t left, uint32_t right)
{
    const struct core *core = context;
    struct lock *lock = lock_at(core, slot);
    uint64_t end = lock->end, before = lock->left_over_end;
    if (left != SLOT_NONE && lock_at(core, left)->left_over_end > end)
        end = lock_at(core, left)->left_over_end;
    if (right != SLOT_NONE && lock_at(core, right)->left_over_end > end)
        end = lock_at(core, right)->left_over_end;
    lock->left_over_end = end;
    return end != before;
}

int leftover_init(struct core *core, uint32_t slots_max)
{
    struct locks *all = &core->locks;
    int err = chains_init(&all->left_over, core->clients.table.max, slots_max);
    if (err == 0)
        err = tree_init(&all->left_over_own, slots_max, core->seed, comes_before, sum_up, core);
    return err;
}

void leftover_done(struct core *core)
{
    chains_done(&core->locks.left_over);
    tree_done(&core->locks.left_over_own);
}

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

struct range {
    uint32_t file;
    uint64_t start, end;
    bool is_owned;  /* only what its owner may have, */
    bool exclusive; /* and have in this mode */
};

static bool fits(const struct core *core, const struct lock *lock, const struct range *range)
{
    bool is_strong = !range->exclusive || (lock->flags & RECORD_LOCK_EXCLUSIVE) != 0;
    return lock->end >= range->start &&
           (!range->is_owned || (is_strong && !lock_element_is_doomed(core, lock)));
}

/* The first one that is in this range. The depth of a treap bounds the recursion. */
static uint32_t find_below(const struct core *core, uint32_t slot, const struct range *range)
{
    const struct tree *tree = &core->locks.left_over_own;
    while (slot != SLOT_NONE) {
        const struct lock *lock = lock_at(core, slot);
        if (lock->left_over_end < range->start)
            return SLOT_NONE;
        if (lock->file < range->file) {
            slot = tree_right(tree, slot);
            continue;
        }
        if (lock->file > range->file || lock->start > range->end) {
            slot = tree_left(tree, slot);
            continue;
        }
        uint32_t found = find_below(core, tree_left(tree, slot), range);
        if (found != SLOT_NONE)
            return found;
        if (fits(core, lock, range))
            return slot;
        slot = tree_right(tree, slot);
    }
    return SLOT_NONE;
}

static uint32_t find(const struct core *core, uint32_t owner, struct range range)
{
    return find_below(core, tree_top(owner_at(core, owner)->left_over), &range);
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
            slot = find(core, owner, (struct range){file, from, from, true, exclusive});
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
    uint32_t rests = (has_left ? 1U : 0U) + (has_right ? 1U : 0U);
    if (lock_element_free_count(core) + (echo_is_due(core, slot) ? 0U : 1U) < rests)
        return false;
    uint32_t oh = intern_add(&core->locks.ohs, intern_bytes(&core->locks.ohs, offer.oh));
    CHECK(oh == offer.oh);
    file_keep(core, offer.file);
    if (!echo_keep(core, slot))
        lock_element_remove(core, slot);
    offer.is_left_over = offer.is_echoed = false;
    if (has_left)
        add_rest(core, offer, offer.start, start - 1);
    if (has_right)
        add_rest(core, offer, end + 1, offer.end);
    file_release(core, offer.file);
    (void)intern_release(&core->locks.ohs, oh);
    return true;
}

bool leftover_meets(const struct core *core, uint32_t owner, uint32_t file, uint64_t start,
                    uint64_t end)
{
    return find(core, owner, (struct range){file, start, end, false, false}) != SLOT_NONE;
}

void leftover_settle(struct core *core, uint32_t owner, uint32_t file, uint64_t start, uint64_t end)
{
    struct range range = {file, start, end, false, false};
    uint32_t left = CUT_MAX, puts_max = core->dirty.put_count + CUT_PUTS_MAX, slot;
    while (left-- > 0 && core->dirty.put_count < puts_max &&
           (slot = find(core, owner, range)) != SLOT_NONE && cut(core, slot, start, end))
        MARK("leftover_cut");
}

uint32_t leftover_drop(struct core *core, uint32_t client, uint32_t max)
{
    uint32_t count = 0, slot;
    while (count < max && !core_is_full(core) &&
           (slot = chains_first(&core->locks.left_over, client)) != SLOT_NONE) {
        MARK("leftover_dropped");
        lock_withdraw(core, slot);
        count++;
    }
    return count;
}

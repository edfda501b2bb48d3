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

#include <errno.h>
#include <stdlib.h>

enum { CUT_MAX = 2000, CUT_PUTS_MAX = 40 }; /* of one request; each puts three records at most */

static bool comes_before(const void *context, uint32_t a, uint32_t b)
{
    const struct core *core = context;
    const struct lock *x = lock_at(core, a), *y = lock_at(core, b);
    if (x->claim.file != y->claim.file)
        return x->claim.file < y->claim.file;
    return x->claim.start != y->claim.start ? x->claim.start < y->claim.start : a < b;
}

static bool sum_up(void *context, uint32_t slot, uint32_t left, uint32_t right)
{
    const struct core *core = context;
    uint64_t *ends = core->locks.left_over_ends;
    uint64_t end = lock_at(core, slot)->claim.end, before = ends[slot];
    if (left != SLOT_NONE && ends[left] > end)
        end = ends[left];
    if (right != SLOT_NONE && ends[right] > end)
        end = ends[right];
    ends[slot] = end;
    return end != before;
}

int leftover_init(struct core *core, uint32_t slots_max)
{
    struct locks *all = &core->locks;
    int err = chains_init(&all->left_over, core->clients.table.max, slots_max);
    if (err == 0)
        err = tree_init(&all->left_over_own, slots_max, core->seed, comes_before, sum_up, core);
    if (err != 0)
        return err;
    all->left_over_ends = calloc(slots_max > 0 ? slots_max : 1, sizeof *all->left_over_ends);
    return all->left_over_ends == NULL ? -ENOMEM : 0;
}

void leftover_done(struct core *core)
{
    chains_done(&core->locks.left_over);
    tree_done(&core->locks.left_over_own);
    free(core->locks.left_over_ends);
    core->locks.left_over_ends = NULL;
}

void leftover_add(struct core *core, uint32_t slot)
{
    struct lock *lock = lock_at(core, slot);
    CHECK((lock->flags & RECORD_LOCK_OFFER) && lock_waiter(lock) == SLOT_NONE);
    if (!lock->is_left_over)
        lock_element_leave_over(core, slot);
}

/* What a search among an owner's left-over offers is for. */
struct search {
    const struct claim *claim;
    bool is_owned; /* only what its owner may have, in the mode of the claim */
};

static bool fits(const struct core *core, const struct lock *lock, const struct search *search)
{
    return claim_overlaps(&lock->claim, search->claim) &&
           (!search->is_owned ||
            (claim_has_mode(&lock->claim, search->claim) && !lock_element_is_doomed(core, lock)));
}

/* The first one that fits. The depth of a treap bounds the recursion. */
static uint32_t find_below(const struct core *core, uint32_t slot, const struct search *search)
{
    const struct tree *tree = &core->locks.left_over_own;
    while (slot != SLOT_NONE) {
        const struct lock *lock = lock_at(core, slot);
        const struct claim *claim = search->claim;
        if (core->locks.left_over_ends[slot] < claim->start)
            return SLOT_NONE;
        if (lock->claim.file < claim->file) {
            slot = tree_right(tree, slot);
            continue;
        }
        if (lock->claim.file > claim->file || lock->claim.start > claim->end) {
            slot = tree_left(tree, slot);
            continue;
        }
        uint32_t found = find_below(core, tree_left(tree, slot), search);
        if (found != SLOT_NONE)
            return found;
        if (fits(core, lock, search))
            return slot;
        slot = tree_right(tree, slot);
    }
    return SLOT_NONE;
}

static uint32_t find(const struct core *core, const struct claim *claim, bool is_owned)
{
    struct search search = {claim, is_owned};
    return find_below(core, tree_top(owner_at(core, claim->owner)->left_over), &search);
}

bool leftover_covers(const struct core *core, const struct claim *claim)
{
    if (client_at(core, owner_at(core, claim->owner)->client)->recovery.left_over_count == 0)
        return false;
    for (struct claim byte = *claim;;) {
        byte.end = byte.start;
        uint32_t slot =
            lock_covers(core, &byte) ? lock_range_first_own(core, &byte) : find(core, &byte, true);
        if (slot == SLOT_NONE)
            return false;
        if (lock_at(core, slot)->claim.end >= claim->end)
            return true;
        byte.start = lock_at(core, slot)->claim.end + 1;
    }
}

static void add_rest(struct core *core, struct lock rest, struct claim claim)
{
    rest.claim = claim;
    rest.len = claim_len(&claim);
    leftover_add(core, lock_element_add(core, &rest));
}

/* Takes a range out of an offer. False: a rest finds no slot. */
static bool cut(struct core *core, uint32_t slot, const struct claim *range)
{
    struct lock offer = *lock_at(core, slot);
    struct claim_rests rests = claim_rests(&offer.claim, range);
    uint32_t count = (rests.has_left ? 1U : 0U) + (rests.has_right ? 1U : 0U);
    if (lock_element_free_count(core) + (echo_is_due(core, slot) ? 0U : 1U) < count)
        return false;
    uint32_t oh = intern_add(&core->locks.ohs, intern_bytes(&core->locks.ohs, offer.oh));
    CHECK(oh == offer.oh);
    file_keep(core, offer.claim.file);
    if (!echo_keep(core, slot))
        lock_element_remove(core, slot);
    offer.is_left_over = offer.is_echoed = false;
    if (rests.has_left)
        add_rest(core, offer, rests.left);
    if (rests.has_right)
        add_rest(core, offer, rests.right);
    file_release(core, offer.claim.file);
    (void)intern_release(&core->locks.ohs, oh);
    return true;
}

bool leftover_meets(const struct core *core, const struct claim *claim)
{
    return find(core, claim, false) != SLOT_NONE;
}

void leftover_cut(struct core *core, const struct claim *claim)
{
    uint32_t left = CUT_MAX, puts_max = core->dirty.put_count + CUT_PUTS_MAX, slot;
    while (left-- > 0 && core->dirty.put_count < puts_max &&
           (slot = find(core, claim, false)) != SLOT_NONE && cut(core, slot, claim))
        MARK("leftover_cut");
}

uint32_t leftover_drop(struct core *core, uint32_t client, uint32_t max)
{
    uint32_t count = 0, slot;
    while (count < max && !core_is_full(core) &&
           (slot = chains_first(&core->locks.left_over, client)) != SLOT_NONE) {
        MARK("leftover_dropped");
        lock_offer_withdraw(core, slot);
        count++;
    }
    return count;
}

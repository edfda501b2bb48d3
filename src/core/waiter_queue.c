/*
 * waiter_queue.c -- see waiter_queue.h.
 *
 * The tree of a file is in the order of first bytes. Every subtree knows how far it reaches and the
 * earliest place in it, so that a search leaves out what ends before the claim or came later.
 */
#include "core/waiter_queue.h"

#include "base/check.h"
#include "core/state.h"

enum { LOOKED_AT_MAX = 256 }; /* waiters of a file, in one search for an earlier one */

static bool comes_before(const void *context, uint32_t a, uint32_t b)
{
    const struct core *core = context;
    const struct waiter *x = waiter_at(core, a), *y = waiter_at(core, b);
    if (x->claim.start != y->claim.start)
        return x->claim.start < y->claim.start;
    return x->order > y->order;
}

static struct waiter_reach join(struct waiter_reach a, const struct waiter_reach *b)
{
    if (b->first_order == UINT64_MAX)
        return a;
    if (a.first_order == UINT64_MAX)
        return *b;
    return (struct waiter_reach){
        .end = a.end > b->end ? a.end : b->end,
        .first_order = a.first_order < b->first_order ? a.first_order : b->first_order,
    };
}

static bool is_same(const struct waiter_reach *a, const struct waiter_reach *b)
{
    return a->end == b->end && a->first_order == b->first_order;
}

static bool sum_up(void *context, uint32_t slot, uint32_t left, uint32_t right)
{
    struct core *core = context;
    struct waiter *w = waiter_at(core, slot);
    struct waiter_reach any = {.end = w->claim.end, .first_order = w->order};
    struct waiter_reach exclusives =
        w->claim.exclusive ? any : (struct waiter_reach){.first_order = UINT64_MAX};
    for (int i = 0; i < 2; i++) {
        uint32_t child = i == 0 ? left : right;
        if (child == SLOT_NONE)
            continue;
        any = join(any, &waiter_at(core, child)->any);
        exclusives = join(exclusives, &waiter_at(core, child)->exclusives);
    }
    bool is_changed = !is_same(&any, &w->any) || !is_same(&exclusives, &w->exclusives);
    w->any = any;
    w->exclusives = exclusives;
    return is_changed;
}

int waiter_queue_init(struct core *core, uint32_t slots_max)
{
    return tree_init(&core->waiters.queued, slots_max, core->seed, comes_before, sum_up, core);
}

void waiter_queue_done(struct core *core)
{
    tree_done(&core->waiters.queued);
}

void waiter_queue_add(struct core *core, uint32_t slot)
{
    const struct claim *claim = &waiter_at(core, slot)->claim;
    tree_add(&core->waiters.queued, &file_at(core, claim->file)->waiters, slot);
    owner_at(core, claim->owner)->queued_count++;
    owner_note(core, claim->owner);
}

void waiter_queue_remove(struct core *core, uint32_t slot)
{
    const struct claim *claim = &waiter_at(core, slot)->claim;
    tree_remove(&core->waiters.queued, &file_at(core, claim->file)->waiters, slot);
    owner_at(core, claim->owner)->queued_count--;
    owner_note(core, claim->owner);
}

/* What a search among the queued waiters of a file is for. */
struct search {
    const struct claim *claim;
    uint64_t order;
    uint32_t left; /* how many waiters may still be looked at */
};

/*
 * The first in the order of the tree, which of equal ranges is the latest. The depth of a treap
 * bounds the recursion. Where short early requests and long late ones are mixed the sums leave
 * nothing out, so the search has an end of its own: beyond it the order of the queue is not looked
 * at, which costs fairness and nothing else.
 */
static uint32_t find_below(const struct core *core, uint32_t slot, struct search *search)
{
    const struct tree *tree = &core->waiters.queued;
    const struct claim *claim = search->claim;
    while (slot != SLOT_NONE && search->left > 0) {
        search->left--;
        const struct waiter *w = waiter_at(core, slot);
        const struct waiter_reach *reach = claim->exclusive ? &w->any : &w->exclusives;
        if (reach->first_order >= search->order || reach->end < claim->start)
            return SLOT_NONE;
        uint32_t found = find_below(core, tree_left(tree, slot), search);
        if (found != SLOT_NONE)
            return found;
        if (w->order < search->order && claim_conflicts(&w->claim, claim))
            return slot;
        slot = w->claim.start <= claim->end ? tree_right(tree, slot) : SLOT_NONE;
    }
    return SLOT_NONE;
}

uint32_t waiter_queue_earlier(const struct core *core, const struct claim *claim, uint64_t order)
{
    struct search search = {claim, order, LOOKED_AT_MAX};
    return find_below(core, tree_top(file_at(core, claim->file)->waiters), &search);
}

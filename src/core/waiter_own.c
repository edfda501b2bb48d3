/*
 * waiter_own.c -- see waiter_own.h.
 *
 * The tree of an owner has all its files in it. What a sum says of a subtree with several files is
 * then too much rather than too little; such subtrees lie only on the two edges of the searched
 * file, so a search costs O(log n) for each one that it finds.
 */
#include "core/waiter_own.h"

#include "base/check.h"
#include "core/state.h"

static bool comes_before(const void *context, uint32_t a, uint32_t b)
{
    const struct core *core = context;
    const struct waiter *x = waiter_at(core, a), *y = waiter_at(core, b);
    if (x->claim.file != y->claim.file)
        return x->claim.file < y->claim.file;
    if (x->claim.start != y->claim.start)
        return x->claim.start < y->claim.start;
    return x->order < y->order;
}

static bool was_called(const struct waiter *w)
{
    return waiter_is_offered(w) && w->grant.attempt_count > 0;
}

static struct waiter_span span_of(const struct core *core, uint32_t slot, uint32_t left,
                                  uint32_t right)
{
    const struct waiter *w = waiter_at(core, slot);
    const uint32_t children[2] = {left, right};
    struct waiter_span span = {.first_end = w->claim.end,
                               .has_called = was_called(w),
                               .called_end = was_called(w) ? w->claim.end : 0};
    for (int i = 0; i < 2; i++) {
        if (children[i] == SLOT_NONE)
            continue;
        const struct waiter_span *below = &waiter_at(core, children[i])->own;
        if (below->first_end < span.first_end)
            span.first_end = below->first_end;
        if (below->has_called && below->called_end > span.called_end)
            span.called_end = below->called_end;
        span.has_called = span.has_called || below->has_called;
    }
    return span;
}

static bool is_same(const struct waiter_span *a, const struct waiter_span *b)
{
    return a->first_end == b->first_end && a->called_end == b->called_end &&
           a->has_called == b->has_called;
}

static bool sum_up(void *context, uint32_t slot, uint32_t left, uint32_t right)
{
    struct core *core = context;
    struct waiter_span span = span_of(core, slot, left, right);
    bool is_changed = !is_same(&span, &waiter_at(core, slot)->own);
    waiter_at(core, slot)->own = span;
    return is_changed;
}

int waiter_own_init(struct core *core, uint32_t slots_max)
{
    return tree_init(&core->waiters.own, slots_max, core->seed, comes_before, sum_up, core);
}

void waiter_own_done(struct core *core)
{
    tree_done(&core->waiters.own);
}

static tree_root *root_of(const struct core *core, uint32_t slot)
{
    return &owner_at(core, waiter_at(core, slot)->claim.owner)->waiters;
}

void waiter_own_add(struct core *core, uint32_t slot)
{
    tree_add(&core->waiters.own, root_of(core, slot), slot);
}

void waiter_own_remove(struct core *core, uint32_t slot)
{
    tree_remove(&core->waiters.own, root_of(core, slot), slot);
}

void waiter_own_touch(struct core *core, uint32_t slot)
{
    tree_touch(&core->waiters.own, slot);
}

/* The depth of a treap bounds the recursion, here and below. */
static uint32_t inside_below(const struct core *core, uint32_t slot, const struct claim *claim)
{
    const struct tree *tree = &core->waiters.own;
    while (slot != SLOT_NONE) {
        const struct waiter *w = waiter_at(core, slot);
        if (w->own.first_end > claim->end)
            return SLOT_NONE;
        if (w->claim.file < claim->file ||
            (w->claim.file == claim->file && w->claim.start < claim->start)) {
            slot = tree_right(tree, slot);
            continue;
        }
        if (w->claim.file > claim->file || w->claim.start > claim->end) {
            slot = tree_left(tree, slot);
            continue;
        }
        uint32_t found = inside_below(core, tree_left(tree, slot), claim);
        if (found != SLOT_NONE)
            return found;
        if (claim_is_inside(&w->claim, claim))
            return slot;
        slot = tree_right(tree, slot);
    }
    return SLOT_NONE;
}

static uint32_t called_below(const struct core *core, uint32_t slot, const struct claim *claim)
{
    const struct tree *tree = &core->waiters.own;
    while (slot != SLOT_NONE) {
        const struct waiter *w = waiter_at(core, slot);
        if (!w->own.has_called || w->own.called_end < claim->start)
            return SLOT_NONE;
        if (w->claim.file < claim->file) {
            slot = tree_right(tree, slot);
            continue;
        }
        if (w->claim.file > claim->file || w->claim.start > claim->end) {
            slot = tree_left(tree, slot);
            continue;
        }
        uint32_t found = called_below(core, tree_left(tree, slot), claim);
        if (found != SLOT_NONE)
            return found;
        if (was_called(w) && claim_overlaps(&w->claim, claim))
            return slot;
        slot = tree_right(tree, slot);
    }
    return SLOT_NONE;
}

uint32_t waiter_own_inside(const struct core *core, const struct claim *claim)
{
    return inside_below(core, tree_top(owner_at(core, claim->owner)->waiters), claim);
}

uint32_t waiter_own_called(const struct core *core, const struct claim *claim)
{
    return called_below(core, tree_top(owner_at(core, claim->owner)->waiters), claim);
}

void waiter_own_check(const struct core *core, uint32_t slot)
{
    const struct tree *tree = &core->waiters.own;
    struct waiter_span span = span_of(core, slot, tree_left(tree, slot), tree_right(tree, slot));
    CHECK(is_same(&span, &waiter_at(core, slot)->own));
}

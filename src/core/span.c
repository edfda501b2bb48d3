/*
 * span.c -- see span.h: rows, piles, and which of them a set is. Trees are in span_tree.c.
 *
 * Always true, and asserted by span_check():
 *  (1) A row is in order and has at most SPAN_ROW_MAX elements; a tree has more than SPAN_ROW_MIN.
 *  (2) What the leaves of a tree say of an element is its claim.
 */
#include "core/span.h"

#include "base/check.h"
#include "core/span_tree.h"

#include <errno.h>
#include <stdlib.h>

int span_init(struct spans *spans, uint32_t slot_max, span_claim_fn claim_at, const void *context)
{
    CHECK(slot_max < SPAN_NODE_LEAF);
    *spans = (struct spans){.slot_max = slot_max, .claim_at = claim_at, .context = context};
    spans->next = calloc(slot_max > 0 ? slot_max : 1, sizeof *spans->next);
    int err = spans->next == NULL ? -ENOMEM : span_node_init(&spans->nodes, slot_max);
    if (err != 0)
        span_done(spans);
    return err;
}

void span_done(struct spans *spans)
{
    span_node_done(&spans->nodes);
    free(spans->next);
    *spans = (struct spans){0};
}

static bool is_tree(span_root root)
{
    return (root & SPAN_NODE_KIND) != 0;
}

static const struct claim *claim_at(const struct spans *spans, uint32_t slot)
{
    return spans->claim_at(spans->context, slot);
}

static struct span_key key_of(const struct spans *spans, uint32_t slot)
{
    return (struct span_key){claim_at(spans, slot)->start, slot};
}

static bool comes_before(const struct spans *spans, uint32_t a, uint32_t b)
{
    return span_node_compare(key_of(spans, a), key_of(spans, b)) < 0;
}

static uint32_t *link_at(const struct spans *spans, uint32_t slot)
{
    CHECK(slot < spans->slot_max);
    return &spans->next[slot];
}

/* ---- rows ---- */

static uint32_t row_count(const struct spans *spans, span_root row)
{
    uint32_t count = 0;
    for (; row != 0; row = *link_at(spans, row - 1))
        count++;
    return count;
}

static void row_to_tree(struct spans *spans, span_root *root)
{
    uint32_t next;
    span_root row = *root;
    *root = span_node_add(&spans->nodes, SPAN_NODE_LEAF);
    for (; row != 0; row = next) {
        next = *link_at(spans, row - 1);
        *link_at(spans, row - 1) = 0;
        span_tree_add(&spans->nodes, root, row - 1, claim_at(spans, row - 1));
    }
}

static void tree_to_row(struct spans *spans, span_root *root)
{
    const struct span_leaf *leaf = span_node_leaf(&spans->nodes, *root);
    span_root row = 0;
    for (uint32_t i = leaf->count; i-- > 0;) {
        *link_at(spans, leaf->at[i].slot) = row;
        row = leaf->at[i].slot + 1;
    }
    span_node_remove(&spans->nodes, *root);
    *root = row;
}

static uint32_t row_find(const struct spans *spans, span_root row, const struct claim *claim)
{
    for (; row != 0; row = *link_at(spans, row - 1)) {
        const struct claim *there = claim_at(spans, row - 1);
        if (there->start > claim->end)
            break;
        if (claim_conflicts(there, claim))
            return row - 1;
    }
    return SLOT_NONE;
}

/* ---- sets ---- */

void span_add(struct spans *spans, span_root *root, uint32_t slot)
{
    if (!is_tree(*root) && row_count(spans, *root) == SPAN_ROW_MAX)
        row_to_tree(spans, root);
    if (is_tree(*root)) {
        span_tree_add(&spans->nodes, root, slot, claim_at(spans, slot));
        return;
    }
    while (*root != 0 && comes_before(spans, *root - 1, slot))
        root = link_at(spans, *root - 1);
    CHECK(*root != slot + 1);
    *link_at(spans, slot) = *root;
    *root = slot + 1;
}

void span_remove(struct spans *spans, span_root *root, uint32_t slot)
{
    if (is_tree(*root)) {
        span_tree_remove(&spans->nodes, root, slot, claim_at(spans, slot));
        if (span_node_is_leaf(*root) && span_node_count(&spans->nodes, *root) <= SPAN_ROW_MIN)
            tree_to_row(spans, root);
        return;
    }
    while (*root != slot + 1) {
        CHECK(*root != 0);
        root = link_at(spans, *root - 1);
    }
    *root = *link_at(spans, slot);
    *link_at(spans, slot) = 0;
}

void span_change(struct spans *spans, span_root root, uint32_t slot, const struct claim *before)
{
    if (is_tree(root))
        span_tree_change(&spans->nodes, root, slot, before, claim_at(spans, slot));
}

uint32_t span_first(const struct spans *spans, span_root root)
{
    return is_tree(root) ? span_tree_first(&spans->nodes, root) : root - 1;
}

uint32_t span_next(const struct spans *spans, span_root root, uint32_t slot)
{
    struct span_path path;
    if (!is_tree(root))
        return *link_at(spans, slot) - 1;
    span_tree_find(&spans->nodes, root, key_of(spans, slot), &path);
    return span_tree_next(&spans->nodes, &path);
}

void span_fetch(const struct spans *spans, span_root root)
{
    if (is_tree(root))
        span_node_fetch(&spans->nodes, root);
}

uint32_t span_find(const struct spans *spans, span_root root, const struct claim *claim)
{
    return is_tree(root) ? span_tree_conflict(&spans->nodes, root, claim)
                         : row_find(spans, root, claim);
}

uint32_t span_find_after(const struct spans *spans, span_root root, const struct claim *claim,
                         uint32_t after)
{
    struct span_path path;
    if (!is_tree(root))
        return row_find(spans, *link_at(spans, after), claim);
    span_tree_find(&spans->nodes, root, key_of(spans, after), &path);
    return span_tree_conflict_after(&spans->nodes, &path, claim);
}

/* ---- many at once ---- */

void span_pile_add(struct spans *spans, span_root *pile, uint32_t slot)
{
    *link_at(spans, slot) = *pile;
    *pile = slot + 1;
}

uint32_t span_pile_first(span_root pile)
{
    return pile - 1;
}

uint32_t span_pile_next(const struct spans *spans, uint32_t slot)
{
    return *link_at(spans, slot) - 1;
}

void span_pile_reverse(struct spans *spans, span_root *pile)
{
    span_root rest = *pile, next;
    *pile = 0;
    for (; rest != 0; rest = next) {
        next = *link_at(spans, rest - 1);
        span_pile_add(spans, pile, rest - 1);
    }
}

static bool is_before(const struct spans *spans, span_before_fn before, uint32_t a, uint32_t b)
{
    return before != NULL ? before(spans->context, a, b) : comes_before(spans, a, b);
}

/* Cuts the slots off its front that are in order. */
static span_root take_run(struct spans *spans, span_root *pile, span_before_fn before)
{
    span_root run = *pile;
    uint32_t last = run - 1, next = span_pile_next(spans, last);
    while (next != SLOT_NONE && is_before(spans, before, last, next)) {
        last = next;
        next = span_pile_next(spans, last);
    }
    *pile = next + 1;
    *link_at(spans, last) = 0;
    return run;
}

/* Both in order. */
static span_root merge(struct spans *spans, span_root a, span_root b, span_before_fn before)
{
    span_root merged = 0, *end = &merged;
    while (a != 0 && b != 0) {
        span_root *first = is_before(spans, before, a - 1, b - 1) ? &a : &b;
        *end = *first;
        end = link_at(spans, *first - 1);
        *first = *end;
    }
    *end = a != 0 ? a : b;
    return merged;
}

/* Merges the runs that are in order already. */
void span_pile_sort(struct spans *spans, span_root *pile, span_before_fn before)
{
    span_root merged[32] = {0}; /* the i-th has 2^i runs in it, or is empty */
    while (*pile != 0) {
        span_root run = take_run(spans, pile, before);
        uint32_t i = 0;
        for (; merged[i] != 0; i++) {
            run = merge(spans, merged[i], run, before);
            merged[i] = 0;
        }
        merged[i] = run;
    }
    for (uint32_t i = 0; i < 32; i++)
        *pile = merge(spans, merged[i], *pile, before);
}

/* In order, so that the leaves are full. */
void span_pile_build(struct spans *spans, span_root *pile)
{
    if (row_count(spans, *pile) > SPAN_ROW_MAX)
        row_to_tree(spans, pile);
}

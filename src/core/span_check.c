/*
 * span_check.c -- what must be true of sets of elements, as span.c and span_tree.c say.
 */
#include "base/check.h"
#include "core/span.h"

/* What an inner node says of a child, and whether those it names are below. */
struct reach_check {
    const struct span_reach *reach;
    bool is_exclusives, has_owner, has_other;
};

static void check_entry_reach(struct reach_check *check, const struct span_entry *entry)
{
    const struct span_reach *reach = check->reach;
    if (check->is_exclusives && !entry->exclusive)
        return;
    CHECK(reach->owner != SLOT_NONE && entry->end <= reach->end);
    if (entry->owner != reach->owner)
        CHECK(reach->other_owner != SLOT_NONE && entry->end <= reach->other_end);
    check->has_owner |= entry->owner == reach->owner && entry->end == reach->end;
    check->has_other |= entry->owner == reach->other_owner && entry->end == reach->other_end;
}

/* The depth of a tree bounds the recursion, here and below. */
static void check_reach_below(const struct spans *spans, uint32_t node, struct reach_check *check)
{
    if (span_node_is_leaf(node)) {
        const struct span_leaf *leaf = span_node_leaf(&spans->nodes, node);
        for (uint32_t i = 0; i < leaf->count; i++)
            check_entry_reach(check, &leaf->at[i]);
        return;
    }
    const struct span_inner *inner = span_node_inner(&spans->nodes, node);
    for (uint32_t i = 0; i < inner->count; i++)
        check_reach_below(spans, inner->children[i].node, check);
}

static void check_reach(const struct spans *spans, uint32_t node, const struct span_reach *reach,
                        bool is_exclusives)
{
    struct reach_check check = {.reach = reach, .is_exclusives = is_exclusives};
    check_reach_below(spans, node, &check);
    CHECK(check.has_owner == (reach->owner != SLOT_NONE));
    CHECK(check.has_other == (reach->other_owner != SLOT_NONE));
}

/* A walk through a tree. */
struct tree_check {
    const struct spans *spans;
    struct span_key last; /* of those that were met */
    uint32_t count;
    uint32_t leaf_depth; /* of the first leaf */
};

static void check_leaf(struct tree_check *check, const struct span_leaf *leaf)
{
    const struct spans *spans = check->spans;
    for (uint32_t i = 0; i < leaf->count; i++) {
        const struct span_entry *entry = &leaf->at[i];
        const struct claim *claim = spans->claim_at(spans->context, entry->slot);
        struct span_key key = {entry->start, entry->slot};
        CHECK(entry->start == claim->start && entry->end == claim->end);
        CHECK(entry->owner == claim->owner && entry->exclusive == claim->exclusive);
        CHECK(check->count == 0 || span_node_compare(check->last, key) < 0);
        check->last = key;
        check->count++;
    }
}

static void check_below(struct tree_check *check, uint32_t node, uint32_t depth, bool is_last)
{
    const struct spans *spans = check->spans;
    uint32_t count = span_node_count(&spans->nodes, node);
    CHECK(count <= SPAN_NODE_MAX && count > 0);
    CHECK(is_last || count >= SPAN_NODE_MIN);
    if (span_node_is_leaf(node)) {
        if (check->count == 0)
            check->leaf_depth = depth;
        CHECK(depth == check->leaf_depth);
        check_leaf(check, span_node_leaf(&spans->nodes, node));
        return;
    }
    const struct span_inner *inner = span_node_inner(&spans->nodes, node);
    CHECK(depth > 0 || count > 1);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t child = inner->children[i].node;
        struct span_key key = span_node_key(inner, i);
        CHECK(check->count == 0 || span_node_compare(check->last, key) < 0);
        CHECK(span_node_compare(key, span_node_first_key(&spans->nodes, child)) <= 0);
        check_reach(spans, child, &inner->any[i], false);
        check_reach(spans, child, &inner->exclusives[i], true);
        check_below(check, child, depth + 1, is_last && i + 1 == count);
    }
}

static uint32_t check_row(const struct spans *spans, span_root row)
{
    uint32_t count = 0, last = SLOT_NONE;
    for (; row != 0; row = spans->next[row - 1], count++) {
        uint32_t slot = row - 1;
        CHECK(slot < spans->slot_max && count < SPAN_ROW_MAX);
        uint64_t start = spans->claim_at(spans->context, slot)->start;
        if (last != SLOT_NONE) {
            struct span_key before = {spans->claim_at(spans->context, last)->start, last};
            CHECK(span_node_compare(before, (struct span_key){start, slot}) < 0);
        }
        last = slot;
    }
    return count;
}

uint32_t span_check(const struct spans *spans, span_root root)
{
    if ((root & SPAN_NODE_KIND) == 0)
        return check_row(spans, root);
    struct tree_check check = {.spans = spans};
    check_below(&check, root, 0, true);
    CHECK(check.count > SPAN_ROW_MIN);
    return check.count;
}

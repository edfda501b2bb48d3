/*
 * span_tree.c -- see span_tree.h.
 *
 * The elements that may overlap a range are a prefix of the order: the ones that begin before its
 * end. Which of them reach into it the order does not say; a hundred thousand may lie before it and
 * end before it. So every inner node knows how far each of its children reaches, and a search never
 * goes down where nothing reaches far enough.
 *
 * With exact sums a search never turns back: where the sum of a child says that something in it
 * reaches into the range, the first such element is in there, and if that one begins behind the
 * range, so does everything after it. One way down.
 *
 * Nodes are split on the way down to where an element is added, so that there is always room for
 * one more child above. The last node of a level is split behind its last member: elements that
 * come in order leave full nodes behind. Nodes that become too empty are evened out with a
 * neighbour on the way up from where an element was removed.
 *
 * Always true, and asserted by span_check():
 *  (1) All leaves are equally deep, their elements in order.
 *  (2) A child's key is not above its first element, and above all elements before it.
 *  (3) A child's sum is that of the elements below it.
 *  (4) A node has at least SPAN_NODE_MIN members, unless it is the topmost or the last of its
 *      level; an inner topmost one has two.
 */
#include "core/span_tree.h"

#include "base/check.h"
#include "base/fetch.h"

static struct span_entry entry_of(uint32_t slot, const struct claim *claim)
{
    return (struct span_entry){.start = claim->start,
                               .end = claim->end,
                               .owner = claim->owner,
                               .slot = slot & ~SPAN_NODE_INNER,
                               .exclusive = claim->exclusive};
}

/* ---- walking ---- */

static void step_down(struct span_path *path, uint32_t node, uint32_t at)
{
    CHECK(path->depth < SPAN_TREE_LEVELS_MAX);
    path->steps[path->depth].node = node;
    path->steps[path->depth].at = at;
    path->depth++;
}

void span_tree_find(const struct span_nodes *nodes, uint32_t root, struct span_key key,
                    struct span_path *ret)
{
    ret->depth = 0;
    while (!span_node_is_leaf(root)) {
        const struct span_inner *inner = span_node_inner(nodes, root);
        uint32_t at = span_node_child(inner, key);
        step_down(ret, root, at);
        root = inner->children[at].node;
    }
    const struct span_leaf *leaf = span_node_leaf(nodes, root);
    ret->leaf = root;
    ret->at = span_node_place(leaf, key);
    CHECK(ret->at < leaf->count);
    CHECK(leaf->at[ret->at].slot == key.slot && leaf->at[ret->at].start == key.start);
}

uint32_t span_tree_first(const struct span_nodes *nodes, uint32_t root)
{
    while (!span_node_is_leaf(root))
        root = span_node_inner(nodes, root)->children[0].node;
    return span_node_leaf(nodes, root)->at[0].slot;
}

uint32_t span_tree_next(const struct span_nodes *nodes, const struct span_path *path)
{
    const struct span_leaf *leaf = span_node_leaf(nodes, path->leaf);
    if (path->at + 1 < leaf->count)
        return leaf->at[path->at + 1].slot;
    for (uint32_t i = path->depth; i-- > 0;) {
        const struct span_inner *inner = span_node_inner(nodes, path->steps[i].node);
        uint32_t at = path->steps[i].at + 1;
        if (at < inner->count)
            return span_tree_first(nodes, inner->children[at].node);
    }
    return SLOT_NONE;
}

/* ---- searching ---- */

/* From one place in a leaf on. True: the first that reaches the claim, from there on, is in this
 * leaf, so the answer is final. */
static bool search_leaf(const struct span_leaf *leaf, uint32_t from, const struct claim *claim,
                        uint32_t *ret)
{
    for (; from < leaf->count; from++) {
        const struct span_entry *entry = &leaf->at[from];
        if (entry->end < claim->start || entry->owner == claim->owner ||
            !(claim->exclusive || entry->exclusive))
            continue;
        *ret = entry->start <= claim->end ? entry->slot : SLOT_NONE;
        return true;
    }
    return false;
}

static uint32_t search_inner(const struct span_inner *inner, uint32_t from,
                             const struct claim *claim)
{
    return span_reach_first(inner->any, inner->exclusives, from, inner->count, claim);
}

/* Below a node of which the sum says that something reaches the claim. */
static uint32_t search_below(const struct span_nodes *nodes, uint32_t node,
                             const struct claim *claim)
{
    while (!span_node_is_leaf(node)) {
        const struct span_inner *inner = span_node_inner(nodes, node);
        uint32_t at = search_inner(inner, 0, claim);
        CHECK(at < inner->count); /* the sum said so */
        node = inner->children[at].node;
    }
    const struct span_leaf *leaf = span_node_leaf(nodes, node);
    fetch_lines(leaf, sizeof *leaf); /* it is gone through from its beginning */
    uint32_t slot;
    CHECK(search_leaf(leaf, 0, claim, &slot));
    return slot;
}

uint32_t span_tree_conflict(const struct span_nodes *nodes, uint32_t root,
                            const struct claim *claim)
{
    uint32_t slot;
    if (span_node_is_leaf(root))
        return search_leaf(span_node_leaf(nodes, root), 0, claim, &slot) ? slot : SLOT_NONE;
    const struct span_inner *inner = span_node_inner(nodes, root);
    uint32_t at = search_inner(inner, 0, claim);
    return at < inner->count ? search_below(nodes, inner->children[at].node, claim) : SLOT_NONE;
}

uint32_t span_tree_conflict_after(const struct span_nodes *nodes, const struct span_path *path,
                                  const struct claim *claim)
{
    uint32_t slot;
    if (search_leaf(span_node_leaf(nodes, path->leaf), path->at + 1, claim, &slot))
        return slot;
    for (uint32_t i = path->depth; i-- > 0;) {
        const struct span_inner *inner = span_node_inner(nodes, path->steps[i].node);
        uint32_t at = search_inner(inner, path->steps[i].at + 1, claim);
        if (at < inner->count)
            return search_below(nodes, inner->children[at].node, claim);
    }
    return SLOT_NONE;
}

/* ---- adding ---- */

/* Would this key be behind all that a node has? */
static bool goes_last(const struct span_nodes *nodes, uint32_t node, struct span_key key)
{
    if (!span_node_is_leaf(node)) {
        const struct span_inner *inner = span_node_inner(nodes, node);
        return span_node_child(inner, key) == inner->count - 1;
    }
    const struct span_leaf *leaf = span_node_leaf(nodes, node);
    return span_node_place(leaf, key) == leaf->count;
}

/* Splits a full child. A new last leaf begins with what is added, a new last inner node with the
 * child that it goes to. */
static void split(struct span_nodes *nodes, uint32_t parent, uint32_t at, bool is_last,
                  struct span_key key)
{
    uint32_t node = span_node_inner(nodes, parent)->children[at].node, keep = SPAN_NODE_MAX / 2;
    if (is_last && goes_last(nodes, node, key))
        keep = span_node_is_leaf(node) ? SPAN_NODE_MAX : SPAN_NODE_MAX - 1;
    span_node_split(nodes, parent, at, keep, key);
}

/* The child of a node that an element goes to, which has room for it and counts it already.
 * `is_last` is whether the node is the last of its level, then whether the child is. */
static uint32_t enter_child(struct span_nodes *nodes, uint32_t node, struct span_key key,
                            const struct claim *claim, bool *is_last)
{
    struct span_inner *inner = span_node_inner(nodes, node);
    uint32_t at = span_node_child(inner, key);
    if (span_node_count(nodes, inner->children[at].node) == SPAN_NODE_MAX) {
        split(nodes, node, at, *is_last && at + 1 == inner->count, key);
        at = span_node_child(inner, key);
    }
    struct span_child *child = &inner->children[at];
    if (span_node_compare(key, span_node_key(inner, at)) < 0) { /* the first of all */
        child->start = key.start;
        child->slot = key.slot;
    }
    struct span_sum sum = span_node_child_sum(inner, at);
    span_reach_add(&sum, claim);
    span_node_set_child_sum(inner, at, &sum);
    *is_last = *is_last && at + 1 == inner->count;
    return child->node;
}

void span_tree_add(struct span_nodes *nodes, uint32_t *root, uint32_t slot,
                   const struct claim *claim)
{
    const struct span_key key = {claim->start, slot};
    bool is_last = true;
    if (span_node_count(nodes, *root) == SPAN_NODE_MAX) {
        uint32_t top = span_node_add(nodes, SPAN_NODE_INNER);
        span_node_add_child(nodes, span_node_inner(nodes, top), 0, *root,
                            span_node_first_key(nodes, *root));
        *root = top;
    }
    uint32_t node = *root;
    while (!span_node_is_leaf(node))
        node = enter_child(nodes, node, key, claim, &is_last);
    struct span_leaf *leaf = span_node_leaf(nodes, node);
    span_node_add_entry(leaf, span_node_place(leaf, key), entry_of(slot, claim));
}

/* ---- removing ---- */

/* A child lost an element or a child. */
static void tend(struct span_nodes *nodes, uint32_t parent, uint32_t at)
{
    struct span_inner *inner = span_node_inner(nodes, parent);
    uint32_t node = inner->children[at].node, count = span_node_count(nodes, node);
    if (count < SPAN_NODE_MIN && inner->count > 1) {
        span_node_even_out(nodes, parent, at > 0 ? at - 1 : at);
    } else if (count == 0) {
        span_node_remove(nodes, node);
        span_node_remove_child(inner, at);
    }
}

void span_tree_remove(struct span_nodes *nodes, uint32_t *root, uint32_t slot,
                      const struct claim *claim)
{
    struct span_path path;
    span_tree_find(nodes, *root, (struct span_key){claim->start, slot}, &path);
    span_node_remove_entry(span_node_leaf(nodes, path.leaf), path.at);
    for (uint32_t i = path.depth; i-- > 0;) {
        uint32_t parent = path.steps[i].node, at = path.steps[i].at;
        struct span_inner *inner = span_node_inner(nodes, parent);
        struct span_sum sum = span_node_child_sum(inner, at);
        if (span_reach_needs(&sum, claim))
            span_node_sum_up(nodes, inner, at);
        tend(nodes, parent, at);
    }
    while (!span_node_is_leaf(*root) && span_node_inner(nodes, *root)->count == 1) {
        uint32_t only = span_node_inner(nodes, *root)->children[0].node;
        span_node_remove(nodes, *root);
        *root = only;
    }
}

void span_tree_change(struct span_nodes *nodes, uint32_t root, uint32_t slot,
                      const struct claim *before, const struct claim *now)
{
    struct span_path path;
    CHECK(before->start == now->start && before->owner == now->owner);
    span_tree_find(nodes, root, (struct span_key){now->start, slot}, &path);
    span_node_leaf(nodes, path.leaf)->at[path.at] = entry_of(slot, now);
    for (uint32_t i = path.depth; i-- > 0;) {
        struct span_inner *inner = span_node_inner(nodes, path.steps[i].node);
        uint32_t at = path.steps[i].at;
        struct span_sum sum = span_node_child_sum(inner, at);
        if (span_reach_needs(&sum, before)) {
            span_node_sum_up(nodes, inner, at);
        } else {
            span_reach_add(&sum, now);
            span_node_set_child_sum(inner, at, &sum);
        }
    }
}

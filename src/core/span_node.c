/*
 * span_node.c -- see span_node.h.
 */
#include "core/span_node.h"

#include "base/check.h"
#include "base/fetch.h"

#include <string.h>

/*
 * The fullest use of nodes is by sets of two leaves, of which the first has SPAN_NODE_MIN elements
 * and the last has one: an inner node and two leaves for 13 elements.
 */
int span_node_init(struct span_nodes *nodes, uint32_t slot_max)
{
    *nodes = (struct span_nodes){0};
    uint32_t inner_max = slot_max / (SPAN_NODE_MIN + 1) + 1;
    int err = table_init(&nodes->leaves, 2 * inner_max, sizeof(struct span_leaf));
    if (err == 0)
        err = table_init(&nodes->inners, inner_max, sizeof(struct span_inner));
    if (err != 0)
        span_node_done(nodes);
    return err;
}

void span_node_done(struct span_nodes *nodes)
{
    table_done(&nodes->leaves);
    table_done(&nodes->inners);
}

struct span_leaf *span_node_leaf(const struct span_nodes *nodes, uint32_t node)
{
    CHECK((node & SPAN_NODE_KIND) == SPAN_NODE_LEAF);
    return table_at(&nodes->leaves, node - SPAN_NODE_LEAF - 1);
}

struct span_inner *span_node_inner(const struct span_nodes *nodes, uint32_t node)
{
    CHECK((node & SPAN_NODE_KIND) == SPAN_NODE_INNER);
    return table_at(&nodes->inners, node - SPAN_NODE_INNER - 1);
}

uint32_t span_node_count(const struct span_nodes *nodes, uint32_t node)
{
    return span_node_is_leaf(node) ? span_node_leaf(nodes, node)->count
                                   : span_node_inner(nodes, node)->count;
}

void span_node_fetch(const struct span_nodes *nodes, uint32_t node)
{
    if (span_node_is_leaf(node)) {
        table_fetch(&nodes->leaves, node - SPAN_NODE_LEAF - 1);
        return;
    }
    uint32_t slot = node - SPAN_NODE_INNER - 1;
    const struct span_inner *inner = table_memory(&nodes->inners, slot);
    table_fetch(&nodes->inners, slot);
    fetch_line(inner->any);
    fetch_line(inner->exclusives);
    fetch_line(inner->children);
    fetch_line(inner->children + SPAN_NODE_MAX / 4);
}

uint32_t span_node_add(struct span_nodes *nodes, uint32_t kind)
{
    uint32_t slot = table_add(kind == SPAN_NODE_LEAF ? &nodes->leaves : &nodes->inners);
    CHECK(slot != SLOT_NONE);
    return kind | (slot + 1);
}

void span_node_remove(struct span_nodes *nodes, uint32_t node)
{
    if (span_node_is_leaf(node))
        table_remove(&nodes->leaves, node - SPAN_NODE_LEAF - 1);
    else
        table_remove(&nodes->inners, node - SPAN_NODE_INNER - 1);
}

/* ---- finding ---- */

int span_node_compare(struct span_key a, struct span_key b)
{
    if (a.start != b.start)
        return a.start < b.start ? -1 : 1;
    return a.slot == b.slot ? 0 : a.slot < b.slot ? -1 : 1;
}

struct span_key span_node_key(const struct span_inner *inner, uint32_t at)
{
    return (struct span_key){inner->children[at].start, inner->children[at].slot};
}

uint32_t span_node_child(const struct span_inner *inner, struct span_key key)
{
    uint32_t low = 0, high = inner->count; /* it is not before low, and before high */
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        if (span_node_compare(span_node_key(inner, middle), key) <= 0)
            low = middle;
        else
            high = middle;
    }
    return low;
}

uint32_t span_node_place(const struct span_leaf *leaf, struct span_key key)
{
    uint32_t low = 0, high = leaf->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        struct span_key there = {leaf->at[middle].start, leaf->at[middle].slot};
        if (span_node_compare(there, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- sums ---- */

struct claim span_node_claim(const struct span_entry *entry)
{
    return (struct claim){.start = entry->start,
                          .end = entry->end,
                          .owner = entry->owner,
                          .exclusive = entry->exclusive};
}

struct span_sum span_node_child_sum(const struct span_inner *inner, uint32_t at)
{
    return (struct span_sum){inner->any[at], inner->exclusives[at]};
}

void span_node_set_child_sum(struct span_inner *inner, uint32_t at, const struct span_sum *sum)
{
    inner->any[at] = sum->any;
    inner->exclusives[at] = sum->exclusives;
}

struct span_sum span_node_sum(const struct span_nodes *nodes, uint32_t node)
{
    struct span_sum sum;
    span_reach_clear(&sum);
    if (span_node_is_leaf(node)) {
        const struct span_leaf *leaf = span_node_leaf(nodes, node);
        for (uint32_t i = 0; i < leaf->count; i++) {
            struct claim claim = span_node_claim(&leaf->at[i]);
            span_reach_add(&sum, &claim);
        }
        return sum;
    }
    const struct span_inner *inner = span_node_inner(nodes, node);
    for (uint32_t i = 0; i < inner->count; i++) {
        struct span_sum of_child = span_node_child_sum(inner, i);
        span_reach_join(&sum, &of_child);
    }
    return sum;
}

void span_node_sum_up(const struct span_nodes *nodes, struct span_inner *inner, uint32_t at)
{
    struct span_sum sum = span_node_sum(nodes, inner->children[at].node);
    span_node_set_child_sum(inner, at, &sum);
}

/* ---- what is in a node ---- */

/* Makes room for some of an array's members, or takes them out of it. */
#define OPEN(array, at, len, count)                                                                \
    memmove(&(array)[(at) + (len)], &(array)[at], ((count) - (at)) * sizeof(array)[0])
#define CLOSE(array, at, len, count)                                                               \
    memmove(&(array)[at], &(array)[(at) + (len)], ((count) - (at) - (len)) * sizeof(array)[0])
#define COPY(to, to_at, from, from_at, len)                                                        \
    memcpy(&(to)[to_at], &(from)[from_at], (len) * sizeof(to)[0])

void span_node_add_entry(struct span_leaf *leaf, uint32_t at, struct span_entry entry)
{
    CHECK(leaf->count < SPAN_NODE_MAX);
    OPEN(leaf->at, at, 1, leaf->count);
    leaf->at[at] = entry;
    leaf->count++;
}

void span_node_remove_entry(struct span_leaf *leaf, uint32_t at)
{
    CLOSE(leaf->at, at, 1, leaf->count);
    leaf->count--;
}

static void open_inner(struct span_inner *inner, uint32_t at, uint32_t len)
{
    CHECK(inner->count + len <= SPAN_NODE_MAX);
    OPEN(inner->any, at, len, inner->count);
    OPEN(inner->exclusives, at, len, inner->count);
    OPEN(inner->children, at, len, inner->count);
    inner->count += len;
}

static void close_inner(struct span_inner *inner, uint32_t at, uint32_t len)
{
    CLOSE(inner->any, at, len, inner->count);
    CLOSE(inner->exclusives, at, len, inner->count);
    CLOSE(inner->children, at, len, inner->count);
    inner->count -= len;
}

void span_node_add_child(struct span_nodes *nodes, struct span_inner *inner, uint32_t at,
                         uint32_t node, struct span_key key)
{
    open_inner(inner, at, 1);
    inner->children[at] = (struct span_child){.start = key.start, .slot = key.slot, .node = node};
    span_node_sum_up(nodes, inner, at);
}

void span_node_remove_child(struct span_inner *inner, uint32_t at)
{
    close_inner(inner, at, 1);
}

/* ---- two nodes ---- */

/* So many from one place to another, in another node of the same kind. */
static void move(struct span_nodes *nodes, uint32_t from, uint32_t from_at, uint32_t to,
                 uint32_t to_at, uint32_t len)
{
    if (span_node_is_leaf(from)) {
        struct span_leaf *a = span_node_leaf(nodes, from), *b = span_node_leaf(nodes, to);
        CHECK(b->count + len <= SPAN_NODE_MAX);
        OPEN(b->at, to_at, len, b->count);
        COPY(b->at, to_at, a->at, from_at, len);
        CLOSE(a->at, from_at, len, a->count);
        a->count -= len;
        b->count += len;
    } else {
        struct span_inner *a = span_node_inner(nodes, from), *b = span_node_inner(nodes, to);
        open_inner(b, to_at, len);
        COPY(b->any, to_at, a->any, from_at, len);
        COPY(b->exclusives, to_at, a->exclusives, from_at, len);
        COPY(b->children, to_at, a->children, from_at, len);
        close_inner(a, from_at, len);
    }
}

struct span_key span_node_first_key(const struct span_nodes *nodes, uint32_t node)
{
    if (!span_node_is_leaf(node))
        return span_node_key(span_node_inner(nodes, node), 0);
    const struct span_entry *first = &span_node_leaf(nodes, node)->at[0];
    return (struct span_key){first->start, first->slot};
}

void span_node_split(struct span_nodes *nodes, uint32_t parent, uint32_t at, uint32_t keep,
                     struct span_key key)
{
    struct span_inner *inner = span_node_inner(nodes, parent);
    uint32_t left = inner->children[at].node, right = span_node_add(nodes, left & SPAN_NODE_KIND);
    uint32_t count = span_node_count(nodes, left);
    move(nodes, left, keep, right, 0, count - keep);
    span_node_sum_up(nodes, inner, at);
    span_node_add_child(nodes, inner, at + 1, right,
                        keep < count ? span_node_first_key(nodes, right) : key);
}

void span_node_even_out(struct span_nodes *nodes, uint32_t parent, uint32_t at)
{
    struct span_inner *inner = span_node_inner(nodes, parent);
    uint32_t left = inner->children[at].node, right = inner->children[at + 1].node;
    uint32_t here = span_node_count(nodes, left), there = span_node_count(nodes, right);
    uint32_t half = (here + there) / 2;
    if (here + there <= SPAN_NODE_MAX) {
        move(nodes, right, 0, left, here, there);
        span_node_remove(nodes, right);
        span_node_remove_child(inner, at + 1);
        span_node_sum_up(nodes, inner, at);
        return;
    }
    if (here > half)
        move(nodes, left, half, right, 0, here - half);
    else
        move(nodes, right, 0, left, here, half - here);
    struct span_key key = span_node_first_key(nodes, right);
    inner->children[at + 1].start = key.start;
    inner->children[at + 1].slot = key.slot;
    span_node_sum_up(nodes, inner, at);
    span_node_sum_up(nodes, inner, at + 1);
}

/*
 * span_node.h -- the nodes of large sets of elements; for the files of core/span only.
 *
 * A leaf has elements, an inner node has children and what is known of each: a key that is not
 * above any element in it and above all that come before it, and how far it reaches. A node is
 * named by a reference, which says its kind; zero is none.
 */
#ifndef CORE_SPAN_NODE_H
#define CORE_SPAN_NODE_H

#include "base/table.h"
#include "core/span_reach.h"

/* The two top bits of a reference; the rest is the node's slot in its table, plus one. */
#define SPAN_NODE_LEAF  (UINT32_C(1) << 30)
#define SPAN_NODE_INNER (UINT32_C(1) << 31)
#define SPAN_NODE_KIND  (SPAN_NODE_LEAF | SPAN_NODE_INNER)

enum {
    SPAN_NODE_MAX = 36, /* in a node: 872 bytes of a leaf, 2.3 KB of an inner one */
    SPAN_NODE_MIN = 12, /* but for the last node of each level and the topmost */
};

/* Elements are ordered by their first byte, then by their slot. */
struct span_key {
    uint64_t start;
    uint32_t slot;
};

struct span_entry {
    uint64_t start, end;
    uint32_t owner;
    uint32_t slot : 31;
    uint32_t exclusive : 1;
};

struct span_leaf {
    uint32_t count;
    struct span_entry at[SPAN_NODE_MAX];
};

/* A search looks at one of the two arrays of ends only, and in order: they are apart. */
struct span_inner {
    uint32_t count;
    struct span_reach any[SPAN_NODE_MAX], exclusives[SPAN_NODE_MAX];
    struct span_child {
        uint64_t start; /* of the key */
        uint32_t slot;  /* likewise */
        uint32_t node;
    } children[SPAN_NODE_MAX];
};

struct span_nodes {
    struct table leaves, inners;
};

/* Enough for sets of so many elements in all, none of them smaller than SPAN_ROW_MIN (span.h).
 * 0, or -ENOMEM with nothing allocated. */
__attribute__((warn_unused_result)) int span_node_init(struct span_nodes *nodes, uint32_t slot_max);
void span_node_done(struct span_nodes *nodes);

static inline bool span_node_is_leaf(uint32_t node)
{
    return (node & SPAN_NODE_LEAF) != 0;
}
struct span_leaf *span_node_leaf(const struct span_nodes *nodes, uint32_t node);
struct span_inner *span_node_inner(const struct span_nodes *nodes, uint32_t node);
uint32_t span_node_count(const struct span_nodes *nodes, uint32_t node);

/* What a search looks at first in a node is brought into the cache: its first children. */
void span_node_fetch(const struct span_nodes *nodes, uint32_t node);
/* An empty one of this kind. There are always enough. */
uint32_t span_node_add(struct span_nodes *nodes, uint32_t kind);
void span_node_remove(struct span_nodes *nodes, uint32_t node);

/* -1, 0, 1: before, the same, after. */
int span_node_compare(struct span_key a, struct span_key b);
struct span_key span_node_key(const struct span_inner *inner, uint32_t at);
/* The key that a node may have above it. It is not empty. */
struct span_key span_node_first_key(const struct span_nodes *nodes, uint32_t node);
/* The child in which an element of this key is, or would be. */
uint32_t span_node_child(const struct span_inner *inner, struct span_key key);
/* The first element that is not before this key; the leaf's count: none. */
uint32_t span_node_place(const struct span_leaf *leaf, struct span_key key);

struct claim span_node_claim(const struct span_entry *entry);
/* How far everything below it reaches. */
struct span_sum span_node_sum(const struct span_nodes *nodes, uint32_t node);
struct span_sum span_node_child_sum(const struct span_inner *inner, uint32_t at);
/* Computes a child's sum again. */
void span_node_sum_up(const struct span_nodes *nodes, struct span_inner *inner, uint32_t at);
void span_node_set_child_sum(struct span_inner *inner, uint32_t at, const struct span_sum *sum);

void span_node_add_entry(struct span_leaf *leaf, uint32_t at, struct span_entry entry);
void span_node_remove_entry(struct span_leaf *leaf, uint32_t at);
/* With its sum. */
void span_node_add_child(struct span_nodes *nodes, struct span_inner *inner, uint32_t at,
                         uint32_t node, struct span_key key);
void span_node_remove_child(struct span_inner *inner, uint32_t at);

/* What follows the first `keep` goes from a child to a new one behind it. If nothing does, this is
 * the key of the new one. */
void span_node_split(struct span_nodes *nodes, uint32_t parent, uint32_t at, uint32_t keep,
                     struct span_key key);
/* A child and the next one become one, or equally full. */
void span_node_even_out(struct span_nodes *nodes, uint32_t parent, uint32_t at);

#endif

/*
 * span_tree.h -- large sets of elements; for the files of core/span only.
 *
 * A tree is the reference of its topmost node (span_node.h).
 */
#ifndef CORE_SPAN_TREE_H
#define CORE_SPAN_TREE_H

#include "core/span_node.h"

/* Where an element is, or would be: the way down to its leaf, and its place there. */
enum { SPAN_TREE_LEVELS_MAX = 12 };
struct span_path {
    struct {
        uint32_t node, at; /* the inner node, and which child */
    } steps[SPAN_TREE_LEVELS_MAX];
    uint32_t depth; /* of steps */
    uint32_t leaf, at;
};

void span_tree_add(struct span_nodes *nodes, uint32_t *root, uint32_t slot,
                   const struct claim *claim);
void span_tree_remove(struct span_nodes *nodes, uint32_t *root, uint32_t slot,
                      const struct claim *claim);
void span_tree_change(struct span_nodes *nodes, uint32_t root, uint32_t slot,
                      const struct claim *before, const struct claim *now);

/* The element must be there. */
void span_tree_find(const struct span_nodes *nodes, uint32_t root, struct span_key key,
                    struct span_path *ret);
/* The next element in order; SLOT_NONE: it was the last. */
uint32_t span_tree_next(const struct span_nodes *nodes, const struct span_path *path);
uint32_t span_tree_first(const struct span_nodes *nodes, uint32_t root);

/* The first element that conflicts with the claim; SLOT_NONE: none. */
uint32_t span_tree_conflict(const struct span_nodes *nodes, uint32_t root,
                            const struct claim *claim);
/* The same among those behind an element. */
uint32_t span_tree_conflict_after(const struct span_nodes *nodes, const struct span_path *path,
                                  const struct claim *claim);

#endif

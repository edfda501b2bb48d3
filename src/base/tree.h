/*
 * tree.h -- ordered sets of table slots, many of them over one table, with sums on the way.
 *
 * One mechanism for "in order, quickly": the waiters of a file, those of an owner, what is
 * unsettled in a holding. A slot is in at most one set of a forest at a time.
 * The owner of the forest says how two slots are ordered and, if it wants, what is to be known of a
 * whole subtree (the largest end, say): `update` computes it for a slot from the slot itself and
 * its two children, and is called upwards from where a subtree changed, children first, until a
 * slot's sum stays as it was: then so do all above it.
 *
 * The sets are treaps: a slot's priority is a keyed hash of its number, so the shape depends only
 * on the seed and on what is in the set, and no order of arrivals makes it deep. Adding, removing
 * and walking cost O(log n); nothing is allocated after tree_init.
 */
#ifndef BASE_TREE_H
#define BASE_TREE_H

#include <stdbool.h>
#include <stdint.h>

/* True when slot a comes before slot b. Never called with a == b; never both ways true. */
typedef bool (*tree_before_fn)(const void *context, uint32_t a, uint32_t b);
/* `left` and `right` are SLOT_NONE where there is no child. True: the sum is another one now. */
typedef bool (*tree_update_fn)(void *context, uint32_t slot, uint32_t left, uint32_t right);

struct tree_link {
    uint32_t left, right, parent; /* slot + 1; 0: none, so that zeroed memory is empty */
};

struct tree {
    struct tree_link *links; /* by slot */
    uint32_t slot_max;
    uint64_t seed;
    tree_before_fn before;
    tree_update_fn update; /* NULL: nothing is to be known */
    void *context;
};

/* A set is a root: slot + 1 of its topmost slot, 0 when it is empty. */
typedef uint32_t tree_root;

/* 0, or -ENOMEM with nothing allocated. */
__attribute__((warn_unused_result)) int tree_init(struct tree *tree, uint32_t slot_max,
                                                  uint64_t seed, tree_before_fn before,
                                                  tree_update_fn update, void *context);
void tree_done(struct tree *tree);

void tree_add(struct tree *tree, tree_root *root, uint32_t slot);
void tree_remove(struct tree *tree, tree_root *root, uint32_t slot);
/* Something that `update` looks at changed, not the order: brings the sums up to date. */
void tree_touch(struct tree *tree, uint32_t slot);

/* Walks; SLOT_NONE ends them. */
uint32_t tree_first(const struct tree *tree, tree_root root);
uint32_t tree_next(const struct tree *tree, uint32_t slot);

/* The shape, for searches that use the sums. */
uint32_t tree_top(tree_root root);
uint32_t tree_left(const struct tree *tree, uint32_t slot);
uint32_t tree_right(const struct tree *tree, uint32_t slot);

/* Abort unless order, priorities and links are sound; returns the number of slots. */
uint32_t tree_check(const struct tree *tree, tree_root root);

#endif

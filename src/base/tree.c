/*
 * tree.c -- ordered sets of slots as treaps; the contract is in tree.h.
 *
 * A treap is a search tree by the owner's order and at the same time a heap by priority: there is
 * exactly one such tree for a set, the one that would have grown had the slots come in order of
 * their priorities. Those are keyed hashes, so the tree is as deep as one grown in random order,
 * whatever order the slots really came in: about 2 ln n, 25 for a hundred thousand.
 *
 * Always true, and asserted by tree_check():
 *  (1) What is left of a slot comes before it, what is right of it after it.
 *  (2) No child has a higher priority than its parent; equal hashes are decided by the slot.
 *  (3) A child's parent is the slot whose child it is; the topmost slot has none.
 *  (4) `update` was called for a slot after a sum below it changed, or the slot itself did, or its
 *      children did. Only the owner knows what it computes and can check it.
 *
 * A slot goes in as a leaf and is rotated upwards; it goes out by being rotated downwards until it
 * has no child on one side. Either takes two rotations on average, the rest of the cost is the way
 * down and the way up along which the sums are brought up to date; where a sum stays as it was, so
 * do all above it, and for the largest of something that is soon.
 */
#include "base/tree.h"

#include "base/check.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/table.h"

#include <errno.h>
#include <stdlib.h>

int tree_init(struct tree *tree, uint32_t slot_max, uint64_t seed, tree_before_fn before,
              tree_update_fn update, void *context)
{
    *tree = (struct tree){
        .slot_max = slot_max, .seed = seed, .before = before, .update = update, .context = context};
    tree->links = memory_array(slot_max > 0 ? slot_max : 1, sizeof *tree->links);
    return tree->links == NULL ? -ENOMEM : 0;
}

void tree_done(struct tree *tree)
{
    free(tree->links);
    *tree = (struct tree){0};
}

static struct tree_link *link_at(const struct tree *tree, uint32_t slot)
{
    CHECK(slot < tree->slot_max);
    return &tree->links[slot];
}

/* Links hold slot + 1, so that 0 becomes SLOT_NONE and back by arithmetic alone. */
static uint32_t parent_of(const struct tree *tree, uint32_t slot)
{
    return link_at(tree, slot)->parent - 1;
}

uint32_t tree_top(tree_root root)
{
    return root - 1;
}

uint32_t tree_left(const struct tree *tree, uint32_t slot)
{
    return link_at(tree, slot)->left - 1;
}

uint32_t tree_right(const struct tree *tree, uint32_t slot)
{
    return link_at(tree, slot)->right - 1;
}

static bool is_higher(const struct tree *tree, uint32_t a, uint32_t b)
{
    uint64_t priority_a = hash_number(tree->seed, a), priority_b = hash_number(tree->seed, b);
    return priority_a > priority_b || (priority_a == priority_b && a > b);
}

/* True: its sum is another one now. */
static bool update(struct tree *tree, uint32_t slot)
{
    return tree->update != NULL &&
           tree->update(tree->context, slot, tree_left(tree, slot), tree_right(tree, slot));
}

void tree_touch(struct tree *tree, uint32_t slot)
{
    while (slot != SLOT_NONE && update(tree, slot))
        slot = parent_of(tree, slot);
}

/* Puts `slot`, or nothing, into the place that `old` has under its parent, or at the top. */
static void replace(struct tree *tree, tree_root *root, uint32_t old, uint32_t slot)
{
    uint32_t parent = parent_of(tree, old);
    if (parent == SLOT_NONE) {
        CHECK(*root == old + 1);
        *root = slot + 1;
    } else if (link_at(tree, parent)->left == old + 1) {
        link_at(tree, parent)->left = slot + 1;
    } else {
        CHECK(link_at(tree, parent)->right == old + 1);
        link_at(tree, parent)->right = slot + 1;
    }
    if (slot != SLOT_NONE)
        link_at(tree, slot)->parent = parent + 1;
}

/* The child takes its parent's place and the parent becomes its child; the order stays. */
static void rotate_up(struct tree *tree, tree_root *root, uint32_t slot)
{
    uint32_t parent = parent_of(tree, slot);
    replace(tree, root, parent, slot);
    struct tree_link *up = link_at(tree, slot), *down = link_at(tree, parent);
    uint32_t moved; /* what lies between the two, plus one */
    if (down->left == slot + 1) {
        moved = down->left = up->right;
        up->right = parent + 1;
    } else {
        moved = down->right = up->left;
        up->left = parent + 1;
    }
    down->parent = slot + 1;
    if (moved != 0)
        link_at(tree, moved - 1)->parent = parent + 1;
}

void tree_add(struct tree *tree, tree_root *root, uint32_t slot)
{
    uint32_t parent = SLOT_NONE;
    uint32_t *place = root;
    while (*place != 0) {
        parent = *place - 1;
        CHECK(parent != slot);
        bool goes_left = tree->before(tree->context, slot, parent);
        place = goes_left ? &link_at(tree, parent)->left : &link_at(tree, parent)->right;
    }
    *link_at(tree, slot) = (struct tree_link){.parent = parent + 1};
    *place = slot + 1;
    for (; parent != SLOT_NONE && is_higher(tree, slot, parent); parent = parent_of(tree, slot)) {
        rotate_up(tree, root, slot);
        update(tree, parent);
    }
    (void)update(tree, slot); /* what it knew when it was last in a set says nothing */
    tree_touch(tree, parent_of(tree, slot));
}

void tree_remove(struct tree *tree, tree_root *root, uint32_t slot)
{
    uint32_t left, right, rotated_count = 0;
    while ((left = tree_left(tree, slot)) != SLOT_NONE &&
           (right = tree_right(tree, slot)) != SLOT_NONE) {
        rotate_up(tree, root, is_higher(tree, left, right) ? left : right);
        rotated_count++;
    }
    uint32_t parent = parent_of(tree, slot);
    replace(tree, root, slot, left != SLOT_NONE ? left : tree_right(tree, slot));
    *link_at(tree, slot) = (struct tree_link){0};
    /* Those that were rotated past it have other children than when their sums were made. */
    for (; rotated_count > 0; rotated_count--) {
        (void)update(tree, parent);
        parent = parent_of(tree, parent);
    }
    tree_touch(tree, parent);
}

static uint32_t leftmost(const struct tree *tree, uint32_t slot)
{
    for (uint32_t left = slot; left != SLOT_NONE; left = tree_left(tree, slot))
        slot = left;
    return slot;
}

uint32_t tree_first(const struct tree *tree, tree_root root)
{
    return leftmost(tree, tree_top(root));
}

uint32_t tree_next(const struct tree *tree, uint32_t slot)
{
    uint32_t right = tree_right(tree, slot);
    if (right != SLOT_NONE)
        return leftmost(tree, right);
    uint32_t parent = parent_of(tree, slot);
    for (; parent != SLOT_NONE && tree_right(tree, parent) == slot; parent = parent_of(tree, slot))
        slot = parent;
    return parent;
}

uint32_t tree_check(const struct tree *tree, tree_root root)
{
    uint32_t count = 0, before = SLOT_NONE;
    CHECK(root == 0 || parent_of(tree, tree_top(root)) == SLOT_NONE);
    uint32_t slot = tree_first(tree, root);
    for (; slot != SLOT_NONE; slot = tree_next(tree, slot)) {
        const uint32_t children[] = {tree_left(tree, slot), tree_right(tree, slot)};
        for (uint32_t i = 0; i < 2; i++) {
            if (children[i] == SLOT_NONE)
                continue;
            CHECK(parent_of(tree, children[i]) == slot);
            CHECK(is_higher(tree, slot, children[i]));
        }
        if (before != SLOT_NONE) {
            CHECK(tree->before(tree->context, before, slot));
            CHECK(!tree->before(tree->context, slot, before));
        }
        before = slot;
        count++;
        CHECK(count <= tree->slot_max);
    }
    return count;
}

/*
 * test_tree.c -- sets stay in order and know their sums: a random history of adds, removes and
 * changes in several sets over one forest agrees with plain arrays at every step. No order of
 * arrivals makes a set deep, and adding costs comparisons in proportion to the logarithm.
 */
#include "base/tree.h"

#include "base/prng.h"
#include "base/table.h"
#include "unit/test.h"

/* Elements with a key, which is the order, and a weight; a slot knows count and weight of what is
 * below it. */
struct items {
    uint32_t *keys, *weights;
    uint32_t *counts, *sums;
    uint64_t compared; /* calls of is_before */
};

static bool is_before(const void *context, uint32_t a, uint32_t b)
{
    struct items *items = (struct items *)(uintptr_t)context;
    assert_int_not_equal(a, b);
    items->compared++;
    return items->keys[a] != items->keys[b] ? items->keys[a] < items->keys[b] : a < b;
}

static bool sum_up(void *context, uint32_t slot, uint32_t left, uint32_t right)
{
    struct items *items = context;
    uint32_t count_before = items->counts[slot], sum_before = items->sums[slot];
    items->counts[slot] = 1;
    items->sums[slot] = items->weights[slot];
    if (left != SLOT_NONE) {
        items->counts[slot] += items->counts[left];
        items->sums[slot] += items->sums[left];
    }
    if (right != SLOT_NONE) {
        items->counts[slot] += items->counts[right];
        items->sums[slot] += items->sums[right];
    }
    return items->counts[slot] != count_before || items->sums[slot] != sum_before;
}

static struct items items_new(uint32_t count)
{
    struct items items = {.keys = calloc(count, sizeof(uint32_t)),
                          .weights = calloc(count, sizeof(uint32_t)),
                          .counts = calloc(count, sizeof(uint32_t)),
                          .sums = calloc(count, sizeof(uint32_t))};
    assert_non_null(items.keys);
    assert_non_null(items.weights);
    assert_non_null(items.counts);
    assert_non_null(items.sums);
    return items;
}

static void items_free(struct items *items)
{
    free(items->keys);
    free(items->weights);
    free(items->counts);
    free(items->sums);
}

TEST(test_tree__empty_and_single)
{
    struct items items = items_new(4);
    struct tree tree;
    tree_root root = 0;
    assert_int_equal(tree_init(&tree, 4, 1, is_before, sum_up, &items), 0);
    assert_int_equal(tree_check(&tree, root), 0);
    assert_int_equal(tree_top(root), SLOT_NONE);
    assert_int_equal(tree_first(&tree, root), SLOT_NONE);
    tree_add(&tree, &root, 3);
    assert_int_equal(tree_check(&tree, root), 1);
    assert_int_equal(tree_top(root), 3);
    assert_int_equal(tree_first(&tree, root), 3);
    assert_int_equal(tree_left(&tree, 3), SLOT_NONE);
    assert_int_equal(tree_right(&tree, 3), SLOT_NONE);
    assert_int_equal(tree_next(&tree, 3), SLOT_NONE);
    tree_remove(&tree, &root, 3);
    assert_int_equal(root, 0);
    tree_done(&tree);
    items_free(&items);
}

/* ---- random histories ---- */

enum { SLOTS = 61, SETS = 3, STEPS = 30000, IN_NONE = SETS };

/* The plain form: which set a slot is in. */
struct model {
    uint32_t set[SLOTS];
};

/* The slot of this set that comes right after `slot`, or the first one; SLOT_NONE: none. */
static uint32_t model_next(const struct model *model, const struct items *items, uint32_t set,
                           uint32_t slot)
{
    uint32_t best = SLOT_NONE;
    for (uint32_t i = 0; i < SLOTS; i++) {
        if (model->set[i] != set || i == slot)
            continue;
        if (slot != SLOT_NONE && !is_before(items, slot, i))
            continue;
        if (best == SLOT_NONE || is_before(items, i, best))
            best = i;
    }
    return best;
}

static void assert_same_set(const struct tree *tree, tree_root root, const struct model *model,
                            const struct items *items, uint32_t set)
{
    uint32_t count = 0, weight = 0, before = SLOT_NONE;
    uint32_t slot = tree_first(tree, root);
    for (;; before = slot, slot = tree_next(tree, slot)) {
        assert_int_equal(slot, model_next(model, items, set, before));
        if (slot == SLOT_NONE)
            break;
        count++;
        weight += items->weights[slot];
    }
    assert_int_equal(tree_check(tree, root), count);
    if (count > 0) {
        assert_int_equal(items->counts[tree_top(root)], count);
        assert_int_equal(items->sums[tree_top(root)], weight);
    }
}

TEST(test_tree__random_history)
{
    struct items items = items_new(SLOTS);
    struct model model;
    struct tree tree;
    tree_root roots[SETS] = {0};
    struct prng prng = {20261};
    for (uint32_t i = 0; i < SLOTS; i++)
        model.set[i] = IN_NONE;
    assert_int_equal(tree_init(&tree, SLOTS, 7, is_before, sum_up, &items), 0);
    for (uint32_t step = 0; step < STEPS; step++) {
        uint32_t slot = (uint32_t)prng_below(&prng, SLOTS), set = model.set[slot];
        if (set == IN_NONE) {
            set = (uint32_t)prng_below(&prng, SETS);
            items.keys[slot] = (uint32_t)prng_below(&prng, 20); /* many are equal */
            items.weights[slot] = (uint32_t)prng_below(&prng, 1000);
            tree_add(&tree, &roots[set], slot);
            model.set[slot] = set;
        } else if (prng_chance(&prng, 30)) {
            items.weights[slot] = (uint32_t)prng_below(&prng, 1000);
            tree_touch(&tree, slot);
        } else {
            tree_remove(&tree, &roots[set], slot);
            model.set[slot] = IN_NONE;
        }
        assert_same_set(&tree, roots[set], &model, &items, set);
    }
    for (uint32_t set = 0; set < SETS; set++)
        assert_same_set(&tree, roots[set], &model, &items, set);
    tree_done(&tree);
    items_free(&items);
}

TEST(test_tree__the_shape_is_the_same_whatever_the_order)
{
    enum { COUNT = 200 };
    struct items items = items_new(COUNT);
    struct tree up, down;
    tree_root up_root = 0, down_root = 0;
    assert_int_equal(tree_init(&up, COUNT, 9, is_before, NULL, &items), 0);
    assert_int_equal(tree_init(&down, COUNT, 9, is_before, NULL, &items), 0);
    for (uint32_t i = 0; i < COUNT; i++)
        items.keys[i] = i;
    for (uint32_t i = 0; i < COUNT; i++) {
        tree_add(&up, &up_root, i);
        tree_add(&down, &down_root, COUNT - 1 - i);
    }
    for (uint32_t i = 0; i < COUNT; i += 3) { /* gone and back again */
        tree_remove(&up, &up_root, i);
        tree_add(&up, &up_root, i);
    }
    assert_int_equal(up_root, down_root);
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_int_equal(tree_left(&up, i), tree_left(&down, i));
        assert_int_equal(tree_right(&up, i), tree_right(&down, i));
    }
    tree_done(&up);
    tree_done(&down);
    items_free(&items);
}

/* ---- depth ---- */

enum { MANY = 100000 };

/* The longest way down. The recursion is as deep as what it measures. */
static uint32_t depth_below(const struct tree *tree, uint32_t slot)
{
    if (slot == SLOT_NONE)
        return 0;
    uint32_t left = depth_below(tree, tree_left(tree, slot));
    uint32_t right = depth_below(tree, tree_right(tree, slot));
    return 1 + (left > right ? left : right);
}

static uint32_t ascending(uint32_t i)
{
    return i;
}

static uint32_t descending(uint32_t i)
{
    return MANY - i;
}

static uint32_t equal(uint32_t i)
{
    (void)i;
    return 5;
}

static uint32_t from_both_ends(uint32_t i)
{
    return i % 2 == 0 ? i : 2 * MANY - i;
}

TEST(test_tree__no_order_of_arrivals_makes_it_deep)
{
    uint32_t (*const orders[])(uint32_t) = {ascending, descending, equal, from_both_ends};
    struct items items = items_new(MANY);
    for (uint32_t i = 0; i < 4; i++) {
        struct tree tree;
        tree_root root = 0;
        assert_int_equal(tree_init(&tree, MANY, 11 + i, is_before, sum_up, &items), 0);
        items.compared = 0;
        for (uint32_t slot = 0; slot < MANY; slot++) {
            items.keys[slot] = orders[i](slot);
            items.weights[slot] = 1;
            tree_add(&tree, &root, slot);
        }
        /* log2 of MANY is 17. A random tree has about 2.5 times that depth, and a way down it is
         * about 1.4 times that long. */
        uint64_t compared = items.compared / MANY;
        uint32_t depth = depth_below(&tree, tree_top(root));
        print_message("# order %u: depth %u, %u comparisons per add\n", i, depth,
                      (unsigned)compared);
        assert_in_range(depth, 17, 68);
        assert_in_range(compared, 1, 34);
        assert_int_equal(tree_check(&tree, root), MANY);
        assert_int_equal(items.sums[tree_top(root)], MANY);
        for (uint32_t slot = 0; slot < MANY; slot++)
            tree_remove(&tree, &root, slot);
        assert_int_equal(root, 0);
        tree_done(&tree);
    }
    items_free(&items);
}

/* A sum that one slot more or less often leaves as it was: the largest weight. */
static bool find_largest(void *context, uint32_t slot, uint32_t left, uint32_t right)
{
    struct items *items = context;
    uint32_t before = items->sums[slot], largest = items->weights[slot];
    if (left != SLOT_NONE && items->sums[left] > largest)
        largest = items->sums[left];
    if (right != SLOT_NONE && items->sums[right] > largest)
        largest = items->sums[right];
    items->sums[slot] = largest;
    items->compared++;
    return largest != before;
}

/* The largest weight of a subtree, found by looking at all of it; every sum must be that. */
static uint32_t check_largest(const struct tree *tree, const struct items *items, uint32_t slot)
{
    if (slot == SLOT_NONE)
        return 0;
    uint32_t left = check_largest(tree, items, tree_left(tree, slot));
    uint32_t right = check_largest(tree, items, tree_right(tree, slot));
    uint32_t largest = items->weights[slot] > left ? items->weights[slot] : left;
    largest = right > largest ? right : largest;
    assert_int_equal(items->sums[slot], largest);
    return largest;
}

TEST(test_tree__a_sum_that_stays_ends_the_way_up)
{
    enum { SOME = 500, CHANGES = 3000 };
    struct items items = items_new(SOME);
    struct prng prng = {5};
    struct tree tree;
    tree_root root = 0;
    bool is_in[SOME] = {false};
    assert_int_equal(tree_init(&tree, SOME, 13, is_before, find_largest, &items), 0);
    for (uint32_t i = 0; i < CHANGES; i++) {
        uint32_t slot = (uint32_t)prng_below(&prng, SOME);
        if (is_in[slot] && i % 3 == 0) {
            items.weights[slot] = (uint32_t)prng_below(&prng, 1000);
            tree_touch(&tree, slot);
        } else if (is_in[slot]) {
            tree_remove(&tree, &root, slot);
            is_in[slot] = false;
        } else {
            items.keys[slot] = (uint32_t)prng_below(&prng, 100);
            items.weights[slot] = (uint32_t)prng_below(&prng, 1000);
            tree_add(&tree, &root, slot); /* its sum is what it was when it went */
            is_in[slot] = true;
        }
        (void)check_largest(&tree, &items, tree_top(root));
    }
    items.compared = 0;
    tree_touch(&tree, tree_first(&tree, root)); /* nothing has changed */
    assert_int_equal(items.compared, 1);
    tree_done(&tree);
    items_free(&items);
}

TEST_MAIN(NULL, NULL, NULL, NULL)

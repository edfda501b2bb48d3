/*
 * test_span.c -- sets of elements answer like a plain list: random histories of every shape, in
 * several sets over one table, with searches compared and all invariants checked on the way. There
 * are nodes enough for the sets that need the most.
 */
#include "core/span.h"

#include "base/prng.h"
#include "unit/test.h"

enum { SLOTS = 3000, SETS = 3, OWNERS = 5, NOWHERE = SETS };

static struct claim claims[SLOTS];
static uint32_t place[SLOTS]; /* the set that a slot is in, or NOWHERE */
static span_root roots[SETS];
static struct spans spans;
static uint64_t looks; /* at claims */

static const struct claim *claim_at(const void *context, uint32_t slot)
{
    looks++;
    assert_ptr_equal(context, claims);
    return &claims[slot];
}

static void open_all(uint32_t slot_max)
{
    assert_int_equal(span_init(&spans, slot_max, claim_at, claims), 0);
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        place[slot] = NOWHERE;
    memset(roots, 0, sizeof roots);
}

/* ---- the plain list ---- */

static bool is_before(uint32_t a, uint32_t b)
{
    return claims[a].start != claims[b].start ? claims[a].start < claims[b].start : a < b;
}

/* The first in a set, behind one of its slots or of all, that conflicts; NULL: any. */
static uint32_t plain_find(uint32_t set, const struct claim *claim, uint32_t after)
{
    uint32_t best = SLOT_NONE;
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        if (place[slot] == set && (after == SLOT_NONE || is_before(after, slot)) &&
            (claim == NULL || claim_conflicts(&claims[slot], claim)) &&
            (best == SLOT_NONE || is_before(slot, best)))
            best = slot;
    return best;
}

static uint32_t plain_count(uint32_t set)
{
    uint32_t count = 0;
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        count += place[slot] == set;
    return count;
}

/* ---- histories ---- */

/* What the elements of a history look like. */
struct shape {
    const char *name;
    uint64_t bytes;   /* first bytes are below this */
    uint64_t len_max; /* 0: to the end of the file */
    uint32_t owners, exclusive_percent;
    bool is_ascending, is_descending;
};

static const struct shape shapes[] = {
    {"disjoint and exclusive", 100000, 3, OWNERS, 100, false, false},
    {"few first bytes", 4, 50, OWNERS, 30, false, false},
    {"all to the end", 1000, 0, OWNERS, 10, false, false},
    {"of one owner", 2000, 40, 1, 50, false, false},
    {"shared", 2000, 400, 2, 3, false, false},
    {"in order", 0, 6, OWNERS, 50, true, false},
    {"backwards", 0, 6, OWNERS, 50, false, true},
};

static struct claim any_claim(struct prng *prng, const struct shape *shape, uint64_t start)
{
    uint64_t len = shape->len_max == 0 ? 0 : prng_below(prng, shape->len_max);
    return (struct claim){.start = start,
                          .end =
                              shape->len_max == 0 ? UINT64_MAX - prng_below(prng, 3) : start + len,
                          .owner = (uint32_t)prng_below(prng, shape->owners),
                          .exclusive = prng_chance(prng, shape->exclusive_percent)};
}

static uint64_t any_start(struct prng *prng, const struct shape *shape, uint32_t step)
{
    if (shape->is_ascending)
        return 4 * (uint64_t)step;
    return shape->is_descending ? 1000000 - 4 * (uint64_t)step : prng_below(prng, shape->bytes);
}

static void ask(struct prng *prng, const struct shape *shape, uint32_t step)
{
    uint32_t set = (uint32_t)prng_below(prng, SETS);
    struct claim claim =
        any_claim(prng, shape, any_start(prng, shape, (uint32_t)prng_below(prng, step + 1)));
    claim.exclusive = prng_chance(prng, 50);
    if (prng_chance(prng, 20))
        claim.owner = SLOT_NONE;
    uint32_t found = span_find(&spans, roots[set], &claim);
    assert_int_equal(found, plain_find(set, &claim, SLOT_NONE));
    for (uint32_t i = 0; i < 3 && found != SLOT_NONE; i++) {
        uint32_t next = span_find_after(&spans, roots[set], &claim, found);
        assert_int_equal(next, plain_find(set, &claim, found));
        found = next;
    }
    uint32_t first = span_first(&spans, roots[set]);
    assert_int_equal(first, plain_find(set, NULL, SLOT_NONE));
    uint32_t slot = (uint32_t)prng_below(prng, SLOTS);
    if (place[slot] != NOWHERE)
        assert_int_equal(span_next(&spans, roots[place[slot]], slot),
                         plain_find(place[slot], NULL, slot));
}

static void add_or_remove(struct prng *prng, const struct shape *shape, uint32_t step,
                          uint32_t add_percent)
{
    uint32_t slot = (uint32_t)prng_below(prng, SLOTS);
    if (place[slot] == NOWHERE && prng_chance(prng, add_percent)) {
        claims[slot] = any_claim(prng, shape, any_start(prng, shape, step));
        place[slot] = (uint32_t)prng_below(prng, 10) == 0 ? 1 + (uint32_t)prng_below(prng, 2) : 0;
        span_add(&spans, &roots[place[slot]], slot);
    } else if (place[slot] != NOWHERE && prng_chance(prng, 30)) {
        struct claim before = claims[slot];
        claims[slot] = any_claim(prng, shape, before.start);
        claims[slot].owner = before.owner;
        span_change(&spans, roots[place[slot]], slot, &before);
    } else if (place[slot] != NOWHERE && !prng_chance(prng, add_percent)) {
        span_remove(&spans, &roots[place[slot]], slot);
        place[slot] = NOWHERE;
    }
}

static void check_all(void)
{
    for (uint32_t set = 0; set < SETS; set++)
        assert_int_equal(span_check(&spans, roots[set]), plain_count(set));
    table_check(&spans.nodes.leaves);
    table_check(&spans.nodes.inners);
}

static void run_history(const struct shape *shape, uint64_t seed)
{
    /* It grows, stays, shrinks to little, and grows again. */
    static const uint32_t add_percents[] = {90, 50, 15, 95, 5};
    struct prng prng = {seed};
    uint32_t step = 0;
    open_all(SLOTS);
    for (uint32_t phase = 0; phase < 5; phase++) {
        for (uint32_t i = 0; i < 8000; i++, step++) {
            add_or_remove(&prng, shape, step, add_percents[phase]);
            if (i % 16 == 0)
                ask(&prng, shape, step);
            if (i % 500 == 0)
                check_all();
        }
    }
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        if (place[slot] != NOWHERE) {
            span_remove(&spans, &roots[place[slot]], slot);
            place[slot] = NOWHERE;
        }
    for (uint32_t set = 0; set < SETS; set++)
        assert_int_equal(roots[set], 0);
    assert_int_equal(spans.nodes.leaves.count, 0);
    assert_int_equal(spans.nodes.inners.count, 0);
    span_done(&spans);
}

TEST(test_span__random_histories)
{
    for (uint32_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        print_message("# %s\n", shapes[i].name);
        run_history(&shapes[i], 40 + i);
    }
}

/* Every step is checked where sets change their form. */
TEST(test_span__rows_and_small_trees)
{
    struct prng prng = {77};
    const struct shape shape = {"", 20, 6, 3, 50, false, false};
    open_all(SLOTS);
    for (uint32_t i = 0; i < 20000; i++) {
        uint32_t slot = (uint32_t)prng_below(&prng, i / 1000 % 2 == 0 ? 12 : 60);
        if (place[slot] == NOWHERE) {
            claims[slot] = any_claim(&prng, &shape, prng_below(&prng, shape.bytes));
            place[slot] = 0;
            span_add(&spans, &roots[0], slot);
        } else {
            span_remove(&spans, &roots[0], slot);
            place[slot] = NOWHERE;
        }
        check_all();
        ask(&prng, &shape, i);
    }
    span_done(&spans);
}

static void put(span_root *root, uint32_t slot, uint64_t start)
{
    claims[slot] = (struct claim){.start = start, .end = start, .exclusive = true};
    span_add(&spans, root, slot);
}

/* Elements that come in order leave full nodes behind, one by one or as a pile. */
TEST(test_span__in_order_nodes_are_full)
{
    span_root root = 0, pile = 0;
    const uint32_t leaves = (SLOTS + SPAN_NODE_MAX - 1) / SPAN_NODE_MAX;
    open_all(SLOTS);
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        put(&root, slot, slot);
    assert_int_equal(span_check(&spans, root), SLOTS);
    assert_int_equal(spans.nodes.leaves.count, leaves);
    span_done(&spans);
    open_all(SLOTS);
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        claims[slot].start = claims[slot].end = (uint64_t)(slot * 7919U) % SLOTS;
        span_pile_add(&spans, &pile, slot);
    }
    span_pile_reverse(&spans, &pile);
    assert_int_equal(span_pile_first(pile), 0);
    assert_int_equal(span_pile_next(&spans, 0), 1);
    span_pile_sort(&spans, &pile, NULL);
    span_pile_build(&spans, &pile);
    assert_int_equal(span_check(&spans, pile), SLOTS);
    assert_int_equal(spans.nodes.leaves.count, leaves);
    span_done(&spans);
}

/* ---- piles ---- */

static uint64_t in_order(struct prng *prng, uint32_t i)
{
    (void)prng;
    return i;
}

static uint64_t backwards(struct prng *prng, uint32_t i)
{
    (void)prng;
    return UINT32_MAX - i;
}

static uint64_t anyhow(struct prng *prng, uint32_t i)
{
    (void)i;
    return prng_below(prng, 50); /* many are equal */
}

/* In runs, as two that came in order are, one after the other. */
static uint64_t in_runs(struct prng *prng, uint32_t i)
{
    (void)prng;
    return i % 7;
}

static bool is_smaller(const void *context, uint32_t a, uint32_t b)
{
    assert_ptr_equal(context, claims);
    assert_int_not_equal(a, b);
    return a < b;
}

static void compare_pile(uint32_t count, uint64_t seed, uint64_t (*key)(struct prng *, uint32_t))
{
    struct prng prng = {seed};
    span_root pile = 0;
    open_all(SLOTS);
    for (uint32_t slot = 0; slot < count; slot++) {
        claims[slot].start = claims[slot].end = key(&prng, slot);
        span_pile_add(&spans, &pile, slot);
        place[slot] = 0;
    }
    span_pile_sort(&spans, &pile, is_smaller);
    for (uint32_t slot = 0, at = span_pile_first(pile); slot < count;
         slot++, at = span_pile_next(&spans, at))
        assert_int_equal(at, slot);
    span_pile_sort(&spans, &pile, NULL);
    span_pile_build(&spans, &pile);
    assert_int_equal(span_check(&spans, pile), count);
    uint32_t at = span_first(&spans, pile);
    assert_int_equal(at, plain_find(0, NULL, SLOT_NONE));
    for (uint32_t i = 0; i < 40 && at != SLOT_NONE; i++) {
        uint32_t next = span_next(&spans, pile, at);
        assert_int_equal(next, plain_find(0, NULL, at));
        at = next;
    }
    span_done(&spans);
}

TEST(test_span__a_pile_becomes_a_set)
{
    static const uint32_t counts[] = {0, 1, 2, 3, 6, 7, 8, 9, 16, 33, 1000};
    for (uint32_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        for (uint64_t seed = 1; seed <= 5; seed++) {
            compare_pile(counts[i], seed, in_order);
            compare_pile(counts[i], seed, backwards);
            compare_pile(counts[i], seed, anyhow);
            compare_pile(counts[i], seed, in_runs);
        }
}

TEST(test_span__a_pile_in_order_costs_a_comparison_each)
{
    span_root pile = 0;
    open_all(SLOTS);
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        claims[slot].start = slot;
        span_pile_add(&spans, &pile, slot);
    }
    span_pile_reverse(&spans, &pile);
    looks = 0;
    span_pile_sort(&spans, &pile, NULL);
    assert_int_equal(looks, 2 * (SLOTS - 1));
    span_done(&spans);
}

/* ---- nodes ---- */

/* A full leaf and a last one with one element; then the full one gets as thin as it may be. */
TEST(test_span__there_are_nodes_for_the_thinnest_sets)
{
    enum { THIN = SPAN_NODE_MIN + 1, LAST = SPAN_NODE_MIN };
    static span_root sets[SLOTS / THIN];
    uint32_t used = 0, count = 0;
    open_all(SLOTS);
    memset(sets, 0, sizeof sets);
    for (; used + SPAN_NODE_MAX + 1 <= SLOTS; used += THIN, count++) {
        for (uint32_t i = 0; i <= SPAN_NODE_MAX; i++)
            if (i != LAST)
                put(&sets[count], used + i, i);
        put(&sets[count], used + LAST, 1000);
        for (uint32_t i = THIN; i <= SPAN_NODE_MAX; i++)
            span_remove(&spans, &sets[count], used + i);
    }
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(span_check(&spans, sets[i]), THIN);
    assert_int_equal(spans.nodes.leaves.count, 2 * count);
    assert_int_equal(spans.nodes.inners.count, count);
    assert_in_range(spans.nodes.inners.max, count, count + 3);
    span_done(&spans);
}

TEST_MAIN(NULL, NULL, NULL, NULL)

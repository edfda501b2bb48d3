/*
 * test_lock_cost.c -- searches stay short however many locks a file has (P7).
 *
 * Steps are counted, not timed: the linker leads every look at an element, or at a node of a set
 * (table_at), through this file. Files with 10 and with 100,000 locks of every shape that could
 * make a search walk are asked the same questions, and no answer takes more looks than a set has
 * levels, or a few times that.
 */
#include "lock_world.h"

#include "base/prng.h"
#include "unit/test.h"

enum {
    FEW = 10,
    MANY = 100000,
    QUESTIONS = 1000,
    NODES_MAX = 8, /* of a set, on the way down, and what they belong to */
};

static uint64_t steps;

/* The linker gives these names. */
void *__real_table_at(const struct table *table, uint32_t slot);
void *__wrap_table_at(const struct table *table, uint32_t slot);

void *__wrap_table_at(const struct table *table, uint32_t slot)
{
    steps++;
    return __real_table_at(table, slot);
}

/* Who asks: it has locks in some of the files. */
static const struct who asker = {0, 1, 0};

/* Lock number i of a file of a shape. */
typedef void (*shape_fn)(struct core *core, uint32_t i);

static void take(struct core *core, uint32_t svid, uint64_t start, uint64_t end, bool exclusive)
{
    struct who who = {0, svid, 0};
    assert_true(lock_world_take(core, who, start, end, exclusive));
    dirty_clear(&core->dirty);
}

/* Everybody reads everything. */
static void all_shared_and_overlapping(struct core *core, uint32_t i)
{
    take(core, 10 + i, i, UINT64_MAX - i, false);
}

/* The asker has all of them itself. */
static void all_of_the_asker(struct core *core, uint32_t i)
{
    take(core, asker.svid, 10 * (uint64_t)i, 10 * (uint64_t)i + 4, i % 2 == 0);
}

static void all_of_another(struct core *core, uint32_t i)
{
    take(core, 10, 10 * (uint64_t)i, 10 * (uint64_t)i + 4, true);
}

static void disjoint_of_many(struct core *core, uint32_t i)
{
    take(core, 10 + i, 10 * (uint64_t)i, 10 * (uint64_t)i + 4, true);
}

/* Shared ones everywhere, and exclusive ones of the asker among them. */
static void own_among_others(struct core *core, uint32_t i)
{
    if (i % 2 == 0)
        take(core, asker.svid, 10 * (uint64_t)i, 10 * (uint64_t)i + 4, true);
    else
        take(core, 10 + i, 10 * (uint64_t)i, 10 * (uint64_t)i + 4, false);
}

/* Offers may overlap what their owner has: many that reach to the end, and another's short ones. */
static void long_own_offers(struct core *core, uint32_t i)
{
    struct who who = i % 2 == 0 ? asker : (struct who){0, 10 + i, 0};
    uint64_t end = i % 2 == 0 ? UINT64_MAX : 10 * (uint64_t)i + 4;
    struct lock_want want = lock_world_want(10 * (uint64_t)i, end, false);
    assert_int_not_equal(lock_world_offer(core, who, &want, 1), SLOT_NONE);
    dirty_clear(&core->dirty);
}

/* The most steps that any of the questions took. */
struct cost {
    uint64_t find, next, own;
};

static void more(uint64_t *most)
{
    *most = steps > *most ? steps : *most;
    steps = 0;
}

static struct cost ask(const struct core *core, uint32_t count)
{
    struct cost cost = {0};
    struct prng prng = {count};
    for (uint32_t i = 0; i < QUESTIONS; i++) {
        uint64_t start = prng_below(&prng, 10 * (uint64_t)count + 20);
        uint64_t end = prng_chance(&prng, 50) ? start + prng_below(&prng, 20) : UINT64_MAX;
        struct claim claim = lock_world_claim(core, asker, start, end, prng_chance(&prng, 50));
        steps = 0;
        uint32_t slot = lock_find_conflict(core, &claim);
        more(&cost.find);
        for (uint32_t j = 0; j < 3 && slot != SLOT_NONE; j++) {
            slot = lock_next_conflict(core, &claim, slot);
            more(&cost.next);
        }
        if (claim.owner != SLOT_NONE) {
            claim.end = claim.start;
            (void)lock_covers(core, &claim);
            more(&cost.own);
        }
    }
    return cost;
}

static struct cost cost_of(shape_fn shape, uint32_t count)
{
    struct core *core = lock_world_new(1, MANY, &lock_world_limits);
    for (uint32_t i = 0; i < count; i++)
        shape(core, i);
    assert_int_equal(core->locks.table.count, count);
    struct cost cost = ask(core, count);
    lock_world_free(core);
    return cost;
}

TEST(test_lock_cost__searches_stay_short)
{
    const struct {
        const char *name;
        shape_fn shape;
    } shapes[] = {
        {"all shared and overlapping", all_shared_and_overlapping},
        {"all of the asker", all_of_the_asker},
        {"all of one other", all_of_another},
        {"disjoint, of many", disjoint_of_many},
        {"own among others", own_among_others},
        {"long own offers", long_own_offers},
    };
    for (uint32_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct cost few = cost_of(shapes[i].shape, FEW), many = cost_of(shapes[i].shape, MANY);
        print_message("# %s: first %u -> %u steps, next %u -> %u, own %u -> %u\n", shapes[i].name,
                      (unsigned)few.find, (unsigned)many.find, (unsigned)few.next,
                      (unsigned)many.next, (unsigned)few.own, (unsigned)many.own);
        assert_true(many.find <= NODES_MAX);
        assert_true(many.next <= 3 * NODES_MAX); /* down to the last one, up, and down */
        assert_true(many.own <= 2 * NODES_MAX);  /* and what is found is looked at */
    }
}

TEST_MAIN(NULL, NULL, NULL, NULL)

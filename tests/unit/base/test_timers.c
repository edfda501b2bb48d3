/*
 * test_timers.c -- deadlines come in order, ties in the order in which they were set, and a random
 * history of sets, moves, clears and takes agrees with a plain array at every step.
 */
#include "base/timers.h"

#include "base/prng.h"
#include "base/table.h"
#include "unit/test.h"

TEST(test_timers__in_order_of_deadline)
{
    struct timers timers;
    assert_int_equal(timers_init(&timers, 8), 0);
    assert_int_equal(timers_next_ns(&timers), UINT64_MAX);
    assert_int_equal(timers_take(&timers, UINT64_MAX), SLOT_NONE);
    const uint64_t deadlines[] = {50, 10, 40, 20, 30};
    for (uint32_t slot = 0; slot < 5; slot++)
        timers_set(&timers, slot, deadlines[slot]);
    timers_check(&timers);
    assert_int_equal(timers_next_ns(&timers), 10);
    assert_int_equal(timers_take(&timers, 9), SLOT_NONE);
    const uint32_t order[] = {1, 3, 4, 2, 0};
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(timers_take(&timers, deadlines[order[i]]), order[i]);
        assert_false(timers_is_set(&timers, order[i]));
        timers_check(&timers);
    }
    assert_int_equal(timers_next_ns(&timers), UINT64_MAX);
    timers_done(&timers);
}

TEST(test_timers__ties_come_in_the_order_they_were_set)
{
    struct timers timers;
    assert_int_equal(timers_init(&timers, 100), 0);
    for (uint32_t slot = 100; slot-- > 0;)
        timers_set(&timers, slot, 7);
    timers_set(&timers, 99, 7); /* set again: now the last */
    for (uint32_t slot = 99; slot-- > 0;)
        assert_int_equal(timers_take(&timers, 7), slot);
    assert_int_equal(timers_take(&timers, 7), 99);
    timers_done(&timers);
}

TEST(test_timers__clearing_what_is_not_set)
{
    struct timers timers;
    assert_int_equal(timers_init(&timers, 2), 0);
    timers_clear(&timers, 1);
    timers_set(&timers, 0, 5);
    timers_clear(&timers, 1);
    assert_true(timers_is_set(&timers, 0));
    timers_clear(&timers, 0);
    timers_clear(&timers, 0);
    assert_false(timers_is_set(&timers, 0));
    timers_check(&timers);
    timers_done(&timers);
}

enum { SLOTS = 37, STEPS = 20000 };

/* The plain form: what the heap should do. */
struct model {
    bool is_set;
    uint64_t deadline_ns, order;
};

static uint32_t model_first(const struct model *model)
{
    uint32_t first = SLOT_NONE;
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        if (!model[slot].is_set)
            continue;
        if (first == SLOT_NONE || model[slot].deadline_ns < model[first].deadline_ns ||
            (model[slot].deadline_ns == model[first].deadline_ns &&
             model[slot].order < model[first].order))
            first = slot;
    }
    return first;
}

TEST(test_timers__random_history)
{
    struct timers timers;
    struct model model[SLOTS] = {{0}};
    struct prng prng = {20260};
    assert_int_equal(timers_init(&timers, SLOTS), 0);
    for (uint64_t step = 0; step < STEPS; step++) {
        uint32_t slot = (uint32_t)prng_below(&prng, SLOTS);
        uint64_t now_ns = prng_below(&prng, 50);
        uint64_t choice = prng_below(&prng, 10);
        uint32_t first = model_first(model);
        if (choice < 5) {
            timers_set(&timers, slot, now_ns);
            model[slot] = (struct model){true, now_ns, step};
        } else if (choice < 8) {
            timers_clear(&timers, slot);
            model[slot].is_set = false;
        } else {
            bool is_due = first != SLOT_NONE && model[first].deadline_ns <= now_ns;
            assert_int_equal(timers_take(&timers, now_ns), is_due ? first : SLOT_NONE);
            if (is_due)
                model[first].is_set = false;
        }
        timers_check(&timers);
        first = model_first(model);
        assert_int_equal(timers_next_ns(&timers),
                         first == SLOT_NONE ? UINT64_MAX : model[first].deadline_ns);
        assert_int_equal(timers_is_set(&timers, slot), model[slot].is_set);
    }
    timers_done(&timers);
}

TEST_MAIN(NULL, NULL, NULL, NULL)

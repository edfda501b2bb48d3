/*
 * test_clock.c -- shows that one turn has one time, that it is the time, and when
 * something was heard.
 */
#include "unit/test.h"
#include "wire/clock.h"

#include <time.h>

static uint64_t read_ns(clockid_t id)
{
    struct timespec t;
    assert_int_equal(clock_gettime(id, &t), 0);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void wait_for_the_next_ns(void)
{
    uint64_t start_ns = read_ns(CLOCK_MONOTONIC);
    while (read_ns(CLOCK_MONOTONIC) == start_ns)
        ;
}

TEST(test_clock__a_turn_has_one_time)
{
    struct clock clock = {0};
    uint64_t now_ns = clock_now_ns(&clock), wall_ns = clock_wall_ns(&clock);
    wait_for_the_next_ns();
    assert_true(clock_now_ns(&clock) == now_ns);
    assert_true(clock_wall_ns(&clock) == wall_ns);
    clock_turn_over(&clock);
    assert_true(clock_now_ns(&clock) > now_ns);
    now_ns = clock.now_ns;
    wait_for_the_next_ns();
    assert_true(clock_now_ns(&clock) == now_ns);
}

TEST(test_clock__both_clocks_are_the_kernels)
{
    struct clock clock = {0};
    uint64_t before_ns = read_ns(CLOCK_MONOTONIC);
    (void)clock_wall_ns(&clock); /* asking for one reads both */
    uint64_t after_ns = read_ns(CLOCK_MONOTONIC);
    assert_true(clock_now_ns(&clock) >= before_ns && clock_now_ns(&clock) <= after_ns);
    /* Somebody may set the wall clock meanwhile; it is still not the monotonic one. */
    uint64_t real_ns = read_ns(CLOCK_REALTIME), hour_ns = UINT64_C(3600) * 1000000000;
    assert_true(clock_wall_ns(&clock) + hour_ns > real_ns);
    assert_true(clock_wall_ns(&clock) < real_ns + hour_ns);
}

TEST(test_clock__what_was_heard_is_lately_for_a_while)
{
    struct clock clock = {0};
    assert_false(clock_heard_lately(&clock));
    clock_heard(&clock);
    assert_true(clock_heard_lately(&clock));
    clock.raw_ns += 99 * UINT64_C(1000000); /* still the same turn: it is not read again */
    assert_true(clock_heard_lately(&clock));
    clock.raw_ns += 2 * UINT64_C(1000000);
    assert_false(clock_heard_lately(&clock));
    clock_turn_over(&clock);
    clock_heard(&clock);
    assert_true(clock_heard_lately(&clock));
}

TEST_MAIN(NULL, NULL, NULL, NULL)

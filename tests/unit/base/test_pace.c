/*
 * test_pace.c -- lived time: it goes with the clock, and not on while the process stands still.
 */
#include "base/pace.h"
#include "unit/test.h"

#define SECOND UINT64_C(1000000000)
#define MS     UINT64_C(1000000)

TEST(test_pace__goes_with_the_clock)
{
    struct pace pace = {0};
    assert_int_equal(pace_now_ns(&pace, 500 * SECOND), 500 * SECOND); /* since the machine booted */
    for (uint64_t i = 1; i < 100; i++) {
        pace_sleep(&pace, 500 * SECOND + i * SECOND);
        assert_int_equal(pace_now_ns(&pace, 500 * SECOND + i * SECOND + 900 * MS),
                         500 * SECOND + i * SECOND + 900 * MS);
    }
    assert_int_equal(pace.stood_ns, 0);
}

TEST(test_pace__a_standstill_is_no_time)
{
    struct pace pace = {0};
    (void)pace_now_ns(&pace, 10 * SECOND);
    pace_sleep(&pace, 10 * SECOND + 250 * MS);
    assert_int_equal(pace_now_ns(&pace, 40 * SECOND), 10 * SECOND + 250 * MS);
    pace_sleep(&pace, 40 * SECOND + 250 * MS);
    assert_int_equal(pace_now_ns(&pace, 41 * SECOND), 11 * SECOND + 250 * MS);
    assert_int_equal(pace.stood_ns, 29 * SECOND + 750 * MS);
    pace_sleep(&pace, 42 * SECOND);
    (void)pace_now_ns(&pace, 45 * SECOND);
    assert_int_equal(pace.stood_ns, 32 * SECOND + 750 * MS);
}

TEST(test_pace__who_sleeps_long_on_purpose_does_not_stand_still)
{
    struct pace pace = {0};
    (void)pace_now_ns(&pace, 10 * SECOND);
    pace_sleep(&pace, 100 * SECOND);
    assert_int_equal(pace_now_ns(&pace, 100 * SECOND), 100 * SECOND);
    pace_sleep(&pace, UINT64_MAX);
    assert_int_equal(pace_now_ns(&pace, 10000 * SECOND), 10000 * SECOND);
}

TEST_MAIN(NULL, NULL, NULL, NULL)

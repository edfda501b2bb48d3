/*
 * test_recent.c -- what was done in the last seconds, and not before.
 */
#include "daemon/recent.h"

#include "base/units.h"
#include "unit/test.h"

static struct recent recent;
static struct meter meter;
static struct histogram commits;

static int set_up(void **state)
{
    static struct meter_row rows[METER_PROCEDURES_MAX];
    static const struct program program, *programs[] = {&program};
    (void)state;
    recent = (struct recent){0};
    rows[0] = (struct meter_row){0};
    meter = (struct meter){.programs = programs, .program_count = 1, .rows = rows};
    histogram_init(&commits, &histogram_durations);
    return 0;
}

/* So many requests and commits of 2 ms in this second. */
static void second(uint64_t at, uint64_t requests, uint64_t commit_count)
{
    meter.rows[0].succeeded += requests;
    for (uint64_t i = 0; i < commit_count; i++)
        histogram_add(&commits, 2 * MS_NS);
    recent_tick(&recent, at * SECOND_NS, &meter, &commits);
}

static struct admin_recent now(uint64_t at)
{
    struct admin_recent ret;
    recent_get(&recent, at * SECOND_NS, &meter, &commits, &ret);
    return ret;
}

TEST(test_recent__nothing_before_the_first_mark)
{
    assert_int_equal(now(1).window_ns, 0);
}

TEST(test_recent__what_is_measured_is_all_since_the_oldest_mark)
{
    second(1, 1000, 1000);
    second(2, 5, 1);
    second(3, 7, 1);
    assert_int_equal(now(3).window_ns, 2 * SECOND_NS);
    assert_int_equal(now(3).requests, 12);
    assert_int_equal(now(3).commits, 2);
    assert_int_equal(now(3).commit_ns, 4 * MS_NS);
}

TEST(test_recent__what_is_older_is_forgotten)
{
    for (uint64_t at = 1; at < 60; at++)
        second(at, at < 40 ? 100 : 1, 0);
    assert_int_equal(now(60).window_ns, RECENT_SECONDS * SECOND_NS);
    assert_int_equal(now(60).requests, RECENT_SECONDS - 1); /* none in the last second */
    assert_int_equal(now(60).commits, 0);
}

TEST(test_recent__a_mark_is_set_once_a_second)
{
    for (uint64_t ms = 0; ms < 3000; ms += 250)
        recent_tick(&recent, SECOND_NS + ms * MS_NS, &meter, &commits);
    assert_int_equal(recent.count, 3);
}

TEST(test_recent__nothing_is_measured_without_a_meter)
{
    struct admin_recent ret;
    recent_tick(&recent, SECOND_NS, NULL, &commits);
    recent_get(&recent, 2 * SECOND_NS, NULL, &commits, &ret);
    assert_int_equal(ret.window_ns, 0);
}

TEST_MAIN(set_up, NULL, NULL, NULL)

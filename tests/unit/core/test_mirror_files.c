/*
 * test_mirror_files.c -- how many mirrored files one address may have (core/mirror.h).
 *
 * The kernel takes everything. Passing shows that half of the files go to anybody, that
 * behind them an address gets its share and no more, whatever it asks for, that a file counts until
 * nothing is on it, and that a start counts what is stored.
 */
#include "core/state.h"
#include "monitor.h"
#include "unit/test.h"

static uint32_t open_file(void *context, struct bytes fh)
{
    (void)context;
    return fh.at[0];
}

static void close_file(void *context, uint32_t file)
{
    (void)context;
    (void)file;
}

static bool set_bytes(void *context, uint32_t file, const struct local_range *range)
{
    (void)context;
    (void)file;
    (void)range;
    return true;
}

static bool find_nobody(void *context, struct bytes fh, const struct local_range *range,
                        struct local_holder *ret)
{
    (void)context;
    (void)fh;
    (void)range;
    (void)ret;
    return false;
}

static const struct local_locks world = {.open = open_file,
                                         .close = close_file,
                                         .raise = set_bytes,
                                         .lower = set_bytes,
                                         .refine = close_file,
                                         .find = find_nobody};

static void start(uint32_t files_max, uint32_t percent)
{
    struct core_limits limits = fixture_limits;
    limits.local_files_max = files_max;
    limits.per_address_percent = percent;
    locker_new(&limits);
    core_mirror(the_core, &world);
}

TEST(test_mirror_files__an_address_leaves_some_to_others)
{
    start(2, 50);
    tell("A lock 0 1 X -> granted; A lock 0 1 X of g -> nolocks");
    assert_int_equal(events_of(EVENT_ADDRESS_LIMIT), 1);
    tell("B lock 0 1 X of g -> granted; A lock 5 1 X -> granted; A lock 5 1 X of g -> granted");
    core_check(the_core);
    tell("B unlock 0 1 of g -> granted; A unlock 0 9 -> granted");
    tell("A lock 0 1 X of h -> granted; A lock 0 1 X -> nolocks"); /* g counts for B still */
    core_check(the_core);
    tell("A unlock 0 9 of g -> granted; A unlock 0 9 of h -> granted; A lock 0 1 X -> granted");
    core_check(the_core);
}

TEST(test_mirror_files__shares_need_files_too)
{
    start(2, 50);
    tell(
        "A lock 0 1 X of g -> granted; A share rw deny w -> nolocks; B share rw deny w -> granted");
    core_check(the_core);
}

TEST(test_mirror_files__half_of_them_go_to_anybody)
{
    start(4, 25);
    tell("A lock 0 1 X -> granted; A lock 0 1 X of g -> granted; A lock 0 1 X of h -> nolocks");
    tell("B lock 0 1 X of h -> granted");
}

TEST(test_mirror_files__without_a_limit_they_go_to_anybody)
{
    start(2, 100);
    tell("A lock 0 1 X -> granted; A lock 0 1 X of g -> granted; A lock 0 1 X of h -> granted");
}

TEST(test_mirror_files__a_start_counts_what_is_stored)
{
    start(2, 50);
    tell("A lock 0 1 X -> granted; B lock 0 1 X of g -> granted");
    restart_unready();
    core_mirror(the_core, &world);
    fixture_ready(the_core);
    settle();
    core_check(the_core);
    tell("A lock 0 1 X reclaim -> granted; B lock 0 1 X of g reclaim -> granted; grace is over");
    tell("A lock 0 1 X of h -> nolocks; C lock 0 1 X of h -> granted");
    core_check(the_core);
}

TEST_MAIN(NULL, NULL, locker_set_up, locker_tear_down)

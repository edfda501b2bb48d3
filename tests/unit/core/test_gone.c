/*
 * test_gone.c -- locks of files that were removed go (core/gone.h).
 */
#include "fake_kernel.h"
#include "unit/test.h"

static void file_gone(const char *fh)
{
    const struct core_input input = {.kind = CORE_FILE_GONE,
                                     .now_ns = fixture_now_ns(),
                                     .wall_ns = fixture_now_ns(),
                                     .fh = bytes_of_text(fh)};
    core_step(the_core, &input, NULL);
    settle();
}

TEST(test_gone__locks_of_a_removed_file_go_and_waiters_are_answered)
{
    tell("A lock 0 4 X -> granted; A2 lock 8 1 S -> granted; A share rw deny w -> granted");
    tell("B lock 0 2 X wait -> blocked");
    file_gone("g");
    tell("there are 2 locks");
    file_gone("f");
    tell("there are 0 locks; there is 1 offer; A has 0 shares");
    assert_int_equal(events_of(EVENT_FILE_GONE), 1);
    answered(granted(B), LOCK_GRANTED);
    tell("there is 1 lock; B unlock 0 2 -> granted");
    assert_held("----");
    file_gone("f");
    assert_int_equal(events_of(EVENT_FILE_GONE), 0);
}

TEST(test_gone__many_go_in_pieces)
{
    with_many_locks();
    for (uint32_t i = 0; i < 3000; i++)
        assert_int_equal(lock(A, 2 * (uint64_t)i, 1, X), LOCK_GRANTED);
    file_gone("f");
    tell("there are 0 locks");
    assert_int_equal(events_of(EVENT_FILE_GONE), 1);
}

TEST(test_gone__what_nobody_reclaimed_goes_too)
{
    tell("A lock 0 4 X -> granted");
    start_again();
    tell("grace is on");
    file_gone("f");
    tell("grace is over; there are 0 locks");
}

TEST_MAIN(kernel_set_up, locker_tear_down, NULL, NULL)

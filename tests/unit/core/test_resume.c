/*
 * test_resume.c -- a server that goes on where it was killed (D12).
 *
 * With --recovery resume the stories of test_grace.c end differently: nobody is told, nothing must
 * be reclaimed, and who waited still waits. Only a run that left something in doubt is not resumed.
 */
#include "locker.h"
#include "unit/test.h"

TEST_FIXTURE(setup)
{
    struct core_limits limits = fixture_limits;
    limits.resume = true;
    locker_new(&limits);
}

TEST(test_resume__goes_on_as_if_nothing_had_happened)
{
    tell("A lock 0 10 X -> granted; A share r deny r -> granted");
    struct core_status before = fixture_status(the_core);
    restart();
    struct core_status after = fixture_status(the_core);
    assert_int_equal(after.state, before.state);
    assert_int_equal(after.epoch, before.epoch + 1);
    assert_false(after.grace.is_on);
    assert_int_equal(after.notify.started, 0);
    tell("B lock 0 10 X -> denied; B share r deny - -> denied; B lock 50 1 X -> granted; "
         "A unlock 0 10 -> granted; B lock 0 10 X -> granted");
}

TEST(test_resume__a_waiter_is_granted_after_the_crash)
{
    tell("A lock 0 10 X -> granted; B lock 3 end X wait -> blocked; C lock 0 10 S wait -> blocked");
    fixture_wait(100000 * FIXTURE_SECOND); /* its patience is counted from the start */
    tell("server restarts; there are 2 waiters");

    assert_int_equal(unlock(A, 0, 10), LOCK_GRANTED);
    struct core_call call = granted(B);
    assert_int_equal(call.offset, 3);
    assert_int_equal(call.len, 0);
    answered(call, LOCK_GRANTED);
    assert_int_equal(lock(D, 5, 1, X), LOCK_DENIED);
}

TEST(test_resume__an_offer_counts_as_possibly_delivered)
{
    tell("A lock 0 10 X -> granted; B lock 0 10 X wait -> blocked; A unlock 0 10 -> granted");
    struct core_call call = granted(B);
    tell("server restarts; there is 1 offer");
    struct core_call again = granted(B);
    assert_int_equal(again.cookie, call.cookie);
    answered(again, LOCK_DENIED); /* it took the first one (R-DRC-3) */
    assert_int_equal(lock(C, 0, 10, X), LOCK_DENIED);
}

TEST(test_resume__a_cancelled_place_does_not_come_back)
{
    tell("A lock 0 10 X -> granted; B lock 0 10 X wait -> blocked; B cancel 0 10 X -> granted; "
         "server restarts; there are 0 waiters");
}

TEST(test_resume__not_after_a_run_that_died_in_grace)
{
    tell("A lock 0 10 X -> granted; B lock 0 10 X wait -> blocked");
    (void)fixture_simu_crash(the_core, "127.0.0.1", 700); /* everything is unsettled */
    settle();
    assert_true(fixture_status(the_core).grace.is_on);
    uint32_t number = fixture_status(the_core).state;
    tell("server restarts; grace is on");
    assert_true(fixture_status(the_core).state > number);
    tell("there are 0 waiters; A lock 0 10 X reclaim -> granted; grace is over");
    number = fixture_status(the_core).state;
    restart(); /* now all is settled again */
    assert_int_equal(fixture_status(the_core).state, number);
    assert_false(fixture_status(the_core).grace.is_on);
}

/* What was offered to a client that has rebooted since is nobody's to reclaim: no grace. */
TEST(test_resume__an_offer_of_an_earlier_life_begins_no_grace)
{
    tell("A lock 0 10 X -> granted; B lock 0 10 X wait -> blocked; A unlock 0 10 -> granted");
    (void)granted(B);
    free_all(B);
    restart_unready();
    assert_false(fixture_status(the_core).grace.is_on);
    core_check(the_core);
    tell("C lock 50 1 X -> granted; C lock 0 10 X -> granted");
}

TEST_MAIN(setup, locker_tear_down, NULL, NULL)

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
    (void)locker_new(&limits);
    return 0;
}

TEST_FIXTURE(teardown)
{
    locker_done();
    return 0;
}

TEST(test_resume__goes_on_as_if_nothing_had_happened)
{
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    assert_int_equal(share(A, 1, 1, 0), LOCK_GRANTED);
    struct core_status before = fixture_status(the_core);
    restart();
    struct core_status after = fixture_status(the_core);
    assert_int_equal(after.state, before.state);
    assert_int_equal(after.epoch, before.epoch + 1);
    assert_false(after.grace.is_on);
    assert_int_equal(after.notify.started, 0);
    assert_int_equal(lock(B, 0, 10, X), LOCK_DENIED);
    assert_int_equal(share(B, 0, 1, 0), LOCK_DENIED);
    assert_int_equal(lock(B, 50, 1, X), LOCK_GRANTED);
    assert_int_equal(unlock(A, 0, 10), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 10, X), LOCK_GRANTED);
}

TEST(test_resume__a_waiter_is_granted_after_the_crash)
{
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 3, 0, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(lock(C, 0, 10, S | BLOCK), LOCK_BLOCKED);
    fixture_wait(100000 * FIXTURE_SECOND); /* its patience is counted from the start */
    restart();
    assert_int_equal(fixture_status(the_core).waiters, 2);

    assert_int_equal(unlock(A, 0, 10), LOCK_GRANTED);
    struct core_call call = granted(B);
    assert_int_equal(call.offset, 3);
    assert_int_equal(call.len, 0);
    answered(call, LOCK_GRANTED);
    assert_int_equal(lock(D, 5, 1, X), LOCK_DENIED);
}

TEST(test_resume__an_offer_counts_as_possibly_delivered)
{
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 10, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(unlock(A, 0, 10), LOCK_GRANTED);
    struct core_call call = granted(B);
    restart();
    assert_int_equal(fixture_status(the_core).offers, 1);
    struct core_call again = granted(B);
    assert_int_equal(again.cookie, call.cookie);
    answered(again, LOCK_DENIED); /* it took the first one (R-DRC-3) */
    assert_int_equal(lock(C, 0, 10, X), LOCK_DENIED);
}

TEST(test_resume__a_cancelled_place_does_not_come_back)
{
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 10, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(cancel(B, 0, 10, X), LOCK_GRANTED);
    restart();
    assert_int_equal(fixture_status(the_core).waiters, 0);
}

TEST(test_resume__not_after_a_run_that_died_in_grace)
{
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 10, X | BLOCK), LOCK_BLOCKED);
    (void)fixture_simu_crash(the_core, "127.0.0.1", 700); /* everything is unsettled */
    settle();
    assert_true(fixture_status(the_core).grace.is_on);
    uint32_t number = fixture_status(the_core).state;
    restart();
    assert_true(fixture_status(the_core).grace.is_on);
    assert_true(fixture_status(the_core).state > number);
    assert_int_equal(fixture_status(the_core).waiters, 0);
    assert_int_equal(lock(A, 0, 10, X | RECLAIM), LOCK_GRANTED);
    assert_false(fixture_status(the_core).grace.is_on);
    number = fixture_status(the_core).state;
    restart(); /* now all is settled again */
    assert_int_equal(fixture_status(the_core).state, number);
    assert_false(fixture_status(the_core).grace.is_on);
}

/* What was offered to a client that has started anew since is nobody's to reclaim: no grace. */
TEST(test_resume__an_offer_of_an_earlier_life_begins_no_grace)
{
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 10, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(unlock(A, 0, 10), LOCK_GRANTED);
    (void)granted(B);
    free_all(B);
    restart_unready();
    assert_false(fixture_status(the_core).grace.is_on);
    core_check(the_core);
    assert_int_equal(lock(C, 50, 1, X), LOCK_GRANTED);
    settle();
    assert_int_equal(lock(C, 0, 10, X), LOCK_GRANTED);
}

TEST_MAIN(setup, teardown, NULL, NULL)

/*
 * test_echo.c -- what a replaced server may still call out is kept from others (decision 025).
 *
 * A holds a range, B waits for it, A unlocks, B is offered it, and the server is replaced. Whatever
 * B does then, C does not get the range before the time of the old server is over.
 */
#include "lock_fixture.h"
#include "locker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define ECHO_NS (12 * FIXTURE_SECOND)

static void begin(bool resumes)
{
    struct core_limits limits = fixture_limits;
    limits.resume = resumes;
    limits.shared_store = true;
    lock_fixture_echo_ns = ECHO_NS;
    (void)locker_new(&limits);
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 10, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(unlock(A, 0, 10), LOCK_GRANTED);
    (void)granted(B); /* which the old server may repeat for a while */
}

static int reclaiming(void **state)
{
    (void)state;
    begin(false);
    return 0;
}

static int resuming(void **state)
{
    (void)state;
    begin(true);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    locker_done();
    lock_fixture_echo_ns = 0;
    return 0;
}

/* B has given it up; C waits, and gets it when the time is over, not before. */
static void expect_kept(void)
{
    settle();
    assert_int_equal(lock(C, 5, 1, X), LOCK_DENIED);
    assert_int_equal(lock(C, 0, 10, X | BLOCK), LOCK_BLOCKED);
    fixture_wait(ECHO_NS - 2 * FIXTURE_SECOND);
    settle();
    assert_int_equal(lock(C, 5, 1, S), LOCK_DENIED);
    fixture_wait(3 * FIXTURE_SECOND);
    settle();
    assert_false(the_core->echoes.may_be_some);
    assert_int_equal(the_core->locks.offer_count, 1); /* C's */
    assert_int_equal(lock(C, 0, 10, X | BLOCK), LOCK_GRANTED);
    core_check(the_core);
    assert_int_equal(the_core->locks.offer_count, 0);
}

static void test_echo__cancelled_after_a_resume(void **state)
{
    (void)state;
    restart();
    (void)cancel(B, 0, 10, X | BLOCK);
    expect_kept();
}

static void test_echo__taken_and_unlocked_after_a_resume(void **state)
{
    (void)state;
    restart();
    answered(granted(B), LOCK_GRANTED);
    assert_int_equal(unlock(B, 0, 10), LOCK_GRANTED);
    expect_kept();
}

static void test_echo__reclaimed_and_unlocked(void **state)
{
    (void)state;
    restart();
    assert_int_equal(lock(B, 0, 10, X | RECLAIM), LOCK_GRANTED);
    assert_int_equal(unlock(B, 0, 10), LOCK_GRANTED);
    settle();
    assert_false(fixture_status(the_core).grace.is_on);
    expect_kept();
}

/* Its owner may have it: a late GRANTED says what is true then. */
static void test_echo__is_not_in_its_owners_way(void **state)
{
    (void)state;
    restart();
    (void)cancel(B, 0, 10, X | BLOCK);
    settle();
    assert_int_equal(lock(B, 0, 10, X | BLOCK), LOCK_GRANTED);
    fixture_wait(ECHO_NS + FIXTURE_SECOND);
    settle();
    assert_int_equal(lock(C, 0, 10, X), LOCK_DENIED);
    assert_int_equal(unlock(B, 0, 10), LOCK_GRANTED);
    assert_int_equal(lock(C, 0, 10, X), LOCK_GRANTED);
}

/* It goes by itself, so nobody waits for its owner there. */
static void test_echo__closes_no_circle(void **state)
{
    (void)state;
    restart();
    (void)cancel(B, 0, 10, X | BLOCK);
    settle();
    assert_int_equal(lock(A, 50, 10, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 90, 10, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 50, 10, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(lock(A, 0, 10, X | BLOCK), LOCK_BLOCKED);
    fixture_wait(ECHO_NS + FIXTURE_SECOND);
    settle();
    assert_int_equal(lock(A, 0, 10, X | BLOCK), LOCK_GRANTED);
}

/* Who takes over from us meanwhile knows of it, and it is nobody's lock. */
static void test_echo__outlives_a_second_takeover(void **state)
{
    (void)state;
    restart();
    (void)cancel(B, 0, 10, X | BLOCK);
    settle();
    restart();
    settle();
    assert_int_equal(fixture_status(the_core).locks, 0);
    expect_kept();
}

/* Where a start needs none, what is left of them goes at once. */
static void test_echo__goes_where_nobody_was_replaced(void **state)
{
    (void)state;
    restart();
    (void)cancel(B, 0, 10, X | BLOCK);
    settle();
    lock_fixture_echo_ns = 0;
    restart();
    settle();
    assert_int_equal(lock(C, 0, 10, X), LOCK_GRANTED);
}

#define RESUMED(name) cmocka_unit_test_setup_teardown(test_echo__##name, resuming, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RESUMED(cancelled_after_a_resume),
        RESUMED(taken_and_unlocked_after_a_resume),
        cmocka_unit_test_setup_teardown(test_echo__reclaimed_and_unlocked, reclaiming, teardown),
        RESUMED(is_not_in_its_owners_way),
        RESUMED(closes_no_circle),
        RESUMED(outlives_a_second_takeover),
        RESUMED(goes_where_nobody_was_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * test_grace.c -- what stands after a restart, who gets it back, and when the rest is given up.
 *
 * Each test is a story: clients lock, the server is killed and started on what was stored
 * (restart), and they come back or do not. core_check runs after every step, so that what is
 * unsettled is always something held, and every client with something left has its time.
 */
#include "locker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static int setup(void **state)
{
    (void)state;
    (void)locker_new(&fixture_limits);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    locker_done();
    return 0;
}

static void new_with(const struct core_limits *limits)
{
    locker_done();
    (void)locker_new(limits);
}

static struct grace_status grace(void)
{
    settle();
    return fixture_status(the_core).grace;
}

static void wait_seconds(uint64_t seconds)
{
    fixture_wait(seconds * FIXTURE_SECOND);
    settle();
}

static void test_grace__none_with_an_empty_store(void **state)
{
    (void)state;
    restart();
    assert_false(grace().is_on);
    assert_int_equal(lock(A, 0, 0, X), LOCK_GRANTED);
    assert_int_equal(unlock(A, 0, 0), LOCK_GRANTED);
    restart();
    assert_false(grace().is_on); /* a client without locks is nothing to wait for */
}

static void test_grace__only_reclaims_are_granted(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    assert_int_equal(lock(A2, 20, 10, S), LOCK_GRANTED);
    restart();
    assert_true(grace().is_on);
    assert_int_equal(grace().unsettled, 2);
    assert_int_equal(lock(B, 500, 1, X), LOCK_GRACE);
    assert_int_equal(lock(B, 500, 1, X | BLOCK), LOCK_GRACE);
    assert_int_equal(lock(B, 500, 1, X | UNMONITORED), LOCK_GRACE);
    assert_int_equal(test(B, 500, 1, X), LOCK_GRACE);
    assert_int_equal(share(B, 1, 1, 0), LOCK_GRACE);
    assert_int_equal(cancel(B, 500, 1, X), LOCK_GRANTED);
    assert_int_equal(unlock(B, 500, 1), LOCK_GRANTED);
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRACE); /* identical, but no reclaim (3.3) */
    assert_int_equal(lock(A, 0, 10, X | RECLAIM | BLOCK), LOCK_GRANTED);
    assert_true(grace().is_on);
    assert_int_equal(lock(A2, 20, 10, S | RECLAIM), LOCK_GRANTED);
    assert_false(grace().is_on); /* everything is settled: at once */
    assert_int_equal(lock(B, 500, 1, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 1, X), LOCK_DENIED);
}

static void test_grace__an_exact_reclaim_writes_nothing(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 50, 10, X), LOCK_GRANTED);
    restart();
    settle();
    uint64_t txn = fixture_status(the_core).durable_txn;
    assert_int_equal(lock(A, 0, 10, X | RECLAIM), LOCK_GRANTED);
    assert_int_equal(lock(A, 0, 10, X | RECLAIM), LOCK_GRANTED); /* a duplicate */
    assert_int_equal(fixture_status(the_core).durable_txn, txn);
}

static void test_grace__a_reclaim_settles_only_the_bytes_it_names(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 100, X), LOCK_GRANTED);
    restart();
    assert_int_equal(lock(A, 10, 10, X | RECLAIM), LOCK_GRANTED);
    assert_int_equal(grace().unsettled, 2);
    assert_int_equal(lock(A, 0, 10, X | RECLAIM), LOCK_GRANTED);
    assert_int_equal(lock(A, 20, 79, X | RECLAIM), LOCK_GRANTED);
    assert_true(grace().is_on);
    assert_int_equal(unlock(A, 99, 1), LOCK_GRANTED); /* unlocked is settled too */
    assert_false(grace().is_on);
    assert_int_equal(test(B, 99, 1, X), LOCK_GRANTED);
    assert_int_equal(test(B, 98, 1, X), LOCK_DENIED);
}

static void test_grace__what_is_not_reclaimed_goes_at_the_end(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 100, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 200, 100, X), LOCK_GRANTED);
    restart();
    assert_int_equal(lock(A, 0, 50, X | RECLAIM), LOCK_GRANTED);
    wait_seconds(89);
    assert_true(grace().is_on);
    wait_seconds(1);
    assert_false(grace().is_on);
    assert_int_equal(test(C, 0, 50, X), LOCK_DENIED);
    assert_int_equal(test(C, 50, 50, X), LOCK_GRANTED);
    assert_int_equal(test(C, 200, 100, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 200, 100, X | RECLAIM), LOCK_GRACE); /* too late */
    assert_int_equal(lock(A, 0, 50, X | RECLAIM), LOCK_GRANTED);  /* idempotent */
}

static void test_grace__a_reclaim_must_match_what_is_stored(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 10, 10, S), LOCK_GRANTED);
    assert_int_equal(lock(A2, 40, 10, X), LOCK_GRANTED);
    restart();
    assert_int_equal(lock(A, 10, 10, X | RECLAIM), LOCK_DENIED); /* a stronger mode */
    assert_int_equal(lock(A, 10, 11, S | RECLAIM), LOCK_DENIED); /* more than it had */
    assert_int_equal(lock(A, 40, 10, X | RECLAIM), LOCK_DENIED); /* another owner's */
    assert_int_equal(lock(B, 10, 10, S | RECLAIM), LOCK_DENIED); /* another client */
    assert_int_equal(lock(ELSEWHERE, 10, 10, S | RECLAIM), LOCK_DENIED);
    assert_int_equal(lock(A2, 40, 5, S | RECLAIM), LOCK_GRANTED); /* weaker, and a part */
    assert_int_equal(lock(A2, 45, 5, X | RECLAIM), LOCK_GRANTED);
    assert_int_equal(lock(A, 10, 10, S | RECLAIM), LOCK_GRANTED);
    assert_false(grace().is_on);
    assert_int_equal(test(B, 40, 5, S), LOCK_GRANTED);
    assert_int_equal(test(B, 45, 1, S), LOCK_DENIED);
}

static void test_grace__a_crash_in_grace_starts_over(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 20, 10, X), LOCK_GRANTED);
    restart();
    assert_int_equal(lock(A, 0, 10, X | RECLAIM), LOCK_GRANTED);
    uint32_t number = fixture_status(the_core).state;
    restart();
    assert_true(fixture_status(the_core).state > number);
    assert_int_equal(grace().unsettled, 2);
    assert_int_equal(lock(B, 20, 10, X | RECLAIM), LOCK_GRANTED);
    assert_true(grace().is_on);
    assert_int_equal(lock(A, 0, 10, X | RECLAIM), LOCK_GRANTED);
    assert_false(grace().is_on);
}

static void test_grace__the_clock_starts_at_readiness(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    restart_unready();
    wait_seconds(1000);
    assert_true(grace().is_on);
    assert_int_equal(lock(B, 50, 1, X), LOCK_GRACE);
    fixture_ready(the_core);
    wait_seconds(89);
    assert_true(grace().is_on);
    wait_seconds(1);
    assert_false(grace().is_on);
}

static void test_grace__offers_are_stored_locks(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 10, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(lock(B, 5, 20, S), LOCK_DENIED);
    assert_int_equal(unlock(A, 0, 10), LOCK_GRANTED);
    assert_int_equal(fixture_status(the_core).offers, 1);
    restart();
    assert_int_equal(fixture_status(the_core).offers, 0);
    assert_int_equal(grace().unsettled, 1);
    assert_int_equal(lock(B, 0, 10, X | RECLAIM), LOCK_GRANTED);
    assert_false(grace().is_on);
}

static void test_grace__an_offered_upgrade_keeps_what_was_held(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 10, S), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 20, S), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 10, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(unlock(A, 0, 10), LOCK_GRANTED);
    assert_int_equal(fixture_status(the_core).offers, 1);
    restart();
    assert_int_equal(lock(B, 0, 10, X | RECLAIM), LOCK_GRANTED);
    assert_int_equal(lock(B, 10, 10, S | RECLAIM), LOCK_GRANTED);
    assert_false(grace().is_on);
}

static void test_grace__unmonitored_locks_stand_and_hold_nobody_up(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 10, X | UNMONITORED), LOCK_GRANTED);
    restart();
    assert_false(grace().is_on);
    assert_int_equal(lock(B, 0, 10, X), LOCK_DENIED);
    assert_int_equal(unlock(A, 0, 10), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 10, X), LOCK_GRANTED);
}

static void test_grace__shares_are_reclaimed_too(void **state)
{
    (void)state;
    assert_int_equal(share(A, 3, 3, 0), LOCK_GRANTED);
    restart();
    assert_true(grace().is_on);
    assert_int_equal(share(B, 0, 0, RECLAIM), LOCK_DENIED);
    assert_int_equal(share(A, 3, 3, RECLAIM), LOCK_GRANTED);
    assert_false(grace().is_on);
    assert_int_equal(share(B, 0, 1, 0), LOCK_DENIED);
    restart();
    wait_seconds(90);
    assert_false(grace().is_on);
    assert_int_equal(share(B, 0, 1, 0), LOCK_GRANTED);
    restart();
    unshare(B);
    assert_false(grace().is_on);
}

static void test_grace__a_client_still_reclaiming_is_not_cut_off(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 20; i++)
        assert_int_equal(lock(A, 2 * i, 1, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 100, 1, X), LOCK_GRANTED);
    restart();
    assert_int_equal(lock(B, 100, 1, X | RECLAIM), LOCK_GRANTED);
    assert_int_equal(lock(A, 0, 1, X | RECLAIM), LOCK_GRANTED);
    wait_seconds(88);
    assert_int_equal(lock(A, 2, 1, X | RECLAIM), LOCK_GRANTED);
    wait_seconds(2);
    assert_false(grace().is_on);
    for (uint64_t i = 2; i < 10; i++) { /* R-GRACE-10: as long as it is not quiet for 5 s */
        assert_int_equal(lock(A, 2 * i, 1, X | RECLAIM), LOCK_GRANTED);
        assert_int_equal(lock(C, 2 * i + 2, 1, X), LOCK_DENIED);
        wait_seconds(4);
    }
    wait_seconds(1);
    assert_int_equal(lock(A, 20, 1, X | RECLAIM), LOCK_GRACE);
    assert_int_equal(lock(C, 20, 1, X), LOCK_GRANTED);
}

static void test_grace__a_client_reached_late_has_its_time(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 20, 10, X), LOCK_GRANTED);
    restart();
    wait_seconds(80);
    assert_int_equal(lock(A, 50, 1, X), LOCK_GRACE); /* A calls: it is there (D5 (6)) */
    wait_seconds(10);
    assert_false(grace().is_on);
    assert_int_equal(lock(C, 20, 10, X), LOCK_GRANTED); /* B was never heard of */
    assert_int_equal(lock(C, 0, 10, X), LOCK_DENIED);
    wait_seconds(19);
    assert_int_equal(lock(A, 0, 5, X | RECLAIM), LOCK_GRANTED);
    wait_seconds(5);
    assert_int_equal(lock(C, 5, 5, X), LOCK_GRANTED);
    assert_int_equal(lock(C, 0, 5, X), LOCK_DENIED);
}

static void test_grace__hold_keeps_what_nobody_was_told_of(void **state)
{
    (void)state;
    struct core_limits limits = fixture_limits;
    limits.hold_unreachable = true;
    new_with(&limits);
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 20, 10, X), LOCK_GRANTED);
    restart();
    assert_int_equal(lock(B, 60, 10, X), LOCK_GRACE); /* B is there, but does not know (P2 (2)) */
    wait_seconds(90);
    assert_false(grace().is_on);
    assert_int_equal(lock(C, 20, 10, X), LOCK_DENIED);
    assert_int_equal(lock(C, 0, 10, X), LOCK_DENIED); /* R-GRACE-5 */
    wait_seconds(500);
    assert_int_equal(lock(C, 20, 10, X), LOCK_DENIED);
    assert_int_equal(lock(C, 0, 10, X), LOCK_DENIED);
    assert_int_equal(lock(A, 0, 5, X | RECLAIM), LOCK_GRANTED); /* heard of at last */
    wait_seconds(30);
    assert_int_equal(lock(C, 5, 5, X), LOCK_GRANTED);
    assert_int_equal(lock(C, 0, 5, X), LOCK_DENIED);
}

static void test_grace__of_no_length_gives_everything_up(void **state)
{
    (void)state;
    struct core_limits limits = fixture_limits;
    limits.grace_ns = 0;
    new_with(&limits);
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    restart();
    assert_false(grace().is_on);
    assert_int_equal(lock(B, 0, 10, X), LOCK_GRANTED);
}

static void test_grace__trust_takes_what_is_in_nobodys_way(void **state)
{
    (void)state;
    struct core_limits limits = fixture_limits;
    limits.trust_reclaim = true;
    new_with(&limits);
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    restart();
    assert_int_equal(lock(B, 50, 10, X | RECLAIM), LOCK_GRANTED);
    assert_int_equal(lock(B, 5, 1, S | RECLAIM | BLOCK), LOCK_DENIED); /* never BLOCKED */
    assert_int_equal(lock(A, 0, 10, X | RECLAIM), LOCK_GRANTED);
    assert_false(grace().is_on);
    assert_int_equal(lock(C, 100, 1, X | RECLAIM), LOCK_GRACE); /* only in grace */
}

static void test_grace__a_simulated_crash_is_one(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 10, X | BLOCK), LOCK_BLOCKED);
    (void)fixture_simu_crash(the_core, "127.0.0.1", 700);
    settle();
    assert_true(grace().is_on);
    assert_int_equal(fixture_status(the_core).waiters, 0);
    assert_int_equal(lock(B, 50, 1, X), LOCK_GRACE);
    assert_int_equal(lock(A, 0, 10, X | RECLAIM), LOCK_GRANTED);
    assert_false(grace().is_on);
}

static void test_grace__free_all_settles(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    assert_int_equal(share(A, 1, 1, 0), LOCK_GRANTED);
    restart();
    assert_int_equal(grace().unsettled, 2);
    free_all(A);
    assert_false(grace().is_on);
    assert_int_equal(lock(B, 0, 10, X), LOCK_GRANTED);
}

#define CASE(name) cmocka_unit_test_setup_teardown(test_grace__##name, setup, teardown)

/* A call that came in time may still be in a socket. */
static void test_grace__does_not_end_while_sockets_are_read(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 50, 10, X), LOCK_GRANTED);
    restart();
    fixture_wait(91 * FIXTURE_SECOND);
    core_listen_first(the_core);
    core_work(the_core, fixture_now_ns(), fixture_now_ns());
    assert_true(fixture_status(the_core).grace.is_on);
    struct request request = locker_request(REQUEST_NLM_LOCK, A, 0, 10, X | RECLAIM);
    struct peer from = fixture_peer(A.address, 700);
    assert_int_equal(fixture_step(the_core, &from, &request).response.status, LOCK_GRANTED);
    settle(); /* a turn in which there was nothing to read */
    assert_false(fixture_status(the_core).grace.is_on);
    assert_int_equal(test(C, 0, 10, X), LOCK_DENIED);
    assert_int_equal(test(C, 50, 10, X), LOCK_GRANTED);
}

/* Who never stops talking does not keep it for ever. */
static void test_grace__ends_under_a_flood(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    restart();
    for (uint64_t i = 0; i < 125; i++) {
        fixture_wait(FIXTURE_SECOND);
        core_listen_first(the_core);
        core_work(the_core, fixture_now_ns(), fixture_now_ns());
        bool is_on = fixture_status(the_core).grace.is_on;
        assert_true(i + 1 < 90 ? is_on : i + 1 < 120 || !is_on);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_grace__does_not_end_while_sockets_are_read, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_grace__ends_under_a_flood, setup, teardown),
        CASE(none_with_an_empty_store),
        CASE(only_reclaims_are_granted),
        CASE(an_exact_reclaim_writes_nothing),
        CASE(a_reclaim_settles_only_the_bytes_it_names),
        CASE(what_is_not_reclaimed_goes_at_the_end),
        CASE(a_reclaim_must_match_what_is_stored),
        CASE(a_crash_in_grace_starts_over),
        CASE(the_clock_starts_at_readiness),
        CASE(offers_are_stored_locks),
        CASE(an_offered_upgrade_keeps_what_was_held),
        CASE(unmonitored_locks_stand_and_hold_nobody_up),
        CASE(shares_are_reclaimed_too),
        CASE(a_client_still_reclaiming_is_not_cut_off),
        CASE(a_client_reached_late_has_its_time),
        CASE(hold_keeps_what_nobody_was_told_of),
        CASE(of_no_length_gives_everything_up),
        CASE(trust_takes_what_is_in_nobodys_way),
        CASE(a_simulated_crash_is_one),
        CASE(free_all_settles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

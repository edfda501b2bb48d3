/*
 * test_grace.c -- what the stories of the grace period (tests/stories/grace.txt) cannot see: what
 * is written, the time before readiness, calls that are still in a socket.
 */
#include "locker.h"
#include "unit/test.h"

TEST_FIXTURE(setup)
{
    (void)locker_new(&fixture_limits);
    return 0;
}

TEST_FIXTURE(teardown)
{
    locker_done();
    return 0;
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

TEST(test_grace__an_exact_reclaim_writes_nothing)
{
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 50, 10, X), LOCK_GRANTED);
    restart();
    settle();
    uint64_t txn = fixture_status(the_core).durable_txn;
    assert_int_equal(lock(A, 0, 10, X | RECLAIM), LOCK_GRANTED);
    assert_int_equal(lock(A, 0, 10, X | RECLAIM), LOCK_GRANTED); /* a duplicate */
    assert_int_equal(fixture_status(the_core).durable_txn, txn);
}

TEST(test_grace__the_clock_starts_at_readiness)
{
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

/* A call that came in time may still be in a socket. */
TEST(test_grace__does_not_end_while_sockets_are_read)
{
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
TEST(test_grace__ends_under_a_flood)
{
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

TEST_MAIN(setup, teardown, NULL, NULL)

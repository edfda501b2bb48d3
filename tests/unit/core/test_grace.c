/*
 * test_grace.c -- what the stories of the grace period (tests/stories/grace.txt) cannot see: what
 * is written, the time before readiness, calls that are still in a socket.
 */
#include "locker.h"
#include "unit/test.h"

TEST(test_grace__an_exact_reclaim_writes_nothing)
{
    tell("A lock 0 10 X -> granted; B lock 50 10 X -> granted; server restarts");
    uint64_t txn = fixture_status(the_core).durable_txn;
    tell("A lock 0 10 X reclaim -> granted; A lock 0 10 X reclaim -> granted"); /* a duplicate */
    assert_int_equal(fixture_status(the_core).durable_txn, txn);
}

TEST(test_grace__the_clock_starts_at_readiness)
{
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    restart_unready();
    tell("1000 s pass; grace is on; B lock 50 1 X -> grace");
    fixture_ready(the_core);
    tell("89 s pass; grace is on; 1 s pass; grace is over");
}

/* A call that came in time may still be in a socket. */
TEST(test_grace__does_not_end_while_sockets_are_read)
{
    tell("A lock 0 10 X -> granted; B lock 50 10 X -> granted; server restarts");
    fixture_wait(91 * FIXTURE_SECOND);
    core_listen_first(the_core);
    core_work(the_core, fixture_now_ns(), fixture_now_ns());
    assert_true(fixture_status(the_core).grace.is_on);
    struct request request = locker_request(REQUEST_NLM_LOCK, A, 0, 10, X | RECLAIM);
    struct peer from = fixture_peer(A.address, 700);
    assert_int_equal(fixture_step(the_core, &from, &request).response.status, LOCK_GRANTED);
    settle(); /* a turn in which there was nothing to read */
    tell("grace is over; C test 0 10 X -> denied; C test 50 10 X -> granted");
}

/* Who never stops talking does not keep it for ever. */
TEST(test_grace__ends_under_a_flood)
{
    tell("A lock 0 10 X -> granted; server restarts");
    for (uint64_t i = 0; i < 125; i++) {
        fixture_wait(FIXTURE_SECOND);
        core_listen_first(the_core);
        core_work(the_core, fixture_now_ns(), fixture_now_ns());
        bool is_on = fixture_status(the_core).grace.is_on;
        assert_true(i + 1 < 90 ? is_on : i + 1 < 120 || !is_on);
    }
}

TEST_MAIN(locker_set_up, locker_tear_down, NULL, NULL)

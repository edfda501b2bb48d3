/*
 * test_grace.c -- what the stories of the grace period (tests/stories/grace.txt) cannot see: what
 * is written, the time before readiness, calls that are still in a socket.
 */
#include "lock_fixture.h"
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

/* What is said of a client, once: so many of so many. */
static void assert_summed_up(enum event_kind kind, const char *name, uint64_t value, uint64_t total)
{
    struct event event;
    assert_true(lock_fixture_event(the_core, kind, &event));
    assert_int_equal(event.name_len, strlen(name));
    assert_memory_equal(event.name, name, strlen(name));
    assert_int_equal(event.value, value);
    assert_int_equal(event.total, total);
}

TEST(test_grace__a_client_that_reclaimed_everything_is_reported)
{
    struct event event;
    tell("A lock 0 10 X -> granted; A lock 20 10 X -> granted; A share r deny r -> granted; "
         "B lock 50 10 X -> granted; server restarts");
    lock_fixture_forget_events(the_core);
    tell("A lock 0 10 X reclaim -> granted; A lock 20 10 X reclaim -> granted");
    assert_false(lock_fixture_event(the_core, EVENT_CLIENT_RECLAIMED, &event));
    tell("A share r deny r reclaim -> granted");
    assert_summed_up(EVENT_CLIENT_RECLAIMED, "a", 3, 3);
    tell("A lock 0 10 X reclaim -> granted; B lock 50 10 X reclaim -> granted");
    assert_summed_up(EVENT_CLIENT_RECLAIMED, "b", 1, 1); /* and A not again */
    tell("grace is over");
    assert_false(lock_fixture_event(the_core, EVENT_CLIENT_RECLAIMED, &event));
}

TEST(test_grace__a_client_that_did_not_is_reported_with_what_it_lost)
{
    struct event event;
    tell("A lock 0 10 X -> granted; A lock 20 10 X -> granted; B lock 50 10 X -> granted; "
         "server restarts; A lock 0 10 X reclaim -> granted");
    lock_fixture_forget_events(the_core);
    tell("200 s pass; grace is over");
    assert_summed_up(EVENT_CLIENT_LOST, "a", 1, 2);
    assert_summed_up(EVENT_CLIENT_LOST, "b", 0, 1);
    assert_false(lock_fixture_event(the_core, EVENT_CLIENT_LOST, &event));
}

TEST(test_grace__a_client_that_unlocked_its_last_one_is_reported_at_the_end)
{
    tell("A lock 0 10 X -> granted; A lock 20 10 X -> granted; B lock 50 10 X -> granted; "
         "server restarts; A lock 0 10 X reclaim -> granted; A unlock 20 10 -> granted");
    lock_fixture_forget_events(the_core);
    tell("B lock 50 10 X reclaim -> granted; grace is over");
    assert_summed_up(EVENT_CLIENT_RECLAIMED, "b", 1, 1);
    assert_summed_up(EVENT_CLIENT_RECLAIMED, "a", 1, 1);
}

TEST_MAIN(locker_set_up, locker_tear_down, NULL, NULL)

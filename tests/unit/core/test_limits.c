/*
 * test_limits.c -- limits refuse what is new and nothing else: what is stored above one may be cut
 * and given up, who only keeps a place does not count, and a waiter that is stored needs room.
 */
#include "lock_fixture.h"
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

static void new_with(const struct core_limits *limits)
{
    locker_done();
    (void)locker_new(limits);
}

static void wait_seconds(uint64_t seconds)
{
    fixture_wait(seconds * FIXTURE_SECOND);
    settle();
}

/* 200 locks of three bytes each. */
static void fill(struct locker who)
{
    for (uint64_t i = 0; i < 200; i++)
        assert_int_equal(lock(who, i * 10, 3, X), LOCK_GRANTED);
}

TEST(test_limits__what_is_stored_may_be_cut)
{
    static const struct {
        uint32_t locks, per_client;
    } smaller[] = {{1000, 2}, {3, 500}, {1, 1}};
    for (size_t i = 0; i < sizeof smaller / sizeof smaller[0]; i++) {
        new_with(&fixture_limits);
        fill(A);
        struct core_limits limits = fixture_limits;
        limits.locks_max = smaller[i].locks;
        limits.locks_per_client_max = smaller[i].per_client;
        restart_with(&limits);
        for (uint64_t at = 0; at < 200; at++)
            assert_int_equal(lock(A, at * 10, 3, X | RECLAIM), LOCK_GRANTED);
        assert_false(fixture_status(the_core).grace.is_on);
        for (uint64_t at = 0; at < 200; at++)
            assert_int_equal(unlock(A, at * 10 + 1, 1), LOCK_GRANTED);
        assert_int_equal(test(B, 1, 1, X), LOCK_GRANTED);
        assert_int_equal(test(B, 2, 1, X), LOCK_DENIED);
        assert_int_equal(lock(A, 5000, 1, X), LOCK_NO_RESOURCES); /* that would be new */
        struct event event;
        assert_true(lock_fixture_event(
            the_core, smaller[i].locks < 1000 ? EVENT_LOCK_LIMIT : EVENT_CLIENT_LOCK_LIMIT,
            &event));
    }
}

TEST(test_limits__what_is_stored_may_be_given_up)
{
    struct core_limits limits = fixture_limits;
    fill(A);
    limits.locks_max = limits.locks_per_client_max = 1;
    restart_with(&limits);
    for (uint64_t at = 0; at < 200; at++) { /* the first and the last byte of each */
        assert_int_equal(lock(A, at * 10, 1, X | RECLAIM), LOCK_GRANTED);
        assert_int_equal(lock(A, at * 10 + 2, 1, X | RECLAIM), LOCK_GRANTED);
    }
    wait_seconds(89);
    assert_true(fixture_status(the_core).grace.is_on);
    wait_seconds(10);
    struct core_status status = fixture_status(the_core);
    assert_false(status.grace.is_on);
    assert_int_equal(status.grace.unsettled, 0);
    assert_int_equal(status.locks, 400);
    assert_int_equal(test(B, 1, 1, X), LOCK_GRANTED);
    assert_int_equal(test(B, 2, 1, X), LOCK_DENIED);
}

TEST(test_limits__one_client_cannot_cut_for_ever)
{
    struct core_limits limits = fixture_limits;
    limits.locks_per_client_max = 2;
    new_with(&limits);
    assert_int_equal(lock(A, 0, 0, X), LOCK_GRANTED);
    uint64_t cuts = 0;
    while (cuts < 1000 && unlock(A, 2 * cuts + 1, 1) == LOCK_GRANTED)
        cuts++;
    assert_int_equal(cuts, 2 * 2 + 64 - 1);
    struct event event;
    assert_true(lock_fixture_event(the_core, EVENT_CLIENT_LOCK_LIMIT, &event));
    assert_int_equal(event.value, 2);
}

TEST(test_limits__a_kept_place_does_not_count)
{
    struct core_limits limits = fixture_limits;
    limits.waiters_max = 1;
    new_with(&limits);
    assert_int_equal(lock(A, 0, 100, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 10, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(lock(C, 0, 10, X | BLOCK), LOCK_NO_RESOURCES);
    assert_int_equal(cancel(B, 0, 10, X), LOCK_GRANTED);
    assert_int_equal(fixture_status(the_core).waiters, 0);
    assert_int_equal(lock(C, 0, 10, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(lock(B, 0, 10, X | BLOCK), LOCK_NO_RESOURCES); /* a new one, after all */
    assert_int_equal(cancel(C, 0, 10, X), LOCK_GRANTED);
    assert_int_equal(lock(C, 20, 10, X | BLOCK), LOCK_BLOCKED); /* its own place goes for it */
    assert_int_equal(fixture_status(the_core).waiters, 1);
}

TEST(test_limits__a_stored_waiter_needs_room)
{
    struct core_limits limits = fixture_limits;
    limits.resume = true;
    new_with(&limits);
    assert_int_equal(lock(A, 0, 100, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 10, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(lock(C, 50, 10, X), LOCK_DENIED);
    assert_int_equal(lock(C, 200, 10, X), LOCK_GRANTED);
    lock_fixture_fill(true);
    assert_int_equal(unlock(C, 205, 5), LOCK_GRANTED);
    uint64_t txn = fixture_status(the_core).durable_txn;
    assert_int_equal(lock(C, 0, 10, X | BLOCK), LOCK_NO_RESOURCES);
    assert_int_equal(fixture_status(the_core).durable_txn, txn);
    struct event event;
    assert_true(lock_fixture_event(the_core, EVENT_NO_ROOM, &event));
    assert_int_equal(lock(B, 0, 10, X | BLOCK), LOCK_BLOCKED); /* it waits already */
    assert_int_equal(cancel(B, 0, 10, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 10, X | BLOCK), LOCK_NO_RESOURCES);
    lock_fixture_fill(false);
    assert_int_equal(unlock(C, 200, 5), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 10, X | BLOCK), LOCK_BLOCKED);
}

TEST(test_limits__a_waiter_of_this_run_alone_needs_none)
{
    assert_int_equal(lock(A, 0, 100, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 200, 10, X), LOCK_GRANTED);
    lock_fixture_fill(true);
    assert_int_equal(unlock(B, 205, 5), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 10, X | BLOCK), LOCK_BLOCKED);
}

/* 2^32 FREE_ALLs, of which the last three are sent (A16). */
TEST(test_limits__incarnations_begin_anew)
{
    fill(A);
    assert_int_equal(share(A, 1, 1, 0), LOCK_GRANTED);
    uint32_t client = lock_fixture_client(the_core, A.address, A.name);
    client_at(the_core, client)->stored.incarnation = UINT32_MAX - 1;
    client_at(the_core, client)->life.current_count = 0; /* what it has is of the first, and over */
    free_all(A);
    assert_int_equal(client_at(the_core, client)->stored.incarnation, UINT32_MAX);
    fill(A);
    assert_int_equal(share(A, 1, 1, 0), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 1, X | BLOCK), LOCK_BLOCKED);
    free_all(A);
    assert_int_equal(client_at(the_core, client)->stored.incarnation, 2);
    assert_int_equal(fixture_status(the_core).locks, 0);
    assert_int_equal(fixture_status(the_core).shares, 0);
    answered(granted(B), LOCK_GRANTED);
    assert_int_equal(lock(A, 2001, 1, X), LOCK_GRANTED);
    restart();
    assert_int_equal(lock(A, 2001, 1, X | RECLAIM), LOCK_GRANTED);
    free_all(A);
    assert_int_equal(client_at(the_core, client)->stored.incarnation, 3);
}

/* What it is being called about stays for a while, and can be read after a crash. */
TEST(test_limits__incarnations_begin_anew_while_called)
{
    assert_int_equal(lock(B, 0, 1, X), LOCK_GRANTED);
    assert_int_equal(lock(A, 2001, 1, X), LOCK_GRANTED);
    assert_int_equal(unlock(A, 2001, 1), LOCK_GRANTED);
    uint32_t client = lock_fixture_client(the_core, A.address, A.name);
    client_at(the_core, client)->stored.incarnation = UINT32_MAX;
    assert_int_equal(lock(A, 0, 1, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(unlock(B, 0, 1), LOCK_GRANTED);
    struct core_call call = granted(A);
    free_all(A);
    assert_int_equal(client_at(the_core, client)->stored.incarnation, 2);
    assert_int_equal(fixture_status(the_core).offers, 1);
    assert_int_equal(lock(B, 0, 1, X), LOCK_DENIED);
    restart(); /* which fails when a record cannot be loaded */
    assert_false(fixture_status(the_core).incomplete);
    settle();
    assert_int_equal(fixture_status(the_core).offers + fixture_status(the_core).locks, 0);
    (void)call;
}

/* The same of what a server before us may call about. */
TEST(test_limits__incarnations_begin_anew_with_echoes)
{
    struct core_limits limits = fixture_limits;
    limits.resume = limits.shared_store = true;
    locker_done();
    (void)locker_new(&limits);
    lock_fixture_echo_ns = 12 * FIXTURE_SECOND;
    assert_int_equal(lock(B, 0, 1, X), LOCK_GRANTED);
    assert_int_equal(lock(A, 0, 1, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(unlock(B, 0, 1), LOCK_GRANTED);
    settle();
    restart();
    uint32_t client = lock_fixture_client(the_core, A.address, A.name);
    client_at(the_core, client)->stored.incarnation = UINT32_MAX;
    client_at(the_core, client)->life.current_count = 0;
    free_all(A);
    assert_int_equal(client_at(the_core, client)->stored.incarnation, 2);
    assert_int_equal(lock(B, 0, 1, X), LOCK_DENIED);
    restart();
    assert_false(fixture_status(the_core).incomplete);
    assert_int_equal(lock(B, 0, 1, X), LOCK_DENIED);
    lock_fixture_echo_ns = 0;
}

TEST_MAIN(setup, teardown, NULL, NULL)

/*
 * test_limits.c -- limits refuse what is new and nothing else: what is stored above one may be cut
 * and given up, who only keeps a place does not count, and a waiter that is stored needs room.
 */
#include "core/view.h"
#include "lock_fixture.h"
#include "locker.h"
#include "unit/test.h"

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
        locker_new(&fixture_limits);
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
        tell("B test 1 1 X -> granted; B test 2 1 X -> denied");
        tell("A lock 5000 1 X -> nolocks"); /* that would be new */
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
    tell("89 s pass; grace is on; 10 s pass");
    struct core_status status = fixture_status(the_core);
    assert_false(status.grace.is_on);
    assert_int_equal(status.grace.unsettled, 0);
    assert_int_equal(status.locks, 400);
    tell("B test 1 1 X -> granted; B test 2 1 X -> denied");
}

TEST(test_limits__one_client_cannot_cut_for_ever)
{
    struct core_limits limits = fixture_limits;
    limits.locks_per_client_max = 2;
    locker_new(&limits);
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
    locker_new(&limits);
    tell("A lock 0 100 X -> granted; B lock 0 10 X wait -> blocked; C lock 0 10 X wait -> nolocks; "
         "B cancel 0 10 X -> granted; there are 0 waiters; C lock 0 10 X wait -> blocked; "
         "B lock 0 10 X wait -> nolocks"); /* a new one, after all */
    tell("C cancel 0 10 X -> granted");
    tell("C lock 20 10 X wait -> blocked"); /* its own place goes for it */
    assert_int_equal(fixture_status(the_core).waiters, 1);
}

TEST(test_limits__a_stored_waiter_needs_room)
{
    struct core_limits limits = fixture_limits;
    limits.resume = true;
    locker_new(&limits);
    tell("A lock 0 100 X -> granted; B lock 0 10 X wait -> blocked; C lock 50 10 X -> denied; "
         "C lock 200 10 X -> granted");
    lock_fixture_fill(true);
    assert_int_equal(unlock(C, 205, 5), LOCK_GRANTED);
    uint64_t txn = fixture_status(the_core).durable_txn;
    assert_int_equal(lock(C, 0, 10, X | BLOCK), LOCK_NO_RESOURCES);
    assert_int_equal(fixture_status(the_core).durable_txn, txn);
    struct event event;
    assert_true(lock_fixture_event(the_core, EVENT_NO_ROOM, &event));
    assert_int_equal(lock(B, 0, 10, X | BLOCK), LOCK_BLOCKED); /* it waits already */
    tell("B cancel 0 10 X -> granted; B lock 0 10 X wait -> nolocks");
    lock_fixture_fill(false);
    tell("C unlock 200 5 -> granted; B lock 0 10 X wait -> blocked");
}

TEST(test_limits__a_waiter_of_this_run_alone_needs_none)
{
    tell("A lock 0 100 X -> granted; B lock 200 10 X -> granted");
    lock_fixture_fill(true);
    tell("B unlock 205 5 -> granted; B lock 0 10 X wait -> blocked");
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
    tell("A share r deny r -> granted; B lock 0 1 X wait -> blocked; A frees all");
    assert_int_equal(client_at(the_core, client)->stored.incarnation, 2);
    assert_int_equal(fixture_status(the_core).locks, 0);
    assert_int_equal(fixture_status(the_core).shares, 0);
    tell("B is called and says granted; A lock 2001 1 X -> granted; server restarts; "
         "A lock 2001 1 X reclaim -> granted; A frees all");
    assert_int_equal(client_at(the_core, client)->stored.incarnation, 3);
}

/* What it is being called about stays for a while, and can be read after a crash. */
TEST(test_limits__incarnations_begin_anew_while_called)
{
    tell("B lock 0 1 X -> granted; A lock 2001 1 X -> granted; A unlock 2001 1 -> granted");
    uint32_t client = lock_fixture_client(the_core, A.address, A.name);
    client_at(the_core, client)->stored.incarnation = UINT32_MAX;
    tell("A lock 0 1 X wait -> blocked; B unlock 0 1 -> granted");
    struct core_call call = granted(A);
    free_all(A);
    assert_int_equal(client_at(the_core, client)->stored.incarnation, 2);
    tell("there is 1 offer; B lock 0 1 X -> denied");
    tell("server restarts"); /* which fails when a record cannot be loaded */
    assert_false(fixture_status(the_core).incomplete);
    settle();
    assert_int_equal(fixture_status(the_core).offers + fixture_status(the_core).locks, 0);
    (void)call;
}

/* The same of what a server before us may call about. */
TEST(test_limits__incarnations_begin_anew_with_echoes)
{
    struct core_limits limits = fixture_limits;
    limits.resume = true;
    limits.lease = &(const struct lease){.is_shared = true};
    locker_new(&limits);
    lock_fixture_echo_ns = 12 * FIXTURE_SECOND;
    tell("B lock 0 1 X -> granted; A lock 0 1 X wait -> blocked; B unlock 0 1 -> granted; "
         "server restarts");
    uint32_t client = lock_fixture_client(the_core, A.address, A.name);
    client_at(the_core, client)->stored.incarnation = UINT32_MAX;
    client_at(the_core, client)->life.current_count = 0;
    free_all(A);
    assert_int_equal(client_at(the_core, client)->stored.incarnation, 2);
    tell("B lock 0 1 X -> denied; server restarts");
    assert_false(fixture_status(the_core).incomplete);
    assert_int_equal(lock(B, 0, 1, X), LOCK_DENIED);
    lock_fixture_echo_ns = 0;
}

TEST(test_limits__what_is_raised_holds_at_once)
{
    struct core_limits limits = fixture_limits;
    limits.locks_per_client_max = 2;
    limits.per_address_percent = 1;
    locker_new(&limits);
    tell("A lock 0 1 X -> granted; A lock 10 1 X -> granted; A lock 20 1 X -> nolocks");
    struct core_changes changes = {.locks_per_client_max = 3,
                                   .per_address_percent = 100,
                                   .server_name = limits.server_name,
                                   .names = limits.names,
                                   .name_count = limits.name_count};
    core_change(the_core, &changes);
    tell("A lock 20 1 X -> granted; A lock 30 1 X -> nolocks");
    core_check(the_core);
}

static struct view_limit limit_of(const char *name)
{
    struct view_limit limit;
    for (uint32_t i = 0; view_limit(the_core, i, &limit); i++)
        if (strcmp(limit.name, name) == 0)
            return limit;
    fail_msg("there is no limit of %s", name);
    return limit;
}

TEST(test_limits__what_is_used_stands_beside_them)
{
    struct core_limits limits = fixture_limits;
    limits.locks_max = 100;
    limits.waiters_max = 7;
    limits.clients_max = 20;
    limits.per_address_percent = 50;
    locker_new(&limits);
    tell("A lock 0 10 X -> granted; A lock 20 10 X -> granted; B lock 0 1 X wait -> blocked; "
         "A share r deny r -> granted");
    assert_int_equal(limit_of("locks").max, 100);
    assert_int_equal(limit_of("locks").used, 2);
    assert_int_equal(limit_of("locks").address_max, 50);
    assert_int_equal(limit_of("share_reservations").used, 1);
    assert_int_equal(limit_of("waiters").max, 7);
    assert_int_equal(limit_of("waiters").used, 1);
    assert_int_equal(limit_of("lock_clients").max, 20);
    assert_int_equal(limit_of("lock_clients").used, 2);
    assert_int_equal(limit_of("name_bytes").max, limits.bytes_max);
    assert_true(limit_of("name_bytes").used > 0);
    assert_int_equal(limit_of("name_bytes").address_max, 0);
}

TEST(test_limits__who_comes_near_is_counted)
{
    struct core_limits limits = fixture_limits;
    uint32_t max;
    limits.locks_max = 20;
    limits.per_address_percent = 50;
    limits.locks_per_client_max = 10;
    locker_new(&limits);
    for (uint64_t i = 0; i < 8; i++)
        assert_int_equal(lock(A, i * 10, 1, X), LOCK_GRANTED);
    assert_int_equal(limit_of("locks").addresses_near, 0); /* 80 %, and not more */
    assert_int_equal(view_clients_near(the_core, &max), 0);
    assert_int_equal(lock(A, 80, 1, X), LOCK_GRANTED);
    assert_int_equal(limit_of("locks").addresses_near, 1);
    assert_int_equal(view_clients_near(the_core, &max), 1);
    assert_int_equal(max, 10);
    struct core_changes changes = {.locks_per_client_max = 12,
                                   .per_address_percent = 60,
                                   .server_name = limits.server_name,
                                   .names = limits.names,
                                   .name_count = limits.name_count};
    core_change(the_core, &changes); /* 9 of 12 are fewer */
    assert_int_equal(limit_of("locks").addresses_near, 0);
    assert_int_equal(view_clients_near(the_core, &max), 0);
    core_check(the_core);
    assert_int_equal(lock(A, 90, 1, X), LOCK_GRANTED);
    assert_int_equal(limit_of("locks").addresses_near, 1);
    assert_int_equal(unlock(A, 90, 1), LOCK_GRANTED);
    assert_int_equal(limit_of("locks").addresses_near, 0);
    core_check(the_core);
}

TEST_MAIN(locker_set_up, locker_tear_down, NULL, NULL)

/*
 * test_evict.c -- one address has a share of every table, and a full table forgets those who hold
 * nothing (R-SEC-12).
 */
#include "core/state.h"
#include "monitor.h"
#include "unit/test.h"

#define SECOND FIXTURE_SECOND

static struct core_limits limits;

TEST_FIXTURE(setup)
{
    limits = fixture_limits;
    limits.clients_max = 20;
    limits.locks_max = limits.waiters_max = 40;
    limits.per_address_percent = 10;
    locker_new(&limits);
}

static uint64_t refused(void)
{
    return fixture_status(the_core).quota.refused;
}

static bool is_known(struct locker who)
{
    struct address address = fixture_address(who.address);
    return client_find(the_core, &address, bytes_of_text(who.name)) != SLOT_NONE;
}

/* Nobody answers for so long. */
static void in_vain(uint64_t seconds)
{
    struct core_call call;
    for (uint64_t i = 0; i < seconds; i++) {
        while (fixture_next_call(the_core, &call))
            fixture_call_done(the_core, call.id, false, 0);
        fixture_wait(SECOND);
        settle();
    }
}

/* ---- shares ---- */

TEST(test_evict__an_address_has_its_share_of_the_clients)
{
    static const struct locker others[] = {{"10.0.0.2", "a1", 1}, {"10.0.0.2", "a3", 1}};
    assert_int_equal(lock(A, 0, 1, X), LOCK_GRANTED);
    assert_int_equal(lock(others[0], 1, 1, X), LOCK_GRANTED);
    assert_int_equal(lock(others[1], 2, 1, X), LOCK_NO_RESOURCES); /* 2 are a tenth of 20 */
    assert_int_equal(refused(), 1);
    assert_int_equal(events_of(EVENT_ADDRESS_LIMIT), 1);
    assert_int_equal(lock(B, 2, 1, X), LOCK_GRANTED); /* another address */
    /* Its own idle name makes room for its next one; what it holds does not. */
    assert_int_equal(unlock(others[0], 1, 1), LOCK_GRANTED);
    assert_int_equal(lock(others[1], 1, 1, X), LOCK_GRANTED);
    assert_false(is_known(others[0]));
    assert_true(is_known(A));
    assert_int_equal(fixture_status(the_core).quota.evicted_clients, 1);
}

TEST(test_evict__an_address_has_its_share_of_locks_shares_and_waits)
{
    static const struct locker other = {"10.0.0.2", "a1", 1};
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(lock(i % 2 ? A : other, 10 * i, 1, X), LOCK_GRANTED);
    assert_int_equal(lock(A, 50, 1, X), LOCK_NO_RESOURCES);
    assert_int_equal(lock(other, 60, 1, X), LOCK_NO_RESOURCES);
    assert_int_equal(refused(), 2);
    assert_int_equal(lock(B, 100, 100, X), LOCK_GRANTED);
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(lock(i % 2 ? A : other, 100 + i, 1, X | BLOCK), LOCK_BLOCKED);
    tell("A lock 110 1 X wait -> nolocks; A lock 101 1 X wait -> blocked"); /* it waits already */
    assert_int_equal(lock(C, 110, 1, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(refused(), 3);
    char fh[8];
    for (int i = 0; i < 5; i++) {
        (void)snprintf(fh, sizeof fh, "s%d", i);
        struct request request = locker_request(REQUEST_NLM_SHARE, A, 0, 0, 0);
        request.lock.fh = bytes_of_text(fh);
        assert_int_equal(locker_step(A, &request).status, i < 4 ? LOCK_GRANTED : LOCK_NO_RESOURCES);
    }
    assert_int_equal(refused(), 4);
    /* Nothing of it is left behind when it goes. */
    free_all(A);
    free_all(other);
    settle();
    assert_int_equal(lock(A, 0, 1, X), LOCK_GRANTED);
}

TEST(test_evict__an_address_has_its_share_of_the_registrants)
{
    for (int i = 0; i < 3; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "n%d", i);
        assert_int_equal(fixture_mon(the_core, "10.0.0.7", name, "me", 1).response.refused, i == 2);
    }
    assert_false(fixture_mon(the_core, "10.0.0.7", "n1", "me", 2).response.refused);
    assert_false(fixture_mon(the_core, "10.0.0.8", "n2", "me", 1).response.refused);
    assert_int_equal(refused(), 1);
}

/* At least one, however small the table; 100 percent are everything. */
TEST(test_evict__tiny_tables_and_no_share)
{
    limits.clients_max = 3;
    locker_new(&limits);
    static const struct locker others[] = {{"10.0.0.2", "a1", 1}, {"10.0.0.2", "a3", 1}};
    assert_int_equal(lock(A, 0, 1, X), LOCK_GRANTED);
    assert_int_equal(lock(others[0], 1, 1, X), LOCK_NO_RESOURCES);
    limits.per_address_percent = 100;
    locker_new(&limits);
    assert_int_equal(lock(A, 0, 1, X), LOCK_GRANTED);
    assert_int_equal(lock(others[0], 1, 1, X), LOCK_GRANTED);
    assert_int_equal(lock(others[1], 2, 1, X), LOCK_GRANTED);
}

/* What is stored above a share is kept; only what is new is refused. */
TEST(test_evict__a_share_takes_nothing_away)
{
    static const struct locker other = {"10.0.0.2", "a1", 1};
    limits.per_address_percent = 100;
    locker_new(&limits);
    for (uint64_t i = 0; i < 10; i++)
        assert_int_equal(lock(A, 10 * i, 5, X), LOCK_GRANTED);
    limits.per_address_percent = 5; /* one client, two locks */
    the_core = lock_fixture_restart(the_core, &limits, fixture_now_ns());
    fixture_ready(the_core);
    settle();
    for (uint64_t i = 0; i < 10; i++)
        assert_int_equal(lock(A, 10 * i, 5, X | RECLAIM), LOCK_GRANTED);
    tell("there are 10 locks; A unlock 12 1 -> granted"); /* a split is no new lock */
    assert_int_equal(lock(A, 30, 5, X), LOCK_GRANTED);    /* nor is what it has */
    assert_int_equal(lock(A, 200, 1, X), LOCK_NO_RESOURCES);
    assert_int_equal(lock(other, 200, 1, X), LOCK_NO_RESOURCES);
    assert_int_equal(lock(B, 200, 1, X), LOCK_GRANTED);
}

/* ---- eviction ---- */

TEST(test_evict__the_longest_idle_goes_and_no_holder)
{
    limits.clients_max = 3;
    limits.per_address_percent = 100;
    locker_new(&limits);
    tell("A lock 0 1 X -> granted; B lock 1 1 X -> granted; C lock 2 1 X -> granted; "
         "D lock 3 1 X -> nolocks"); /* everybody holds something */
    assert_int_equal(events_of(EVENT_LIMIT), 1);
    assert_int_equal(unlock(B, 1, 1), LOCK_GRANTED);
    fixture_wait(SECOND);
    assert_int_equal(unlock(A, 0, 1), LOCK_GRANTED);
    fixture_wait(SECOND);
    assert_int_equal(test(B, 50, 1, X), LOCK_GRANTED); /* it was heard of since: A is next */
    assert_int_equal(lock(D, 3, 1, X), LOCK_GRANTED);
    assert_false(is_known(A));
    assert_true(is_known(B));
    assert_true(has_locks(C));
    assert_int_equal(events_of(EVENT_RECORD_EVICTED), 1);
}

/* One who waits, or is being freed, holds something. */
TEST(test_evict__no_waiter_goes)
{
    limits.clients_max = 2;
    limits.per_address_percent = 100;
    locker_new(&limits);
    tell("A lock 0 10 X -> granted; B lock 0 10 X wait -> blocked; C lock 50 1 X -> nolocks; "
         "A unlock 0 10 -> granted; B is called and says granted; C lock 50 1 X -> granted");
    assert_false(is_known(A));
    assert_true(has_locks(B));
}

/* P3: who is owed something stays until he was tried for as long as --give-up says. */
TEST(test_evict__who_is_owed_stays_until_given_up)
{
    limits.clients_max = 1;
    locker_new(&limits);
    tell("A lock 0 1 X -> granted; server restarts");
    in_vain(200); /* its lock was given up */
    tell("there are 0 locks; B lock 0 1 X -> nolocks");
    in_vain(900);
    assert_int_equal(fixture_status(the_core).notify.given_up, 1);
    assert_int_equal(lock(B, 0, 1, X), LOCK_GRANTED);
    assert_int_equal(fixture_status(the_core).notify.owed, 0);
    restart();
    assert_false(is_known(A));
}

/* A registrant goes only when it was given up: until then it may be owed something any time. */
TEST(test_evict__a_given_up_registrant_goes)
{
    limits.clients_max = 2;
    locker_new(&limits);
    assert_false(fixture_mon(the_core, "10.0.0.7", "srv", "me", 1).response.refused);
    assert_false(fixture_mon(the_core, "10.0.0.8", "srv", "me", 1).response.refused);
    assert_true(fixture_mon(the_core, "10.0.0.9", "srv", "me", 1).response.refused);
    settle();
    restart();
    in_vain(300);
    assert_true(fixture_mon(the_core, "10.0.0.9", "srv", "me", 1).response.refused);
    in_vain(800);
    assert_int_equal(fixture_status(the_core).notify.given_up, 2);
    /* One of them registers again: it is alive, and the other one goes. */
    assert_false(fixture_mon(the_core, "10.0.0.7", "srv", "me", 1).response.refused);
    assert_false(fixture_mon(the_core, "10.0.0.9", "srv", "me", 1).response.refused);
    assert_true(fixture_mon(the_core, "10.0.0.8", "srv", "me", 1).response.refused);
    assert_int_equal(fixture_status(the_core).quota.evicted_registrants, 1);
    assert_int_equal(fixture_status(the_core).registrants, 2);
}

/* An operator forgets a registrant at once, whatever it is owed. */
TEST(test_evict__an_operator_forgets_a_registrant)
{
    assert_false(fixture_mon(the_core, "10.0.0.7", "srv", "me", 1).response.refused);
    settle();
    restart();
    uint32_t slot = table_next(&the_core->registrants.table, SLOT_NONE);
    struct order given = {.kind = ORDER_RELEASE, .client = registrant_at(the_core, slot)->id};
    struct core_input input = {.kind = CORE_ORDER, .now_ns = fixture_now_ns(), .order = &given};
    struct core_answer answer;
    core_step(the_core, &input, &answer);
    core_check(the_core);
    assert_int_equal(answer.order_result, ORDER_DONE);
    assert_int_equal(fixture_status(the_core).registrants, 0);
    assert_int_equal(fixture_status(the_core).notify.owed, 0);
    core_step(the_core, &input, &answer);
    assert_int_equal(answer.order_result, ORDER_NO_CLIENT);
}

/* ---- the whole story of A9 ---- */

static uint64_t story_ns;

static struct response story_step(struct core *core, const struct peer *from,
                                  const struct request *request)
{
    struct core_input input = {.kind = CORE_REQUEST,
                               .now_ns = story_ns,
                               .wall_ns = LOCK_FIXTURE_WALL_NS + story_ns,
                               .from = from,
                               .request = request};
    struct core_answer answer;
    core_step(core, &input, &answer);
    return answer.response;
}

static enum lock_status story_lock(struct core *core, uint32_t number, bool reclaim)
{
    char address[32], name[32];
    (void)snprintf(address, sizeof address, "10.%u.%u.%u", number >> 16, number >> 8 & 255,
                   number & 255);
    (void)snprintf(name, sizeof name, "host%u", number);
    struct locker who = {address, name, 1};
    struct request request =
        locker_request(REQUEST_NLM_LOCK, who, number, 1, X | (reclaim ? RECLAIM : 0));
    struct peer from = fixture_peer(address, 700);
    return story_step(core, &from, &request).status;
}

/* One second: client 0 answers, nobody else is there any more. */
static void story_second(struct core *core)
{
    struct address alive = fixture_address("10.0.0.0");
    struct core_call call;
    story_ns += SECOND;
    core_work(core, story_ns, LOCK_FIXTURE_WALL_NS + story_ns);
    while (core_next_call(core, story_ns, &call)) {
        bool is_there = address_equal(&call.to, &alive);
        struct core_input input = {.kind = CORE_CALL_DONE,
                                   .now_ns = story_ns,
                                   .wall_ns = LOCK_FIXTURE_WALL_NS + story_ns,
                                   .call = call.id,
                                   .outcome = is_there ? CALL_ANSWERED : CALL_UNKNOWN,
                                   .answered_count = is_there ? call.our_name_count : 0};
        core_step(core, &input, NULL);
        if (core_is_full(core))
            (void)lock_fixture_store(core, NULL);
    }
    (void)lock_fixture_store(core, NULL);
}

/* 100,000 clients lock, vanish and are given up, a table full of them in each run. The next one
 * gets its lock, and who is there all the time loses nothing. */
TEST(test_evict__a_hundred_thousand_vanish)
{
    enum { TABLE = 1000, ALL = 100000 };
    locker_done();
    limits.clients_max = TABLE;
    limits.locks_max = 4 * TABLE;
    limits.batch_puts_max = 16 * TABLE;
    limits.grace_ns = limits.window_ns = 3 * SECOND;
    limits.give_up_ns = 5 * SECOND;
    story_ns = 0;
    struct core *core = lock_fixture_new(&limits);
    struct core_input ready = {.kind = CORE_READY};
    core_step(core, &ready, NULL);
    assert_int_equal(story_lock(core, 0, false), LOCK_GRANTED);
    for (uint32_t number = 1; number < ALL;) {
        for (uint32_t i = 1; i < TABLE; i++)
            assert_int_equal(story_lock(core, number++, false), LOCK_GRANTED);
        assert_int_equal(story_lock(core, number, false), LOCK_NO_RESOURCES); /* all hold */
        (void)lock_fixture_store(core, NULL);
        core = lock_fixture_restart(core, &limits, story_ns);
        ready.now_ns = story_ns;
        core_step(core, &ready, NULL);
        story_second(core);
        assert_int_equal(story_lock(core, 0, true), LOCK_GRANTED);
        for (int i = 0; i < 40 && fixture_status(core).notify.given_up < TABLE - 1; i++)
            story_second(core);
        assert_int_equal(fixture_status(core).notify.given_up, TABLE - 1);
        assert_int_equal(fixture_status(core).locks, 1);
    }
    assert_int_equal(story_lock(core, ALL + TABLE, false), LOCK_GRANTED);
    assert_int_equal(fixture_status(core).clients, TABLE);
    assert_int_equal(fixture_status(core).locks, 2);
    lock_fixture_free(core);
    locker_new(&fixture_limits);
}

TEST_MAIN(setup, locker_tear_down, NULL, NULL)

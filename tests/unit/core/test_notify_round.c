/*
 * test_notify_round.c -- the first round of notification after a restart, as the operator sees it:
 * one event when everybody was tried once, with the right numbers, and none otherwise. A restart is
 * SM_SIMU_CRASH here; before the core is ready it stands for the start.
 */
#include "core/core.h"
#include "fixture.h"
#include "unit/test.h"

#define SECOND FIXTURE_SECOND

static struct core *core;

/* Registrants lockd-0 and on, and a restart that none of them knows of; not ready yet. */
static void begin(uint32_t count, const struct core_limits *limits)
{
    core = fixture_new(limits);
    for (uint32_t i = 0; i < count; i++) {
        char my_name[20];
        (void)snprintf(my_name, sizeof my_name, "lockd-%u", i);
        (void)fixture_mon(core, "10.0.0.2", "peer", my_name, 1);
    }
    (void)fixture_simu_crash(core, "127.0.0.1", 700);
    (void)fixture_store(core);
}

static void end(void)
{
    core_check(core);
    core_free(core);
}

/* How many rounds ended since the last call; each must have been this one. */
static uint32_t rounds_over(const char *clients, uint64_t milliseconds)
{
    struct event event;
    uint32_t count = 0;
    core_check(core);
    while (event_take(core_events(core), &event)) {
        if (event.kind != EVENT_ROUND_OVER)
            continue;
        count++;
        assert_int_equal(event.name_len, strlen(clients));
        assert_memory_equal(event.name, clients, event.name_len);
        assert_int_equal(event.value, milliseconds);
        assert_int_equal(event.from.family, 0);
    }
    return count;
}

static void assert_goes_on(void)
{
    assert_int_equal(rounds_over("", 0), 0);
}

/* All calls that are due now. */
static void take_calls(uint64_t *ret_ids, uint32_t count)
{
    struct core_call call;
    for (uint32_t i = 0; i < count; i++) {
        assert_true(fixture_next_call(core, &call));
        ret_ids[i] = call.id;
    }
    assert_false(fixture_next_call(core, &call));
}

TEST(test_notify_round__is_reported_once)
{
    uint64_t ids[5];
    begin(5, &fixture_limits);
    fixture_wait(SECOND); /* the time runs from readiness */
    fixture_ready(core);
    take_calls(ids, 5);
    fixture_call_done(core, ids[0], true, 1);
    fixture_wait(SECOND);
    fixture_call_done(core, ids[1], false, 0);
    (void)fixture_unmon(core, "10.0.0.2", "peer", "lockd-2");
    (void)fixture_mon(core, "10.0.0.2", "peer", "late", 1); /* nothing is owed to it */
    fixture_wait(4 * SECOND);
    fixture_call_done(core, ids[3], false, 0);
    assert_goes_on();
    fixture_call_done(core, ids[4], true, 1);
    assert_int_equal(rounds_over("2 of 5 reached, 2 failed", 5000), 1);
    (void)fixture_store(core);
    take_calls(ids, 2); /* those that failed are tried again, and that is another matter */
    fixture_call_done(core, ids[0], true, 1);
    fixture_call_done(core, ids[1], true, 1);
    assert_goes_on();
    end();
}

TEST(test_notify_round__without_members_is_none)
{
    begin(0, &fixture_limits);
    fixture_ready(core);
    (void)fixture_mon(core, "10.0.0.2", "peer", "lockd", 1);
    (void)fixture_store(core);
    (void)fixture_unmon(core, "10.0.0.2", "peer", "lockd");
    assert_goes_on();
    end();
}

TEST(test_notify_round__ends_with_who_unregisters)
{
    begin(1, &fixture_limits);
    fixture_ready(core);
    (void)fixture_unmon(core, "10.0.0.2", "peer", "lockd-0");
    assert_int_equal(rounds_over("0 of 1 reached, 0 failed", 0), 1);
    end();
}

/* Who heard of the restart was reached, though a relay in the same call was not answered. */
TEST(test_notify_round__half_an_answer_reaches)
{
    struct core_call call;
    begin(1, &fixture_limits);
    (void)fixture_notify_named(core, "10.0.0.2", "peer", 5);
    (void)fixture_store(core);
    fixture_ready(core);
    assert_true(fixture_next_call(core, &call));
    assert_int_equal(call.status_count, 2);
    fixture_call_done(core, call.id, false, 1);
    assert_int_equal(rounds_over("1 of 1 reached, 0 failed", 0), 1);
    end();
}

/* A relay alone is no notification of a restart. */
TEST(test_notify_round__relays_are_not_part_of_it)
{
    uint64_t id;
    begin(1, &fixture_limits);
    fixture_ready(core);
    take_calls(&id, 1);
    fixture_call_done(core, id, true, 1);
    assert_int_equal(rounds_over("1 of 1 reached, 0 failed", 0), 1);
    (void)fixture_notify_named(core, "10.0.0.2", "peer", 5);
    (void)fixture_store(core);
    take_calls(&id, 1);
    fixture_call_done(core, id, true, 1);
    assert_goes_on();
    end();
}

TEST(test_notify_round__begins_anew_with_a_restart)
{
    uint64_t ids[3];
    begin(3, &fixture_limits);
    fixture_ready(core);
    take_calls(ids, 3);
    fixture_call_done(core, ids[0], true, 1);
    fixture_wait(SECOND);
    (void)fixture_simu_crash(core, "127.0.0.1", 700);
    fixture_call_done(core, ids[1], true, 1); /* these said the state of before */
    fixture_call_done(core, ids[2], true, 1);
    (void)fixture_store(core);
    take_calls(ids, 3);
    fixture_wait(SECOND);
    for (uint32_t i = 0; i < 3; i++) {
        assert_goes_on();
        fixture_call_done(core, ids[i], i > 0, i > 0);
    }
    assert_int_equal(rounds_over("2 of 3 reached, 1 failed", 1000), 1);
    end();
}

/* Nobody is tried again after his time, so nobody can hold the round up. */
TEST(test_notify_round__ends_with_who_is_given_up)
{
    struct core_limits limits = fixture_limits;
    uint64_t id;
    limits.window_ns = limits.grace_ns = limits.give_up_ns = 0;
    begin(1, &limits);
    fixture_ready(core);
    take_calls(&id, 1);
    (void)fixture_simu_crash(core, "127.0.0.1", 700);
    fixture_wait(SECOND);
    fixture_call_done(core, id, false, 0);
    assert_int_equal(fixture_status(core).notify.given_up, 1);
    assert_int_equal(rounds_over("0 of 1 reached, 1 failed", 1000), 1);
    end();
}

/* More failures in one turn than the ring of events holds do not push it out. */
TEST(test_notify_round__is_seen_in_a_flood)
{
    enum { COUNT = EVENT_RING_MAX + 10 };
    struct core_limits limits = fixture_limits;
    uint64_t ids[COUNT];
    limits.clients_max = COUNT;
    limits.batch_puts_max = 2 * COUNT;
    begin(COUNT, &limits);
    fixture_ready(core);
    take_calls(ids, COUNT);
    fixture_wait(5 * SECOND);
    for (uint32_t i = 0; i < COUNT; i++)
        fixture_call_done(core, ids[i], false, 0);
    assert_true(core_events(core)->lost > 0);
    assert_int_equal(rounds_over("0 of 266 reached, 266 failed", 5000), 1);
    end();
}

TEST_MAIN(NULL, NULL, NULL, NULL)

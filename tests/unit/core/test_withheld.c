/*
 * test_withheld.c -- the answer to SM_NOTIFY waits until what it says is believed and durable, or
 * refused: a crash while it is in doubt leaves a sender that says it again.
 */
#include "watched_fixture.h"

#include "unit/test.h"

static const char *const here[] = {"10.0.0.7", NULL}, *const elsewhere[] = {"10.0.0.8", NULL};

/* c7 is watched, and was last seen elsewhere than where it says that it rebooted. */
static void begin_with_a_name(void)
{
    begin();
    (void)mon("c7", "us", 1);
    assert_true(fixture_resolve(the_monitor, elsewhere));
    store();
}

static void begin_verifying(void)
{
    begin();
    limits.verify_notices = true;
    restart();
    input(CORE_SERVED);
    (void)mon("10.0.0.2", "us", 1);
}

/* SM_NOTIFY whose answer waits: its ticket. */
static uint32_t say_later(const char *from, const char *name, uint32_t state)
{
    struct core_answer answer = fixture_notify(the_monitor, from, name, state);
    struct core_late late;
    assert_int_equal(answer.response.when, ANSWER_LATER);
    assert_true(answer.response.ticket < CORE_LATE_MAX);
    assert_false(core_next_answer(the_monitor, &late));
    return answer.response.ticket;
}

static enum answer_when say(const char *from, const char *name, uint32_t state)
{
    return fixture_notify(the_monitor, from, name, state).response.when;
}

/* This answer may leave, and no other. */
static struct core_late leaves(uint32_t ticket)
{
    struct core_late late, other;
    assert_true(core_next_answer(the_monitor, &late));
    assert_int_equal(late.ticket, ticket);
    assert_false(core_next_answer(the_monitor, &other));
    return late;
}

static void end_stat(const struct core_call *call, uint32_t state)
{
    struct core_input step = {.kind = CORE_CALL_DONE,
                              .now_ns = fixture_now_ns(),
                              .wall_ns = 1,
                              .call = call->id,
                              .outcome = state == 0 ? CALL_UNDELIVERED : CALL_ANSWERED,
                              .state = state};
    core_step(the_monitor, &step, NULL);
    core_check(the_monitor);
}

TEST(test_withheld__until_the_resolver_has_spoken)
{
    begin_with_a_name();
    uint32_t ticket = say_later("10.0.0.7", "c7", 5);
    assert_true(fixture_resolve(the_monitor, here));
    struct core_late late = leaves(ticket);
    assert_false(late.is_unknown);
    assert_true(late.after_txn > core_durable_txn(the_monitor)); /* the notice is in that batch */
    assert_upcall("c7", 5, 1);
    assert_true(core_durable_txn(the_monitor) >= late.after_txn);
    assert_int_equal(say("10.0.0.7", "c7", 5), ANSWER_NOW); /* a repeat of what is durable */
    end();
}

TEST(test_withheld__who_may_not_say_it_is_answered_when_that_is_known)
{
    begin_with_a_name();
    uint32_t ticket = say_later("10.0.0.7", "c7", 5);
    assert_true(fixture_resolve(the_monitor, elsewhere));
    assert_false(leaves(ticket).is_unknown);
    assert_quiet();
    assert_int_equal(say("10.0.0.9", "c9", 5), ANSWER_NOW); /* nobody watches that one */
    end();
}

TEST(test_withheld__an_error_when_the_resolver_knows_nothing)
{
    begin_with_a_name();
    uint32_t ticket = say_later("10.0.0.7", "c7", 5);
    assert_true(fixture_resolve(the_monitor, NULL));
    assert_true(leaves(ticket).is_unknown);
    ticket = say_later("10.0.0.7", "c7", 5); /* so it says that again */
    assert_true(fixture_resolve(the_monitor, here));
    assert_false(leaves(ticket).is_unknown);
    assert_upcall("c7", 5, 1);
    end();
}

/* The kernel would keep the locks of a host that rebooted: what was in doubt at the crash was never
 * answered, so it is said again. */
TEST(test_withheld__a_crash_in_doubt_loses_nothing)
{
    begin_with_a_name();
    (void)say_later("10.0.0.7", "c7", 5);
    restart();
    uint32_t ticket = say_later("10.0.0.7", "c7", 5);
    assert_true(fixture_resolve(the_monitor, here));
    (void)leaves(ticket);
    assert_upcall("c7", 5, 1);
    end();
}

TEST(test_withheld__until_the_host_has_confirmed_it)
{
    begin_verifying();
    uint32_t ticket = say_later("10.0.0.2", "c2", 5);
    struct core_call call = next(CALL_STAT, "10.0.0.2");
    uint32_t again = say_later("10.0.0.2", "c2.example", 5); /* both names */
    end_stat(&call, 5);
    struct core_late late, other;
    assert_true(core_next_answer(the_monitor, &late) && core_next_answer(the_monitor, &other));
    assert_true(late.ticket == ticket ? other.ticket == again : late.ticket == again);
    assert_true(late.after_txn > core_durable_txn(the_monitor));
    assert_false(late.is_unknown || other.is_unknown);
    assert_upcall("10.0.0.2", 5, 1);
    end();
}

TEST(test_withheld__until_the_host_was_silent_for_three_seconds)
{
    begin_verifying();
    uint64_t began_ns = fixture_now_ns();
    uint32_t ticket = say_later("10.0.0.2", "c2", 5);
    struct core_call call;
    struct core_late late;
    while (!core_next_answer(the_monitor, &late)) {
        store();
        while (!fixture_next_call(the_monitor, &call))
            fixture_wait(SECOND / 100);
        assert_true(call.deadline_ns <= began_ns + 3 * SECOND);
        fixture_wait(SECOND / 10);
        end_stat(&call, 0);
    }
    assert_int_equal(late.ticket, ticket);
    assert_true(fixture_now_ns() >= began_ns + 2 * SECOND);
    assert_true(fixture_now_ns() <= began_ns + 3 * SECOND + SECOND / 10);
    assert_quiet();
    end();
}

/* Resolved first, then confirmed. */
TEST(test_withheld__until_both_have_spoken)
{
    begin_verifying();
    (void)mon("c7", "us", 2);
    assert_true(fixture_resolve(the_monitor, elsewhere));
    uint32_t ticket = say_later("10.0.0.7", "c7", 5);
    assert_true(fixture_resolve(the_monitor, here));
    struct core_late late;
    assert_false(core_next_answer(the_monitor, &late));
    struct core_call call = next(CALL_STAT, "10.0.0.7"); /* where it has moved to */
    end_stat(&call, 5);
    (void)leaves(ticket);
    assert_upcall("c7", 5, 2);
    end();
}

/* One host under two names: each registrant is asked about. */
TEST(test_withheld__until_each_registrant_is_settled)
{
    begin_verifying();
    (void)mon("c2", "us", 2);
    assert_true(fixture_resolve(the_monitor, (const char *const[]){"10.0.0.2", NULL}));
    uint32_t ticket = say_later("10.0.0.2", "c2", 5);
    struct core_call first = next(CALL_STAT, "10.0.0.2"), second = next(CALL_STAT, "10.0.0.2");
    struct core_late late;
    end_stat(&first, 5);
    assert_false(core_next_answer(the_monitor, &late));
    end_stat(&second, 5);
    (void)leaves(ticket);
    end();
}

TEST(test_withheld__who_is_no_longer_watched_keeps_nobody_waiting)
{
    begin_verifying();
    uint32_t ticket = say_later("10.0.0.2", "c2", 5);
    unmon("10.0.0.2", "us");
    (void)leaves(ticket);
    end();
}

/* An address that says more than may wait is not answered; others are. */
TEST(test_withheld__no_address_takes_every_place)
{
    begin_verifying();
    (void)mon("10.0.0.3", "us", 3);
    for (uint32_t i = 0; i < WITHHELD_SHARE; i++)
        (void)say_later("10.0.0.2", "c2", 5 + 2 * i);
    assert_int_equal(say("10.0.0.2", "c2", 5 + 2 * WITHHELD_SHARE), ANSWER_NEVER);
    (void)say_later("10.0.0.3", "c3", 5);
    core_check(the_monitor);
    end();
}

/* Nor is one whose notices find no place to wait for the resolver in. */
TEST(test_withheld__a_notice_without_a_place_is_not_answered)
{
    char name[16];
    begin();
    for (uint32_t i = 0; i <= HEARSAY_SHARE; i++) {
        snprintf(name, sizeof name, "c%u", i);
        (void)mon(name, "us", 1);
        assert_true(fixture_resolve(the_monitor, elsewhere));
        assert_int_equal(say("10.0.0.7", name, 5), i < HEARSAY_SHARE ? ANSWER_LATER : ANSWER_NEVER);
    }
    end();
}

TEST_MAIN(NULL, NULL, NULL, NULL)

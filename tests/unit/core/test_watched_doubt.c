/*
 * test_watched_doubt.c -- --verify-notify always in the monitor role: what a host does not confirm
 * itself is not believed, and what it does is, also among lies and after a while.
 */
#include "watched_fixture.h"

#include "unit/test.h"

static void begin_verifying(void)
{
    begin();
    limits.verify_notices = true;
    restart();
    input(CORE_SERVED);
}

/* What the status monitor at that address says when it is asked; 0: nothing. */
static void says(const char *host, uint32_t state)
{
    struct core_call call = next(CALL_STAT, host);
    struct core_input step = {.kind = CORE_CALL_DONE,
                              .now_ns = fixture_now_ns(),
                              .wall_ns = 1,
                              .call = call.id,
                              .outcome = state == 0 ? CALL_UNDELIVERED : CALL_ANSWERED,
                              .state = state};
    core_step(the_monitor, &step, NULL);
    core_check(the_monitor);
    store();
}

static uint32_t count_events(enum event_kind kind)
{
    struct event event;
    uint32_t count = 0;
    while (event_take(core_events(the_monitor), &event))
        count += event.kind == kind;
    return count;
}

TEST(test_watched__a_host_is_asked_before_the_upcall)
{
    begin_verifying();
    (void)mon("10.0.0.2", "us", 1);
    notice("10.0.0.2", "c2", 5);
    says("10.0.0.2", 5);
    assert_upcall("10.0.0.2", 5, 1);
    notice("10.0.0.2", "c2.example", 5); /* its other name */
    assert_quiet();
    end();
}

TEST(test_watched__what_a_host_does_not_confirm_is_reported)
{
    begin_verifying();
    (void)mon("10.0.0.2", "us", 1);
    notice("10.0.0.2", "c2", 5);
    says("10.0.0.2", 3); /* the notice was forged */
    assert_quiet();
    assert_int_equal(count_events(EVENT_NOTICE_UNCONFIRMED), 1);
    notice("10.0.0.2", "c2", 5); /* and now it is true */
    says("10.0.0.2", 5);
    assert_upcall("10.0.0.2", 5, 1);
    end();
}

TEST(test_watched__forged_states_do_not_hide_the_true_one)
{
    begin_verifying();
    (void)mon("10.0.0.2", "us", 1);
    notice("10.0.0.2", "c2", 5);
    for (uint32_t forged = 101; forged < 101 + 2 * (WATCHED_DOUBTS_MAX - 1); forged += 2)
        notice("10.0.0.2", "c2", forged);
    says("10.0.0.2", 5);
    assert_upcall("10.0.0.2", 5, 1);
    assert_quiet();
    end();
}

/* More lies than are kept: then the host's own word is enough. */
TEST(test_watched__any_number_of_forged_states_does_not_hide_the_true_one)
{
    begin_verifying();
    (void)mon("10.0.0.2", "us", 1);
    notice("10.0.0.2", "c2", 5);
    for (uint32_t forged = 101; forged < 101 + 4 * WATCHED_DOUBTS_MAX; forged += 2)
        notice("10.0.0.2", "c2", forged);
    says("10.0.0.2", 5);
    assert_upcall("10.0.0.2", 5, 1);
    assert_quiet();
    end();
}

/* It was asked because of a lie, answered, and rebooted before that answer arrived. */
TEST(test_watched__an_answer_from_before_the_reboot_is_not_the_last_word)
{
    begin_verifying();
    (void)mon("10.0.0.2", "us", 1);
    notice("10.0.0.2", "c2", 101);
    struct core_call call = next(CALL_STAT, "10.0.0.2");
    notice("10.0.0.2", "c2", 5);
    struct core_input step = {.kind = CORE_CALL_DONE,
                              .now_ns = fixture_now_ns(),
                              .wall_ns = 1,
                              .call = call.id,
                              .outcome = CALL_ANSWERED,
                              .state = 3};
    core_step(the_monitor, &step, NULL);
    assert_int_equal(count_events(EVENT_NOTICE_UNCONFIRMED), 0);
    fixture_wait(SECOND / 10);
    says("10.0.0.2", 5);
    assert_upcall("10.0.0.2", 5, 1);
    end();
}

TEST(test_watched__a_silent_host_is_asked_again_for_a_while)
{
    begin_verifying();
    (void)mon("10.0.0.2", "us", 1);
    notice("10.0.0.2", "c2", 5); /* its rpc.statd is not up yet */
    for (uint32_t i = 0; i < 5; i++) {
        says("10.0.0.2", 0);
        assert_quiet();
        fixture_wait(SECOND / 2);
    }
    says("10.0.0.2", 5);
    assert_upcall("10.0.0.2", 5, 1);
    notice("10.0.0.2", "c2", 7);
    says("10.0.0.2", 0);
    fixture_wait(3 * SECOND);
    says("10.0.0.2", 0); /* a late end of the last question */
    fixture_wait(10 * SECOND);
    assert_quiet();
    assert_int_equal(count_events(EVENT_NOTICE_UNCONFIRMED), 1);
    end();
}

TEST(test_watched__what_is_locked_after_a_reboot_outlives_its_confirmation)
{
    begin_verifying();
    (void)mon("10.0.0.2", "us", 1);
    reboot();
    input(CORE_SERVED);
    struct core_call call = next(CALL_NOTIFY, "10.0.0.2");
    notice("10.0.0.2", "c2", 5);    /* it rebooted, too, */
    (void)mon("10.0.0.2", "us", 2); /* and has a lock again */
    says("10.0.0.2", 5);
    assert_quiet();
    done(&call, true);
    notice("10.0.0.2", "c2.example", 5);
    assert_quiet();
    restart(); /* nor is it made up for later */
    input(CORE_SERVED);
    assert_quiet();
    end();
}

TEST(test_watched__who_unregisters_is_not_asked_about)
{
    begin_verifying();
    (void)mon("10.0.0.2", "us", 1);
    notice("10.0.0.2", "c2", 5);
    struct core_call call = next(CALL_STAT, "10.0.0.2");
    unmon("10.0.0.2", "us");
    (void)mon("10.0.0.2", "us", 2);
    done(&call, true);
    assert_quiet();
    end();
}

TEST_MAIN(NULL, NULL, NULL, NULL)

/*
 * test_watched.c -- the monitor role in virtual time, over restarts of the process and reboots of
 * the machine: who is told of what, by which call, under which names and from which addresses, and
 * when a record goes. Each test fails without the rule that it is named after.
 */
#include "watched_fixture.h"

#include "core/view.h"

#include "unit/test.h"

/* ---- the boot ---- */

TEST(test_watched__restart_of_the_process_is_no_event)
{
    begin();
    uint32_t was = fixture_status(the_monitor).state;
    assert_int_equal(mon("10.0.0.2", "us", 1).response.state, was);
    restart();
    input(CORE_SERVED);
    assert_int_equal(fixture_status(the_monitor).state, was);
    assert_true(fixture_status(the_monitor).is_same_boot);
    fixture_wait(60 * SECOND);
    assert_quiet();
    end();
}

TEST(test_watched__reboot_raises_the_state_and_tells_the_host)
{
    begin();
    uint32_t was = fixture_status(the_monitor).state;
    (void)mon("10.0.0.2", "us.example", 1);
    reboot();
    assert_int_equal(fixture_status(the_monitor).state, was + 2);
    assert_int_equal(fixture_status(the_monitor).hosts_owed, 1);
    input(CORE_SERVED);
    struct core_call call = next(CALL_NOTIFY, "10.0.0.2");
    assert_int_equal(call.our_state, was + 2);
    assert_int_equal(call.our_name_count, 2);
    assert_true(has_name(&call, "us.example") && has_name(&call, "us"));
    done(&call, true);
    assert_int_equal(fixture_status(the_monitor).registrants,
                     0); /* registered by nobody in this boot */
    assert_quiet();
    end();
}

TEST(test_watched__another_network_is_another_boot)
{
    begin();
    (void)mon("10.0.0.2", "us", 1);
    core_free(the_monitor);
    limits.slots_used[RECORD_REGISTRANT] = 1;
    the_monitor = core_new(&limits, 43);
    for (enum record_kind kind = 1; kind < RECORD_KIND_END; kind++)
        if (stored(kind, 0).len > 0)
            (void)core_load(the_monitor, kind, 0, stored(kind, 0));
    core_start(the_monitor, &(struct core_boot){.boot = {boot}, .netns = 8});
    assert_int_equal(fixture_status(the_monitor).hosts_owed, 1);
    end();
}

TEST(test_watched__a_second_reboot_loses_nobody)
{
    begin();
    (void)mon("10.0.0.2", "us", 1);
    reboot();
    reboot();
    input(CORE_SERVED);
    struct core_call call = next(CALL_NOTIFY, "10.0.0.2");
    assert_int_equal(call.our_state, fixture_status(the_monitor).state);
    done(&call, false);
    restart(); /* of us alone: still owed */
    input(CORE_SERVED);
    call = next(CALL_NOTIFY, "10.0.0.2");
    done(&call, true);
    assert_quiet();
    end();
}

/* What needs attention: not who is being notified, but who was tried in vain. */
TEST(test_watched__those_tried_in_vain_are_counted)
{
    begin();
    (void)mon("10.0.0.2", "us", 1);
    (void)mon("10.0.0.3", "us", 1);
    reboot();
    input(CORE_SERVED);
    assert_int_equal(fixture_status(the_monitor).notify.owed, 2);
    struct core_call call = next(CALL_NOTIFY, "10.0.0.2"), other = next(CALL_NOTIFY, "10.0.0.3");
    assert_int_equal(fixture_status(the_monitor).notify.tried, 0);
    done(&call, false);
    assert_int_equal(fixture_status(the_monitor).notify.tried, 1);
    done(&other, true);
    assert_int_equal(fixture_status(the_monitor).notify.tried, 1);
    fixture_wait(60 * SECOND);
    call = next(CALL_NOTIFY, "10.0.0.2");
    assert_int_equal(fixture_status(the_monitor).notify.tried, 1);
    done(&call, true);
    assert_int_equal(fixture_status(the_monitor).notify.tried, 0);
    assert_int_equal(fixture_status(the_monitor).notify.owed, 0);
    end();
}

TEST(test_watched__a_store_has_one_role)
{
    begin();
    core_free(the_monitor);
    struct core_limits server = fixture_limits;
    the_monitor = core_new(&server, 43);
    struct bytes value = stored(RECORD_SERVER, 0);
    assert_int_equal(core_load(the_monitor, RECORD_SERVER, 0, value), RECORD_GOOD);
    assert_false(core_is_of_role(the_monitor));
    end();
}

/* ---- when ---- */

TEST(test_watched__hosts_are_told_when_the_nfs_server_is_up)
{
    begin();
    (void)mon("10.0.0.2", "us", 1);
    reboot();
    fixture_wait(29 * SECOND);
    core_work(the_monitor, fixture_now_ns(), 1);
    assert_quiet();
    fixture_wait(2 * SECOND);
    core_work(the_monitor, fixture_now_ns(), 1); /* --notify-after */
    (void)next(CALL_NOTIFY, "10.0.0.2");
    end();
}

TEST(test_watched__upcalls_do_not_wait_for_the_nfs_server)
{
    begin();
    reboot();
    (void)mon("10.0.0.2", "us", 3);
    notice("10.0.0.2", "c2", 5);
    assert_upcall("10.0.0.2", 5, 3);
    end();
}

/* ---- whom we believe ---- */

TEST(test_watched__a_host_speaks_for_itself_under_any_name)
{
    begin();
    (void)mon("10.0.0.2", "us", 1);
    notice("10.0.0.2", "c2", 5);
    assert_upcall("10.0.0.2", 5, 1);
    notice("10.0.0.2", "c2.example", 5); /* its other name: the same reboot */
    assert_quiet();
    notice("10.0.0.2", "c2", 7);
    assert_upcall("10.0.0.2", 7, 1);
    end();
}

TEST(test_watched__a_stranger_is_not_believed)
{
    begin();
    (void)mon("10.0.0.2", "us", 1);
    notice("10.0.0.3", "10.0.0.2", 5);
    notice("127.0.0.1", "10.0.0.2", 5);
    notice("10.0.0.1", "10.0.0.2", 5);
    notice("10.0.0.2", "c2", 0);
    assert_quiet();
    end();
}

TEST(test_watched__our_own_notice_is_nothing)
{
    begin();
    (void)mon("10.0.0.1", "us", 1); /* a mount of our own export */
    notice("10.0.0.1", "us", 9);
    notice("10.0.0.1", "10.0.0.1", 9);
    assert_quiet();
    reboot();
    input(CORE_SERVED);
    assert_quiet();
    assert_int_equal(fixture_status(the_monitor).registrants, 0);
    end();
}

/* ---- priv ---- */

TEST(test_watched__no_priv_of_another_boot)
{
    begin();
    (void)mon("10.0.0.2", "us", 1);
    reboot(); /* not served yet: the record stays */
    notice("10.0.0.2", "c2", 5);
    assert_quiet();
    (void)mon("10.0.0.2", "us", 2); /* what it locks now it locks after that reboot of its own */
    assert_quiet();
    notice("10.0.0.2", "c2", 7);
    assert_upcall("10.0.0.2", 7, 2);
    end();
}

TEST(test_watched__repeat_replaces_priv_and_keeps_both_duties)
{
    begin();
    (void)mon("10.0.0.2", "us", 1);
    reboot();
    (void)mon("10.0.0.2", "us", 2);
    assert_int_equal(fixture_status(the_monitor).hosts_owed, 1);
    input(CORE_SERVED);
    struct core_call call = next(CALL_NOTIFY, "10.0.0.2");
    done(&call, true);
    assert_int_equal(fixture_status(the_monitor).registrants, 1); /* registered in this boot */
    notice("10.0.0.2", "c2", 5);
    assert_upcall("10.0.0.2", 5, 2);
    end();
}

TEST(test_watched__an_upcall_that_is_owed_outlives_us)
{
    begin();
    (void)mon("10.0.0.2", "us", 4);
    notice("10.0.0.2", "c2", 5);
    struct core_call call = next(CALL_STATUS, "127.0.0.1");
    (void)call; /* killed before the answer */
    restart();
    assert_upcall("10.0.0.2", 5, 4);
    restart();
    assert_quiet();
    end();
}

TEST(test_watched__upcalls_do_not_wait_for_each_other)
{
    begin();
    for (uint8_t i = 2; i < 42; i++) {
        char name[ADDRESS_TEXT_MAX];
        struct address host = fixture_address("10.0.0.0");
        host.bytes[3] = i;
        address_text(&host, name);
        (void)mon(name, "us", i);
        notice(name, "c", 5);
    }
    for (uint8_t i = 2; i < 42; i++)
        (void)next(CALL_STATUS, "127.0.0.1"); /* all at one moment: not 100 a second */
    assert_quiet();
    end();
}

/* As the fixture's, without looking at every host each time, and without a store to start from. */
static void step(struct core_input in)
{
    struct store_batch batch;
    struct core_answer answer;
    in.now_ns = in.wall_ns = fixture_now_ns();
    core_step(the_monitor, &in, &answer);
    if (!core_take_batch(the_monitor, &batch))
        return;
    struct core_input kept = {
        .kind = CORE_STORED, .now_ns = fixture_now_ns(), .txn = batch.txn, .has_room = true};
    core_step(the_monitor, &kept, NULL);
}

static void say(enum request_kind kind, const char *from, const char *mon_name)
{
    struct peer peer = fixture_peer(from, 900);
    struct request request = {.kind = kind,
                              .mon_name = bytes_of_text(mon_name),
                              .my_name = bytes_of_text("us"),
                              .my_prog = 100021,
                              .my_vers = 3,
                              .my_proc = 16,
                              .state = 5,
                              .priv = bytes_of_text("0123456789abcdef")};
    step((struct core_input){.kind = CORE_REQUEST, .from = &peer, .request = &request});
}

TEST(test_watched__ten_thousand_reboots_at_once)
{
    enum { HOSTS = 10000 };
    static uint64_t calls[HOSTS];
    struct core_call call;
    begin();
    core_free(the_monitor);
    limits.clients_max = HOSTS;
    limits.bytes_max = UINT64_C(32) << 20;
    the_monitor = core_new(&limits, 43);
    assert_non_null(the_monitor);
    core_start(the_monitor, &(struct core_boot){.boot = {boot}, .now_ns = fixture_now_ns()});
    step((struct core_input){.kind = CORE_READY});
    step((struct core_input){.kind = CORE_SERVED});
    for (uint32_t i = 0; i < HOSTS; i++) {
        char name[ADDRESS_TEXT_MAX];
        struct address host = fixture_address("10.1.0.0");
        host.bytes[2] = (uint8_t)(i >> 8);
        host.bytes[3] = (uint8_t)i;
        address_text(&host, name);
        say(REQUEST_NSM_MON, "127.0.0.1", name);
        say(REQUEST_NSM_NOTIFY, name, "c");
    }
    for (uint32_t i = 0; i < HOSTS; i++) {
        assert_true(core_next_call(the_monitor, fixture_now_ns(), &call)); /* at one moment */
        assert_int_equal(call.kind, CALL_STATUS);
        calls[i] = call.id;
    }
    assert_false(core_next_call(the_monitor, fixture_now_ns(), &call));
    for (uint32_t i = 0; i < HOSTS; i++)
        step((struct core_input){.kind = CORE_CALL_DONE,
                                 .call = calls[i],
                                 .outcome = CALL_ANSWERED,
                                 .answered_count = 1});
    assert_false(core_next_call(the_monitor, fixture_now_ns(), &call)); /* each once */
    core_check(the_monitor);
    end();
}

/* ---- peers ---- */

TEST(test_watched__unmon_keeps_what_its_host_is_owed)
{
    begin();
    (void)mon("10.0.0.2", "us", 1);
    reboot();
    (void)mon("10.0.0.2", "us", 2);
    unmon("10.0.0.2", "us");
    assert_int_equal(fixture_status(the_monitor).registrants, 1);
    notice("10.0.0.2", "c2", 5);
    assert_quiet();
    input(CORE_SERVED);
    struct core_call call = next(CALL_NOTIFY, "10.0.0.2");
    done(&call, true);
    assert_int_equal(fixture_status(the_monitor).registrants, 0);
    (void)mon("10.0.0.3", "us", 1);
    unmon("10.0.0.3", "us");
    assert_int_equal(fixture_status(the_monitor).registrants, 0);
    end();
}

TEST(test_watched__told_from_every_address)
{
    static const char *const locals[] = {"127.0.0.1", "192.168.1.1", "10.0.0.1", "fd00::1", NULL};
    begin();
    (void)mon("10.0.0.2", "us", 1);
    reboot();
    set_locals(locals);
    input(CORE_SERVED);
    struct core_call call = next(CALL_NOTIFY, "10.0.0.2");
    struct address near = fixture_address("10.0.0.1"), far = fixture_address("192.168.1.1");
    assert_true(address_equal(&call.local, &near));
    done(&call, true);
    assert_int_equal(fixture_status(the_monitor).hosts_owed, 1);
    call = next(CALL_NOTIFY, "10.0.0.2");
    assert_true(address_equal(&call.local, &far));
    done(&call, true);
    assert_int_equal(fixture_status(the_monitor).registrants, 0);
    assert_quiet();
    end();
}

TEST(test_watched__an_address_that_is_never_answered_is_not_used)
{
    static const char *const locals[] = {"192.168.1.1", "10.0.0.1", NULL};
    begin();
    (void)mon("10.0.0.2", "us", 1);
    reboot();
    set_locals(locals);
    input(CORE_SERVED);
    struct core_call call;
    struct address near = fixture_address("10.0.0.1");
    for (int i = 0; i < 2000 && fixture_status(the_monitor).registrants > 0; i++) {
        if (fixture_next_call(the_monitor, &call))
            done(&call, address_equal(&call.local, &near));
        fixture_wait(SECOND);
        core_work(the_monitor, fixture_now_ns(), 1);
    }
    assert_int_equal(fixture_status(the_monitor).registrants, 0);
    end();
}

TEST(test_watched__a_full_table_refuses_and_forgets_nobody)
{
    begin();
    limits.clients_max = 2;
    restart();
    assert_false(mon("10.0.0.2", "us", 1).response.refused);
    assert_false(mon("10.0.0.3", "us", 1).response.refused);
    assert_true(mon("10.0.0.4", "us", 1).response.refused);
    assert_false(mon("10.0.0.2", "us", 2).response.refused);
    assert_int_equal(fixture_status(the_monitor).registrants, 2);
    end();
}

/* ---- names ---- */

TEST(test_watched__a_name_is_answered_then_resolved_and_kept)
{
    static const char *const addresses[] = {"10.0.0.9", "10.0.0.8", NULL};
    begin();
    assert_false(mon("c9.example", "us", 1).response.refused);
    assert_int_equal(fixture_status(the_monitor).unresolved, 1);
    assert_true(fixture_resolve(the_monitor, NULL)); /* not known yet */
    assert_int_equal(fixture_status(the_monitor).unresolved, 1);
    assert_false(fixture_resolve(the_monitor, NULL));
    fixture_wait(6 * SECOND);
    assert_true(fixture_resolve(the_monitor, addresses));
    store();
    assert_int_equal(fixture_status(the_monitor).unresolved, 0);
    notice("10.0.0.8", "c9", 5); /* another spelling, from an address of the name */
    assert_upcall("c9.example", 5, 1);
    reboot();
    input(CORE_SERVED); /* told where the store says, without the resolver */
    (void)next(CALL_NOTIFY, "10.0.0.9");
    end();
}

TEST(test_watched__a_name_is_told_when_it_resolves)
{
    static const char *const addresses[] = {"10.0.0.9", NULL};
    begin();
    (void)mon("c9.example", "us", 1);
    reboot();
    input(CORE_SERVED);
    assert_quiet();
    assert_true(fixture_resolve(the_monitor, addresses));
    (void)next(CALL_NOTIFY, "10.0.0.9");
    end();
}

/* ---- orders of lock managers ---- */

TEST(test_watched__unmon_all_forgets_or_notifies)
{
    for (int notifies = 0; notifies < 2; notifies++) {
        begin();
        limits.unmon_all_notifies = notifies;
        restart();
        input(CORE_SERVED);
        uint32_t was = fixture_status(the_monitor).state;
        (void)mon("10.0.0.2", "ganesha", 1);
        (void)mon("10.0.0.3", "kernel", 1);
        (void)fixture_unmon_all(the_monitor, "127.0.0.1", "ganesha");
        store();
        if (!notifies) {
            assert_int_equal(fixture_status(the_monitor).state, was);
            assert_int_equal(fixture_status(the_monitor).registrants, 1);
        } else {
            struct core_call call = next(CALL_NOTIFY, "10.0.0.2");
            assert_int_equal(call.our_state, was + 2);
            done(&call, true);
        }
        assert_int_equal(fixture_status(the_monitor).registrants, 1);
        assert_quiet();
        end();
    }
}

TEST(test_watched__a_new_priv_is_reported_or_has_all_told)
{
    for (int notifies = 0; notifies < 2; notifies++) {
        begin();
        limits.lockd_restart_notifies = notifies;
        restart();
        input(CORE_SERVED);
        (void)mon("10.0.0.2", "us", 1);
        (void)mon("10.0.0.3", "us", 1);
        uint32_t was = fixture_status(the_monitor).state;
        (void)mon("10.0.0.2", "us", 2);
        struct event event;
        bool is_reported = false;
        while (event_take(core_events(the_monitor), &event))
            is_reported |= event.kind == EVENT_LOCKD_RESTARTED;
        assert_true(is_reported);
        (void)mon("10.0.0.3", "us", 2); /* of the same restart */
        assert_int_equal(fixture_status(the_monitor).state, notifies ? was + 2 : was);
        assert_int_equal(fixture_status(the_monitor).hosts_owed, notifies ? 2 : 0);
        end();
    }
}

/* An upcall in flight is about the locks of before: its answer says nothing of a registration that
 * started over meanwhile, and what that one began with is not relayed to it. */
TEST(test_watched__an_upcall_of_a_registration_that_ended)
{
    begin();
    (void)mon("10.0.0.2", "us", 1);
    reboot(); /* so that SM_UNMON leaves a record */
    (void)mon("10.0.0.2", "us", 2);
    notice("10.0.0.2", "c2", 5);
    struct core_call call = next(CALL_STATUS, "127.0.0.1");
    notice("10.0.0.2", "c2", 7);
    unmon("10.0.0.2", "us");
    (void)mon("10.0.0.2", "us", 3); /* it locks, in state 7 */
    done(&call, true);
    assert_quiet();
    end();
}

/* Until then somebody else may have registered with the lock manager as it is now: that one's
 * reboot matters like any other. Nor is a restart of ours a second one of the lock manager. */
TEST(test_watched__a_new_priv_takes_upcalls_from_nobody)
{
    begin();
    limits.lockd_restart_notifies = true;
    restart();
    input(CORE_SERVED);
    (void)mon("10.0.0.2", "us", 1);
    (void)mon("10.0.0.3", "us", 1);
    uint32_t was = fixture_status(the_monitor).state;
    (void)mon("10.0.0.4", "us", 2); /* with the new one */
    (void)mon("10.0.0.2", "us", 3); /* and here it is noticed */
    assert_int_equal(fixture_status(the_monitor).state, was + 2);
    for (uint32_t i = 0; i < 3; i++) {
        struct core_call call;
        store();
        assert_true(fixture_next_call(the_monitor, &call));
        done(&call, true);
    }
    notice("10.0.0.4", "c4", 5);
    assert_upcall("10.0.0.4", 5, 2);
    restart();
    input(CORE_SERVED);
    (void)mon("10.0.0.3", "us", 3); /* late, and of the same restart */
    assert_int_equal(fixture_status(the_monitor).state, was + 2);
    (void)mon("10.0.0.3", "us", 4); /* another one */
    assert_int_equal(fixture_status(the_monitor).state, was + 4);
    end();
}

/* The one that says so may be the machine itself, which is told of nothing. */
TEST(test_watched__a_new_priv_of_ourselves)
{
    begin();
    limits.lockd_restart_notifies = true;
    restart();
    input(CORE_SERVED);
    (void)mon("10.0.0.1", "us", 1);
    (void)mon("10.0.0.2", "us", 1);
    uint32_t was = fixture_status(the_monitor).state;
    (void)mon("10.0.0.1", "us", 2);
    assert_int_equal(fixture_status(the_monitor).state, was + 2);
    assert_int_equal(fixture_status(the_monitor).hosts_owed, 1);
    assert_int_equal(fixture_status(the_monitor).registrants, 2);
    end();
}

TEST(test_watched__who_may_register)
{
    begin();
    struct request request = {.kind = REQUEST_NSM_MON,
                              .mon_name = bytes_of_text("10.0.0.2"),
                              .my_name = bytes_of_text("us"),
                              .my_prog = 100021,
                              .my_vers = 4,
                              .my_proc = 24,
                              .priv = {(const uint8_t *)"0123456789abcdef", 16}};
    struct peer here = fixture_peer("127.0.0.1", 900), there = fixture_peer("10.0.0.2", 900);
    assert_true(fixture_step(the_monitor, &there, &request).response.refused);
    request.my_proc = 23;
    assert_true(fixture_step(the_monitor, &here, &request).response.refused);
    request.my_proc = 16;
    request.my_prog = 100024;
    assert_true(fixture_step(the_monitor, &here, &request).response.refused);
    request.my_prog = 100021;
    assert_false(fixture_step(the_monitor, &here, &request).response.refused);
    end();
}

/* ---- what operators see ---- */

TEST(test_watched__what_is_owed_is_shown)
{
    struct view_client view;
    uint64_t cursor = 0;
    uint32_t budget = 100;
    begin();
    (void)mon("10.0.0.2", "us.example", 1);
    (void)mon("10.0.0.3", "us.example", 2);
    assert_false(view_next_owed(the_monitor, &cursor, &budget, &view));
    assert_int_equal(cursor, VIEW_END);
    notice("10.0.0.2", "c2", 5);
    struct core_status status = fixture_status(the_monitor);
    assert_int_equal(status.upcalls.owed, 1);
    assert_int_equal(status.notify.owed + status.notify.started, 0); /* no host is notified */
    cursor = 0;
    assert_true(view_next_owed(the_monitor, &cursor, &budget, &view));
    assert_true(view.is_watched && view.is_current && !view.is_owed);
    assert_int_equal(view.upcall, 5);
    assert_int_equal(view.state, 5);
    assert_true(bytes_equal(view.my_name, bytes_of_text("us.example")));
    assert_false(view_next_owed(the_monitor, &cursor, &budget, &view));
    assert_upcall("10.0.0.2", 5, 1);
    status = fixture_status(the_monitor);
    assert_int_equal(status.upcalls.owed, 0);
    assert_int_equal(status.upcalls.succeeded, 1);

    reboot();
    assert_int_equal(fixture_status(the_monitor).hosts_owed, 2);
    cursor = 0, budget = 1; /* of two slots: the rest is for another time */
    assert_true(view_next_owed(the_monitor, &cursor, &budget, &view));
    assert_true(view.is_owed && !view.is_current);
    assert_false(view_next_owed(the_monitor, &cursor, &budget, &view));
    assert_int_equal(cursor, 1);
    end();
}

TEST_MAIN(NULL, NULL, NULL, NULL)

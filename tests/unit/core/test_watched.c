/*
 * test_watched.c -- the monitor role in virtual time, over restarts of the process and reboots of
 * the machine: who is told of what, by which call, under which names and from which addresses, and
 * when a record goes. Each test fails without the rule that it is named after.
 */
#include "core/watched.h"

#include "core/state.h"
#include "fixture.h"
#include "unit/test.h"

enum { SLOTS = 64 };

#define SECOND FIXTURE_SECOND

static struct {
    uint32_t len;
    uint8_t bytes[RECORD_VALUE_MAX];
} image[RECORD_KIND_END][SLOTS];
static struct core *core;
static struct core_limits limits;
static uint8_t boot; /* which one this is */

static void store(void)
{
    struct store_batch batch;
    if (!core_take_batch(core, &batch))
        return;
    struct record_change change;
    for (uint64_t at = 0; batch_next(&batch, &at, &change);) {
        assert_true(change.slot < SLOTS);
        image[change.kind][change.slot].len = change.deleted ? 0 : change.value.len;
        if (!change.deleted)
            memcpy(image[change.kind][change.slot].bytes, change.value.at, change.value.len);
    }
    fixture_stored(core, batch.txn, true);
}

static void set_locals(const char *const *texts)
{
    struct address locals[CORE_LOCALS_MAX];
    uint32_t count = 0;
    for (; texts[count] != NULL; count++)
        locals[count] = fixture_address(texts[count]);
    core_set_locals(core, locals, count);
}

static const char *const one_local[] = {"127.0.0.1", "10.0.0.1", NULL};

static void input(enum core_input_kind kind)
{
    struct core_input step = {.kind = kind, .now_ns = fixture_now_ns(), .wall_ns = 1};
    core_step(core, &step, NULL);
    core_check(core);
}

/* A process starts from what is durable, in the boot of now. */
static void start(void)
{
    for (uint32_t kind = 1; kind < RECORD_KIND_END; kind++) {
        limits.slots_used[kind] = 0;
        for (uint32_t slot = 0; slot < SLOTS; slot++)
            if (image[kind][slot].len > 0)
                limits.slots_used[kind] = slot + 1;
    }
    core = core_new(&limits, 43);
    assert_non_null(core);
    for (uint32_t kind = 1; kind < RECORD_KIND_END; kind++)
        for (uint32_t slot = 0; slot < SLOTS; slot++) {
            struct bytes value = {image[kind][slot].bytes, image[kind][slot].len};
            if (value.len > 0)
                assert_int_equal(core_load(core, (enum record_kind)kind, slot, value), RECORD_GOOD);
        }
    assert_true(core_is_of_role(core));
    struct core_boot start = {.boot = {boot}, .netns = 7, .now_ns = fixture_now_ns()};
    core_start(core, &start);
    core_check(core);
    store();
    set_locals(one_local);
}

static void begin(void)
{
    memset(image, 0, sizeof image);
    fixture_reset();
    boot = 1;
    limits = fixture_limits;
    limits.is_monitor = limits.mon_from_loopback = true;
    limits.notify_after_ns = 30 * SECOND;
    limits.grace_ns = 0;
    start();
    fixture_ready(core);
    input(CORE_SERVED);
}

static void restart(void)
{
    core_free(core);
    start();
    fixture_ready(core);
}

static void reboot(void)
{
    boot++;
    restart();
}

static void end(void)
{
    core_free(core);
}

static struct core_answer mon(const char *mon_name, const char *my_name, uint8_t priv)
{
    uint8_t bytes[RECORD_PRIV_LEN];
    memset(bytes, priv, sizeof bytes);
    struct request request = {.kind = REQUEST_NSM_MON,
                              .mon_name = bytes_of_text(mon_name),
                              .my_name = bytes_of_text(my_name),
                              .my_prog = 100021,
                              .my_vers = 3,
                              .my_proc = 16,
                              .priv = {bytes, sizeof bytes}};
    struct peer from = fixture_peer("127.0.0.1", 900);
    struct core_answer answer = fixture_step(core, &from, &request);
    store();
    return answer;
}

static void unmon(const char *mon_name, const char *my_name)
{
    struct request request = {.kind = REQUEST_NSM_UNMON,
                              .mon_name = bytes_of_text(mon_name),
                              .my_name = bytes_of_text(my_name),
                              .my_prog = 100021,
                              .my_vers = 3,
                              .my_proc = 16};
    struct peer from = fixture_peer("127.0.0.1", 900);
    (void)fixture_step(core, &from, &request);
    store();
}

static void notice(const char *from, const char *name, uint32_t state)
{
    (void)fixture_notify(core, from, name, state);
    store();
}

static void assert_quiet(void)
{
    struct core_call call;
    store();
    assert_false(fixture_next_call(core, &call));
}

static struct core_call next(enum core_call_kind kind, const char *to)
{
    struct core_call call;
    struct address address = fixture_address(to);
    store();
    assert_true(fixture_next_call(core, &call));
    assert_int_equal(call.kind, kind);
    assert_true(address_equal(&call.to, &address));
    return call;
}

static void done(const struct core_call *call, bool is_answered)
{
    fixture_call_done(core, call->id, is_answered, is_answered ? 8 : 0);
    store();
}

static void assert_upcall(const char *mon_name, uint32_t state, uint8_t priv)
{
    struct core_call call = next(CALL_STATUS, "127.0.0.1");
    assert_true(call.is_upcall);
    assert_int_equal(call.port_hint, 0);
    assert_int_equal(call.my_proc, 16);
    assert_int_equal(call.status_count, 1);
    assert_int_equal(call.status[0].state, state);
    assert_int_equal(call.priv.at[0], priv);
    assert_true(bytes_equal(call.status[0].mon_name, bytes_of_text(mon_name)));
    done(&call, true);
}

static bool has_name(const struct core_call *call, const char *name)
{
    bool is_there = false;
    for (uint32_t i = 0; i < call->our_name_count; i++)
        is_there |= bytes_equal(call->our_names[i], bytes_of_text(name));
    return is_there;
}

/* ---- the boot ---- */

TEST(test_watched__restart_of_the_process_is_no_event)
{
    begin();
    uint32_t was = fixture_status(core).state;
    assert_int_equal(mon("10.0.0.2", "us", 1).response.state, was);
    restart();
    input(CORE_SERVED);
    assert_int_equal(fixture_status(core).state, was);
    assert_true(fixture_status(core).is_same_boot);
    fixture_wait(60 * SECOND);
    assert_quiet();
    end();
}

TEST(test_watched__reboot_raises_the_state_and_tells_the_host)
{
    begin();
    uint32_t was = fixture_status(core).state;
    (void)mon("10.0.0.2", "us.example", 1);
    reboot();
    assert_int_equal(fixture_status(core).state, was + 2);
    assert_int_equal(fixture_status(core).hosts_owed, 1);
    input(CORE_SERVED);
    struct core_call call = next(CALL_NOTIFY, "10.0.0.2");
    assert_int_equal(call.our_state, was + 2);
    assert_int_equal(call.our_name_count, 2);
    assert_true(has_name(&call, "us.example") && has_name(&call, "us"));
    done(&call, true);
    assert_int_equal(fixture_status(core).registrants, 0); /* registered by nobody in this boot */
    assert_quiet();
    end();
}

TEST(test_watched__another_network_is_another_boot)
{
    begin();
    (void)mon("10.0.0.2", "us", 1);
    core_free(core);
    limits.slots_used[RECORD_REGISTRANT] = 1;
    core = core_new(&limits, 43);
    for (uint32_t kind = 1; kind < RECORD_KIND_END; kind++)
        if (image[kind][0].len > 0)
            (void)core_load(core, (enum record_kind)kind, 0,
                            (struct bytes){image[kind][0].bytes, image[kind][0].len});
    core_start(core, &(struct core_boot){.boot = {boot}, .netns = 8});
    assert_int_equal(fixture_status(core).hosts_owed, 1);
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
    assert_int_equal(call.our_state, fixture_status(core).state);
    done(&call, false);
    restart(); /* of us alone: still owed */
    input(CORE_SERVED);
    call = next(CALL_NOTIFY, "10.0.0.2");
    done(&call, true);
    assert_quiet();
    end();
}

TEST(test_watched__a_store_has_one_role)
{
    begin();
    core_free(core);
    struct core_limits server = fixture_limits;
    core = core_new(&server, 43);
    struct bytes value = {image[RECORD_SERVER][0].bytes, image[RECORD_SERVER][0].len};
    assert_int_equal(core_load(core, RECORD_SERVER, 0, value), RECORD_GOOD);
    assert_false(core_is_of_role(core));
    end();
}

/* ---- when ---- */

TEST(test_watched__hosts_are_told_when_the_nfs_server_is_up)
{
    begin();
    (void)mon("10.0.0.2", "us", 1);
    reboot();
    fixture_wait(29 * SECOND);
    core_work(core, fixture_now_ns(), 1);
    assert_quiet();
    fixture_wait(2 * SECOND);
    core_work(core, fixture_now_ns(), 1); /* --notify-after */
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
    assert_int_equal(fixture_status(core).registrants, 0);
    end();
}

/* ---- --verify-notify always ---- */

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
    core_step(core, &step, NULL);
    core_check(core);
    store();
}

static uint32_t count_events(enum event_kind kind)
{
    struct event event;
    uint32_t count = 0;
    while (event_take(core_events(core), &event))
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

TEST(test_watched__a_silent_host_is_asked_again_for_a_while)
{
    begin_verifying();
    (void)mon("10.0.0.2", "us", 1);
    notice("10.0.0.2", "c2", 5); /* its rpc.statd is not up yet */
    for (uint32_t i = 0; i < 4; i++) {
        says("10.0.0.2", 0);
        assert_quiet();
        fixture_wait((SECOND / 10) << i);
    }
    says("10.0.0.2", 5);
    assert_upcall("10.0.0.2", 5, 1);
    notice("10.0.0.2", "c2", 7);
    for (uint32_t i = 0; i < 6; i++) {
        says("10.0.0.2", 0);
        fixture_wait(10 * SECOND);
    }
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

/* ---- --callout ---- */

static void assert_callout(enum core_callout_kind kind, const char *mon_name, const char *my_name,
                           const char *from, uint32_t notified)
{
    struct core_callout told;
    struct address address = {0};
    if (from != NULL)
        address = fixture_address(from);
    assert_true(core_next_callout(core, &told));
    assert_int_equal(told.kind, kind);
    assert_true(bytes_equal(told.mon_name, bytes_of_text(mon_name)));
    assert_true(bytes_equal(told.my_name, bytes_of_text(my_name)));
    assert_true(address_equal(&told.from, &address));
    assert_int_equal(told.state, notified);
    core_check(core);
}

static void assert_no_callout(void)
{
    struct core_callout told;
    assert_false(core_next_callout(core, &told));
    core_check(core);
}

static void begin_calling_out(void)
{
    begin();
    limits.has_callout = true;
    restart();
    input(CORE_SERVED);
}

TEST(test_watched__callouts_in_order)
{
    begin_calling_out();
    (void)mon("10.0.0.2", "us", 1);
    (void)mon("10.0.0.2", "us", 1); /* a repeat is nothing new */
    (void)mon("10.0.0.3", "us", 1);
    notice("10.0.0.2", "c2", 5);
    notice("10.0.0.2", "c2.example", 5);
    notice("10.0.0.9", "c2", 7); /* a stranger */
    unmon("10.0.0.3", "us");
    assert_callout(CALLOUT_ADD, "10.0.0.2", "us", NULL, 0);
    assert_callout(CALLOUT_ADD, "10.0.0.3", "us", NULL, 0);
    assert_callout(CALLOUT_NOTIFY, "c2", "", "10.0.0.2", 5);
    assert_callout(CALLOUT_DELETE, "10.0.0.3", "us", NULL, 0);
    assert_no_callout();
    end();
}

TEST(test_watched__callouts_wait_until_they_are_true)
{
    begin_calling_out();
    struct request request = {.kind = REQUEST_NSM_MON,
                              .mon_name = bytes_of_text("10.0.0.2"),
                              .my_name = bytes_of_text("us"),
                              .my_prog = 100021,
                              .my_vers = 3,
                              .my_proc = 16,
                              .priv = bytes_of_text("0123456789abcdef")};
    struct peer from = fixture_peer("127.0.0.1", 900);
    (void)fixture_step(core, &from, &request);
    assert_no_callout();
    store();
    assert_callout(CALLOUT_ADD, "10.0.0.2", "us", NULL, 0);
    end();
}

TEST(test_watched__a_host_of_the_boot_before_is_added_anew)
{
    begin_calling_out();
    (void)mon("10.0.0.2", "us", 1);
    assert_callout(CALLOUT_ADD, "10.0.0.2", "us", NULL, 0);
    reboot();
    assert_no_callout();
    unmon("10.0.0.2", "us"); /* nobody registered it in this boot */
    assert_no_callout();
    (void)mon("10.0.0.2", "us", 2);
    assert_callout(CALLOUT_ADD, "10.0.0.2", "us", NULL, 0);
    end();
}

TEST(test_watched__callouts_that_find_no_room_are_counted)
{
    begin_calling_out();
    (void)mon("10.0.0.2", "us", 1);
    for (uint32_t i = 0; i < CALLOUT_MAX; i++)
        notice("10.0.0.2", "c2", 2 * i + 1);
    assert_int_equal(core_lost_callouts(core), 1);
    assert_callout(CALLOUT_ADD, "10.0.0.2", "us", NULL, 0);
    assert_callout(CALLOUT_NOTIFY, "c2", "", "10.0.0.2", 1);
    notice("10.0.0.2", "c2", 9999); /* in the place of the first */
    assert_int_equal(core_lost_callouts(core), 1);
    for (uint32_t i = 1; i + 1 < CALLOUT_MAX; i++)
        assert_callout(CALLOUT_NOTIFY, "c2", "", "10.0.0.2", 2 * i + 1);
    assert_callout(CALLOUT_NOTIFY, "c2", "", "10.0.0.2", 9999);
    assert_no_callout();
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
    assert_int_equal(fixture_status(core).hosts_owed, 1);
    input(CORE_SERVED);
    struct core_call call = next(CALL_NOTIFY, "10.0.0.2");
    done(&call, true);
    assert_int_equal(fixture_status(core).registrants, 1); /* registered in this boot */
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

/* ---- peers ---- */

TEST(test_watched__unmon_keeps_what_its_host_is_owed)
{
    begin();
    (void)mon("10.0.0.2", "us", 1);
    reboot();
    (void)mon("10.0.0.2", "us", 2);
    unmon("10.0.0.2", "us");
    assert_int_equal(fixture_status(core).registrants, 1);
    notice("10.0.0.2", "c2", 5);
    assert_quiet();
    input(CORE_SERVED);
    struct core_call call = next(CALL_NOTIFY, "10.0.0.2");
    done(&call, true);
    assert_int_equal(fixture_status(core).registrants, 0);
    (void)mon("10.0.0.3", "us", 1);
    unmon("10.0.0.3", "us");
    assert_int_equal(fixture_status(core).registrants, 0);
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
    assert_int_equal(fixture_status(core).hosts_owed, 1);
    call = next(CALL_NOTIFY, "10.0.0.2");
    assert_true(address_equal(&call.local, &far));
    done(&call, true);
    assert_int_equal(fixture_status(core).registrants, 0);
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
    for (int i = 0; i < 2000 && fixture_status(core).registrants > 0; i++) {
        if (fixture_next_call(core, &call))
            done(&call, address_equal(&call.local, &near));
        fixture_wait(SECOND);
        core_work(core, fixture_now_ns(), 1);
    }
    assert_int_equal(fixture_status(core).registrants, 0);
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
    assert_int_equal(fixture_status(core).registrants, 2);
    end();
}

/* ---- names ---- */

TEST(test_watched__a_name_is_answered_then_resolved_and_kept)
{
    static const char *const addresses[] = {"10.0.0.9", "10.0.0.8", NULL};
    begin();
    assert_false(mon("c9.example", "us", 1).response.refused);
    assert_int_equal(fixture_status(core).unresolved, 1);
    assert_true(fixture_resolve(core, NULL)); /* not known yet */
    assert_int_equal(fixture_status(core).unresolved, 1);
    assert_false(fixture_resolve(core, NULL));
    fixture_wait(6 * SECOND);
    assert_true(fixture_resolve(core, addresses));
    store();
    assert_int_equal(fixture_status(core).unresolved, 0);
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
    assert_true(fixture_resolve(core, addresses));
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
        uint32_t was = fixture_status(core).state;
        (void)mon("10.0.0.2", "ganesha", 1);
        (void)mon("10.0.0.3", "kernel", 1);
        (void)fixture_unmon_all(core, "127.0.0.1", "ganesha");
        store();
        if (!notifies) {
            assert_int_equal(fixture_status(core).state, was);
            assert_int_equal(fixture_status(core).registrants, 1);
        } else {
            struct core_call call = next(CALL_NOTIFY, "10.0.0.2");
            assert_int_equal(call.our_state, was + 2);
            done(&call, true);
        }
        assert_int_equal(fixture_status(core).registrants, 1);
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
        uint32_t was = fixture_status(core).state;
        (void)mon("10.0.0.2", "us", 2);
        struct event event;
        bool is_reported = false;
        while (event_take(core_events(core), &event))
            is_reported |= event.kind == EVENT_LOCKD_RESTARTED;
        assert_true(is_reported);
        (void)mon("10.0.0.3", "us", 2); /* of the same restart */
        assert_int_equal(fixture_status(core).state, notifies ? was + 2 : was);
        assert_int_equal(fixture_status(core).hosts_owed, notifies ? 2 : 0);
        end();
    }
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
    assert_true(fixture_step(core, &there, &request).response.refused);
    request.my_proc = 23;
    assert_true(fixture_step(core, &here, &request).response.refused);
    request.my_proc = 16;
    request.my_prog = 100024;
    assert_true(fixture_step(core, &here, &request).response.refused);
    request.my_prog = 100021;
    assert_false(fixture_step(core, &here, &request).response.refused);
    end();
}

TEST_MAIN(NULL, NULL, NULL, NULL)

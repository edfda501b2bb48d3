/*
 * test_notify.c -- who is called, when, with what, and what clears a mark: the schedule of
 * core/notify.c in virtual time, over restarts of a core from what it stored.
 */
#include "core/core.h"
#include "fixture.h"
#include "unit/test.h"

enum { SLOTS = 64 };

#define SECOND FIXTURE_SECOND

/* What was stored, to start another core from. */
struct image {
    struct {
        uint32_t len;
        uint8_t bytes[RECORD_VALUE_MAX];
    } at[RECORD_KIND_END][SLOTS];
};

static struct image image;
static struct core *core;

/* The open batch becomes durable; false: there is none. */
static bool store(void)
{
    struct store_batch batch;
    if (!core_take_batch(core, &batch))
        return false;
    struct record_change change;
    for (uint64_t at = 0; store_batch_next(&batch, &at, &change);) {
        assert_true(change.slot < SLOTS);
        image.at[change.kind][change.slot].len = change.deleted ? 0 : change.value.len;
        if (!change.deleted)
            memcpy(image.at[change.kind][change.slot].bytes, change.value.at, change.value.len);
    }
    fixture_stored(core, batch.txn, true);
    return true;
}

static struct record_registrant stored_registrant(uint32_t slot)
{
    struct record_registrant record;
    struct bytes value = {image.at[RECORD_REGISTRANT][slot].bytes,
                          image.at[RECORD_REGISTRANT][slot].len};
    assert_int_equal(record_get_registrant(value, slot, &record), RECORD_GOOD);
    return record;
}

static uint32_t our_state(void)
{
    return fixture_status(core).state;
}

static struct notify_counters counters(void)
{
    return fixture_status(core).notify;
}

/* A new, empty server that is ready. */
TEST_FIXTURE(begin)
{
    image = (struct image){0};
    core = fixture_new(&fixture_limits);
    assert_true(store());
    fixture_ready(core);
}

/* The process ends here; another one starts from what is durable. Its first batch is open. */
static void crash(void)
{
    struct core_limits limits = fixture_limits;
    core_free(core);
    for (uint32_t kind = 1; kind < RECORD_KIND_END; kind++)
        for (uint32_t slot = 0; slot < SLOTS; slot++)
            if (image.at[kind][slot].len > 0)
                limits.slots_used[kind] = slot + 1;
    core = core_new(&limits, 43);
    assert_non_null(core);
    for (uint32_t kind = 1; kind < RECORD_KIND_END; kind++)
        for (uint32_t slot = 0; slot < SLOTS; slot++) {
            struct bytes value = {image.at[kind][slot].bytes, image.at[kind][slot].len};
            if (value.len > 0)
                assert_int_equal(core_load(core, (enum record_kind)kind, slot, value), RECORD_GOOD);
        }
    core_start(core, &(struct core_boot){0});
}

/* The same, until it is ready. */
static void restart(void)
{
    crash();
    assert_true(store());
    fixture_ready(core);
}

TEST_FIXTURE(end)
{
    core_free(core);
}

/* The one call that is due now. */
static struct core_call only_call(void)
{
    struct core_call call, other;
    assert_true(fixture_next_call(core, &call));
    struct core_call copy = call;
    assert_false(fixture_next_call(core, &other));
    return copy;
}

static void assert_quiet(void)
{
    struct core_call call;
    assert_false(fixture_next_call(core, &call));
}

static bool says(const struct core_call *call, uint32_t index, const char *mon_name, uint32_t state)
{
    return index < call->status_count && call->status[index].state == state &&
           bytes_equal(call->status[index].mon_name, bytes_of_text(mon_name));
}

/* Lets time pass until the core wants to call; returns how long that was. */
static uint64_t wait_for_call(struct core_call *ret)
{
    uint64_t start_ns = fixture_now_ns();
    for (;;) {
        uint64_t next_ns = core_deadline_ns(core);
        assert_true(next_ns != UINT64_MAX);
        if (next_ns > fixture_now_ns())
            fixture_wait(next_ns - fixture_now_ns());
        if (fixture_next_call(core, ret))
            return fixture_now_ns() - start_ns;
    }
}

/* One attempt that lasts as long as it may, in vain. */
static void in_vain(const struct core_call *call)
{
    fixture_wait(call->deadline_ns - fixture_now_ns());
    fixture_call_done(core, call->id, false, 0);
}

/* ---- what is said, and when for the first time ---- */

TEST(test_notify__first_attempts_at_once)
{
    for (uint8_t i = 0; i < 3; i++) {
        char from[16];
        (void)snprintf(from, sizeof from, "10.0.0.%u", 2U + i);
        (void)fixture_mon(core, from, "srv", "lockd", (uint8_t)(i + 1));
    }
    assert_true(store());
    assert_quiet();
    crash();
    assert_int_equal(core_deadline_ns(core), UINT64_MAX);
    assert_quiet(); /* not ready (R-NOTIFY-7) */
    fixture_ready(core);
    assert_quiet(); /* the state is not durable */
    assert_true(store());
    for (uint8_t i = 0; i < 3; i++) {
        struct core_call call;
        assert_true(fixture_next_call(core, &call));
        struct address to = fixture_address("10.0.0.2"), local = fixture_address("10.0.0.1");
        to.bytes[3] = (uint8_t)(2 + i);
        assert_true(address_equal(&call.to, &to));
        assert_true(address_equal(&call.local, &local));
        assert_int_equal(call.my_prog, 100021);
        assert_int_equal(call.my_vers, 4);
        assert_int_equal(call.my_proc, 16);
        assert_int_equal(call.priv.len, RECORD_PRIV_LEN);
        assert_int_equal(call.priv.at[0], i + 1);
        assert_int_equal(call.deadline_ns, fixture_now_ns() + 5 * SECOND);
        assert_int_equal(call.status_count, 1);
        assert_true(says(&call, 0, "holdfast.example", our_state()));
    }
    assert_quiet();
    assert_int_equal(counters().started, 3);
    assert_int_equal(counters().owed, 3);
}

TEST(test_notify__an_answer_clears_the_mark)
{
    (void)fixture_mon(core, "10.0.0.2", "srv", "lockd", 1);
    assert_true(store());
    uint32_t old = our_state();
    restart();
    struct core_call call = only_call();
    assert_int_equal(stored_registrant(0).told_state, old);
    fixture_call_done(core, call.id, true, 1);
    assert_true(store());
    assert_int_equal(stored_registrant(0).told_state, our_state());
    assert_int_equal(core_deadline_ns(core), UINT64_MAX);
    assert_int_equal(counters().owed, 0);
    assert_int_equal(counters().succeeded, 1);
}

TEST(test_notify__only_answers_clear_marks)
{
    (void)fixture_mon(core, "10.0.0.2", "srv", "lockd", 1);
    assert_true(store());
    uint32_t old = our_state();
    restart();
    struct core_call call = only_call();
    in_vain(&call);
    assert_false(store()); /* nothing changed */
    assert_int_equal(stored_registrant(0).told_state, old);
    assert_int_equal(counters().owed, 1);
    assert_int_equal(counters().failed, 1);
}

/* ---- the schedule after a failure ---- */

TEST(test_notify__often_while_the_window_stands)
{
    (void)fixture_mon(core, "10.0.0.2", "srv", "lockd", 1);
    assert_true(store());
    restart();
    uint64_t ready_ns = fixture_now_ns(), started_ns = fixture_now_ns();
    struct core_call call = only_call();
    uint32_t attempts = 1;
    for (;; attempts++) {
        fixture_wait(SECOND / 10); /* refused at once */
        fixture_call_done(core, call.id, false, 0);
        (void)wait_for_call(&call);
        if (fixture_now_ns() >= ready_ns + 90 * SECOND)
            break;
        assert_true(fixture_now_ns() - started_ns <= 5 * SECOND); /* D5 (4) */
        assert_true(fixture_now_ns() - started_ns >= 4 * SECOND);
        started_ns = fixture_now_ns();
    }
    assert_true(attempts >= 18);
}

TEST(test_notify__then_the_ladder_until_it_gives_up)
{
    (void)fixture_mon(core, "10.0.0.2", "srv", "lockd", 1);
    assert_true(store());
    uint32_t old = our_state();
    restart();
    uint64_t window_end_ns = fixture_now_ns() + 90 * SECOND;
    uint64_t give_up_ns = window_end_ns + 900 * SECOND;
    struct core_call call = only_call();
    while (fixture_now_ns() < window_end_ns) {
        in_vain(&call);
        if (fixture_now_ns() < window_end_ns)
            (void)wait_for_call(&call);
    }
    /* R-NOTIFY-4: 2 s doubling to 120 s. */
    static const uint64_t steps[] = {2, 4, 8, 16, 32, 64, 120, 120, 120, 120, 120};
    for (uint32_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        assert_int_equal(wait_for_call(&call), steps[i] * SECOND);
        in_vain(&call);
    }
    while (fixture_now_ns() < give_up_ns) {
        (void)wait_for_call(&call);
        assert_true(fixture_now_ns() <= give_up_ns);
        in_vain(&call);
    }
    assert_int_equal(core_deadline_ns(core), UINT64_MAX);
    assert_int_equal(counters().given_up, 1);
    assert_int_equal(counters().owed, 1);
    fixture_wait(100000 * SECOND);
    assert_quiet();
    assert_int_equal(stored_registrant(0).told_state, old); /* the mark stands */
    restart();
    call = only_call();
    assert_true(says(&call, 0, "holdfast.example", our_state()));
}

static void give_up(void)
{
    struct core_call call = only_call();
    in_vain(&call);
    while (counters().given_up == 0) {
        (void)wait_for_call(&call);
        in_vain(&call);
    }
}

TEST(test_notify__heard_of_again)
{
    (void)fixture_mon(core, "10.0.0.2", "srv", "lockd", 1);
    assert_true(store());
    restart();
    struct core_call call = only_call();
    fixture_call_done(core, call.id, false, 0);
    assert_quiet(); /* it will be tried in a while */
    (void)fixture_mon(core, "10.0.0.2", "srv", "lockd", 1);
    (void)store();
    call = only_call(); /* it lives: now */
    in_vain(&call);
    restart();
    give_up();
    assert_quiet();
    (void)fixture_mon(core, "10.0.0.2", "srv", "lockd", 1);
    (void)store();
    call = only_call();
    fixture_call_done(core, call.id, true, 1);
    assert_true(store());
    assert_int_equal(stored_registrant(0).told_state, our_state());
}

/* ---- the gate ---- */

TEST(test_notify__simulated_crash_waits_for_the_store)
{
    (void)fixture_mon(core, "10.0.0.2", "srv", "lockd", 1);
    assert_true(store());
    uint32_t old = our_state();
    (void)fixture_simu_crash(core, "127.0.0.1", 700);
    assert_int_equal(our_state(), old + 2);
    assert_quiet();
    fixture_wait(10 * SECOND);
    assert_quiet();
    assert_true(store());
    struct core_call call = only_call();
    assert_true(says(&call, 0, "holdfast.example", old + 2));
}

TEST(test_notify__a_new_priv_waits_for_the_store)
{
    (void)fixture_mon(core, "10.0.0.2", "srv", "lockd", 1);
    assert_true(store());
    /* While the job is at the gate. */
    (void)fixture_simu_crash(core, "127.0.0.1", 700);
    assert_quiet();
    struct store_batch batch;
    assert_true(core_take_batch(core, &batch));
    (void)fixture_mon(core, "10.0.0.2", "srv", "lockd", 2);
    fixture_stored(core, batch.txn, true);
    assert_quiet();
    assert_true(store());
    struct core_call call = only_call();
    assert_int_equal(call.priv.at[0], 2);
    /* While it is being called. */
    (void)fixture_mon(core, "10.0.0.2", "srv", "lockd", 3);
    in_vain(&call);
    fixture_wait(5 * SECOND);
    assert_quiet();
    assert_true(store());
    call = only_call();
    assert_int_equal(call.priv.at[0], 3);
}

/* ---- what does not clear a mark, and what makes a new one ---- */

TEST(test_notify__registering_again_clears_no_mark)
{
    (void)fixture_mon(core, "10.0.0.2", "srv", "lockd", 1);
    assert_true(store());
    uint32_t old = our_state();
    crash();
    (void)fixture_mon(core, "10.0.0.2", "srv", "lockd", 2);
    assert_true(store());
    assert_int_equal(stored_registrant(0).told_state, old);
    fixture_ready(core);
    struct core_call call = only_call();
    assert_int_equal(call.priv.at[0], 2);
    fixture_call_done(core, call.id, true, 1);
}

TEST(test_notify__a_second_crash_loses_no_mark)
{
    (void)fixture_mon(core, "10.0.0.2", "srv", "lockd", 1);
    (void)fixture_mon(core, "10.0.0.3", "srv", "lockd", 2);
    assert_true(store());
    restart();
    struct core_call first, second;
    assert_true(fixture_next_call(core, &first));
    uint64_t id = first.id;
    assert_true(fixture_next_call(core, &second));
    fixture_call_done(core, id, true, 1);
    /* The batch with the cleared mark does not land: both are told once more. */
    restart();
    assert_true(fixture_next_call(core, &first));
    id = first.id;
    assert_true(says(&first, 0, "holdfast.example", our_state()));
    assert_true(fixture_next_call(core, &second));
    fixture_call_done(core, id, true, 1);
    assert_true(store());
    uint32_t told = our_state();
    assert_int_equal(stored_registrant(0).told_state, told);
    assert_int_not_equal(stored_registrant(1).told_state, told);
    restart(); /* a new state: again both */
    assert_int_equal(counters().owed, 2);
}

TEST(test_notify__news_during_a_call)
{
    (void)fixture_mon(core, "10.0.0.2", "srv", "lockd", 1);
    assert_true(store());
    restart();
    uint32_t before = our_state();
    struct core_call call = only_call();
    (void)fixture_simu_crash(core, "127.0.0.1", 700);
    fixture_call_done(core, call.id, true, 1);
    assert_quiet(); /* not durable yet */
    assert_true(store());
    assert_int_equal(stored_registrant(0).told_state, before);
    call = only_call();
    assert_true(says(&call, 0, "holdfast.example", before + 2));
    fixture_call_done(core, call.id, true, 1);
    assert_true(store());
    assert_int_equal(stored_registrant(0).told_state, before + 2);
    assert_quiet();
}

TEST(test_notify__an_answer_for_nobody)
{
    (void)fixture_mon(core, "10.0.0.2", "srv", "lockd", 1);
    (void)fixture_mon(core, "10.0.0.3", "srv", "lockd", 2);
    assert_true(store());
    (void)fixture_simu_crash(core, "127.0.0.1", 700);
    assert_true(store());
    struct core_call first, second;
    assert_true(fixture_next_call(core, &first));
    uint64_t id = first.id;
    assert_true(fixture_next_call(core, &second));
    /* The first goes, and another takes its slot. */
    (void)fixture_unmon(core, "10.0.0.2", "srv", "lockd");
    (void)fixture_mon(core, "10.0.0.4", "srv", "lockd", 4);
    assert_true(store());
    (void)fixture_simu_crash(core, "127.0.0.1", 700);
    uint32_t owed_state = our_state();
    assert_true(store());
    fixture_call_done(core, id, true, 1); /* not its answer */
    (void)store();
    assert_int_not_equal(stored_registrant(0).told_state, owed_state);
    struct core_call call = only_call();
    assert_int_equal(call.priv.at[0], 4);
    fixture_call_done(core, id, true, 1); /* nor while it is called itself */
    (void)store();
    assert_int_not_equal(stored_registrant(0).told_state, owed_state);
    fixture_call_done(core, call.id, true, 1);
    fixture_call_done(core, call.id, true, 1); /* once is enough */
    fixture_call_done(core, second.id, true, 1);
    /* Whoever went while it was called was not reached. */
    assert_int_equal(counters().started, counters().succeeded + counters().failed);
}

/* ---- relays (D7) ---- */

TEST(test_notify__relays)
{
    (void)fixture_mon(core, "10.0.0.2", "Peer", "lockd", 1);
    (void)fixture_mon(core, "10.0.0.3", "other", "lockd", 2);
    assert_true(store());
    (void)fixture_notify(core, "10.9.9.9", "peer", 5); /* no right to speak */
    assert_true(fixture_resolve(core, NULL));
    (void)store();
    assert_quiet();
    (void)fixture_notify_named(core, "10.0.0.2", "peer", 5);
    assert_quiet(); /* not durable */
    assert_true(store());
    struct core_call call = only_call();
    assert_int_equal(call.priv.at[0], 1);
    assert_int_equal(call.status_count, 1);
    assert_true(says(&call, 0, "Peer", 5)); /* in its own spelling */
    fixture_call_done(core, call.id, true, 1);
    assert_true(store());
    assert_int_equal(stored_registrant(0).relayed_state, 5);
    (void)fixture_notify_named(core, "10.0.0.2", "PEER", 5); /* a repeat */
    (void)store();
    fixture_wait(SECOND);
    assert_quiet();
    (void)fixture_notify_named(core, "10.0.0.2", "PEER", 7);
    assert_true(store());
    fixture_wait(SECOND);
    call = only_call();
    assert_true(says(&call, 0, "Peer", 7));
    in_vain(&call);
    (void)fixture_unmon(core, "10.0.0.2", "Peer", "lockd");
    (void)store();
    assert_int_equal(core_deadline_ns(core), UINT64_MAX);
}

TEST(test_notify__both_in_one_call)
{
    (void)fixture_mon(core, "10.0.0.2", "peer", "lockd", 1);
    assert_true(store());
    (void)fixture_notify_named(core, "10.0.0.2", "peer", 5);
    assert_true(store());
    uint32_t old = our_state();
    restart(); /* before the relay was answered */
    struct core_call call = only_call();
    assert_int_equal(call.status_count, 2);
    assert_true(says(&call, 0, "holdfast.example", our_state()));
    assert_true(says(&call, 1, "peer", 5));
    fixture_call_done(core, call.id, false, 0);
    assert_int_equal(stored_registrant(0).told_state, old);
    (void)wait_for_call(&call);
    assert_int_equal(call.status_count, 2);
    fixture_call_done(core, call.id, false, 1); /* the second one was not answered */
    assert_true(store());
    assert_int_equal(stored_registrant(0).told_state, our_state());
    assert_int_equal(stored_registrant(0).relayed_state, 0);
    (void)wait_for_call(&call);
    assert_int_equal(call.status_count, 1);
    assert_true(says(&call, 0, "peer", 5));
    fixture_call_done(core, call.id, true, 1);
    assert_true(store());
    assert_int_equal(stored_registrant(0).relayed_state, 5);
}

/* An answer to a relay proves nothing about a restart that came meanwhile; a relay is not repeated
 * with it, and nothing is relayed before we serve. */
TEST(test_notify__a_relay_is_no_restart)
{
    (void)fixture_mon(core, "10.0.0.2", "peer", "lockd", 1);
    assert_true(store());
    crash();
    assert_true(store());
    (void)fixture_notify_named(core, "10.0.0.2", "peer", 3);
    assert_true(store());
    assert_quiet();
    fixture_ready(core);
    struct core_call call = only_call();
    assert_int_equal(call.status_count, 2);
    fixture_call_done(core, call.id, true, 2);
    (void)fixture_notify_named(core, "10.0.0.2", "peer", 5);
    assert_true(store());
    fixture_wait(SECOND);
    call = only_call();
    assert_int_equal(call.status_count, 1);
    uint32_t told = our_state();
    (void)fixture_simu_crash(core, "127.0.0.1", 700);
    fixture_call_done(core, call.id, true, 1);
    assert_true(store());
    assert_int_equal(stored_registrant(0).told_state, told);
    assert_int_equal(stored_registrant(0).relayed_state, 5);
    call = only_call();
    assert_int_equal(call.status_count, 1);
    assert_true(says(&call, 0, "holdfast.example", told + 2));
}

/* At most 100 per second, also when a slow store released them all at once, and for repeats. */
TEST(test_notify__relays_are_spaced)
{
    for (uint32_t i = 0; i < 50; i++) {
        char my_name[16];
        (void)snprintf(my_name, sizeof my_name, "lockd-%u", i);
        (void)fixture_mon(core, "10.0.0.2", "peer", my_name, 1);
    }
    assert_true(store());
    (void)fixture_notify_named(core, "10.0.0.2", "peer", 5);
    fixture_wait(SECOND); /* the store is slow */
    assert_quiet();
    assert_true(store());
    uint64_t ids[50], last_ns = 0;
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 50; i++) {
            struct core_call call;
            (void)wait_for_call(&call);
            ids[i] = call.id;
            assert_true(i == 0 || fixture_now_ns() - last_ns >= SECOND / 100);
            assert_true(i == 0 || fixture_now_ns() - last_ns < SECOND);
            last_ns = fixture_now_ns();
        }
        for (uint32_t i = 0; i < 50; i++)
            fixture_call_done(core, ids[i], false, 0);
    }
    /* A restart is not held back by them. */
    (void)fixture_simu_crash(core, "127.0.0.1", 700);
    assert_true(store());
    for (uint32_t i = 0; i < 50; i++) {
        struct core_call call;
        assert_true(fixture_next_call(core, &call));
        assert_int_equal(call.status_count, 2);
    }
}

/* What is owed long after our start is tried for as long as anything else. */
TEST(test_notify__a_late_relay_has_its_ladder)
{
    (void)fixture_mon(core, "10.0.0.2", "peer", "lockd", 1);
    assert_true(store());
    fixture_wait(100000 * SECOND);
    (void)fixture_notify_named(core, "10.0.0.2", "peer", 5);
    assert_true(store());
    struct core_call call = only_call();
    static const uint64_t steps[] = {2, 4, 8, 16};
    for (uint32_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        in_vain(&call);
        assert_int_equal(wait_for_call(&call), steps[i] * SECOND);
    }
    fixture_call_done(core, call.id, true, 1);
    assert_int_equal(counters().given_up, 0);
}

/* ---- where ---- */

TEST(test_notify__port_hints)
{
    static const struct {
        const char *my_name;
        uint16_t port;
    } cases[] = {
        {"lockd", 12049},
        {"lockd:4045", 4045},
        {"10.0.0.9:2049", 2049},
        {"10.0.0.9", 12049}, /* an address, but not where it goes */
        {"lockd:1", 1},
        {"lockd:65535", 65535},
        {"lockd:65536", 12049},
        {"lockd:0", 12049},
        {"lockd:", 12049},
        {":4045", 12049},
        {"lockd:4x5", 12049},
        {"lockd:-4", 12049},
        {"lockd:004045", 12049},
        {"lockd:99999", 12049},
        {"a:b:77", 77},
        {"4045", 12049},
        {"", 12049},
        {":", 12049},
        {"lockd:18446744073709551616", 12049},
    };
    uint32_t count = sizeof cases / sizeof cases[0];
    for (uint32_t i = 0; i < count; i++)
        (void)fixture_mon(core, "10.0.0.2", "srv", cases[i].my_name, (uint8_t)i);
    assert_true(store());
    restart();
    struct address to = fixture_address("10.0.0.2");
    for (uint32_t i = 0; i < count; i++) {
        struct core_call call;
        assert_true(fixture_next_call(core, &call));
        assert_int_equal(call.port_hint, cases[call.priv.at[0]].port);
        assert_true(address_equal(&call.to, &to)); /* a name is never a destination (R-SEC-2) */
    }
}

TEST_MAIN(begin, end, NULL, NULL)

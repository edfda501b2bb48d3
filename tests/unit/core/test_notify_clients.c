/*
 * test_notify_clients.c -- lock clients are told of our restart, and what their silence means.
 *
 * Each test is a story: clients lock, the server is killed and started on what was stored, and its
 * calls are answered or not, in virtual time. What must outlive the process is read from the store.
 */
#include "core/state.h"
#include "lock_fixture.h"
#include "locker.h"
#include "unit/test.h"

#define SECOND FIXTURE_SECOND

static const struct bytes our_names[] = {{(const uint8_t *)"srv.example", 11},
                                         {(const uint8_t *)"srv", 3}};
enum { NAME_COUNT = 3 }; /* those two, and the address */

static struct core_limits limits;
TEST_FIXTURE(setup)
{
    limits = fixture_limits;
    limits.grace_ns = 90 * SECOND;
    limits.names = our_names;
    limits.name_count = 2;
    locker_new(&limits);
}

static uint32_t slot_of(struct locker who)
{
    struct address address = fixture_address(who.address);
    uint32_t slot = client_find(the_core, &address, bytes_of_text(who.name));
    assert_int_not_equal(slot, SLOT_NONE);
    return slot;
}

static struct record_client stored(struct locker who)
{
    struct record_client record;
    uint32_t slot = slot_of(who);
    assert_int_equal(record_get_client(lock_fixture_stored(RECORD_CLIENT, slot), slot, &record),
                     RECORD_GOOD);
    return record;
}

static bool is_marked(struct locker who)
{
    return stored(who).flags & RECORD_CLIENT_CRASHED;
}

static bool is_owed(struct locker who)
{
    return stored(who).told_state != the_core->server.state;
}

static struct core_call next_call(void)
{
    struct core_call call;
    settle();
    assert_true(fixture_next_call(the_core, &call));
    return call;
}

static void assert_called(const struct core_call *call, struct locker who)
{
    struct address to = fixture_address(who.address);
    assert_int_equal(call->kind, CALL_NOTIFY);
    assert_true(address_equal(&call->to, &to));
}

/* The one call that is due, to this client. */
static struct core_call call_to(struct locker who)
{
    struct core_call call = next_call();
    assert_called(&call, who);
    assert_true(nobody_called());
    return call;
}

static void done_with(struct core_call call, bool is_answered, uint32_t count)
{
    struct core_input input = {.kind = CORE_CALL_DONE,
                               .now_ns = fixture_now_ns(),
                               .wall_ns = fixture_now_ns() + SECOND,
                               .call = call.id,
                               .outcome = is_answered ? CALL_ANSWERED : CALL_UNKNOWN,
                               .answered_count = count};
    core_step(the_core, &input, NULL);
    core_check(the_core);
    settle();
}

static void told(struct core_call call)
{
    done_with(call, true, call.our_name_count);
}

/* The attempt lasts as long as it may, in vain. */
static void in_vain(struct core_call call)
{
    if (call.deadline_ns > fixture_now_ns())
        fixture_wait(call.deadline_ns - fixture_now_ns());
    done_with(call, false, 0);
}

/* Lets time pass until there is a call. */
static struct core_call wait_for_call(void)
{
    struct core_call call;
    for (int i = 0; i < 100000; i++) {
        settle();
        if (fixture_next_call(the_core, &call))
            return call;
        uint64_t next_ns = core_deadline_ns(the_core);
        assert_true(next_ns != UINT64_MAX);
        if (next_ns > fixture_now_ns())
            fixture_wait(next_ns - fixture_now_ns());
    }
    fail_msg("nobody is ever called");
    return call;
}

static void monitor(const char *from)
{
    (void)fixture_mon(the_core, from, "srv", "lockd", 1);
    settle();
}

/* ---- what is said, to whom, and when ---- */

TEST(test_notify_clients__every_name_once)
{
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    uint32_t before = the_core->server.state;
    restart_unready();
    struct address local, locals[4];
    local = fixture_address("10.0.0.1");
    assert_int_equal(core_list_locals(the_core, locals, 4), 1);
    assert_true(address_equal(&locals[0], &local));
    core_learn_name(the_core, &local, bytes_of_text("ptr.example"));
    core_learn_name(the_core, NULL, bytes_of_text("srv.example")); /* known already */
    settle();
    assert_true(nobody_called()); /* not ready (R-NOTIFY-7) */
    fixture_ready(the_core);
    struct core_call call = call_to(A);
    assert_int_equal(call.kind, CALL_NOTIFY);
    assert_int_equal(call.port_hint, 0);
    assert_int_equal(call.transport, 0); /* TCP, whatever it locks over (D4) */
    assert_true(address_equal(&call.local, &local));
    assert_int_equal(call.deadline_ns, fixture_now_ns() + 5 * SECOND);
    assert_int_equal(call.our_state, the_core->server.state);
    assert_true(call.our_state > before && call.our_state % 2 == 1);
    static const char *const names[] = {"srv.example", "srv", "ptr.example", "10.0.0.1"};
    assert_int_equal(call.our_name_count, 4);
    for (uint32_t i = 0; i < 4; i++)
        assert_true(bytes_equal(call.our_names[i], bytes_of_text(names[i])));
    assert_true(is_owed(A));
    told(call);
    assert_false(is_owed(A));
    assert_int_equal(fixture_status(the_core).notify.succeeded, 1);
    assert_int_equal(fixture_status(the_core).notify.owed, 0);
}

TEST(test_notify_clients__only_who_relied_on_something)
{
    tell("A lock 0 10 X -> granted; B lock 20 10 X unmonitored -> granted; "
         "C lock 40 10 X -> granted; C unlock 40 10 -> granted; D share r deny r -> granted; "
         "server restarts");
    struct core_call call = next_call(), other = next_call();
    assert_called(&call, A);
    assert_called(&other, D);
    assert_true(nobody_called()); /* not B (R-NM-1), and C has nothing */
    assert_false(is_owed(C));
    assert_int_equal(fixture_status(the_core).notify.started, 2);
    told(call);
    in_vain(other);
    unshare_file(D);
    assert_true(is_owed(D)); /* it has nothing any more, but it was never told */
    restart();
    call = next_call(), other = next_call();
    assert_called(&call, A);
    assert_called(&other, D);
    assert_true(nobody_called());
}

/* A wait is not stored (R-BLK-14), and a kernel that is not told asks again only half a minute
 * later. */
TEST(test_notify_clients__who_waits_is_told)
{
    tell("A lock 0 10 X -> granted; B lock 0 10 X wait -> blocked; server restarts");
    struct core_call call = next_call(), other = next_call();
    assert_called(&call, A);
    assert_called(&other, B);
    assert_true(nobody_called());
    told(call);
    told(other);
    tell("A lock 0 10 X reclaim -> granted");
    tell("server restarts"); /* B did not come back: now it is one that has nothing */
    told(call_to(A));
}

/* Who took its first monitored lock in this run relies on nothing before it. */
TEST(test_notify_clients__monitored_from_now_on)
{
    tell("B lock 20 10 X unmonitored -> granted; server restarts; B lock 40 10 X -> granted");
    assert_false(is_owed(B));
    tell("nobody is called; server restarts");
    told(call_to(B));
}

/* A store that may have lost locks knows nobody who relies on nothing (D16). */
TEST(test_notify_clients__an_incomplete_store_spares_nobody)
{
    tell("C lock 40 10 X -> granted; C unlock 40 10 -> granted");
    the_core->server.flags |= RECORD_SERVER_INCOMPLETE;
    the_core->server_changed = true;
    settle();
    restart();
    told(call_to(C));
}

TEST(test_notify_clients__newest_first)
{
    static const struct locker order[] = {
        {"10.0.0.3", "b", 1}, {"10.0.0.2", "a", 1}, {"10.0.0.4", "c", 1}};
    static const uint64_t seen_ns[] = {900 * SECOND, 500 * SECOND, 100 * SECOND};
    tell("A lock 0 10 X -> granted; B lock 20 10 X -> granted; C lock 40 10 X -> granted");
    fixture_wait(1000 * SECOND);
    restart_unready();
    for (uint32_t i = 0; i < 3; i++)
        client_at(the_core, slot_of(order[i]))->stored.seen_wall_ns = seen_ns[i];
    settle();
    struct core_input ready = {
        .kind = CORE_READY, .now_ns = fixture_now_ns(), .wall_ns = 1000 * SECOND};
    core_step(the_core, &ready, NULL);
    for (uint32_t i = 0; i < 3; i++) {
        struct core_call call;
        assert_true(fixture_next_call(the_core, &call));
        assert_called(&call, order[i]);
    }
}

/* ---- what clears a mark ---- */

TEST(test_notify_clients__the_first_answer_reaches_the_last_clears)
{
    tell("A lock 0 10 X -> granted; server restarts");
    struct core_call call = call_to(A);
    assert_int_equal(call.our_name_count, NAME_COUNT);
    fixture_wait(SECOND);
    done_with(call, false, 1);
    assert_int_equal(client_at(the_core, slot_of(A))->recovery.reached_ns, fixture_now_ns());
    assert_true(is_owed(A));
    assert_false(is_marked(A));
    call = wait_for_call();
    assert_int_equal(call.our_name_count, NAME_COUNT); /* all of them once more */
    done_with(call, false, NAME_COUNT - 1);
    assert_true(is_owed(A));
    told(wait_for_call());
    assert_false(is_owed(A));
    assert_true(nobody_called());
}

TEST(test_notify_clients__only_answers_clear_marks)
{
    tell("A lock 0 10 X -> granted; server restarts");
    struct core_call call = call_to(A);
    assert_int_equal(lock(A, 0, 10, X | RECLAIM), LOCK_GRANTED); /* it knows, but did it hear us? */
    assert_int_equal(unlock(A, 0, 10), LOCK_GRANTED);
    in_vain(call);
    assert_true(is_owed(A));
    assert_int_not_equal(stored(A).untold_ns, 0);
    restart(); /* the mark is durable */
    told(call_to(A));
    assert_int_equal(stored(A).untold_ns, 0);
    assert_false(is_owed(A));
}

TEST(test_notify_clients__a_second_crash_loses_no_mark)
{
    tell("A lock 0 10 X -> granted; B lock 20 10 X -> granted; server restarts");
    struct core_call call = next_call();
    (void)next_call();
    fixture_call_done(the_core, call.id, true, call.our_name_count);
    restart_unready(); /* before that was stored */
    fixture_ready(the_core);
    call = next_call();
    assert_called(&call, A);
    call = next_call();
    assert_called(&call, B);
    assert_int_equal(call.our_state, the_core->server.state);
}

TEST(test_notify_clients__an_answer_counts_once)
{
    tell("A lock 0 10 X -> granted; server restarts");
    struct core_call call = call_to(A);
    told(call);
    assert_int_equal(lock(A, 0, 10, X | RECLAIM), LOCK_GRANTED);
    struct peer root = fixture_peer("127.0.0.1", 700);
    struct request crash = {.kind = REQUEST_NSM_SIMU_CRASH};
    (void)fixture_step(the_core, &root, &crash);
    done_with(call, true, call.our_name_count); /* once is enough */
    settle();
    assert_true(is_owed(A));
    told(call_to(A));
    assert_false(is_owed(A));
}

TEST(test_notify_clients__news_during_a_call)
{
    tell("A lock 0 10 X -> granted; server restarts");
    struct core_call call = call_to(A);
    uint32_t said = call.our_state;
    (void)fixture_simu_crash(the_core, "127.0.0.1", 700);
    settle();
    told(call);
    assert_int_equal(stored(A).told_state, said);
    call = call_to(A);
    assert_int_equal(call.our_state, said + 2);
    told(call);
    assert_false(is_owed(A));
}

/* D6: SM_SIMU_CRASH is a restart for clients, too; who holds nothing is spared as well. */
TEST(test_notify_clients__a_simulated_crash_tells_clients)
{
    tell("A lock 0 10 X -> granted; C lock 40 10 X -> granted; C unlock 40 10 -> granted");
    (void)fixture_simu_crash(the_core, "127.0.0.1", 700);
    struct core_call call;
    assert_false(fixture_next_call(the_core, &call)); /* not durable */
    settle();
    call = call_to(A);
    assert_int_equal(call.our_state, the_core->server.state);
    in_vain(call);
    assert_true(is_marked(A));
    assert_int_equal(fixture_status(the_core).reboots.crashes_detected, 1);
    assert_false(is_owed(C));
}

/* ---- the schedule ---- */

TEST(test_notify_clients__often_until_grace_ends)
{
    limits.window_ns = 30 * SECOND; /* grace is longer, and counts */
    limits.notify_timeout_ns = 20 * SECOND;
    locker_new(&limits);
    tell("A lock 0 10 X -> granted; server restarts");
    uint64_t ready_ns = fixture_now_ns(), end_ns = ready_ns + 90 * SECOND;
    struct core_call call = call_to(A);
    assert_int_equal(call.deadline_ns, ready_ns + 20 * SECOND); /* the first has all of it */
    in_vain(call);
    uint64_t started_ns = 0;
    bool is_called_at_last = false;
    uint32_t attempts = 0;
    while (fixture_now_ns() < end_ns) {
        call = wait_for_call();
        if (fixture_now_ns() >= end_ns)
            break;
        assert_true(started_ns == 0 || fixture_now_ns() - started_ns <= 5 * SECOND);
        started_ns = fixture_now_ns();
        is_called_at_last |= started_ns == end_ns - 10 * SECOND;
        attempts++;
        assert_true(call.deadline_ns <= started_ns + 5 * SECOND);
        fixture_wait(SECOND / 10); /* refused at once */
        done_with(call, false, 0);
    }
    assert_true(is_called_at_last); /* D5 (4) */
    assert_true(attempts >= 14);
}

/* A partition that outlasts the first budget and heals 10 s before the end of grace. */
TEST(test_notify_clients__told_ten_seconds_before_the_end)
{
    tell("A lock 0 10 X -> granted; server restarts");
    uint64_t heals_ns = fixture_now_ns() + 80 * SECOND;
    struct core_call call = call_to(A);
    while (fixture_now_ns() < heals_ns) {
        in_vain(call);
        call = wait_for_call();
    }
    assert_true(fixture_now_ns() <= heals_ns + 5 * SECOND);
    assert_true(is_marked(A));
    told(call);
    assert_false(is_marked(A));
    assert_true(fixture_status(the_core).grace.is_on);
    fixture_wait(20 * SECOND); /* past the end: D5 (5) */
    settle();
    tell("grace is over; A lock 0 10 X reclaim -> granted; B test 0 10 X -> denied");
}

static void give_up(struct core_call call)
{
    for (in_vain(call); fixture_status(the_core).notify.given_up == 0; in_vain(wait_for_call()))
        continue;
}

TEST(test_notify_clients__given_up_until_it_calls)
{
    limits.hold_unreachable = true;
    locker_new(&limits);
    tell("A lock 0 10 X -> granted; server restarts");
    give_up(call_to(A));
    assert_true(client_at(the_core, slot_of(A))->recovery.is_given_up); /* R-GRACE-5: hold ends */
    assert_true(is_owed(A));
    fixture_wait(10000 * SECOND);
    tell("nobody is called; A test 500 10 X -> granted"); /* it lives */
    told(call_to(A));
    assert_false(is_owed(A));
}

/* A call of its own is a reason to try at once, but only the first one: others come in hundreds. */
TEST(test_notify_clients__heard_of_is_tried_at_once)
{
    tell("A lock 0 10 X -> granted; server restarts");
    done_with(call_to(A), false, 0); /* refused at once */
    tell("nobody is called; A lock 0 10 X reclaim -> granted");
    done_with(call_to(A), false, 0);
    tell("A lock 0 10 X reclaim -> granted; nobody is called");
}

/* ---- D5 ---- */

TEST(test_notify_clients__unreached_is_marked)
{
    struct event event;
    tell("A lock 0 10 X -> granted; A2 lock 20 10 S -> granted; A share r deny r -> granted; "
         "B lock 50 10 X -> granted; server restarts");
    lock_fixture_forget_events(the_core);
    struct core_call call = next_call();
    assert_called(&call, A);
    struct core_call other = next_call();
    told(other);
    assert_false(is_marked(A));
    in_vain(call);
    assert_true(is_marked(A));
    assert_false(is_marked(B));
    assert_true(lock_fixture_event(the_core, EVENT_CLIENT_UNREACHED, &event));
    assert_int_equal(event.name_len, 1);
    assert_memory_equal(event.name, "a", 1);
    assert_int_equal(event.value, 3);
    struct core_status status = fixture_status(the_core);
    assert_int_equal(status.reboots.crashes_detected, 1);
    assert_int_equal(status.missed, 1);           /* of two with something to reclaim */
    assert_int_equal(status.reboots.cleanups, 0); /* nothing is freed yet */
    assert_int_equal(status.reboots.locks_cleaned, 0);
    assert_true(status.grace.is_on); /* D5 (2) */
    assert_int_equal(status.grace.remaining_ns, 85 * SECOND);
    assert_int_equal(status.locks, 3);
    assert_int_equal(lock(A, 0, 10, X | RECLAIM), LOCK_GRANTED); /* D5 (1) */
    assert_false(is_marked(A));                                  /* D5 (6) */
    assert_int_equal(fixture_status(the_core).missed, 0);
}

TEST(test_notify_clients__nobody_misses_a_client_whose_time_is_over)
{
    tell("A lock 0 10 X -> granted; server restarts");
    in_vain(call_to(A));
    assert_int_equal(fixture_status(the_core).missed, 1);
    tell("90 s pass; grace is over");
    assert_true(is_marked(A));
    assert_int_equal(fixture_status(the_core).missed, 0);
}

TEST(test_notify_clients__a_later_answer_takes_the_mark_away)
{
    tell("A lock 0 10 X -> granted; server restarts");
    in_vain(call_to(A));
    assert_true(is_marked(A));
    in_vain(wait_for_call());
    assert_int_equal(fixture_status(the_core).reboots.crashes_detected, 1); /* once */
    done_with(wait_for_call(), false, 1);
    assert_false(is_marked(A));
    assert_true(is_owed(A));
}

/* The mark outlives a restart, and the next round judges anew. */
TEST(test_notify_clients__a_mark_is_durable)
{
    tell("A lock 0 10 X -> granted; server restarts");
    in_vain(call_to(A));
    restart();
    assert_true(is_marked(A));
    assert_int_equal(fixture_status(the_core).reboots.crashes_detected, 0);
    told(call_to(A));
    assert_false(is_marked(A));
}

TEST(test_notify_clients__hold_marks_nobody)
{
    limits.hold_unreachable = true;
    locker_new(&limits);
    tell("A lock 0 10 X -> granted; server restarts");
    in_vain(call_to(A));
    assert_false(is_marked(A));
    assert_int_equal(fixture_status(the_core).reboots.crashes_detected, 0);
    assert_int_equal(fixture_status(the_core).reboots.locks_cleaned, 0);
    tell("100 s pass; grace is over; B test 0 10 X -> denied"); /* R-GRACE-5 */
}

/* Judged per address: when the last of its targets has ended in vain, and not before. */
TEST(test_notify_clients__judged_by_address)
{
    tell("A lock 0 10 X -> granted; N lock 20 10 X -> granted");
    monitor(A.address);
    restart();
    struct core_call calls[3];
    for (uint32_t i = 0; i < 3; i++)
        calls[i] = next_call();
    assert_true(nobody_called());
    for (uint32_t i = 0; i < 3; i++) {
        assert_false(is_marked(A));
        assert_false(is_marked(NEIGHBOUR));
        done_with(calls[i], false, 0);
    }
    assert_true(is_marked(A));
    assert_true(is_marked(NEIGHBOUR));
    assert_int_equal(fixture_status(the_core).reboots.crashes_detected, 2);
    assert_int_equal(fixture_status(the_core).reboots.cleanups, 0);
}

/* Whatever of them answers, or calls, says that the host is there; then nobody is marked. */
TEST(test_notify_clients__one_sign_of_life_is_enough)
{
    for (int sign = 0; sign < 5; sign++) {
        locker_new(&limits);
        tell("A lock 0 10 X -> granted; N lock 20 10 X -> granted");
        monitor(A.address);
        if (sign == 0) {
            restart_unready();
            assert_int_equal(lock(NEIGHBOUR, 20, 10, X | RECLAIM), LOCK_GRANTED);
            fixture_ready(the_core);
        } else {
            restart();
        }
        struct core_call calls[3];
        for (uint32_t i = 0; i < 3; i++)
            calls[i] = next_call();
        done_with(calls[0], sign == 1, sign == 1 ? 1 : 0);
        if (sign == 2)
            monitor(A.address);
        if (sign == 3)
            (void)fixture_unmon(the_core, A.address, "srv", "lockd");
        if (sign == 4)
            assert_int_equal(unlock(NEIGHBOUR, 500, 1), LOCK_GRANTED);
        done_with(calls[1], false, 0);
        done_with(calls[2], false, 0);
        assert_false(is_marked(A));
        assert_false(is_marked(NEIGHBOUR));
        assert_int_equal(fixture_status(the_core).reboots.crashes_detected, 0);
    }
}

/* A registrant alone is nobody whose locks could be given up. */
TEST(test_notify_clients__registrants_alone_are_not_judged)
{
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    monitor(B.address);
    restart();
    struct core_call first = next_call(), second = next_call();
    assert_int_equal(first.kind, CALL_STATUS);
    done_with(first, false, 0);
    told(second);
    assert_int_equal(fixture_status(the_core).reboots.crashes_detected, 0);
}

/* More clients behind one address than one step may write: all are marked, in pieces. */
TEST(test_notify_clients__many_behind_one_address)
{
    enum { COUNT = 90 };
    uint64_t ids[COUNT];
    struct locker who = {"10.9.0.1", NULL, 1};
    char names[COUNT][8];
    for (uint32_t i = 0; i < COUNT; i++) {
        (void)snprintf(names[i], sizeof names[i], "c%u", i);
        who.name = names[i];
        assert_int_equal(lock(who, 10 * (uint64_t)i, 5, X), LOCK_GRANTED);
    }
    restart();
    for (uint32_t i = 0; i < COUNT; i++)
        ids[i] = next_call().id;
    assert_true(nobody_called());
    for (uint32_t i = 0; i < COUNT; i++) {
        if (core_is_full(the_core))
            settle();
        fixture_call_done(the_core, ids[i], false, 0);
    }
    assert_true(fixture_status(the_core).reboots.crashes_detected < COUNT);
    assert_true(core_deadline_ns(the_core) <= fixture_now_ns() || core_is_full(the_core));
    settle();
    assert_int_equal(fixture_status(the_core).reboots.crashes_detected, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        who.name = names[i];
        assert_true(is_marked(who));
    }
}

/* One round, both kinds: the operator hears of it once. */
TEST(test_notify_clients__the_round_counts_both_kinds)
{
    struct event event;
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    monitor(B.address);
    restart();
    struct core_call first = next_call(), second = next_call();
    lock_fixture_forget_events(the_core);
    fixture_wait(SECOND);
    done_with(first, true, 1);
    done_with(second, false, 0);
    assert_true(lock_fixture_event(the_core, EVENT_ROUND_OVER, &event));
    assert_int_equal(event.value, 1000);
    assert_memory_equal(event.name, "1 of 2 reached, 1 failed", event.name_len);
    struct notify_counters counters = fixture_status(the_core).notify;
    assert_int_equal(counters.started, 2);
    assert_int_equal(counters.succeeded, 1);
    assert_int_equal(counters.failed, 1);
}

TEST_MAIN(setup, locker_tear_down, NULL, NULL)

/*
 * test_probe.c -- questions to status monitors: who is asked, how many at a time, and what becomes
 * of two questions about one client.
 *
 * What follows from an answer is test_reboot's; here it only shows which question it answered.
 */
#include "monitor.h"
#include "unit/test.h"

enum { CLIENTS = PROBE_MAX + 40 };

TEST_FIXTURE(setup)
{
    struct core_limits limits = fixture_limits;
    limits.clients_max = CLIENTS;
    locker_new(&limits);
}

static uint32_t slot_of(struct locker who)
{
    struct address address = fixture_address(who.address);
    return client_find(the_core, &address, bytes_of_text(who.name));
}

static bool begin(uint32_t client, enum probe_reason reason, uint32_t notified)
{
    struct probe_question question = {.reason = reason, .notified = notified};
    bool is_asked = probe_begin(the_core, client, &question);
    core_check(the_core);
    return is_asked;
}

/* That many clients, each at its own address and with a lock. Slots count from 0. */
static void make_clients(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        char address[32];
        (void)snprintf(address, sizeof address, "10.9.%u.%u", i / 200, i % 200 + 1);
        struct locker who = {address, "host", 1};
        lock_many(the_core, 3, who, 2 * (uint64_t)i, 1);
        if (i % 16 == 0)
            settle(); /* before the batch is full */
        assert_int_equal(slot_of(who), i);
    }
    settle();
}

static bool next(struct core_call *ret)
{
    do
        if (!fixture_next_call(the_core, ret))
            return false;
    while (ret->kind != CALL_STAT);
    return true;
}

TEST(test_probe__asks_the_recorded_address)
{
    assert_int_equal(lock(A, 0, 1, X), LOCK_GRANTED);
    struct core_call none;
    assert_false(fixture_next_call(the_core, &none)); /* calibrated */
    assert_int_equal(ask_deadline_ns(the_core), UINT64_MAX);
    assert_true(begin(slot_of(A), PROBE_OLDER, 1));
    assert_int_equal(core_deadline_ns(the_core), fixture_now_ns());
    struct core_call call = asked(A);
    assert_true(bytes_equal(call.mon_name, fixture_limits.server_name));
    struct address local = fixture_address("10.0.0.1");
    assert_true(address_equal(&call.local, &local));
    assert_int_equal(call.deadline_ns, fixture_now_ns() + fixture_limits.notify_timeout_ns);
    assert_int_equal(ask_deadline_ns(the_core), UINT64_MAX);
    says(call, 1);
    assert_int_equal(the_core->probes.table.count, 0);
}

TEST(test_probe__only_an_answer_counts)
{
    static const enum core_call_outcome outcomes[] = {CALL_REFUSED, CALL_UNDELIVERED, CALL_UNKNOWN};
    assert_int_equal(lock(A, 0, 1, X), LOCK_GRANTED);
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(begin(slot_of(A), PROBE_RESUME, 0));
        struct core_input input = {.kind = CORE_CALL_DONE,
                                   .now_ns = fixture_now_ns(),
                                   .call = asked(A).id,
                                   .outcome = outcomes[i],
                                   .state = 9}; /* from wherever */
        core_step(the_core, &input, NULL);
        settle();
        assert_true(has_locks(A));
    }
    assert_true(begin(slot_of(A), PROBE_RESUME, 0));
    says(asked(A), UINT32_MAX); /* "unspecified" */
    assert_true(has_locks(A));
    assert_true(begin(slot_of(A), PROBE_RESUME, 0));
    tell("A is asked and says 9; A has no locks");
}

TEST(test_probe__one_question_per_client)
{
    assert_int_equal(lock(A, 0, 1, X), LOCK_GRANTED);
    assert_true(begin(slot_of(A), PROBE_OLDER, 1));
    assert_true(begin(slot_of(A), PROBE_OLDER, 1));
    assert_true(begin(slot_of(A), PROBE_RESUME, 0));
    struct core_call call = asked(A);
    assert_true(begin(slot_of(A), PROBE_OLDER, 1));
    assert_true(begin(slot_of(A), PROBE_ELSEWHERE, 99));
    assert_true(nobody_asked());
    says(call, 1); /* the first question is the one that is answered */
    tell("A is known in state 1; nobody is asked");
}

TEST(test_probe__a_weightier_question_is_asked_anew)
{
    assert_int_equal(lock_in(7, A, 0, X), LOCK_GRANTED);
    assert_true(begin(slot_of(A), PROBE_ELSEWHERE, 9));
    struct core_call call = asked(A);
    assert_true(begin(slot_of(A), PROBE_OLDER, 3));
    assert_true(nobody_asked()); /* one at a time */
    says(call, 3);               /* it may be older than the notice */
    assert_int_equal(client_of(A)->stored.state_seen, 7);
    call = asked(A);
    assert_true(begin(slot_of(A), PROBE_OLDER, 5)); /* and once more */
    says(call, 3);
    tell("A is asked and says 5; A is known in state 5; nobody is asked");

    assert_true(begin(slot_of(A), PROBE_ELSEWHERE, 9));
    assert_true(begin(slot_of(A), PROBE_OLDER, 3)); /* before the first was called: only this */
    tell("A is asked and says 3; A is known in state 3; nobody is asked");
}

TEST(test_probe__names_are_given_back)
{
    assert_int_equal(lock(A, 0, 1, X), LOCK_GRANTED);
    uint32_t names = fixture_status(the_core).names;
    tell("A notifies 5 as another-name -> nothing; A notifies 7 as yet-another-name -> nothing");
    assert_int_equal(fixture_status(the_core).names, names + 1);
    says(asked(A), 3);
    assert_int_equal(fixture_status(the_core).names, names);
}

TEST(test_probe__others_cannot_use_all_the_room)
{
    make_clients(CLIENTS);
    uint32_t i = 0;
    while (begin(i, PROBE_ELSEWHERE, 9))
        i++;
    assert_int_equal(i, PROBE_MAX / 4);
    while (begin(i, PROBE_RESUME, 0)) /* ours have their own */
        i++;
    assert_int_equal(i, PROBE_MAX / 2);
    assert_false(begin(i, PROBE_CALIBRATE, 0));
    while (begin(i, PROBE_OLDER, 1))
        i++;
    assert_int_equal(i, PROBE_MAX);
    assert_false(begin(i, PROBE_VERIFY, 1));
    assert_true(begin(0, PROBE_VERIFY, 1)); /* it has its place already */
    struct core_call call;
    for (uint32_t k = 0; k < PROBE_MAX; k++) {
        assert_true(next(&call));
        if (k == 0)
            says(call, 0);
    }
    assert_true(begin(i, PROBE_VERIFY, 1));
}

/* R-SEC-4: under --verify-notify always nothing is believed unasked. */
TEST(test_probe__no_room_is_not_believed)
{
    struct core_limits limits = fixture_limits;
    limits.clients_max = CLIENTS;
    limits.verify_notices = true;
    locker_new(&limits);
    make_clients(CLIENTS - 1);
    assert_int_equal(lock(A, 999, 1, X), LOCK_GRANTED);
    for (uint32_t i = 0; i < PROBE_MAX; i++)
        assert_true(begin(i, PROBE_OLDER, 1));
    lock_fixture_forget_events(the_core);
    tell("A notifies 1 -> nothing; A notifies 5 -> nothing; A has locks");
    tell("E notifies 9 -> nothing"); /* and from elsewhere, too */
    assert_true(has_locks(A));
    assert_int_equal(events_of(EVENT_NOTICE_IGNORED), 3);
    struct core_call call;
    assert_true(next(&call));
    says(call, 0);
    assert_false(notify(A, "a", 5)); /* a repeat, when there is room */
    assert_true(has_locks(A));
    do
        assert_true(next(&call));
    while (call.to.bytes[1] == 9);
    says(call, 5);
    assert_false(has_locks(A));
}

/* That many clients behind one address, and one question about each; how many were asked. */
static uint32_t ask_one_address(uint32_t count, enum probe_reason reason)
{
    uint32_t asked = 0;
    for (uint32_t i = 0; i < count; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "evil%u", i);
        struct locker who = {"10.0.0.66", name, 1};
        if (slot_of(who) == SLOT_NONE)
            lock_many(the_core, 3, who, 10000 + 2 * (uint64_t)i, 1);
        asked += begin(slot_of(who), reason, 1);
        if (i % 16 == 0)
            settle();
    }
    settle();
    return asked;
}

/* A17: one host with very many names keeps nobody else from being asked. */
TEST(test_probe__an_address_has_a_share)
{
    assert_int_equal(lock(A, 0, 1, X), LOCK_GRANTED);
    assert_int_equal(ask_one_address(200, PROBE_OLDER), PROBE_SHARE);
    assert_int_equal(ask_one_address(200, PROBE_VERIFY), PROBE_SHARE); /* the same ones */
    assert_true(begin(slot_of(A), PROBE_VERIFY, 5));
    assert_int_equal(the_core->probes.table.count, PROBE_SHARE + 1);
    /* What was asked of our own accord, or for strangers, is no way around it. */
    assert_int_equal(ask_one_address(PROBE_SHARE + 20, PROBE_ELSEWHERE), PROBE_SHARE + 20);
    assert_int_equal(the_core->probes.table.count, PROBE_SHARE + 21);
    assert_int_equal(ask_one_address(PROBE_SHARE + 20, PROBE_OLDER), PROBE_SHARE);
    struct core_call call;
    uint32_t answered = 0;
    while (next(&call)) {
        says(call, 0);
        answered++;
    }
    assert_int_equal(answered, PROBE_SHARE + 21);
    assert_int_equal(ask_one_address(200, PROBE_OLDER), PROBE_SHARE);
}

/* The same of calibration: others do not wait behind one address. */
TEST(test_probe__calibration_has_a_share)
{
    are_calibrated = false;
    assert_int_equal(ask_one_address(100, PROBE_ELSEWHERE), PROBE_MAX / 4);
    struct core_call call;
    while (next(&call))
        says(call, 0);
    assert_int_equal(lock(A, 0, 1, X), LOCK_GRANTED);
    struct address evil = fixture_address("10.0.0.66");
    uint32_t count = 0;
    for (uint32_t i = 0; i < 200; i++) { /* two seconds; nobody answers */
        fixture_wait(FIXTURE_SECOND / 100);
        if (!next(&call))
            continue;
        if (!address_equal(&call.to, &evil))
            break;
        count++;
    }
    assert_int_equal(count, PROBE_SHARE);
    assert_false(address_equal(&call.to, &evil)); /* A's turn */
}

/* A3: a stranger's notice while we calibrate is looked into, or at least logged, as any other. */
TEST(test_probe__a_notice_while_we_calibrate)
{
    are_calibrated = false;
    assert_int_equal(lock(A, 0, 1, X), LOCK_GRANTED);
    struct core_call call = asked(A);
    lock_fixture_forget_events(the_core);
    assert_false(notify(ELSEWHERE, "a", 9));
    says(call, 3); /* may be older than the notice */
    says(asked(A), 3);
    assert_int_equal(events_of(EVENT_NOTICE_UNCONFIRMED), 1);
    assert_true(client_is_calibrated(client_of(A)));
    assert_true(has_locks(A));
}

TEST(test_probe__who_is_forgotten_is_not_asked)
{
    assert_int_equal(lock(A, 0, 1, X), LOCK_GRANTED);
    assert_true(begin(slot_of(A), PROBE_OLDER, 1));
    struct core_call call = asked(A);
    assert_int_equal(lock(B, 2, 1, X), LOCK_GRANTED);
    assert_true(begin(slot_of(B), PROBE_OLDER, 1));
    tell("A unlock 0 1 -> granted; B unlock 2 1 -> granted; 601 s pass; there are 0 clients");
    assert_true(nobody_asked());
    says(call, 1); /* about nobody */
    assert_int_equal(the_core->probes.table.count, 0);
}

TEST(test_probe__after_a_resume_all_are_asked_at_their_pace)
{
    make_clients(CLIENTS);
    for (uint32_t i = 0; i < 10; i++) { /* those with nothing are not asked */
        struct request request = locker_request(REQUEST_NLM_UNLOCK, A, 2 * i, 1, 0);
        char address[32];
        (void)snprintf(address, sizeof address, "10.9.0.%u", i + 1);
        struct locker who = {address, "host", 1};
        request.lock.caller_name = bytes_of_text(who.name);
        (void)locker_step(who, &request);
    }
    probe_begin_all(the_core);
    uint64_t started_ns = fixture_now_ns();
    struct core_call calls[CLIENTS];
    uint32_t count = 0;
    for (; count < PROBE_MAX / 4; count++) {
        assert_true(next(&calls[count]));
        assert_false(next(&calls[count + 1]));
        assert_true(ask_deadline_ns(the_core) > fixture_now_ns());
        fixture_wait(ask_deadline_ns(the_core) - fixture_now_ns());
    }
    assert_int_equal(fixture_now_ns() - started_ns, count * (FIXTURE_SECOND / 100));
    assert_false(next(&calls[count])); /* our room is used: it goes on when there is some */
    says(calls[0], 5);
    for (uint32_t i = 1; i < count; i++)
        says(calls[i], 0);
    uint32_t ended = count;
    while (ask_deadline_ns(the_core) != UINT64_MAX) {
        fixture_wait(ask_deadline_ns(the_core) - fixture_now_ns());
        if (next(&calls[count]))
            count++;
        for (; ended < count; ended++)
            says(calls[ended], 3);
    }
    assert_int_equal(count, CLIENTS - 10);
    assert_int_equal(fixture_status(the_core).reboots.crashes_detected, 1); /* the first */
    assert_int_equal(client_at(the_core, 10)->life.lock_count, 0);
    assert_int_equal(fixture_status(the_core).locks, CLIENTS - 11);
}

/* R-SEC-4: asked once when a client tells a state, at a pace, and not again for every lock. */
TEST(test_probe__a_new_client_is_asked_once)
{
    struct core_call call;
    are_calibrated = false;
    assert_int_equal(lock(A, 0, 1, X), LOCK_GRANTED);
    call = asked(A);
    assert_int_equal(lock(A, 2, 1, X), LOCK_GRANTED);
    assert_false(next(&call)); /* one at a time */
    says(call, 0);             /* silent */
    for (int minute = 0; minute < 59; minute++) {
        fixture_wait(60 * FIXTURE_SECOND);
        assert_int_equal(lock(A, 4, 1, X), LOCK_GRANTED);
        assert_false(next(&call));
    }
    fixture_wait(60 * FIXTURE_SECOND);
    tell("A lock 4 1 X -> granted; A is asked and says 3");
    assert_true(client_is_calibrated(client_of(A)));
    fixture_wait(7200 * FIXTURE_SECOND);
    assert_int_equal(lock(A, 6, 1, X), LOCK_GRANTED);
    assert_false(next(&call));
    restart(); /* that is stored */
    assert_true(client_is_calibrated(client_of(A)));

    assert_int_equal(lock_in(5, A, 0, X), LOCK_GRACE); /* a new state must be said anew */
    assert_false(client_is_calibrated(client_of(A)));
    settle();
    tell("A lock 0 1 X state 5 -> granted; A is asked and says 7"); /* not yet, or never */
    assert_false(client_is_calibrated(client_of(A)));
    assert_true(has_locks(A));

    assert_int_equal(lock_in(0, B, 10, X), LOCK_GRANTED); /* it told none */
    assert_int_equal(lock(C, 12, 1, X | UNMONITORED), LOCK_GRANTED);
    assert_false(next(&call));
}

TEST(test_probe__calibration_has_a_pace)
{
    struct core_call call;
    are_calibrated = false;
    make_clients(CLIENTS);
    uint64_t started_ns = fixture_now_ns();
    uint32_t count = 0;
    while (ask_deadline_ns(the_core) != UINT64_MAX) {
        fixture_wait(ask_deadline_ns(the_core) - fixture_now_ns());
        if (!next(&call))
            continue;
        count++;
        says(call, 3);
    }
    assert_int_equal(count, CLIENTS);
    assert_true(fixture_now_ns() - started_ns >= (CLIENTS - 1) * (FIXTURE_SECOND / 100));
}

/* The answer of an address that it has left says nothing of it. */
TEST(test_probe__who_moved_was_not_asked)
{
    assert_int_equal(lock(A, 0, 1, X), LOCK_GRANTED);
    assert_true(begin(slot_of(A), PROBE_RESUME, 0));
    struct core_call call = asked(A);
    struct address to = fixture_address(ELSEWHERE.address), local = fixture_address("10.0.0.1");
    are_calibrated = false;
    assert_int_equal(client_move(the_core, slot_of(A), &to, &local), CLIENT_MOVED);
    assert_false(client_is_calibrated(client_of(ELSEWHERE)));
    says(call, 3);
    assert_false(client_is_calibrated(client_of(ELSEWHERE)));
}

TEST_MAIN(setup, locker_tear_down, NULL, NULL)

/*
 * test_reboot.c -- who is believed to have started anew, and what of his is freed then (R-ID-3,
 * R-SEC-3..5).
 *
 * A, B and C lock in state 3 unless a test says otherwise (lock_in). Notices and the answers of
 * status monitors are played by hand; whether something was freed is seen by others' locks.
 * core_check runs after every step, and restart() shows what was durable.
 */
#include "monitor.h"
#include "unit/test.h"

static void new_with(const struct core_limits *limits)
{
    locker_new(limits);
    fixture_wait(FIXTURE_SECOND); /* wall clock 0 would be "never" */
}

TEST_FIXTURE(setup)
{
    new_with(&fixture_limits);
}

/* ---- what a believed state says ---- */

TEST(test_reboot__a_newer_state_frees_and_serves)
{
    tell("A lock 0 1 X -> granted; A2 lock 1 1 S -> granted");
    tell("A lock 2 1 X unmonitored -> granted"); /* stamped like the others */
    tell("A share r deny w -> granted; B lock 0 1 X wait -> blocked; C lock 9 1 X -> granted; "
         "A2 lock 9 1 X wait -> blocked");
    lock_fixture_forget_events(the_core);
    tell("A notifies 5 as A -> news; A has no locks");
    assert_int_equal(client_of(A)->life.share_count + client_of(A)->life.waiter_count, 0);
    tell("C has locks; B is called and says granted; A is known in state 5");
    struct core_status status = fixture_status(the_core);
    assert_int_equal(status.reboots.crashes_detected, 1);
    assert_int_equal(status.reboots.cleanups, 1);
    assert_int_equal(status.reboots.locks_cleaned, 4);
    struct event event;
    assert_true(lock_fixture_event(the_core, EVENT_CLIENT_REBOOTED, &event));
    assert_int_equal(event.value, 5);
    assert_int_equal(event.name[0], 'a');
    assert_true(nobody_asked());
}

TEST(test_reboot__the_answer_waits_for_the_mark)
{
    assert_int_equal(lock(A, 0, 1, X), LOCK_GRANTED);
    uint64_t durable = fixture_status(the_core).durable_txn;
    assert_true(fixture_notify(the_core, A.address, "a", 5).after_txn > durable);
    settle();
    tell("A notifies 7 -> news; server restarts; A is known in state 7");
    assert_int_equal(client_of(A)->stored.rebooted_ns, fixture_now_ns());
    assert_false(has_locks(A));
    durable = fixture_status(the_core).durable_txn;
    assert_int_equal(fixture_notify(the_core, A.address, "a", 7).after_txn, durable);
}

TEST(test_reboot__within_one_turn)
{
    tell("A lock 0 1 X -> granted; B lock 0 1 X wait -> blocked");
    (void)fixture_notify(the_core, A.address, "a", 5);
    core_work(the_core, fixture_now_ns(), fixture_now_ns()); /* once */
    tell("A has no locks; B has locks");                     /* offered */
}

TEST(test_reboot__a_repeat_frees_nothing)
{
    tell("A lock 0 1 X -> granted; A notifies 5 -> news; A lock 0 1 X state 5 -> granted; "
         "A notifies 5 as a.example.org -> nothing; A notifies 5 -> nothing; A has locks");
    assert_int_equal(lock_fixture_store(the_core, NULL), 0);
    tell("there is 1 crash; server restarts; A notifies 5 -> nothing; A has locks");
}

TEST(test_reboot__an_equal_state_frees_what_is_older)
{
    struct core_limits limits = fixture_limits;
    limits.distrust_state = true; /* so that locks of two states stand side by side */
    new_with(&limits);
    tell("A lock 0 1 X state 3 -> granted; A share r deny w -> granted; "
         "A lock 2 1 X state 5 -> granted; A lock 4 1 X state 0 -> granted"); /* counts as 5 */
    tell("B lock 9 1 X -> granted; A2 lock 9 1 X wait state 3 -> blocked; A has 1 waiters; "
         "A notifies 5 -> news; A has 2 locks; A has 0 shares; A has 0 waiters; "
         "B lock 0 1 X -> granted; B lock 2 1 X -> denied; B lock 4 1 X -> denied");
    assert_int_equal(fixture_status(the_core).reboots.locks_cleaned, 2);
    assert_int_equal(lock_in(3, A, 6, X), LOCK_GRANTED); /* late; it is not older than what stays */
    tell("A notifies 5 -> nothing; A has 3 locks");
}

TEST(test_reboot__an_older_state_is_ignored_unless_confirmed)
{
    static const uint32_t answers[] = {0, 7, UINT32_MAX, 3};
    assert_int_equal(lock_in(7, A, 0, X), LOCK_GRANTED);
    for (uint32_t i = 0; i < 3; i++) {
        lock_fixture_forget_events(the_core);
        tell("A notifies 3 -> nothing; A has locks");
        says(asked(A), answers[i]);
        tell("A has locks; A is known in state 7");
        assert_int_equal(events_of(EVENT_NOTICE_UNCONFIRMED), 1);
    }
    tell("A notifies 3 -> nothing");
    tell("A2 lock 2 1 X state 3 -> granted"); /* of the new life, before the answer */
    says(asked(A), answers[3]);
    tell("A has 1 locks; B lock 0 1 X -> granted; B lock 2 1 X -> denied; A is known in state 3; "
         "A notifies 3 -> nothing; A has 1 locks; server restarts; A has 1 locks; "
         "A notifies 5 -> news"); /* and it counts on from there */
    assert_false(has_locks(A));
}

TEST(test_reboot__an_older_state_whose_host_has_a_newer_one)
{
    tell("A lock 0 1 X state 7 -> granted; A notifies 3 -> nothing; A is asked and says 9; "
         "A has no locks; A is known in state 9");
}

TEST(test_reboot__an_unknown_state_is_believed)
{
    tell("A lock 0 1 X state 0 -> granted; A is known in state 0; A notifies 4 -> news; "
         "A has no locks; A is known in state 4");
}

TEST(test_reboot__state_0_says_nothing)
{
    assert_int_equal(lock(A, 0, 1, X), LOCK_GRANTED);
    lock_fixture_forget_events(the_core);
    tell("A notifies 0 -> nothing; A has locks; nobody is asked");
    assert_int_equal(events_of(EVENT_NOTICE_IGNORED), 1);
}

TEST(test_reboot__states_are_numbers_in_a_circle)
{
    static const struct {
        uint32_t seen, notified;
        bool is_newer;
    } cases[] = {
        {3, 4, true}, /* even numbers too */
        {4, 6, true},
        {0xfffffffe, 1, true},
        {0xffffffff, 0x7ffffffe, true},
        {0x7fffffff, 0x80000001, true},
        {3, 0x80000002, true},
        {3, 0x80000003, false}, /* exactly the other side: in doubt */
        {1, 0xffffffff, false},
        {5, 4, false},
    };
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        new_with(&fixture_limits);
        assert_int_equal(lock_in(cases[i].seen, A, 0, X), LOCK_GRANTED);
        assert_int_equal(notify(A, "a", cases[i].notified), cases[i].is_newer);
        assert_int_equal(has_locks(A), !cases[i].is_newer);
    }
}

/* ---- whom a notice means ---- */

/* Names are compared whole; with and without a domain its status monitor must say so. */
TEST(test_reboot__names_with_and_without_their_domain)
{
    static const struct {
        const char *recorded, *notified;
        bool is_same, is_asked;
    } cases[] = {
        {"web3", "WEB3", true, false},
        {"web3.example.org", "Web3.example.org", true, false},
        {"web3", "Web3.example.org", false, true},
        {"web3.example.org", "web3", false, true},
        {"web3.example.org", "web3.example.com", false, true}, /* the only client: (b) */
        {"10", "10.0.0.2", false, true},
    };
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        new_with(&fixture_limits);
        struct locker who = {"10.0.0.2", cases[i].recorded, 1};
        assert_int_equal(lock(who, 0, 1, X), LOCK_GRANTED);
        assert_int_equal(notify(who, cases[i].notified, 5), cases[i].is_same);
        assert_int_equal(has_locks(who), !cases[i].is_same);
        if (!cases[i].is_asked) {
            assert_true(nobody_asked());
            continue;
        }
        says(asked(who), 7); /* another number: it is not meant */
        assert_true(has_locks(who));
        assert_false(notify(who, cases[i].notified, 5));
        says(asked(who), 5);
        assert_false(has_locks(who));
    }
}

/* web3.prod and web3.test behind one address: a short name is either's, hence nobody's. */
TEST(test_reboot__a_short_name_of_two)
{
    static const char *const names[][2] = {{"web3.prod", "web3.test"}, {"web3", "web3.test"}};
    for (uint32_t i = 0; i < 2; i++) {
        new_with(&fixture_limits);
        struct locker prod = {"10.0.0.2", names[i][0], 1}, other = {"10.0.0.2", names[i][1], 1};
        assert_int_equal(lock(prod, 0, 1, X), LOCK_GRANTED);
        assert_int_equal(lock(other, 2, 1, X), LOCK_GRANTED);
        lock_fixture_forget_events(the_core);
        assert_false(notify(prod, "web3", 5));
        assert_false(notify(prod, "web3.dev", 5)); /* of one that has no record */
        assert_int_equal(events_of(EVENT_NOTICE_AMBIGUOUS), 2);
        assert_true(nobody_asked());
        assert_true(has_locks(prod) && has_locks(other));
        assert_true(notify(other, "web3.test", 5)); /* the full name does the work */
        assert_true(has_locks(prod) && !has_locks(other));
    }
}

/* The other one need not have a record, or not any more. */
TEST(test_reboot__a_short_name_of_one_who_is_not_known)
{
    struct locker prod = {"10.0.0.2", "web3.prod", 1};
    assert_int_equal(lock(prod, 0, 1, X), LOCK_GRANTED);
    assert_false(notify(prod, "web3", 5)); /* from web3.test */
    says(asked(prod), 3);                  /* the status monitor of web3.prod: nothing happened */
    assert_true(has_locks(prod));
}

/* sm-notify sends the full name and the short one, with one state: there is nothing to say. */
TEST(test_reboot__all_names_of_one_host)
{
    struct locker who = {"10.0.0.2", "web3.example.org", 1};
    assert_int_equal(lock(who, 0, 1, X), LOCK_GRANTED);
    lock_fixture_forget_events(the_core);
    assert_true(notify(who, "web3.example.org", 5));
    assert_false(notify(who, "web3", 5));
    assert_false(notify(who, "10.0.0.2", 5)); /* the only client there: the same */
    assert_int_equal(events_of(EVENT_NOTICE_IGNORED), 0);
    tell("nobody is asked; N lock 2 1 X -> granted");
    assert_false(notify(who, "web3", 5));
    assert_int_equal(events_of(EVENT_NOTICE_IGNORED), 0);
    assert_false(notify(who, "web4", 5)); /* of nobody here */
    assert_int_equal(events_of(EVENT_NOTICE_IGNORED), 1);
}

/* However many others are behind its address, who has that very name is meant. */
TEST(test_reboot__a_short_name_among_very_many)
{
    enum { MANY = 1100 };
    struct core_limits limits = fixture_limits;
    limits.clients_max = limits.locks_max = 2 * MANY;
    new_with(&limits);
    struct locker who = {"10.0.0.2", "web3", 1}, with_domain = {"10.0.0.2", "web3.prod", 1};
    assert_int_equal(lock(who, 2 * MANY, 1, X), LOCK_GRANTED);
    for (uint32_t i = 0; i < MANY; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "pod%u", i);
        struct locker other = {"10.0.0.2", name, 1};
        lock_many(the_core, 3, other, 2 * (uint64_t)i, 1);
        if (i % 16 == 0)
            settle();
    }
    settle();
    assert_false(notify(who, "nobody", 5)); /* all that can be said of others */
    lock_fixture_forget_events(the_core);
    assert_true(notify(who, "web3", 5));
    assert_false(has_locks(who));
    assert_int_equal(events_of(EVENT_NOTICE_AMBIGUOUS), 0);
    assert_int_equal(lock(with_domain, 2 * MANY + 2, 1, X), LOCK_GRANTED);
    assert_int_equal(lock_in(5, who, 2 * MANY, X), LOCK_GRANTED);
    assert_false(notify(who, "web3", 7)); /* a second one that is found */
    assert_true(has_locks(who) && has_locks(with_domain));
    assert_int_equal(events_of(EVENT_NOTICE_AMBIGUOUS), 1);
}

/* A3: the box before a client answers for it, with a number of its own. */
TEST(test_reboot__an_uncalibrated_answer_says_nothing)
{
    struct core_limits limits = fixture_limits;
    for (int verifies = 0; verifies < 2; verifies++) {
        limits.verify_notices = verifies;
        new_with(&limits);
        are_calibrated = false;
        tell("A lock 0 1 X state 7 -> granted; A is asked and says 9"); /* when it first locks */
        assert_false(client_is_calibrated(client_of(A)));
        tell("E notifies 9 -> nothing; A is asked and says 9; A notifies 9 as other -> nothing; "
             "A is asked and says 9; A notifies 9 as a.example.org -> nothing; "
             "A is asked and says 9");
        tell("A notifies 3 -> nothing"); /* older, and the box has that very number */
        tell("A is asked and says 3; A has locks; A is known in state 7");
        assert_int_equal(notify(A, "a", 9),
                         !verifies); /* its own word counts, as if it were silent */
        if (verifies)
            says(asked(A), 3);
        assert_false(has_locks(A));
    }
}

/* A3: nor does it say that the client is there. */
TEST(test_reboot__an_uncalibrated_answer_reaches_nobody)
{
    struct probe_question question = {.reason = PROBE_RESUME};
    are_calibrated = false;
    assert_int_equal(lock(A, 0, 1, X), LOCK_GRANTED);
    restart_unready();
    uint64_t seen_ns = client_last_seen_ns(client_of(A));
    fixture_wait(FIXTURE_SECOND);
    assert_true(probe_begin(the_core, client_slot(the_core, client_of(A)), &question));
    says(asked(A), 7); /* of the box before it */
    assert_int_equal(client_last_seen_ns(client_of(A)), seen_ns);
    assert_int_equal(client_of(A)->recovery.reached_ns, 0);
    assert_true(probe_begin(the_core, client_slot(the_core, client_of(A)), &question));
    says(asked(A), 3); /* its own */
    assert_int_equal(client_last_seen_ns(client_of(A)), fixture_now_ns());
    assert_int_equal(client_of(A)->recovery.reached_ns, fixture_now_ns());
}

/* A19: of very many locks it is found out later whether any are of an earlier life. */
TEST(test_reboot__found_by_a_search)
{
    enum { MANY = CLIENT_DRAIN_MAX + 100 };
    struct core_limits limits = fixture_limits;
    struct address restarted, of_a = fixture_address(A.address);
    limits.locks_max = limits.locks_per_client_max = 2 * MANY;
    limits.batch_puts_max = 2 * MANY;
    limits.distrust_state = true; /* so that locks of two states stand side by side */
    for (uint32_t first_state = 3; first_state <= 5; first_state += 2) {
        new_with(&limits);
        assert_int_equal(lock_in(5, A, 0, X), LOCK_GRANTED);
        lock_many(the_core, first_state, A, 10, MANY);
        tell("A lock 2 1 X state 5 -> granted");
        (void)fixture_notify(the_core, A.address, "a", 5);
        assert_false(core_next_restarted(the_core, &restarted));
        core_work(the_core, fixture_now_ns(), fixture_now_ns());
        bool is_found = core_next_restarted(the_core, &restarted);
        assert_int_equal(is_found, first_state == 3);
        assert_true(!is_found || address_equal(&restarted, &of_a));
        core_work(the_core, fixture_now_ns(), fixture_now_ns());
        assert_false(core_next_restarted(the_core, &restarted)); /* once */
        settle();
        assert_int_equal(client_of(A)->life.lock_count, first_state == 3 ? 2 : MANY + 2);
    }
}

/* Exactly what the client has just told: that is calibration. */
TEST(test_reboot__an_older_lock_calibrates)
{
    are_calibrated = false;
    tell("A lock 0 1 X state 7 -> granted; A is asked and says 0; "
         "A2 lock 2 1 X state 3 -> granted; A is asked and says 9; A has 2 locks");
    fixture_wait(61 * FIXTURE_SECOND);
    tell("A2 lock 2 1 X state 3 -> granted; A is asked and says 3; A has 1 locks");
    assert_true(client_is_calibrated(client_of(A)));
}

/* A number that a status monitor says is nobody's own word. */
TEST(test_reboot__a_state_is_not_learned_from_an_answer)
{
    are_calibrated = false;
    assert_int_equal(lock_in(0, A, 0, X), LOCK_GRANTED);
    struct probe_question question = {.reason = PROBE_RESUME};
    assert_true(probe_begin(the_core, 0, &question));
    tell("A is asked and says 9; A is known in state 0");
    assert_false(client_is_calibrated(client_of(A)));
}

/* A17: whoever sends notices in its name uses up neither its own budget nor its room. */
TEST(test_reboot__a_stranger_uses_up_his_own_budget)
{
    assert_int_equal(lock_in(7, A, 0, X), LOCK_GRANTED);
    for (uint32_t i = 0; i < 40; i++) {
        (void)notify(ELSEWHERE, "a", 101 + 2 * i);
        if (i < 16)
            says(asked(A), 7);
        (void)notify(A, "other", 101 + 2 * i);
        if (i < 16)
            says(asked(A), 7);
    }
    tell("nobody is asked; A notifies 3 -> nothing"); /* its own: its counter began anew */
    tell("A is asked and says 3; A has no locks");
}

TEST(test_reboot__one_address_two_hosts)
{
    tell("A lock 0 1 X -> granted; N lock 2 1 X -> granted; A notifies 5 -> news; A has no locks; "
         "N has locks; A lock 0 1 X state 5 -> granted");
    lock_fixture_forget_events(the_core);
    assert_false(notify(A, "third", 99)); /* a third one that never locked: nobody is meant */
    tell("A has locks; N has locks; nobody is asked");
    assert_int_equal(events_of(EVENT_NOTICE_IGNORED), 1);
}

TEST(test_reboot__the_only_client_of_an_address)
{
    static const uint32_t others[] = {0, 3, 9};
    assert_int_equal(lock(A, 0, 1, X), LOCK_GRANTED);
    for (uint32_t i = 0; i < 3; i++) {
        lock_fixture_forget_events(the_core);
        tell("A notifies 7 as other -> nothing; A has locks");
        says(asked(A), others[i]);
        assert_true(has_locks(A));
        assert_int_equal(events_of(EVENT_NOTICE_UNCONFIRMED), 1);
    }
    assert_false(notify(A, "other", 3)); /* not newer: there is nothing to ask */
    tell("nobody is asked; A notifies 7 as other -> nothing; A is asked and says 7; "
         "A has no locks; A is known in state 7");
}

TEST(test_reboot__an_unknown_state_under_another_name)
{
    tell("A lock 0 1 X state 0 -> granted; A notifies 7 as other -> nothing; nobody is asked; "
         "A has locks");
}

TEST(test_reboot__from_another_address)
{
    tell("A lock 0 1 X -> granted; B lock 0 1 X wait -> blocked; E notifies 5 -> nothing; "
         "A has locks; A is asked and says 5; A has no locks; B is called and says granted");
}

TEST(test_reboot__a_spoofed_notice_changes_nothing)
{
    static const uint32_t answers[] = {3, 1, 0, UINT32_MAX};
    assert_int_equal(lock(A, 0, 1, X), LOCK_GRANTED);
    for (uint32_t i = 0; i < 4; i++) {
        lock_fixture_forget_events(the_core);
        tell("E notifies 1700000001 -> nothing");
        tell("E notifies 1700000003 -> nothing"); /* while the first is being asked */
        says(asked(A), answers[i]);
        tell("nobody is asked; A has locks");
        assert_int_equal(lock_fixture_store(the_core, NULL), 0);
        struct event event;
        assert_true(lock_fixture_event(the_core, EVENT_NOTICE_UNCONFIRMED, &event));
        struct address from = fixture_address(ELSEWHERE.address);
        assert_true(address_equal(&event.from, &from));
        assert_int_equal(events_of(EVENT_NOTICE_UNCONFIRMED), 0); /* once */
    }
    assert_false(notify(ELSEWHERE, "a", 3));
    assert_int_equal(events_of(EVENT_NOTICE_IGNORED), 1);
    assert_true(nobody_asked());
}

/* The host that answers behind an address need not be the client that is meant. */
TEST(test_reboot__an_answer_behind_a_shared_address)
{
    tell("A lock 0 1 X -> granted; N lock 2 1 X -> granted; E notifies 5 -> nothing; "
         "A is asked and says 5; A has locks; A notifies 1 -> nothing; A is asked and says 9; "
         "A has locks; A is known in state 3");
}

TEST(test_reboot__a_host_with_two_addresses)
{
    tell("A lock 0 1 X -> granted; E lock 2 1 X -> granted; A notifies 5 -> news; A has no locks; "
         "E has locks; E is asked and says 5; E has no locks; nobody is asked");

    assert_int_equal(lock_in(5, ELSEWHERE, 2, X), LOCK_GRANTED);
    lock_fixture_forget_events(the_core);
    assert_true(notify(A, "a", 7)); /* two hosts, after all */
    tell("E is asked and says 5; E has locks");
    assert_int_equal(events_of(EVENT_NOTICE_UNCONFIRMED), 0);
}

TEST(test_reboot__ipv4_inside_ipv6)
{
    struct locker mapped = {"::ffff:10.0.0.2", "a", 1};
    assert_int_equal(lock(mapped, 0, 1, X), LOCK_GRANTED);
    tell("A notifies 5 -> news; B lock 0 1 X -> granted");
}

TEST(test_reboot__always_verified)
{
    struct core_limits limits = fixture_limits;
    limits.verify_notices = true;
    static const struct {
        uint32_t says;
        bool is_freed;
        uint32_t seen;
    } cases[] = {
        {5, true, 5},          /* confirmed */
        {0, true, 5},          /* silent: its own word counts */
        {UINT32_MAX, true, 5}, /* "unspecified": the same */
        {7, true, 7},          /* it has started once more */
        {3, false, 3},         /* it has not */
        {1, false, 3},
    };
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        new_with(&limits);
        assert_int_equal(lock(A, 0, 1, X), LOCK_GRANTED);
        lock_fixture_forget_events(the_core);
        tell("A notifies 5 -> nothing; A has locks");
        says(asked(A), cases[i].says);
        assert_int_equal(has_locks(A), !cases[i].is_freed);
        assert_int_equal(client_of(A)->stored.state_seen, cases[i].seen);
        assert_int_equal(events_of(EVENT_NOTICE_UNCONFIRMED), cases[i].is_freed ? 0 : 1);
    }
    assert_false(notify(A, "a", 3));                                     /* a repeat */
    tell("A is asked and says 3; A has locks; A notifies 1 -> nothing"); /* older, and silent */
    tell("A is asked and says 0; A has locks; A notifies 1 -> nothing"); /* older, and confirmed */
    tell("A is asked and says 1; A has no locks");
}

/* D7: whom R-ID-3 believes may speak for its name to those who watch it. */
TEST(test_reboot__is_relayed_to_who_watches)
{
    struct core_call call;
    (void)fixture_mon(the_core, "10.0.0.9", "a", "watcher", 7);
    (void)fixture_mon(the_core, "10.0.0.9", "b", "watcher", 8);
    settle();
    assert_false(notify(A, "a", 5)); /* it is nobody yet */
    assert_false(fixture_next_call(the_core, &call));
    tell("A lock 0 1 X -> granted; A notifies 5 -> news");
    fixture_wait(FIXTURE_SECOND);
    assert_true(fixture_next_call(the_core, &call));
    assert_int_equal(call.kind, CALL_STATUS);
    assert_int_equal(call.priv.at[0], 7);
    assert_int_equal(call.status[call.status_count - 1].state, 5);

    tell("B lock 4 1 X -> granted; E notifies 5 as b -> nothing"); /* not before it is confirmed */
    struct core_call question = asked(B);
    assert_false(fixture_next_call(the_core, &call));
    says(question, 5);
    fixture_wait(FIXTURE_SECOND);
    assert_true(fixture_next_call(the_core, &call));
    assert_int_equal(call.priv.at[0], 8);
    assert_int_equal(call.status[call.status_count - 1].state, 5);
}

/* A8: whoever brings the news, it is the word of the host that was asked. */
TEST(test_reboot__news_from_elsewhere_are_its_own_word)
{
    struct address of_a = fixture_address(A.address), restarted;
    tell("A lock 0 1 X state 3 -> granted");
    (void)fixture_mon(the_core, "10.0.0.50", A.name, "watcher", 1);
    settle();
    assert_false(notify(ELSEWHERE, A.name, 9)); /* nobody is believed unasked */
    struct core_call call = asked(A);
    struct core_input input = {.kind = CORE_CALL_DONE,
                               .now_ns = fixture_now_ns(),
                               .wall_ns = fixture_now_ns(),
                               .call = call.id,
                               .outcome = CALL_ANSWERED,
                               .state = 5};
    core_step(the_core, &input, NULL);
    while (core_next_restarted(the_core, &restarted))
        assert_true(address_equal(&restarted, &of_a));
    const struct table *notices = &the_core->notices.table;
    uint32_t slot = table_next(notices, SLOT_NONE);
    assert_int_not_equal(slot, SLOT_NONE);
    const struct notice *notice = table_at(notices, slot);
    assert_int_equal(notice->state, 5);
    assert_true(address_equal(&notice->address, &of_a));
    settle();
}

TEST_MAIN(setup, locker_tear_down, NULL, NULL)

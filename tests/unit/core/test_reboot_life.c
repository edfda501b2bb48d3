/*
 * test_reboot_life.c -- requests of a client in its new life, and restarts of ours while the old
 * one is being cleared away (R-SEC-5, R-GRACE-3, P7).
 *
 * As in test_reboot.c: A, B and C lock in state 3 unless a test says otherwise (lock_in), and
 * core_check runs after every step but for those of many locks at once.
 */
#include "monitor.h"
#include "unit/test.h"

/* ---- requests ---- */

TEST(test_reboot_life__states_of_requests_may_be_distrusted)
{
    struct core_limits limits = fixture_limits;
    limits.distrust_state = true;
    locker_new(&limits);
    tell("A lock 0 1 X state 3 -> granted; A lock 2 1 X state 9 -> granted; "
         "A lock 4 1 X state 5 -> granted; A has 3 locks; nobody is asked");
}

TEST(test_reboot_life__an_older_lock_is_processed_and_asked_about)
{
    tell("A lock 0 1 X state 7 -> granted; A lock 2 1 X state 5 -> granted; A has 2 locks; "
         "A is asked and says 7");                                           /* it was late */
    tell("A has 2 locks; A lock 4 1 X state 5 -> granted; nobody is asked"); /* not again so soon */
    fixture_wait(60 * FIXTURE_SECOND);
    tell("A lock 4 1 X state 5 -> granted; A is asked and says 9"); /* a restart was missed */
    assert_false(has_locks(A));

    assert_int_equal(lock_in(9, A, 0, X), LOCK_GRANTED);
    fixture_wait(60 * FIXTURE_SECOND);
    tell("A2 lock 2 1 X state 1 -> granted; A is asked and says 1"); /* its counter began anew */
    tell("A has 1 locks; B lock 0 1 X -> granted; A2 lock 2 1 X state 1 -> granted; "
         "nobody is asked");
}

TEST(test_reboot_life__a_newer_lock_that_frees_much_is_asked_again)
{
    locker_new(&lock_fixture_limits);
    enum { MUCH = 2 * CLIENT_DRAIN_MAX + 10 };
    uint32_t slot = lock_fixture_client(the_core, A.address, A.name);
    client_saw_state(the_core, slot, 3);
    for (uint32_t i = 0; i < MUCH; i++)
        lock_fixture_lock(the_core, slot, 9, "g", 2 * i);
    struct peer from = fixture_peer(A.address, 700);
    struct request request = locker_request(REQUEST_NLM_LOCK, A, 0, 1, X);
    request.lock.state = 5;
    for (uint32_t left = MUCH; left > CLIENT_DRAIN_MAX;) {
        left -= CLIENT_DRAIN_MAX;
        assert_int_equal(fixture_step(the_core, &from, &request).response.status, LOCK_GRACE);
        assert_int_equal(client_at(the_core, slot)->life.lock_count, left);
    }
    assert_int_equal(fixture_step(the_core, &from, &request).response.status, LOCK_GRANTED);
    assert_int_equal(client_at(the_core, slot)->life.lock_count, 1);
    assert_int_equal(fixture_status(the_core).reboots.locks_cleaned, MUCH);
    assert_int_equal(fixture_status(the_core).reboots.crashes_detected, 1);
}

/* ---- with restarts of ours ---- */

TEST(test_reboot_life__a_reclaim_in_another_state_updates_in_place)
{
    tell("A lock 0 1 X state 5 -> granted; A lock 2 1 X state 5 -> granted; server restarts; "
         "A lock 0 1 X reclaim state 7 -> granted; A has 2 locks");         /* nothing is freed */
    tell("A is known in state 7; A lock 2 1 X reclaim state 0 -> granted"); /* stamped with 7 too */
    tell("A notifies 7 -> nothing; A has 2 locks; A unlock 0 1 -> granted; "
         "B lock 0 1 X -> granted; there are 2 locks");
}

/* What is to be freed is found again by its stamps, whichever way it was marked. */
static void crash_while_freed(uint32_t old_state, uint32_t new_state, bool has_new)
{
    enum { OLD = 2500, NEW = 100 };
    struct core_limits limits = lock_fixture_limits;
    limits.distrust_state = true; /* so that locks of two lives stand side by side */
    limits.grace_ns = 90 * FIXTURE_SECOND;
    locker_new(&limits);
    lock_many(the_core, old_state, A, 0, OLD);
    if (has_new)
        lock_many(the_core, new_state, A, 2 * OLD, NEW);
    tell("B share r deny - -> granted");
    (void)fixture_notify(the_core, A.address, "a", new_state);
    if (new_state < old_state)
        client_recount(the_core, 0, new_state); /* as if it had been asked and had confirmed it */
    core_work(the_core, fixture_now_ns(), fixture_now_ns());
    (void)lock_fixture_store(the_core, NULL);
    uint32_t left = client_of(A)->life.lock_count, stay = has_new ? NEW : 0;
    assert_true(left > stay && left < OLD + stay);
    for (uint32_t i = 0; i < 2; i++) {
        restart();
        assert_int_equal(client_of(A)->life.lock_count, stay);
        assert_int_equal(client_of(A)->stored.state_seen, new_state);
    }
}

TEST(test_reboot_life__a_crash_while_it_is_freed)
{
    crash_while_freed(3, 5, false); /* by its incarnation */
    crash_while_freed(3, 5, true);  /* by older states */
    crash_while_freed(57, 1, true); /* by other states: its counter began anew */
}

/* ---- very many ---- */

TEST(test_reboot_life__a_hundred_thousand_locks_delay_nobody)
{
    enum { MANY = 100000 };
    struct core_limits limits = fixture_limits;
    limits.locks_max = limits.locks_per_client_max = MANY + 1000;
    limits.bytes_max = 64 * 1024 * 1024;
    limits.batch_puts_max = 10000;
    fixture_reset();
    struct core *core = fixture_new(&limits);
    lock_many(core, 3, A, 0, MANY);
    struct address restarted;
    (void)fixture_notify(core, A.address, "a", 5);
    assert_true(core_next_restarted(core, &restarted));
    uint32_t turns = 0;
    for (; fixture_status(core).locks > turns; turns++) {
        uint32_t before = fixture_status(core).locks;
        core_work(core, fixture_now_ns(), fixture_now_ns());
        assert_int_equal(before - fixture_status(core).locks, CLIENT_DRAIN_MAX);
        lock_many(core, 3, B, 2 * MANY + 2 * turns, 1); /* granted at once */
    }
    assert_int_equal(turns, MANY / CLIENT_DRAIN_MAX);
    core_work(core, fixture_now_ns(), fixture_now_ns());
    core_check(core);
    assert_int_equal(fixture_status(core).reboots.locks_cleaned, MANY);
    assert_int_equal(fixture_status(core).reboots.cleanups, 1);
    core_free(core);
}

/* FREE_ALL says the new state; without it the first LOCK would look like one more reboot. */
TEST(test_reboot_life__free_all_tells_the_state)
{
    assert_int_equal(lock_in(3, A, 0, X), LOCK_GRANTED);
    struct request request = {.kind = REQUEST_NLM_FREE_ALL, .mon_name = bytes_of_text("a")};
    request.state = 5;
    (void)locker_step(A, &request);
    tell("A is known in state 5; A share r deny r -> granted"); /* it carries no state */
    tell("A lock 2 1 X state 5 -> granted; A has 1 shares");
    request.state = 3; /* an older one changes nothing but what FREE_ALL frees */
    (void)locker_step(A, &request);
    tell("A is known in state 5; A has 0 locks");
}

/* D5 (6): any call of its own shows that a client is there. */
TEST(test_reboot_life__every_call_reaches)
{
    for (int how = 0; how < 4; how++) {
        locker_new(&fixture_limits);
        tell("A lock 0 1 X state 3 -> granted; server restarts");
        assert_int_equal(client_of(A)->recovery.reached_ns, 0);
        struct request request = {.kind = REQUEST_NLM_FREE_ALL, .mon_name = bytes_of_text("a")};
        switch (how) {
        case 0:
            assert_int_equal(share(A, 1, 1, 0), LOCK_GRACE);
            break;
        case 1:
            unshare_file(A);
            break;
        case 2:
            (void)locker_step(A, &request);
            break;
        default:
            assert_int_equal(test(A, 50, 1, X), LOCK_GRACE);
        }
        assert_int_not_equal(client_of(A)->recovery.reached_ns, 0);
    }
}

/* Not reached after our restart, and then it says that it started anew: that is one crash. */
TEST(test_reboot_life__a_crash_is_counted_once)
{
    for (int how = 0; how < 2; how++) {
        locker_new(&fixture_limits);
        tell("A lock 0 1 X state 3 -> granted; A lock 2 1 X state 3 -> granted; server restarts");
        struct core_call call;
        settle();
        assert_true(fixture_next_call(the_core, &call));
        assert_int_equal(call.kind, CALL_NOTIFY);
        fixture_wait(5 * FIXTURE_SECOND);
        fixture_call_done(the_core, call.id, false, 0);
        settle();
        assert_int_equal(fixture_status(the_core).reboots.crashes_detected, 1);
        assert_int_equal(fixture_status(the_core).reboots.locks_cleaned, 0); /* nothing yet */
        assert_int_equal(fixture_status(the_core).reboots.cleanups, 0);
        if (how == 0)
            assert_true(notify(A, "a", 5));
        else
            assert_int_equal(lock_in(5, A, 4, X), LOCK_GRACE);
        settle();
        tell("A has 0 locks; there is 1 crash");
        assert_int_equal(fixture_status(the_core).reboots.cleanups, 1);
        assert_int_equal(fixture_status(the_core).reboots.locks_cleaned, 2);
        tell("A lock 4 1 X state 5 -> granted");
        tell("A notifies 7 -> news"); /* it lived, and has rebooted once more */
        settle();
        assert_int_equal(fixture_status(the_core).reboots.crashes_detected, 2);
        assert_int_equal(fixture_status(the_core).reboots.locks_cleaned, 3);
    }
}

/* What is freed is counted when it is: not when it is not there, but when grace is over. */
TEST(test_reboot_life__a_clean_up_is_counted_when_it_happens)
{
    for (int is_back = 0; is_back < 2; is_back++) {
        locker_new(&fixture_limits);
        tell("A lock 0 1 X state 3 -> granted; A lock 2 1 X state 3 -> granted; server restarts");
        struct core_call call;
        settle();
        assert_true(fixture_next_call(the_core, &call));
        fixture_wait(5 * FIXTURE_SECOND);
        fixture_call_done(the_core, call.id, false, 0);
        settle();
        assert_int_equal(fixture_status(the_core).reboots.crashes_detected, 1);
        if (is_back)
            assert_int_equal(lock(A, 0, 1, X | RECLAIM), LOCK_GRANTED);
        assert_int_equal(fixture_status(the_core).reboots.cleanups, 0);
        tell("200 s pass; 200 s pass");
        assert_int_equal(fixture_status(the_core).locks, is_back);
        assert_int_equal(fixture_status(the_core).reclaims.dropped, 2 - is_back);
        assert_int_equal(fixture_status(the_core).reboots.cleanups, !is_back);
        assert_int_equal(fixture_status(the_core).reboots.locks_cleaned, is_back ? 0 : 2);
    }
}

TEST_MAIN(locker_set_up, locker_tear_down, NULL, NULL)

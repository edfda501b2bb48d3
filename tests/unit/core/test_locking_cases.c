/*
 * test_locking_cases.c -- cases of locking that take more than one rule to get right.
 *
 * Offers beside what their owner holds, answers that leave a doubt, clients that are being freed,
 * names that are too long: told as in test_locking.c.
 */
#include "locker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static int setup(void **state)
{
    (void)state;
    (void)locker_new(&fixture_limits);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    locker_done();
    return 0;
}

static void test_locking_cases__locks_are_counted_by_share(void **state)
{
    (void)state;
    locker_done();
    static const struct file_share shares[] = {
        {{(const uint8_t *)"default", 7}, {NULL, 0}},
        {{(const uint8_t *)"mail", 4}, {(const uint8_t *)"f", 1}},
        {{(const uint8_t *)"web", 3}, {(const uint8_t *)"ff", 2}},
    };
    struct core_limits limits = fixture_limits;
    limits.shares = shares;
    limits.share_count = 3;
    (void)locker_new(&limits);
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED); /* file "f" */
    assert_int_equal(lock(B, 10, 10, X), LOCK_GRANTED);
    struct request request = locker_request(REQUEST_NLM_LOCK, A, 0, 1, X);
    request.lock.fh = bytes_of_text("ffx"); /* the longest prefix wins */
    assert_int_equal(locker_step(A, &request).status, LOCK_GRANTED);
    assert_int_equal(core_share_locks(the_core, 0), 0);
    assert_int_equal(core_share_locks(the_core, 1), 2);
    assert_int_equal(core_share_locks(the_core, 2), 1);
    free_all(A); /* on all shares */
    assert_int_equal(core_share_locks(the_core, 1), 1);
    assert_int_equal(core_share_locks(the_core, 2), 0);
}

static void test_locking_cases__a_name_too_long_to_be_kept_is_nobodys(void **state)
{
    (void)state;
    static uint8_t name[1025];
    memset(name, 'a', sizeof name);
    struct request request = {.kind = REQUEST_NLM_FREE_ALL, .mon_name = {name, sizeof name}};
    (void)locker_step(A, &request); /* the protocol allows it; it must not end the server (P6) */
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
}

static void test_locking_cases__a_confirmed_wait_replaces_what_was_held(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 10, 10, X), LOCK_GRANTED);
    assert_int_equal(lock(A, 0, 20, S | BLOCK), LOCK_BLOCKED);
    assert_int_equal(unlock(B, 10, 10), LOCK_GRANTED);
    answered(granted(A), LOCK_GRANTED);
    assert_int_equal(test(C, 0, 20, S), LOCK_GRANTED); /* a read lock now (5.2) */
    assert_int_equal(test(C, 0, 1, X), LOCK_DENIED);
}

static void test_locking_cases__what_was_taken_since_the_offer_stays_exclusive(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 10, 10, X), LOCK_GRANTED);
    assert_int_equal(lock(A, 0, 20, S | BLOCK), LOCK_BLOCKED);
    assert_int_equal(unlock(B, 10, 10), LOCK_GRANTED);
    struct core_call call = granted(A);
    assert_int_equal(lock(A, 3, 1, X), LOCK_GRANTED); /* by another thread of it */
    answered(call, LOCK_GRANTED);
    assert_int_equal(test(C, 3, 1, S), LOCK_DENIED);
    assert_int_equal(test(C, 10, 10, S), LOCK_GRANTED);
}

static void test_locking_cases__a_doubt_weakens_nothing(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 10, 10, X), LOCK_GRANTED);
    assert_int_equal(lock(A, 0, 20, S | BLOCK), LOCK_BLOCKED);
    assert_int_equal(unlock(B, 10, 10), LOCK_GRANTED);
    failed(granted(A), CALL_UNKNOWN);
    fixture_wait(FIXTURE_SECOND);
    failed(granted(A), CALL_UNKNOWN);
    fixture_wait(2 * FIXTURE_SECOND);
    answered(granted(A), LOCK_DENIED);
    assert_int_equal(test(C, 0, 10, S), LOCK_DENIED); /* it may still rely on that */
    assert_int_equal(test(C, 10, 10, S), LOCK_GRANTED);
}

static void test_locking_cases__cancel_ends_what_is_in_doubt(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 0, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 0, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(unlock(A, 0, 0), LOCK_GRANTED);
    struct core_call call = granted(B);
    struct core_input input = {.kind = CORE_CALL_DONE,
                               .now_ns = fixture_now_ns(),
                               .call = call.id,
                               .outcome = CALL_ANSWERED,
                               .status = LOCK_DENIED,
                               .is_repeated = true};
    core_step(the_core, &input, NULL);
    settle();
    assert_int_equal(lock(C, 0, 0, X), LOCK_DENIED);
    assert_int_equal(cancel(B, 0, 0, X), LOCK_GRANTED); /* it gave up, and says so (R-DRC-3) */
    assert_int_equal(lock(C, 0, 0, X), LOCK_GRANTED);
}

static void test_locking_cases__a_poll_ends_the_doubt(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 0, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 0, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(unlock(A, 0, 0), LOCK_GRANTED);
    failed(granted(B), CALL_UNKNOWN);
    fixture_wait(FIXTURE_SECOND);
    failed(granted(B), CALL_UNKNOWN);
    fixture_wait(2 * FIXTURE_SECOND);
    answered(granted(B), LOCK_DENIED);
    assert_int_equal(lock(B, 0, 0, X | BLOCK), LOCK_GRANTED); /* it was told: it relies on it */
    assert_int_equal(cancel(B, 0, 0, X), LOCK_DENIED);
    assert_int_equal(test(C, 0, 0, S), LOCK_DENIED);
}

static void test_locking_cases__who_was_passed_over_must_ask_itself(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 0, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 0, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(unlock(A, 0, 0), LOCK_GRANTED);
    struct core_call call = granted(B);
    fixture_wait(5 * FIXTURE_SECOND);
    failed(call, CALL_UNDELIVERED);
    for (int i = 0; i < 11; i++) {
        fixture_wait(30 * FIXTURE_SECOND);
        (void)test(B, 50, 1, X); /* other calls do not bring it back (D13) */
    }
    assert_int_equal(fixture_status(the_core).waiters, 0);
}

static void test_locking_cases__an_early_result_teaches_the_procedure(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        int how = round == 0 ? MESSAGE : 0;
        assert_int_equal(lock(A, 0, 0, X), LOCK_GRANTED);
        assert_int_equal(lock(B, 0, 0, X | BLOCK | how), LOCK_BLOCKED);
        assert_int_equal(unlock(A, 0, 0), LOCK_GRANTED);
        struct core_call call = granted(B);
        assert_int_equal(call.kind, CALL_GRANTED_MSG); /* R-BLK-2: what worked last */
        granted_res(B, call.cookie, LOCK_GRANTED);     /* before its call has ended */
        assert_int_equal(fixture_status(the_core).locks, 1);
        assert_int_equal(unlock(B, 0, 0), LOCK_GRANTED);
        failed(call, CALL_ANSWERED);
    }
}

static void test_locking_cases__any_call_of_its_client_keeps_a_waiter(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 10, X | BLOCK), LOCK_BLOCKED);
    for (int i = 0; i < 20; i++) {
        fixture_wait(30 * FIXTURE_SECOND);
        assert_int_equal(test(B, 50, 1, X), LOCK_GRANTED);
    }
    assert_int_equal(fixture_status(the_core).waiters, 1);
    fixture_wait(300 * FIXTURE_SECOND);
    settle();
    assert_int_equal(fixture_status(the_core).waiters, 0);
}

static void test_locking_cases__a_refused_share_is_not_recorded(void **state)
{
    (void)state;
    struct request request = locker_request(REQUEST_NLM_SHARE, A, 0, 0, 0);
    request.lock.mode = request.lock.access = 3;
    assert_int_equal(locker_step(A, &request).status, LOCK_GRANTED);
    struct request other = locker_request(REQUEST_NLM_SHARE, B, 0, 0, 0);
    other.lock.access = 1;
    assert_int_equal(locker_step(B, &other).status, LOCK_DENIED);
    assert_int_equal(fixture_status(the_core).clients, 1);
}

static void test_locking_cases__what_is_to_be_freed_is_in_nobodys_way(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    struct peer from = fixture_peer(A.address, 700);
    struct request request = {.kind = REQUEST_NLM_FREE_ALL, .mon_name = bytes_of_text(A.name)};
    (void)fixture_step(the_core, &from, &request); /* and no turn has passed since */
    struct peer other = fixture_peer(B.address, 700);
    struct request wanted = locker_request(REQUEST_NLM_LOCK, B, 0, 10, X);
    assert_int_equal(fixture_step(the_core, &other, &wanted).response.status, LOCK_GRANTED);
    settle();
    assert_int_equal(fixture_status(the_core).locks, 1);
}

static void test_locking_cases__without_result_the_other_procedure_is_tried(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 0, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 0, X | BLOCK | MESSAGE), LOCK_BLOCKED);
    assert_int_equal(unlock(A, 0, 0), LOCK_GRANTED);
    answered(granted(B), LOCK_STATUS_NONE);
    fixture_wait(30 * FIXTURE_SECOND);
    answered(granted(B), LOCK_STATUS_NONE); /* a result may be lost once */
    fixture_wait(30 * FIXTURE_SECOND);
    assert_int_equal(granted(B).kind, CALL_GRANTED); /* R-BLK-2 */
}

static void test_locking_cases__a_circle_closed_by_a_grant_is_found_by_a_poll(void **state)
{
    (void)state;
    assert_int_equal(lock(C, 1, 1, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 2, 1, X), LOCK_GRANTED);
    assert_int_equal(lock(A, 1, 1, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(lock(A, 2, 1, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(lock(B, 1, 1, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(unlock(C, 1, 1), LOCK_GRANTED);
    answered(granted(A), LOCK_GRANTED); /* now A waits for B, and B for A */
    assert_int_equal(lock(B, 1, 1, X | BLOCK), LOCK_DEADLOCK);
    assert_int_equal(unlock(B, 2, 1), LOCK_GRANTED);
    answered(granted(A), LOCK_GRANTED);
}

#define CASE(name) cmocka_unit_test_setup_teardown(test_locking_cases__##name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(locks_are_counted_by_share),
        CASE(a_name_too_long_to_be_kept_is_nobodys),
        CASE(a_confirmed_wait_replaces_what_was_held),
        CASE(what_was_taken_since_the_offer_stays_exclusive),
        CASE(a_doubt_weakens_nothing),
        CASE(cancel_ends_what_is_in_doubt),
        CASE(a_poll_ends_the_doubt),
        CASE(who_was_passed_over_must_ask_itself),
        CASE(an_early_result_teaches_the_procedure),
        CASE(any_call_of_its_client_keeps_a_waiter),
        CASE(a_refused_share_is_not_recorded),
        CASE(what_is_to_be_freed_is_in_nobodys_way),
        CASE(without_result_the_other_procedure_is_tried),
        CASE(a_circle_closed_by_a_grant_is_found_by_a_poll),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

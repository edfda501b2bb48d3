/*
 * test_locking.c -- the lock procedures and the life of a waiter, step by step.
 *
 * Each test is a short story of clients A to D with one file; core_check runs after every step, so
 * the invariants of lock.c, waiter.c and grant.c are part of every test. The names say which rule
 * of docs/PROTOCOL.md is shown.
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

static void test_locking__shared_locks_coexist_exclusive_ones_do_not(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 10, S), LOCK_GRANTED);
    assert_int_equal(lock(B, 5, 10, S), LOCK_GRANTED);
    assert_int_equal(lock(C, 9, 1, X), LOCK_DENIED);
    assert_int_equal(lock(C, 15, 1, X), LOCK_GRANTED);
    assert_int_equal(lock(A, 0, 0, S), LOCK_DENIED);
    assert_int_equal(fixture_status(the_core).locks, 3);
    assert_int_equal(fixture_status(the_core).clients, 3);
}

static void test_locking__test_says_who_holds_it(void **state)
{
    (void)state;
    assert_int_equal(test(A, 0, 0, X), LOCK_GRANTED);
    assert_int_equal(lock(A, 10, 20, X), LOCK_GRANTED);
    assert_int_equal(test(A, 0, 0, X), LOCK_GRANTED);
    struct request request = locker_request(REQUEST_NLM_TEST, B, 29, 5, S);
    struct response response = locker_step(B, &request);
    assert_int_equal(response.status, LOCK_DENIED);
    assert_true(response.holder.exclusive);
    assert_int_equal(response.holder.svid, A.svid);
    assert_int_equal(response.holder.start, 10);
    assert_int_equal(response.holder.end, 29);
    assert_true(bytes_equal(response.holder.oh, bytes_of_text("a1")));
    /* Being asked is no reason to be remembered (D1). */
    assert_int_equal(fixture_status(the_core).clients, 1);
}

static void test_locking__being_denied_is_not_recorded(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 0, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 0, X), LOCK_DENIED);
    assert_int_equal(fixture_status(the_core).clients, 1);
}

static void test_locking__bad_handles_and_ranges(void **state)
{
    (void)state;
    struct request request = locker_request(REQUEST_NLM_LOCK, A, 0, 0, X);
    request.lock.is_bad_handle = true;
    assert_int_equal(locker_step(A, &request).status, LOCK_STALE_HANDLE);
    request.kind = REQUEST_NLM_TEST;
    assert_int_equal(locker_step(A, &request).status, LOCK_STALE_HANDLE);
    request.kind = REQUEST_NLM_UNLOCK; /* U48 */
    assert_int_equal(locker_step(A, &request).status, LOCK_GRANTED);
    request.kind = REQUEST_NLM_CANCEL;
    assert_int_equal(locker_step(A, &request).status, LOCK_GRANTED);
    request.kind = REQUEST_NLM_SHARE;
    assert_int_equal(locker_step(A, &request).status, LOCK_STALE_HANDLE);
    request = locker_request(REQUEST_NLM_LOCK, A, 0, 0, X);
    request.lock.is_too_big = true;
    assert_int_equal(locker_step(A, &request).status, LOCK_TOO_BIG);
    assert_int_equal(fixture_status(the_core).locks, 0);
}

static void test_locking__unlock_from_another_address_frees_nothing(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    assert_int_equal(unlock(ELSEWHERE, 0, 0), LOCK_GRANTED);
    free_all(ELSEWHERE);
    assert_int_equal(lock(B, 0, 10, X), LOCK_DENIED);
    assert_int_equal(unlock(A2, 0, 0), LOCK_GRANTED); /* another process of the same client */
    assert_int_equal(lock(B, 0, 10, X), LOCK_DENIED);
    assert_int_equal(unlock(A, 0, 0), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 10, X), LOCK_GRANTED);
}

static void test_locking__a_waiter_is_called_when_the_lock_is_free(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 3, 0, X | BLOCK), LOCK_BLOCKED);
    assert_true(nobody_called());
    assert_int_equal(unlock(A, 0, 10), LOCK_GRANTED);
    struct core_call call = granted(B);
    assert_int_equal(call.kind, CALL_GRANTED);
    assert_int_equal(call.proc, 5);
    assert_int_equal(call.vers, 4);
    assert_int_equal(call.offset, 3);
    assert_int_equal(call.len, 0); /* as sent (R-BLK-1) */
    assert_true(call.exclusive);
    assert_true(bytes_equal(call.oh, bytes_of_text("b1")));
    assert_int_equal(fixture_status(the_core).offers, 1);
    assert_int_equal(test(C, 5, 1, S), LOCK_DENIED); /* an offer stands in the way like a lock */
    answered(call, LOCK_GRANTED);
    assert_int_equal(fixture_status(the_core).offers, 0);
    assert_int_equal(fixture_status(the_core).waiters, 0);
    assert_int_equal(test(C, 5, 1, S), LOCK_DENIED);
}

static void test_locking__a_callback_waits_for_the_store(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 0, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 0, X | BLOCK), LOCK_BLOCKED);
    struct peer from = fixture_peer(A.address, 700);
    struct request request = locker_request(REQUEST_NLM_UNLOCK, A, 0, 0, 0);
    struct core_answer answer = fixture_step(the_core, &from, &request);
    core_work(the_core, fixture_now_ns(), 0);
    core_work(the_core, fixture_now_ns(), 0);
    struct core_call call;
    assert_false(fixture_next_call(the_core, &call));
    struct store_batch batch;
    assert_true(core_take_batch(the_core, &batch));
    assert_true(batch.txn >= answer.after_txn);
    assert_false(fixture_next_call(the_core, &call));
    fixture_stored(the_core, batch.txn, true);
    assert_true(fixture_next_call(the_core, &call));
}

static void test_locking__a_repeated_request_is_one_waiter(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 0, X), LOCK_GRANTED);
    for (int i = 0; i < 5; i++)
        assert_int_equal(lock(B, 0, 0, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(fixture_status(the_core).waiters, 1);
    assert_int_equal(lock(B, 0, 0, X), LOCK_DENIED); /* R-BLK-10: it keeps its waiter */
    assert_int_equal(fixture_status(the_core).waiters, 1);
}

static void test_locking__a_poll_answers_an_offer(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 0, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 0, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(unlock(A, 0, 0), LOCK_GRANTED);
    struct core_call call = granted(B);
    assert_int_equal(lock(B, 0, 0, X | BLOCK), LOCK_GRANTED);
    assert_int_equal(fixture_status(the_core).waiters, 0);
    answered(call, LOCK_DENIED); /* it no longer waits: late, and of no effect */
    assert_int_equal(test(C, 0, 0, S), LOCK_DENIED);
}

static void test_locking__denied_to_the_first_callback_passes_it_on(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 0, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 0, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(lock(C, 0, 0, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(unlock(A, 0, 0), LOCK_GRANTED);
    answered(granted(B), LOCK_DENIED);
    answered(granted(C), LOCK_GRANTED);
    assert_int_equal(fixture_status(the_core).grants.denied, 1);
    assert_int_equal(fixture_status(the_core).locks, 1);
}

static void test_locking__denied_to_a_repeat_leaves_the_lock(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 0, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 0, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(unlock(A, 0, 0), LOCK_GRANTED);
    failed(granted(B), CALL_UNKNOWN);
    assert_true(nobody_called());
    fixture_wait(FIXTURE_SECOND);
    struct core_call again = granted(B);
    assert_int_equal(again.proc, 10); /* R-BLK-2: the other procedure */
    failed(again, CALL_UNKNOWN);
    fixture_wait(2 * FIXTURE_SECOND);
    answered(granted(B), LOCK_DENIED); /* R-DRC-3 */
    assert_int_equal(fixture_status(the_core).locks, 1);
    assert_int_equal(test(C, 0, 0, S), LOCK_DENIED);
}

static void test_locking__silence_never_takes_an_offer_back(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 0, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 0, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(lock(C, 0, 0, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(unlock(A, 0, 0), LOCK_GRANTED);
    for (int i = 0; i < 100; i++) {
        failed(granted(B), CALL_UNKNOWN);
        fixture_wait(10 * FIXTURE_SECOND);
        assert_int_equal(lock(C, 0, 0, X | BLOCK), LOCK_BLOCKED);
    }
    assert_int_equal(fixture_status(the_core).offers, 1);
    assert_int_equal(unlock(B, 0, 0), LOCK_GRANTED);
    (void)granted(C);
}

static void test_locking__a_client_that_cannot_be_reached_is_passed_over(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 0, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 0, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(lock(C, 0, 0, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(unlock(A, 0, 0), LOCK_GRANTED);
    struct core_call call = granted(B);
    fixture_wait(5 * FIXTURE_SECOND);
    failed(call, CALL_UNDELIVERED); /* D13 */
    call = granted(C);
    answered(call, LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 0, X | BLOCK), LOCK_BLOCKED); /* it keeps its place */
    assert_int_equal(unlock(C, 0, 0), LOCK_GRANTED);
    (void)granted(B);
    assert_int_equal(fixture_status(the_core).grants.passed_over, 1);
}

static void test_locking__granted_msg_is_answered_by_its_result(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 0, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 0, X | BLOCK | MESSAGE), LOCK_BLOCKED);
    assert_int_equal(unlock(A, 0, 0), LOCK_GRANTED);
    struct core_call call = granted(B);
    assert_int_equal(call.kind, CALL_GRANTED_MSG);
    answered(call, LOCK_STATUS_NONE); /* received; the result comes by itself */
    assert_int_equal(fixture_status(the_core).offers, 1);
    granted_res(C, call.cookie, LOCK_DENIED); /* not from its address (P5) */
    assert_int_equal(fixture_status(the_core).offers, 1);
    granted_res(B, call.cookie + 1, LOCK_DENIED);
    assert_int_equal(fixture_status(the_core).offers, 1);
    granted_res(B, call.cookie, LOCK_GRANTED);
    assert_int_equal(fixture_status(the_core).offers, 0);
    assert_int_equal(fixture_status(the_core).locks, 1);
    granted_res(B, call.cookie, LOCK_DENIED); /* late: nothing is outstanding (R-NLM-4) */
    assert_int_equal(fixture_status(the_core).locks, 1);
}

static void test_locking__granted_msg_without_result_is_repeated(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 0, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 0, X | BLOCK | MESSAGE), LOCK_BLOCKED);
    assert_int_equal(unlock(A, 0, 0), LOCK_GRANTED);
    answered(granted(B), LOCK_STATUS_NONE);
    fixture_wait(29 * FIXTURE_SECOND);
    assert_true(nobody_called());
    fixture_wait(FIXTURE_SECOND);
    struct core_call call = granted(B);
    answered(call, LOCK_STATUS_NONE);
    granted_res(B, call.cookie, LOCK_DENIED); /* it may have taken the first one */
    assert_int_equal(fixture_status(the_core).locks, 1);
}

static void test_locking__a_client_in_grace_is_asked_again(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 0, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 0, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(unlock(A, 0, 0), LOCK_GRANTED);
    answered(granted(B), LOCK_GRACE);
    fixture_wait(10 * FIXTURE_SECOND);
    answered(granted(B), LOCK_DENIED); /* the answer before was no acceptance */
    assert_int_equal(fixture_status(the_core).locks, 0);
    assert_int_equal(fixture_status(the_core).offers, 0);
}

static void test_locking__cancel_says_whether_the_lock_is_there(void **state)
{
    (void)state;
    assert_int_equal(cancel(B, 0, 0, X), LOCK_GRANTED); /* nothing known */
    assert_int_equal(lock(A, 0, 0, X), LOCK_GRANTED);
    assert_int_equal(cancel(A, 0, 0, X), LOCK_DENIED); /* held: the client owns it */
    assert_int_equal(lock(B, 0, 0, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(cancel(B, 0, 0, S), LOCK_GRANTED); /* another mode: nothing of that kind */
    assert_int_equal(unlock(A, 0, 0), LOCK_GRANTED);
    struct core_call call = granted(B);
    answered(call, LOCK_GRANTED);
    assert_int_equal(cancel(B, 0, 0, X), LOCK_DENIED);
    assert_int_equal(fixture_status(the_core).locks, 1);
}

static void test_locking__cancel_of_an_offer_passes_it_on(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 0, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 0, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(lock(C, 0, 0, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(unlock(A, 0, 0), LOCK_GRANTED);
    failed(granted(B), CALL_UNKNOWN);
    assert_int_equal(cancel(B, 0, 0, X), LOCK_GRANTED); /* between two callbacks */
    answered(granted(C), LOCK_GRANTED);
}

static void test_locking__lock_again_after_cancel_waits_for_the_next(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 0, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 0, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(lock(C, 0, 0, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(unlock(A, 0, 0), LOCK_GRANTED);
    struct core_call call = granted(B);
    assert_int_equal(cancel(B, 0, 0, X), LOCK_GRANTED);
    answered(call, LOCK_GRANTED); /* of the request that is over */
    assert_int_equal(lock(B, 0, 0, X | BLOCK), LOCK_BLOCKED);
    answered(granted(C), LOCK_GRANTED);
    assert_int_equal(unlock(C, 0, 0), LOCK_GRANTED);
    answered(granted(B), LOCK_GRANTED);
    assert_int_equal(fixture_status(the_core).locks, 1);
}

static void test_locking__a_cancelled_waiter_keeps_its_place_for_a_while(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 0, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 0, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(lock(C, 0, 0, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(cancel(B, 0, 0, X), LOCK_GRANTED); /* macOS: CANCEL, then LOCK (R-BLK-12) */
    fixture_wait(4 * FIXTURE_SECOND);
    assert_int_equal(lock(B, 0, 0, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(unlock(A, 0, 0), LOCK_GRANTED);
    answered(granted(B), LOCK_GRANTED);
    assert_int_equal(cancel(C, 0, 0, X), LOCK_GRANTED);
    fixture_wait(5 * FIXTURE_SECOND);
    settle();
    assert_int_equal(fixture_status(the_core).waiters, 0);
}

static void test_locking__unlock_during_a_callback_ends_the_offer(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 0, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 10, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(lock(C, 0, 10, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(unlock(A, 0, 0), LOCK_GRANTED);
    struct core_call call = granted(B);
    assert_int_equal(unlock(B, 0, 10), LOCK_GRANTED); /* B took it and is done before we hear */
    answered(call, LOCK_GRANTED);
    answered(granted(C), LOCK_GRANTED);
    assert_int_equal(fixture_status(the_core).locks, 1);
}

static void test_locking__unlock_of_part_of_an_offer_leaves_the_rest(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 0, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 10, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(unlock(A, 0, 0), LOCK_GRANTED);
    struct core_call call = granted(B);
    assert_int_equal(unlock(B, 3, 2), LOCK_GRANTED);
    assert_int_equal(test(C, 3, 2, X), LOCK_DENIED); /* its callback may still arrive */
    answered(call, LOCK_GRANTED);
    assert_int_equal(test(C, 3, 2, X), LOCK_GRANTED);
    assert_int_equal(test(C, 2, 1, X), LOCK_DENIED);
}

static void test_locking__waiters_are_served_in_order(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 0, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 0, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(lock(C, 0, 0, S | BLOCK), LOCK_BLOCKED);
    assert_int_equal(lock(D, 0, 0, S | BLOCK), LOCK_BLOCKED);
    assert_int_equal(unlock(A, 0, 0), LOCK_GRANTED);
    answered(granted(B), LOCK_GRANTED);
    assert_true(nobody_called());
    assert_int_equal(unlock(B, 0, 0), LOCK_GRANTED);
    struct core_call first = granted(C); /* R-BLK-16: all that fit */
    struct core_call second = granted(D);
    answered(second, LOCK_GRANTED);
    answered(first, LOCK_GRANTED);
    assert_int_equal(fixture_status(the_core).locks, 2);
}

static void test_locking__a_new_blocking_request_does_not_overtake(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 0, S), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 0, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(lock(C, 0, 0, S | BLOCK), LOCK_BLOCKED); /* R-BLK-15 */
    assert_int_equal(lock(D, 0, 0, S), LOCK_GRANTED);         /* not blocking: POSIX's verdict */
    assert_int_equal(unlock(A, 0, 0), LOCK_GRANTED);
    assert_int_equal(unlock(D, 0, 0), LOCK_GRANTED);
    answered(granted(B), LOCK_GRANTED);
    assert_int_equal(unlock(B, 0, 0), LOCK_GRANTED);
    answered(granted(C), LOCK_GRANTED);
}

static void test_locking__an_owner_with_locks_waits_for_locks_only(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 1, S), LOCK_GRANTED);
    assert_int_equal(lock(C, 100, 1, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 1, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(lock(C, 0, 1, S | BLOCK), LOCK_GRANTED);
}

static void test_locking__the_first_lock_ends_waiting_behind_waiters(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 1, S), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 1, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(lock(C, 0, 1, S | BLOCK), LOCK_BLOCKED); /* behind B */
    assert_int_equal(lock(C, 100, 1, X), LOCK_GRANTED);
    answered(granted(C), LOCK_GRANTED);
}

static void test_locking__every_way_to_free_bytes_serves_waiters(void **state)
{
    (void)state;
    /* Downgrade. */
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 5, 1, S | BLOCK), LOCK_BLOCKED);
    assert_int_equal(lock(A, 0, 10, S), LOCK_GRANTED);
    answered(granted(B), LOCK_GRANTED);
    /* Upgrade waits for the other reader, and keeps what it has (5.2). */
    assert_int_equal(lock(A, 0, 10, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(test(C, 0, 1, X), LOCK_DENIED);
    assert_int_equal(unlock(B, 5, 1), LOCK_GRANTED);
    answered(granted(A), LOCK_GRANTED);
    /* A hole in the middle. */
    assert_int_equal(lock(C, 4, 1, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(unlock(A, 4, 1), LOCK_GRANTED);
    answered(granted(C), LOCK_GRANTED);
    /* FREE_ALL. */
    assert_int_equal(lock(D, 9, 1, X | BLOCK), LOCK_BLOCKED);
    free_all(A);
    answered(granted(D), LOCK_GRANTED);
    assert_int_equal(fixture_status(the_core).locks, 2);
}

static void test_locking__free_all_ends_the_clients_waiters_too(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 0, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 0, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(lock(C, 0, 0, X | BLOCK), LOCK_BLOCKED);
    free_all(B);
    assert_int_equal(unlock(A, 0, 0), LOCK_GRANTED);
    struct core_call call = granted(C);
    free_all(C); /* during its callback */
    answered(call, LOCK_GRANTED);
    assert_int_equal(fixture_status(the_core).locks + fixture_status(the_core).offers, 0);
    assert_int_equal(fixture_status(the_core).waiters, 0);
}

static void test_locking__the_other_mode_replaces_a_waiter(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 0, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 0, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(lock(B, 0, 0, S | BLOCK), LOCK_BLOCKED); /* R-BLK-11 */
    assert_int_equal(fixture_status(the_core).waiters, 1);
    assert_int_equal(unlock(A, 0, 0), LOCK_GRANTED);
    struct core_call call = granted(B);
    assert_false(call.exclusive);
    /* B has taken it, and wants more before we hear: it must not lose what it has. */
    assert_int_equal(lock(C, 0, 0, S), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 0, X), LOCK_DENIED);
    assert_int_equal(test(D, 0, 0, X), LOCK_DENIED);
    answered(call, LOCK_GRANTED);
    assert_int_equal(unlock(C, 0, 0), LOCK_GRANTED);
    assert_int_equal(test(D, 0, 0, X), LOCK_DENIED);
}

static void test_locking__a_circle_of_waits_is_refused(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 1, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 1, 1, X), LOCK_GRANTED);
    assert_int_equal(lock(C, 2, 1, X), LOCK_GRANTED);
    assert_int_equal(lock(A, 1, 1, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(lock(B, 2, 1, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(lock(C, 0, 1, X | BLOCK), LOCK_DEADLOCK);
    assert_int_equal(fixture_status(the_core).waiters, 2);
    assert_int_equal(lock(C, 0, 1, X), LOCK_DENIED);
    /* Two readers that both want to write. */
    assert_int_equal(lock(A, 50, 1, S), LOCK_GRANTED);
    assert_int_equal(lock(D, 50, 1, S), LOCK_GRANTED);
    assert_int_equal(lock(D, 50, 1, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(lock(A, 50, 1, X | BLOCK), LOCK_DEADLOCK);
}

static void test_locking__a_circle_through_any_of_several_readers_is_found(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 9, 1, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 1, S), LOCK_GRANTED);
    assert_int_equal(lock(C, 0, 1, S), LOCK_GRANTED);
    assert_int_equal(lock(D, 0, 1, S), LOCK_GRANTED);
    assert_int_equal(lock(A, 0, 1, X | BLOCK), LOCK_BLOCKED); /* waits for all three */
    assert_int_equal(lock(B, 9, 1, S | BLOCK), LOCK_DEADLOCK);
    assert_int_equal(lock(C, 9, 1, S | BLOCK), LOCK_DEADLOCK);
    assert_int_equal(lock(D, 9, 1, S | BLOCK), LOCK_DEADLOCK);
}

static void test_locking__a_silent_waiter_is_dropped_a_polling_one_is_not(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 0, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 0, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(lock(C, 0, 0, X | BLOCK), LOCK_BLOCKED);
    for (int i = 0; i < 10; i++) {
        fixture_wait(30 * FIXTURE_SECOND);
        assert_int_equal(lock(C, 0, 0, X | BLOCK), LOCK_BLOCKED);
    }
    settle();
    assert_int_equal(fixture_status(the_core).waiters, 1);
    assert_int_equal(unlock(A, 0, 0), LOCK_GRANTED);
    (void)granted(C);
}

static void test_locking__unmonitored_locks_do_not_wait(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 0, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 0, X | BLOCK | UNMONITORED), LOCK_DENIED);
    assert_int_equal(unlock(A, 0, 0), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 0, X | UNMONITORED), LOCK_GRANTED);
}

static void test_locking__a_reclaim_confirms_what_is_held(void **state)
{
    (void)state;
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    assert_int_equal(lock(A, 0, 10, X | RECLAIM | BLOCK), LOCK_GRANTED);
    assert_int_equal(lock(A, 2, 3, S | RECLAIM), LOCK_GRANTED);
    assert_int_equal(lock(A, 0, 11, X | RECLAIM), LOCK_GRACE);
    assert_int_equal(lock(B, 0, 1, X | RECLAIM | BLOCK), LOCK_GRACE);
}

static void test_locking__limits_refuse_new_locks_and_never_unlock(void **state)
{
    (void)state;
    locker_done();
    struct core_limits limits = fixture_limits;
    limits.locks_max = 4;
    limits.locks_per_client_max = 3;
    limits.waiters_max = 1;
    limits.clients_max = 2;
    (void)locker_new(&limits);
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(lock(A, 10 * i, 1, X), LOCK_GRANTED);
    assert_int_equal(lock(A, 30, 1, X), LOCK_NO_RESOURCES); /* per client */
    assert_int_equal(lock(A, 10, 1, X), LOCK_GRANTED);      /* what it has it can ask for again */
    assert_int_equal(lock(B, 100, 100, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 30, 1, X), LOCK_NO_RESOURCES); /* in total */
    assert_int_equal(lock(C, 500, 1, X), LOCK_NO_RESOURCES);
    assert_int_equal(lock(B, 0, 1, X | BLOCK), LOCK_BLOCKED);
    assert_int_equal(lock(B, 10, 1, X | BLOCK), LOCK_NO_RESOURCES); /* waiters */
    assert_int_equal(lock(C, 0, 1, X | BLOCK), LOCK_NO_RESOURCES);  /* clients */
    for (uint64_t i = 101; i < 199; i += 2)
        assert_int_equal(unlock(B, i, 1), LOCK_GRANTED);
    assert_int_equal(test(A, 101, 1, X), LOCK_GRANTED);
    assert_int_equal(test(A, 102, 1, X), LOCK_DENIED);
}

#define CASE(name) cmocka_unit_test_setup_teardown(test_locking__##name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(shared_locks_coexist_exclusive_ones_do_not),
        CASE(test_says_who_holds_it),
        CASE(being_denied_is_not_recorded),
        CASE(bad_handles_and_ranges),
        CASE(unlock_from_another_address_frees_nothing),
        CASE(a_waiter_is_called_when_the_lock_is_free),
        CASE(a_callback_waits_for_the_store),
        CASE(a_repeated_request_is_one_waiter),
        CASE(a_poll_answers_an_offer),
        CASE(denied_to_the_first_callback_passes_it_on),
        CASE(denied_to_a_repeat_leaves_the_lock),
        CASE(silence_never_takes_an_offer_back),
        CASE(a_client_that_cannot_be_reached_is_passed_over),
        CASE(granted_msg_is_answered_by_its_result),
        CASE(granted_msg_without_result_is_repeated),
        CASE(a_client_in_grace_is_asked_again),
        CASE(cancel_says_whether_the_lock_is_there),
        CASE(cancel_of_an_offer_passes_it_on),
        CASE(lock_again_after_cancel_waits_for_the_next),
        CASE(a_cancelled_waiter_keeps_its_place_for_a_while),
        CASE(unlock_during_a_callback_ends_the_offer),
        CASE(unlock_of_part_of_an_offer_leaves_the_rest),
        CASE(waiters_are_served_in_order),
        CASE(a_new_blocking_request_does_not_overtake),
        CASE(an_owner_with_locks_waits_for_locks_only),
        CASE(the_first_lock_ends_waiting_behind_waiters),
        CASE(every_way_to_free_bytes_serves_waiters),
        CASE(free_all_ends_the_clients_waiters_too),
        CASE(the_other_mode_replaces_a_waiter),
        CASE(a_circle_of_waits_is_refused),
        CASE(a_circle_through_any_of_several_readers_is_found),
        CASE(a_silent_waiter_is_dropped_a_polling_one_is_not),
        CASE(unmonitored_locks_do_not_wait),
        CASE(a_reclaim_confirms_what_is_held),
        CASE(limits_refuse_new_locks_and_never_unlock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

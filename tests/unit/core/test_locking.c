/*
 * test_locking.c -- what the stories of locking (tests/stories) cannot see: fields of callbacks,
 * cookies, the moments between two turns, counters.
 *
 * core_check runs after every step, so the invariants of lock.c, waiter.c and grant.c are part of
 * every test.
 */
#include "core/view.h"
#include "locker.h"
#include "unit/test.h"

TEST(test_locking__bad_handles_and_ranges)
{
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

TEST(test_locking__a_callback_is_the_request_again)
{
    tell("A lock 0 10 X -> granted; B lock 3 end X wait -> blocked; A unlock 0 10 -> granted");
    struct core_call call = granted(B);
    assert_int_equal(call.kind, CALL_GRANTED);
    assert_int_equal(call.version, 4);
    assert_int_equal(call.offset, 3);
    assert_int_equal(call.len, 0); /* as sent (R-BLK-1) */
    assert_true(call.exclusive);
    assert_true(bytes_equal(call.oh, bytes_of_text("b1")));
}

TEST(test_locking__a_callback_waits_for_the_store)
{
    tell("A lock 0 end X -> granted; B lock 0 end X wait -> blocked");
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

TEST(test_locking__after_silence_the_other_procedure_is_tried)
{
    tell("A lock 0 end X -> granted; B lock 0 end X wait -> blocked; A unlock 0 end -> granted");
    failed(granted(B), CALL_UNKNOWN);
    assert_true(nobody_called());
    fixture_wait(FIXTURE_SECOND);
    assert_int_equal(granted(B).kind, CALL_GRANTED_MSG); /* R-BLK-2 */
}

TEST(test_locking__what_becomes_of_callbacks_is_counted)
{
    tell("A lock 0 end X -> granted; B lock 0 end X wait -> blocked; "
         "C lock 0 end X wait -> blocked; D lock 0 end X wait -> blocked; "
         "A unlock 0 end -> granted");
    struct core_call call = granted(B);
    fixture_wait(5 * FIXTURE_SECOND);
    failed(call, CALL_UNDELIVERED); /* D13 */
    tell("C is called and says denied; D is called and says granted");
    assert_int_equal(fixture_status(the_core).grants.passed_over, 1);
    assert_int_equal(fixture_status(the_core).grants.denied, 1);
    assert_int_equal(fixture_status(the_core).locks, 1);
}

TEST(test_locking__granted_msg_is_answered_by_its_result)
{
    tell("A lock 0 end X -> granted; B lock 0 end X wait message -> blocked; "
         "A unlock 0 end -> granted");
    struct core_call call = granted(B);
    assert_int_equal(call.kind, CALL_GRANTED_MSG);
    answered(call, LOCK_STATUS_NONE); /* received; the result comes by itself */
    assert_int_equal(fixture_status(the_core).offers, 1);
    granted_res(C, call.cookie, LOCK_DENIED); /* not from its address (P5) */
    assert_int_equal(fixture_status(the_core).offers, 1);
    granted_res(B, call.cookie + 1, LOCK_DENIED);
    assert_int_equal(fixture_status(the_core).offers, 1);
    granted_res(B, call.cookie, LOCK_GRANTED);
    tell("there are 0 offers; there is 1 lock");
    granted_res(B, call.cookie, LOCK_DENIED); /* late: nothing is outstanding (R-NLM-4) */
    assert_int_equal(fixture_status(the_core).locks, 1);
}

TEST(test_locking__granted_msg_without_result_is_repeated)
{
    tell("A lock 0 end X -> granted; B lock 0 end X wait message -> blocked; "
         "A unlock 0 end -> granted");
    answered(granted(B), LOCK_STATUS_NONE);
    fixture_wait(29 * FIXTURE_SECOND);
    assert_true(nobody_called());
    fixture_wait(FIXTURE_SECOND);
    struct core_call call = granted(B);
    answered(call, LOCK_STATUS_NONE);
    granted_res(B, call.cookie, LOCK_DENIED); /* it may have taken the first one */
    assert_int_equal(fixture_status(the_core).locks, 1);
}

static uint32_t locks_in_share(uint32_t index)
{
    struct view_file_set share;
    assert_true(view_file_set(the_core, index, &share));
    return share.lock_count;
}

TEST(test_locking__locks_are_counted_by_share)
{
    locker_done();
    static const struct file_set shares[] = {
        {{(const uint8_t *)"default", 7}, {NULL, 0}},
        {{(const uint8_t *)"mail", 4}, {(const uint8_t *)"f", 1}},
        {{(const uint8_t *)"web", 3}, {(const uint8_t *)"ff", 2}},
    };
    struct core_limits limits = fixture_limits;
    limits.file_sets = shares;
    limits.file_set_count = 3;
    locker_new(&limits);
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED); /* file "f" */
    assert_int_equal(lock(B, 10, 10, X), LOCK_GRANTED);
    struct request request = locker_request(REQUEST_NLM_LOCK, A, 0, 1, X);
    request.lock.fh = bytes_of_text("ffx"); /* the longest prefix wins */
    assert_int_equal(locker_step(A, &request).status, LOCK_GRANTED);
    assert_int_equal(locks_in_share(0), 0);
    assert_int_equal(locks_in_share(1), 2);
    assert_int_equal(locks_in_share(2), 1);
    free_all(A); /* on all shares */
    assert_int_equal(locks_in_share(1), 1);
    assert_int_equal(locks_in_share(2), 0);
}

TEST(test_locking__a_name_too_long_to_be_kept_is_nobodys)
{
    static uint8_t name[1025];
    memset(name, 'a', sizeof name);
    struct request request = {.kind = REQUEST_NLM_FREE_ALL, .mon_name = {name, sizeof name}};
    (void)locker_step(A, &request); /* the protocol allows it; it must not end the server (P6) */
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
}

TEST(test_locking__cancel_ends_what_is_in_doubt)
{
    tell("A lock 0 end X -> granted; B lock 0 end X wait -> blocked; A unlock 0 end -> granted");
    struct core_call call = granted(B);
    struct core_input input = {.kind = CORE_CALL_DONE,
                               .now_ns = fixture_now_ns(),
                               .call = call.id,
                               .outcome = CALL_ANSWERED,
                               .status = LOCK_DENIED,
                               .is_repeated = true};
    core_step(the_core, &input, NULL);
    settle();
    tell("C lock 0 end X -> denied");
    tell("B cancel 0 end X -> granted"); /* it gave up, and says so (R-DRC-3) */
    assert_int_equal(lock(C, 0, 0, X), LOCK_GRANTED);
}

TEST(test_locking__an_early_result_teaches_the_procedure)
{
    for (int round = 0; round < 2; round++) {
        int how = round == 0 ? MESSAGE : 0;
        assert_int_equal(lock(A, 0, 0, X), LOCK_GRANTED);
        assert_int_equal(lock(B, 0, 0, X | BLOCK | how), LOCK_BLOCKED);
        assert_int_equal(unlock(A, 0, 0), LOCK_GRANTED);
        struct core_call call = granted(B);
        assert_int_equal(call.kind, CALL_GRANTED_MSG); /* R-BLK-2: what worked last */
        granted_res(B, call.cookie, LOCK_GRANTED);     /* before its call has ended */
        tell("there is 1 lock; B unlock 0 end -> granted");
        failed(call, CALL_ANSWERED);
    }
}

TEST(test_locking__what_is_to_be_freed_is_in_nobodys_way)
{
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

TEST(test_locking__without_result_the_other_procedure_is_tried)
{
    tell("A lock 0 end X -> granted; B lock 0 end X wait message -> blocked; "
         "A unlock 0 end -> granted");
    answered(granted(B), LOCK_STATUS_NONE);
    fixture_wait(30 * FIXTURE_SECOND);
    answered(granted(B), LOCK_STATUS_NONE); /* a result may be lost once */
    fixture_wait(30 * FIXTURE_SECOND);
    assert_int_equal(granted(B).kind, CALL_GRANTED); /* R-BLK-2 */
}

/* For rpc/permit.c, which does not judge reclaims of what is stored. */
TEST(test_locking__what_a_caller_has_is_known)
{
    tell("A lock 0 4 X -> granted; A lock 6 2 S -> granted; A share rw deny w -> granted");
    struct peer a = fixture_peer(A.address, 700), b = fixture_peer(B.address, 700);
    struct request request = locker_request(REQUEST_NLM_LOCK, A, 1, 2, X | RECLAIM);
    assert_true(core_has(the_core, &a, &request));
    assert_false(core_has(the_core, &b, &request)); /* from elsewhere it is another client */
    request = locker_request(REQUEST_NLM_LOCK, A, 3, 4, X | RECLAIM);
    assert_false(core_has(the_core, &a, &request));
    request = locker_request(REQUEST_NLM_LOCK, A, 6, 1, X | RECLAIM);
    assert_false(core_has(the_core, &a, &request));
    request = locker_request(REQUEST_NLM_LOCK, A2, 0, 1, X | RECLAIM);
    assert_false(core_has(the_core, &a, &request));
    tell("server restarts");
    request = locker_request(REQUEST_NLM_LOCK, A, 6, 1, S | RECLAIM);
    assert_true(core_has(the_core, &a, &request));
}

TEST_MAIN(locker_set_up, locker_tear_down, NULL, NULL)

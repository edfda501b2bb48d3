/*
 * test_mirror.c -- clients and programs on this machine exclude each other (core/mirror.h).
 *
 * Passing shows when bytes are taken and when they are given back, what a program in the way makes
 * of LOCK, TEST and waits, and that a start mirrors what is stored or says that it could not.
 */
#include "fake_kernel.h"
#include "unit/test.h"

TEST(test_mirror__what_clients_hold_is_held_in_the_kernel)
{
    tell("A lock 0 4 X -> granted; B lock 6 2 S -> granted; C lock 7 3 S -> granted");
    assert_held("XXXX--SSSS");
    tell("B unlock 6 2 -> granted");
    assert_held("XXXX---SSS");
    tell("A lock 1 1 S -> granted");
    assert_held("XSXX---SSS");
    tell("A lock 0 4 X -> granted; A unlock 2 end -> granted");
    assert_held("XX-----SSS");
    tell("A unlock 0 end -> granted; C frees all");
    assert_held("----------");
    assert_int_equal(kernel.open_count, 0);
}

TEST(test_mirror__an_offer_is_held_too)
{
    tell("A lock 0 4 X -> granted; B lock 2 4 X wait -> blocked; A unlock 0 4 -> granted");
    assert_held("--XXXX");
    answered(granted(B), LOCK_GRANTED);
    tell("B unlock 2 4 -> granted");
    assert_held("------");
}

TEST(test_mirror__bytes_are_taken_before_the_answer_and_kept_until_it_is_durable)
{
    assert_int_equal(step_only(REQUEST_NLM_LOCK, A, 0, 4, X), LOCK_GRANTED);
    assert_held("XXXX");
    settle();
    assert_int_equal(step_only(REQUEST_NLM_UNLOCK, A, 0, 4, X), LOCK_GRANTED);
    core_work(the_core, fixture_now_ns(), fixture_now_ns());
    assert_held("XXXX");
    settle();
    assert_held("----");
    /* So is a weaker mode. */
    tell("A lock 0 4 X -> granted");
    assert_int_equal(step_only(REQUEST_NLM_LOCK, A, 0, 4, S), LOCK_GRANTED);
    core_work(the_core, fixture_now_ns(), fixture_now_ns());
    assert_held("XXXX");
    settle();
    assert_held("SSSS");
}

TEST(test_mirror__bytes_that_are_released_twice_are_kept_until_the_second_is_durable)
{
    struct store_batch batch;
    tell("A lock 0 2 S -> granted; B lock 1 2 S -> granted");
    assert_int_equal(step_only(REQUEST_NLM_UNLOCK, B, 1, 2, S), LOCK_GRANTED);
    assert_true(core_take_batch(the_core, &batch));
    assert_int_equal(step_only(REQUEST_NLM_UNLOCK, A, 0, 2, S), LOCK_GRANTED);
    fixture_stored(the_core, batch.txn, true);
    core_work(the_core, fixture_now_ns(), fixture_now_ns());
    assert_held("SS-");
    settle();
    assert_held("---");
}

TEST(test_mirror__what_is_released_at_once_is_given_back_at_once)
{
    tell("A lock 0 1 X -> granted; A lock 2 1 S -> granted; A lock 4 1 X -> granted");
    uint32_t lowered = kernel.lowered;
    tell("A unlock 0 end -> granted");
    assert_held("-----");
    assert_int_equal(kernel.lowered, lowered + 1);
    /* What comes back meanwhile is released anew. */
    tell("B lock 1 1 X -> granted; C lock 3 1 X -> granted; B unlock 1 1 -> granted");
    assert_held("---X-");
    tell("C unlock 3 1 -> granted");
    assert_held("-----");
}

/* A batch that is not durable keeps it all, and only what it keeps. */
TEST(test_mirror__what_is_released_later_waits_for_its_own_batch)
{
    struct store_batch batch;
    tell("A lock 0 1 X -> granted; B lock 2 1 X -> granted");
    assert_int_equal(step_only(REQUEST_NLM_UNLOCK, A, 0, 1, X), LOCK_GRANTED);
    assert_true(core_take_batch(the_core, &batch));
    assert_int_equal(step_only(REQUEST_NLM_UNLOCK, B, 2, 1, X), LOCK_GRANTED);
    fixture_stored(the_core, batch.txn, true);
    core_work(the_core, fixture_now_ns(), fixture_now_ns());
    assert_held("--X");
    settle();
    assert_held("---");
}

TEST(test_mirror__a_program_is_in_the_way)
{
    program_takes(3, 2, LOCAL_EXCLUSIVE);
    tell("A lock 0 4 X -> denied; A lock 4 1 S -> denied; A lock 5 1 X -> granted");
    assert_held("-----X");
    program_takes(3, 2, LOCAL_SHARED);
    tell("A lock 4 1 S -> granted; A lock 4 1 X -> denied");
    assert_held("----SX");
}

TEST(test_mirror__test_names_the_program)
{
    program_takes(3, 1, LOCAL_EXCLUSIVE);
    struct request request = locker_request(REQUEST_NLM_TEST, A, 0, 10, S);
    struct response response = locker_step(A, &request);
    assert_int_equal(response.status, LOCK_DENIED);
    assert_int_equal(response.holder.svid, PID);
    assert_int_equal(response.holder.start, 3);
    assert_int_equal(response.holder.end, 3);
    assert_true(response.holder.exclusive);
    tell("A test 4 10 X -> granted; B lock 3 1 X -> denied; A test 3 1 X -> denied");
}

TEST(test_mirror__a_waiter_has_what_a_program_leaves)
{
    program_takes(0, 2, LOCAL_EXCLUSIVE);
    tell("A lock 0 10 X wait -> blocked; B lock 0 1 S wait -> blocked; there are 2 waiters");
    fixture_wait(MIRROR_AGAIN_NS);
    settle();
    assert_true(nobody_called());
    program_takes(0, 2, LOCAL_NONE);
    fixture_wait(MIRROR_AGAIN_NS);
    settle();
    assert_held("XXXXXXXXXX");
    answered(granted(A), LOCK_GRANTED);
    /* B waits for A from now on, not for programs. */
    uint32_t raised = kernel.raised;
    fixture_wait(3 * MIRROR_AGAIN_NS);
    settle();
    assert_int_equal(kernel.raised, raised);
    tell("A unlock 0 10 -> granted");
    answered(granted(B), LOCK_GRANTED);
    assert_held("S");
}

TEST(test_mirror__who_stops_waiting_for_a_program_is_gone)
{
    program_takes(0, 1, LOCAL_EXCLUSIVE);
    tell("A lock 0 1 X wait -> blocked; A cancel 0 1 X -> granted; there are 0 waiters");
    program_takes(0, 1, LOCAL_NONE);
    fixture_wait(10 * FIXTURE_SECOND);
    settle();
    assert_true(nobody_called());
    assert_held("-");
    assert_int_equal(kernel.open_count, 0);
}

TEST(test_mirror__a_refused_lock_leaves_nothing)
{
    struct core_limits limits = fixture_limits;
    limits.locks_max = 1;
    locker_new(&limits);
    core_mirror(the_core, &fake_world);
    tell("A lock 0 1 X -> granted; B lock 2 1 X -> nolocks");
    assert_held("X--");
}

TEST(test_mirror__a_start_takes_what_is_stored)
{
    tell("A lock 0 4 X -> granted; B lock 6 2 S -> granted");
    start_again();
    assert_held("XXXX--SS");
    assert_int_equal(events_of(EVENT_LOCAL_REFUSED), 0);
    tell("grace is on; A lock 0 4 X reclaim -> granted; B lock 6 2 S reclaim -> granted");
    tell("A unlock 0 4 -> granted");
    assert_held("------SS");
}

TEST(test_mirror__who_does_not_reclaim_loses_it_there_too)
{
    tell("A lock 0 4 X -> granted");
    start_again();
    assert_held("XXXX");
    fixture_wait(1000 * FIXTURE_SECOND);
    settle();
    assert_held("----");
}

TEST(test_mirror__a_program_that_was_faster_is_no_secret)
{
    tell("A lock 0 4 X -> granted; A lock 6 1 X -> granted");
    program_takes(2, 1, LOCAL_EXCLUSIVE);
    start_again();
    assert_int_equal(events_of(EVENT_LOCAL_REFUSED), 1);
    assert_int_equal(fixture_status(the_core).local_refused, 1);
    assert_held("XX-X--X"); /* as much of it as can be had */
    tell("A lock 0 4 X reclaim -> granted; A lock 6 1 X reclaim -> granted");
    fixture_wait(2 * FIXTURE_SECOND);
    settle();
    assert_int_equal(events_of(EVENT_LOCAL_REFUSED), 0); /* it was said */
    program_takes(2, 1, LOCAL_NONE);
    fixture_wait(2 * FIXTURE_SECOND);
    settle();
    assert_held("XXXX--X");
    assert_int_equal(fixture_status(the_core).local_refused, 0);
}

TEST(test_mirror__what_is_held_beside_a_program_is_granted_again)
{
    tell("A lock 0 4 X -> granted");
    program_takes(2, 1, LOCAL_EXCLUSIVE);
    start_again();
    tell("A lock 0 4 X reclaim -> granted; grace is over");
    /* An answer that was lost, a downgrade, and the same of that. */
    tell("A lock 0 4 X -> granted; A lock 1 2 S -> granted; A lock 1 2 S -> granted");
    tell("A lock 2 1 S wait -> granted; there are 0 waiters");
    assert_held("XS-X");
    /* What is more than that is not. */
    tell("A lock 1 2 X -> denied; A lock 2 3 S -> denied; B lock 2 1 S -> denied");
    assert_int_equal(fixture_status(the_core).local_refused, 1);
    program_takes(2, 1, LOCAL_NONE);
    fixture_wait(2 * FIXTURE_SECOND);
    settle();
    assert_held("XSSX");
    assert_int_equal(fixture_status(the_core).local_refused, 0);
}

TEST(test_mirror__a_file_that_goes_is_refused_no_more)
{
    tell("A lock 0 4 X -> granted");
    program_takes(2, 1, LOCAL_EXCLUSIVE);
    start_again();
    assert_int_equal(fixture_status(the_core).local_refused, 1);
    tell("A unlock 0 4 -> granted");
    assert_int_equal(fixture_status(the_core).local_refused, 0);
    assert_int_equal(kernel.open_count, 0);
}

TEST(test_mirror__one_file_too_many_is_refused)
{
    kernel.has_no_room = true;
    tell("A lock 0 4 X -> nolocks");
    assert_int_equal(events_of(EVENT_LOCAL_NO_ROOM), 1);
    assert_int_equal(fixture_status(the_core).locks, 0);
    kernel.has_no_room = false;
    tell("A lock 0 4 X -> granted");
    assert_held("XXXX");
}

TEST(test_mirror__one_file_too_many_at_a_start_is_no_secret)
{
    tell("A lock 0 4 X -> granted");
    kernel.has_no_room = true;
    start_again();
    assert_int_equal(events_of(EVENT_LOCAL_NO_ROOM), 1);
    assert_int_equal(fixture_status(the_core).local_refused, 1);
    kernel.has_no_room = false;
    fixture_wait(2 * FIXTURE_SECOND);
    settle();
    assert_held("XXXX");
    assert_int_equal(fixture_status(the_core).local_refused, 0);
}

TEST(test_mirror__a_file_that_cannot_be_opened_at_a_start_is_no_secret)
{
    tell("A lock 0 4 X -> granted");
    kernel.has_no_room = true;
    start_again();
    kernel.has_no_room = false;
    kernel.is_not_now = true; /* there would be room by now */
    fixture_wait(2 * FIXTURE_SECOND);
    settle();
    assert_int_equal(fixture_status(the_core).local_refused, 1);
    kernel.is_not_now = false;
    fixture_wait(2 * FIXTURE_SECOND);
    settle();
    assert_held("XXXX");
    kernel.is_not_now = true;
    start_again();
    assert_int_equal(events_of(EVENT_LOCAL_UNSEEN), 1);
    assert_int_equal(fixture_status(the_core).local_refused, 1);
}

TEST(test_mirror__what_could_not_be_opened_before_comes_along)
{
    kernel.is_not_there = true;
    tell("A lock 0 4 X -> granted");
    assert_held("----");
    kernel.is_not_there = false;
    tell("B lock 6 1 S -> granted");
    assert_held("XXXX--S");
}

TEST(test_mirror__a_reclaim_on_trust_meets_a_program)
{
    struct core_limits limits = fixture_limits;
    limits.trust_reclaim = true;
    locker_new(&limits);
    core_mirror(the_core, &fake_world);
    tell("B lock 20 1 X -> granted");
    restart_with(&limits);
    kernel.open_count = 0;
    core_mirror(the_core, &fake_world);
    program_takes(0, 1, LOCAL_EXCLUSIVE);
    tell("grace is on; A lock 0 1 X reclaim -> denied; A lock 1 1 X reclaim -> granted");
}

TEST_MAIN(kernel_set_up, locker_tear_down, NULL, NULL)

/*
 * test_callback.c -- a callback outlives its request (decision 020): its bytes are nobody else's,
 * and the answers to CANCEL and UNLOCK wait until nothing of it can arrive any more.
 *
 * core_check runs after every step, so the invariants of callback.c are part of every test.
 */
#include "core/callback.h"
#include "locker.h"
#include "unit/test.h"

static struct response step(enum request_kind kind, struct locker who, uint64_t offset,
                            uint64_t len, int how)
{
    struct request request = locker_request(kind, who, offset, len, how);
    struct response response = locker_step(who, &request);
    assert_int_equal(response.status, LOCK_GRANTED);
    return response;
}

/* The answer waits; its ticket. */
static uint32_t later(enum request_kind kind, struct locker who, uint64_t offset, uint64_t len,
                      int how)
{
    struct response response = step(kind, who, offset, len, how);
    struct core_late late;
    assert_int_equal(response.when, ANSWER_LATER);
    assert_false(core_next_answer(the_core, &late));
    return response.ticket;
}

static void assert_now(struct response response)
{
    assert_int_equal(response.when, ANSWER_NOW);
}

/* This answer may leave, and no other. */
static void assert_leaves(uint32_t ticket)
{
    struct core_late late;
    assert_true(core_next_answer(the_core, &late));
    assert_int_equal(late.ticket, ticket);
    assert_false(core_next_answer(the_core, &late));
}

static void assert_nothing_leaves(void)
{
    struct core_late late;
    assert_false(core_next_answer(the_core, &late));
}

/* Whoever carries the callback is told to end it, 5 s from now at the latest. */
static void assert_ending(struct core_call call)
{
    uint64_t id, deadline_ns;
    assert_true(core_next_ending_call(the_core, &id, &deadline_ns));
    assert_int_equal(id, call.id);
    assert_int_equal(deadline_ns, fixture_now_ns() + 5 * FIXTURE_SECOND);
    assert_false(core_next_ending_call(the_core, &id, &deadline_ns));
}

/* A had it, B is being called, C waits. */
static struct core_call call_b(int how)
{
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 10, how | BLOCK), LOCK_BLOCKED);
    tell("C lock 0 10 X wait -> blocked; A unlock 0 10 -> granted");
    return granted(B);
}

TEST(test_callback__cancel_waits_for_its_end)
{
    struct core_call call = call_b(X);
    uint32_t ticket = later(REQUEST_NLM_CANCEL, B, 0, 10, X);
    assert_ending(call);
    tell("nobody is called; D test 0 10 X -> denied");
    failed(call, CALL_UNKNOWN); /* aborted */
    assert_leaves(ticket);
    tell("C is called and says granted; there is 1 lock; there are 0 offers");
}

/* Whatever it says: the client has cancelled, and is told that it does not have it. */
TEST(test_callback__its_answer_is_an_end_like_any_other)
{
    struct core_call call = call_b(X);
    uint32_t ticket = later(REQUEST_NLM_CANCEL, B, 0, 10, X);
    answered(call, LOCK_GRANTED);
    assert_leaves(ticket);
    tell("C is called and says granted; B test 0 10 X -> denied");
}

TEST(test_callback__a_second_cancel_waits_too)
{
    struct core_call call = call_b(X);
    uint32_t first = later(REQUEST_NLM_CANCEL, B, 0, 10, X);
    uint32_t second = later(REQUEST_NLM_CANCEL, B, 0, 10, X);
    uint32_t third = later(REQUEST_NLM_UNLOCK, B, 5, 1, 0);
    assert_now(step(REQUEST_NLM_UNLOCK, B, 10, 5, 0)); /* other bytes */
    assert_int_not_equal(first, second);
    failed(call, CALL_UNKNOWN);
    uint32_t seen = 0;
    struct core_late late;
    while (core_next_answer(the_core, &late))
        seen |= 1U << late.ticket;
    assert_int_equal(seen, 1U << first | 1U << second | 1U << third);
}

TEST(test_callback__unlock_waits_for_its_end)
{
    struct core_call call = call_b(X);
    uint32_t ticket = later(REQUEST_NLM_UNLOCK, B, 0, 0, 0);
    assert_ending(call);
    assert_true(nobody_called());
    failed(call, CALL_UNDELIVERED);
    assert_leaves(ticket);
    answered(granted(C), LOCK_GRANTED);
}

/* Nothing was begun, or all of it has ended: nothing to wait for. */
TEST(test_callback__between_callbacks_nothing_waits)
{
    failed(call_b(X), CALL_UNKNOWN);
    assert_now(step(REQUEST_NLM_CANCEL, B, 0, 10, X));
    answered(granted(C), LOCK_GRANTED);
}

/* A poll that is granted: the client has it, and the callback lingers beside. */
TEST(test_callback__outlives_a_poll)
{
    struct core_call call = call_b(X);
    assert_int_equal(lock(B, 0, 10, X | BLOCK), LOCK_GRANTED);
    assert_ending(call);
    tell("there is 1 lock; there is 1 offer");
    uint32_t ticket = later(REQUEST_NLM_UNLOCK, B, 0, 5, 0);
    assert_int_equal(fixture_status(the_core).locks, 1); /* the rest */
    assert_true(nobody_called());
    answered(call, LOCK_DENIED); /* it waits no longer: that takes nothing away */
    assert_leaves(ticket);
    tell("there is 1 lock; there are 0 offers; C test 0 5 X -> granted; C test 5 5 X -> denied");
    assert_now(step(REQUEST_NLM_UNLOCK, B, 0, 0, 0));
    answered(granted(C), LOCK_GRANTED);
}

/* It asks again while its bytes are kept: the late GRANTED then says what is true. */
TEST(test_callback__its_owner_is_granted_at_once)
{
    struct core_call call = call_b(X);
    uint32_t ticket = later(REQUEST_NLM_CANCEL, B, 0, 10, X);
    assert_int_equal(lock(B, 0, 10, X | BLOCK), LOCK_GRANTED);
    uint32_t second = later(REQUEST_NLM_UNLOCK, B, 0, 10, 0);
    assert_true(nobody_called());
    answered(call, LOCK_GRANTED);
    struct core_late late;
    assert_true(core_next_answer(the_core, &late));
    assert_true(late.ticket == ticket || late.ticket == second);
    assert_leaves(late.ticket == ticket ? second : ticket);
    answered(granted(C), LOCK_GRANTED);
}

/* Another callback of the same request has an id of its own. */
TEST(test_callback__two_of_one_owner)
{
    struct core_call call = call_b(X);
    uint32_t ticket = later(REQUEST_NLM_CANCEL, B, 0, 10, X);
    assert_ending(call);
    tell("B lock 0 10 X -> granted; A lock 20 10 X -> granted; B lock 20 10 X wait -> blocked; "
         "A unlock 20 10 -> granted");
    struct core_call other = granted(B);
    assert_int_not_equal(other.id, call.id);
    uint32_t all = later(REQUEST_NLM_UNLOCK, B, 0, 0, 0); /* of both */
    assert_ending(other);
    failed(call, CALL_UNKNOWN);
    assert_leaves(ticket);
    failed(other, CALL_UNKNOWN);
    assert_leaves(all);
    answered(granted(C), LOCK_GRANTED);
}

TEST(test_callback__free_all_keeps_the_bytes)
{
    struct core_call call = call_b(X);
    free_all(B);
    assert_ending(call);
    tell("nobody is called; D test 0 10 X -> denied");
    failed(call, CALL_UNKNOWN);
    tell("C is called and says granted; there are 0 offers");
}

/* Such bytes are no link of a circle: they come loose by themselves. */
TEST(test_callback__no_deadlock_through_kept_bytes)
{
    tell("D lock 20 10 X -> granted; A lock 0 10 X -> granted; B lock 0 10 X wait -> blocked; "
         "A unlock 0 10 -> granted");
    struct core_call call = granted(B);
    uint32_t ticket = later(REQUEST_NLM_CANCEL, B, 0, 10, X);
    tell("D lock 0 10 X wait -> blocked; B lock 20 10 X wait -> blocked");
    failed(call, CALL_UNKNOWN);
    assert_leaves(ticket);
    answered(granted(D), LOCK_GRANTED);
}

/* A restart ends callbacks; what they kept is an offer that nobody has taken. */
TEST(test_callback__a_crash_ends_it)
{
    struct core_call call = call_b(X);
    (void)later(REQUEST_NLM_CANCEL, B, 0, 10, X);
    restart();
    failed(call, CALL_UNKNOWN); /* of the run before: nobody's */
    assert_now(step(REQUEST_NLM_UNLOCK, B, 0, 0, 0));
    tell("there are 0 offers; there are 0 locks");
}

/* Only so many of one client wait; the others are not answered, and nothing is lost by that. */
TEST(test_callback__too_many_answers)
{
    struct core_call call = call_b(X);
    for (uint32_t i = 0; i < CALLBACK_LATE_PER_CLIENT_MAX; i++)
        (void)later(REQUEST_NLM_CANCEL, B, 0, 10, X);
    assert_int_equal(step(REQUEST_NLM_CANCEL, B, 0, 10, X).when, ANSWER_NEVER);
    assert_true(nobody_called());
    failed(call, CALL_UNKNOWN);
    uint32_t count = 0;
    struct core_late late;
    while (core_next_answer(the_core, &late))
        count++;
    assert_int_equal(count, CALLBACK_LATE_PER_CLIENT_MAX);
    assert_now(step(REQUEST_NLM_CANCEL, B, 0, 10, X));
    assert_nothing_leaves();
    answered(granted(C), LOCK_GRANTED);
}

TEST_MAIN(locker_set_up, locker_tear_down, NULL, NULL)

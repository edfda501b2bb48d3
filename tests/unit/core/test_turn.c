/*
 * test_turn.c -- GRANTED callbacks are fair between clients, and what is silent has a bounded share
 * of them (P7).
 */
#include "core/state.h"
#include "monitor.h"
#include "unit/test.h"

#define SECOND FIXTURE_SECOND

enum { MANY = 90 };

static const struct locker OTHER = {"10.0.0.2", "other", 1}; /* another client of A's address */

/* D holds everything of the file; `who` waits for `count` bytes of it, from `at` on. */
static void wait_for(struct locker who, uint64_t at, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(lock(who, at + 2 * i, 1, X | BLOCK), LOCK_BLOCKED);
}

static bool next_is_to(const char *address, struct core_call *ret)
{
    struct address to = fixture_address(address);
    return fixture_next_call(the_core, ret) && address_equal(&ret->to, &to);
}

static uint32_t take_all(struct core_call *calls, uint32_t max)
{
    uint32_t count = 0;
    while (count < max && fixture_next_call(the_core, &calls[count]))
        count++;
    return count;
}

TEST(test_turn__clients_take_turns)
{
    struct core_call call;
    assert_int_equal(lock(D, 0, 0, X), LOCK_GRANTED);
    wait_for(A, 1000, MANY);
    wait_for(B, 0, 1);
    tell("D unlock 0 end -> granted");
    assert_true(next_is_to(A.address, &call));
    assert_true(next_is_to(B.address, &call)); /* and not behind ninety of A's */
    answered(call, LOCK_GRANTED);
    assert_true(next_is_to(A.address, &call));
}

/* Two clients of one address share what the address may have; another address does not wait. */
TEST(test_turn__an_address_has_so_many_under_way)
{
    static struct core_call calls[MANY + 1];
    struct core_call call;
    assert_int_equal(lock(D, 0, 0, X), LOCK_GRANTED);
    wait_for(A, 1000, MANY - 10);
    wait_for(OTHER, 5000, 9);
    wait_for(B, 0, 1);
    tell("D unlock 0 end -> granted");
    assert_int_equal(take_all(calls, MANY + 1), TURN_CALLS_MAX + 1);
    uint32_t of_other = 0;
    for (uint32_t i = 0; i < TURN_CALLS_MAX + 1; i++)
        of_other += calls[i].offset >= 5000;
    assert_int_equal(of_other, 9); /* a turn each, so all of the fewer ones are there */
    /* It answers: each answer makes room for another one. */
    answered(calls[0], LOCK_GRANTED);
    assert_true(next_is_to(A.address, &call));
    assert_false(fixture_next_call(the_core, &call));
}

TEST(test_turn__the_silent_have_few)
{
    static struct core_call calls[MANY];
    struct core_call call;
    assert_int_equal(lock(D, 0, 0, X), LOCK_GRANTED);
    wait_for(A, 1000, MANY);
    tell("D unlock 0 end -> granted");
    assert_int_equal(take_all(calls, MANY), TURN_CALLS_MAX);
    fixture_wait(5 * SECOND);
    for (uint32_t i = 0; i < TURN_CALLS_MAX; i++)
        failed(calls[i], CALL_UNKNOWN);
    assert_int_equal(take_all(calls, MANY), TURN_SILENT_MAX);
    /* Those who wait for their turn are free to go, and nobody is stuck then. */
    for (uint32_t i = 0; i < MANY; i++)
        (void)cancel(A, 1000 + 2 * i, 1, X);
    fixture_wait(10 * SECOND);
    for (uint32_t i = 0; i < TURN_SILENT_MAX; i++)
        failed(calls[i], CALL_UNKNOWN);
    settle();
    assert_int_equal(lock(D, 0, 10, X), LOCK_GRANTED);
    wait_for(A, 0, 1);
    tell("D unlock 0 end -> granted");
    assert_true(next_is_to(A.address, &call));
}

/* Who waits, is offered it, and cancels, again and again, has no more callbacks under way for that:
 * those that linger count. So others are called, and CANCEL looks at so many at most. */
TEST(test_turn__those_that_linger_count)
{
    static struct core_call calls[10 * MANY];
    uint32_t count = 0;
    struct core_limits limits = fixture_limits;
    limits.waiters_max = MANY;
    locker_new(&limits);
    for (uint64_t round = 0, at = 1000; round < 10; round++, at += 2000) {
        assert_int_equal(lock(D, at, 2 * MANY, X), LOCK_GRANTED);
        wait_for(A, at, MANY / 2);
        assert_int_equal(unlock(D, at, 2 * MANY), LOCK_GRANTED);
        settle();
        count += take_all(&calls[count], MANY);
        for (uint32_t i = 0; i < MANY / 2; i++)
            (void)cancel(A, at + 2 * i, 1, X);
        settle();
    }
    assert_int_equal(count, TURN_CALLS_MAX);
    assert_int_equal(lock(D, 0, 10, X), LOCK_GRANTED);
    wait_for(B, 0, 1);
    tell("D unlock 0 10 -> granted");
    struct core_call call;
    assert_true(next_is_to(B.address, &call));
    answered(call, LOCK_GRANTED);
    /* Cut short, they say nothing about A; after all their time, that it is silent. */
    failed(calls[--count], CALL_UNKNOWN);
    assert_false(quota_at(the_core, client_of(A)->quota)->is_silent);
    fixture_wait(5 * SECOND);
    failed(calls[--count], CALL_UNKNOWN);
    assert_true(quota_at(the_core, client_of(A)->quota)->is_silent);
    failed(calls[--count], CALL_REFUSED);
    assert_false(quota_at(the_core, client_of(A)->quota)->is_silent);
}

/* A host that is silent stays so when it cancels. */
TEST(test_turn__cancel_does_not_end_silence)
{
    static struct core_call calls[MANY];
    assert_int_equal(lock(D, 0, 0, X), LOCK_GRANTED);
    wait_for(A, 1000, MANY);
    tell("D unlock 0 end -> granted");
    assert_int_equal(take_all(calls, MANY), TURN_CALLS_MAX);
    fixture_wait(5 * SECOND);
    for (uint32_t i = 0; i < TURN_CALLS_MAX; i++)
        failed(calls[i], CALL_UNKNOWN);
    assert_int_equal(take_all(calls, MANY), TURN_SILENT_MAX);
    for (uint32_t i = 0; i < TURN_SILENT_MAX; i++)
        (void)cancel(A, calls[i].offset, 1, X);
    settle();
    assert_int_equal(take_all(calls, MANY), 0);
}

/* Who must be told of a restart does not keep waiters waiting. */
TEST(test_turn__callbacks_come_first)
{
    struct core_call call;
    assert_int_equal(lock(D, 0, 0, X), LOCK_GRANTED);
    wait_for(A, 0, 1);
    struct order given = {.kind = ORDER_NOTIFY, .client = client_of(D)->stored.id};
    struct core_input input = {.kind = CORE_ORDER, .now_ns = fixture_now_ns(), .order = &given};
    struct core_answer answer;
    core_step(the_core, &input, &answer);
    assert_int_equal(answer.order_result, ORDER_DONE);
    tell("D unlock 0 end -> granted");
    assert_true(fixture_next_call(the_core, &call));
    assert_int_equal(call.kind, CALL_GRANTED);
    assert_false(core_next_callback(the_core, fixture_now_ns(), &call));
    assert_true(fixture_next_call(the_core, &call));
    assert_int_equal(call.kind, CALL_NOTIFY);
}

TEST_MAIN(locker_set_up, locker_tear_down, NULL, NULL)

/*
 * test_silent.c -- shows when the holder of a lock that somebody waits for is asked whether it is
 * still there, what its answers mean, and what operators see of it (silent.h, view.h).
 *
 * A holds the file, B waits for it and repeats its request, as clients do. The tests let the time
 * pass and answer the calls.
 */
#include "core/view.h"
#include "locker.h"
#include "unit/test.h"

#define POLL_NS (20 * FIXTURE_SECOND)

TEST_FIXTURE(setup)
{
    locker_new(&fixture_limits);
    tell("A lock 0 end X -> granted; B lock 0 10 X wait -> blocked");
}

static void end_call(const struct core_call *call, enum core_call_outcome outcome, uint32_t state)
{
    struct core_input input = {.kind = CORE_CALL_DONE,
                               .now_ns = fixture_now_ns(),
                               .call = call->id,
                               .outcome = outcome,
                               .state = state};
    core_step(the_core, &input, NULL);
    core_check(the_core);
}

/* B polls until a call leaves, for at most so long. How long that was. */
static uint64_t wait_for_call(uint64_t max_ns, struct core_call *ret)
{
    uint64_t start_ns = fixture_now_ns();
    while (fixture_now_ns() - start_ns <= max_ns) {
        settle();
        if (fixture_next_call(the_core, ret))
            return fixture_now_ns() - start_ns;
        fixture_wait(POLL_NS / 4);
        if ((fixture_now_ns() - start_ns) % POLL_NS < POLL_NS / 4)
            assert_int_equal(lock(B, 0, 10, X | BLOCK), LOCK_BLOCKED);
    }
    return UINT64_MAX;
}

static void demand_call(enum core_call_kind kind, struct core_call *ret)
{
    struct address holder = fixture_address(A.address);
    assert_true(wait_for_call(400 * FIXTURE_SECOND, ret) != UINT64_MAX);
    assert_int_equal(ret->kind, kind);
    assert_true(address_equal(&ret->to, &holder));
}

/* Asked both ways, and silent to both. */
static void be_silent(void)
{
    struct core_call call;
    demand_call(CALL_NULL, &call);
    end_call(&call, CALL_UNDELIVERED, 0);
    demand_call(CALL_STAT, &call);
    end_call(&call, CALL_UNKNOWN, 0);
    fixture_wait(6 * FIXTURE_SECOND); /* the next pass counts */
    settle();
}

TEST(test_silent__a_holder_is_asked_after_five_minutes)
{
    struct core_call call;
    uint64_t took_ns = wait_for_call(400 * FIXTURE_SECOND, &call);
    assert_in_range(took_ns, 300 * FIXTURE_SECOND, 320 * FIXTURE_SECOND);
    assert_int_equal(call.kind, CALL_NULL);
}

TEST(test_silent__a_holder_that_calls_is_not_asked)
{
    struct core_call call;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(wait_for_call(200 * FIXTURE_SECOND, &call), UINT64_MAX);
        assert_int_equal(lock(A, 0, 0, X), LOCK_GRANTED);
    }
}

TEST(test_silent__a_holder_nobody_waits_for_is_not_asked)
{
    struct core_call call;
    assert_int_equal(cancel(B, 0, 10, X | BLOCK), LOCK_GRANTED);
    for (int i = 0; i < 100; i++) {
        tell("10 s pass");
        assert_false(fixture_next_call(the_core, &call));
    }
    assert_int_equal(fixture_status(the_core).silent.oldest_since_ns, 0);
}

TEST(test_silent__silence_is_reported_and_frees_nothing)
{
    struct core_call call;
    struct view_silent view;
    assert_false(view_silent(the_core, 0, &view));
    be_silent();
    assert_int_equal(fixture_status(the_core).silent.waits_on_silent, 1);
    assert_true(view_silent(the_core, 0, &view));
    assert_false(view_silent(the_core, 1, &view));
    assert_int_equal(view.wait_count, 1);
    assert_true(fixture_now_ns() - view.oldest_ns >= 300 * FIXTURE_SECOND);
    assert_true(fixture_now_ns() - view.heard_ns >= 300 * FIXTURE_SECOND);
    struct event event;
    bool is_reported = false;
    while (event_take(core_events(the_core), &event))
        is_reported |= event.kind == EVENT_HOLDER_SILENT && event.value == view.holder.client;
    assert_true(is_reported);
    /* Once is enough. */
    assert_int_equal(wait_for_call(1000 * FIXTURE_SECOND, &call), UINT64_MAX);
    assert_int_equal(lock(C, 0, 10, X), LOCK_DENIED);

    /* Whoever waits is said to wait for it. */
    struct view_waiter waiter;
    uint64_t cursor = 0;
    uint32_t budget = VIEW_DIRECT_MAX;
    assert_true(view_next_waiter(the_core, &(struct view_filter){0}, &cursor, &budget, &waiter));
    assert_true(waiter.is_blocked);
    assert_int_equal(waiter.blocker_phase, SILENT_NO_ANSWER);
    assert_int_equal(waiter.blocker.client, view.holder.client);
}

TEST(test_silent__a_call_of_the_holder_ends_it)
{
    struct view_silent view;
    be_silent();
    assert_true(view_silent(the_core, 0, &view));
    tell("A lock 0 end X -> granted; 6 s pass; 6 s pass");
    assert_false(view_silent(the_core, 0, &view));
    assert_int_equal(fixture_status(the_core).silent.waits_on_silent, 0);
}

TEST(test_silent__an_answer_is_a_sign_of_life)
{
    struct core_call call;
    struct view_silent view;
    demand_call(CALL_NULL, &call);
    end_call(&call, CALL_ANSWERED, 0);
    demand_call(CALL_STAT, &call);
    end_call(&call, CALL_UNKNOWN, 0);
    tell("6 s pass");
    assert_false(view_silent(the_core, 0, &view));
    assert_int_equal(lock(C, 0, 10, X), LOCK_DENIED);
}

TEST(test_silent__a_missed_restart_is_found)
{
    struct core_call call;
    demand_call(CALL_NULL, &call);
    end_call(&call, CALL_UNDELIVERED, 0);
    demand_call(CALL_STAT, &call);
    end_call(&call, CALL_ANSWERED, 5); /* A locked in state 3 */
    call = granted(B);
    answered(call, LOCK_GRANTED);
    tell("C lock 0 10 X -> denied; C lock 20 10 X -> granted");
}

TEST(test_silent__a_holder_that_is_forgotten_while_it_is_asked)
{
    struct core_call call;
    demand_call(CALL_NULL, &call);
    free_all(A);
    struct core_call offer = granted(B);
    answered(offer, LOCK_GRANTED);
    tell("400 s pass");
    end_call(&call, CALL_UNKNOWN, 0);
    settle();
    assert_false(fixture_next_call(the_core, &call));
}

TEST_MAIN(setup, locker_tear_down, NULL, NULL)

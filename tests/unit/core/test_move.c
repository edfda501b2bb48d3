/*
 * test_move.c -- a client that comes back under another address gets its locks back, and a
 * stranger of the same name does not (D17).
 *
 * A holds a lock. "A" at another address is refused by it; both addresses are then asked, and each
 * test answers the calls as its story needs.
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
    assert_int_equal(lock(A, 0, 0, X), LOCK_GRANTED);
    assert_int_equal(lock(ELSEWHERE, 0, 0, X), LOCK_DENIED);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    locker_done();
    return 0;
}

static bool next_call(struct core_call *ret)
{
    settle();
    return fixture_next_call(the_core, ret);
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

static bool is_to(const struct core_call *call, struct locker who)
{
    struct address address = fixture_address(who.address);
    return address_equal(&call->to, &address);
}

/* The old address is silent, 5 s a call, until the new one is asked. */
static struct core_call wait_for_new_address(enum core_call_outcome silence)
{
    struct core_call call;
    uint64_t started_ns = fixture_now_ns();
    bool wants_null = true;
    for (;;) {
        assert_true(next_call(&call));
        if (!is_to(&call, A))
            break;
        assert_int_equal(call.kind, wants_null ? CALL_NULL : CALL_STAT);
        assert_int_equal(call.prog, wants_null ? 100021 : 100024);
        wants_null = !wants_null;
        fixture_wait(5 * FIXTURE_SECOND);
        end_call(&call, silence, 0);
    }
    assert_true(fixture_now_ns() - started_ns >= 60 * FIXTURE_SECOND);
    assert_true(is_to(&call, ELSEWHERE));
    assert_int_equal(call.kind, CALL_STAT);
    return call;
}

static void test_move__the_record_moves_with_its_locks(void **state)
{
    (void)state;
    struct core_call call = wait_for_new_address(CALL_UNKNOWN);
    end_call(&call, CALL_ANSWERED, 3); /* the state that A locked with */
    settle();
    assert_int_equal(fixture_status(the_core).clients, 1);
    assert_int_equal(lock(ELSEWHERE, 0, 0, X), LOCK_GRANTED);
    assert_int_equal(lock(A, 0, 0, X), LOCK_DENIED);
    assert_int_equal(unlock(ELSEWHERE, 0, 0), LOCK_GRANTED);
    assert_int_equal(lock(B, 0, 0, X), LOCK_GRANTED);
}

static void test_move__another_state_is_another_host(void **state)
{
    (void)state;
    struct core_call call = wait_for_new_address(CALL_UNDELIVERED);
    end_call(&call, CALL_ANSWERED, 5);
    assert_int_equal(lock(ELSEWHERE, 0, 0, X), LOCK_DENIED);
    assert_false(next_call(&call)); /* not looked into again at once */
}

static void test_move__silence_at_the_new_address_moves_nothing(void **state)
{
    (void)state;
    struct core_call call = wait_for_new_address(CALL_UNKNOWN);
    end_call(&call, CALL_UNKNOWN, 0);
    assert_int_equal(lock(ELSEWHERE, 0, 0, X), LOCK_DENIED);
}

static void test_move__an_answer_from_the_old_address_ends_it(void **state)
{
    (void)state;
    struct core_call call;
    for (int i = 0; i < 4; i++) {
        assert_true(next_call(&call));
        assert_true(is_to(&call, A));
        fixture_wait(5 * FIXTURE_SECOND);
        end_call(&call, i == 3 ? CALL_REFUSED : CALL_UNKNOWN, 0);
    }
    assert_false(next_call(&call));
    fixture_wait(300 * FIXTURE_SECOND);
    assert_false(next_call(&call));
    assert_int_equal(lock(ELSEWHERE, 0, 0, X), LOCK_DENIED); /* and may be looked into again */
    assert_true(next_call(&call));
}

static void test_move__nothing_moves_over_what_is_recorded_there(void **state)
{
    (void)state;
    assert_int_equal(unlock(A, 0, 0), LOCK_GRANTED);
    assert_int_equal(lock(A, 0, 10, X), LOCK_GRANTED);
    assert_int_equal(lock(ELSEWHERE, 10, 10, X), LOCK_GRANTED); /* a client of its own by now */
    struct core_call call = wait_for_new_address(CALL_UNKNOWN);
    end_call(&call, CALL_ANSWERED, 3);
    settle();
    assert_int_equal(fixture_status(the_core).clients, 2);
    assert_int_equal(lock(ELSEWHERE, 0, 10, X), LOCK_DENIED);
}

static void test_move__a_freed_client_is_not_asked_about(void **state)
{
    (void)state;
    struct core_call call;
    assert_true(next_call(&call));
    assert_int_equal(unlock(A, 0, 0), LOCK_GRANTED);
    fixture_wait(1000 * FIXTURE_SECOND);
    settle(); /* A is forgotten */
    assert_int_equal(fixture_status(the_core).clients, 0);
    end_call(&call, CALL_UNKNOWN, 0);
    assert_false(next_call(&call));
}

#define CASE(name) cmocka_unit_test_setup_teardown(test_move__##name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(the_record_moves_with_its_locks),
        CASE(another_state_is_another_host),
        CASE(silence_at_the_new_address_moves_nothing),
        CASE(an_answer_from_the_old_address_ends_it),
        CASE(nothing_moves_over_what_is_recorded_there),
        CASE(a_freed_client_is_not_asked_about),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

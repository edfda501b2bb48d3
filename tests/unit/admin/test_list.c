/*
 * test_list.c -- what a client's row says of it: the word for its state.
 *
 * Whoever releases a client that holds very much is answered before all of it is free, and waits
 * until the word is another than "freeing". Here the core is stopped in the middle of that.
 */
#include "admin/list.h"

#include "../core/monitor.h"
#include "unit/test.h"

enum { COUNT = 3000 }; /* more than one turn frees */

static const char *word_of_a(void)
{
    struct view_client view;
    assert_true(view_find_client(the_core, client_of(A)->stored.id, &view));
    return list_word_of_client(&view);
}

static enum order_result release_a(void)
{
    struct order order = {.kind = ORDER_RELEASE, .client = client_of(A)->stored.id};
    struct core_input input = {.kind = CORE_ORDER,
                               .now_ns = fixture_now_ns(),
                               .wall_ns = fixture_now_ns(),
                               .order = &order};
    struct core_answer answer = {0};
    core_step(the_core, &input, &answer);
    return answer.order_result;
}

TEST(test_list__freeing_is_said_before_recovering)
{
    struct core_limits limits = fixture_limits;
    limits.locks_max = limits.locks_per_client_max = limits.batch_puts_max = 2 * COUNT;
    limits.bytes_max = 64 << 20;
    locker_new(&limits);
    lock_many(the_core, 5, A, 0, COUNT);
    settle();
    assert_string_equal(word_of_a(), "active");
    restart();
    assert_string_equal(word_of_a(), "recovering");
    assert_int_equal(release_a(), ORDER_BEGUN);
    assert_true(client_of(A)->life.lock_count > 0);
    assert_true(client_of(A)->recovery.unsettled_count > 0); /* that is true, too */
    assert_string_equal(word_of_a(), "freeing");
    settle();
    assert_int_equal(client_of(A)->life.lock_count, 0);
    assert_string_equal(word_of_a(), "active");
    locker_done();
}

TEST_MAIN(NULL, NULL, NULL, NULL)

/*
 * test_client_end.c -- deadlines, cancels and calls that nobody needs any more, in each phase of an
 * attempt: what is closed, what is aborted, and that no result is told before the kernel can
 * deliver nothing of it any more.
 */
#include "call_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct world world;

static int begin(void **state)
{
    (void)state;
    world_begin(&world, 16, 16);
    return 0;
}

static int end(void **state)
{
    (void)state;
    world_end(&world);
    return 0;
}

enum stage { LOOKING_UP, LOOKING_UP_TCP, CONNECTING, ASKING_TCP, ASKING_UDP, RESTING, STAGES };

/* Takes a new attempt to this stage; nothing is left to do then. */
static void bring_to(enum stage stage)
{
    world_start(&world, 7, 0);
    world_expect_question(&world, 2, 6);
    switch (stage) {
    case LOOKING_UP:
        return;
    case LOOKING_UP_TCP:
        world_unreachable(&world, PORTMAPPER);
        world_expect_connect(&world, PORTMAPPER);
        world_connected(&world, true);
        world_expect_question_tcp(&world, 2, 6);
        return;
    case CONNECTING:
    case ASKING_TCP:
        world_answer_port(&world, 700);
        world_expect_connect(&world, 700);
        if (stage == CONNECTING)
            return;
        world_connected(&world, true);
        world_expect_message_tcp(&world, 0);
        return;
    case ASKING_UDP:
    case RESTING:
        world_answer_port(&world, 0);
        world_expect_question(&world, 2, 17);
        world_answer_port(&world, stage == RESTING ? 0 : 800);
        if (stage == ASKING_UDP)
            world_expect_message_udp(&world, 800, 0);
        return;
    case STAGES:
        break;
    }
    fail();
}

static bool has_connection(enum stage stage)
{
    return stage == LOOKING_UP_TCP || stage == CONNECTING || stage == ASKING_TCP;
}

/* The kernel has something to deliver: no result before the abort. */
static bool is_written(enum stage stage)
{
    return stage == LOOKING_UP_TCP || stage == ASKING_TCP;
}

/* The loop slept through everything: the first thing that the client hears is that it is too late.
 */
static void test_client_end__deadline_in_each_phase(void **state)
{
    (void)state;
    for (uint32_t stage = 0; stage < STAGES; stage++) {
        bring_to((enum stage)stage);
        world.now_ns += 4999 * WORLD_MS;
        if (stage == ASKING_TCP) { /* the only one with nothing to do before */
            rpc_client_tick(world.client, world.now_ns);
            world_expect_no_result(&world);
        }
        world.now_ns += WORLD_MS;
        rpc_client_tick(world.client, world.now_ns);
        rpc_client_check(world.client);
        bool is_sent = stage == ASKING_TCP || stage == ASKING_UDP;
        if (is_written((enum stage)stage)) {
            world_expect_no_result(&world);
            world_expect_abort(&world, world.connection);
        }
        world_expect_result(&world, 7, is_sent ? CLIENT_UNKNOWN : CLIENT_UNDELIVERED, 0);
        if (has_connection((enum stage)stage) && !is_written((enum stage)stage))
            world_expect_disconnect(&world, world.connection);
        world_expect_nothing(&world);
        assert_int_equal(rpc_client_count(world.client), 0);
        world_answer_void_udp(&world, 800);
        world_answer_void_tcp(&world);
        world_expect_no_result(&world);
    }
}

/* What was wanted but not yet taken is wanted no more. */
static void test_client_end__deadline_before_anything_was_sent(void **state)
{
    (void)state;
    world_start(&world, 7, 0);
    world.now_ns += 6000 * WORLD_MS;
    rpc_client_tick(world.client, world.now_ns);
    rpc_client_check(world.client);
    world_expect_nothing(&world);
    world_expect_result(&world, 7, CLIENT_UNDELIVERED, 0);

    /* A connection that the wire never heard of is not closed either. */
    world_start(&world, 7, 0);
    world_expect_question(&world, 2, 6);
    world_answer_port(&world, 700);
    world.now_ns += 6000 * WORLD_MS;
    rpc_client_tick(world.client, world.now_ns);
    rpc_client_check(world.client);
    world_expect_nothing(&world);
    world_expect_result(&world, 7, CLIENT_UNDELIVERED, 0);

    /* The message was wanted, but never handed over: that is proof. */
    bring_to(CONNECTING);
    world_connected(&world, true);
    world.now_ns += 6000 * WORLD_MS;
    rpc_client_tick(world.client, world.now_ns);
    world_expect_disconnect(&world, world.connection);
    world_expect_nothing(&world);
    world_expect_result(&world, 7, CLIENT_UNDELIVERED, 0);
}

/* The result and the closing of the connection may be taken in either order. */
static void test_client_end__cancel_in_each_phase(void **state)
{
    (void)state;
    for (uint32_t stage = 0; stage < STAGES; stage++) {
        bring_to((enum stage)stage);
        rpc_client_cancel(world.client, 8); /* somebody else */
        assert_int_equal(rpc_client_count(world.client), 1);
        rpc_client_cancel(world.client, 7);
        rpc_client_check(world.client);
        world_expect_no_result(&world);
        assert_int_equal(rpc_client_count(world.client), has_connection((enum stage)stage));
        if (has_connection((enum stage)stage))
            world_expect_disconnect(&world, world.connection);
        world_expect_nothing(&world);
        assert_int_equal(rpc_client_count(world.client), 0);
        world.now_ns += 130000 * WORLD_MS; /* the cache forgets the port */
    }
    world_start(&world, 7, 0); /* before its first datagram was taken */
    rpc_client_cancel(world.client, 7);
    world_expect_nothing(&world);
}

static void test_client_end__cancel_of_one_that_has_ended(void **state)
{
    (void)state;
    bring_to(ASKING_TCP);
    uint64_t connection = world.connection;
    world_answer_void_tcp(&world);
    rpc_client_cancel(world.client, 7);
    world_expect_no_result(&world);
    /* The same id again, while the old connection is still open: the new one is meant. */
    world_start(&world, 7, 0);
    world_expect_disconnect(&world, connection);
    world_expect_connect(&world, 700); /* the port is still known */
    rpc_client_cancel(world.client, 7);
    world_expect_disconnect(&world, world.connection);
    world_expect_no_result(&world);
}

/* Nobody needs it any more: what waits for no answer over TCP ends at once. */
static void test_client_end__finish_in_each_phase(void **state)
{
    (void)state;
    for (uint32_t stage = 0; stage < STAGES; stage++) {
        if (stage == ASKING_TCP)
            continue;
        bring_to((enum stage)stage);
        rpc_client_finish(world.client, 7, UINT64_MAX, world.now_ns);
        rpc_client_check(world.client);
        if (is_written((enum stage)stage))
            world_expect_abort(&world, world.connection);
        world_expect_result(&world, 7, stage == ASKING_UDP ? CLIENT_UNKNOWN : CLIENT_UNDELIVERED,
                            0);
        if (has_connection((enum stage)stage) && !is_written((enum stage)stage))
            world_expect_disconnect(&world, world.connection);
        world_expect_nothing(&world);
        world.now_ns += 130000 * WORLD_MS;
    }
}

/* What was written over TCP is waited for, and then aborted; never sent again. */
static void test_client_end__finish_awaits_a_last_answer(void **state)
{
    (void)state;
    bring_to(ASKING_TCP);
    rpc_client_finish(world.client, 7, world.now_ns + 2000 * WORLD_MS, world.now_ns);
    world_expect_nothing(&world);
    world_answer_void_tcp(&world);
    world_expect_result(&world, 7, CLIENT_ANSWERED, 1);
    world_expect_disconnect(&world, world.connection);

    world.now_ns += 130000 * WORLD_MS; /* the cache forgets the port */
    bring_to(ASKING_TCP);
    rpc_client_finish(world.client, 7, world.now_ns + 2000 * WORLD_MS, world.now_ns);
    world.now_ns += 1999 * WORLD_MS;
    rpc_client_tick(world.client, world.now_ns);
    world_expect_nothing(&world);
    world.now_ns += WORLD_MS;
    rpc_client_tick(world.client, world.now_ns);
    world_expect_no_result(&world);
    world_expect_abort(&world, world.connection);
    world_expect_result(&world, 7, CLIENT_UNKNOWN, 0);

    world.now_ns += 130000 * WORLD_MS; /* the cache forgets the port */
    bring_to(ASKING_TCP);
    rpc_client_finish(world.client, 7, world.now_ns + 2000 * WORLD_MS, world.now_ns);
    world_lost(&world);
    world_expect_result(&world, 7, CLIENT_UNKNOWN, 0);
    world_expect_nothing(&world);

    world.now_ns += 130000 * WORLD_MS; /* the cache forgets the port */
    bring_to(ASKING_TCP);
    rpc_client_finish(world.client, 7, world.now_ns, world.now_ns); /* at once */
    world_expect_no_result(&world);
    world_expect_abort(&world, world.connection);
    world_expect_result(&world, 7, CLIENT_UNKNOWN, 0);
    assert_int_equal(rpc_client_count(world.client), 0);
}

#define CLIENT_TEST(name) cmocka_unit_test_setup_teardown(test_client_end__##name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLIENT_TEST(deadline_in_each_phase), CLIENT_TEST(deadline_before_anything_was_sent),
        CLIENT_TEST(cancel_in_each_phase),   CLIENT_TEST(cancel_of_one_that_has_ended),
        CLIENT_TEST(finish_in_each_phase),   CLIENT_TEST(finish_awaits_a_last_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

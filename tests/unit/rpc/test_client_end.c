/*
 * test_client_end.c -- deadlines, cancels and calls that nobody needs any more, in each phase of an
 * attempt: what is closed, what is aborted, and that no result is told before the kernel can
 * deliver nothing of it any more.
 */
#include "call_world.h"
#include "unit/test.h"

static struct world world;

TEST_FIXTURE(begin)
{
    world_begin(&world, 16, 16);
}

TEST_FIXTURE(end)
{
    world_end(&world);
}

enum stage { LOOKING_UP, LOOKING_UP_TCP, CONNECTING, ASKING_TCP, ASKING_UDP, RESTING, STAGES };

/* Takes a new attempt to this stage; nothing is left to do then. */
static void bring_to(enum stage stage)
{
    world_play(&world, "start 7 0; asked 2 6");
    switch (stage) {
    case LOOKING_UP:
        return;
    case LOOKING_UP_TCP:
        world_play(&world, "unreachable 111; connect 111; open; asked-tcp 2 6");
        return;
    case CONNECTING:
    case ASKING_TCP:
        world_play(&world, "port 700; connect 700");
        if (stage == CONNECTING)
            return;
        world_play(&world, "open; sent 0");
        return;
    case ASKING_UDP:
    case RESTING:
        world_play(&world, "port 0; asked 2 17");
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
TEST(test_client_end__deadline_in_each_phase)
{
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
            world_play(&world, "no-result; abort");
        }
        world_expect_result(&world, 7, is_sent ? CLIENT_UNKNOWN : CLIENT_UNDELIVERED, 0);
        if (has_connection((enum stage)stage) && !is_written((enum stage)stage))
            world_expect_disconnect(&world, world.connection);
        world_expect_nothing(&world);
        assert_int_equal(rpc_client_count(world.client), 0);
        world_play(&world, "void-udp 800; void; no-result");
    }
}

/* What was wanted but not yet taken is wanted no more. */
TEST(test_client_end__deadline_before_anything_was_sent)
{
    world_start(&world, 7, 0);
    world.now_ns += 6000 * WORLD_MS;
    rpc_client_tick(world.client, world.now_ns);
    rpc_client_check(world.client);
    world_play(&world, "nothing; undelivered 7 0");

    /* A connection that the wire never heard of is not closed either. */
    world_play(&world, "start 7 0; asked 2 6; port 700");
    world.now_ns += 6000 * WORLD_MS;
    rpc_client_tick(world.client, world.now_ns);
    rpc_client_check(world.client);
    world_play(&world, "nothing; undelivered 7 0");

    /* The message was wanted, but never handed over: that is proof. */
    bring_to(CONNECTING);
    world_connected(&world, true);
    world.now_ns += 6000 * WORLD_MS;
    rpc_client_tick(world.client, world.now_ns);
    world_play(&world, "close; nothing; undelivered 7 0");
}

/* The result and the closing of the connection may be taken in either order. */
TEST(test_client_end__cancel_in_each_phase)
{
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
    world_play(&world, "cancel 7; nothing");
}

TEST(test_client_end__cancel_of_one_that_has_ended)
{
    bring_to(ASKING_TCP);
    uint64_t connection = world.connection;
    world_play(&world, "void; cancel 7; no-result");
    /* The same id again, while the old connection is still open: the new one is meant. */
    world_start(&world, 7, 0);
    world_expect_connect(&world, 700); /* the port is still known */
    world_expect_disconnect(&world, connection);
    world_play(&world, "cancel 7; close; no-result");
}

/* Nobody needs it any more: what waits for no answer over TCP ends at once. */
TEST(test_client_end__finish_in_each_phase)
{
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
TEST(test_client_end__finish_awaits_a_last_answer)
{
    bring_to(ASKING_TCP);
    rpc_client_finish(world.client, 7, world.now_ns + 2000 * WORLD_MS, world.now_ns);
    world_play(&world, "nothing; void; answered 7 1; close");

    world.now_ns += 130000 * WORLD_MS; /* the cache forgets the port */
    bring_to(ASKING_TCP);
    rpc_client_finish(world.client, 7, world.now_ns + 2000 * WORLD_MS, world.now_ns);
    world.now_ns += 1999 * WORLD_MS;
    rpc_client_tick(world.client, world.now_ns);
    world_expect_nothing(&world);
    world.now_ns += WORLD_MS;
    rpc_client_tick(world.client, world.now_ns);
    world_play(&world, "no-result; abort; unknown 7 0");

    world.now_ns += 130000 * WORLD_MS; /* the cache forgets the port */
    bring_to(ASKING_TCP);
    rpc_client_finish(world.client, 7, world.now_ns + 2000 * WORLD_MS, world.now_ns);
    world_play(&world, "lose; unknown 7 0; nothing");

    world.now_ns += 130000 * WORLD_MS; /* the cache forgets the port */
    bring_to(ASKING_TCP);
    rpc_client_finish(world.client, 7, world.now_ns, world.now_ns); /* at once */
    world_play(&world, "no-result; abort; unknown 7 0");
    assert_int_equal(rpc_client_count(world.client), 0);
}

TEST_MAIN(begin, end, NULL, NULL)

/*
 * test_client_fence.c -- with a shared store nothing leaves before a commit that began after it was
 * due (docs/decisions/025): look-ups, connections, calls and their repeats wait to be released;
 * closing never waits.
 */
#include "call_world.h"
#include "unit/test.h"

static const struct lease shared = {.is_shared = true};
static struct world world;

TEST_FIXTURE(begin)
{
    world_begin(&world, 16, 16);
    rpc_client_free(world.client);
    struct rpc_client_limits limits = {
        .attempts_max = 16, .connections_max = 16, .bytes_max = 1 << 20, .lease = &shared};
    world.client = rpc_client_new(&limits, 1, 42);
    assert_non_null(world.client);
}

TEST_FIXTURE(end)
{
    world_end(&world);
}

static void start(uint64_t id, enum client_way way)
{
    struct client_attempt attempt = world_attempt(&world, id, 1);
    attempt.way = way;
    assert_true(rpc_client_start(world.client, &attempt, world.now_ns));
}

/* Something is due, nothing leaves; a commit begins and is durable. */
static void commit(void)
{
    assert_true(rpc_client_is_due(world.client));
    world_expect_nothing(&world);
    uint64_t ticket = rpc_client_ask(world.client);
    assert_false(rpc_client_is_due(world.client));
    world_expect_nothing(&world);
    rpc_client_release(world.client, ticket);
    rpc_client_check(world.client);
}

static void pass_quietly(uint64_t ms)
{
    world.now_ns += ms * WORLD_MS;
    rpc_client_tick(world.client, world.now_ns);
}

TEST(test_client_fence__every_step_over_udp)
{
    start(7, CLIENT_UDP_FIRST);
    commit();
    world_play(&world, "asked 2 17; port 800");
    commit();
    world_play(&world, "sent-udp 800 0; void-udp 800; answered 7 1");
}

TEST(test_client_fence__a_repeat_needs_a_commit_of_its_own)
{
    start(7, CLIENT_UDP_FIRST);
    commit();
    world_play(&world, "asked 2 17; port 800");
    commit();
    world_expect_message_udp(&world, 800, 0);
    assert_false(rpc_client_is_due(world.client));
    pass_quietly(1000);
    commit();
    world_play(&world, "sent-udp 800 0; void-udp 800; answered 7 1");
}

/* A store that takes long does not put it off again and again. */
TEST(test_client_fence__what_is_due_stays_due)
{
    start(7, CLIENT_UDP_FIRST);
    uint64_t ticket = rpc_client_ask(world.client);
    pass_quietly(400);
    assert_false(rpc_client_is_due(world.client));
    rpc_client_release(world.client, ticket);
    world_play(&world, "asked 2 17; port 800");
    ticket = rpc_client_ask(world.client);
    pass_quietly(1000);
    rpc_client_release(world.client, ticket);
    world_play(&world, "sent-udp 800 0; void-udp 800; answered 7 1");
}

/* A commit that began before says nothing of what is due now. */
TEST(test_client_fence__an_older_commit_does_not_count)
{
    start(7, CLIENT_UDP_FIRST);
    uint64_t ticket = rpc_client_ask(world.client);
    start(8, CLIENT_UDP_FIRST);
    rpc_client_release(world.client, ticket);
    world_expect_question(&world, 2, 17);
    commit();
    world_play(&world, "asked 2 17; cancel 7; cancel 8");
}

/* The second way of a look-up becomes due while the first one waits: the others do not wait for
 * that. */
TEST(test_client_fence__what_is_due_later_keeps_nobody_waiting)
{
    start(7, CLIENT_TCP_FIRST);
    pass_quietly(500);
    start(8, CLIENT_TCP_FIRST);
    uint64_t ticket = rpc_client_ask(world.client);
    pass_quietly(500);
    assert_true(rpc_client_is_due(world.client));
    rpc_client_release(world.client, ticket);
    rpc_client_check(world.client);
    world_play(&world, "asked 2 6; nothing; cancel 7; cancel 8");
}

TEST(test_client_fence__connections_wait_and_closing_does_not)
{
    start(7, CLIENT_TCP_FIRST);
    commit();
    world_play(&world, "asked 2 6; port 800");
    commit();
    world_play(&world, "connect 800; open");
    commit();
    world_expect_message_tcp(&world, 0);
    uint64_t connection = world.connection;
    start(8, CLIENT_TCP_FIRST); /* which must not keep the other one from being closed */
    rpc_client_cancel(world.client, 7);
    world_expect_disconnect(&world, connection);
    world_play(&world, "nothing; cancel 8");
}

TEST_MAIN(begin, end, NULL, NULL)

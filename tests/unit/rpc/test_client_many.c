/*
 * test_client_many.c -- what attempts share: the limits of attempts, bytes and connections, whose
 * turn it is, ICMP news for everybody at one port, and the port cache.
 */
#include "call_world.h"
#include "unit/test.h"

static struct world world;
static struct packet answer;

/* An attempt at host `host` with the id `host`. */
static void start_at(uint32_t host, uint16_t port_hint)
{
    struct client_attempt attempt = world_attempt(&world, host, 1);
    attempt.to = world_host(host);
    attempt.port_hint = port_hint;
    assert_true(rpc_client_start(world.client, &attempt, world.now_ns));
}

static struct client_action next(enum client_action_kind kind)
{
    struct client_action action;
    assert_true(rpc_client_next_action(world.client, &action));
    assert_int_equal(action.kind, kind);
    rpc_client_check(world.client);
    return action;
}

/* Starts at hosts 1 to count; then each portmapper names port 700. */
static void start_all(uint32_t count)
{
    uint32_t xids[16];
    for (uint32_t host = 1; host <= count; host++) {
        start_at(host, 0);
        world_expect_question(&world, 2, 6);
        xids[host - 1] = world.xid;
    }
    for (uint32_t host = 1; host <= count; host++) {
        world_put_accepted(&answer, xids[host - 1], PACKET_SUCCESS);
        packet_put_u32(&answer, 700);
        world_datagram(&world, host, PORTMAPPER, &answer);
    }
}

static void expect_connect_to(uint32_t host)
{
    struct client_action action = next(CLIENT_CONNECT);
    struct address to = world_host(host);
    assert_true(address_equal(&action.to, &to));
    world.connection = action.connection;
}

static void finish(void)
{
    world_play(&world, "open; sent 0; void; close");
}

TEST_FIXTURE(set_up)
{
    world_begin(&world, 16, 16);
}

TEST_FIXTURE(tear_down)
{
    world_end(&world);
}

TEST_WITH(test_client_many__who_waits_gets_its_turn, NULL, tear_down)
{
    world_begin(&world, 16, 2);
    start_all(6);
    expect_connect_to(1);
    uint64_t first = world.connection;
    expect_connect_to(2);
    world_play(&world, "nothing; refuse"); /* host 2 refuses: the next in line */
    expect_connect_to(3);
    finish(); /* an answered one makes room as well */
    expect_connect_to(4);
    rpc_client_cancel(world.client, 5); /* left the line */
    rpc_client_cancel(world.client, 4); /* and one that is connecting */
    world_expect_disconnect(&world, world.connection);
    expect_connect_to(6);
    finish();
    world_expect_nothing(&world);
    world.connection = first;
    finish();
    world_play(&world, "answered 3 1; answered 6 1; answered 1 1; cancel 2");
}

/* Hosts that swallow packets do not keep the only connection from one that answers. */
TEST_WITH(test_client_many__silent_hosts_give_way, NULL, tear_down)
{
    world_begin(&world, 16, 1);
    start_all(3);
    expect_connect_to(1);
    world_play(&world, "pass 1499; nothing");
    uint64_t silent = world.connection;
    world_pass_ms(&world, 1);
    world_expect_disconnect(&world, silent);
    expect_connect_to(2);
    silent = world.connection;
    world_pass_ms(&world, 1500);
    world_expect_disconnect(&world, silent);
    expect_connect_to(3);
    finish();
    world_expect_result(&world, 3, CLIENT_ANSWERED, 1);
    expect_connect_to(1); /* again, at the end of the line */
    world_play(&world, "pass 1500; close");
    expect_connect_to(2);
    rpc_client_cancel(world.client, 1);
    uint64_t alone = world.connection;
    world_pass_ms(&world, 499); /* nobody waits: it goes on until its deadline */
    world_play(&world, "nothing; pass 1");
    world_expect_disconnect(&world, alone);
    world_expect_result(&world, 2, CLIENT_UNDELIVERED, 0);
}

/* Waiting for a turn until the deadline is undelivered, and leaves no trace. */
TEST_WITH(test_client_many__deadline_while_waiting_for_a_turn, NULL, tear_down)
{
    world_begin(&world, 16, 1);
    start_all(2);
    expect_connect_to(1);
    world_play(&world, "open; sent 0; pass 5000; close; nothing; undelivered 2 0; unknown 1 0");
}

/* Many leave their portmapper's connection at once; each gets one to its service. */
TEST_WITH(test_client_many__from_portmapper_to_service_within_the_limit, NULL, tear_down)
{
    world_begin(&world, 16, 4);
    uint64_t connections[4];
    uint32_t xids[4];
    for (uint32_t host = 1; host <= 4; host++) {
        start_at(host, 0);
        world_expect_question(&world, 2, 6);
        struct address address = world_host(host);
        rpc_client_unreachable(world.client, &address, PORTMAPPER, world.now_ns);
        world_expect_connect(&world, PORTMAPPER);
        connections[host - 1] = world.connection;
        world_play(&world, "open; asked-tcp 2 6");
        xids[host - 1] = world.xid;
    }
    for (uint32_t host = 1; host <= 4; host++) {
        world.connection = connections[host - 1];
        world.xid = xids[host - 1];
        world_answer_port_tcp(&world, 700);
    }
    for (uint32_t i = 0; i < 4; i++)
        world_expect_disconnect(&world, connections[i]);
    for (uint32_t i = 0; i < 4; i++) {
        expect_connect_to(i + 1);
        connections[i] = world.connection;
    }
    for (uint32_t i = 0; i < 4; i++) {
        world.connection = connections[i];
        finish();
        world_expect_result(&world, i + 1, CLIENT_ANSWERED, 1);
    }
}

/* What was begun is finished first, however much else there is to begin; but nobody who is still to
 * be called waits for the end of a connection that has done its duty. */
TEST(test_client_many__begun_is_finished_first)
{
    start_all(3);
    expect_connect_to(1);
    world_connected(&world, true);
    start_at(4, 0);
    world_expect_message_tcp(&world, 0); /* before the connections of 2 and 3 */
    uint64_t answered = world.connection;
    world_play(&world, "void; answered 1 1");
    expect_connect_to(2);
    expect_connect_to(3);
    world_play(&world, "asked 2 6");
    world_expect_disconnect(&world, answered);
    for (uint64_t id = 2; id <= 4; id++)
        rpc_client_cancel(world.client, id);
    (void)next(CLIENT_DISCONNECT);
    (void)next(CLIENT_DISCONNECT);
}

/* Unless somebody waits for one: with two connections, or room for one more call. */
static void expect_answered_closes_first(uint32_t attempts_max, uint32_t connections_max)
{
    world_begin(&world, attempts_max, connections_max);
    start_all(3);
    expect_connect_to(1);
    uint64_t first = world.connection;
    expect_connect_to(2);
    world.connection = first;
    world_play(&world, "open; sent 0");
    start_at(4, 0);
    world_play(&world, "void");
    world_expect_disconnect(&world, first);
    for (uint64_t id = 1; id <= 4; id++)
        rpc_client_cancel(world.client, id);
    struct client_action action;
    while (rpc_client_next_action(world.client, &action))
        assert_int_equal(action.kind, CLIENT_DISCONNECT);
}

TEST_WITH(test_client_many__connections_are_short, NULL, tear_down)
{
    expect_answered_closes_first(16, 2);
}

TEST_WITH(test_client_many__room_is_short, NULL, tear_down)
{
    expect_answered_closes_first(5, 16);
}

TEST_WITH(test_client_many__limit_of_attempts, NULL, tear_down)
{
    world_begin(&world, 3, 3);
    for (uint32_t host = 1; host <= 3; host++) {
        assert_true(rpc_client_has_room(world.client));
        start_at(host, 0);
    }
    assert_false(rpc_client_has_room(world.client));
    struct client_attempt attempt = world_attempt(&world, 9, 1);
    assert_false(rpc_client_start(world.client, &attempt, world.now_ns));
    rpc_client_check(world.client);
    rpc_client_cancel(world.client, 2);
    assert_true(rpc_client_start(world.client, &attempt, world.now_ns));
    for (uint64_t id = 1; id < 10; id++)
        rpc_client_cancel(world.client, id);
}

/* While there is room, an attempt can be started, whatever lengths its messages have. */
TEST_WITH(test_client_many__limit_of_bytes, NULL, tear_down)
{
    static uint8_t long_message[CLIENT_ARGS_MAX];
    world_begin(&world, 4096, 16);
    uint64_t started = 0;
    for (; rpc_client_has_room(world.client); started++) {
        struct client_attempt attempt = world_attempt(&world, started, CLIENT_MESSAGES_MAX);
        for (uint32_t i = 0; i < CLIENT_MESSAGES_MAX; i++) { /* one of each size class */
            uint32_t len = 16U << (i + started) % 8;
            attempt.messages[i] = (struct bytes){long_message, len};
        }
        assert_true(rpc_client_start(world.client, &attempt, world.now_ns));
    }
    assert_in_range(started, 16, 4095); /* it was not the limit of attempts */

    /* One that does not fit leaves nothing behind, wherever it ran out. */
    struct client_attempt attempt = world_attempt(&world, 9999, CLIENT_MESSAGES_MAX);
    for (uint32_t i = 0; i < CLIENT_MESSAGES_MAX; i++)
        attempt.messages[i] = (struct bytes){long_message, sizeof long_message};
    while (rpc_client_start(world.client, &attempt, world.now_ns))
        attempt.id++;
    rpc_client_check(world.client);
    for (uint64_t id = 0; id < started; id++)
        rpc_client_cancel(world.client, id);
    for (uint64_t id = 9999; id < attempt.id; id++)
        rpc_client_cancel(world.client, id);
}

/* An empty message is a message. */
TEST_WITH(test_client_many__messages_without_arguments, NULL, tear_down)
{
    world_begin(&world, 4, 4);
    struct client_attempt attempt = world_attempt(&world, 1, 1);
    attempt.messages[0] = (struct bytes){0};
    assert_true(rpc_client_start(world.client, &attempt, world.now_ns));
    world_play(&world, "asked 2 6; port 700; connect 700; open");
    struct client_action action = next(CLIENT_WRITE);
    assert_int_equal(action.bytes.len, 44);
    world.xid = packet_xid(action.bytes.at + 4, action.bytes.len - 4);
    world_play(&world, "void; close; answered 1 1");
}

/* One ICMP message is news for everybody who asked there, and for nobody else. */
TEST_WITH(test_client_many__unreachable_is_told_to_everybody, NULL, tear_down)
{
    world_begin(&world, 64, 64);
    struct address host = world_host(1);
    for (uint32_t id = 0; id < 20; id++) {
        struct client_attempt attempt = world_attempt(&world, id, 1);
        attempt.to = world_host(id % 2 == 0 ? 1 : 2);
        attempt.port_hint = 12049;
        assert_true(rpc_client_start(world.client, &attempt, world.now_ns));
        world_expect_question(&world, 2, 6);
    }
    rpc_client_unreachable(world.client, &host, PORTMAPPER, world.now_ns);
    rpc_client_check(world.client);
    struct client_action action;
    uint32_t count = 0;
    for (; rpc_client_next_action(world.client, &action); count++) {
        assert_int_equal(action.kind, CLIENT_CONNECT);
        assert_int_equal(action.port, PORTMAPPER);
        assert_true(address_equal(&action.to, &host));
    }
    assert_int_equal(count, 10);
    for (uint32_t id = 0; id < 20; id++)
        rpc_client_cancel(world.client, id);
    while (rpc_client_next_action(world.client, &action))
        assert_int_equal(action.kind, CLIENT_DISCONNECT);
}

/* ---- the port cache ---- */

/* One attempt over a port that is looked up, which leaves it in the cache. */
static void fill_cache(uint16_t port)
{
    world_play(&world, "start 1 0; asked 2 6");
    world_answer_port(&world, port);
    world_expect_connect(&world, port);
    finish();
    world_expect_result(&world, 1, CLIENT_ANSWERED, 1);
}

static void expect_looked_up(void)
{
    world_play(&world, "start 2 0; asked 2 6; cancel 2");
}

TEST(test_client_many__a_port_is_known_for_120_s)
{
    fill_cache(700);
    world_play(&world, "pass 119999; start 2 0; connect 700"); /* at once */
    finish();
    world_play(&world, "answered 2 1; pass 1"); /* being used does not prolong it */
    expect_looked_up();

    fill_cache(701);
    struct address host = world_host(2);
    rpc_client_host_restarted(world.client, &host); /* another one */
    world_play(&world, "start 2 0; connect 701; cancel 2; close");
    host = world_host(1);
    rpc_client_host_restarted(world.client, &host);
    expect_looked_up();
}

TEST(test_client_many__a_known_port_dies_with_the_first_failure)
{
    for (uint32_t way = 0; way < 5; way++) {
        fill_cache(700);
        world_play(&world, "start 2 0; connect 700");
        if (way == 0) {
            world_connected(&world, false); /* refused */
        } else if (way == 1) {
            world_pass_ms(&world, 1500); /* no connection: looked up again */
            world_play(&world, "close; asked 2 6");
        } else {
            world_play(&world, "open; sent 0");
            if (way == 2)
                world_lost(&world);
            else if (way == 3)
                world_pass_ms(&world, 5000); /* no answer */
            if (way == 4) { /* somebody else is there now: looked up, and then answered */
                world_put_accepted(&answer, world.xid, PACKET_PROG_UNAVAIL);
                world_record(&world, &answer);
                world_play(&world, "close; no-result");
            }
        }
        if (way == 3) {
            world_play(&world, "close; unknown 2 0");
        }
        rpc_client_cancel(world.client, 2);
        expect_looked_up();
    }
}

/* A cached UDP port is called over UDP. */
TEST(test_client_many__a_known_udp_port)
{
    for (uint32_t i = 0; i < 2; i++) {
        world_start(&world, 1, 0);
        if (i == 0) {
            world_play(&world, "asked 2 6; port 0; asked 2 17; port 800");
        }
        world_play(&world, "sent-udp 800 0; void-udp 800; answered 1 1");
    }
}

TEST_MAIN(set_up, tear_down, NULL, NULL)

/*
 * test_client_way.c -- which way a call takes: TCP or UDP first, what is known of the other one,
 * calls from the listening socket, calls that are one way, the answer that comes back with the
 * result, and hosts whose portmapper must be asked over the transport in question. Move by move, as
 * in test_client.c.
 */
#include "call_world.h"
#include "unit/test.h"

static struct world world;
static struct packet answer;

TEST_FIXTURE(begin)
{
    world_begin(&world, 16, 16);
}

TEST_FIXTURE(end)
{
    world_end(&world);
}

static struct client_attempt attempt_of(uint64_t id, enum client_way way)
{
    struct client_attempt attempt = world_attempt(&world, id, 1);
    attempt.way = way;
    return attempt;
}

static struct client_attempt one_way(enum client_way way, uint16_t sent_port)
{
    struct client_attempt attempt = attempt_of(0, way);
    attempt.is_one_way = true;
    attempt.from_listener = true;
    attempt.sent_port = sent_port;
    return attempt;
}

static void start(const struct client_attempt *attempt)
{
    assert_true(rpc_client_start(world.client, attempt, world.now_ns));
    rpc_client_check(world.client);
}

TEST(test_client_way__udp_first)
{
    struct client_attempt attempt = attempt_of(7, CLIENT_UDP_FIRST);
    start(&attempt);
    world_play(&world, "asked 2 17; port 800; sent-udp 800 0; void-udp 800; answered 7 1");
    /* The port is known now, and used. */
    start(&attempt);
    world_play(&world, "sent-udp 800 0; void-udp 800; answered 7 1");
}

TEST(test_client_way__udp_first_where_only_tcp_is_registered)
{
    struct client_attempt attempt = attempt_of(7, CLIENT_UDP_FIRST);
    start(&attempt);
    world_play(&world, "asked 2 17; port 0; asked 2 6; port 700; connect 700; open; sent 0; "
                       "void; close; answered 7 1");
    /* Both are known: that it is not on UDP for 10 s, its TCP port for longer. */
    start(&attempt);
    world_play(&world, "connect 700; cancel 7; close; pass 10000");
    start(&attempt);
    world_play(&world, "asked 2 17; cancel 7");
}

/* That a program is on UDP says nothing of TCP, which is asked for first. */
TEST(test_client_way__a_known_udp_port_is_not_a_reason_to_avoid_tcp)
{
    struct client_attempt attempt = attempt_of(7, CLIENT_UDP_FIRST);
    start(&attempt);
    world_play(&world, "asked 2 17; port 800; sent-udp 800 0; void-udp 800; answered 7 1");
    attempt.way = CLIENT_TCP_FIRST;
    start(&attempt);
    world_play(&world, "asked 2 6; port 700; connect 700; cancel 7; close");
    /* Now both are known, each to whom it concerns. */
    attempt.way = CLIENT_UDP_FIRST;
    start(&attempt);
    world_play(&world, "sent-udp 800 0; cancel 7");
}

TEST(test_client_way__only_calls_leave_from_the_listener)
{
    struct client_action action;
    struct client_attempt attempt = attempt_of(7, CLIENT_UDP_FIRST);
    attempt.from_listener = true;
    start(&attempt);
    assert_true(rpc_client_next_action(world.client, &action));
    assert_int_equal(action.port, PORTMAPPER);
    assert_false(action.from_listener);
    world.xid = packet_xid(action.bytes.at, action.bytes.len);
    world_answer_port(&world, 800);
    for (uint32_t i = 0; i < 2; i++) { /* also when it is repeated */
        assert_true(rpc_client_next_action(world.client, &action));
        assert_int_equal(action.kind, CLIENT_DATAGRAM);
        assert_int_equal(action.port, 800);
        assert_true(action.from_listener);
        assert_true(address_equal(&action.local, &attempt.local));
        world_pass_ms(&world, i == 0 ? 1000 : 0);
    }
    world.xid = packet_xid(action.bytes.at, action.bytes.len);
    world_play(&world, "void-udp 800; answered 7 1");

    attempt.from_listener = false;
    start(&attempt);
    assert_true(rpc_client_next_action(world.client, &action));
    assert_int_equal(action.port, 800);
    assert_false(action.from_listener);
    rpc_client_cancel(world.client, 7);
    rpc_client_host_restarted(world.client, &attempt.to);

    attempt.from_listener = true; /* has no meaning over TCP */
    attempt.way = CLIENT_TCP_FIRST;
    start(&attempt);
    world_play(&world, "asked 2 6; port 700");
    assert_true(rpc_client_next_action(world.client, &action));
    assert_int_equal(action.kind, CLIENT_CONNECT);
    assert_false(action.from_listener);
    rpc_client_cancel(world.client, 7);
    world_expect_disconnect(&world, action.connection);
}

/* The body of the last answer comes with the result. */
TEST(test_client_way__the_answer_comes_back)
{
    static const struct {
        uint32_t answer_len, kept_len;
    } lengths[] = {{0, 0},
                   {16, 16},
                   {CLIENT_RESULT_MAX, CLIENT_RESULT_MAX},
                   {CLIENT_RESULT_MAX + 4, 0},
                   {2000, 0}};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct client_attempt attempt = world_attempt(&world, 7, 2);
        attempt.way = CLIENT_UDP_FIRST;
        start(&attempt);
        if (i == 0) {
            world_play(&world, "asked 2 17; port 800");
        }
        for (uint32_t message = 0; message < 2; message++) {
            world_expect_message_udp(&world, 800, message);
            world_put_accepted(&answer, world.xid, PACKET_SUCCESS);
            uint32_t len = message == 0 ? 8 : lengths[i].answer_len;
            for (uint32_t j = 0; j < len; j += 4)
                packet_put_u32(&answer, message * 1000 + j);
            world_datagram(&world, 1, 800, &answer);
        }
        struct client_result result;
        assert_true(rpc_client_next_result(world.client, &result));
        assert_int_equal(result.outcome, CLIENT_ANSWERED);
        assert_int_equal(result.body.len, lengths[i].kept_len);
        for (uint32_t j = 0; j < result.body.len; j += 4)
            assert_int_equal(load_be32(result.body.at + j), 1000 + j);
    }
}

/* Whether some message may have arrived twice is known (R-DRC-3 needs it). Over UDP it always may:
 * the network repeats datagrams, too. */
TEST(test_client_way__repeats_are_told)
{
    static const struct {
        bool is_resent, is_refused;
    } cases[] = {{false, false}, {true, false}, {false, true}};
    struct client_attempt attempt = attempt_of(7, CLIENT_UDP_FIRST);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        start(&attempt);
        if (i == 0) {
            world_play(&world, "asked 2 17; port 800");
        }
        world_expect_message_udp(&world, 800, 0);
        if (cases[i].is_resent) {
            world_play(&world, "pass 1000; sent-udp 800 0");
        }
        if (cases[i].is_refused) { /* by whoever has that port now: it was not executed there */
            world_put_accepted(&answer, world.xid, PACKET_PROG_UNAVAIL);
            world_datagram(&world, 1, 800, &answer);
            world_play(&world, "pass 500; asked 2 17; port 800; sent-udp 800 0");
        }
        world_answer_void_udp(&world, 800);
        struct client_result result;
        assert_true(rpc_client_next_result(world.client, &result));
        assert_int_equal(result.outcome, CLIENT_ANSWERED);
        assert_true(result.is_repeated);
    }
    attempt = attempt_of(8, CLIENT_TCP_FIRST);
    start(&attempt);
    world_play(&world, "asked 2 6; port 801; connect 801; open; sent 0; void");
    struct client_result result;
    assert_true(rpc_client_next_result(world.client, &result));
    assert_false(result.is_repeated);
    world_expect_disconnect(&world, world.connection);
}

TEST(test_client_way__one_way_over_udp_leaves_once)
{
    struct client_attempt attempt = one_way(CLIENT_UDP_ONLY, 900);
    start(&attempt);
    world_play(&world, "asked 2 17; port 800; sent-udp 800 0; no-result");
    assert_int_equal(rpc_client_count(world.client), 0);
    world_answer_void_udp(&world, 800); /* nobody listens to it */
    start(&attempt);                    /* the port is known */
    world_play(&world, "sent-udp 800 0; no-result");
}

TEST(test_client_way__one_way_where_it_is_already)
{
    struct client_attempt attempt = one_way(CLIENT_UDP_ONLY, 800);
    start(&attempt);
    world_play(&world, "asked 2 17; port 800; nothing; no-result");
    start(&attempt);
    world_play(&world, "nothing; no-result");
    attempt.sent_port = 801; /* somebody else at the same host */
    start(&attempt);
    world_play(&world, "sent-udp 800 0; no-result");
}

/* It is not asked about on TCP, nor over TCP, and not again for a while. */
TEST(test_client_way__one_way_that_is_not_registered)
{
    struct client_attempt attempt = one_way(CLIENT_UDP_ONLY, 900);
    start(&attempt);
    world_play(&world, "asked 2 17; port 0; nothing; no-result");
    start(&attempt);
    world_play(&world, "nothing; no-result");
    /* Others ask: "not registered" is "not yet" for them. */
    struct client_attempt other = attempt_of(7, CLIENT_UDP_FIRST);
    start(&other);
    world_play(&world, "asked 2 17; cancel 7; pass 10000");
    start(&attempt);
    world_play(&world, "asked 2 17; port 800; sent-udp 800 0; no-result");
}

TEST(test_client_way__one_way_at_a_silent_portmapper)
{
    struct client_attempt attempt = one_way(CLIENT_UDP_ONLY, 900);
    start(&attempt);
    world_play(
        &world,
        "asked 2 17; pass 400; asked 2 17; pass 600; asked 2 17"); /* where others would try TCP */
    world_play(&world, "pass 1000; nothing; no-result");
    assert_int_equal(rpc_client_count(world.client), 0);
    start(&attempt);
    world_play(&world, "nothing; no-result");
}

TEST(test_client_way__one_way_without_a_portmapper)
{
    struct client_attempt attempt = one_way(CLIENT_UDP_ONLY, 900);
    start(&attempt);
    world_play(&world, "asked 2 17; unreachable 111; nothing; no-result");
    assert_int_equal(rpc_client_count(world.client), 0);
}

TEST(test_client_way__one_way_over_tcp)
{
    struct client_attempt attempt = one_way(CLIENT_TCP_FIRST, 0);
    start(&attempt);
    world_play(&world, "asked 2 6; port 700; connect 700; open; sent 0; void; close; no-result");
    assert_int_equal(rpc_client_count(world.client), 0);

    /* A port that is no longer right is asked for again: nothing has left. */
    start(&attempt);
    world_play(&world, "connect 700; refuse; pass 500; asked 2 6; port 701; connect 701; open; "
                       "sent 0; lose"); /* it has left: not a second time */
    world_play(&world, "nothing; no-result");
    assert_int_equal(rpc_client_count(world.client), 0);

    /* Nor is a port that its portmapper has just named tried twice. */
    start(&attempt);
    world_play(&world, "asked 2 6; port 701; connect 701; refuse; nothing; no-result");
}

TEST(test_client_way__one_way_over_tcp_that_is_never_answered)
{
    struct client_attempt attempt = one_way(CLIENT_TCP_FIRST, 0);
    start(&attempt);
    world_play(&world, "asked 2 6; port 700; connect 700; open; sent 0; pass 4999; pass 1; "
                       "close; no-result");
}

/* A quarter as many as the others, and beside them: neither kind keeps the other waiting. */
TEST(test_client_way__one_way_calls_have_room_of_their_own)
{
    struct client_attempt attempt = one_way(CLIENT_UDP_ONLY, 900);
    for (uint32_t i = 0; i < 4; i++) {
        attempt.to = world_host(10 + i);
        start(&attempt);
    }
    assert_false(rpc_client_start(world.client, &attempt, world.now_ns));
    for (uint64_t i = 0; i < 16; i++) {
        assert_true(rpc_client_has_room(world.client));
        struct client_attempt other = attempt_of(i, CLIENT_TCP_FIRST);
        start(&other);
    }
    assert_false(rpc_client_has_room(world.client));
    assert_int_equal(rpc_client_awaited(world.client), rpc_client_max(world.client));
    for (uint64_t i = 0; i < 16; i++)
        rpc_client_cancel(world.client, i); /* cancels none of the others, whose id is 0 too */
    assert_int_equal(rpc_client_count(world.client), 4);
    assert_int_equal(rpc_client_awaited(world.client), 0);
    for (uint32_t i = 0; i < 4; i++) {
        struct client_action action;
        assert_true(rpc_client_next_action(world.client, &action));
        rpc_client_unreachable(world.client, &action.to, PORTMAPPER, world.now_ns);
    }
    world_expect_no_result(&world);
    start(&attempt); /* known to be absent */
}

TEST(test_client_way__one_way_calls_leave_while_silent_hosts_take_all_the_others)
{
    for (uint64_t i = 0; i < 16; i++) {
        struct client_attempt other = attempt_of(i, CLIENT_TCP_FIRST);
        start(&other);
        world_play(&world, "asked 2 6");
    }
    assert_false(rpc_client_has_room(world.client));
    struct client_attempt attempt = one_way(CLIENT_TCP_FIRST, 0);
    attempt.to = world_host(10);
    start(&attempt);
    struct client_action action;
    assert_true(rpc_client_next_action(world.client, &action));
    assert_true(address_equal(&action.to, &attempt.to));
    for (uint64_t i = 0; i < 16; i++)
        rpc_client_cancel(world.client, i);
    rpc_client_unreachable(world.client, &attempt.to, PORTMAPPER, world.now_ns);
    world_play(&world, "connect 111; refuse");
}

TEST(test_client_way__numbers_are_nobody_elses)
{
    uint32_t xid = rpc_client_take_xid(world.client);
    assert_int_not_equal(rpc_client_take_xid(world.client), xid);
    world_play(&world, "start 7 0; asked 2 6");
    assert_int_not_equal(world.xid, xid);
    assert_int_not_equal(world.xid, xid + 1);
    rpc_client_cancel(world.client, 7);
}

static int compare(const void *a, const void *b)
{
    uint32_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x < y ? -1 : x > y;
}

/* Somebody who was called, or who watches the wire for a while, knows many xids: nothing follows
 * for the others. None comes twice, or an old answer could be taken for a new one. */
TEST(test_client_way__xids_cannot_be_foretold)
{
    enum { COUNT = 1 << 16, NEAR = 1 << 16 };
    static uint32_t xids[COUNT];
    uint32_t near = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        xids[i] = rpc_client_take_xid(world.client);
        near += i > 0 && xids[i] - xids[i - 1] + NEAR < 2 * NEAR;
    }
    assert_true(near < 16); /* two of 65,536 by chance */
    qsort(xids, COUNT, sizeof xids[0], compare);
    for (uint32_t i = 1; i < COUNT; i++)
        assert_int_not_equal(xids[i], xids[i - 1]);
    const struct rpc_client_limits limits = {
        .attempts_max = 1, .connections_max = 1, .bytes_max = 1 << 20};
    struct rpc_client *other = rpc_client_new(&limits, 0xfffffff0, 43);
    struct rpc_client *same = rpc_client_new(&limits, 0xfffffff0, 42);
    assert_int_not_equal(rpc_client_take_xid(other), rpc_client_take_xid(same));
    rpc_client_free(other);
    rpc_client_free(same);
}

/* What comes to the port that we listen on was not asked for from there: its number is known. */
TEST(test_client_way__an_answer_to_where_we_listen_is_nobodys)
{
    struct address from = world_host(1);
    world_play(&world, "start 7 0; asked 2 6");
    world_put_accepted(&answer, world.xid, PACKET_SUCCESS);
    packet_put_u32(&answer, 700);
    rpc_client_datagram_at_listener(world.client, &from, PORTMAPPER,
                                    (struct bytes){answer.bytes, answer.len}, world.now_ns);
    world_play(&world, "nothing; no-result");
    rpc_client_datagram(world.client, &from, PORTMAPPER, (struct bytes){answer.bytes, answer.len},
                        world.now_ns);
    world_play(&world, "connect 700");
    rpc_client_cancel(world.client, 7);
    world_play(&world, "close");
}

/* ---- IPv6: the portmapper answers for the way of the question ---- */

static void start_ipv6(void)
{
    struct client_attempt attempt = world_attempt(&world, 7, 1);
    attempt.to = world_host6(1);
    assert_true(rpc_client_start(world.client, &attempt, world.now_ns));
    world_expect_question(&world, 4, 17);
    assert_memory_equal(world.args + 8, "\0\0\0\4udp6", 8);
}

/* Silent over UDP for a second. */
static void start_ipv6_slow(void)
{
    start_ipv6();
    world_play(&world, "pass 400; asked 4 17; pass 600");
}

/* GETADDR is answered, over UDP or over the connection. */
static void answer_ipv6(const char *uaddr, bool is_udp)
{
    struct address from = world_host6(1);
    world_put_accepted(&answer, world.xid, PACKET_SUCCESS);
    packet_put_text(&answer, uaddr);
    if (is_udp)
        rpc_client_datagram(world.client, &from, PORTMAPPER,
                            (struct bytes){answer.bytes, answer.len}, world.now_ns);
    else
        world_record(&world, &answer);
}

static void expect_ipv6_udp(void)
{
    struct address from = world_host6(1);
    world_expect_message_udp(&world, 700, 0);
    world_put_accepted(&answer, world.xid, PACKET_SUCCESS);
    rpc_client_datagram(world.client, &from, 700, (struct bytes){answer.bytes, answer.len},
                        world.now_ns);
    world_expect_result(&world, 7, CLIENT_ANSWERED, 1);
}

TEST(test_client_way__ipv6_is_asked_in_version_4)
{
    start_ipv6();
    answer_ipv6("::.2.188", true);
    expect_ipv6_udp();
}

/* From the question over TCP on: it is about TCP. */
static void expect_ipv6_tcp(void)
{
    world_play(&world, "connect 111; open; asked-tcp 4 6");
    assert_memory_equal(world.args + 8, "\0\0\0\4tcp6", 8);
    uint64_t connection = world.connection;
    answer_ipv6("::.2.188", false);
    world_expect_disconnect(&world, connection);
    world_play(&world, "connect 700; open; sent 0; void; close; answered 7 1");
}

TEST(test_client_way__ipv6_on_tcp_only_is_asked_over_tcp)
{
    start_ipv6();
    answer_ipv6("", true);
    expect_ipv6_tcp();
}

TEST(test_client_way__ipv6_portmapper_that_is_silent_over_udp)
{
    start_ipv6_slow();
    expect_ipv6_tcp();
}

/* The answer over UDP comes when the connection is under way, and makes it needless. */
TEST(test_client_way__ipv6_portmapper_that_is_slow_over_udp)
{
    start_ipv6_slow();
    world_expect_connect(&world, PORTMAPPER);
    answer_ipv6("::.2.188", true);
    world_expect_disconnect(&world, world.connection);
    expect_ipv6_udp();
}

/* It comes then, and needs the connection that is under way. */
TEST(test_client_way__ipv6_connection_is_not_opened_twice)
{
    start_ipv6_slow();
    answer_ipv6("", true);
    expect_ipv6_tcp();
}

/* It cannot be asked about TCP: it may be on UDP later, so the questions begin anew each time. */
TEST(test_client_way__ipv6_portmapper_without_tcp)
{
    start_ipv6();
    for (uint32_t i = 0; i < 3; i++) {
        answer_ipv6("", true);
        world_play(&world, "connect 111; refuse; nothing; pass 500; asked 4 17");
    }
    answer_ipv6("::.2.188", true);
    expect_ipv6_udp();
}

TEST_MAIN(begin, end, NULL, NULL)

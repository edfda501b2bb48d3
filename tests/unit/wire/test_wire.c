/*
 * test_wire.c -- TCP, UDP and the outbox as one thing, over real sockets: one port serves both,
 * answers leave when their batch is durable and not before, a full outbox holds calls back, and
 * stopping loses no answer that was promised.
 */
#include "wire/wire.h"

#include "served.h"
#include "unit/test.h"
#include "wire/held.h"
#include "wire/sockaddr.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TURNS_MAX = 5000 };

#define RECORD_LAST UINT32_C(0x80000000)

static const struct rpc_server_limits ample = {.outbox_max = 64, .cache_max = 128};
static struct served s;
static struct wire *wire;
static struct packet call;
static int stream, datagram; /* a client's */

static void turn(void)
{
    (void)uv_run(&s.loop, UV_RUN_NOWAIT);
    wire_flush(wire);
    (void)poll(NULL, 0, 1); /* only so that waiting costs no processor */
}

static void open_wire(const struct rpc_server_limits *limits)
{
    served_open(&s, limits);
    wire = wire_new(&s.loop, s.server, &s.clock, 8);
    assert_non_null(wire);
    assert_int_equal(wire_listen(wire, &s.set, false), 0);
    assert_int_equal(s.set.count, 0); /* all taken over */
    stream = served_client(SOCK_STREAM, "127.0.0.1");
    datagram = served_client(SOCK_DGRAM, "127.0.0.1");
    struct address server = served_address("127.0.0.9");
    struct sockaddr_storage at;
    socklen_t at_len = sockaddr_of(&server, s.port, &at);
    assert_int_equal(connect(stream, (const struct sockaddr *)&at, at_len), 0);
}

static void close_wire(void)
{
    assert_int_equal(close(stream), 0);
    assert_int_equal(close(datagram), 0);
    wire_close(wire);
    served_close(&s);
    wire_free(wire);
}

static void send_record(void)
{
    uint8_t mark[4] = {(uint8_t)(RECORD_LAST >> 24), 0, (uint8_t)(call.len >> 8),
                       (uint8_t)call.len};
    assert_int_equal(send(stream, mark, sizeof mark, MSG_MORE), sizeof mark);
    assert_int_equal(send(stream, call.bytes, call.len, 0), call.len);
}

/* A whole record, if one has come. */
static bool take_record(struct packet_reply *ret)
{
    static uint8_t bytes[1024];
    ssize_t got = recv(stream, bytes, sizeof bytes, MSG_DONTWAIT | MSG_PEEK);
    if (got < 4)
        return false;
    struct packet_reader reader = {bytes, (uint32_t)got, false};
    uint32_t len = packet_get_u32(&reader) & ~RECORD_LAST;
    if (reader.left < len)
        return false;
    assert_int_equal(recv(stream, bytes, 4 + len, 0), 4 + len);
    assert_true(packet_get_reply(bytes + 4, len, ret));
    return true;
}

static bool take_datagram(struct packet_reply *ret)
{
    struct address from;
    uint16_t port;
    return served_take_datagram(datagram, &from, &port, ret);
}

static void expect(bool (*take)(struct packet_reply *), uint32_t xid)
{
    struct packet_reply reply;
    for (uint32_t turns = 0; !take(&reply); turns++) {
        if (turns == TURNS_MAX)
            fail_msg("no answer to call %u", xid);
        turn();
    }
    assert_int_equal(reply.xid, xid);
    assert_true(reply.accepted);
    assert_int_equal(reply.status, PACKET_SUCCESS);
}

static void expect_nothing(void)
{
    struct packet_reply reply;
    for (uint32_t i = 0; i < 20; i++)
        turn();
    assert_false(take_record(&reply));
    assert_false(take_datagram(&reply));
}

/* Until so many answers wait for the store. */
static void wait_for(uint32_t waiting)
{
    for (uint32_t turns = 0; rpc_server_waiting(s.server) != waiting; turns++) {
        if (turns == TURNS_MAX)
            fail_msg("%u answers wait, not %u", rpc_server_waiting(s.server), waiting);
        turn();
    }
}

TEST_FIXTURE(set_up)
{
    open_wire(&ample);
}

TEST_FIXTURE(tear_down)
{
    close_wire();
}

TEST(test_wire__one_port_for_both)
{
    peer_nsm_put_null(&call, 1);
    send_record();
    served_send(&s, datagram, "127.0.0.8", &call);
    expect(take_record, 1);
    expect(take_datagram, 1);
}

/* Of a shared store: who stood still for so long may have been replaced since its commit. */
TEST(test_wire__late_answers_are_dropped)
{
    peer_nsm_put_stat(&call, 1, "host");
    send_record();
    served_send(&s, datagram, "127.0.0.8", &call);
    wait_for(2);
    s.lease.is_shared = true;    /* and was confirmed long ago */
    peer_nsm_put_null(&call, 2); /* NULL depends on no commit */
    served_send(&s, datagram, "127.0.0.8", &call);
    send_record();
    expect(take_datagram, 2);
    expect(take_record, 2);
    served_store(&s);
    expect_nothing();
    assert_int_equal(rpc_server_waiting(s.server), 0);
}

/* P1, over both transports. */
TEST(test_wire__answers_wait_for_the_store)
{
    peer_nsm_put_stat(&call, 1, "host");
    send_record();
    wait_for(1);
    peer_nsm_put_stat(&call, 2, "host");
    served_send(&s, datagram, "127.0.0.8", &call);
    wait_for(2);
    peer_nsm_put_null(&call, 3); /* overtakes: it observes nothing */
    send_record();
    expect(take_record, 3);
    expect_nothing();
    served_store(&s);
    wire_flush(wire);
    expect(take_record, 1);
    expect(take_datagram, 2);
    wait_for(0);
}

/* Back-pressure: a record stays in its connection, a datagram is held. */
TEST_WITH(test_wire__a_full_outbox, NULL, tear_down)
{
    open_wire(&(struct rpc_server_limits){.outbox_max = 2, .cache_max = 64});
    for (uint32_t xid = 1; xid <= 3; xid++) {
        peer_nsm_put_stat(&call, xid, "host");
        send_record();
    }
    wait_for(2);
    peer_nsm_put_stat(&call, 9, "host");
    served_send(&s, datagram, "127.0.0.1", &call);
    expect_nothing();
    served_store(&s);
    expect(take_record, 1);
    expect(take_record, 2);
    expect(take_record, 3); /* let in by the flush that made room */
    expect(take_datagram, 9);
    expect_nothing();
}

/* More than are held: the rest waits in the socket, and nobody has to call again. There are several
 * callers, because one of them has no room for so many answers. */
TEST_WITH(test_wire__many_datagrams_at_a_full_outbox, NULL, tear_down)
{
    enum { CALLERS = 4, EACH = (HELD_MAX + 200) / CALLERS };
    int callers[CALLERS];
    open_wire(&(struct rpc_server_limits){.outbox_max = 2, .cache_max = 64});
    for (uint32_t i = 0; i < CALLERS; i++)
        callers[i] = served_client(SOCK_DGRAM, "127.0.0.1");
    for (uint32_t xid = 0; xid < EACH * CALLERS; xid++) {
        peer_nsm_put_stat(&call, xid, "host");
        served_send(&s, callers[xid % CALLERS], "127.0.0.1", &call);
    }
    wait_for(2);
    expect_nothing();
    served_store(&s);
    assert_int_equal(close(datagram), 0);
    for (uint32_t xid = 0; xid < EACH * CALLERS; xid++) {
        datagram = callers[xid % CALLERS];
        expect(take_datagram, xid);
    }
    for (uint32_t i = 0; i + 1 < CALLERS; i++) /* tear_down closes the last one */
        assert_int_equal(close(callers[i]), 0);
}

TEST(test_wire__quiesced)
{
    peer_nsm_put_stat(&call, 1, "host");
    send_record();
    wait_for(1);
    peer_nsm_put_stat(&call, 2, "host");
    served_send(&s, datagram, "127.0.0.1", &call);
    wait_for(2);
    wire_quiesce(wire);
    peer_nsm_put_null(&call, 3);
    send_record();
    served_send(&s, datagram, "127.0.0.1", &call);
    expect_nothing();
    served_store(&s);
    expect(take_record, 1);
    expect(take_datagram, 2);
    expect_nothing();
}

/* With answers waiting and a connection open: nothing is left behind (served_close asserts it). */
TEST(test_wire__closed_in_the_middle)
{
    peer_nsm_put_stat(&call, 1, "host");
    send_record();
    wait_for(1);
}

TEST_MAIN(set_up, tear_down, NULL, NULL)

/*
 * test_udp.c -- datagrams in and out over real sockets that are bound to no address: every answer
 * comes from the address that was asked, over IPv4 and IPv6, at once or later; too long ones are
 * refused and disturb nobody; bursts longer than a batch are answered to the last one.
 */
#include "served.h"
#include "unit/test.h"
#include "wire/udp.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TURNS_MAX = 5000, DATAGRAM_MAX = 9000 };

static const struct rpc_server_limits ample = {.outbox_max = 2048, .cache_max = 4096};
static struct served s;
static struct udp *udp;
static struct packet call;

/* Only the UDP sockets of the set are used. */
static void open_udp(void)
{
    served_open(&s, &ample);
    udp = udp_new(&s.loop, s.server, &s.clock);
    assert_non_null(udp);
    for (; s.set.count > 0; s.set.count--) {
        struct listen_pair *pair = &s.set.at[s.set.count - 1];
        assert_int_equal(close(pair->tcp_fd), 0);
        assert_int_equal(udp_add(udp, pair->udp_fd, &pair->address, false), 0);
    }
}

static void close_udp(void)
{
    udp_close(udp);
    served_close(&s);
    udp_free(udp);
}

static void turn(void)
{
    struct rpc_reply reply;
    (void)uv_run(&s.loop, UV_RUN_NOWAIT);
    while (rpc_server_next(s.server, s.clock.now_ns, &reply))
        udp_send(udp, reply.route, reply.peer, reply.message);
    udp_flush(udp);
    (void)poll(NULL, 0, 1); /* only so that waiting costs no processor */
}

static int client_at(const char *address)
{
    int fd = served_client(SOCK_DGRAM, address);
    if (fd < 0) {
        print_message("skipped: this machine has no %s\n", address);
        close_udp();
        skip();
    }
    return fd;
}

/* The next answer: to this call, from this address and the server's port. */
static void expect_answer(int fd, uint32_t xid, const char *from, enum packet_accept status)
{
    struct address expected = served_address(from), actual;
    struct packet_reply reply;
    uint16_t port;
    for (uint32_t turns = 0; !served_take_datagram(fd, &actual, &port, &reply); turns++) {
        if (turns == TURNS_MAX)
            fail_msg("no answer to call %u", xid);
        turn();
    }
    assert_int_equal(reply.xid, xid);
    assert_true(reply.accepted);
    assert_int_equal(reply.status, status);
    assert_true(address_equal(&actual, &expected));
    assert_int_equal(port, s.port);
}

static void expect_nothing(int fd)
{
    struct address from;
    uint16_t port;
    struct packet_reply reply;
    for (uint32_t i = 0; i < 20; i++)
        turn();
    assert_false(served_take_datagram(fd, &from, &port, &reply));
}

/* A client that compares would take an answer from elsewhere for somebody else's. */
static void answers_come_from(const char *client, const char *const *asked, uint32_t count)
{
    open_udp();
    int fd = client_at(client);
    for (uint32_t i = 0; i < count; i++) { /* at once */
        peer_nsm_put_null(&call, 10 + i);
        served_send(&s, fd, asked[i], &call);
        expect_answer(fd, 10 + i, asked[i], PACKET_SUCCESS);
    }
    for (uint32_t i = 0; i < count; i++) { /* all of them wait for the store */
        peer_nsm_put_stat(&call, 20 + i, "host");
        served_send(&s, fd, asked[i], &call);
    }
    expect_nothing(fd);
    assert_int_equal(rpc_server_waiting(s.server), count);
    served_store(&s);
    for (uint32_t i = 0; i < count; i++)
        expect_answer(fd, 20 + i, asked[i], PACKET_SUCCESS);
    assert_int_equal(close(fd), 0);
    close_udp();
}

TEST_FIXTURE(set_up)
{
    open_udp();
}

TEST_FIXTURE(tear_down)
{
    close_udp();
}

TEST_WITH(test_udp__answers_come_from_the_address_asked, NULL, NULL)
{
    static const char *const asked[] = {"127.0.0.1", "127.0.0.5", "127.9.8.7", "127.0.0.5"};
    answers_come_from("127.0.0.1", asked, 4);
}

TEST_WITH(test_udp__over_ipv6_too, NULL, NULL)
{
    static const char *const asked[] = {"::1"};
    answers_come_from("::1", asked, 1);
}

/* What the core is told of a caller: both addresses and the port. */
TEST(test_udp__the_server_knows_who_asked_whom)
{
    served_store(&s);
    int fd = client_at("127.0.0.77");
    static const struct peer_nsm_id id = {"srv", "lockd", 100021, 4, 16};
    static const uint8_t priv[PEER_NSM_PRIV_LEN];
    peer_nsm_put_mon(&call, 1, &id, priv);
    served_send(&s, fd, "127.0.0.6", &call);
    while (rpc_server_waiting(s.server) == 0)
        turn();
    struct store_batch batch;
    assert_true(core_take_batch(s.core, &batch));
    /* The record of the registration holds the caller's address, then the one that was asked. */
    static const uint8_t from[] = {127, 0, 0, 77}, asked[] = {127, 0, 0, 6};
    const uint8_t *found = memmem(batch.changes.at, batch.changes.len, from, sizeof from);
    assert_non_null(found);
    assert_non_null(memmem(batch.changes.at, batch.changes.len, asked, sizeof asked));
    rpc_server_stored(s.server, batch.txn, true, s.clock.now_ns, s.clock.wall_ns);
    expect_answer(fd, 1, "127.0.0.6", PACKET_SUCCESS);
    assert_int_equal(close(fd), 0);
}

/* R-DRC-5: up to 9000 bytes are read; what is longer is reported, and the next one is served. */
TEST(test_udp__too_long_a_datagram)
{
    int fd = client_at("127.0.0.1");
    static const uint8_t zeros[DATAGRAM_MAX + 1000];
    static const uint32_t lens[] = {DATAGRAM_MAX, DATAGRAM_MAX + 1, DATAGRAM_MAX + 900};
    for (uint32_t i = 0; i < 3; i++) {
        peer_nsm_put_null(&call, i);
        packet_put_bytes(&call, zeros, lens[i] - call.len);
        served_send(&s, fd, "127.0.0.1", &call);
        if (i == 0) {
            expect_answer(fd, i, "127.0.0.1", PACKET_GARBAGE_ARGS); /* read, and then refused */
            assert_false(served_was_reported(&s, EVENT_TOO_LONG, "127.0.0.1"));
        } else {
            expect_nothing(fd);
            assert_true(served_was_reported(&s, EVENT_TOO_LONG, "127.0.0.1"));
        }
    }
    peer_nsm_put_null(&call, 9);
    served_send(&s, fd, "127.0.0.1", &call);
    expect_answer(fd, 9, "127.0.0.1", PACKET_SUCCESS);
    assert_int_equal(close(fd), 0);
}

/* Not a call: no answer, and no harm. */
TEST(test_udp__no_answer_to_noise)
{
    int fd = client_at("127.0.0.1");
    packet_clear(&call);
    served_send(&s, fd, "127.0.0.1", &call); /* an empty datagram */
    expect_nothing(fd);
    packet_put_text(&call, "hello");
    served_send(&s, fd, "127.0.0.1", &call);
    expect_nothing(fd);
    assert_true(served_was_reported(&s, EVENT_MALFORMED, "127.0.0.1"));
    peer_nsm_put_null(&call, 9);
    served_send(&s, fd, "127.0.0.1", &call);
    expect_answer(fd, 9, "127.0.0.1", PACKET_SUCCESS);
    assert_int_equal(close(fd), 0);
}

/* More than one batch in one wake-up, answers at once and later, from two sockets of ours. */
TEST(test_udp__bursts)
{
    enum { BURST = 150 };
    int fd = client_at("127.0.0.1"), fd6 = served_client(SOCK_DGRAM, "::1");
    for (uint32_t i = 0; i < BURST; i++) {
        peer_nsm_put_null(&call, i);
        served_send(&s, fd, "127.0.0.1", &call);
        if (fd6 >= 0)
            served_send(&s, fd6, "::1", &call);
    }
    for (uint32_t i = 0; i < BURST; i++) {
        expect_answer(fd, i, "127.0.0.1", PACKET_SUCCESS);
        if (fd6 >= 0)
            expect_answer(fd6, i, "::1", PACKET_SUCCESS);
    }
    for (uint32_t i = 0; i < BURST; i++) {
        peer_nsm_put_stat(&call, 1000 + i, "host");
        served_send(&s, fd, "127.0.0.1", &call);
        while (rpc_server_waiting(s.server) < (fd6 >= 0 ? 2 * i : i) + 1)
            turn();
        if (fd6 >= 0)
            served_send(&s, fd6, "::1", &call);
        while (fd6 >= 0 && rpc_server_waiting(s.server) < 2 * i + 2)
            turn();
    }
    served_store(&s); /* in turns through one socket and the other */
    for (uint32_t i = 0; i < BURST; i++) {
        expect_answer(fd, 1000 + i, "127.0.0.1", PACKET_SUCCESS);
        if (fd6 >= 0)
            expect_answer(fd6, 1000 + i, "::1", PACKET_SUCCESS);
    }
    assert_int_equal(close(fd), 0);
    if (fd6 >= 0)
        assert_int_equal(close(fd6), 0);
}

TEST(test_udp__quiesced)
{
    int fd = client_at("127.0.0.1");
    peer_nsm_put_stat(&call, 1, "host");
    served_send(&s, fd, "127.0.0.1", &call);
    while (rpc_server_waiting(s.server) == 0)
        turn();
    udp_quiesce(udp);
    peer_nsm_put_null(&call, 2);
    served_send(&s, fd, "127.0.0.1", &call);
    expect_nothing(fd);
    served_store(&s);
    expect_answer(fd, 1, "127.0.0.1", PACKET_SUCCESS); /* what was taken is answered */
    expect_nothing(fd);
    assert_int_equal(close(fd), 0);
}

TEST_MAIN(set_up, tear_down, NULL, NULL)

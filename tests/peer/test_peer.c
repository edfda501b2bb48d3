/*
 * test_peer.c -- the fake client itself: its bytes, its patience, its bookkeeping.
 *
 * Shown against bytes written down by hand from RFC 5531 and C702, and against a small responder in
 * a thread that cuts its answers into fragments, loses the first datagram, and answers out of
 * order. A checker that is wrong would accuse or acquit the server by mistake.
 */
#include "peer/dial.h"
#include "peer/ledger.h"
#include "peer/load.h"
#include "peer/peer_nsm.h"
#include "unit/test.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

TEST(test_peer__notify_has_the_golden_bytes)
{
    static const uint8_t expected[] = {0x01, 0x02, 0x03, 0x04, 0, 0,   0,   0,   0, 0, 0, 2, 0,
                                       1,    0x86, 0xb8, 0,    0, 0,   1,   0,   0, 0, 6, 0, 0,
                                       0,    0,    0,    0,    0, 0,   0,   0,   0, 0, 0, 0, 0,
                                       0,    0,    0,    0,    3, 's', 'r', 'v', 0, 0, 0, 0, 5};
    static struct packet call;
    peer_nsm_put_notify(&call, 0x01020304, "srv", 5);
    assert_int_equal(call.len, sizeof(expected));
    assert_memory_equal(call.bytes, expected, sizeof(expected));
}

TEST(test_peer__auth_sys_has_the_length_it_says)
{
    static struct packet call;
    struct packet_call header = {.xid = 9, .prog = 1, .vers = 2, .proc = 3, .auth = 1};
    packet_clear(&call);
    packet_put_call(&call, &header);
    struct packet_reader reader = {call.bytes, call.len, false};
    uint32_t len, machine_len;
    packet_get_fixed(&reader, 24);
    assert_int_equal(packet_get_u32(&reader), 1);
    const uint8_t *body = packet_get_opaque(&reader, 400, &len);
    assert_int_equal(packet_get_u32(&reader), 0);
    assert_int_equal(packet_get_u32(&reader), 0);
    assert_true(packet_is_done(&reader));
    struct packet_reader inner = {body, len, false};
    packet_get_u32(&inner);
    packet_get_opaque(&inner, 255, &machine_len);
    packet_get_u32(&inner);
    packet_get_u32(&inner);
    assert_int_equal(packet_get_u32(&inner), 1);
    packet_get_u32(&inner);
    assert_true(packet_is_done(&inner));
}

struct reply_case {
    uint8_t bytes[36];
    uint32_t len;
    bool accepted;
    uint32_t status;
    const char *text;
};

static const struct reply_case reply_cases[] = {
    {{0, 0, 0, 7, 0, 0, 0, 1}, 24, true, PACKET_SUCCESS, "SUCCESS"},
    {{0, 0, 0, 7, 0, 0, 0, 1, [23] = 1}, 24, true, PACKET_PROG_UNAVAIL, "PROG_UNAVAIL"},
    {{0, 0, 0, 7, 0, 0, 0, 1, [23] = 2, [27] = 1, [31] = 1},
     32,
     true,
     PACKET_PROG_MISMATCH,
     "PROG_MISMATCH"},
    {{0, 0, 0, 7, 0, 0, 0, 1, [23] = 3}, 24, true, PACKET_PROC_UNAVAIL, "PROC_UNAVAIL"},
    {{0, 0, 0, 7, 0, 0, 0, 1, [23] = 4}, 24, true, PACKET_GARBAGE_ARGS, "GARBAGE_ARGS"},
    {{0, 0, 0, 7, 0, 0, 0, 1, [23] = 5}, 24, true, PACKET_SYSTEM_ERR, "SYSTEM_ERR"},
    {{0, 0, 0, 7, 0, 0, 0, 1, [11] = 1, [19] = 2, [23] = 2},
     24,
     false,
     PACKET_RPC_MISMATCH,
     "RPC_MISMATCH"},
    {{0, 0, 0, 7, 0, 0, 0, 1, [11] = 1, [15] = 1, [19] = 2},
     20,
     false,
     PACKET_AUTH_ERROR,
     "AUTH_ERROR"},
};

TEST(test_peer__reads_every_reply_and_refuses_cut_ones)
{
    for (size_t i = 0; i < sizeof(reply_cases) / sizeof(reply_cases[0]); i++) {
        const struct reply_case *one = &reply_cases[i];
        struct packet_reply reply;
        assert_true(packet_get_reply(one->bytes, one->len, &reply));
        assert_int_equal(reply.xid, 7);
        assert_int_equal(reply.accepted, one->accepted);
        assert_int_equal(reply.status, one->status);
        assert_string_equal(packet_reply_text(&reply), one->text);
        for (uint32_t len = 0; len < one->len; len++)
            assert_false(packet_get_reply(one->bytes, len, &reply));
        if (one->status != PACKET_SUCCESS || !one->accepted)
            assert_false(packet_get_reply(one->bytes, one->len + 4, &reply));
    }
}

TEST(test_peer__results_have_exactly_their_shape)
{
    static const uint8_t words[12] = {0, 0, 0, 1, 0, 0, 0, 9};
    struct packet_reply reply = {.accepted = true, .status = PACKET_SUCCESS, .body = words};
    uint32_t res = 77, number = 77;
    for (uint32_t len = 0; len <= sizeof(words); len++) {
        reply.body_len = len;
        assert_int_equal(peer_nsm_get_stat_res(&reply, &res, &number), len == 8);
        assert_int_equal(peer_nsm_get_stat(&reply, &number), len == 4);
        assert_int_equal(peer_nsm_is_void(&reply), len == 0);
    }
    reply.body_len = 8;
    assert_true(peer_nsm_get_stat_res(&reply, &res, &number));
    assert_int_equal(res, 1);
    assert_int_equal(number, 9);
}

TEST(test_peer__ledger_accuses_exactly_what_is_wrong)
{
    struct ledger_owner owner = {0};
    struct ledger_keys found = {0};
    ledger_begin(&owner, LEDGER_MON, 1);
    assert_null(ledger_judge(&owner, &found)); /* in flight: not there is right */
    found.version[1] = 1;
    assert_null(ledger_judge(&owner, &found)); /* and there is right */
    ledger_acknowledge(&owner);
    assert_null(ledger_judge(&owner, &found));
    found.version[1] = 0;
    assert_string_equal(ledger_judge(&owner, &found), "an acknowledged registration is lost");
    found.version[1] = 1;
    ledger_begin(&owner, LEDGER_MON, 1);
    ledger_acknowledge(&owner);
    assert_non_null(strstr(ledger_judge(&owner, &found), "another version"));
    found.version[1] = 2;
    ledger_begin(&owner, LEDGER_MON, 2);
    ledger_acknowledge(&owner);
    found.version[2] = 3;
    ledger_begin(&owner, LEDGER_UNMON_ALL, 0);
    assert_null(ledger_judge(&owner, &found));
    found.version[1] = 0;
    assert_non_null(strstr(ledger_judge(&owner, &found), "in part"));
    found.version[2] = 0;
    assert_null(ledger_judge(&owner, &found));
    ledger_acknowledge(&owner);
    found.version[2] = 3;
    assert_string_equal(ledger_judge(&owner, &found), "an acknowledged removal came back");
    ledger_adopt(&owner, &found);
    ledger_begin(&owner, LEDGER_UNMON, 2);
    ledger_acknowledge(&owner);
    assert_non_null(ledger_judge(&owner, &found));
}

/* A server in a thread: answers with a result of one word, the xid. */
struct responder {
    int listen_fd, udp_fd;
    uint16_t port;
    pthread_t thread;
    uint32_t datagrams_seen;
};

static uint32_t put_answer(uint8_t *answer, const uint8_t *call)
{
    memset(answer, 0, 28);
    memcpy(answer, call, 4);
    answer[7] = 1;
    memcpy(answer + 24, call, 4);
    return 28;
}

/* Two calls are awaited, then both are answered, the second first, each in two fragments. */
static void serve_connection(int fd, bool in_fragments)
{
    struct packet calls[2];
    uint8_t out[80];
    for (int i = 0; i < 2; i++)
        if (dial_receive_record(fd, &calls[i], 5000) < 0)
            return;
    for (int i = 1; i >= 0; i--) {
        uint8_t answer[28];
        put_answer(answer, calls[i].bytes);
        if (!in_fragments) {
            (void)dial_send_record(fd, answer, sizeof(answer), 5000);
            continue;
        }
        memset(out, 0, sizeof(out));
        out[3] = 10;
        memcpy(out + 4, answer, 10);
        out[14] = 0x80;
        out[17] = 18;
        memcpy(out + 18, answer + 10, 18);
        for (size_t at = 0; at < 36; at++)
            (void)dial_send(fd, out + at, 1, 5000);
    }
}

static void *respond(void *context)
{
    struct responder *responder = context;
    int fd = accept4(responder->listen_fd, NULL, NULL, SOCK_NONBLOCK);
    serve_connection(fd, true);
    close(fd);
    fd = accept4(responder->listen_fd, NULL, NULL, SOCK_NONBLOCK);
    serve_connection(fd, false);
    close(fd);
    for (int i = 0; i < 2; i++) { /* the first datagram is lost */
        uint8_t call[100], answer[28];
        struct dial_endpoint from;
        if (dial_receive_from(responder->udp_fd, call, sizeof(call), 5000, &from) < 40)
            break;
        responder->datagrams_seen++;
        put_answer(answer, call);
        if (i == 1)
            sendto(responder->udp_fd, answer, sizeof(answer), 0, (struct sockaddr *)&from.at,
                   from.len);
    }
    return NULL;
}

static void start_responder(struct responder *responder)
{
    struct dial_endpoint at = dial_endpoint_v4(INADDR_LOOPBACK, 0);
    responder->listen_fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(responder->listen_fd, (struct sockaddr *)&at.at, at.len), 0);
    assert_int_equal(listen(responder->listen_fd, 4), 0);
    assert_int_equal(getsockname(responder->listen_fd, (struct sockaddr *)&at.at, &at.len), 0);
    responder->port = dial_endpoint_port(&at);
    responder->udp_fd = dial_open_unconnected(&at);
    assert_true(responder->udp_fd >= 0);
    assert_int_equal(pthread_create(&responder->thread, NULL, respond, responder), 0);
}

static uint32_t answers[2];

static void count_answer(void *context, uint32_t link, uint64_t tag,
                         const struct packet_reply *reply)
{
    uint32_t *next = context, number;
    (void)link;
    assert_true(peer_nsm_get_stat(reply, &number));
    assert_int_equal(number, reply->xid);
    answers[(*next)++] = (uint32_t)tag;
}

TEST(test_peer__speaks_with_a_responder)
{
    static struct packet call, other, answer;
    struct responder responder = {0};
    struct packet_reply reply;
    uint32_t number = 0, next = 0;
    start_responder(&responder);
    struct dial_route route = {.server = dial_endpoint_v4(INADDR_LOOPBACK, responder.port),
                               .source = dial_endpoint_v4(0x7f010203, 0)};

    /* Fragments are put together; an answer to another xid is skipped. */
    int fd = dial_open(&route, 5000);
    assert_true(fd >= 0);
    peer_nsm_put_null(&other, 21);
    peer_nsm_put_null(&call, 20);
    assert_int_equal(dial_send_record(fd, call.bytes, call.len, 5000), 0);
    assert_int_equal(dial_exchange(fd, false, &other, 5000, &answer, &reply), 0);
    assert_true(peer_nsm_get_stat(&reply, &number));
    assert_int_equal(number, 21);
    close(fd);

    /* The load engine matches answers that come in another order. */
    struct load *load = load_new(1, count_answer, &next);
    assert_non_null(load);
    assert_int_equal(load_open(load, &route), 0);
    assert_true(load_post(load, 0, 100, &call));
    assert_true(load_post(load, 0, 101, &call));
    assert_int_equal(load_in_flight(load, 0), 2);
    for (int i = 0; i < 500 && next < 2; i++)
        load_turn(load, 10);
    assert_int_equal(answers[0], 101);
    assert_int_equal(answers[1], 100);
    for (int i = 0; i < 500 && load_is_open(load, 0); i++)
        load_turn(load, 10);
    assert_false(load_is_open(load, 0));
    assert_false(load_post(load, 0, 102, &call));
    load_free(load);

    /* A lost datagram is sent again with its xid. */
    route.is_udp = true;
    assert_int_equal(dial_call(&route, &call, 5000, &answer, &reply), 0);
    assert_true(peer_nsm_get_stat(&reply, &number));
    assert_int_equal(number, 20);

    assert_int_equal(pthread_join(responder.thread, NULL), 0);
    assert_int_equal(responder.datagrams_seen, 2);
    close(responder.udp_fd);
    close(responder.listen_fd);
}

TEST(test_peer__gives_up_at_the_deadline)
{
    static struct packet call, answer;
    struct packet_reply reply;
    struct dial_endpoint at = dial_endpoint_v4(INADDR_LOOPBACK, 0);
    int silent = dial_open_unconnected(&at);
    assert_true(silent >= 0);
    assert_int_equal(getsockname(silent, (struct sockaddr *)&at.at, &at.len), 0);
    struct dial_route route = {.is_udp = true, .server = at};
    peer_nsm_put_null(&call, 1);
    uint64_t before_ns = dial_now_ns();
    assert_int_equal(dial_call(&route, &call, 50, &answer, &reply), -ETIMEDOUT);
    assert_true(dial_now_ns() - before_ns >= UINT64_C(49) * 1000000);
    close(silent);
    route.is_udp = false; /* nobody listens there */
    assert_int_equal(dial_call(&route, &call, 5000, &answer, &reply), -ECONNREFUSED);
}

TEST_MAIN(NULL, NULL, NULL, NULL)

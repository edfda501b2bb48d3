/*
 * test_piped.c -- shows that replies whose data lies in a pipe leave whole and in order: real
 * sockets on 127.0.0.1, the real RPC server, and a desk of the test's own, which answers every READ
 * with a head, a pipe and a tail. Peers read at once, slowly, or not to the end.
 */
#include "base/units.h"
#include "codec/nfs_xdr.h"
#include "peer/packet.h"
#include "proto/nfs.h"
#include "unit/test.h"
#include "wire/tcp.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define RECORD_LAST UINT32_C(0x80000000)

enum { PIPED = 1024 * 1024, HEAD = 4, HEADER = 24, CALLS_MAX = 16, TURNS_MAX = 60000 };

/* ---- the desk ---- */

static struct {
    struct job jobs[CALLS_MAX];
    uint8_t bytes[CALLS_MAX][JOB_HEADROOM + HEAD + 3];
    int write_fds[CALLS_MAX];
    uint32_t tail; /* bytes behind each pipe */
    uint32_t submitted, collected, released, unread;
} desk;

static uint8_t pattern[PIPED + CALLS_MAX];

/* What the pipe of a job has: from another byte on for each. */
static enum job_verdict submit(void *context, const struct job_request *request, struct job **ret)
{
    (void)context;
    uint32_t i = desk.submitted++;
    assert_true(i < CALLS_MAX);
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    assert_true(fcntl(fds[1], F_SETPIPE_SZ, PIPED) >= PIPED);
    assert_int_equal(write(fds[1], pattern + i, PIPED), PIPED);
    desk.write_fds[i] = fds[1];
    uint8_t *body = desk.bytes[i] + JOB_HEADROOM;
    memset(body, 'h', HEAD);
    memset(body + HEAD, 't', desk.tail);
    desk.jobs[i] = (struct job){.token = request->token,
                                .body = body,
                                .body_len = HEAD + desk.tail,
                                .pipe = {.fd = fds[0], .at = HEAD, .len = PIPED}};
    *ret = &desk.jobs[i];
    return JOB_LATER;
}

static struct job *next_finished(void *context)
{
    (void)context;
    return desk.collected == desk.submitted ? NULL : &desk.jobs[desk.collected++];
}

static void release(void *context, struct job *job)
{
    (void)context;
    uint8_t byte;
    if (job->pipe.len == 0)
        assert_int_equal(read(job->pipe.fd, &byte, 1), -1); /* it is empty, as it says */
    desk.unread += job->pipe.len > 0;
    desk.released++;
    assert_int_equal(close(job->pipe.fd), 0);
    assert_int_equal(close(desk.write_fds[job - desk.jobs]), 0);
}

static const struct job_desk the_desk = {
    .submit = submit, .next = next_finished, .release = release, .context = &desk};

/* ---- the server, and a client ---- */

static struct {
    uv_loop_t loop;
    struct clock clock;
    struct core *core;
    struct rpc_server *server;
    struct tcp *tcp;
    uint16_t port;
    int fd;
} w;

static void dial(void)
{
    struct sockaddr_in name = {.sin_family = AF_INET,
                               .sin_port = htons(w.port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int small = 4096; /* before it connects: a peer with little room */
    w.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(setsockopt(w.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small), 0);
    assert_int_equal(connect(w.fd, (const struct sockaddr *)&name, sizeof name), 0);
}

TEST_FIXTURE(open_world)
{
    static const struct program *const programs[] = {&nfs_program};
    static const struct rpc_server_limits limits = {
        .outbox_max = 16, .cache_max = 64, .away_max = CALLS_MAX};
    static const struct file_set shares[1];
    const struct core_limits core_limits = {.clients_max = 10,
                                            .bytes_max = 65536,
                                            .batch_puts_max = 4,
                                            .file_sets = shares,
                                            .file_set_count = 1};
    (void)signal(SIGPIPE, SIG_IGN); /* as the server does */
    for (uint32_t i = 0; i < sizeof pattern; i++)
        pattern[i] = (uint8_t)(i * 7 + i / 251);
    memset(&desk, 0, sizeof desk);
    memset(&w, 0, sizeof w);
    w.clock = (struct clock){.now_ns = SECOND_NS, .wall_ns = 1, .is_set = true};
    w.core = core_new(&core_limits, 1);
    core_start(w.core, &(struct core_boot){0});
    w.server = rpc_server_new(&limits, programs, 1, w.core, 1);
    assert_non_null(w.server);
    rpc_server_set_desk(w.server, &the_desk);
    assert_int_equal(uv_loop_init(&w.loop), 0);
    w.tcp = tcp_new(&w.loop, w.server, &w.clock, 4);
    assert_non_null(w.tcp);
    struct address loopback = {.family = 4, .bytes = {127, 0, 0, 1}};
    struct listen_set set;
    struct listen_failure failure;
    assert_int_equal(listen_open(&loopback, 1, 0, &set, &failure), 0);
    assert_int_equal(close(set.at[0].udp_fd), 0);
    assert_int_equal(tcp_add(w.tcp, set.at[0].tcp_fd, true), 0);
    w.port = set.port;
    dial();
}

static void collect(void)
{
    struct rpc_finished finished;
    while (rpc_server_next_job(w.server, w.clock.now_ns, &finished)) {
        uint64_t route = finished.taken_by;
        uint32_t weight = finished.weight;
        tcp_send_job(w.tcp, &finished);
        tcp_call_ended(w.tcp, route, weight);
    }
}

static void turn(int wait_ms)
{
    (void)uv_run(&w.loop, UV_RUN_NOWAIT);
    collect();
    tcp_resume(w.tcp);
    collect();
    tcp_flush(w.tcp);
    (void)poll(NULL, 0, wait_ms); /* only so that waiting costs no processor */
}

TEST_FIXTURE(close_world)
{
    if (w.fd >= 0)
        (void)close(w.fd);
    collect();
    tcp_close(w.tcp);
    assert_int_equal(uv_run(&w.loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&w.loop), 0);
    assert_int_equal(desk.released, desk.submitted);
    tcp_free(w.tcp);
    rpc_server_check(w.server);
    rpc_server_free(w.server);
    core_free(w.core);
}

static void send_read(uint32_t xid)
{
    struct packet call;
    packet_clear(&call);
    packet_put_u32(&call, 0); /* the mark */
    packet_put_call(
        &call, &(struct packet_call){.xid = xid, .prog = NFS_PROGRAM, .vers = 3, .proc = NFS_READ});
    packet_put_u32(&call, PIPED); /* what it weighs */
    uint32_t mark = htonl(RECORD_LAST | (call.len - 4));
    memcpy(call.bytes, &mark, sizeof mark);
    assert_int_equal(send(w.fd, call.bytes, call.len, MSG_NOSIGNAL), call.len);
}

/* The next `len` bytes, read in pieces of at most `piece`. */
static void receive(uint8_t *ret, uint32_t len, uint32_t piece)
{
    for (uint32_t at = 0, turns = 0; at < len; turns++) {
        uint32_t wanted = len - at < piece ? len - at : piece;
        ssize_t got = recv(w.fd, ret + at, wanted, MSG_DONTWAIT);
        if (got == 0 || turns == TURNS_MAX)
            fail_msg("%u bytes of %u, and then nothing", at, len);
        at += got > 0 ? (uint32_t)got : 0;
        if (got <= 0)
            turn(turns % 64 == 63);
    }
}

/* The reply to the call of this number, byte for byte. */
static void expect_reply(uint32_t i, uint32_t piece)
{
    static uint8_t got[PIPED];
    uint32_t word;
    receive(got, 4 + HEADER + HEAD, piece);
    memcpy(&word, got, 4);
    assert_int_equal(ntohl(word), RECORD_LAST | (HEADER + HEAD + PIPED + desk.tail));
    memcpy(&word, got + 4, 4);
    assert_int_equal(ntohl(word), 100 + i); /* the xid */
    assert_memory_equal(got + 4 + HEADER, "hhhh", HEAD);
    receive(got, PIPED, piece);
    assert_memory_equal(got, pattern + i, PIPED);
    receive(got, desk.tail, piece);
    assert_memory_equal(got, "ttt", desk.tail);
}

/* The server's side of the client's connection. */
static struct connection *other_side(void)
{
    assert_false(list_is_empty(&w.tcp->by_activity));
    return LIST_ELEMENT(w.tcp->by_activity.next, struct connection, by_activity);
}

static void send_and_expect(uint32_t count, uint32_t piece)
{
    for (uint32_t i = 0; i < count; i++)
        send_read(100 + i);
    for (uint32_t i = 0; i < count; i++)
        expect_reply(i, piece);
    for (uint32_t turns = 0; desk.released < count && turns < TURNS_MAX; turns++)
        turn(1);
    assert_int_equal(desk.released, count);
    assert_int_equal(desk.unread, 0);
}

TEST(test_piped__many_in_flight_leave_in_order)
{
    send_and_expect(12, PIPED);
}

TEST(test_piped__tails_follow_their_pipes)
{
    desk.tail = 3;
    send_and_expect(6, PIPED);
}

TEST(test_piped__a_peer_that_reads_a_few_bytes_at_a_time)
{
    desk.tail = 1;
    send_and_expect(2, 777);
}

/* Its socket is full, and then it reads a little: that is no silence. */
TEST(test_piped__slow_is_not_silent)
{
    static uint8_t some[256 * 1024];
    for (uint32_t i = 0; i < 8; i++)
        send_read(100 + i);
    for (uint32_t turns = 0; desk.submitted == 0 || !other_side()->replies.is_writing; turns++) {
        assert_true(turns < TURNS_MAX);
        turn(1);
    }
    for (int i = 0; i < 100; i++)
        turn(0);
    uint64_t since_ns = other_side()->waiting_since_ns;
    w.clock.now_ns += 10 * SECOND_NS;
    for (int i = 0; i < 100; i++)
        turn(0);
    assert_int_equal(other_side()->waiting_since_ns, since_ns); /* it reads nothing */
    assert_false(connection_is_being_read(other_side()));
    /* The kernel wakes a writer when a third of its buffer is free. */
    for (uint64_t at = 0; other_side()->waiting_since_ns == since_ns; at += sizeof some) {
        assert_true(at < 4 * PIPED);
        receive(some, sizeof some, sizeof some);
        for (int i = 0; i < 10; i++)
            turn(1);
    }
}

TEST(test_piped__a_peer_that_goes_away_in_the_middle)
{
    static uint8_t some[100000];
    for (uint32_t i = 0; i < 8; i++)
        send_read(100 + i);
    receive(some, sizeof some, sizeof some);
    assert_int_equal(close(w.fd), 0); /* with unread data: a reset */
    w.fd = -1;
    for (uint32_t turns = 0; desk.released < desk.submitted || desk.submitted == 0; turns++) {
        assert_true(turns < TURNS_MAX);
        turn(1);
    }
    assert_true(desk.unread > 0);
    uint32_t before = desk.submitted;
    dial();
    send_read(100 + before);
    expect_reply(before, PIPED);
}

TEST_MAIN(open_world, close_world, NULL, NULL)

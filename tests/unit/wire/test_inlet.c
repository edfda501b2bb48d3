/*
 * test_inlet.c -- shows that a long WRITE arrives whole, its end in a pipe or not (decision 047):
 * real sockets on 127.0.0.1, the real RPC server, and a desk of the test's own, which has pipes and
 * looks at every byte. Peers send at once, in short segments, in fragments, slowly, and not to the
 * end. The sweep runs every millisecond, and the clock is the test's.
 */
#include "base/units.h"
#include "codec/nfs_xdr.h"
#include "peer/packet.h"
#include "proto/nfs.h"
#include "unit/test.h"
#include "wire/tcp.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define RECORD_LAST UINT32_C(0x80000000)

enum {
    DATA_LEN = 512 * 1024, /* in any case, fewer pages than a pipe has places */
    PIPE_LEN = 1024 * 1024,
    PIPE_LEN_SMALL = 4 * 4096, /* the kernel's pieces of a stream have at most 32 KiB */
    PIPES = 3,
    CALLS_MAX = 200,
    TURNS_MAX = 20000,
    AWAY_MAX = 4,
    HEAD_LEN = 4 + 40 + 4 + 8 + 8 + 4 + 4 + 4, /* mark, header, handle, arguments */
};

/* ---- the desk ---- */

enum desk_mood { KEEPS, LEAVES, SAYS_GARBAGE };

static struct {
    enum desk_mood mood;
    struct job jobs[CALLS_MAX];
    uint8_t bytes[CALLS_MAX][JOB_HEADROOM + 4];
    uint32_t piped[CALLS_MAX]; /* bytes of each that came in a pipe */
    int pipe_len;
    struct job_inlet inlets[PIPES];
    bool is_open[PIPES];
    uint32_t opened, closed, closed_full, taken;
    uint32_t submitted, finished, collected, released;
} desk;

static uint8_t pattern[DATA_LEN + 4 * CALLS_MAX];

static struct job_inlet *open_inlet(void *context)
{
    (void)context;
    for (uint32_t i = 0; i < PIPES; i++) {
        int fds[2];
        if (desk.is_open[i])
            continue;
        assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
        assert_true(fcntl(fds[1], F_SETPIPE_SZ, desk.pipe_len) >= desk.pipe_len);
        desk.inlets[i] = (struct job_inlet){.read_fd = fds[0], .write_fd = fds[1]};
        desk.is_open[i] = true;
        desk.opened++;
        return &desk.inlets[i];
    }
    return NULL;
}

static void end_inlet(struct job_inlet *inlet)
{
    uint8_t byte;
    if (inlet->len == 0)
        assert_int_equal(read(inlet->read_fd, &byte, 1), -1); /* it is empty, as it says */
    assert_true(desk.is_open[inlet - desk.inlets]);
    desk.is_open[inlet - desk.inlets] = false;
    assert_int_equal(close(inlet->read_fd), 0);
    assert_int_equal(close(inlet->write_fd), 0);
}

static void close_inlet(void *context, struct job_inlet *inlet)
{
    (void)context;
    desk.closed++;
    desk.closed_full += inlet->len > 0;
    end_inlet(inlet);
}

/* All of the arguments of this call, wherever they are. */
static void expect_args(uint32_t i, const struct job_request *request)
{
    uint8_t *args = request->lent->at + (request->args.at - request->lent->at);
    struct job_inlet *inlet = request->lent->inlet;
    uint32_t head_len = HEAD_LEN - 4 - 40, in_pipe = inlet != NULL ? inlet->len : 0;
    assert_true(in_pipe <= request->args.len - head_len);
    desk.piped[i] = in_pipe;
    if (in_pipe > 0) {
        memset(args + request->args.len - in_pipe, 'x', in_pipe);
        assert_int_equal(read(inlet->read_fd, args + request->args.len - in_pipe, in_pipe),
                         in_pipe);
        inlet->len = 0;
    }
    uint32_t xid = request->xid, len = load_be32(args + head_len - 4);
    assert_memory_equal(args + head_len, pattern + xid, len);
    assert_true(request->args.len == head_len + ((len + 3) & ~UINT32_C(3)));
}

static enum job_verdict submit(void *context, const struct job_request *request, struct job **ret)
{
    (void)context;
    if (desk.mood == SAYS_GARBAGE)
        return JOB_GARBAGE;
    uint32_t i = desk.submitted++;
    assert_true(i < CALLS_MAX);
    desk.jobs[i] =
        (struct job){.token = request->token, .body = desk.bytes[i] + JOB_HEADROOM, .body_len = 4};
    *ret = &desk.jobs[i];
    if (desk.mood == LEAVES)
        return JOB_LATER;
    assert_non_null(request->lent);
    expect_args(i, request);
    if (request->lent->inlet != NULL) {
        desk.taken++;
        end_inlet(request->lent->inlet);
    }
    free(request->lent->at);
    *request->lent = (struct job_memory){0};
    return JOB_LATER;
}

static struct job *next_finished(void *context)
{
    (void)context;
    return desk.collected == desk.finished ? NULL : &desk.jobs[desk.collected++];
}

static void release(void *context, struct job *job)
{
    (void)context;
    (void)job;
    desk.released++;
}

static const struct job_desk the_desk = {.submit = submit,
                                         .next = next_finished,
                                         .release = release,
                                         .open_inlet = open_inlet,
                                         .close_inlet = close_inlet,
                                         .context = &desk};

/* ---- the server, and a client ---- */

static struct {
    uv_loop_t loop;
    struct clock clock;
    struct core *core;
    struct rpc_server *server;
    struct tcp *tcp;
    int fd;
} w;

static void dial(uint16_t port)
{
    struct sockaddr_in name = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int yes = 1;
    w.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(w.fd, (const struct sockaddr *)&name, sizeof name), 0);
    assert_int_equal(setsockopt(w.fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes), 0);
}

TEST_FIXTURE(open_world)
{
    static const struct program *const programs[] = {&nfs_program};
    static const struct rpc_server_limits limits = {
        .outbox_max = 16, .cache_max = 64, .away_max = AWAY_MAX};
    static const struct file_set shares[1];
    const struct core_limits core_limits = {.clients_max = 10,
                                            .bytes_max = 65536,
                                            .batch_puts_max = 4,
                                            .file_sets = shares,
                                            .file_set_count = 1};
    for (uint32_t i = 0; i < sizeof pattern; i++)
        pattern[i] = (uint8_t)(i * 7 + i / 251 + i / 65536);
    memset(&desk, 0, sizeof desk);
    desk.pipe_len = PIPE_LEN;
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
    uv_timer_set_repeat(&w.tcp->sweep, 1);
    assert_int_equal(uv_timer_again(&w.tcp->sweep), 0);
    dial(set.port);
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

/* No pipe is left to anybody. */
TEST_FIXTURE(close_world)
{
    if (w.fd >= 0)
        (void)close(w.fd);
    desk.finished = desk.submitted;
    collect();
    tcp_close(w.tcp);
    assert_int_equal(desk.opened, desk.closed + desk.taken);
    assert_int_equal(uv_run(&w.loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&w.loop), 0);
    assert_int_equal(desk.released, desk.submitted);
    tcp_free(w.tcp);
    rpc_server_check(w.server);
    rpc_server_free(w.server);
    core_free(w.core);
}

#define UNTIL(condition)                                                                           \
    for (uint32_t turns = 0; !(condition); turns++) {                                              \
        if (turns == TURNS_MAX)                                                                    \
            fail_msg("never: %s", #condition);                                                     \
        turn(1);                                                                                   \
    }

/* The server's side of the client's connection. */
static struct connection *other_side(void)
{
    assert_false(list_is_empty(&w.tcp->by_activity));
    return LIST_ELEMENT(w.tcp->by_activity.next, struct connection, by_activity);
}

/* In pieces of at most so many bytes, each a segment of its own. */
static void send_bytes(const uint8_t *bytes, uint32_t len, uint32_t piece)
{
    for (uint32_t at = 0, waits = 0; at < len;) {
        uint32_t part = len - at < piece ? len - at : piece;
        ssize_t sent = send(w.fd, bytes + at, part, MSG_NOSIGNAL | MSG_DONTWAIT);
        at += sent > 0 ? (uint32_t)sent : 0;
        if (sent > 0 && piece == DATA_LEN)
            continue;
        assert_true(sent > 0 || waits++ < TURNS_MAX);
        turn(sent < 0);
    }
}

/* A WRITE with so many bytes of the pattern, from the xid's on; `mark` of what follows it. */
static struct packet *head_of(uint32_t xid, uint32_t len, uint32_t mark)
{
    static struct packet head;
    packet_clear(&head);
    packet_put_u32(&head, mark);
    packet_put_call(&head, &(struct packet_call){
                               .xid = xid, .prog = NFS_PROGRAM, .vers = 3, .proc = NFS_WRITE});
    packet_put_u32(&head, 8); /* the handle */
    packet_put_u32(&head, 1);
    packet_put_u32(&head, 2);
    packet_put_u32(&head, 0); /* the offset */
    packet_put_u32(&head, 0);
    packet_put_u32(&head, len);
    packet_put_u32(&head, 0); /* UNSTABLE */
    packet_put_u32(&head, len);
    assert_int_equal(head.len, HEAD_LEN);
    return &head;
}

static void send_write(uint32_t xid, uint32_t len, uint32_t piece)
{
    static const uint8_t zeros[4];
    uint32_t padding = -len & 3;
    struct packet *head = head_of(xid, len, RECORD_LAST | (HEAD_LEN - 4 + len + padding));
    send_bytes(head->bytes, head->len, DATA_LEN);
    send_bytes(pattern + xid, len, piece);
    send_bytes(zeros, padding, DATA_LEN);
}

/* And its answer. */
static void write_and_finish(uint32_t xid, uint32_t len, uint32_t piece)
{
    uint32_t i = desk.submitted;
    send_write(xid, len, piece);
    UNTIL(desk.submitted == i + 1);
    desk.finished = desk.submitted;
    UNTIL(desk.released == desk.submitted);
}

TEST(test_inlet__the_end_of_a_long_call_comes_in_a_pipe)
{
    for (uint32_t i = 0; i < 12; i++) {
        write_and_finish(i, DATA_LEN, DATA_LEN);
        assert_true(desk.piped[i] >= CONNECTION_INLET_MIN);
    }
    assert_int_equal(desk.taken, 12);
    /* Once it is known how long a head is, all of the data does. */
    assert_int_equal(desk.piped[11], DATA_LEN);
    assert_int_equal(other_side()->weight, 0);
}

TEST(test_inlet__it_weighs_as_in_memory)
{
    send_write(1, DATA_LEN, DATA_LEN);
    UNTIL(desk.submitted == 1);
    assert_int_equal(desk.taken, 1);
    assert_int_equal(other_side()->weight, HEAD_LEN - 4 - 40 + DATA_LEN);
}

TEST(test_inlet__many_at_once_and_more_than_there_are_pipes)
{
    for (uint32_t i = 0; i < 40; i++) {
        send_write(i, DATA_LEN - 4 * (i % 3), DATA_LEN);
        desk.finished = desk.submitted;
    }
    for (uint32_t turns = 0; desk.submitted < 40; turns++) {
        assert_true(turns < TURNS_MAX);
        desk.finished = desk.submitted;
        turn(1);
    }
    assert_true(desk.taken > 0);
}

TEST(test_inlet__short_calls_do_not)
{
    desk.mood = LEAVES;
    write_and_finish(1, CONNECTION_INLET_MIN - 4, 10000); /* in pieces: it is gathered */
    write_and_finish(2, BUFFERS_LONG_MIN - HEAD_LEN, 10000);
    assert_int_equal(desk.opened, 0);
}

/* What is behind the data would be in the pipe, and nobody wants that in the file. */
TEST(test_inlet__data_with_padding_does_not)
{
    for (uint32_t i = 0; i < 3; i++)
        write_and_finish(i, DATA_LEN - 1 - i, DATA_LEN);
    assert_int_equal(desk.opened, 0);
    write_and_finish(4, DATA_LEN, DATA_LEN);
    assert_int_equal(desk.taken, 1);
}

/* A pipe has so many places, and each segment has one, however short. */
TEST(test_inlet__segments_too_short_for_the_pipe)
{
    desk.pipe_len = PIPE_LEN_SMALL;
    write_and_finish(0, DATA_LEN, 1000);
    desk.pipe_len = PIPE_LEN;
    assert_int_equal(desk.opened, 1);
    assert_int_equal(desk.closed, 1);
    assert_int_equal(desk.closed_full, 0);
    assert_int_equal(desk.piped[0], 0);
    /* It is not tried again at once, but some time later. */
    for (uint32_t i = 1; i < CONNECTION_INLET_PAUSE; i++) {
        write_and_finish(i, CONNECTION_INLET_MIN + 200000, DATA_LEN);
        assert_int_equal(desk.opened, 1);
    }
    write_and_finish(99, DATA_LEN, DATA_LEN);
    assert_int_equal(desk.taken, 1);
}

/* Marks stand in the middle of the data. */
TEST(test_inlet__several_fragments)
{
    static const uint32_t lens[] = {200000, 3, 0, 5, 40000};
    uint32_t at = 0, mark;
    struct packet *head = head_of(7, DATA_LEN, HEAD_LEN - 4);
    send_bytes(head->bytes, head->len, DATA_LEN);
    for (uint32_t i = 0; i < 5; at += lens[i++]) {
        mark = htonl(lens[i]);
        send_bytes((const uint8_t *)&mark, 4, DATA_LEN);
        send_bytes(pattern + 7 + at, lens[i], DATA_LEN);
    }
    assert_int_equal(desk.opened, 0);
    mark = htonl(RECORD_LAST | (DATA_LEN - at)); /* all that is left: it may be in a pipe */
    send_bytes((const uint8_t *)&mark, 4, DATA_LEN);
    send_bytes(pattern + 7 + at, DATA_LEN - at, DATA_LEN);
    UNTIL(desk.submitted == 1);
    assert_true(desk.piped[0] <= DATA_LEN - at);
    desk.finished = 1;
    write_and_finish(8, DATA_LEN, DATA_LEN);
}

/* The head and some of the data; the pipe has some. */
static void send_part(uint32_t xid)
{
    struct packet *head = head_of(xid, DATA_LEN, RECORD_LAST | (HEAD_LEN - 4 + DATA_LEN));
    send_bytes(head->bytes, head->len, DATA_LEN);
    UNTIL(!list_is_empty(&w.tcp->by_activity) && other_side()->reader.gathered > 0);
    send_bytes(pattern + xid, 300000, DATA_LEN);
    UNTIL(other_side()->inlet != NULL && other_side()->reader.gathered == HEAD_LEN - 4 + 300000);
    assert_true(other_side()->inlet->len > 0);
}

TEST(test_inlet__a_peer_that_goes_away_in_the_middle)
{
    send_part(1);
    assert_int_equal(close(w.fd), 0);
    w.fd = -1;
    UNTIL(w.tcp->connections.count == 0);
    assert_int_equal(desk.opened, 1);
    assert_int_equal(desk.closed, 1);
    assert_int_equal(desk.submitted, 0);
}

/* Its call arrives all the same. */
TEST(test_inlet__a_slow_peer_keeps_no_pipe)
{
    send_part(1);
    w.clock.now_ns += 4 * SECOND_NS;
    for (uint32_t i = 0; i < 20; i++)
        turn(1);
    assert_int_equal(desk.closed, 0);
    w.clock.now_ns += 2 * SECOND_NS;
    UNTIL(desk.closed == 1);
    assert_int_equal(desk.closed_full, 0);
    assert_null(other_side()->inlet);
    send_bytes(pattern + 1 + 300000, 1, DATA_LEN); /* nor has it another one with its next byte */
    UNTIL(other_side()->reader.gathered == HEAD_LEN - 4 + 300001);
    send_bytes(pattern + 1 + 300001, DATA_LEN - 300001, DATA_LEN);
    UNTIL(desk.submitted == 1);
    assert_int_equal(desk.opened, 1);
    assert_int_equal(w.tcp->connections.count, 1);
    desk.finished = 1;
    write_and_finish(2, DATA_LEN, DATA_LEN); /* its next call may be fast */
    assert_int_equal(desk.opened, 2);
}

/* The server has no room for another call: the record waits in the connection, with its pipe. */
TEST(test_inlet__a_record_that_had_to_wait)
{
    for (uint32_t i = 0; i < AWAY_MAX; i++)
        send_write(i, 150000, DATA_LEN);
    send_write(5, DATA_LEN, DATA_LEN);
    UNTIL(!list_is_empty(&w.tcp->by_activity) && other_side()->held.len > DATA_LEN);
    assert_non_null(other_side()->inlet);
    assert_int_equal(desk.submitted, AWAY_MAX);
    desk.finished = 1;
    UNTIL(desk.submitted == AWAY_MAX + 1);
    assert_true(desk.piped[AWAY_MAX] > 0);
    desk.finished = desk.submitted;
    write_and_finish(6, DATA_LEN, DATA_LEN);
}

/* The same, and its connection must do without the pipe meanwhile. */
TEST(test_inlet__a_record_that_waits_goes_into_memory)
{
    for (uint32_t i = 0; i < AWAY_MAX; i++)
        send_write(i, 150000, DATA_LEN);
    send_write(5, DATA_LEN, DATA_LEN);
    UNTIL(!list_is_empty(&w.tcp->by_activity) && other_side()->held.len > DATA_LEN);
    connection_leave_inlet(other_side());
    assert_int_equal(desk.closed, 1);
    assert_int_equal(desk.closed_full, 0);
    desk.finished = 1;
    UNTIL(desk.submitted == AWAY_MAX + 1);
    assert_int_equal(desk.piped[AWAY_MAX], 0);
}

/* A call that nobody takes has been read, and the next one is understood. */
TEST(test_inlet__a_call_that_is_refused)
{
    desk.mood = SAYS_GARBAGE;
    send_write(1, DATA_LEN, DATA_LEN);
    UNTIL(desk.closed_full == 1);
    desk.mood = LEAVES;
    send_write(2, DATA_LEN, DATA_LEN);
    UNTIL(desk.closed_full == 2 && desk.submitted == 1);
    desk.mood = KEEPS;
    desk.finished = 1;
    write_and_finish(3, DATA_LEN, DATA_LEN);
    assert_int_equal(desk.taken, 1);
}

TEST(test_inlet__a_connection_closed_in_the_middle)
{
    send_part(1);
    connection_close(other_side());
    assert_int_equal(desk.closed_full, 1);
}

TEST_MAIN(open_world, close_world, NULL, NULL)

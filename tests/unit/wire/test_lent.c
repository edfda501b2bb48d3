/*
 * test_lent.c -- shows what becomes of the memory of long records: real sockets on 127.0.0.1, the
 * real RPC server, and a desk of the test's own, which keeps what is lent, or does not, or gives
 * something else for it. That nothing is lost or freed twice, the sanitizers show.
 */
#include "base/units.h"
#include "codec/nfs_xdr.h"
#include "peer/packet.h"
#include "proto/nfs.h"
#include "unit/test.h"
#include "wire/tcp.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define RECORD_LAST UINT32_C(0x80000000)

enum { LONG_LEN = 1024 * 1024, SHORT_LEN = 40000, CALLS_MAX = 32, TURNS_MAX = 20000, AWAY_MAX = 4 };

/* ---- the desk ---- */

enum desk_mood { KEEPS, LEAVES, SAYS_GARBAGE };

static struct {
    enum desk_mood mood;
    struct job_memory given; /* for what it keeps next */
    struct job jobs[CALLS_MAX];
    uint8_t bytes[CALLS_MAX][JOB_HEADROOM + 4];
    struct bytes args[CALLS_MAX];
    struct job_memory kept[CALLS_MAX];
    uint32_t submitted, lent, finished, collected, released;
} desk;

static enum job_verdict submit(void *context, const struct job_request *request, struct job **ret)
{
    (void)context;
    assert_true(desk.submitted < CALLS_MAX);
    desk.lent += request->lent != NULL;
    if (desk.mood == SAYS_GARBAGE)
        return JOB_GARBAGE;
    uint32_t i = desk.submitted++;
    desk.jobs[i] =
        (struct job){.token = request->token, .body = desk.bytes[i] + JOB_HEADROOM, .body_len = 4};
    if (desk.mood == KEEPS && request->lent != NULL) {
        assert_true(request->lent->len >= request->args.len);
        assert_true(request->args.at > request->lent->at);
        desk.args[i] = request->args;
        desk.kept[i] = *request->lent;
        *request->lent = desk.given;
        desk.given = (struct job_memory){0};
    }
    *ret = &desk.jobs[i];
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
    free(desk.kept[job - desk.jobs].at);
    desk.kept[job - desk.jobs].at = NULL;
    desk.released++;
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
    int fd;
} w;

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
    struct sockaddr_in name = {.sin_family = AF_INET,
                               .sin_port = htons(set.port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    w.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(w.fd, (const struct sockaddr *)&name, sizeof name), 0);
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

static void turn(void)
{
    (void)uv_run(&w.loop, UV_RUN_NOWAIT);
    collect();
    tcp_resume(w.tcp);
    collect();
    tcp_flush(w.tcp);
    (void)poll(NULL, 0, 1); /* only so that waiting costs no processor */
}

TEST_FIXTURE(close_world)
{
    if (w.fd >= 0)
        (void)close(w.fd);
    desk.finished = desk.submitted;
    collect();
    tcp_close(w.tcp);
    assert_int_equal(uv_run(&w.loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&w.loop), 0);
    assert_int_equal(desk.released, desk.submitted);
    free(desk.given.at);
    tcp_free(w.tcp);
    rpc_server_check(w.server);
    rpc_server_free(w.server);
    core_free(w.core);
}

#define UNTIL(condition)                                                                           \
    for (uint32_t turns = 0; !(condition); turns++) {                                              \
        if (turns == TURNS_MAX)                                                                    \
            fail_msg("never: %s", #condition);                                                     \
        turn();                                                                                    \
    }

/* The server's side of the client's connection. */
static struct connection *other_side(void)
{
    assert_false(list_is_empty(&w.tcp->by_activity));
    return LIST_ELEMENT(w.tcp->by_activity.next, struct connection, by_activity);
}

/* A WRITE, whose arguments are so many bytes of this value. */
static void send_write(uint32_t xid, uint8_t value, uint32_t args_len)
{
    static struct packet head;
    static uint8_t data[LONG_LEN];
    packet_clear(&head);
    packet_put_u32(&head, 0); /* the mark */
    packet_put_call(&head, &(struct packet_call){
                               .xid = xid, .prog = NFS_PROGRAM, .vers = 3, .proc = NFS_WRITE});
    uint32_t mark = htonl(RECORD_LAST | (head.len - 4 + args_len));
    memcpy(head.bytes, &mark, sizeof mark);
    assert_int_equal(send(w.fd, head.bytes, head.len, MSG_NOSIGNAL), head.len);
    memset(data, value, args_len);
    for (uint32_t at = 0, turns = 0; at < args_len; turns++) {
        ssize_t sent = send(w.fd, data + at, args_len - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        at += sent > 0 ? (uint32_t)sent : 0;
        assert_true(turns < TURNS_MAX);
        turn();
    }
}

static void expect_args(uint32_t i, uint8_t value)
{
    assert_non_null(desk.kept[i].at);
    assert_int_equal(desk.args[i].len, LONG_LEN);
    for (uint32_t at = 0; at < LONG_LEN; at++)
        if (desk.args[i].at[at] != value)
            fail_msg("byte %u of call %u is %u", at, i, desk.args[i].at[at]);
}

TEST(test_lent__what_is_kept_stays_as_it_is)
{
    for (uint32_t i = 0; i < AWAY_MAX; i++)
        send_write(i, (uint8_t)(i + 1), LONG_LEN);
    UNTIL(desk.submitted == AWAY_MAX);
    for (uint32_t i = 0; i < AWAY_MAX; i++)
        expect_args(i, (uint8_t)(i + 1));
    assert_null(other_side()->reader.buffer);
    assert_int_equal(w.tcp->buffers.kept_count, 0); /* nothing was given for them */
    assert_true(other_side()->weight >= AWAY_MAX * (uint64_t)LONG_LEN);
    desk.finished = AWAY_MAX;
    UNTIL(desk.released == AWAY_MAX);
    assert_int_equal(other_side()->weight, 0);
}

TEST(test_lent__what_is_given_for_it_is_used_next)
{
    uint32_t len = rpc_server_record_max(w.server, true);
    desk.given = (struct job_memory){.at = malloc(len), .len = len};
    const uint8_t *given = desk.given.at;
    send_write(0, 1, LONG_LEN);
    UNTIL(desk.submitted == 1);
    assert_int_equal(w.tcp->buffers.kept_count, 1);
    send_write(1, 2, LONG_LEN);
    UNTIL(desk.submitted == 2);
    assert_ptr_equal(desk.kept[1].at, given);
    expect_args(0, 1);
    expect_args(1, 2);
}

TEST(test_lent__what_nobody_keeps_is_used_again)
{
    static const enum desk_mood moods[] = {LEAVES, SAYS_GARBAGE, LEAVES};
    const uint8_t *first = NULL;
    for (uint32_t i = 0; i < 3; i++) {
        desk.mood = moods[i];
        send_write(i, (uint8_t)i, LONG_LEN);
        UNTIL(desk.lent == i + 1);
        assert_int_equal(w.tcp->buffers.kept_count, 1);
        if (i == 0)
            first = w.tcp->buffers.kept[0];
        assert_ptr_equal(w.tcp->buffers.kept[0], first);
    }
    desk.mood = KEEPS;
    send_write(3, 9, LONG_LEN);
    UNTIL(desk.lent == 4);
    expect_args(desk.submitted - 1, 9);
    assert_ptr_equal(desk.kept[desk.submitted - 1].at, first);
}

TEST(test_lent__short_records_are_not)
{
    for (uint32_t i = 0; i < AWAY_MAX; i++)
        send_write(i, 1, SHORT_LEN);
    UNTIL(desk.submitted == AWAY_MAX);
    assert_int_equal(desk.lent, 0);
    assert_int_equal(w.tcp->buffers.kept_count, 0);
}

/* The server has no room for another call: the record waits in the connection, and is lent then. */
TEST(test_lent__a_record_that_had_to_wait)
{
    for (uint32_t i = 0; i < AWAY_MAX; i++)
        send_write(i, 1, SHORT_LEN);
    send_write(4, 5, LONG_LEN);
    UNTIL(other_side()->held.len > LONG_LEN);
    assert_int_equal(desk.submitted, AWAY_MAX);
    desk.finished = 1;
    UNTIL(desk.submitted == AWAY_MAX + 1);
    expect_args(AWAY_MAX, 5);
    desk.finished = desk.submitted;
    send_write(5, 6, LONG_LEN);
    UNTIL(desk.submitted == AWAY_MAX + 2);
    expect_args(AWAY_MAX + 1, 6);
}

TEST(test_lent__a_caller_that_is_gone_meanwhile)
{
    send_write(0, 7, LONG_LEN);
    UNTIL(desk.submitted == 1);
    assert_int_equal(close(w.fd), 0);
    w.fd = -1;
    for (uint32_t i = 0; i < 10; i++)
        turn();
    connection_close(other_side());
    for (uint32_t i = 0; i < 10; i++)
        turn();
    assert_int_equal(w.tcp->connections.count, 0);
    expect_args(0, 7);
    desk.finished = 1;
    UNTIL(desk.released == 1);
}

/* What it was gathered in is there for others. */
TEST(test_lent__a_connection_closed_in_the_middle)
{
    uint32_t mark = htonl(RECORD_LAST | LONG_LEN);
    static const uint8_t part[SHORT_LEN];
    assert_int_equal(send(w.fd, &mark, sizeof mark, MSG_NOSIGNAL), sizeof mark);
    assert_int_equal(send(w.fd, part, sizeof part, MSG_NOSIGNAL), sizeof part);
    UNTIL(!list_is_empty(&w.tcp->by_activity) && other_side()->reader.gathered == sizeof part);
    connection_close(other_side());
    UNTIL(w.tcp->buffers.kept_count == 1);
}

TEST_MAIN(open_world, close_world, NULL, NULL)

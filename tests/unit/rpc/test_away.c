/*
 * test_away.c -- calls that are executed elsewhere: a desk that finishes when it is told to, the
 * duplicate cache of files, redirected answers, back-pressure. Calls are made with the tests' own
 * XDR.
 */
#include "base/units.h"
#include "codec/nfs_xdr.h"
#include "peer/packet.h"
#include "proto/job.h"
#include "proto/mount.h"
#include "proto/nfs.h"
#include "rpc/server.h"
#include "unit/test.h"

#include <string.h>

enum { JOBS_MAX = 64, BODY_LEN = 8, AWAY_MAX = 4 };

static const struct program *const programs[] = {&nfs_program, &mount_program};
static const struct file_set shares[1];
static struct lease store_lease;
static struct packet call;
static uint8_t reply_bytes[256];

/* ---- the desk ---- */

static struct {
    struct job jobs[JOBS_MAX];
    uint8_t bytes[JOBS_MAX][JOB_HEADROOM + BODY_LEN];
    uint32_t submitted, finished, collected, released;
    bool is_at_once, is_garbage;
    struct job_request last;
    struct rpc_credential credential;
} desk;

static void finish(uint32_t index)
{
    struct job *job = &desk.jobs[index];
    job->body = desk.bytes[index] + JOB_HEADROOM;
    job->body_len = BODY_LEN;
    memset(job->body, 0, BODY_LEN);
    job->body[3] = (uint8_t)(index + 1); /* each result is another */
}

static enum job_verdict submit(void *context, const struct job_request *request, struct job **ret)
{
    assert_ptr_equal(context, &desk);
    desk.last = *request;
    desk.credential = *request->credential;
    if (desk.is_garbage)
        return JOB_GARBAGE;
    uint32_t index = desk.submitted++;
    assert_true(index < JOBS_MAX);
    desk.jobs[index].token = request->token;
    *ret = &desk.jobs[index];
    if (!desk.is_at_once)
        return JOB_LATER;
    finish(index);
    desk.finished = desk.collected = desk.submitted;
    return JOB_DONE;
}

static struct job *next_finished(void *context)
{
    (void)context;
    if (desk.collected == desk.finished)
        return NULL;
    finish(desk.collected);
    return &desk.jobs[desk.collected++];
}

static void release(void *context, struct job *job)
{
    (void)context;
    (void)job;
    desk.released++;
}

static const struct job_desk the_desk = {
    .submit = submit, .next = next_finished, .release = release, .context = &desk};

/* ---- the server ---- */

struct fixture {
    struct core *core;
    struct rpc_server *server;
    struct rpc_source from;
    struct packet_reply reply;
};

static struct fixture f;

TEST_FIXTURE(open_server)
{
    static const struct rpc_server_limits limits = {
        .outbox_max = 16, .cache_max = 64, .away_max = AWAY_MAX, .lease = &store_lease};
    struct core_limits core_limits = {.clients_max = 10,
                                      .bytes_max = 65536,
                                      .batch_puts_max = 4,
                                      .server_name = bytes_of_text("holdfast.example"),
                                      .file_sets = shares,
                                      .file_set_count = 1,
                                      .notify_timeout_ns = 5 * SECOND_NS,
                                      .window_ns = 90 * SECOND_NS,
                                      .give_up_ns = 900 * SECOND_NS,
                                      .lease = &store_lease};
    memset(&desk, 0, sizeof desk);
    f = (struct fixture){.core = core_new(&core_limits, 1)};
    core_start(f.core, &(struct core_boot){0});
    f.server = rpc_server_new(&limits, programs, 2, f.core, 1);
    assert_non_null(f.server);
    rpc_server_set_desk(f.server, &the_desk);
    f.from = (struct rpc_source){.peer = {.address = {.family = 4, .bytes = {10, 0, 0, 2}},
                                          .port = 900,
                                          .transport = TRANSPORT_TCP},
                                 .route = 5,
                                 .has_files = true};
}

TEST_FIXTURE(close_server)
{
    rpc_server_check(f.server);
    rpc_server_free(f.server);
    core_free(f.core);
}

static enum rpc_verdict receive(void)
{
    static uint8_t buffer[4096];
    struct xdr_out out = xdr_out_of(buffer, sizeof buffer);
    enum rpc_verdict verdict =
        rpc_server_receive(f.server, &f.from, (struct bytes){call.bytes, call.len}, 0, 0, &out);
    rpc_server_check(f.server);
    memcpy(reply_bytes, buffer, xdr_out_len(&out) < 256 ? xdr_out_len(&out) : 256);
    if (verdict == RPC_ANSWERED)
        assert_true(packet_get_reply(reply_bytes, xdr_out_len(&out), &f.reply));
    return verdict;
}

static void put_call(uint32_t xid, uint32_t proc, const char *name)
{
    packet_clear(&call);
    packet_put_call(
        &call, &(struct packet_call){.xid = xid, .prog = NFS_PROGRAM, .vers = 3, .proc = proc});
    packet_put_opaque(&call, "directory", 9);
    packet_put_opaque(&call, name, (uint32_t)strlen(name));
}

static enum rpc_verdict make(uint32_t xid, uint32_t proc, const char *name)
{
    put_call(xid, proc, name);
    return receive();
}

/* Whose answer comes out, and where it goes; 0: none. */
static uint8_t answer(uint64_t *ret_route)
{
    struct rpc_finished finished;
    if (!rpc_server_next_job(f.server, 0, &finished))
        return 0;
    rpc_server_check(f.server);
    *ret_route = finished.to.route;
    assert_int_equal(finished.len, 24 + BODY_LEN);
    uint8_t which = finished.message[24 + 3];
    rpc_server_release_job(f.server, finished.job);
    return which;
}

TEST(test_away__null_never_leaves)
{
    packet_clear(&call);
    packet_put_call(&call, &(struct packet_call){.xid = 1, .prog = NFS_PROGRAM, .vers = 3});
    assert_int_equal(receive(), RPC_ANSWERED);
    assert_int_equal(f.reply.status, PACKET_SUCCESS);
    assert_int_equal(desk.submitted, 0);
}

TEST(test_away__a_call_leaves_and_its_reply_comes_back)
{
    uint64_t route = 0;
    assert_int_equal(make(7, NFS_GETATTR, "x"), RPC_WAITING);
    assert_int_equal(desk.last.procedure, NFS_GETATTR);
    assert_int_equal(desk.last.program, NFS_PROGRAM);
    assert_int_equal(rpc_server_waiting(f.server), 1);
    assert_int_equal(answer(&route), 0); /* not finished */
    desk.finished = 1;
    assert_int_equal(answer(&route), 1);
    assert_int_equal(route, 5);
    assert_int_equal(desk.released, 1);
    assert_int_equal(rpc_server_waiting(f.server), 0);
}

TEST(test_away__what_is_finished_at_once_leaves_with_the_turn)
{
    uint64_t route = 0;
    desk.is_at_once = true;
    assert_int_equal(make(7, NFS_GETATTR, "x"), RPC_WAITING);
    assert_int_equal(make(8, NFS_GETATTR, "x"), RPC_WAITING);
    assert_int_equal(answer(&route), 1);
    assert_int_equal(answer(&route), 2);
    assert_int_equal(answer(&route), 0);
}

TEST(test_away__only_where_files_are_served)
{
    f.from.has_files = false;
    assert_int_equal(make(7, NFS_GETATTR, "x"), RPC_ANSWERED);
    assert_int_equal(f.reply.status, PACKET_PROG_UNAVAIL);
    f.from.has_files = true;
    f.from.peer.transport = TRANSPORT_UDP; /* NFS is served over TCP, MOUNT over both */
    assert_int_equal(make(8, NFS_GETATTR, "x"), RPC_ANSWERED);
    assert_int_equal(f.reply.status, PACKET_PROG_UNAVAIL);
    packet_clear(&call);
    packet_put_call(&call,
                    &(struct packet_call){.xid = 9, .prog = MOUNT_PROGRAM, .vers = 3, .proc = 5});
    assert_int_equal(receive(), RPC_WAITING);
}

TEST(test_away__garbage)
{
    desk.is_garbage = true;
    assert_int_equal(make(7, NFS_CREATE, "x"), RPC_ANSWERED);
    assert_int_equal(f.reply.status, PACKET_GARBAGE_ARGS);
    desk.is_garbage = false;
    assert_int_equal(make(7, NFS_CREATE, "x"), RPC_WAITING); /* it was not remembered */
}

TEST(test_away__a_repeat_gets_the_same_bytes)
{
    uint64_t route = 0;
    assert_int_equal(make(7, NFS_CREATE, "x"), RPC_WAITING);
    desk.finished = 1;
    assert_int_equal(answer(&route), 1);
    assert_int_equal(make(7, NFS_CREATE, "x"), RPC_ANSWERED);
    assert_int_equal(reply_bytes[24 + 3], 1);
    f.from.peer.port = 901; /* also over a new connection */
    f.from.route = 6;
    assert_int_equal(make(7, NFS_CREATE, "x"), RPC_ANSWERED);
    assert_int_equal(desk.submitted, 1);
    /* Other arguments, another xid, another procedure: another call. */
    assert_int_equal(make(7, NFS_CREATE, "y"), RPC_WAITING);
    assert_int_equal(make(8, NFS_CREATE, "x"), RPC_WAITING);
    assert_int_equal(make(7, NFS_MKDIR, "x"), RPC_WAITING);
    assert_int_equal(desk.submitted, 4);
}

TEST(test_away__who_asks_is_part_of_the_call)
{
    uint64_t route = 0;
    put_call(7, NFS_REMOVE, "x");
    assert_int_equal(receive(), RPC_WAITING);
    desk.finished = 1;
    assert_int_equal(answer(&route), 1);
    packet_clear(&call);
    packet_put_call(
        &call,
        &(struct packet_call){
            .xid = 7, .prog = NFS_PROGRAM, .vers = 3, .proc = NFS_REMOVE, .auth = PACKET_AUTH_SYS});
    packet_put_opaque(&call, "directory", 9);
    packet_put_opaque(&call, "x", 1);
    assert_int_equal(receive(), RPC_WAITING);
    assert_int_equal(desk.credential.flavor, RPC_AUTH_SYS);
}

TEST(test_away__a_repeat_of_a_call_under_way_redirects_its_answer)
{
    uint64_t route = 0;
    assert_int_equal(make(7, NFS_RENAME, "x"), RPC_WAITING);
    f.from.route = 6;
    assert_int_equal(make(7, NFS_RENAME, "x"), RPC_NO_ANSWER);
    assert_int_equal(desk.submitted, 1);
    desk.finished = 1;
    assert_int_equal(answer(&route), 1);
    assert_int_equal(route, 6);
}

TEST(test_away__reads_are_executed_again)
{
    uint64_t route = 0;
    assert_int_equal(make(7, NFS_LOOKUP, "x"), RPC_WAITING);
    desk.finished = 1;
    assert_int_equal(answer(&route), 1);
    assert_int_equal(make(7, NFS_LOOKUP, "x"), RPC_WAITING);
    assert_int_equal(desk.submitted, 2);
}

/* A program that is started anew counts its calls from 1 again: from another port, and after the
 * name was changed, an old reply is not the answer. From the same port it is a copy. */
TEST(test_away__an_xid_used_again)
{
    uint64_t route = 0;
    assert_int_equal(make(1, NFS_MKDIR, "x"), RPC_WAITING);
    assert_int_equal(make(2, NFS_RMDIR, "x"), RPC_WAITING);
    desk.finished = 2;
    assert_int_equal(answer(&route), 1);
    assert_int_equal(answer(&route), 2);
    assert_int_equal(make(1, NFS_MKDIR, "x"), RPC_ANSWERED);
    assert_int_equal(reply_bytes[24 + 3], 1);
    f.from.peer.port = 901;
    assert_int_equal(make(1, NFS_MKDIR, "x"), RPC_WAITING);
    assert_int_equal(desk.submitted, 3);
}

TEST(test_away__full)
{
    uint64_t route = 0;
    for (uint32_t i = 0; i < AWAY_MAX; i++)
        assert_int_equal(make(i, NFS_LOOKUP, "x"), RPC_WAITING);
    assert_int_equal(make(9, NFS_CREATE, "x"), RPC_BUSY);
    assert_int_equal(desk.submitted, AWAY_MAX);
    desk.finished = 1;
    assert_int_equal(answer(&route), 1);
    assert_int_equal(make(9, NFS_CREATE, "x"), RPC_WAITING);
}

TEST(test_away__weight_is_the_call_and_what_it_asks_for)
{
    put_call(7, NFS_READ, "x");
    packet_put_u32(&call, 65536);
    assert_int_equal(receive(), RPC_WAITING);
    assert_int_equal(rpc_server_weight(f.server), 65536 + 4 + 12 + 4 + 4 + 4);
    packet_put_u32(&call, UINT32_MAX);
    assert_int_equal(receive(), RPC_WAITING);
    assert_in_range(rpc_server_weight(f.server), NFS_DATA_MAX, NFS_DATA_MAX + 64);
    packet_clear(&call); /* what stays here weighs nothing */
    packet_put_call(&call, &(struct packet_call){.xid = 8, .prog = NFS_PROGRAM, .vers = 3});
    assert_int_equal(receive(), RPC_ANSWERED);
    assert_int_equal(rpc_server_weight(f.server), 0);
}

TEST(test_away__memory_is_lent_with_one_message)
{
    struct job_memory memory = {.at = call.bytes, .len = sizeof call.bytes};
    rpc_server_lend(f.server, &memory);
    assert_int_equal(make(7, NFS_LOOKUP, "x"), RPC_WAITING);
    assert_ptr_equal(desk.last.lent, &memory);
    assert_int_equal(make(8, NFS_LOOKUP, "x"), RPC_WAITING);
    assert_null(desk.last.lent);
    rpc_server_lend(f.server, &memory);
    packet_clear(&call); /* it stays here */
    packet_put_call(&call, &(struct packet_call){.xid = 9, .prog = NFS_PROGRAM, .vers = 3});
    assert_int_equal(receive(), RPC_ANSWERED);
    assert_int_equal(make(10, NFS_LOOKUP, "x"), RPC_WAITING);
    assert_null(desk.last.lent);
}

/* ---- data that need not be looked at ---- */

enum { DATA_LEN = 512 * 1024, MISSING = 400 };

static struct job_inlet the_inlet;

static struct job_inlet *open_inlet(void *context)
{
    (void)context;
    return &the_inlet;
}

static void close_inlet(void *context, struct job_inlet *inlet)
{
    (void)context;
    (void)inlet;
}

static const struct job_desk desk_with_inlets = {.submit = submit,
                                                 .next = next_finished,
                                                 .release = release,
                                                 .open_inlet = open_inlet,
                                                 .close_inlet = close_inlet,
                                                 .context = &desk};

/* A WRITE as far as the length of its data: how long the whole message is. */
static uint32_t put_write(uint32_t proc, uint32_t count, uint32_t data_len)
{
    packet_clear(&call);
    packet_put_call(&call,
                    &(struct packet_call){.xid = 7, .prog = NFS_PROGRAM, .vers = 3, .proc = proc});
    packet_put_u32(&call, 8);
    for (uint32_t i = 0; i < 4; i++) /* handle and offset */
        packet_put_u32(&call, i);
    packet_put_u32(&call, count);
    packet_put_u32(&call, 0);
    packet_put_u32(&call, data_len);
    return call.len + ((data_len + 3) & ~UINT32_C(3));
}

static uint32_t data_at(uint32_t len)
{
    uint32_t at = 0;
    struct job_inlet *inlet =
        rpc_server_open_inlet(f.server, &f.from, (struct bytes){call.bytes, call.len}, len, &at);
    return inlet != NULL ? at : 0;
}

TEST(test_away__the_data_of_a_write_may_be_elsewhere)
{
    uint32_t len = put_write(NFS_WRITE, DATA_LEN, DATA_LEN), head = call.len;
    assert_int_equal(data_at(len), 0); /* this desk has no place for it */
    rpc_server_set_desk(f.server, &desk_with_inlets);
    assert_int_equal(data_at(len), head);
    for (uint32_t i = 0; i < MISSING / 4; i++) /* with some of it */
        packet_put_u32(&call, i);
    assert_int_equal(data_at(len), head);
    (void)put_write(NFS_WRITE, NFS_DATA_MAX, NFS_DATA_MAX);
    assert_int_equal(data_at(head + NFS_DATA_MAX), head);
}

TEST(test_away__of_a_strange_write_it_may_not)
{
    rpc_server_set_desk(f.server, &desk_with_inlets);
    uint32_t len = put_write(NFS_WRITE, DATA_LEN, DATA_LEN), head = call.len;
    assert_int_equal(data_at(len + 4), 0); /* something is behind it */
    assert_int_equal(data_at(len - 4), 0); /* it is not all there */
    assert_int_equal(data_at(UINT32_MAX), 0);
    for (call.len = 0; call.len < head; call.len++) /* it is not known yet */
        assert_int_equal(data_at(len), 0);
    assert_int_equal(data_at(len), head);
    assert_int_equal(data_at(put_write(NFS_WRITE, DATA_LEN - 4, DATA_LEN)), 0);
    for (uint32_t i = 1; i < 4; i++) /* padding */
        assert_int_equal(data_at(put_write(NFS_WRITE, DATA_LEN + i, DATA_LEN + i)), 0);
    assert_int_equal(data_at(put_write(NFS_WRITE, NFS_DATA_MAX + 4, NFS_DATA_MAX + 4)), 0);
}

TEST(test_away__of_other_calls_it_may_not)
{
    rpc_server_set_desk(f.server, &desk_with_inlets);
    for (uint32_t proc = 0; proc < 100; proc++)
        if (proc != NFS_WRITE)
            assert_int_equal(data_at(put_write(proc, DATA_LEN, DATA_LEN)), 0);
    uint32_t len = put_write(NFS_WRITE, DATA_LEN, DATA_LEN);
    f.from.has_files = false; /* nor where no files are served */
    assert_int_equal(data_at(len), 0);
    f.from.has_files = true;
    assert_int_not_equal(data_at(len), 0);
    call.bytes[19] ^= 1; /* another version */
    assert_int_equal(data_at(len), 0);
}

TEST_MAIN(open_server, close_server, NULL, NULL)

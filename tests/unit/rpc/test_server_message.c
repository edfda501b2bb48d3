/*
 * test_server_message.c -- NLM through the RPC server without sockets: which procedures and
 * versions there are, and messages (the _MSG procedures): the void at once, the result behind the
 * gate as a call, repeats, the ways that a result takes over UDP and TCP, the limit of messages
 * over UDP, and replies that arrive where we listen.
 *
 * Calls are made and read with the tests' own XDR.
 */
#include "base/units.h"
#include "peer/peer_nlm.h"
#include "peer/peer_nsm.h"
#include "proto/nlm.h"
#include "proto/nsm.h"
#include "rpc/meter.h"
#include "rpc/server.h"
#include "unit/test.h"

enum { CALLER_PORT = 900, LOCKD_PORT = 4045, PORTMAPPER = 111 };

static const struct program *const programs[] = {&nlm_program, &nsm_program};
static const struct file_set shares[] = {{.name = {(const uint8_t *)"default", 7}}};
static struct packet call, answer;
static uint8_t reply_bytes[4096];

/* A server whose first batch is durable. */
struct fixture {
    struct core *core;
    struct rpc_server *server;
    struct rpc_client *client;
    struct rpc_source from;
    struct packet_reply reply; /* the last one decoded */
    uint64_t now_ns;
};

static struct fixture f;

static const struct rpc_server_limits ample = {.outbox_max = 16, .cache_max = 64};

static void store(void)
{
    struct store_batch batch;
    if (core_take_batch(f.core, &batch))
        rpc_server_stored(f.server, batch.txn, true, f.now_ns, 0);
}

static void open_server_after(const struct rpc_server_limits *limits, const struct core_boot *boot)
{
    struct core_limits core_limits = {.clients_max = 10,
                                      .locks_max = 100,
                                      .locks_per_client_max = 100,
                                      .waiters_max = 10,
                                      .bytes_max = 1 << 20,
                                      .batch_puts_max = 64,
                                      .server_name = bytes_of_text("holdfast.example"),
                                      .file_sets = shares,
                                      .file_set_count = 1,
                                      .notify_timeout_ns = 5 * SECOND_NS,
                                      .window_ns = 90 * SECOND_NS,
                                      .grace_ns = 90 * SECOND_NS,
                                      .give_up_ns = 900 * SECOND_NS};
    struct rpc_client_limits client_limits = {
        .attempts_max = 64, .connections_max = 16, .bytes_max = 1 << 20};
    f = (struct fixture){.core = core_new(&core_limits, 1),
                         .client = rpc_client_new(&client_limits, 5000, 1)};
    assert_non_null(f.core);
    assert_non_null(f.client);
    core_start(f.core, boot);
    f.server = rpc_server_new(limits, programs, 2, f.core, 1);
    assert_non_null(f.server);
    rpc_server_set_client(f.server, f.client);
    f.from = (struct rpc_source){.peer = {.address = {.family = 4, .bytes = {10, 0, 0, 2}},
                                          .local = {.family = 4, .bytes = {10, 0, 0, 1}},
                                          .port = CALLER_PORT,
                                          .transport = TRANSPORT_UDP},
                                 .route = 5};
    store();
}

static void open_server(const struct rpc_server_limits *limits)
{
    open_server_after(limits, &(struct core_boot){0});
}

static void close_server(void)
{
    rpc_server_free(f.server);
    rpc_client_free(f.client);
    core_free(f.core);
}

static enum rpc_verdict receive(void)
{
    assert_true(rpc_server_reply_max(f.server) <= sizeof reply_bytes);
    struct xdr_out out = xdr_out_of(reply_bytes, rpc_server_reply_max(f.server));
    enum rpc_verdict verdict = rpc_server_receive(
        f.server, &f.from, (struct bytes){call.bytes, call.len}, f.now_ns, 0, &out);
    rpc_server_check(f.server);
    rpc_client_check(f.client);
    bool has_reply = verdict == RPC_ANSWERED || verdict == RPC_ACKNOWLEDGED;
    assert_int_equal(xdr_out_len(&out) > 0, has_reply);
    if (has_reply)
        assert_true(packet_get_reply(reply_bytes, xdr_out_len(&out), &f.reply));
    return verdict;
}

/* The void that acknowledges a message. */
static void assert_void(uint32_t xid)
{
    assert_int_equal(f.reply.xid, xid);
    assert_true(f.reply.accepted);
    assert_int_equal(f.reply.status, PACKET_SUCCESS);
    assert_int_equal(f.reply.body_len, 0);
}

static struct peer_nlm_args lock_args(uint64_t offset)
{
    static const uint8_t fh[32] = {1, 2, 3};
    return (struct peer_nlm_args){
        .cookie = peer_nlm_bytes_of("12345678", 8),
        .exclusive = true,
        .state = 3,
        .lock = {.caller_name = peer_nlm_text("mac"),
                 .fh = peer_nlm_bytes_of(fh, sizeof fh),
                 .oh = peer_nlm_bytes_of("o\0h", 3),
                 .svid = 7,
                 .offset = offset,
                 .len = 10},
    };
}

static void put_call(uint32_t xid, uint32_t vers, uint32_t procedure, uint64_t offset)
{
    struct peer_nlm_args args = lock_args(offset);
    peer_nlm_put_call(&call, xid, vers, procedure, &args);
}

/* A result on its way: a call of this procedure with our cookie; its xid is returned. */
static uint32_t read_result(struct bytes message, uint32_t vers, uint32_t procedure,
                            uint32_t status)
{
    struct packet_reader reader = {message.at, message.len, false};
    struct packet_call header;
    struct peer_nlm_res res;
    assert_true(packet_get_call(&reader, &header));
    assert_int_equal(header.prog, PEER_NLM_PROGRAM);
    assert_int_equal(header.vers, vers);
    assert_int_equal(header.proc, procedure);
    assert_int_equal(header.auth, PACKET_AUTH_NONE);
    assert_true(peer_nlm_get_res(&reader, vers, procedure, &res));
    assert_int_equal(res.cookie.len, 8);
    assert_memory_equal(res.cookie.at, "12345678", 8);
    assert_int_equal(res.status, status);
    return header.xid;
}

static bool next(struct rpc_reply *ret)
{
    bool has_one = rpc_server_next(f.server, f.now_ns, ret);
    rpc_server_check(f.server);
    rpc_client_check(f.client);
    return has_one;
}

TEST_FIXTURE(set_up)
{
    open_server(&ample);
}

TEST_FIXTURE(tear_down)
{
    close_server();
}

TEST(test_server_message__procedures_and_versions)
{
    for (uint32_t vers = 0; vers <= 5; vers++)
        for (uint32_t proc = 0; proc <= 30; proc++) {
            packet_clear(&call);
            packet_put_call(&call,
                            &(struct packet_call){
                                .xid = 9, .prog = PEER_NLM_PROGRAM, .vers = vers, .proc = proc});
            packet_put_u32(&call, 0xffffffff); /* arguments of no procedure */
            assert_int_equal(receive(), RPC_ANSWERED);
            assert_true(f.reply.accepted);
            bool is_version = vers == 1 || vers == 3 || vers == 4;
            bool is_there = proc <= 16 || (vers > 1 && proc >= 20 && proc <= 23);
            assert_int_equal(f.reply.status, !is_version ? PACKET_PROG_MISMATCH
                                             : is_there  ? PACKET_GARBAGE_ARGS
                                                         : PACKET_PROC_UNAVAIL);
            if (!is_version)
                assert_true(f.reply.low == 1 && f.reply.high == 4);
        }
    assert_int_equal(rpc_server_waiting(f.server), 0);
    assert_int_equal(nlm_program.record_max, rpc_server_record_max(f.server, false));
}

/* Void, without waiting for the store, whoever sends them and whatever they answer (R-NLM-4). */
TEST(test_server_message__results_that_nobody_waits_for)
{
    put_call(1, 4, PEER_NLM_LOCK, 0);
    assert_int_equal(receive(), RPC_WAITING); /* the store stands still from here on */
    struct peer_nlm_res res = {.cookie = peer_nlm_bytes_of("12345678", 8), .status = 0};
    for (uint32_t proc = PEER_NLM_TEST_RES; proc <= PEER_NLM_UNLOCK_RES; proc++) {
        peer_nlm_put_res_call(&call, proc, 4, proc, &res);
        assert_int_equal(receive(), RPC_ANSWERED);
        assert_void(proc);
    }
    put_call(16, 4, PEER_NLM_SM_NOTIFY, 0);
    assert_int_equal(receive(), RPC_ANSWERED);
    assert_void(16);
    assert_int_equal(rpc_server_waiting(f.server), 1);
    /* This one the core must see. */
    peer_nlm_put_res_call(&call, 15, 4, PEER_NLM_GRANTED_RES, &res);
    assert_int_equal(receive(), RPC_WAITING);
    store();
    struct rpc_reply reply;
    assert_true(next(&reply));
    assert_true(next(&reply));
    assert_true(packet_get_reply(reply.message.at, reply.message.len, &f.reply));
    assert_void(15);
}

/* In each version: the void at once, the result when it is durable, from where it was asked. */
TEST_WITH(test_server_message__void_then_result, NULL, NULL)
{
    static const uint32_t versions[] = {1, 3, 4};
    for (uint32_t v = 0; v < 3; v++) {
        struct rpc_reply reply;
        open_server(&ample);
        for (uint32_t proc = PEER_NLM_TEST_MSG; proc <= PEER_NLM_GRANTED_MSG; proc++) {
            put_call(100 + proc, versions[v], proc, 0);
            assert_int_equal(receive(), RPC_ACKNOWLEDGED);
            assert_void(100 + proc);
        }
        assert_int_equal(rpc_server_waiting(f.server), 5);
        assert_true(next(&reply)); /* TEST_MSG changed nothing */
        assert_false(next(&reply));
        store();
        for (uint32_t proc = PEER_NLM_LOCK_MSG; proc <= PEER_NLM_GRANTED_MSG; proc++) {
            assert_true(next(&reply));
            assert_true(reply.is_call);
            assert_int_equal(reply.peer->port, CALLER_PORT);
            assert_int_equal(reply.transport, TRANSPORT_UDP);
            assert_int_equal(reply.route, 5);
            assert_int_equal(reply.taken_by, 5);
            assert_true(address_equal(&reply.peer->local, &f.from.peer.local));
            /* There was no CANCEL to cancel: the owner holds the lock. GRANTED is not for us. */
            bool is_denied = proc == PEER_NLM_CANCEL_MSG || proc == PEER_NLM_GRANTED_MSG;
            (void)read_result(reply.message, versions[v], peer_nlm_answer_to(proc), is_denied);
        }
        assert_false(next(&reply));
        struct core_status status;
        core_status(f.core, &status);
        assert_int_equal(status.locks, 0); /* the UNLOCK_MSG came last */
        close_server();
    }
}

TEST(test_server_message__repeats)
{
    struct rpc_reply reply;
    uint8_t first[256];
    put_call(10, 4, PEER_NLM_LOCK_MSG, 0);
    assert_int_equal(receive(), RPC_ACKNOWLEDGED);
    f.from.route = 6; /* in progress: the void again, and one result, by the newest way */
    assert_int_equal(receive(), RPC_ANSWERED);
    assert_void(10);
    assert_int_equal(rpc_server_waiting(f.server), 1);
    store();
    assert_true(next(&reply));
    assert_int_equal(reply.route, 6);
    assert_int_equal(reply.taken_by, 5);
    assert_in_range(reply.message.len, 1, sizeof first);
    uint32_t len = reply.message.len;
    memcpy(first, reply.message.at, len);
    assert_false(next(&reply));

    assert_int_equal(receive(), RPC_ACKNOWLEDGED); /* done: the same bytes, without a batch */
    assert_true(next(&reply));
    assert_int_equal(reply.message.len, len);
    assert_memory_equal(reply.message.at, first, len);
    assert_false(next(&reply));

    struct packet lock = call;
    put_call(11, 4, PEER_NLM_UNLOCK_MSG, 0);
    assert_int_equal(receive(), RPC_ACKNOWLEDGED);
    call = lock; /* a late copy, behind a result that still waits */
    assert_int_equal(receive(), RPC_ACKNOWLEDGED);
    assert_void(10);
    assert_false(next(&reply));
    store();
    assert_true(next(&reply));
    (void)read_result(reply.message, 4, PEER_NLM_UNLOCK_RES, 0);
    assert_true(next(&reply)); /* its process has called since: to ask again, and no lock */
    assert_true(reply.is_call);
    assert_int_equal(reply.taken_by, 6);
    (void)read_result(reply.message, 4, PEER_NLM_LOCK_RES, PEER_NLM_IS_GRACE);
    struct core_status status;
    core_status(f.core, &status);
    assert_int_equal(status.locks, 0);

    /* With nothing else under way it needs no batch, from whichever port. */
    f.from.peer.port++;
    assert_int_equal(receive(), RPC_ACKNOWLEDGED);
    assert_true(next(&reply));
    (void)read_result(reply.message, 4, PEER_NLM_LOCK_RES, PEER_NLM_IS_GRACE);
    core_status(f.core, &status);
    assert_int_equal(status.locks, 0);
}

/* A result that leaves again is a repeat, and no call of anything. */
TEST_WITH(test_server_message__repeats_are_counted_apart, NULL, tear_down)
{
    struct rpc_reply reply;
    open_server(&(struct rpc_server_limits){.outbox_max = 16, .cache_max = 64, .is_metered = true});
    const struct meter *meter = rpc_server_meter(f.server);
    put_call(10, 4, PEER_NLM_LOCK_MSG, 0);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(receive(), RPC_ACKNOWLEDGED);
        store();
        assert_true(next(&reply));
        assert_int_equal(meter->repeats, i);
        uint64_t counted = 0;
        for (uint32_t proc = 0; proc < METER_PROCEDURES_MAX; proc++)
            counted += histogram_total(&meter_at(meter, 0, proc)->durations);
        assert_int_equal(counted, 1);
    }
    assert_int_equal(meter_at(meter, 0, PEER_NLM_LOCK_MSG)->succeeded, 1);
}

TEST_WITH(test_server_message__busy, NULL, tear_down)
{
    struct rpc_reply reply;
    open_server(&(struct rpc_server_limits){.outbox_max = 2, .cache_max = 64});
    put_call(1, 4, PEER_NLM_LOCK_MSG, 0);
    assert_int_equal(receive(), RPC_ACKNOWLEDGED);
    store();
    assert_true(next(&reply));
    struct packet first = call;
    for (uint32_t i = 2; i < 4; i++) {
        put_call(i, 4, PEER_NLM_LOCK_MSG, 100 * i);
        assert_int_equal(receive(), RPC_ACKNOWLEDGED);
    }
    put_call(4, 4, PEER_NLM_LOCK_MSG, 400); /* no room: not even the void */
    assert_int_equal(receive(), RPC_BUSY);
    call = first; /* nor for a result once more */
    assert_int_equal(receive(), RPC_BUSY);
    store();
    assert_true(next(&reply));
    assert_int_equal(receive(), RPC_ACKNOWLEDGED);
}

/* The next thing that the client wants done. */
static struct client_action act(enum client_action_kind kind, uint16_t port)
{
    struct client_action action;
    assert_true(rpc_client_next_action(f.client, &action));
    assert_int_equal(action.kind, kind);
    assert_int_equal(action.port, port);
    assert_true(address_equal(&action.to, &f.from.peer.address));
    assert_true(address_equal(&action.local, &f.from.peer.local));
    return action;
}

/* Its portmapper is asked, and says this. */
static void look_up(uint32_t port)
{
    struct client_action action = act(CLIENT_DATAGRAM, PORTMAPPER);
    assert_false(action.from_listener);
    packet_clear(&answer);
    packet_put_accepted(&answer, packet_xid(action.bytes.at, action.bytes.len), PACKET_SUCCESS);
    packet_put_u32(&answer, port);
    rpc_client_datagram(f.client, &action.to, PORTMAPPER, (struct bytes){answer.bytes, answer.len},
                        f.now_ns);
}

static void expect_idle(void)
{
    struct client_action action;
    struct client_result result;
    assert_false(rpc_client_next_action(f.client, &action));
    assert_false(rpc_client_next_result(f.client, &result));
    assert_int_equal(rpc_client_count(f.client), 0);
}

/* One LOCK_MSG, up to its result. */
static struct rpc_reply lock(uint32_t xid)
{
    struct rpc_reply reply;
    put_call(xid, 3, PEER_NLM_LOCK_MSG, 0);
    assert_int_equal(receive(), RPC_ACKNOWLEDGED);
    store();
    assert_true(next(&reply));
    return reply;
}

/* Back to the source, and to where the host listens if that is elsewhere. */
TEST(test_server_message__a_result_over_udp)
{
    struct rpc_reply reply = lock(1);
    uint32_t xid = read_result(reply.message, 3, PEER_NLM_LOCK_RES, 0);
    look_up(LOCKD_PORT);
    struct client_action action = act(CLIENT_DATAGRAM, LOCKD_PORT);
    assert_true(action.from_listener);
    assert_int_not_equal(read_result(action.bytes, 3, PEER_NLM_LOCK_RES, 0), xid);
    expect_idle();
    reply = lock(2); /* the port is known */
    assert_true(reply.message.len > 0);
    (void)act(CLIENT_DATAGRAM, LOCKD_PORT);
    expect_idle();
    f.from.peer.port = LOCKD_PORT; /* one that calls from there has it already */
    reply = lock(3);
    assert_true(reply.message.len > 0);
    expect_idle();
}

TEST(test_server_message__a_result_over_tcp)
{
    f.from.peer.transport = TRANSPORT_TCP;
    struct rpc_reply reply = lock(1);
    assert_true(reply.is_call);
    assert_int_equal(reply.transport, TRANSPORT_TCP);
    assert_true(address_equal(&reply.peer->address, &f.from.peer.address));
    assert_int_equal(reply.message.len, 0);
    assert_int_equal(reply.taken_by, 5);
    look_up(LOCKD_PORT);
    struct client_action action = act(CLIENT_CONNECT, LOCKD_PORT);
    rpc_client_connected(f.client, action.connection, true, f.now_ns);
    action = act(CLIENT_WRITE, LOCKD_PORT);
    struct bytes record = {action.bytes.at + 4, action.bytes.len - 4};
    uint32_t xid = read_result(record, 3, PEER_NLM_LOCK_RES, 0);
    packet_clear(&answer);
    packet_put_accepted(&answer, xid, PACKET_SUCCESS);
    rpc_client_record(f.client, action.connection, (struct bytes){answer.bytes, answer.len},
                      f.now_ns);
    assert_true(rpc_client_next_action(f.client, &action));
    assert_int_equal(action.kind, CLIENT_DISCONNECT);
    expect_idle();
}

/* A client that is full carries nothing; what leaves over UDP leaves, and nothing breaks. */
TEST(test_server_message__a_full_client)
{
    for (uint32_t i = 0; i < 100; i++) {
        f.from.peer.address.bytes[3] = (uint8_t)(10 + i);
        put_call(i, 4, PEER_NLM_TEST_MSG, 0);
        assert_int_equal(receive(), RPC_ACKNOWLEDGED);
        struct rpc_reply reply;
        assert_true(next(&reply));
        assert_true(reply.message.len > 0);
    }
    assert_int_equal(rpc_client_count(f.client), 16);
    rpc_server_set_client(f.server, NULL); /* nor does a server that has none */
    put_call(1000, 4, PEER_NLM_TEST_MSG, 0);
    assert_int_equal(receive(), RPC_ACKNOWLEDGED);
    struct rpc_reply reply;
    assert_true(next(&reply));
    (void)read_result(reply.message, 4, PEER_NLM_TEST_RES, 0);
}

/* A reply where we listen is the client's, never a call. */
TEST(test_server_message__replies_go_to_the_client)
{
    struct client_attempt attempt = {
        .id = 77,
        .to = f.from.peer.address,
        .local = f.from.peer.local,
        .prog = PEER_NLM_PROGRAM,
        .vers = 4,
        .proc = PEER_NLM_GRANTED,
        .way = CLIENT_UDP_FIRST,
        .from_listener = true,
        .message_count = 1,
        .deadline_ns = 5 * SECOND_NS,
    };
    assert_true(rpc_client_start(f.client, &attempt, 0));
    look_up(LOCKD_PORT);
    struct client_action action = act(CLIENT_DATAGRAM, LOCKD_PORT);
    assert_true(action.from_listener);
    uint32_t xid = packet_xid(action.bytes.at, action.bytes.len);
    packet_clear(&call);
    packet_put_accepted(&call, xid, PACKET_SUCCESS);
    packet_put_u32(&call, 0x01020304);
    struct client_result result;
    f.from.peer.transport = TRANSPORT_TCP; /* not over TCP: those come on connections of our own */
    f.from.peer.port = LOCKD_PORT;
    assert_int_equal(receive(), RPC_NO_ANSWER);
    assert_false(rpc_client_next_result(f.client, &result));
    f.from.peer.transport = TRANSPORT_UDP;
    f.from.peer.port = LOCKD_PORT + 1; /* somebody else */
    assert_int_equal(receive(), RPC_NO_ANSWER);
    assert_false(rpc_client_next_result(f.client, &result));
    f.from.peer.port = LOCKD_PORT;
    assert_int_equal(receive(), RPC_NO_ANSWER);
    assert_true(rpc_client_next_result(f.client, &result));
    assert_int_equal(result.id, 77);
    assert_int_equal(result.outcome, CLIENT_ANSWERED);
    assert_int_equal(result.body.len, 4);
    assert_int_equal(load_be32(result.body.at), 0x01020304);
    assert_int_equal(receive(), RPC_NO_ANSWER); /* once more: nobody's */
}

static uint32_t count_events(enum event_kind kind)
{
    struct event event;
    uint32_t count = 0;
    while (event_take(core_events(f.core), &event))
        count += event.kind == kind;
    return count;
}

/* R-SEC-6: per address, messages over UDP only, and nothing of what is dropped is executed. */
TEST_WITH(test_server_message__too_many, NULL, tear_down)
{
    struct rpc_reply reply;
    open_server(&(struct rpc_server_limits){
        .outbox_max = 64, .cache_max = 128, .messages_burst = 20, .messages_per_second = 10});
    f.now_ns = SECOND_NS;
    (void)count_events(EVENT_TOO_MANY_MESSAGES);
    for (uint32_t i = 0; i < 25; i++) {
        put_call(i, 4, PEER_NLM_LOCK_MSG, 100 * i);
        assert_int_equal(receive(), i < 20 ? RPC_ACKNOWLEDGED : RPC_NO_ANSWER);
    }
    struct core_status status;
    core_status(f.core, &status);
    assert_int_equal(status.locks, 20);
    assert_int_equal(count_events(EVENT_TOO_MANY_MESSAGES), 5);
    put_call(3, 4, PEER_NLM_LOCK_MSG, 300); /* a repeat makes us send too */
    assert_int_equal(receive(), RPC_NO_ANSWER);
    put_call(100, 4, PEER_NLM_LOCK, 5000); /* what is no message is not limited */
    assert_int_equal(receive(), RPC_WAITING);
    f.from.peer.transport = TRANSPORT_TCP; /* nor are messages over TCP, whose source is no lie */
    put_call(101, 4, PEER_NLM_LOCK_MSG, 6000);
    assert_int_equal(receive(), RPC_ACKNOWLEDGED);
    f.from.peer.transport = TRANSPORT_UDP;
    f.from.peer.address.bytes[3]++; /* nor others */
    put_call(102, 4, PEER_NLM_TEST_MSG, 7000);
    assert_int_equal(receive(), RPC_ACKNOWLEDGED);
    f.from.peer.address.bytes[3]--;
    f.now_ns += SECOND_NS / 10;
    put_call(103, 4, PEER_NLM_LOCK_MSG, 8000);
    assert_int_equal(receive(), RPC_ACKNOWLEDGED);
    put_call(104, 4, PEER_NLM_LOCK_MSG, 9000);
    assert_int_equal(receive(), RPC_NO_ANSWER);
    store();
    for (uint32_t i = 0; i < 24; i++)
        assert_true(next(&reply));
    assert_false(next(&reply));
}

TEST_WITH(test_server_message__privileged_port, NULL, tear_down)
{
    open_server(&(struct rpc_server_limits){
        .outbox_max = 16, .cache_max = 64, .require_privileged_port = true});
    f.from.peer.port = 1024;
    for (uint32_t proc = PEER_NLM_TEST; proc <= PEER_NLM_GRANTED_MSG; proc++) {
        put_call(proc, 4, proc, 0);
        assert_int_equal(receive(), RPC_ANSWERED);
        assert_false(f.reply.accepted);
        assert_int_equal(f.reply.status, PACKET_AUTH_ERROR);
    }
    f.from.peer.port = 1023;
    put_call(1, 4, PEER_NLM_LOCK, 0);
    assert_int_equal(receive(), RPC_WAITING);
    put_call(2, 4, PEER_NLM_LOCK_MSG, 0);
    assert_int_equal(receive(), RPC_ACKNOWLEDGED);
}

/* What its status monitor answers when it is asked; false: it is not asked. */
static bool answer_stat(uint32_t state)
{
    struct core_call stat;
    if (!core_next_call(f.core, f.now_ns, &stat))
        return false;
    assert_int_equal(stat.kind, CALL_STAT);
    rpc_server_step(f.server,
                    &(struct core_input){.kind = CORE_CALL_DONE,
                                         .now_ns = f.now_ns,
                                         .call = stat.id,
                                         .outcome = CALL_ANSWERED,
                                         .state = state},
                    NULL);
    rpc_server_check(f.server);
    return true;
}

/* A reboot that its status monitor confirms: old answers are not for new calls (R-DRC-1). */
TEST(test_server_message__a_confirmed_reboot_forgets)
{
    struct rpc_reply out;
    put_call(1, 4, PEER_NLM_LOCK, 0);
    assert_int_equal(receive(), RPC_WAITING);
    store();
    assert_true(rpc_server_next(f.server, f.now_ns, &out));
    assert_int_equal(receive(), RPC_ANSWERED); /* a repeat */
    (void)answer_stat(3);
    store();
    struct packet repeat = call;
    struct rpc_source client = f.from;
    f.from.peer.address.bytes[3] = 9;
    peer_nsm_put_notify(&call, 7, "mac", 5);
    assert_int_equal(receive(), RPC_WAITING);
    f.from = client;
    assert_true(answer_stat(5));
    call = repeat;
    assert_int_equal(receive(), RPC_WAITING); /* it was executed */
}

static uint32_t locks_of(void)
{
    struct core_status status;
    core_status(f.core, &status);
    return status.locks;
}

static void execute(uint32_t xid, enum peer_nlm_procedure procedure)
{
    struct rpc_reply out;
    put_call(xid, 4, procedure, 0);
    assert_int_equal(receive(), RPC_WAITING);
    (void)core_work(f.core, f.now_ns, 0);
    store();
    assert_true(rpc_server_next(f.server, f.now_ns, &out));
}

/*
 * A client that boots says FREE_ALL, counts its calls from 1, and does the same at its next boot:
 * a copy of the first and the second FREE_ALL look alike (decision 020). While its client has taken
 * nothing since, a copy gets the same answer. Afterwards it is neither executed, because that would
 * free what the client relies on if it is a late copy, nor answered, because what the client
 * held before it booted would stay if it is not: until the cache has forgotten the first one.
 */
TEST_WITH(test_server_message__free_all_again, NULL, NULL)
{
    static const enum peer_nlm_procedure takes[] = {PEER_NLM_LOCK, PEER_NLM_NM_LOCK,
                                                    PEER_NLM_SHARE};
    for (uint32_t i = 0; i < sizeof takes / sizeof takes[0]; i++) {
        open_server(&ample);
        execute(1, PEER_NLM_LOCK);
        execute(2, PEER_NLM_FREE_ALL);
        assert_int_equal(locks_of(), 0);
        put_call(2, 4, PEER_NLM_FREE_ALL, 0);
        assert_int_equal(receive(), RPC_ANSWERED);
        execute(3, PEER_NLM_UNLOCK);
        put_call(2, 4, PEER_NLM_FREE_ALL, 0);
        assert_int_equal(receive(), RPC_ANSWERED); /* what it says is true */
        execute(4, takes[i]);
        for (uint16_t port = CALLER_PORT; port < CALLER_PORT + 2; port++) {
            f.from.peer.port = port;
            put_call(2, 4, PEER_NLM_FREE_ALL, 0);
            assert_int_equal(receive(), RPC_NO_ANSWER);
            assert_int_equal(locks_of(), takes[i] == PEER_NLM_SHARE ? 0 : 1);
        }
        f.now_ns += 121 * SECOND_NS;
        execute(2, PEER_NLM_FREE_ALL);
        assert_int_equal(locks_of(), 0);
        close_server();
    }
}

/* A client that has no record holds nothing, but its calls of before it booted are cached: an
 * UNLOCK that looks like one of them is executed all the same (R-DRC-1). */
TEST(test_server_message__free_all_of_nobody_forgets)
{
    execute(3, PEER_NLM_UNLOCK);
    put_call(3, 4, PEER_NLM_UNLOCK, 0);
    assert_int_equal(receive(), RPC_ANSWERED); /* a repeat */
    execute(1, PEER_NLM_FREE_ALL);
    execute(2, PEER_NLM_LOCK);
    assert_int_equal(locks_of(), 1);
    execute(3, PEER_NLM_UNLOCK);
    assert_int_equal(locks_of(), 0);
}

/* What a repeat is answered at once. */
static uint32_t status_of_repeat(uint32_t xid, enum peer_nlm_procedure procedure)
{
    struct peer_nlm_res res;
    put_call(xid, 4, procedure, 0);
    assert_int_equal(receive(), RPC_ANSWERED);
    struct packet_reader reader = {f.reply.body, f.reply.body_len, false};
    assert_true(peer_nlm_get_res(&reader, 4, procedure, &res));
    return res.status;
}

/* A program that is bound to its port and starts again says the same as in its first run. What was
 * granted to that is not granted any more: it asks once more (decision 020). */
TEST(test_server_message__the_same_port_again)
{
    execute(1, PEER_NLM_LOCK);
    assert_int_equal(status_of_repeat(1, PEER_NLM_LOCK), PEER_NLM_IS_GRANTED);
    execute(2, PEER_NLM_UNLOCK);
    assert_int_equal(status_of_repeat(1, PEER_NLM_LOCK), PEER_NLM_IS_GRACE);
    assert_int_equal(status_of_repeat(2, PEER_NLM_UNLOCK), PEER_NLM_IS_GRANTED);
    assert_int_equal(locks_of(), 0);
}

/* In grace a process waits for one lock and has another one reclaimed for it. The answer to that is
 * lost: its repeat is told the same, not to ask again, which clients take for a refusal. */
TEST_WITH(test_server_message__a_refused_lock_makes_no_reclaim_old, NULL, NULL)
{
    struct peer_nlm_args args = lock_args(0);
    struct rpc_reply out;
    struct peer_nlm_res res;
    open_server_after(&ample, &(struct core_boot){.may_have_lost = true});
    for (uint32_t i = 0; i < 2; i++) { /* the reclaim, and a LOCK of other bytes */
        args.reclaim = i == 0;
        args.lock.offset = 100 * i;
        peer_nlm_put_call(&call, 1 + i, 4, PEER_NLM_LOCK, &args);
        assert_int_equal(receive(), RPC_WAITING);
        store();
        assert_true(rpc_server_next(f.server, f.now_ns, &out));
    }
    args.reclaim = true;
    args.lock.offset = 0;
    peer_nlm_put_call(&call, 1, 4, PEER_NLM_LOCK, &args);
    assert_int_equal(receive(), RPC_ANSWERED);
    struct packet_reader reader = {f.reply.body, f.reply.body_len, false};
    assert_true(peer_nlm_get_res(&reader, 4, PEER_NLM_LOCK, &res));
    assert_int_equal(res.status, PEER_NLM_IS_GRANTED);
    close_server();
}

/* The case of a name makes no other owner, nor another client. */
TEST(test_server_message__any_case_is_one_owner)
{
    struct peer_nlm_args args = lock_args(0);
    struct rpc_reply out;
    execute(1, PEER_NLM_LOCK);
    args.lock.caller_name = peer_nlm_text("MAC");
    peer_nlm_put_call(&call, 2, 4, PEER_NLM_UNLOCK, &args);
    assert_int_equal(receive(), RPC_WAITING);
    store();
    assert_true(rpc_server_next(f.server, f.now_ns, &out));
    assert_int_equal(status_of_repeat(1, PEER_NLM_LOCK), PEER_NLM_IS_GRACE);
}

/* Clients by turns, one with a long name: each is the owner of its own calls, and its next one
 * makes old what it was answered before, whoever was heard in between. */
TEST(test_server_message__clients_by_turns)
{
    static const char *const names[] = {
        "mac", "mad",
        "a-client-whose-name-is-longer-than-most-names-of-clients.in.a.domain.example"};
    enum { COUNT = sizeof names / sizeof names[0] };
    struct packet locks[COUNT];
    struct rpc_reply out;
    for (uint32_t i = 0; i < 2 * COUNT; i++) { /* all lock, then all unlock */
        uint32_t who = i % COUNT;
        struct peer_nlm_args args = lock_args(100 * who);
        args.lock.caller_name = peer_nlm_text(names[who]);
        peer_nlm_put_call(&call, 1 + i, 4, i < COUNT ? PEER_NLM_LOCK : PEER_NLM_UNLOCK, &args);
        assert_int_equal(receive(), RPC_WAITING);
        store();
        assert_true(next(&out));
        if (i < COUNT)
            locks[i] = call;
        for (uint32_t other = 0; other < COUNT && other <= i; other++) {
            struct peer_nlm_res res;
            call = locks[other];
            assert_int_equal(receive(), RPC_ANSWERED);
            struct packet_reader reader = {f.reply.body, f.reply.body_len, false};
            assert_true(peer_nlm_get_res(&reader, 4, PEER_NLM_LOCK, &res));
            bool is_old = i >= COUNT && other <= who;
            assert_int_equal(res.status, is_old ? PEER_NLM_IS_GRACE : PEER_NLM_IS_GRANTED);
        }
    }
}

TEST_MAIN(set_up, tear_down, NULL, NULL)

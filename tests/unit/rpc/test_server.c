/*
 * test_server.c -- the RPC server without sockets: every refusal of RFC 5531 in its place, the
 * gate, back-pressure, repeats. Calls are made with the tests' own XDR.
 */
#include "base/units.h"
#include "peer/peer_nsm.h"
#include "proto/nsm.h"
#include "rpc/server.h"
#include "unit/test.h"

static const struct program *const programs[] = {&nsm_program};
static const struct peer_nsm_id lockd = {"srv", "lockd", 100021, 4, 16};
static const uint8_t priv[PEER_NSM_PRIV_LEN];
static const struct file_set shares[1]; /* everything is in "default" */
static struct packet call;
static uint8_t reply_bytes[256];

/* A server whose first batch is durable. */
struct fixture {
    struct core *core;
    struct rpc_server *server;
    struct rpc_source from;
    struct packet_reply reply; /* the last one decoded */
};

static struct fixture f;

static struct lease store_lease; /* a store of our own, unless a test shares it */

static void open_server(struct fixture *fixture, const struct rpc_server_limits *limits)
{
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
    *fixture = (struct fixture){.core = core_new(&core_limits, 1)};
    core_start(fixture->core, &(struct core_boot){0});
    fixture->server = rpc_server_new(limits, programs, 1, fixture->core, 1);
    assert_non_null(fixture->server);
    fixture->from = (struct rpc_source){.peer = {.address = {.family = 4, .bytes = {10, 0, 0, 2}},
                                                 .port = 900,
                                                 .transport = TRANSPORT_TCP},
                                        .route = 5};
}

static void close_server(struct fixture *fixture)
{
    rpc_server_free(fixture->server);
    core_free(fixture->core);
}

static void store(struct fixture *fixture)
{
    struct store_batch batch;
    if (core_take_batch(fixture->core, &batch))
        rpc_server_stored(fixture->server, batch.txn, true, 0, 0);
}

static enum rpc_verdict receive(struct fixture *fixture)
{
    assert_true(rpc_server_reply_max(fixture->server) <= sizeof reply_bytes);
    struct xdr_out out = {reply_bytes, reply_bytes,
                          reply_bytes + rpc_server_reply_max(fixture->server), false};
    enum rpc_verdict verdict = rpc_server_receive(fixture->server, &fixture->from,
                                                  (struct bytes){call.bytes, call.len}, 0, 0, &out);
    rpc_server_check(fixture->server);
    if (verdict == RPC_ANSWERED)
        assert_true(packet_get_reply(reply_bytes, (uint32_t)(out.at - out.start), &fixture->reply));
    return verdict;
}

static bool next(struct fixture *fixture, struct rpc_reply *ret)
{
    return rpc_server_next(fixture->server, 0, ret);
}

static const struct rpc_server_limits ample = {.outbox_max = 16, .cache_max = 64};

TEST_FIXTURE(set_up)
{
    open_server(&f, &ample);
}

TEST_FIXTURE(tear_down)
{
    close_server(&f);
}

TEST(test_server__refusals)
{
    peer_nsm_put_stat(&call, 1, "x");
    call.bytes[11] = 3; /* RPC version */
    assert_int_equal(receive(&f), RPC_ANSWERED);
    assert_false(f.reply.accepted);
    assert_int_equal(f.reply.status, PACKET_RPC_MISMATCH);
    assert_int_equal(f.reply.low, 2);
    assert_int_equal(f.reply.high, 2);

    peer_nsm_put_stat(&call, 1, "x");
    call.bytes[27] = 3; /* AUTH_DH */
    assert_int_equal(receive(&f), RPC_ANSWERED);
    assert_false(f.reply.accepted);
    assert_int_equal(f.reply.status, PACKET_AUTH_ERROR);

    static const struct {
        uint32_t prog, vers, proc, status;
    } wrong[] = {{100021, 4, 0, PACKET_PROG_UNAVAIL},          {100024, 0, 0, PACKET_PROG_MISMATCH},
                 {100024, 2, 1, PACKET_PROG_MISMATCH},         {100024, 1, 7, PACKET_PROC_UNAVAIL},
                 {100024, 1, UINT32_MAX, PACKET_PROC_UNAVAIL}, {100024, 1, 1, PACKET_GARBAGE_ARGS}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        packet_clear(&call);
        packet_put_call(&call, &(struct packet_call){.xid = 77,
                                                     .prog = wrong[i].prog,
                                                     .vers = wrong[i].vers,
                                                     .proc = wrong[i].proc});
        assert_int_equal(receive(&f), RPC_ANSWERED);
        assert_true(f.reply.accepted);
        assert_int_equal(f.reply.xid, 77);
        assert_int_equal(f.reply.status, wrong[i].status);
        if (wrong[i].status == PACKET_PROG_MISMATCH) {
            assert_int_equal(f.reply.low, 1);
            assert_int_equal(f.reply.high, 1);
        }
    }
}

TEST(test_server__what_is_no_call_gets_no_answer)
{
    peer_nsm_put_null(&call, 1);
    uint32_t whole = call.len;
    for (call.len = 0; call.len < whole; call.len++) /* cut inside the header */
        assert_int_equal(receive(&f), RPC_NO_ANSWER);
    assert_int_equal(receive(&f), RPC_ANSWERED);
    call.bytes[7] = 1; /* a reply */
    assert_int_equal(receive(&f), RPC_NO_ANSWER);
}

TEST(test_server__null_passes_the_gate)
{
    struct rpc_reply reply;
    /* the first batch is not even taken */
    peer_nsm_put_null(&call, 3);
    assert_int_equal(receive(&f), RPC_ANSWERED);
    assert_true(peer_nsm_is_void(&f.reply));
    peer_nsm_put_stat(&call, 4, "x");
    assert_int_equal(receive(&f), RPC_WAITING);
    assert_false(next(&f, &reply));
    store(&f);
    assert_true(next(&f, &reply));
    assert_false(next(&f, &reply));
    assert_int_equal(rpc_server_waiting(f.server), 0);
}

TEST(test_server__what_is_durable_is_told_at_once)
{
    struct rpc_reply reply;
    struct store_batch batch;
    store(&f);
    peer_nsm_put_stat(&call, 4, "x");
    assert_int_equal(receive(&f), RPC_ANSWERED);
    assert_true(f.reply.accepted && f.reply.xid == 4);
    assert_int_equal(rpc_server_waiting(f.server), 0);

    /* whatever is not durable is waited for: changed, and then on its way to the disk */
    peer_nsm_put_mon(&call, 5, &lockd, priv);
    assert_int_equal(receive(&f), RPC_WAITING);
    peer_nsm_put_stat(&call, 6, "x");
    assert_int_equal(receive(&f), RPC_WAITING);
    assert_true(core_take_batch(f.core, &batch));
    peer_nsm_put_stat(&call, 7, "x");
    assert_int_equal(receive(&f), RPC_WAITING);
    assert_false(next(&f, &reply));
    rpc_server_stored(f.server, batch.txn, true, 0, 0);
    peer_nsm_put_stat(&call, 8, "x");
    assert_int_equal(receive(&f), RPC_WAITING); /* it overtakes nobody */
    for (uint32_t xid = 5; xid <= 8; xid++) {
        assert_true(next(&f, &reply));
        assert_int_equal(load_be32(reply.message.at), xid);
    }
    assert_false(next(&f, &reply));
    peer_nsm_put_stat(&call, 9, "x");
    assert_int_equal(receive(&f), RPC_ANSWERED);
}

TEST(test_server__answers_leave_in_order_when_durable)
{
    struct rpc_reply reply;
    struct packet_reply decoded;
    uint32_t res, nsm_state;
    store(&f);
    peer_nsm_put_mon(&call, 10, &lockd, priv);
    assert_int_equal(receive(&f), RPC_WAITING);
    struct store_batch batch;
    assert_true(core_take_batch(f.core, &batch));
    peer_nsm_put_unmon(&call, 11, &lockd);
    assert_int_equal(receive(&f), RPC_WAITING);
    assert_int_equal(rpc_server_waiting(f.server), 2);
    assert_false(next(&f, &reply));
    rpc_server_stored(f.server, batch.txn, true, 0, 0);
    assert_true(next(&f, &reply));
    assert_true(reply.route == 5);
    assert_true(packet_get_reply(reply.message.at, reply.message.len, &decoded));
    assert_int_equal(decoded.xid, 10);
    assert_true(peer_nsm_get_stat_res(&decoded, &res, &nsm_state));
    assert_int_equal(res, PEER_NSM_STAT_SUCC);
    assert_int_equal(nsm_state, 3);
    assert_false(next(&f, &reply));
    store(&f);
    assert_true(next(&f, &reply));
    assert_true(packet_get_reply(reply.message.at, reply.message.len, &decoded));
    assert_int_equal(decoded.xid, 11);
    assert_true(peer_nsm_get_stat(&decoded, &nsm_state));
}

TEST_WITH(test_server__busy_when_the_outbox_is_full, NULL, tear_down)
{
    struct rpc_reply reply;
    open_server(&f, &(struct rpc_server_limits){.outbox_max = 2, .cache_max = 64});
    for (uint32_t xid = 1; xid <= 2; xid++) {
        peer_nsm_put_stat(&call, xid, "x");
        assert_int_equal(receive(&f), RPC_WAITING);
    }
    peer_nsm_put_mon(&call, 3, &lockd, priv);
    assert_int_equal(receive(&f), RPC_BUSY);
    struct core_status status;
    core_status(f.core, &status);
    assert_int_equal(status.registrants, 0); /* not taken means not executed */
    store(&f);
    assert_true(next(&f, &reply));
    assert_int_equal(receive(&f), RPC_WAITING);
}

TEST(test_server__busy_when_the_batch_is_full)
{
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    for (uint32_t i = 0; i < 5; i++) {
        struct peer_nsm_id id = lockd;
        id.mon_name = names[i];
        peer_nsm_put_mon(&call, i, &id, priv);
        assert_int_equal(receive(&f), i < 4 ? RPC_WAITING : RPC_BUSY);
    }
    store(&f);
    assert_int_equal(receive(&f), RPC_WAITING);
}

/*
 * With a shared store only a commit tells whether we were replaced: everything that observes state
 * waits for one that began after it was asked, also when nothing was written, also a repeat of what
 * was answered before. What observes none leaves at once.
 */
TEST_WITH(test_server__shared_store_fences_every_answer, NULL, tear_down)
{
    struct rpc_reply reply;
    struct store_batch batch;
    struct rpc_server_limits limits = ample;
    limits.lease = &store_lease;
    store_lease.is_shared = true;
    open_server(&f, &limits);
    store(&f);
    assert_false(core_take_batch(f.core, &batch)); /* nothing asked, nothing to commit */

    peer_nsm_put_mon(&call, 1, &lockd, priv);
    assert_int_equal(receive(&f), RPC_WAITING);
    store(&f);
    assert_true(next(&f, &reply));

    peer_nsm_put_stat(&call, 2, "x"); /* writes nothing */
    assert_int_equal(receive(&f), RPC_WAITING);
    assert_false(next(&f, &reply));
    assert_true(core_take_batch(f.core, &batch));
    assert_int_equal(batch.count, 1); /* the server record, and with it the number */

    peer_nsm_put_stat(&call, 3, "x"); /* asked while that one is under way: needs the next */
    assert_int_equal(receive(&f), RPC_WAITING);
    rpc_server_stored(f.server, batch.txn, true, 0, 0);
    assert_true(next(&f, &reply));
    assert_false(next(&f, &reply));
    store(&f);
    assert_true(next(&f, &reply));

    peer_nsm_put_mon(&call, 1, &lockd, priv); /* the repeat of an answered call */
    assert_int_equal(receive(&f), RPC_WAITING);
    assert_false(next(&f, &reply));
    store(&f);
    assert_true(next(&f, &reply));
    assert_true(packet_get_reply(reply.message.at, reply.message.len, &f.reply));
    assert_int_equal(f.reply.xid, 1);
    assert_false(reply.is_call);
    assert_int_equal(reply.taken_by, f.from.route);

    peer_nsm_put_null(&call, 4);
    assert_int_equal(receive(&f), RPC_ANSWERED);
    assert_false(core_take_batch(f.core, &batch));
    store_lease.is_shared = false;
}

/* A lock manager of this machine that counts its xids from 1 on every connection, from one port. */
TEST_WITH(test_server__registrations_of_this_machine_are_no_repeats, NULL, tear_down)
{
    struct rpc_reply reply;
    struct core_status status;
    struct rpc_server_limits limits = ample;
    limits.trusts_registrations = true;
    open_server(&f, &limits);
    store(&f);
    for (uint32_t i = 0; i < 3; i++) {
        f.from.route++;
        peer_nsm_put_mon(&call, 1, &lockd, priv);
        assert_int_equal(receive(&f), RPC_WAITING);
        store(&f);
        assert_true(next(&f, &reply));
        core_status(f.core, &status);
        assert_int_equal(status.registrants, 1);
        f.from.route++;
        peer_nsm_put_unmon(&call, 1, &lockd);
        assert_int_equal(receive(&f), RPC_WAITING);
        store(&f);
        assert_true(next(&f, &reply));
        core_status(f.core, &status);
        assert_int_equal(status.registrants, 0);
    }
}

TEST(test_server__repeats)
{
    struct rpc_reply reply;
    uint8_t first[256];
    store(&f);
    peer_nsm_put_mon(&call, 10, &lockd, priv);
    assert_int_equal(receive(&f), RPC_WAITING);
    f.from.route = 6; /* the caller lost its connection and asks on another */
    assert_int_equal(receive(&f), RPC_NO_ANSWER);
    store(&f);
    assert_true(next(&f, &reply));
    assert_true(reply.route == 6);
    assert_int_equal(reply.transport, TRANSPORT_TCP);
    assert_null(reply.peer); /* the connection knows */
    assert_true(reply.taken_by == 5);
    uint32_t len = reply.message.len;
    memcpy(first, reply.message.at, len);
    assert_false(next(&f, &reply));

    struct packet unmon;
    peer_nsm_put_unmon(&unmon, 11, &lockd);
    struct packet mon = call;
    call = unmon;
    assert_int_equal(receive(&f), RPC_WAITING);
    store(&f);
    assert_true(next(&f, &reply));
    call = mon; /* a late copy: the same bytes, and no registration */
    assert_int_equal(receive(&f), RPC_ANSWERED);
    assert_memory_equal(reply_bytes, first, len);
    struct core_status status;
    core_status(f.core, &status);
    assert_int_equal(status.registrants, 0);

    /* From another port it is as old, and it is not said that it is registered. */
    f.from.peer.port++;
    assert_int_equal(receive(&f), RPC_NO_ANSWER);
    core_status(f.core, &status);
    assert_int_equal(status.registrants, 0);
    call = unmon;
    assert_int_equal(receive(&f), RPC_ANSWERED); /* the newest: its answer is as true as before */
}

TEST_WITH(test_server__privileged_port, NULL, tear_down)
{
    open_server(&f, &(struct rpc_server_limits){
                        .outbox_max = 16, .cache_max = 64, .require_privileged_port = true});
    f.from.peer.port = 1024;
    peer_nsm_put_null(&call, 1);
    assert_int_equal(receive(&f), RPC_ANSWERED);
    assert_true(peer_nsm_is_void(&f.reply)); /* NULL is for everybody */
    peer_nsm_put_mon(&call, 2, &lockd, priv);
    assert_int_equal(receive(&f), RPC_ANSWERED);
    assert_false(f.reply.accepted);
    assert_int_equal(f.reply.status, PACKET_AUTH_ERROR);
    f.from.peer.port = 1023;
    assert_int_equal(receive(&f), RPC_WAITING);
}

static enum rpc_accept_stat echo(void *context, const struct peer *from, struct xdr_in *in,
                                 struct xdr_out *out)
{
    uint32_t word = xdr_get_u32(in);
    if (!xdr_in_done(in))
        return RPC_GARBAGE_ARGS;
    assert_int_equal(from->port, 900);
    *(uint32_t *)context = word;
    for (uint32_t i = 0; i < word; i++)
        xdr_put_u32(out, i);
    return word == 3 ? RPC_PROC_UNAVAIL : RPC_SUCCESS;
}

/* A program that needs no core, in versions that are not in a row, each with its own table. */
TEST(test_server__respond_and_versions)
{
    static const struct procedure first[] = {{.name = "ECHO", .respond = echo}};
    static const struct procedure third[] = {{0}, {.name = "ECHO", .respond = echo}};
    static const struct program_version versions[] = {{1, first, 1}, {3, third, 2}};
    uint32_t seen = 0;
    const struct program program = {.number = 300000,
                                    .versions = versions,
                                    .version_count = 2,
                                    .record_max = 1024,
                                    .reply_max = RPC_REPLY_HEADER_MAX + 64,
                                    .context = &seen};
    const struct program *const both[] = {&nsm_program, &program};
    rpc_server_free(f.server);
    f.server = rpc_server_new(&ample, both, 2, f.core, 1);
    static const struct {
        uint32_t vers, proc, words, status;
    } calls[] = {
        {1, 0, 2, PACKET_SUCCESS},       {3, 1, 0, PACKET_SUCCESS},
        {1, 0, 3, PACKET_PROC_UNAVAIL},  {1, 1, 1, PACKET_PROC_UNAVAIL},
        {3, 0, 1, PACKET_PROC_UNAVAIL},  {2, 0, 1, PACKET_PROG_MISMATCH},
        {4, 0, 1, PACKET_PROG_MISMATCH}, {1, 0, 19, PACKET_SYSTEM_ERR}, /* does not fit */
    };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        packet_clear(&call);
        packet_put_call(
            &call, &(struct packet_call){
                       .xid = 9, .prog = 300000, .vers = calls[i].vers, .proc = calls[i].proc});
        packet_put_u32(&call, calls[i].words);
        assert_int_equal(receive(&f), RPC_ANSWERED); /* nothing is durable yet, nothing waits */
        assert_int_equal(f.reply.status, calls[i].status);
        if (calls[i].status == PACKET_SUCCESS)
            assert_int_equal(f.reply.body_len, 4 * calls[i].words);
        if (calls[i].status == PACKET_PROG_MISMATCH)
            assert_true(f.reply.low == 1 && f.reply.high == 3);
    }
    assert_int_equal(seen, 19);
    packet_put_u32(&call, 0);
    assert_int_equal(receive(&f), RPC_ANSWERED);
    assert_int_equal(f.reply.status, PACKET_GARBAGE_ARGS);
}

static const struct address monitored = {.family = 4, .bytes = {10, 0, 0, 2}};

/* Starts a call to the monitored host: the port it goes to first, with a connection or not. */
static uint16_t first_port(struct rpc_client *client, uint64_t id, struct client_action *ret)
{
    static const uint8_t argument[4];
    struct client_attempt attempt = {.id = id,
                                     .to = monitored,
                                     .prog = 100021,
                                     .vers = 4,
                                     .proc = 16,
                                     .message_count = 1,
                                     .messages = {{argument, sizeof argument}},
                                     .deadline_ns = 5 * SECOND_NS};
    assert_true(rpc_client_start(client, &attempt, 0));
    assert_true(rpc_client_next_action(client, ret));
    return ret->port;
}

static void notify(struct fixture *fixture, uint32_t xid, const char *mon_name, uint32_t state)
{
    peer_nsm_put_notify(&call, xid, mon_name, state);
    assert_int_equal(receive(fixture), RPC_WAITING);
    store(fixture);
}

/* D7: the ports of a host are looked up again once it rebooted, and only if that is believed. */
TEST(test_server__a_reboot_ends_what_is_known_of_its_ports)
{
    enum { PORTMAPPER = 111, SERVICE = 4045 };
    struct rpc_client_limits limits = {
        .attempts_max = 8, .connections_max = 8, .bytes_max = 1 << 20};
    struct rpc_client *client = rpc_client_new(&limits, 1, 1);
    assert_non_null(client);
    rpc_server_set_client(f.server, client);
    const struct peer_nsm_id of_host = {"10.0.0.2", "lockd", 100021, 4, 16};
    peer_nsm_put_mon(&call, 1, &of_host, priv);
    assert_int_equal(receive(&f), RPC_WAITING);
    store(&f);

    struct client_action action;
    assert_int_equal(first_port(client, 1, &action), PORTMAPPER);
    assert_int_equal(action.kind, CLIENT_DATAGRAM);
    packet_clear(&call);
    const uint32_t words[] = {
        packet_xid(action.bytes.at, action.bytes.len), 1, 0, 0, 0, 0, SERVICE};
    for (uint32_t i = 0; i < sizeof words / sizeof words[0]; i++)
        packet_put_u32(&call, words[i]);
    rpc_client_datagram(client, &monitored, PORTMAPPER, (struct bytes){call.bytes, call.len}, 0);
    assert_true(rpc_client_next_action(client, &action));
    assert_int_equal(action.kind, CLIENT_CONNECT);
    assert_int_equal(action.port, SERVICE);
    assert_int_equal(first_port(client, 2, &action), SERVICE); /* known */

    notify(&f, 2, "other", 5); /* nobody watches that name */
    assert_int_equal(first_port(client, 3, &action), SERVICE);
    f.from.peer.address.bytes[3] = 3; /* not the host of that name */
    notify(&f, 3, "10.0.0.2", 5);
    assert_int_equal(first_port(client, 4, &action), SERVICE);
    f.from.peer.address = monitored;
    notify(&f, 4, "10.0.0.2", 5);
    assert_int_equal(first_port(client, 5, &action), PORTMAPPER);
    assert_int_equal(action.kind, CLIENT_DATAGRAM);
    rpc_client_check(client);
    rpc_client_free(client);
}

TEST_MAIN(set_up, tear_down, NULL, NULL)

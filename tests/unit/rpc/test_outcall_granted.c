/*
 * test_outcall_granted.c -- GRANTED from the core to the wire and its answer back: the lock exactly
 * as it was asked for (R-BLK-1), in its version, over the transport it came by, over UDP from where
 * we listen (R-BLK-3); statuses, a repeat, an error and silence reach the core as what they are.
 *
 * What is sent is read with the tests' own XDR. What the core makes of an answer is shown only as
 * far as it shows that the answer arrived; its rules are in tests/unit/core.
 */
#include "peer/peer_nlm.h"
#include "rpc/outcall.h"
#include "unit/core/fixture.h"
#include "unit/test.h"

enum { PORTMAPPER = 111, LOCKD = 4045 };

static const struct rpc_server_limits server_limits = {.outbox_max = 1, .cache_max = 2};
static struct core *core;
static struct rpc_client *client;
static struct rpc_server *server;
static struct packet packet;
static uint8_t fh[32] = {9, 8, 7};

/* What the waiting client asks for; a test may change it before wait_for_lock. */
static struct {
    struct peer_nlm_bytes caller_name, oh;
    uint64_t offset, len;
    uint32_t version, transport;
    bool is_message, exclusive;
} waiter;

TEST_FIXTURE(begin)
{
    struct rpc_client_limits limits = {
        .attempts_max = 4, .connections_max = 4, .bytes_max = 2 << 20};
    core = fixture_new(&fixture_limits);
    client = rpc_client_new(&limits, 1000, 7);
    assert_non_null(client);
    server = rpc_server_new(&server_limits, NULL, 0, core, 7);
    assert_non_null(server);
    rpc_server_set_client(server, client);
    (void)fixture_store(core);
    fixture_ready(core);
    waiter.caller_name = peer_nlm_text("waiter.example");
    waiter.oh = peer_nlm_bytes_of("7\0@w", 4);
    waiter.offset = 5;
    waiter.len = 0;
    waiter.version = 4;
    waiter.transport = TRANSPORT_UDP;
    waiter.is_message = false;
    waiter.exclusive = true;
}

TEST_FIXTURE(end)
{
    rpc_client_check(client);
    rpc_server_free(server);
    rpc_client_free(client);
    core_free(core);
}

/* Waiters are served, what is open is stored, calls leave. */
static void turn(void)
{
    for (uint32_t i = 0; i < 3; i++) {
        core_work(core, fixture_now_ns(), 0);
        (void)fixture_store(core);
        outcall_turn(core, client, server, fixture_now_ns(), 0);
        rpc_client_check(client);
        core_check(core);
    }
}

static struct bytes view(const struct peer_nlm_bytes *bytes)
{
    return (struct bytes){bytes->at, bytes->len};
}

static enum lock_status step(const char *from, uint32_t transport, const struct request *request)
{
    struct peer peer = fixture_peer(from, 700);
    peer.transport = transport;
    enum lock_status status = fixture_step(core, &peer, request).response.status;
    (void)fixture_store(core);
    return status;
}

static enum lock_status holder(enum request_kind kind)
{
    const struct request request = {.kind = kind,
                                    .lock = {.caller_name = bytes_of_text("holder"),
                                             .fh = {fh, sizeof fh},
                                             .oh = bytes_of_text("h"),
                                             .end = UINT64_MAX,
                                             .exclusive = true,
                                             .svid = 1,
                                             .version = 4}};
    return step("10.0.0.2", TRANSPORT_TCP, &request);
}

static struct request waiters(enum request_kind kind)
{
    return (struct request){
        .kind = kind,
        .cookie = bytes_of_text("its own"),
        .lock = {.caller_name = view(&waiter.caller_name),
                 .fh = {fh, sizeof fh},
                 .oh = view(&waiter.oh),
                 .offset = waiter.offset,
                 .len = waiter.len,
                 .start = waiter.offset,
                 .end = waiter.len == 0 ? UINT64_MAX : waiter.offset + waiter.len - 1,
                 .exclusive = waiter.exclusive,
                 .block = true,
                 .is_message = waiter.is_message,
                 .svid = 0xfffffff7,
                 .version = waiter.version}};
}

/* The holder gives way to the waiter, which is called now. */
static void wait_for_lock(void)
{
    const struct request request = waiters(REQUEST_NLM_LOCK);
    assert_int_equal(holder(REQUEST_NLM_LOCK), LOCK_GRANTED);
    assert_int_equal(step("10.0.0.3", waiter.transport, &request), LOCK_BLOCKED);
    turn();
    assert_int_equal(rpc_client_count(client), 0);
    assert_int_equal(holder(REQUEST_NLM_UNLOCK), LOCK_GRANTED);
    turn();
    assert_int_equal(rpc_client_count(client), 1);
}

static struct client_action next_action(enum client_action_kind kind)
{
    struct client_action action;
    struct address to = fixture_address("10.0.0.3"), local = fixture_address("10.0.0.1");
    assert_true(rpc_client_next_action(client, &action));
    assert_int_equal(action.kind, kind);
    assert_true(address_equal(&action.to, &to));
    assert_true(address_equal(&action.local, &local));
    return action;
}

static void look_up(uint32_t prot)
{
    struct client_action action = next_action(CLIENT_DATAGRAM);
    assert_int_equal(action.port, PORTMAPPER);
    assert_false(action.from_listener);
    struct packet_reader reader = {action.bytes.at, action.bytes.len, false};
    struct packet_call header;
    assert_true(packet_get_call(&reader, &header));
    assert_int_equal(packet_get_u32(&reader), PEER_NLM_PROGRAM);
    assert_int_equal(packet_get_u32(&reader), waiter.version);
    assert_int_equal(packet_get_u32(&reader), prot);
    packet_clear(&packet);
    packet_put_accepted(&packet, header.xid, PACKET_SUCCESS);
    packet_put_u32(&packet, LOCKD);
    rpc_client_datagram(client, &action.to, PORTMAPPER, (struct bytes){packet.bytes, packet.len},
                        fixture_now_ns());
}

/* The callback as its client reads it; its xid is returned. */
static uint32_t read_granted(struct bytes message, uint32_t procedure)
{
    static struct peer_nlm_args args;
    struct packet_reader reader = {message.at, message.len, false};
    struct packet_call header;
    assert_true(packet_get_call(&reader, &header));
    assert_int_equal(header.prog, PEER_NLM_PROGRAM);
    assert_int_equal(header.vers, waiter.version);
    assert_int_equal(header.proc, procedure);
    assert_int_equal(header.auth, PACKET_AUTH_NONE);
    assert_true(peer_nlm_get_args(&reader, header.vers, header.proc, &args));
    assert_int_equal(args.cookie.len, 8);
    assert_int_equal(args.exclusive, waiter.exclusive);
    assert_true(peer_nlm_bytes_equal(&args.lock.caller_name, &waiter.caller_name));
    assert_true(peer_nlm_bytes_equal(&args.lock.oh, &waiter.oh));
    assert_int_equal(args.lock.fh.len, sizeof fh);
    assert_memory_equal(args.lock.fh.at, fh, sizeof fh);
    assert_int_equal(args.lock.svid, 0xfffffff7);
    assert_int_equal(args.lock.offset, waiter.offset);
    assert_int_equal(args.lock.len, waiter.len);
    return header.xid;
}

static uint32_t read_datagram(uint32_t procedure)
{
    struct client_action action = next_action(CLIENT_DATAGRAM);
    assert_int_equal(action.port, LOCKD);
    assert_true(action.from_listener);
    return read_granted(action.bytes, procedure);
}

static void answer(uint32_t xid, enum packet_accept accept, const void *body, uint32_t len)
{
    struct address from = fixture_address("10.0.0.3");
    packet_clear(&packet);
    packet_put_accepted(&packet, xid, accept);
    packet_put_bytes(&packet, body, len);
    rpc_client_datagram(client, &from, LOCKD, (struct bytes){packet.bytes, packet.len},
                        fixture_now_ns());
}

/* `res` with a cookie of eight bytes. */
static void answer_status(uint32_t xid, uint8_t status)
{
    const uint8_t body[16] = {[3] = 8, [15] = status};
    answer(xid, PACKET_SUCCESS, body, sizeof body);
}

static void expect(uint32_t locks, uint32_t offers, uint32_t granted, uint32_t denied,
                   uint32_t failed)
{
    struct core_status status = fixture_status(core);
    assert_int_equal(status.locks, locks);
    assert_int_equal(status.offers, offers);
    assert_int_equal(status.grants.granted, granted);
    assert_int_equal(status.grants.denied, denied);
    assert_int_equal(status.grants.failed, failed);
}

TEST(test_outcall_granted__over_udp)
{
    wait_for_lock();
    look_up(17);
    uint32_t xid = read_datagram(PEER_NLM_GRANTED);
    turn();
    expect(0, 1, 0, 0, 0);
    answer_status(xid, LOCK_GRANTED);
    turn();
    expect(1, 0, 1, 0, 0);
}

TEST(test_outcall_granted__over_tcp_in_version_3)
{
    waiter.transport = TRANSPORT_TCP;
    waiter.version = 3;
    waiter.exclusive = false;
    waiter.len = 100;
    wait_for_lock();
    look_up(6);
    struct client_action action = next_action(CLIENT_CONNECT);
    assert_int_equal(action.port, LOCKD);
    rpc_client_connected(client, action.connection, true, fixture_now_ns());
    action = next_action(CLIENT_WRITE);
    uint32_t xid =
        read_granted((struct bytes){action.bytes.at + 4, action.bytes.len - 4}, PEER_NLM_GRANTED);
    const uint8_t body[8] = {0}; /* an empty cookie, GRANTED */
    packet_clear(&packet);
    packet_put_accepted(&packet, xid, PACKET_SUCCESS);
    packet_put_bytes(&packet, body, sizeof body);
    rpc_client_record(client, action.connection, (struct bytes){packet.bytes, packet.len},
                      fixture_now_ns());
    turn();
    expect(1, 0, 1, 0, 0);
}

TEST(test_outcall_granted__a_message_is_answered_later)
{
    waiter.is_message = true;
    wait_for_lock();
    look_up(17);
    answer(read_datagram(PEER_NLM_GRANTED_MSG), PACKET_SUCCESS, NULL, 0);
    turn();
    expect(0, 1, 0, 0, 0); /* it arrived; GRANTED_RES will say */
}

/* The waiter says that it rebooted. */
static void notify(uint32_t state)
{
    struct peer from = fixture_peer("10.0.0.3", 700);
    const struct request request = {
        .kind = REQUEST_NSM_NOTIFY, .mon_name = view(&waiter.caller_name), .state = state};
    const struct core_input input = {
        .kind = CORE_REQUEST, .from = &from, .request = &request, .now_ns = fixture_now_ns()};
    struct core_answer ignored;
    rpc_server_step(server, &input, &ignored);
    turn();
}

/* Where its lock manager is, is asked once, and again when it has rebooted. */
TEST(test_outcall_granted__who_rebooted_is_looked_up_again)
{
    wait_for_lock();
    look_up(17);
    answer_status(read_datagram(PEER_NLM_GRANTED), LOCK_GRANTED);
    turn();
    const struct request request = waiters(REQUEST_NLM_UNLOCK);
    assert_int_equal(step("10.0.0.3", waiter.transport, &request), LOCK_GRANTED);
    wait_for_lock();
    answer_status(read_datagram(PEER_NLM_GRANTED), LOCK_GRANTED);
    turn();
    notify(5);
    wait_for_lock();
    look_up(17);
    (void)read_datagram(PEER_NLM_GRANTED);
}

/* Over TCP the callback arrived once: DENIED ends the offer. */
TEST(test_outcall_granted__denied)
{
    waiter.transport = TRANSPORT_TCP;
    wait_for_lock();
    look_up(6);
    struct client_action action = next_action(CLIENT_CONNECT);
    rpc_client_connected(client, action.connection, true, fixture_now_ns());
    action = next_action(CLIENT_WRITE);
    uint32_t xid =
        read_granted((struct bytes){action.bytes.at + 4, action.bytes.len - 4}, PEER_NLM_GRANTED);
    const uint8_t body[8] = {[7] = LOCK_DENIED};
    packet_clear(&packet);
    packet_put_accepted(&packet, xid, PACKET_SUCCESS);
    packet_put_bytes(&packet, body, sizeof body);
    rpc_client_record(client, action.connection, (struct bytes){packet.bytes, packet.len},
                      fixture_now_ns());
    turn();
    expect(0, 0, 0, 1, 0);
}

/* Over UDP the DENIED may answer a second copy, ours or the network's, of a grant that was accepted
 * (R-DRC-3). */
TEST(test_outcall_granted__denied_to_a_repeat)
{
    for (uint32_t copies = 1; copies <= 2; copies++) {
        if (copies > 1) {
            (void)end(NULL);
            (void)begin(NULL);
        }
        wait_for_lock();
        look_up(17);
        uint32_t xid = read_datagram(PEER_NLM_GRANTED);
        if (copies > 1) {
            fixture_wait(FIXTURE_SECOND);
            rpc_client_tick(client, fixture_now_ns());
            assert_int_equal(read_datagram(PEER_NLM_GRANTED), xid);
        }
        answer_status(xid, LOCK_DENIED);
        turn();
        struct core_status status = fixture_status(core);
        assert_int_equal(status.locks, 1);
        assert_int_equal(status.offers, 0);
    }
}

/* What cannot be read is no answer to build on: the offer stands. */
TEST(test_outcall_granted__answers_that_say_nothing)
{
    static const uint8_t bodies[][76] = {
        {0},                  /* void */
        {[3] = 8},            /* cut short */
        {[3] = 64, [71] = 0}, /* a cookie that is longer than any that we send */
    };
    static const uint32_t lens[] = {0, 12, 72};
    for (uint32_t i = 0; i < 3; i++) {
        if (i > 0)
            begin(NULL);
        wait_for_lock();
        look_up(17);
        answer(read_datagram(PEER_NLM_GRANTED), PACKET_SUCCESS, bodies[i], lens[i]);
        turn();
        struct core_status status = fixture_status(core);
        assert_int_equal(status.offers, 1);
        assert_int_equal(status.locks, 0);
        if (i < 2)
            end(NULL);
    }
}

TEST(test_outcall_granted__refused_and_silent)
{
    wait_for_lock();
    look_up(17);
    answer(read_datagram(PEER_NLM_GRANTED), PACKET_SYSTEM_ERR, NULL, 0);
    turn();
    expect(0, 1, 0, 0, 1);
    /* Tried again, in whichever way; nothing answers. */
    for (uint32_t i = 0; i < 20 && rpc_client_count(client) == 0; i++) {
        fixture_wait(FIXTURE_SECOND / 2);
        turn();
    }
    assert_int_equal(rpc_client_count(client), 1);
    fixture_wait(5 * FIXTURE_SECOND);
    rpc_client_tick(client, fixture_now_ns());
    turn();
    expect(0, 1, 0, 0, 2);
}

TEST(test_outcall_granted__the_longest_lock_fits)
{
    static uint8_t name[1024];
    memset(name, 'n', sizeof name);
    waiter.caller_name = peer_nlm_bytes_of(name, sizeof name);
    waiter.oh = peer_nlm_bytes_of(name, sizeof name);
    waiter.offset = UINT64_C(1) << 62;
    waiter.len = 1;
    wait_for_lock();
    look_up(17);
    answer_status(read_datagram(PEER_NLM_GRANTED), LOCK_GRANTED);
    turn();
    expect(1, 0, 1, 0, 0);
}

TEST_MAIN(begin, end, NULL, NULL)

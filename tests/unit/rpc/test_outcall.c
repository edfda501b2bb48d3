/*
 * test_outcall.c -- what the core wants to say becomes calls of the client, and what came of them
 * reaches the core: contents byte for byte, read with the tests' own XDR; nothing is lost when the
 * client or the open batch is full.
 */
#include "peer/packet.h"
#include "rpc/outcall.h"
#include "unit/core/fixture.h"
#include "unit/test.h"

enum { PORTMAPPER = 111, SERVICE = 4045 };

static const struct rpc_server_limits server_limits = {.outbox_max = 1, .cache_max = 2};
static struct core *core;
static struct rpc_client *client;
static struct rpc_server *server;
static struct packet packet;
static uint16_t our_port; /* 0: none is known */

static void store(void)
{
    assert_true(fixture_store(core) > 0);
}

/* A ready core without registrants, and a client for so many calls at once. */
static void begin(const struct core_limits *limits, uint32_t attempts_max)
{
    struct rpc_client_limits client_limits = {.attempts_max = attempts_max,
                                              .connections_max = attempts_max,
                                              .bytes_max = 2 << 20,
                                              .our_ports = {our_port}};
    core = fixture_new(limits);
    client = rpc_client_new(&client_limits, 1000, 7);
    assert_non_null(client);
    server = rpc_server_new(&server_limits, NULL, 0, core, 7);
    assert_non_null(server);
    rpc_server_set_client(server, client);
    store();
    fixture_ready(core);
}

static void end(void)
{
    rpc_server_free(server);
    rpc_client_free(client);
    core_free(core);
}

static void turn(void)
{
    outcall_turn(core, client, server, fixture_now_ns(), 0);
    rpc_client_check(client);
    core_check(core);
}

static uint32_t owed(void)
{
    return fixture_status(core).notify.owed;
}

static struct client_action next_action(enum client_action_kind kind)
{
    struct client_action action;
    assert_true(rpc_client_next_action(client, &action));
    assert_int_equal(action.kind, kind);
    return action;
}

static void begin_reply(uint32_t xid, enum packet_accept status)
{
    packet_clear(&packet);
    packet_put_u32(&packet, xid);
    packet_put_u32(&packet, 1); /* REPLY, accepted, AUTH_NONE */
    packet_put_u32(&packet, 0);
    packet_put_u32(&packet, 0);
    packet_put_u32(&packet, 0);
    packet_put_u32(&packet, status);
}

/* The look-up is answered, the service accepts: the connection's number. */
static uint64_t reach_service(void)
{
    struct client_action action = next_action(CLIENT_DATAGRAM);
    assert_int_equal(action.port, PORTMAPPER);
    struct address to = action.to;
    begin_reply(packet_xid(action.bytes.at, action.bytes.len), PACKET_SUCCESS);
    packet_put_u32(&packet, SERVICE);
    rpc_client_datagram(client, &to, PORTMAPPER, (struct bytes){packet.bytes, packet.len},
                        fixture_now_ns());
    action = next_action(CLIENT_CONNECT);
    assert_int_equal(action.port, SERVICE);
    assert_false(action.is_privileged); /* D3 (b): registrants are called from any port */
    rpc_client_connected(client, action.connection, true, fixture_now_ns());
    return action.connection;
}

/* One status is written; its xid is returned. */
static uint32_t read_status(const char *mon_name, uint32_t state, uint8_t priv)
{
    struct client_action action = next_action(CLIENT_WRITE);
    struct packet_reader reader = {action.bytes.at, action.bytes.len, false};
    assert_int_equal(packet_get_u32(&reader), UINT32_C(0x80000000) | (action.bytes.len - 4));
    uint32_t xid = packet_get_u32(&reader);
    /* CALL, RPC version 2, program, version, procedure, AUTH_NONE twice. */
    static const uint32_t words[] = {0, 2, 100021, 4, 16, 0, 0, 0, 0};
    for (uint32_t i = 0; i < sizeof words / sizeof words[0]; i++)
        assert_int_equal(packet_get_u32(&reader), words[i]);
    uint32_t len;
    const uint8_t *name = packet_get_opaque(&reader, 1024, &len);
    assert_non_null(name);
    assert_int_equal(len, strlen(mon_name));
    assert_memory_equal(name, mon_name, len);
    assert_int_equal(packet_get_u32(&reader), state);
    const uint8_t *bytes = packet_get_fixed(&reader, 16);
    assert_non_null(bytes);
    for (uint32_t i = 0; i < 16; i++)
        assert_int_equal(bytes[i], priv);
    assert_true(packet_is_done(&reader));
    return xid;
}

static void answer(uint64_t connection, uint32_t xid, enum packet_accept status)
{
    begin_reply(xid, status);
    rpc_client_record(client, connection, (struct bytes){packet.bytes, packet.len},
                      fixture_now_ns());
}

TEST(test_outcall__a_restart_is_told)
{
    begin(&fixture_limits, 4);
    (void)fixture_mon(core, "10.0.0.2", "srv", "lockd", 9);
    store();
    (void)fixture_simu_crash(core, "127.0.0.1", 700);
    turn();
    assert_int_equal(rpc_client_count(client), 0); /* not durable */
    store();
    turn();
    assert_int_equal(rpc_client_count(client), 1);
    uint64_t connection = reach_service();
    uint32_t xid = read_status("holdfast.example", fixture_status(core).state, 9);
    turn();
    assert_int_equal(owed(), 1);
    answer(connection, xid, PACKET_SUCCESS);
    turn();
    assert_int_equal(owed(), 0);
    assert_int_equal(fixture_status(core).notify.succeeded, 1);
    store(); /* the cleared mark */
    assert_int_equal(outcall_deadline_ns(core, client), UINT64_MAX);
    end();
}

TEST(test_outcall__two_statuses_over_one_connection)
{
    begin(&fixture_limits, 4);
    (void)fixture_mon(core, "10.0.0.2", "srv", "lockd", 9);
    (void)fixture_notify_named(core, "10.0.0.2", "srv", 5);
    (void)fixture_simu_crash(core, "127.0.0.1", 700);
    store();
    turn();
    uint64_t connection = reach_service();
    answer(connection, read_status("holdfast.example", fixture_status(core).state, 9),
           PACKET_SUCCESS);
    turn();
    assert_int_equal(owed(), 1);
    answer(connection, read_status("srv", 5, 9), PACKET_SUCCESS);
    turn();
    assert_int_equal(owed(), 0);
    end();
}

TEST(test_outcall__errors_and_silence_are_no_answer)
{
    begin(&fixture_limits, 4);
    (void)fixture_mon(core, "10.0.0.2", "srv", "lockd", 9);
    (void)fixture_simu_crash(core, "127.0.0.1", 700);
    store();
    turn();
    uint64_t connection = reach_service();
    answer(connection, read_status("holdfast.example", fixture_status(core).state, 9),
           PACKET_PROC_UNAVAIL);
    turn();
    (void)next_action(CLIENT_DISCONNECT);
    assert_int_equal(fixture_status(core).notify.failed, 1);
    assert_int_equal(owed(), 1);
    assert_int_equal(fixture_store(core), 0);
    /* It is tried again, and hears nothing. */
    assert_true(outcall_deadline_ns(core, client) != UINT64_MAX);
    fixture_wait(outcall_deadline_ns(core, client) - fixture_now_ns());
    turn();
    assert_int_equal(rpc_client_count(client), 1);
    fixture_wait(5 * FIXTURE_SECOND);
    rpc_client_tick(client, fixture_now_ns());
    turn();
    assert_int_equal(fixture_status(core).notify.retries_failed, 1);
    assert_int_equal(owed(), 1);
    end();
}

TEST(test_outcall__a_full_client_leaves_calls_with_the_core)
{
    begin(&fixture_limits, 1);
    for (uint8_t i = 0; i < 3; i++) {
        char from[16];
        (void)snprintf(from, sizeof from, "10.0.0.%u", 2U + i);
        (void)fixture_mon(core, from, "srv", "lockd", i);
    }
    (void)fixture_simu_crash(core, "127.0.0.1", 700);
    store();
    for (uint8_t i = 0; i < 3; i++) {
        turn();
        assert_int_equal(rpc_client_count(client), 1);
        assert_int_equal(outcall_deadline_ns(core, client), UINT64_MAX);
        uint64_t connection = reach_service();
        answer(connection, read_status("holdfast.example", fixture_status(core).state, i),
               PACKET_SUCCESS);
        (void)next_action(CLIENT_DISCONNECT);
    }
    turn();
    assert_int_equal(owed(), 0);
    end();
}

TEST(test_outcall__a_full_batch_leaves_results_with_the_client)
{
    struct core_limits limits = fixture_limits;
    limits.batch_puts_max = 1;
    begin(&limits, 4);
    (void)fixture_mon(core, "10.0.0.2", "srv", "lockd", 9);
    store();
    (void)fixture_simu_crash(core, "127.0.0.1", 700);
    store();
    turn();
    uint64_t connection = reach_service();
    (void)fixture_mon(core, "10.0.0.3", "srv", "lockd", 1);
    assert_true(core_is_full(core));
    answer(connection, read_status("holdfast.example", fixture_status(core).state, 9),
           PACKET_SUCCESS);
    turn();
    assert_int_equal(owed(), 1);
    store();
    turn();
    assert_int_equal(owed(), 0);
    end();
}

TEST(test_outcall__the_longest_names_fit)
{
    static char name[1025];
    memset(name, 'n', 1024);
    struct core_limits limits = fixture_limits;
    limits.server_name = (struct bytes){(const uint8_t *)name, 1024};
    begin(&limits, 4);
    (void)fixture_mon(core, "10.0.0.2", name, "lockd", 9);
    (void)fixture_notify_named(core, "10.0.0.2", name, 5);
    (void)fixture_simu_crash(core, "127.0.0.1", 700);
    store();
    turn();
    uint64_t connection = reach_service();
    answer(connection, read_status(name, fixture_status(core).state, 9), PACKET_SUCCESS);
    answer(connection, read_status(name, 5, 9), PACKET_SUCCESS);
    turn();
    assert_int_equal(owed(), 0);
    end();
}

/* A client takes a lock, so that it must hear of a restart. */
static void take_lock(const char *from)
{
    struct peer peer = fixture_peer(from, 700);
    struct request request = {.kind = REQUEST_NLM_LOCK,
                              .cookie = bytes_of_text("cook"),
                              .lock = {.caller_name = bytes_of_text("a"),
                                       .fh = bytes_of_text("f"),
                                       .oh = bytes_of_text("oh"),
                                       .len = 10,
                                       .end = 9,
                                       .exclusive = true,
                                       .version = 4,
                                       .state = 0}}; /* so that nobody is asked for it */
    assert_int_equal(fixture_step(core, &peer, &request).response.status, LOCK_GRANTED);
}

/* One stat_chge is written; its xid is returned. */
static uint32_t read_stat_chge(const char *mon_name, uint32_t state)
{
    struct client_action action = next_action(CLIENT_WRITE);
    struct packet_reader reader = {action.bytes.at, action.bytes.len, false};
    assert_int_equal(packet_get_u32(&reader), UINT32_C(0x80000000) | (action.bytes.len - 4));
    uint32_t xid = packet_get_u32(&reader);
    static const uint32_t words[] = {0, 2, 100024, 1, 6, 0, 0, 0, 0};
    for (uint32_t i = 0; i < sizeof words / sizeof words[0]; i++)
        assert_int_equal(packet_get_u32(&reader), words[i]);
    uint32_t len;
    const uint8_t *name = packet_get_opaque(&reader, 1024, &len);
    assert_non_null(name);
    assert_int_equal(len, strlen(mon_name));
    assert_memory_equal(name, mon_name, len);
    assert_int_equal(packet_get_u32(&reader), state);
    assert_true(packet_is_done(&reader));
    return xid;
}

/* R-NOTIFY-1..3: every name over one connection, from our address that the client uses and, if it
 * can be, a privileged port; the last answer is the one that counts. */
TEST(test_outcall__a_client_hears_every_name)
{
    static const struct bytes names[] = {{(const uint8_t *)"srv.example", 11},
                                         {(const uint8_t *)"srv", 3}};
    static const char *const heard[] = {"srv.example", "srv", "10.0.0.1"};
    struct core_limits limits = fixture_limits;
    limits.names = names;
    limits.name_count = 2;
    begin(&limits, 4);
    take_lock("10.0.0.2");
    (void)fixture_simu_crash(core, "127.0.0.1", 700);
    turn();
    assert_int_equal(rpc_client_count(client), 0); /* not durable */
    store();
    turn();
    struct client_action action = next_action(CLIENT_DATAGRAM);
    struct address to = action.to, local = fixture_address("10.0.0.1");
    begin_reply(packet_xid(action.bytes.at, action.bytes.len), PACKET_SUCCESS);
    packet_put_u32(&packet, SERVICE);
    rpc_client_datagram(client, &to, PORTMAPPER, (struct bytes){packet.bytes, packet.len},
                        fixture_now_ns());
    action = next_action(CLIENT_CONNECT);
    assert_true(action.is_privileged);
    assert_true(address_equal(&action.local, &local));
    assert_true(address_equal(&action.to, &to));
    uint64_t connection = action.connection;
    rpc_client_connected(client, connection, true, fixture_now_ns());
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(owed(), 1);
        answer(connection, read_stat_chge(heard[i], fixture_status(core).state), PACKET_SUCCESS);
        turn();
    }
    (void)next_action(CLIENT_DISCONNECT);
    assert_int_equal(owed(), 0);
    store(); /* the cleared mark */
    end();
}

/* The monitor role: the lock manager of this machine, as rpcbind finds it, has this port. */
static void be_asked_for_port(uint16_t port)
{
    struct core_limits limits = fixture_limits;
    limits.is_monitor = limits.mon_from_loopback = true;
    begin(&limits, 4);
    struct peer here = fixture_peer("127.0.0.1", 900);
    struct request request = {.kind = REQUEST_NSM_MON,
                              .mon_name = bytes_of_text("10.0.0.2"),
                              .my_name = bytes_of_text("us"),
                              .my_prog = 100021,
                              .my_vers = 3,
                              .my_proc = 16,
                              .priv = bytes_of_text("0123456789abcdef")};
    (void)fixture_step(core, &here, &request);
    (void)fixture_notify(core, "10.0.0.2", "c2", 5);
    store();
    turn();
    struct client_action action = next_action(CLIENT_DATAGRAM);
    struct address to = fixture_address("127.0.0.1");
    assert_true(address_equal(&action.to, &to));
    assert_int_equal(action.port, PORTMAPPER);
    begin_reply(packet_xid(action.bytes.at, action.bytes.len), PACKET_SUCCESS);
    packet_put_u32(&packet, port);
    rpc_client_datagram(client, &to, PORTMAPPER, (struct bytes){packet.bytes, packet.len},
                        fixture_now_ns());
}

TEST(test_outcall__an_upcall_is_privileged)
{
    our_port = 12049;
    be_asked_for_port(SERVICE);
    struct client_action action = next_action(CLIENT_DATAGRAM);
    assert_int_equal(action.port, SERVICE);
    assert_true(action.is_privileged);
    our_port = 0;
    end();
}

/* An old entry of ours in the lock manager's place: we would answer, and the mark would be lost. */
TEST(test_outcall__an_upcall_never_goes_to_ourselves)
{
    struct client_action action;
    our_port = 12049;
    be_asked_for_port(12049);
    assert_false(rpc_client_next_action(client, &action));
    turn();
    assert_false(rpc_client_next_action(client, &action));
    our_port = 0;
    end();
}

TEST_MAIN(NULL, NULL, NULL, NULL)

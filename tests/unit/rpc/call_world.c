/*
 * call_world.c -- see call_world.h.
 */
#include "call_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static uint8_t message_bytes[CLIENT_MESSAGES_MAX][256];

struct address world_host(uint32_t number)
{
    const uint8_t bytes[] = {10, 0, (uint8_t)(number >> 8), (uint8_t)number};
    return address_v4(bytes);
}

struct address world_host6(uint32_t number)
{
    uint8_t bytes[16] = {0x20, 0x01, 0x0d, 0xb8};
    bytes[14] = (uint8_t)(number >> 8);
    bytes[15] = (uint8_t)number;
    return address_v6(bytes, NULL);
}

void world_begin(struct world *world, uint32_t attempts_max, uint32_t connections_max)
{
    struct rpc_client_limits limits = {.attempts_max = attempts_max,
                                       .connections_max = connections_max,
                                       .bytes_max = UINT64_C(1) << 20};
    *world = (struct world){.now_ns = 1000 * WORLD_MS};
    world->client = rpc_client_new(&limits, 0xfffffff0, 42); /* xids wrap around */
    assert_non_null(world->client);
}

void world_end(struct world *world)
{
    if (world->playing != NULL)
        print_message("ended before: %s\n", world->playing);
    world_expect_nothing(world);
    world_expect_no_result(world);
    assert_int_equal(rpc_client_count(world->client), 0);
    assert_int_equal(rpc_client_deadline_ns(world->client), UINT64_MAX);
    rpc_client_check(world->client); /* with no attempt left: no connection and no byte either */
    rpc_client_free(world->client);
}

/* ---- attempts ---- */

static uint32_t message_len(uint32_t index)
{
    return 20 + 28 * index;
}

struct client_attempt world_attempt(const struct world *world, uint64_t id, uint32_t message_count)
{
    struct client_attempt attempt = {
        .id = id,
        .to = world_host(1),
        .local = world_host(900),
        .prog = WORLD_PROG,
        .vers = WORLD_VERS,
        .proc = WORLD_PROC,
        .message_count = message_count,
        .deadline_ns = world->now_ns + 5000 * WORLD_MS,
    };
    for (uint32_t i = 0; i < message_count; i++) {
        memset(message_bytes[i], (int)(0xa0 + i), message_len(i));
        attempt.messages[i] = (struct bytes){message_bytes[i], message_len(i)};
    }
    return attempt;
}

void world_start(struct world *world, uint64_t id, uint16_t port_hint)
{
    struct client_attempt attempt = world_attempt(world, id, 1);
    attempt.port_hint = port_hint;
    assert_true(rpc_client_start(world->client, &attempt, world->now_ns));
    rpc_client_check(world->client);
}

/* ---- what the client wants ---- */

static struct client_action next(struct world *world, enum client_action_kind kind)
{
    struct client_action action;
    assert_true(rpc_client_next_action(world->client, &action));
    assert_int_equal(action.kind, kind);
    struct address local = world_host(900);
    assert_true(address_equal(&action.local, &local));
    return action;
}

/* Reads a call into the world, and checks everything of it but the arguments. */
static void read_call(struct world *world, struct bytes bytes, uint32_t prog, uint32_t vers,
                      uint32_t proc)
{
    struct packet_reader reader = {bytes.at, bytes.len, false};
    world->xid = packet_get_u32(&reader);
    const uint32_t expected[] = {0, 2, prog, vers, proc, 0, 0, 0, 0};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        assert_int_equal(packet_get_u32(&reader), expected[i]);
    assert_false(reader.failed);
    world->args_len = reader.left;
    assert_in_range(reader.left, 0, sizeof world->args);
    memcpy(world->args, reader.at, reader.left);
}

/* The one record that a write must be. */
static struct bytes record_in(struct bytes bytes)
{
    struct packet_reader reader = {bytes.at, bytes.len, false};
    assert_int_equal(packet_get_u32(&reader), 0x80000000 | (bytes.len - 4));
    return (struct bytes){reader.at, reader.left};
}

static void check_question(struct world *world, struct bytes bytes, uint32_t vers, uint32_t prot)
{
    read_call(world, bytes, 100000, vers, 3);
    struct packet_reader reader = {world->args, world->args_len, false};
    assert_int_equal(packet_get_u32(&reader), WORLD_PROG);
    assert_int_equal(packet_get_u32(&reader), WORLD_VERS);
    if (vers == 2) {
        assert_int_equal(packet_get_u32(&reader), prot);
        assert_int_equal(packet_get_u32(&reader), 0);
    } else {
        uint32_t len;
        const uint8_t *netid = packet_get_opaque(&reader, 16, &len);
        assert_in_range(len, 3, 4);
        assert_memory_equal(netid, prot == 6 ? "tcp" : "udp", 3);
        (void)packet_get_opaque(&reader, 16, &len);
        assert_int_equal(len, 0);
        (void)packet_get_opaque(&reader, 16, &len);
        assert_int_equal(len, 0);
    }
    assert_true(packet_is_done(&reader));
}

void world_expect_question(struct world *world, uint32_t vers, uint32_t prot)
{
    struct client_action action = next(world, CLIENT_DATAGRAM);
    assert_int_equal(action.port, PORTMAPPER);
    check_question(world, action.bytes, vers, prot);
    rpc_client_check(world->client);
}

void world_expect_question_tcp(struct world *world, uint32_t vers, uint32_t prot)
{
    struct client_action action = next(world, CLIENT_WRITE);
    assert_int_equal(action.connection, world->connection);
    check_question(world, record_in(action.bytes), vers, prot);
    rpc_client_check(world->client);
}

void world_expect_connect(struct world *world, uint16_t port)
{
    struct client_action action = next(world, CLIENT_CONNECT);
    assert_int_equal(action.port, port);
    assert_int_not_equal(action.connection, 0);
    assert_int_not_equal(action.connection, world->connection);
    world->connection = action.connection;
    rpc_client_check(world->client);
}

void world_expect_disconnect(struct world *world, uint64_t connection)
{
    assert_int_equal(next(world, CLIENT_DISCONNECT).connection, connection);
    rpc_client_check(world->client);
}

void world_expect_abort(struct world *world, uint64_t connection)
{
    struct client_action action = next(world, CLIENT_DISCONNECT);
    assert_int_equal(action.connection, connection);
    assert_true(action.is_abort);
    rpc_client_check(world->client);
}

static void check_message(struct world *world, struct bytes bytes, uint32_t index)
{
    read_call(world, bytes, WORLD_PROG, WORLD_VERS, WORLD_PROC);
    assert_int_equal(world->args_len, message_len(index));
    assert_memory_equal(world->args, message_bytes[index], message_len(index));
}

void world_expect_message_tcp(struct world *world, uint32_t message_index)
{
    struct client_action action = next(world, CLIENT_WRITE);
    assert_int_equal(action.connection, world->connection);
    check_message(world, record_in(action.bytes), message_index);
    rpc_client_check(world->client);
}

void world_expect_message_udp(struct world *world, uint16_t port, uint32_t message_index)
{
    struct client_action action = next(world, CLIENT_DATAGRAM);
    assert_int_equal(action.port, port);
    check_message(world, action.bytes, message_index);
    rpc_client_check(world->client);
}

void world_expect_nothing(const struct world *world)
{
    struct client_action action;
    assert_false(rpc_client_next_action(world->client, &action));
}

void world_expect_result(struct world *world, uint64_t id, enum client_outcome outcome,
                         uint32_t answered_count)
{
    struct client_result result;
    assert_true(rpc_client_next_result(world->client, &result));
    assert_int_equal(result.id, id);
    assert_int_equal(result.outcome, outcome);
    assert_int_equal(result.answered_count, answered_count);
    rpc_client_check(world->client);
}

void world_expect_no_result(struct world *world)
{
    struct client_result result;
    assert_false(rpc_client_next_result(world->client, &result));
}

void world_pass_ms(struct world *world, uint64_t ms)
{
    world_expect_nothing(world);
    uint64_t end_ns = world->now_ns + ms * WORLD_MS;
    while (rpc_client_deadline_ns(world->client) <= end_ns) {
        world_expect_nothing(world); /* what an earlier deadline asked for was overlooked */
        assert_true(rpc_client_deadline_ns(world->client) > world->now_ns);
        world->now_ns = rpc_client_deadline_ns(world->client);
        rpc_client_tick(world->client, world->now_ns);
        rpc_client_check(world->client);
    }
    world->now_ns = end_ns;
    rpc_client_tick(world->client, world->now_ns);
}

/* ---- what happens ---- */

void world_put_accepted(struct packet *packet, uint32_t xid, uint32_t accept_stat)
{
    packet_clear(packet);
    const uint32_t words[] = {xid, 1, 0, 0, 0, accept_stat};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        packet_put_u32(packet, words[i]);
    if (accept_stat == PACKET_PROG_MISMATCH) {
        packet_put_u32(packet, 3);
        packet_put_u32(packet, 4);
    }
}

void world_datagram(struct world *world, uint32_t host, uint16_t port, const struct packet *answer)
{
    struct address from = world_host(host);
    rpc_client_datagram(world->client, &from, port, (struct bytes){answer->bytes, answer->len},
                        world->now_ns);
    rpc_client_check(world->client);
}

void world_record(struct world *world, const struct packet *answer)
{
    rpc_client_record(world->client, world->connection, (struct bytes){answer->bytes, answer->len},
                      world->now_ns);
    rpc_client_check(world->client);
}

static struct packet packet;

void world_answer_port(struct world *world, uint32_t port)
{
    world_put_accepted(&packet, world->xid, PACKET_SUCCESS);
    packet_put_u32(&packet, port);
    world_datagram(world, 1, PORTMAPPER, &packet);
}

void world_answer_port_tcp(struct world *world, uint32_t port)
{
    world_put_accepted(&packet, world->xid, PACKET_SUCCESS);
    packet_put_u32(&packet, port);
    world_record(world, &packet);
}

void world_answer_void_udp(struct world *world, uint16_t port)
{
    world_put_accepted(&packet, world->xid, PACKET_SUCCESS);
    world_datagram(world, 1, port, &packet);
}

void world_answer_void_tcp(struct world *world)
{
    world_put_accepted(&packet, world->xid, PACKET_SUCCESS);
    world_record(world, &packet);
}

void world_connected(struct world *world, bool is_open)
{
    rpc_client_connected(world->client, world->connection, is_open, world->now_ns);
    rpc_client_check(world->client);
}

void world_lost(struct world *world)
{
    rpc_client_lost(world->client, world->connection, world->now_ns);
    rpc_client_check(world->client);
}

void world_unreachable(struct world *world, uint16_t port)
{
    struct address host = world_host(1);
    rpc_client_unreachable(world->client, &host, port, world->now_ns);
    rpc_client_check(world->client);
}

/* ---- moves as text ---- */

static void play_expectation(struct world *world, const char *verb, const uint32_t *a)
{
    static const char *const outcomes[] = {[CLIENT_ANSWERED] = "answered",
                                           [CLIENT_REFUSED] = "refused",
                                           [CLIENT_UNDELIVERED] = "undelivered",
                                           [CLIENT_UNKNOWN] = "unknown"};
    for (uint32_t i = 0; i < sizeof outcomes / sizeof outcomes[0]; i++)
        if (outcomes[i] != NULL && strcmp(verb, outcomes[i]) == 0) {
            world_expect_result(world, a[0], (enum client_outcome)i, a[1]);
            return;
        }
    fail_msg("\"%s\" is no move", verb);
}

static void play_event(struct world *world, const char *verb, const uint32_t *a)
{
    if (strcmp(verb, "start") == 0)
        world_start(world, a[0], (uint16_t)a[1]);
    else if (strcmp(verb, "pass") == 0)
        world_pass_ms(world, a[0]);
    else if (strcmp(verb, "port") == 0)
        world_answer_port(world, a[0]);
    else if (strcmp(verb, "port-tcp") == 0)
        world_answer_port_tcp(world, a[0]);
    else if (strcmp(verb, "void") == 0)
        world_answer_void_tcp(world);
    else if (strcmp(verb, "void-udp") == 0)
        world_answer_void_udp(world, (uint16_t)a[0]);
    else if (strcmp(verb, "open") == 0 || strcmp(verb, "refuse") == 0)
        world_connected(world, verb[0] == 'o');
    else if (strcmp(verb, "lose") == 0)
        world_lost(world);
    else if (strcmp(verb, "unreachable") == 0)
        world_unreachable(world, (uint16_t)a[0]);
    else if (strcmp(verb, "cancel") == 0)
        rpc_client_cancel(world->client, a[0]);
    else
        play_expectation(world, verb, a);
}

static void play_action(struct world *world, const char *verb, const uint32_t *a)
{
    if (strcmp(verb, "asked") == 0)
        world_expect_question(world, a[0], a[1]);
    else if (strcmp(verb, "asked-tcp") == 0)
        world_expect_question_tcp(world, a[0], a[1]);
    else if (strcmp(verb, "connect") == 0)
        world_expect_connect(world, (uint16_t)a[0]);
    else if (strcmp(verb, "close") == 0)
        world_expect_disconnect(world, world->connection);
    else if (strcmp(verb, "abort") == 0)
        world_expect_abort(world, world->connection);
    else if (strcmp(verb, "sent") == 0)
        world_expect_message_tcp(world, a[0]);
    else if (strcmp(verb, "sent-udp") == 0)
        world_expect_message_udp(world, (uint16_t)a[0], a[1]);
    else if (strcmp(verb, "nothing") == 0)
        world_expect_nothing(world);
    else if (strcmp(verb, "no-result") == 0)
        world_expect_no_result(world);
    else
        play_event(world, verb, a);
}

void world_play(struct world *world, const char *moves)
{
    for (world->playing = moves; world->playing != NULL;) {
        char verb[16];
        uint32_t numbers[2] = {0};
        assert_true(sscanf(world->playing, " %15[a-z-] %u %u", verb, &numbers[0], &numbers[1]) > 0);
        play_action(world, verb, numbers);
        const char *next = strchr(world->playing, ';');
        world->playing = next != NULL ? next + 1 : NULL;
    }
}

/*
 * fuzz_client.c -- any sequence of attempts, answers, losses, ICMP messages, cancels and passing
 * time through the engine of outgoing calls, with its invariants checked after each step.
 *
 * Input: a sequence of steps, each a byte (4 bits step, 4 bits detail) and what the step needs:
 *   START      host, flags (hint, IPv6), messages, budget (1 byte each)
 *   CANCEL     detail is the id
 *   ACT        takes up to detail + 1 actions
 *   RESULT     takes a result
 *   OPEN       a connection (detail) is open
 *   REFUSE     a connection (detail) is refused
 *   LOSE       a connection (detail) is lost
 *   ANSWER     to the newest call but detail: kind (1 byte), value (2 bytes)
 *   DATAGRAM   host, port (2 bytes), length, then the bytes as they are
 *   RECORD     a connection (detail), length, then the bytes as they are
 *   ICMP       host (detail), port (1 byte: one of those in use)
 *   WAIT       time passes: detail * detail * 16 ms
 *   RESTARTED  host (detail)
 *
 * Beside the invariants this is promised: a call is well-formed, a connection is opened once and
 * written to only while it is open, an attempt that ends undelivered never sent a message, and in
 * the end everything is gone.
 */
#include "base/units.h"
#include "codec/rpc_msg.h"
#include "fuzz.h"
#include "rpc/client.h"

enum step {
    STEP_START,
    STEP_CANCEL,
    STEP_ACT,
    STEP_RESULT,
    STEP_OPEN,
    STEP_REFUSE,
    STEP_LOSE,
    STEP_ANSWER,
    STEP_DATAGRAM,
    STEP_RECORD,
    STEP_ICMP,
    STEP_WAIT,
    STEP_RESTARTED,
    STEPS
};

enum {
    IDS = 16,
    CONNECTIONS_MAX = 3,
    SEEN_MAX = 16,
    STEPS_MAX = 1000,
    SERVICE_PROC = 77,
    BUDGET_MAX_MS = 256 * 32
};

struct seen_call {
    struct address host;
    uint32_t xid;
    uint16_t port;
    uint64_t connection; /* 0: a datagram */
};

static struct {
    struct rpc_client *client;
    uint64_t now_ns;
    struct {
        uint64_t id; /* 0: none */
        bool is_open;
    } connections[SEEN_MAX];
    uint32_t connection_count; /* ever */
    struct seen_call seen[SEEN_MAX];
    uint32_t seen_count; /* ever */
    bool is_live[IDS], has_sent[IDS];
} world;

static struct address host_of(uint32_t number, bool v6)
{
    uint8_t bytes[16] = {10, [15] = 1};
    bytes[3] = (uint8_t)number;
    return v6 ? address_v6(bytes, NULL) : address_v4(bytes);
}

/* The id of an attempt is the number of its host, so that an action tells whose it is. */
static uint32_t id_of(const struct address *host)
{
    return host->bytes[3] % IDS;
}

static void start(struct fuzz *fuzz)
{
    static const uint8_t bytes[64];
    uint32_t id = fuzz_u8(fuzz) % IDS, flags = fuzz_u8(fuzz);
    struct client_attempt attempt = {
        .id = id,
        .to = host_of(id, flags & 1),
        .prog = 200000 + (flags >> 4),
        .vers = 1,
        .proc = SERVICE_PROC,
        .port_hint = flags & 2 ? 12049 : 0,
        .message_count = 1 + fuzz_u8(fuzz) % CLIENT_MESSAGES_MAX,
        .deadline_ns = world.now_ns + fuzz_u8(fuzz) * 32 * MS_NS,
    };
    for (uint32_t i = 0; i < attempt.message_count; i++)
        attempt.messages[i] = (struct bytes){bytes, 4 * (i + 1)};
    if (world.is_live[id])
        return;
    world.is_live[id] = rpc_client_start(world.client, &attempt, world.now_ns);
    world.has_sent[id] = false;
}

static uint64_t connection_of(uint32_t detail)
{
    return world.connections[detail % SEEN_MAX].id;
}

static uint32_t find_connection(uint64_t id)
{
    for (uint32_t i = 0; i < SEEN_MAX; i++)
        if (world.connections[i].id == id)
            return i;
    return SEEN_MAX;
}

static void note_call(const struct client_action *action)
{
    struct bytes bytes = action->bytes;
    if (action->kind == CLIENT_WRITE) {
        CHECK(bytes.len > 4);
        CHECK(load_be32(bytes.at) == (UINT32_C(0x80000000) | (bytes.len - 4)));
        bytes.at += 4;
        bytes.len -= 4;
    }
    struct rpc_call call;
    CHECK(rpc_msg_get_call(bytes, &call) == RPC_CALL_OK);
    CHECK(call.prog == 100000 || (call.proc == SERVICE_PROC && call.args.len > 0));
    CHECK(world.is_live[id_of(&action->to)]);
    if (call.proc == SERVICE_PROC)
        world.has_sent[id_of(&action->to)] = true;
    world.seen[world.seen_count++ % SEEN_MAX] = (struct seen_call){
        .host = action->to,
        .xid = call.xid,
        .port = action->port,
        .connection = action->kind == CLIENT_WRITE ? action->connection : 0,
    };
}

static bool act(void)
{
    struct client_action action;
    if (!rpc_client_next_action(world.client, &action))
        return false;
    uint32_t at = find_connection(action.connection);
    switch (action.kind) {
    case CLIENT_DATAGRAM:
        note_call(&action);
        break;
    case CLIENT_CONNECT:
        CHECK(action.connection != 0);
        CHECK(at == SEEN_MAX);
        CHECK(action.port != 0);
        at = world.connection_count++ % SEEN_MAX;
        world.connections[at].id = action.connection;
        world.connections[at].is_open = false;
        break;
    case CLIENT_WRITE:
        CHECK(at == SEEN_MAX || world.connections[at].is_open);
        note_call(&action);
        break;
    case CLIENT_DISCONNECT:
        if (at != SEEN_MAX)
            world.connections[at].id = 0;
        break;
    }
    return true;
}

static bool take_result(void)
{
    struct client_result result;
    if (!rpc_client_next_result(world.client, &result))
        return false;
    CHECK(result.id < IDS);
    CHECK(world.is_live[result.id]);
    world.is_live[result.id] = false;
    CHECK(result.outcome != CLIENT_UNDELIVERED || !world.has_sent[result.id]);
    CHECK(result.outcome == CLIENT_UNDELIVERED || world.has_sent[result.id]);
    return true;
}

static void move_connection(enum step step, uint32_t detail)
{
    uint32_t at = detail % SEEN_MAX;
    uint64_t id = world.connections[at].id;
    if (step == STEP_OPEN) {
        world.connections[at].is_open = true;
        rpc_client_connected(world.client, id, true, world.now_ns);
    } else if (step == STEP_REFUSE) {
        if (world.connections[at].is_open)
            return;
        world.connections[at].id = 0;
        rpc_client_connected(world.client, id, false, world.now_ns);
    } else {
        world.connections[at].id = 0;
        rpc_client_lost(world.client, id, world.now_ns);
    }
}

static void answer(struct fuzz *fuzz, uint32_t detail)
{
    static const char *const uaddrs[] = {"", "10.0.0.1.3.32", "::1.1.144", "local"};
    uint8_t memory[128];
    struct xdr_out out = xdr_out_of(memory, sizeof memory);
    uint32_t kind = fuzz_u8(fuzz), value = fuzz_u16(fuzz);
    const struct seen_call *call = &world.seen[(world.seen_count - 1 - detail) % SEEN_MAX];
    if (detail >= world.seen_count || detail >= SEEN_MAX)
        return;
    if (kind % 8 == 7)
        rpc_msg_put_prog_mismatch(&out, call->xid, 3, 4);
    else if (kind % 8 == 6)
        rpc_msg_put_accepted(&out, call->xid, RPC_PROG_UNAVAIL);
    else
        rpc_msg_put_accepted(&out, call->xid, RPC_SUCCESS);
    if (kind % 8 == 1)
        xdr_put_u32(&out, value);
    else if (kind % 8 == 2)
        xdr_put_opaque(&out, bytes_of_text(uaddrs[value % 4]));
    struct bytes bytes = {memory, xdr_out_len(&out)};
    if (call->connection != 0)
        rpc_client_record(world.client, call->connection, bytes, world.now_ns);
    else
        rpc_client_datagram(world.client, &call->host, call->port, bytes, world.now_ns);
}

static void take_bytes(struct fuzz *fuzz, enum step step, uint32_t detail)
{
    struct address from = host_of(fuzz_u8(fuzz) % IDS, detail & 1);
    uint16_t port = (uint16_t)fuzz_u16(fuzz);
    struct bytes slice = fuzz_slice(fuzz, fuzz_u8(fuzz));
    uint8_t *copy = fuzz_copy(slice);
    struct bytes bytes = {copy, slice.len};
    if (step == STEP_RECORD)
        rpc_client_record(world.client, connection_of(detail), bytes, world.now_ns);
    else
        rpc_client_datagram(world.client, &from, port, bytes, world.now_ns);
    free(copy);
}

static void wait_ms(uint64_t ms)
{
    world.now_ns += ms * MS_NS;
    rpc_client_tick(world.client, world.now_ns);
    CHECK(rpc_client_deadline_ns(world.client) > world.now_ns);
}

static void do_step(struct fuzz *fuzz)
{
    static const uint16_t ports[] = {111, 12049, 800, 400};
    uint8_t choice = fuzz_u8(fuzz);
    uint32_t detail = choice >> 4;
    enum step step = (enum step)((choice & 15) % STEPS);
    struct address host = host_of(detail, detail & 1);
    switch (step) {
    case STEP_START:
        start(fuzz);
        break;
    case STEP_CANCEL:
        rpc_client_cancel(world.client, detail);
        world.is_live[detail] = false;
        break;
    case STEP_ACT:
        for (uint32_t i = 0; i <= detail; i++)
            (void)act();
        break;
    case STEP_RESULT:
        (void)take_result();
        break;
    case STEP_OPEN:
    case STEP_REFUSE:
    case STEP_LOSE:
        move_connection(step, detail);
        break;
    case STEP_ANSWER:
        answer(fuzz, detail);
        break;
    case STEP_DATAGRAM:
    case STEP_RECORD:
        take_bytes(fuzz, step, detail);
        break;
    case STEP_ICMP:
        rpc_client_unreachable(world.client, &host, ports[fuzz_u8(fuzz) % 4], world.now_ns);
        break;
    case STEP_WAIT:
        wait_ms(detail * detail * 16);
        break;
    case STEP_RESTARTED:
        rpc_client_host_restarted(world.client, &host);
        break;
    case STEPS:
        UNREACHABLE();
    }
    rpc_client_check(world.client);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz fuzz = {data, size};
    struct rpc_client_limits limits = {
        .attempts_max = 8, .connections_max = CONNECTIONS_MAX, .bytes_max = 1 << 16};
    memset(&world, 0, sizeof world);
    world.now_ns = MS_NS;
    world.client = rpc_client_new(&limits, 0xfffffffe, 7);
    CHECK(world.client != NULL);
    for (uint32_t i = 0; i < STEPS_MAX && fuzz.left > 0; i++)
        do_step(&fuzz);
    wait_ms(BUDGET_MAX_MS);
    while (take_result() || act())
        rpc_client_check(world.client);
    CHECK(rpc_client_count(world.client) == 0);
    for (uint32_t id = 0; id < IDS; id++)
        CHECK(!world.is_live[id]);
    rpc_client_check(world.client);
    rpc_client_free(world.client);
    return 0;
}

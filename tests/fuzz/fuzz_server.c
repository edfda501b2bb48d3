/*
 * fuzz_server.c -- any sequence of messages, commits and crashes through the RPC server and a real
 * core, with every invariant checked after each step.
 *
 * Input: a sequence of steps, each a byte (3 bits step, 2 bits peer, 3 bits detail) and what the
 * step needs:
 *   MESSAGE  length (2 bytes), then a message as it is
 *   CALL     procedure, xid, two names, program (1 byte each): a call that decodes
 *   TAKE     the store takes the open batch, if it has none
 *   STORE    the store reports it durable; detail says whether there is room for more
 *   DRAIN    answers that may leave, leave
 *   WAIT     time passes: seconds (1 byte); one of the calls that the core made ends, answered or
 * not as detail says CRASH    the process ends and starts again with what was durable; detail says
 * whether the batch that was out had landed DAMAGE   one bit of a stored record flips (kind, slot,
 * 2 bytes bit), the process starts again and writes its first batch
 *
 * Beside the invariants of server, cache and core, this is promised: a reply is a reply, carries
 * the xid of its call and fits; no answer leaves before its batch is durable; the state is
 * odd and larger than the durable one after every restart of an undamaged store; a restart finds
 * the records that were durable; calls to registrants go to addresses that called us, and say no
 * state that is not durable.
 */
#include "base/units.h"
#include "codec/nsm_xdr.h"
#include "codec/rpc_msg.h"
#include "core/core.h"
#include "fuzz.h"
#include "proto/nsm.h"
#include "rpc/server.h"

enum step {
    STEP_MESSAGE,
    STEP_CALL,
    STEP_TAKE,
    STEP_STORE,
    STEP_DRAIN,
    STEP_WAIT,
    STEP_CRASH,
    STEP_DAMAGE
};

enum {
    PEER_COUNT = 4,
    STEPS_MAX = 400,
    OUTBOX_MAX = 5,
    CLIENTS_MAX = 6,
    SLOTS_MAX = 64,
    REPLY_ROOM = 256,
    CALL_MAX = 4096,
    CALLS_OUT_MAX = 8, /* calls to registrants at once */
    PROCEDURE_AT = 20, /* in a call */
    TXN_AT = 8,
    EPOCH_AT = 16,
    STATE_AT = 32,
};

struct stored_record {
    uint32_t len; /* 0: none */
    uint8_t value[RECORD_VALUE_MAX];
};

/* The world around the server. One at a time: it is large, and libFuzzer has one thread. */
struct world {
    struct core *core;
    struct rpc_server *server;
    struct stored_record disk[RECORD_KIND_END][SLOTS_MAX];
    struct store_batch out; /* handed to the store */
    bool is_out, damaged;
    uint64_t taken_txn; /* the last batch taken, or the first of this run */
    struct {
        uint64_t needed_txn;
        uint32_t xid;
    } waiting[OUTBOX_MAX]; /* the answers in the outbox, oldest first */
    bool is_ready;
    struct {
        uint64_t id;
        uint32_t status_count;
    } calls[CALLS_OUT_MAX]; /* to registrants, under way */
    uint32_t call_count;
    uint64_t now_ns;
    uint8_t reply[REPLY_ROOM];
};

static struct world world;
static const struct file_set shares[1]; /* everything is in "default" */

static const struct program *const programs[] = {&nsm_program};

static struct rpc_source source_of(uint32_t peer)
{
    static const uint8_t v6[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 1};
    struct rpc_source source = {.route = peer};
    source.peer.local = address_v4((const uint8_t[]){192, 0, 2, 254});
    source.peer.transport = peer % 2 == 0 ? TRANSPORT_TCP : TRANSPORT_UDP;
    source.peer.port = peer % 2 == 0 ? 700 : 40000;
    if (peer < 2)
        source.peer.address = address_v4((const uint8_t[]){127, 0, 0, 1});
    else if (peer == 2)
        source.peer.address = address_v4((const uint8_t[]){192, 0, 2, 1});
    else
        source.peer.address = address_v6(v6, NULL);
    return source;
}

static void apply(const struct store_batch *batch)
{
    struct record_change change;
    uint32_t count = 0;
    for (uint64_t at = 0; store_batch_next(batch, &at, &change); count++) {
        CHECK(change.slot < SLOTS_MAX);
        CHECK(change.value.len <= RECORD_VALUE_MAX);
        struct stored_record *record = &world.disk[change.kind][change.slot];
        record->len = change.deleted ? 0 : change.value.len;
        if (!change.deleted)
            memcpy(record->value, change.value.at, change.value.len);
    }
    CHECK(count == batch->count);
}

/* A number of the durable server record, by the layout in record.c; 0 when there is none. */
static uint32_t durable_word(uint32_t at)
{
    const struct stored_record *record = &world.disk[RECORD_SERVER][0];
    return record->len > 0 ? load_be32(record->value + at) : 0;
}

static uint32_t records_of(enum record_kind kind)
{
    uint32_t count = 0;
    for (uint32_t slot = 0; slot < SLOTS_MAX; slot++)
        count += world.disk[kind][slot].len > 0;
    return count;
}

static void load_all(void)
{
    for (uint32_t kind = RECORD_SERVER; kind < RECORD_KIND_END; kind++) {
        for (uint32_t slot = 0; slot < SLOTS_MAX; slot++) {
            const struct stored_record *record = &world.disk[kind][slot];
            if (record->len == 0)
                continue;
            struct bytes value = {record->value, record->len};
            enum record_result result = core_load(world.core, (enum record_kind)kind, slot, value);
            CHECK(result == RECORD_GOOD || world.damaged);
            CHECK(result != RECORD_NEWER); /* damage never looks like a newer format */
        }
    }
}

static void start(void)
{
    struct core_limits limits = {.clients_max = CLIENTS_MAX,
                                 .file_sets = shares,
                                 .file_set_count = 1,
                                 .bytes_max = 1 << 16,
                                 .batch_puts_max = 4,
                                 .server_name = bytes_of_text("holdfast.example"),
                                 .notify_timeout_ns = 5 * SECOND_NS,
                                 .window_ns = 90 * SECOND_NS,
                                 .give_up_ns = 900 * SECOND_NS};
    for (uint32_t kind = RECORD_SERVER; kind < RECORD_KIND_END; kind++)
        for (uint32_t slot = 0; slot < SLOTS_MAX; slot++)
            if (world.disk[kind][slot].len > 0)
                limits.slots_used[kind] = slot + 1;
    world.core = core_new(&limits, 1);
    CHECK(world.core != NULL);
    load_all();
    struct core_boot boot = {.wall_ns = world.now_ns + (UINT64_C(1) << 60)};
    core_start(world.core, &boot);
    core_check(world.core);

    struct core_status status;
    core_status(world.core, &status);
    CHECK(status.state % 2 == 1);
    if (world.damaged) {
        CHECK(status.incomplete);
    } else {
        CHECK(status.state > durable_word(STATE_AT));
        CHECK(status.registrants == records_of(RECORD_REGISTRANT));
        CHECK(status.notices == records_of(RECORD_NOTICE));
    }

    world.taken_txn = status.durable_txn + 1; /* which holds the new state */
    struct rpc_server_limits server_limits = {.outbox_max = OUTBOX_MAX, .cache_max = 8};
    world.server = rpc_server_new(&server_limits, programs, 1, world.core, 2);
    CHECK(world.server != NULL);
    CHECK(rpc_server_reply_max(world.server) <= REPLY_ROOM);
}

static void stop(void)
{
    rpc_server_free(world.server);
    core_free(world.core);
    world.is_out = world.is_ready = false;
    world.call_count = 0;
}

static void check_reply(struct bytes message)
{
    CHECK(message.len >= 16);
    CHECK(message.len % 4 == 0);
    CHECK(message.len <= rpc_server_reply_max(world.server));
    CHECK(load_be32(message.at + 4) == 1); /* REPLY */
}

static void receive(uint32_t peer, struct bytes message)
{
    struct rpc_source from = source_of(peer);
    uint8_t *copy = fuzz_copy(message);
    struct xdr_out reply = xdr_out_of(world.reply, rpc_server_reply_max(world.server));
    uint32_t waiting = rpc_server_waiting(world.server);
    struct bytes view = {copy, message.len};
    switch (rpc_server_receive(world.server, &from, view, world.now_ns, world.now_ns, &reply)) {
    case RPC_ANSWERED:
        CHECK(!reply.overflowed);
        check_reply((struct bytes){world.reply, xdr_out_len(&reply)});
        CHECK(load_be32(world.reply) == load_be32(copy)); /* the xid */
        CHECK(rpc_server_waiting(world.server) == waiting);
        break;
    case RPC_ACKNOWLEDGED: /* the program has no messages */
        CHECK(false);
        break;
    case RPC_WAITING:
        if (rpc_server_waiting(world.server) == waiting) {
            /* The answer to a notice waits for a resolver, which this world has not. */
            CHECK(load_be32(copy + PROCEDURE_AT) == NSM_NOTIFY);
            break;
        }
        CHECK(rpc_server_waiting(world.server) == waiting + 1);
        CHECK(waiting < OUTBOX_MAX);
        world.waiting[waiting].needed_txn = world.taken_txn;
        world.waiting[waiting].xid = load_be32(copy);
        break;
    case RPC_NO_ANSWER:
    case RPC_BUSY:
        CHECK(rpc_server_waiting(world.server) == waiting);
        break;
    }
    free(copy);
}

static struct bytes name_of(uint8_t choice)
{
    static const char *const names[] = {"srv", "SRV",     "client.example.com", "",
                                        "a/b", ".hidden", "127.0.0.1"};
    static uint8_t longest[NSM_NAME_MAX];
    uint32_t count = sizeof names / sizeof names[0];
    if (choice % 16 < count)
        return bytes_of_text(names[choice % 16]);
    /* Many different names of many lengths, up to the longest. */
    memset(longest, 'n', sizeof longest);
    longest[0] = (uint8_t)('a' + choice % 16);
    return (struct bytes){longest, choice >= 240 ? NSM_NAME_MAX : 1 + choice / 16U};
}

static uint32_t program_of(uint8_t choice)
{
    static const uint32_t numbers[] = {100021, 100024, 100003, 400000, 0};
    return numbers[choice % (sizeof numbers / sizeof numbers[0])];
}

/* A call whose header and arguments decode. */
static void call(struct fuzz *fuzz, uint32_t peer)
{
    static uint8_t memory[CALL_MAX];
    struct xdr_out out = xdr_out_of(memory, sizeof memory);
    uint32_t procedure = fuzz_u8(fuzz) % nsm_program.versions[0].procedure_count,
             xid = fuzz_u8(fuzz) % 8;
    uint8_t mon = fuzz_u8(fuzz), my = fuzz_u8(fuzz), detail = fuzz_u8(fuzz);
    const uint32_t words[] = {xid, 0, RPC_VERSION, NSM_PROGRAM, NSM_VERSION, procedure, 0, 0, 0, 0};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        xdr_put_u32(&out, words[i]);
    bool named = procedure != NSM_NULL && procedure != NSM_SIMU_CRASH && procedure != NSM_UNMON_ALL;
    if (named)
        xdr_put_opaque(&out, name_of(mon));
    if (procedure == NSM_MON || procedure == NSM_UNMON || procedure == NSM_UNMON_ALL) {
        xdr_put_opaque(&out, name_of(my));
        xdr_put_u32(&out, program_of(detail));
        xdr_put_u32(&out, detail % 3);
        xdr_put_u32(&out, 16);
    }
    if (procedure == NSM_MON)
        xdr_put_fixed(&out, bytes_of_text("0123456789abcdef"));
    if (procedure == NSM_NOTIFY)
        xdr_put_u32(&out, detail);
    CHECK(!out.overflowed);
    receive(peer, (struct bytes){memory, xdr_out_len(&out)});
}

static void take(void)
{
    if (world.is_out)
        return;
    world.is_out = core_take_batch(world.core, &world.out);
    if (world.is_out) {
        CHECK(world.out.txn == world.taken_txn || world.out.txn == world.taken_txn + 1);
        world.taken_txn = world.out.txn;
        return;
    }
    /* Nothing to write: the store holds what the core holds. */
    struct core_status status;
    core_status(world.core, &status);
    CHECK(status.registrants == records_of(RECORD_REGISTRANT));
    CHECK(status.notices == records_of(RECORD_NOTICE));
    CHECK(status.state == durable_word(STATE_AT));
}

static void store(bool has_room)
{
    if (!world.is_out)
        return;
    apply(&world.out);
    world.is_out = false;
    rpc_server_stored(world.server, world.out.txn, has_room, world.now_ns, world.now_ns);
    if (!world.is_ready) {
        struct core_input input = {.kind = CORE_READY, .now_ns = world.now_ns};
        core_step(world.core, &input, NULL);
        world.is_ready = true;
    }
}

static void check_call_out(const struct core_call *call_out)
{
    bool is_known = false;
    for (uint32_t peer = 0; peer < PEER_COUNT; peer++) {
        struct rpc_source source = source_of(peer);
        is_known |= address_equal(&source.peer.address, &call_out->to); /* R-SEC-2 */
    }
    CHECK(is_known);
    CHECK(call_out->status_count > 0);
    CHECK(call_out->status_count <= CORE_CALL_STATUS_MAX);
    CHECK(call_out->port_hint != 0);
    CHECK(call_out->priv.len == RECORD_PRIV_LEN);
    if (bytes_equal(call_out->status[0].mon_name, bytes_of_text("holdfast.example")))
        CHECK(call_out->status[0].state == durable_word(STATE_AT)); /* P1 */
}

/* Calls whose time has come leave, as many as there is room for. */
static void call_registrants(void)
{
    struct core_call call_out;
    while (world.call_count < CALLS_OUT_MAX &&
           core_next_call(world.core, world.now_ns, &call_out)) {
        check_call_out(&call_out);
        world.calls[world.call_count].id = call_out.id;
        world.calls[world.call_count++].status_count = call_out.status_count;
    }
}

/* The oldest call ends. */
static void end_call(bool is_answered)
{
    if (world.call_count == 0 || core_is_full(world.core))
        return;
    struct core_input input = {.kind = CORE_CALL_DONE,
                               .now_ns = world.now_ns,
                               .call = world.calls[0].id,
                               .outcome = is_answered ? CALL_ANSWERED : CALL_UNKNOWN,
                               .answered_count = is_answered ? world.calls[0].status_count : 0};
    core_step(world.core, &input, NULL);
    world.call_count--;
    memmove(world.calls, world.calls + 1, world.call_count * sizeof world.calls[0]);
}

static void drain(void)
{
    uint32_t waiting = rpc_server_waiting(world.server), left = 0;
    struct rpc_reply reply;
    while (rpc_server_next(world.server, world.now_ns, &reply)) {
        check_reply(reply.message);
        CHECK(left < waiting);
        left++;
        CHECK(reply.route < PEER_COUNT);
        struct rpc_source to = source_of((uint32_t)reply.route);
        CHECK(reply.transport == to.peer.transport);
        CHECK((reply.peer != NULL) == (reply.is_call || reply.transport == TRANSPORT_UDP));
        CHECK(reply.peer == NULL || address_equal(&reply.peer->address, &to.peer.address));
        struct core_status status;
        core_status(world.core, &status);
        CHECK((uint32_t)status.durable_txn == durable_word(TXN_AT + 4));
        CHECK((uint32_t)status.epoch == durable_word(EPOCH_AT + 4));
        CHECK(status.durable_txn >= world.waiting[left - 1].needed_txn); /* P1 */
        CHECK(load_be32(reply.message.at) == world.waiting[left - 1].xid);
    }
    CHECK(rpc_server_waiting(world.server) == waiting - left);
    memmove(world.waiting, world.waiting + left, (waiting - left) * sizeof world.waiting[0]);
}

static void crash(bool landed)
{
    if (world.is_out && landed)
        apply(&world.out);
    stop();
    start();
}

static void damage(struct fuzz *fuzz)
{
    uint32_t kind = RECORD_SERVER + fuzz_u8(fuzz) % (RECORD_KIND_END - RECORD_SERVER);
    struct stored_record *record = &world.disk[kind][fuzz_u8(fuzz) % SLOTS_MAX];
    uint32_t bit = fuzz_u16(fuzz);
    if (record->len == 0)
        return;
    record->value[bit / 8 % record->len] ^= (uint8_t)(1U << bit % 8);
    world.damaged = true;
    crash(false);
    /* What cannot be read is removed by the first batch: the store is whole again, if poorer. */
    take();
    store(true);
    world.damaged = false;
}

static void step(struct fuzz *fuzz)
{
    uint8_t choice = fuzz_u8(fuzz);
    uint32_t peer = (choice >> 3) % PEER_COUNT;
    bool detail = choice & 0x80;
    switch ((enum step)(choice & 7)) {
    case STEP_MESSAGE:
        receive(peer, fuzz_slice(fuzz, fuzz_u16(fuzz)));
        break;
    case STEP_CALL:
        call(fuzz, peer);
        break;
    case STEP_TAKE:
        take();
        break;
    case STEP_STORE:
        store(!detail);
        break;
    case STEP_DRAIN:
        drain();
        break;
    case STEP_WAIT:
        world.now_ns += fuzz_u8(fuzz) * SECOND_NS;
        end_call(detail);
        break;
    case STEP_CRASH:
        crash(detail);
        break;
    case STEP_DAMAGE:
        damage(fuzz);
        break;
    }
    call_registrants();
    rpc_server_check(world.server);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz fuzz = {data, size};
    for (uint32_t kind = 0; kind < RECORD_KIND_END; kind++)
        for (uint32_t slot = 0; slot < SLOTS_MAX; slot++)
            world.disk[kind][slot].len = 0;
    world.now_ns = SECOND_NS;
    world.damaged = world.is_out = world.is_ready = false;
    world.call_count = 0;
    start();
    for (uint32_t i = 0; i < STEPS_MAX && fuzz.left > 0; i++)
        step(&fuzz);
    stop();
    return 0;
}

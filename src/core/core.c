/*
 * core.c -- one input in, one answer out; batches pulled when the store is free. See core.h.
 *
 * Always true; core_check() asserts (1) and (2):
 *  (1) durable_txn <= server.txn, and they differ by one exactly while a batch is out.
 *  (2) From core_start on the state number is odd.
 *  (3) Whatever differs from the store is in the batch that is out, or marked dirty: also our own
 *      record, hence the state number. The core cannot see the store; the simulator compares both.
 *
 * The answer's after_txn is computed last, when everything the request changed is marked.
 */
#include "core/core.h"

#include "base/check.h"
#include "base/hash.h"
#include "core/state.h"

#include <stdlib.h>

/* An address costs one arena cell of 32 bytes; a name one of at most 1,024. */
enum {
    STORED_BYTES_MAX = 32 + 3 * RECORD_NAME_MAX,
    NOTICE_BYTES_MAX = 2 * RECORD_NAME_MAX,
    /* Each of the arena's eight cell sizes may leave one 64 KiB block nearly empty: what fits by
     * its bytes must fit also then, or a restart could not load what was stored. */
    SPARE_BYTES = 8 * 64 * 1024,
};

static uint32_t max_u32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static int reserve_batch(struct core *core, const uint32_t slots_max[RECORD_KIND_END])
{
    uint64_t len =
        ((uint64_t)core->limits.batch_puts_max + 1) * (RECORD_VALUE_MAX + BATCH_CHANGE_OVERHEAD);
    for (uint32_t kind = 0; kind < RECORD_KIND_END; kind++)
        len += (uint64_t)slots_max[kind] * BATCH_CHANGE_OVERHEAD;
    core->batch_memory = calloc(1, len);
    core->batch_memory_len = len;
    return core->batch_memory == NULL ? -1 : 0;
}

struct core *core_new(const struct core_limits *limits, uint64_t seed)
{
    struct core *core = calloc(1, sizeof *core);
    if (core == NULL)
        return NULL;
    core->limits = *limits;
    core->seed = seed;
    core->has_room = true;
    /* What is added up below then fits into 32 bits. */
    CHECK(limits->clients_max <= RECORD_SLOT_MAX);
    CHECK(limits->slots_used[RECORD_REGISTRANT] <= RECORD_SLOT_MAX);
    CHECK(limits->slots_used[RECORD_NOTICE] <= RECORD_SLOT_MAX);

    /* What is stored must fit, also when the limits are lower now than when it was stored. */
    uint32_t slots_max[RECORD_KIND_END] = {0};
    slots_max[RECORD_REGISTRANT] =
        max_u32(limits->clients_max, limits->slots_used[RECORD_REGISTRANT]);
    slots_max[RECORD_NOTICE] =
        max_u32(slots_max[RECORD_REGISTRANT], limits->slots_used[RECORD_NOTICE]);
    uint64_t stored_bytes = (uint64_t)limits->slots_used[RECORD_REGISTRANT] * STORED_BYTES_MAX +
                            (uint64_t)limits->slots_used[RECORD_NOTICE] * NOTICE_BYTES_MAX;
    uint32_t folds_max = slots_max[RECORD_REGISTRANT] + slots_max[RECORD_NOTICE];
    uint32_t names_max = folds_max + slots_max[RECORD_REGISTRANT];

    core->arena = arena_new(limits->bytes_max + stored_bytes + SPARE_BYTES);
    if (core->arena == NULL || intern_init(&core->names, core->arena, names_max, seed) != 0 ||
        intern_init(&core->folds, core->arena, folds_max, seed) != 0 ||
        registrant_init(core, slots_max[RECORD_REGISTRANT]) != 0 ||
        notice_init(core, slots_max[RECORD_NOTICE]) != 0 ||
        notify_init(core, slots_max[RECORD_REGISTRANT]) != 0 ||
        dirty_init(&core->dirty, slots_max) != 0 || reserve_batch(core, slots_max) != 0) {
        core_free(core);
        return NULL;
    }
    return core;
}

static struct bytes fold(struct bytes name, uint8_t buffer[static RECORD_NAME_MAX])
{
    CHECK(name.len <= RECORD_NAME_MAX);
    for (uint32_t i = 0; i < name.len; i++)
        buffer[i] = byte_fold(name.at[i]);
    return (struct bytes){buffer, name.len};
}

uint32_t core_add_fold(struct core *core, struct bytes name)
{
    uint8_t buffer[RECORD_NAME_MAX];
    return intern_add(&core->folds, fold(name, buffer));
}

uint32_t core_find_fold(const struct core *core, struct bytes name)
{
    uint8_t buffer[RECORD_NAME_MAX];
    return intern_find(&core->folds, fold(name, buffer));
}

void core_free(struct core *core)
{
    if (core == NULL)
        return;
    registrant_done(core);
    notice_done(core);
    notify_done(core);
    intern_done(&core->names);
    intern_done(&core->folds);
    dirty_done(&core->dirty);
    arena_free(core->arena);
    free(core->batch_memory);
    free(core);
}

static bool has_changes(const struct core *core)
{
    return core->server_changed || !dirty_is_empty(&core->dirty);
}

uint64_t core_gate_txn(const struct core *core)
{
    return core->server.txn + (has_changes(core) ? 1 : 0);
}

bool core_is_full(const struct core *core)
{
    return core->dirty.put_count >= core->limits.batch_puts_max;
}

/* R-NSM-1: no name that another host's status monitor would take for a path, or that is no text. */
static bool is_acceptable_name(struct bytes name)
{
    if (name.len == 0 || name.at[0] == '.')
        return false;
    for (uint32_t i = 0; i < name.len; i++)
        if (name.at[i] < 0x20 || name.at[i] == 0x7f || name.at[i] == '/')
            return false;
    return true;
}

/* D1: the programs of the RPC core services are not for strangers to have called (CERT CA-99.05).
 */
static bool is_acceptable_program(uint32_t prog)
{
    return prog < 100000 || prog > 100099 || prog == 100021 || prog == 100024;
}

static bool may_register(struct core *core, const struct peer *from)
{
    if (!core->limits.mon_from_loopback || address_is_loopback(&from->address))
        return true;
    event_add(&core->events, EVENT_NOT_ALLOWED, &from->address, (struct bytes){0}, 0);
    return false;
}

static void report(struct core *core, enum event_kind kind, const struct peer *from,
                   struct bytes name, uint64_t value)
{
    event_add(&core->events, kind, &from->address, name, value);
}

/* SM_MON. True: refused. */
static bool refuse_mon(struct core *core, const struct peer *from, const struct request *request,
                       uint64_t wall_ns)
{
    CHECK(request->priv.len == RECORD_PRIV_LEN);
    if (!may_register(core, from))
        return true;
    if (!is_acceptable_name(request->mon_name)) {
        report(core, EVENT_BAD_NAME, from, request->mon_name, 0);
        return true;
    }
    if (!is_acceptable_program(request->my_prog)) {
        report(core, EVENT_BAD_CALLBACK, from, request->mon_name, request->my_prog);
        return true;
    }
    switch (registrant_add(core, from, request, wall_ns)) {
    case REGISTRANT_ADDED:
    case REGISTRANT_UPDATED:
        return false;
    case REGISTRANT_LIMIT:
        report(core, EVENT_LIMIT, from, request->mon_name, core->limits.clients_max);
        return true;
    case REGISTRANT_BYTES:
        report(core, EVENT_NO_BYTES, from, request->mon_name, core->limits.bytes_max);
        return true;
    case REGISTRANT_ROOM:
        report(core, EVENT_NO_ROOM, from, request->mon_name, 0);
        return true;
    }
    UNREACHABLE();
}

static void simulate_crash(struct core *core, const struct peer *from)
{
    if (!address_is_loopback(&from->address) || from->port >= 1024) {
        report(core, EVENT_CRASH_REFUSED, from, (struct bytes){0}, from->port);
        return;
    }
    MARK("simu_crash");
    core->server.state = core_next_state(core->server.state);
    core->server_changed = true;
    core->sync_wanted = true;
    notify_restarted(core);
    report(core, EVENT_CRASH_SIMULATED, from, (struct bytes){0}, core->server.state);
}

/* SM_NOTIFY. True: news, and the caller is the host that rebooted. */
static bool hear_notice(struct core *core, const struct peer *from, const struct request *request,
                        uint64_t wall_ns)
{
    if (!is_acceptable_name(request->mon_name)) {
        report(core, EVENT_BAD_NAME, from, request->mon_name, 0);
        return false;
    }
    switch (notice_hear(core, &from->address, request->mon_name, request->state, wall_ns)) {
    case NOTICE_NEW:
        report(core, EVENT_NOTICE, from, request->mon_name, request->state);
        return true;
    case NOTICE_KNOWN:
        return false;
    case NOTICE_UNHEARD:
        report(core, EVENT_NOTICE_IGNORED, from, request->mon_name, request->state);
        return false;
    case NOTICE_BYTES:
        report(core, EVENT_NO_BYTES, from, request->mon_name, core->limits.bytes_max);
        return false;
    }
    UNREACHABLE();
}

static void answer(struct core *core, const struct peer *from, const struct request *request,
                   uint64_t wall_ns, struct response *ret)
{
    bool refused = false, rebooted = false;
    switch (request->kind) {
    case REQUEST_NSM_STAT:
        refused = !is_acceptable_name(request->mon_name);
        break;
    case REQUEST_NSM_MON:
        refused = refuse_mon(core, from, request, wall_ns);
        break;
    case REQUEST_NSM_UNMON:
        if (may_register(core, from))
            (void)registrant_remove(core, from, request); /* the answer is the same (R-NSM-2) */
        break;
    case REQUEST_NSM_UNMON_ALL:
        if (may_register(core, from))
            (void)registrant_remove_all(core, &from->address, request->my_name);
        break;
    case REQUEST_NSM_SIMU_CRASH:
        simulate_crash(core, from);
        break;
    case REQUEST_NSM_NOTIFY:
        rebooted = hear_notice(core, from, request, wall_ns);
        break;
    }
    *ret = (struct response){
        .refused = refused, .state = core->server.state, .caller_rebooted = rebooted};
}

static void stored(struct core *core, uint64_t txn, bool has_room)
{
    CHECK(txn >= core->durable_txn);
    CHECK(txn <= core->server.txn);
    core->durable_txn = txn;
    core->has_room = has_room;
    if (txn == core->server.txn)
        core->batch_out = false;
    notify_stored(core);
}

void core_step(struct core *core, const struct core_input *input, struct core_answer *ret)
{
    CHECK(core->started);
    CHECK(input->now_ns >= core->now_ns);
    core->now_ns = input->now_ns;
    switch (input->kind) {
    case CORE_REQUEST:
        CHECK(!core_is_full(core));
        answer(core, input->from, input->request, input->wall_ns, &ret->response);
        ret->after_txn = core_gate_txn(core);
        return;
    case CORE_STORED:
        stored(core, input->txn, input->has_room);
        return;
    case CORE_READY:
        notify_ready(core);
        return;
    case CORE_CALL_DONE:
        CHECK(!core_is_full(core));
        notify_call_done(core, input->call, input->is_answered, input->answered_count);
        return;
    }
    UNREACHABLE();
}

bool core_next_call(struct core *core, uint64_t now_ns, struct core_call *ret)
{
    CHECK(now_ns >= core->now_ns);
    core->now_ns = now_ns;
    return notify_next_call(core, ret);
}

uint64_t core_deadline_ns(const struct core *core)
{
    return notify_deadline_ns(core);
}

/* Moves the slot at `i` down until no child of it in the heap is larger. */
static void sift_down(uint32_t *slots, uint32_t count, uint32_t i)
{
    uint32_t slot = slots[i];
    for (uint32_t child; (child = 2 * i + 1) < count; i = child) {
        if (child + 1 < count && slots[child + 1] > slots[child])
            child++;
        if (slots[child] <= slot)
            break;
        slots[i] = slots[child];
    }
    slots[i] = slot;
}

/* Heap sort: in place, and as quick when a hundred thousand slots come in descending order. */
static void sort_slots(uint32_t *slots, uint32_t count)
{
    for (uint32_t i = count / 2; i > 0; i--)
        sift_down(slots, count, i - 1);
    for (uint32_t end = count; end > 1; end--) {
        uint32_t largest = slots[0];
        slots[0] = slots[end - 1];
        slots[end - 1] = largest;
        sift_down(slots, end - 1, 0);
    }
}

/* In ascending order of slots, as the store keeps them: a commit then needs the fewest pages. */
static void write_kind(struct core *core, struct batch_writer *writer, enum record_kind kind,
                       const struct table *table,
                       uint32_t (*encode)(const struct core *, uint32_t, uint8_t *))
{
    const struct dirty_slots *dirty = &core->dirty.of[kind];
    uint8_t value[RECORD_VALUE_MAX];
    sort_slots(dirty->slots, dirty->count);
    for (uint32_t i = 0; i < dirty->count; i++) {
        uint32_t slot = dirty->slots[i];
        if (table_is_live(table, slot)) {
            uint32_t len = encode(core, slot, value);
            batch_put(writer, kind, slot, (struct bytes){value, len});
        } else {
            batch_delete(writer, kind, slot);
        }
    }
}

bool core_take_batch(struct core *core, struct store_batch *ret)
{
    CHECK(!core->batch_out);
    if (!has_changes(core))
        return false;
    core->server.txn++;
    struct batch_writer writer = {.start = core->batch_memory, .max = core->batch_memory_len};
    uint8_t value[RECORD_VALUE_MAX];
    uint32_t len = record_put_server(value, &core->server);
    batch_put(&writer, RECORD_SERVER, 0, (struct bytes){value, len});
    write_kind(core, &writer, RECORD_REGISTRANT, &core->registrants.table, registrant_encode);
    write_kind(core, &writer, RECORD_NOTICE, &core->notices.table, notice_encode);

    *ret = (struct store_batch){
        .txn = core->server.txn,
        .epoch = core->server.epoch,
        .must_sync = core->sync_wanted,
        .count = writer.count,
        .changes = {writer.start, writer.len},
    };
    dirty_clear(&core->dirty);
    core->server_changed = false;
    core->sync_wanted = false;
    core->batch_out = true;
    return true;
}

void core_status(const struct core *core, struct core_status *ret)
{
    *ret = (struct core_status){
        .epoch = core->server.epoch,
        .state = core->server.state,
        .registrants = core->registrants.table.count,
        .notices = core->notices.table.count,
        .names = core->names.table.count + core->folds.table.count,
        .bytes_used = arena_used(core->arena),
        .durable_txn = core->durable_txn,
        .incomplete = core->server.flags & RECORD_SERVER_INCOMPLETE,
        .has_room = core->has_room,
        .notify = core->notify.counters,
    };
}

struct event_ring *core_events(struct core *core)
{
    return &core->events;
}

void core_check(const struct core *core)
{
    CHECK(core->durable_txn <= core->server.txn);
    CHECK(core->server.txn - core->durable_txn == (core->batch_out ? 1 : 0));
    CHECK(core->server.state % 2 == 1 || !core->started);
    CHECK(core->started || core->durable_txn == core->server.txn);
    table_check(&core->names.table);
    table_check(&core->folds.table);
    registrant_check(core);
    notice_check(core);
    notify_check(core);
}

uint64_t core_digest(const struct core *core)
{
    uint8_t value[RECORD_VALUE_MAX];
    uint32_t len = record_put_server(value, &core->server);
    uint64_t digest = hash_bytes(0, (struct bytes){value, len});
    const struct table *table = &core->registrants.table;
    for (uint32_t slot = table_next(table, SLOT_NONE); slot != SLOT_NONE;
         slot = table_next(table, slot)) {
        len = registrant_encode(core, slot, value);
        digest = hash_mix(digest, hash_bytes(slot, (struct bytes){value, len}));
    }
    table = &core->notices.table;
    for (uint32_t slot = table_next(table, SLOT_NONE); slot != SLOT_NONE;
         slot = table_next(table, slot)) {
        len = notice_encode(core, slot, value);
        digest = hash_mix(digest, hash_bytes(~(uint64_t)slot, (struct bytes){value, len}));
    }
    return digest;
}

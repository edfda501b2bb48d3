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
#include "core/monitoring.h"
#include "core/parts.h"
#include "core/state.h"

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
    if (name.len > RECORD_NAME_MAX) /* FREE_ALL allows one byte more than any name we keep */
        return SLOT_NONE;
    return intern_find(&core->folds, fold(name, buffer));
}

uint64_t core_fetch_fold(const struct core *core, struct bytes name)
{
    uint8_t buffer[RECORD_NAME_MAX];
    if (name.len > RECORD_NAME_MAX)
        return 0; /* it will be refused */
    return intern_fetch(&core->folds, fold(name, buffer));
}

bool core_has_changes(const struct core *core)
{
    return core->server_changed || !dirty_is_empty(&core->dirty);
}

uint64_t core_gate_txn(const struct core *core)
{
    return core->server.txn + (core_has_changes(core) ? 1 : 0);
}

uint64_t core_fence(struct core *core)
{
    if (lease_is_shared(core->limits.lease))
        core->server_changed = true;
    return core_gate_txn(core);
}

uint64_t core_durable_txn(const struct core *core)
{
    return core->durable_txn;
}

bool core_is_full(const struct core *core)
{
    return core->dirty.put_count >= core->limits.batch_puts_max;
}

void core_raise_state(struct core *core)
{
    core->server.state = core_next_state(core->server.state);
    core->server_changed = true;
    core->sync_wanted = true;
    core->state_txn = core_gate_txn(core);
}

void core_host_restarted(struct core *core, const struct address *host)
{
    for (uint32_t i = 0; i < core->restarted_count; i++)
        if (address_equal(&core->restarted[i], host))
            return;
    CHECK(core->restarted_count < RESTARTED_MAX);
    core->restarted[core->restarted_count++] = *host;
}

bool core_next_restarted(struct core *core, struct address *ret)
{
    if (core->restarted_count == 0)
        return false;
    *ret = core->restarted[--core->restarted_count];
    return true;
}

void core_client_overridden(struct core *core, uint32_t slot, const struct address *from)
{
    core->overridden = slot;
    core->overridden_from = *from;
}

bool core_next_overridden(struct core *core, struct address *ret, struct bytes *ret_name)
{
    uint32_t slot = core->overridden;
    if (slot == SLOT_NONE)
        return false;
    core->overridden = SLOT_NONE;
    *ret = core->overridden_from;
    *ret_name = intern_bytes(&core->names, client_at(core, slot)->stored.name);
    return true;
}

static void stored(struct core *core, uint64_t txn, bool has_room)
{
    CHECK(txn >= core->durable_txn);
    CHECK(txn <= core->server.txn);
    core->durable_txn = txn;
    core->has_room = has_room;
    if (txn == core->server.txn)
        core->batch_out = false;
    grace_stored(core);
    notify_stored(core);
    grant_stored(core);
}

/* Which of the two made the call is in the eight bits of its id that no slot reaches. */
enum { CALLER_SHIFT = 24 };
_Static_assert(RECORD_SLOT_MAX < 1 << CALLER_SHIFT, "a slot leaves room for the caller");

uint64_t core_call_id(enum core_caller caller, uint64_t handle)
{
    return handle | (uint64_t)caller << CALLER_SHIFT;
}

static void call_done(struct core *core, const struct core_input *input)
{
    uint64_t caller_bits = UINT64_C(0xff) << CALLER_SHIFT;
    uint64_t handle = input->call & ~caller_bits;
    uint32_t client;
    switch ((enum core_caller)((input->call & caller_bits) >> CALLER_SHIFT)) {
    case CALL_OF_NOTIFY:
        notify_call_done(core, target_find(core, TARGET_REGISTRANT, handle),
                         input->outcome == CALL_ANSWERED, input->answered_count);
        return;
    case CALL_OF_WATCHED:
        notify_call_done(core, target_find(core, TARGET_WATCHED, handle),
                         input->outcome == CALL_ANSWERED, input->answered_count);
        return;
    case CALL_OF_NOTIFY_CLIENT:
        client = table_find(&core->clients.table, handle);
        if (client != SLOT_NONE && (input->outcome == CALL_ANSWERED || input->answered_count > 0))
            client_alive(core, client);
        notify_call_done(core, target_find(core, TARGET_CLIENT, handle),
                         input->outcome == CALL_ANSWERED, input->answered_count);
        return;
    case CALL_OF_GRANT:
        callback_ended(core, handle, input);
        return;
    case CALL_OF_PROBE:
        ask_call_done(core, ASK_OF_PROBE, handle, input);
        return;
    case CALL_OF_SILENT:
        ask_call_done(core, ASK_OF_SILENT, handle, input);
        return;
    case CALL_OF_DOUBT:
        watched_question_done(core, handle, input);
        return;
    }
    UNREACHABLE();
}

/* Who asked is in the same bits of the id: a notice, or a watched host, which may be gone. */
static void resolved(struct core *core, const struct core_input *input)
{
    if (!(input->lookup & (UINT64_C(1) << CALLER_SHIFT))) {
        hearsay_resolved(core, input->lookup, input->addresses, input->address_count);
        return;
    }
    uint32_t slot =
        table_find(&core->registrants.table, input->lookup & ~(UINT64_C(1) << CALLER_SHIFT));
    if (slot != SLOT_NONE)
        watched_resolved(core, slot, input->addresses, input->address_count);
}

/* What is answered. */
static void decide(struct core *core, const struct core_input *input, struct core_answer *ret)
{
    if (input->kind == CORE_ORDER)
        ret->order_result = operate(core, input->order);
    else if (input->kind == CORE_TRACKING)
        tracking_answer(core, input->tracking, &ret->tracking);
    else if (input->request->kind <= REQUEST_NSM_NOTIFY)
        monitoring_answer(core, input->from, input->request, &ret->response);
    else
        locking_answer(core, input->from, input->request, &ret->response);
}

void core_step(struct core *core, const struct core_input *input, struct core_answer *ret)
{
    CHECK(core->started);
    CHECK(input->now_ns >= core->now_ns);
    core->now_ns = input->now_ns;
    core->wall_ns = input->wall_ns;
    core->restarted_count = 0;
    core->overridden = SLOT_NONE;
    switch (input->kind) {
    case CORE_REQUEST:
    case CORE_ORDER:
    case CORE_TRACKING:
        CHECK(!core_is_full(core));
        decide(core, input, ret);
        ret->after_txn = core_fence(core);
        return;
    case CORE_STORED:
        stored(core, input->txn, input->has_room);
        return;
    case CORE_READY:
        grace_ready(core);
        notify_ready(core);
        tracker_ready(core);
        watched_ready(core);
        return;
    case CORE_SERVED:
        CHECK(!core_is_full(core));
        watched_served(core);
        return;
    case CORE_CALL_DONE:
        CHECK(!core_is_full(core));
        call_done(core, input);
        return;
    case CORE_RESOLVED:
        CHECK(!core_is_full(core));
        resolved(core, input);
        return;
    case CORE_FILE_GONE:
        CHECK(!core_is_full(core));
        gone_begin(core, input->fh);
        return;
    }
    UNREACHABLE();
}

bool core_next_call(struct core *core, uint64_t now_ns, struct core_call *ret)
{
    CHECK(now_ns >= core->now_ns);
    core->now_ns = now_ns;
    return grant_next_call(core, ret) || notify_next_call(core, ret) ||
           watched_next_question(core, ret) || ask_next_call(core, ret);
}

bool core_next_callback(struct core *core, uint64_t now_ns, struct core_call *ret)
{
    CHECK(now_ns >= core->now_ns);
    core->now_ns = now_ns;
    return grant_next_call(core, ret);
}

bool core_next_ending_call(struct core *core, uint64_t *ret_id, uint64_t *ret_deadline_ns)
{
    return callback_next_ending(core, ret_id, ret_deadline_ns);
}

bool core_next_lookup(struct core *core, uint64_t now_ns, struct core_lookup *ret)
{
    CHECK(now_ns >= core->now_ns);
    core->now_ns = now_ns;
    uint32_t slot;
    if (hearsay_next_lookup(core, ret))
        return true;
    if (!watched_next_lookup(core, &slot, &ret->name))
        return false;
    ret->id = table_handle(&core->registrants.table, slot) | UINT64_C(1) << CALLER_SHIFT;
    return true;
}

uint64_t core_lookup_deadline_ns(const struct core *core)
{
    uint64_t notice_ns = hearsay_deadline_ns(core), watched_ns = watched_lookup_deadline_ns(core);
    return notice_ns < watched_ns ? notice_ns : watched_ns;
}

bool core_next_answer(struct core *core, struct core_late *ret)
{
    if (!callback_next_answer(core, ret) && !withheld_next_answer(core, ret))
        return false;
    ret->after_txn = core_fence(core);
    return true;
}

void core_work(struct core *core, uint64_t now_ns, uint64_t wall_ns)
{
    CHECK(now_ns >= core->now_ns);
    core->now_ns = now_ns;
    core->wall_ns = wall_ns;
    core->restarted_count = 0;
    parts_work(core);
    core->must_listen = false;
}

void core_listen_first(struct core *core)
{
    core->must_listen = true;
}

uint64_t core_work_deadline_ns(const struct core *core)
{
    return parts_deadline_ns(core);
}

uint64_t core_callback_deadline_ns(const struct core *core)
{
    return grant_has_call(core) ? core->now_ns : parts_deadline_ns(core);
}

uint64_t core_deadline_ns(const struct core *core)
{
    uint64_t next_ns = core_callback_deadline_ns(core);
    uint64_t notify_ns = notify_deadline_ns(core), ask_ns = ask_deadline_ns(core);
    next_ns = notify_ns < next_ns ? notify_ns : next_ns;
    next_ns = ask_ns < next_ns ? ask_ns : next_ns;
    uint64_t question_ns = watched_question_deadline_ns(core);
    return question_ns < next_ns ? question_ns : next_ns;
}

void core_status(const struct core *core, struct core_status *ret)
{
    *ret = (struct core_status){
        .epoch = core->server.epoch,
        .state = core->server.state,
        .registrants = core->registrants.table.count,
        .clients = core->clients.table.count,
        .locks = core->locks.table.count - core->locks.offer_count,
        .offers = core->locks.offer_count,
        .waiters = waiter_count(core),
        .shares = core->shares.table.count,
        .notices = core->notices.table.count,
        .missed = core->clients.missed_count,
        .unresolved = core->watching.unresolved,
        .hosts_owed = core->watching.owed,
        .is_monitor = core->limits.is_monitor,
        .is_same_boot = core->limits.is_monitor && core->is_resumed,
        .is_served = core->watching.is_served,
        .local_refused = core->mirrors.refused_count,
        .local_waiting = mirror_waiting_count(core),
        .namesakes = namesake_count(core),
        .names = core->names.table.count + core->folds.table.count,
        .bytes_used = arena_used(core->arena),
        .durable_txn = core->durable_txn,
        .incomplete = core->server.flags & RECORD_SERVER_INCOMPLETE,
        .has_room = core->has_room,
        .notify = core->notify.counters,
        .upcalls = core->notify.upcalls,
        .grants = core->grants.counters,
        .reboots = core->reboots,
        .reclaims = core->grace.counters,
        .tracked = core->tracker.counters,
        .silent = core->silent.counters,
        .quota = core->quotas.counters,
        .notify_durations = &core->notify.durations,
    };
    grace_status(core, &ret->grace);
}

struct event_ring *core_events(struct core *core)
{
    return &core->events;
}

struct event_ring *core_feed(struct core *core)
{
    return &core->feed;
}

void core_check(const struct core *core)
{
    CHECK(core->durable_txn <= core->server.txn);
    CHECK(core->server.txn - core->durable_txn == (core->batch_out ? 1 : 0));
    CHECK(core->server.state % 2 == 1 || !core->started);
    CHECK(core->started || core->durable_txn == core->server.txn);
    table_check(&core->names.table);
    table_check(&core->folds.table);
    parts_check(core);
}

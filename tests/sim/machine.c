/*
 * machine.c -- the driver of the daemon, in virtual time; see machine.h.
 *
 * One turn: feed the server what arrived, hand the open batch to an idle disk, send what may leave,
 * make the calls whose time has come and take what they led to, hand over the batch again.
 * The process can die between any two of these steps; what the disk had taken by then lands or
 * does not, as the seed decides. Nothing is carried over to the next run but the disk.
 */
#include "machine.h"

#include "audit.h"
#include "base/hash.h"
#include "claim_disk.h"
#include "configure.h"
#include "era.h"
#include "line.h"
#include "mail.h"
#include "net.h"
#include "operator.h"
#include "oracle.h"
#include "peer/peer_nsm.h"
#include "program.h"
#include "proto/nlm.h"
#include "proto/nsm.h"
#include "resolver.h"
#include "rpc/outcall.h"
#include "session.h"
#include "statd.h"
#include "still.h"
#include "told.h"
#include "vanish.h"

#include <stdlib.h>

#define FULL_NS    (5 * MILLISECOND)   /* who finds no room tries again within that */
#define GHOST_ENDS (UINT64_C(1) << 32) /* of QUEUE_THAW */

static const struct program *const programs[] = {&nsm_program, &nlm_program};

uint64_t machine_now_ns(struct world *world)
{
    struct machine *machine = &world->machine;
    if (machine->still.turn_ns != 0)
        return machine->still.turn_ns; /* one "now" per turn (wire/clock.h) */
    return pace_now_ns(&machine->pace, world->now_ns);
}

static struct core *load_core(struct world *world, uint64_t seed)
{
    static const struct bytes names[] = {
        {(const uint8_t *)TOLD_SERVER_NAME, sizeof TOLD_SERVER_NAME - 1},
        {(const uint8_t *)STATD_SERVER_SHORT, sizeof STATD_SERVER_SHORT - 1}};
    struct machine *machine = &world->machine;
    static const struct file_set share = {{(const uint8_t *)"default", 7}, {NULL, 0}};
    struct core_limits limits = {
        .clients_max = machine->clients_max,
        .locks_max = machine->locks_max,
        .locks_per_client_max = machine->locks_per_client_max,
        .waiters_max = machine->waiters_max,
        .per_address_percent = world->plan.per_address_percent,
        .local_files_max = 2 * LOCKER_FILES_MAX + 1, /* counted, and enough for all */
        .file_sets = &share,
        .file_set_count = 1,
        .bytes_max = world->plan.bytes_max,
        .batch_puts_max = world->plan.batch_puts_max,
        .server_name = bytes_of_text(TOLD_SERVER_NAME),
        .notify_timeout_ns = TOLD_TIMEOUT_NS,
        .window_ns = world->plan.window_ns,
        .give_up_ns = world->plan.give_up_ns,
        .grace_ns = world->plan.grace_ns,
        .hold_unreachable = world->plan.holds,
        .resume = world->plan.resumes,
        .verify_notices = world->plan.verifies,
        .distrust_state = world->plan.distrusts,
        .lease = &world->plan.lease,
        .names = names,
        .name_count = sizeof names / sizeof names[0],
    };
    for (uint32_t kind = 1; kind < RECORD_KIND_END; kind++)
        limits.slots_used[kind] = disk_slots_used(&world->disk, kind);
    struct core *core = core_new(&limits, seed);
    if (core == NULL)
        abort();
    for (uint32_t kind = 1; kind < RECORD_KIND_END; kind++)
        for (uint32_t slot = 0; slot < limits.slots_used[kind]; slot++) {
            struct bytes value = disk_at(&world->disk, kind, slot);
            if (value.len == 0)
                continue;
            if (core_load(core, kind, slot, value) != RECORD_GOOD && !world->ledger.incomplete)
                world_fail(world, "O1", "the %s in slot %u does not load", record_kind_name(kind),
                           slot);
        }
    if (core_loaded(core) > 0 && !world->ledger.incomplete)
        world_fail(world, "O1", "stored locks contradict each other");
    return core;
}

/* After every step; large tables, which take long, after every third. */
static void check_invariants(struct world *world)
{
    struct core_status status;
    core_status(world->machine.core, &status);
    if (status.registrants <= 20 || world->machine.steps++ % 3 == 0)
        rpc_server_check(world->machine.server);
    program_check(world);
}

/* The same for the steps of calls, which are many. */
static void check_calls(struct world *world)
{
    rpc_client_check(world->machine.client);
    if (world->machine.steps++ % 8 == 0)
        core_check(world->machine.core);
}

static void new_client(struct world *world)
{
    struct machine *machine = &world->machine;
    struct rpc_client_limits limits = {.attempts_max = world->plan.calls_max,
                                       .connections_max = world->plan.lines_max,
                                       .bytes_max = 2 << 20,
                                       .lease = &world->plan.lease};
    struct core_status status;
    core_status(machine->core, &status);
    machine->client = rpc_client_new(&limits, (uint32_t)(status.epoch << 20), world->options.seed);
    if (machine->client == NULL)
        abort();
    rpc_server_set_client(machine->server, machine->client);
    machine->is_ready = false;
    machine->tick_ns = UINT64_MAX;
    machine->asks = (struct outcall_asks){0};
    uint64_t ready_ns = world->now_ns + world->plan.ready_min_ns +
                        world_random(world, world->plan.ready_max_ns + 1);
    /* Until then the one before may still send. */
    const struct lease raised = {world->plan.lease.is_shared, world->now_ns, world->now_ns};
    uint64_t alone_ns = world->now_ns + lease_sends_left_ns(&raised, world->now_ns);
    if (ready_ns < alone_ns)
        ready_ns = alone_ns;
    queue_add(&world->queue, ready_ns, QUEUE_READY, NULL, machine->run);
}

/* The largest state of ours that the disk says somebody was told. */
static uint32_t told_max(const struct world *world)
{
    uint32_t max = 0;
    struct record_registrant registrant;
    struct record_client client;
    for (uint32_t slot = 0; slot < disk_slots_used(&world->disk, RECORD_REGISTRANT); slot++)
        if (record_get_registrant(disk_at(&world->disk, RECORD_REGISTRANT, slot), slot,
                                  &registrant) == RECORD_GOOD &&
            registrant.told_state > max)
            max = registrant.told_state;
    for (uint32_t slot = 0; slot < disk_slots_used(&world->disk, RECORD_CLIENT); slot++)
        if (record_get_client(disk_at(&world->disk, RECORD_CLIENT, slot), slot, &client) ==
                RECORD_GOOD &&
            client.told_state > max)
            max = client.told_state;
    return max;
}

/* D16: its counters can be made up for by the clock, or by what is stored elsewhere. A server whose
 * clock is wrong and that has told nobody has no chance. */
static bool may_lose_server(const struct world *world, const struct record_server *stored)
{
    uint64_t told = told_max(world);
    if (stored->epoch == 0)
        return false;
    return world_wall_ns(world) / SECOND > stored->state ||
           (told >= stored->state && told >= stored->epoch && world->sessions == NULL);
}

/* `host` NULL: any. */
static void note_restart(struct world *world, const struct address *host)
{
    for (uint32_t i = 0; i < world_host_count(world); i++)
        world->hosts[i].forgets += host == NULL || address_equal(&world->hosts[i].address, host);
    for (uint32_t i = 0; world->lockers != NULL && i < world->lockers->count; i++)
        world->lockers->at[i].forgets +=
            host == NULL || address_equal(&world->lockers->at[i].host->address, host);
}

/* The cache has forgotten a host that an answer showed to have started anew. Of events that found
 * no room nobody knows whose they were. */
static void note_events(struct world *world)
{
    struct event_ring *events = core_events(world->machine.core);
    struct event event;
    while (event_take(events, &event)) {
        if (event.kind == EVENT_CLIENT_REBOOTED || event.kind == EVENT_CLIENT_RENEWED ||
            event.kind == EVENT_NOTICE)
            note_restart(world, &event.from);
        if (event.kind == EVENT_LOCAL_REFUSED)
            program_reported(world, (struct bytes){event.fh, event.fh_len});
    }
    if (events->lost > 0)
        note_restart(world, NULL);
    events->lost = 0;
}

void machine_boot(struct world *world)
{
    struct machine *machine = &world->machine;
    struct record_server stored = {0};
    bool has_server = disk_server(&world->disk, &stored);
    if (machine->power_lost && has_server) {
        audit_accept_loss(world);
        claim_disk_accept_loss(world);
    } else if (has_server)
        audit_disk(world);
    claim_disk_audit(world);
    if (machine->power_lost)
        world->ledger.incomplete = true;
    configure_run(world);
    if (world->plan.wall_jumps)
        world_set_clock(world, &world->more);
    if (machine->power_lost && may_lose_server(world, &stored) && prng_chance(&world->jumps, 30)) {
        world_trace(world, "the server record is lost");
        disk_corrupt(&world->disk, RECORD_SERVER, 0);
        has_server = false;
    }
    machine->pace = (struct pace){0};
    machine->run++;
    machine->boot_ns = still_lived_ns(world);
    resolver_boot(world);
    machine->has_lasted = false;
    machine->core = load_core(world, world->options.seed + machine->run);
    uint64_t now_ns = machine_now_ns(world);
    const struct lease raised = {world->plan.has_echo, now_ns, now_ns};
    core_start(machine->core, &(struct core_boot){
                                  .now_ns = now_ns,
                                  .wall_ns = world_wall_ns(world),
                                  .may_have_lost = machine->power_lost,
                                  .echo_until_ns = now_ns + lease_echoes_left_ns(&raised, now_ns)});
    machine->store_is_full = false;
    machine->full_for = 0;
    struct rpc_server_limits limits = {.outbox_max = world->plan.outbox_max,
                                       .cache_max = world->plan.cache_max,
                                       .messages_burst = 5,
                                       .messages_per_second = world->plan.messages_per_second};
    machine->server = rpc_server_new(&limits, programs, 2, machine->core, world->options.seed);
    if (machine->server == NULL)
        abort();
    new_client(world);
    rpc_server_set_client(machine->server, machine->client);
    machine->reply = realloc(machine->reply, rpc_server_reply_max(machine->server));
    if (machine->reply == NULL)
        abort();
    program_boot(world);
    note_events(world);
    machine->is_up = true;
    check_invariants(world);
    audit_boot(world, has_server ? stored.state : 0);
    if (!machine->has_resumed)
        era_begin(world, machine->boot_state,
                  world->ledger.incomplete || disk_count(&world->disk, RECORD_LOCK) > 0 ||
                      disk_count(&world->disk, RECORD_SHARE) > 0);
    world_trace(world, "BOOT run %u, state %u, limit %u, grace %llu s%s%s%s", machine->run,
                machine->boot_state, machine->clients_max,
                (unsigned long long)(world->plan.grace_ns / SECOND),
                machine->has_resumed ? ", resumed" : "", world->plan.holds ? ", hold" : "",
                !world_allows(world, WORLD_UNTOLD) ? ", strict" : "");
    locker_server_started(world);
    session_started(world);
    machine_turn(world);
}

void machine_stop(struct world *world)
{
    struct machine *machine = &world->machine;
    rpc_client_free(machine->client);
    rpc_server_free(machine->server);
    core_free(machine->core);
    machine->server = NULL;
    machine->client = NULL;
    machine->core = NULL;
    machine->is_up = false;
}

/*
 * The process that is replaced may only have stood still, with calls under way whose repeats come
 * due, and goes on later. It commits nothing any more, and so must not send anything.
 */
static bool leave_ghost(struct world *world)
{
    struct machine *machine = &world->machine;
    uint64_t chance = hash_mix(world->options.seed, machine->run);
    bool is_wanted = chance % 2 == 0 || machine->leaves_ghost || machine->is_overtaken;
    machine->is_overtaken = false;
    if (!world->plan.lease.is_shared || !is_wanted)
        return false;
    rpc_client_free(machine->ghost);
    machine->ghost = machine->client;
    machine->ghost_run = machine->run;
    machine->ghost_until_ns = machine->send_until_ns;
    machine->client = NULL;
    if (!world->is_manual)
        queue_add(&world->queue, world->now_ns + SECOND + chance % (15 * SECOND), QUEUE_THAW, NULL,
                  machine->run);
    return true;
}

void machine_overtake(struct world *world)
{
    bool may = world->plan.lease.is_shared && !world->is_calm && !world->is_manual &&
               !world->machine.ghost_speaks;
    world->machine.is_overtaken |= may && prng_chance(&world->side, 30);
}

/* It may have been asked for more than it had sent by then; then it finds that it was replaced. */
void machine_thaw(struct world *world, uint64_t ticket)
{
    struct machine *machine = &world->machine;
    uint32_t run = (uint32_t)ticket;
    if (ticket & GHOST_ENDS) {
        world_trace(world, "the server of run %u ends", run);
        line_end(world, run);
        mail_end(world, run);
        net_end(world, run);
        return;
    }
    queue_add(&world->queue, world->now_ns + MILLISECOND + prng_below(&world->side, SECOND),
              QUEUE_THAW, NULL, ticket | GHOST_ENDS);
    if (machine->ghost == NULL || machine->ghost_run != run)
        return;
    world_trace(world, "THAW: the server of run %u goes on", run);
    machine->ghost_speaks = true;
    rpc_client_tick(machine->ghost, world->now_ns);
    line_turn_ghost(world);
    machine->ghost_speaks = false;
}

static void check_disk(struct world *world, const char *complaint)
{
    if (complaint != NULL)
        world_fail(world, "batch", "%s", complaint);
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* By its length, or because an operator ended it: P2 (4). Where nobody locks, the clock is known
 * only to begin no earlier than notification. */
static bool is_grace_over(const struct world *world)
{
    const struct machine *machine = &world->machine;
    uint64_t from_ns = machine->is_ready ? machine->ready_ns : UINT64_MAX;
    if (world->lockers != NULL && world->lockers->era.is_cut_short)
        return true;
    if (world->lockers != NULL)
        from_ns = world->lockers->era.ready_ns;
    return from_ns != UINT64_MAX && still_due_ns(world) >= from_ns + world->plan.grace_ns;
}

/* The clock of grace may begin to run. */
static void begin_grace(struct world *world)
{
    struct lockers *all = world->lockers;
    bool has_begun = all == NULL || all->era.ready_ns != UINT64_MAX;
    era_ready(world);
    if (!has_begun && all->era.ready_ns != UINT64_MAX && all->era.has_stored) {
        still_grace(world);
        operator_grace(world);
    }
}

/* What an incomplete store had to wait for has been waited for (D16). That this is on its way to
 * the disk, or still in the open batch, when the simulated crash comes in between, changes nothing:
 * no answer of the time after it leaves before it is there. */
void machine_begin_anew(struct world *world)
{
    struct machine *machine = &world->machine;
    machine->has_lasted |= is_grace_over(world);
    machine->bumps++;
    machine->ready_ns = still_lived_ns(world); /* notification begins anew */
    machine->has_resumed = false;              /* nobody is queued any more */
    era_begin(world, machine->boot_state + 2 * machine->bumps, true);
    locker_server_started(world);
}

/* From here on the disk says itself that something may be missing, until a whole grace is over
 * (D16). */
static void apply_batch(struct world *world)
{
    struct record_server server = {0};
    uint32_t clients = disk_count(&world->disk, RECORD_CLIENT);
    uint32_t registrants = disk_count(&world->disk, RECORD_REGISTRANT);
    check_disk(world, disk_apply(&world->disk));
    audit_growth(world, clients, registrants);
    if (disk_is_overrun(&world->disk))
        world_fail(world, "R-PER-8", "the store is full, and its reserve is used up");
    world->machine.power_lost = false;
    bool was_incomplete = world->ledger.incomplete;
    world->ledger.incomplete =
        disk_server(&world->disk, &server) && (server.flags & RECORD_SERVER_INCOMPLETE);
    if (was_incomplete && !world->ledger.incomplete && !world->machine.was_over)
        world_fail(world, "O1", "the store counts as complete before grace is over");
}

void machine_crash(struct world *world, const char *why, bool power)
{
    struct machine *machine = &world->machine;
    if (!machine->is_up)
        return;
    bool landed = false;
    if (world->disk.is_busy) {
        landed = world_chance(world, 50);
        if (landed)
            apply_batch(world);
        else
            disk_drop(&world->disk);
    }
    if (power && world->disk.is_lazy && !world->disk.is_new) {
        disk_lose_power(&world->disk);
        machine->power_lost = true;
    }
    world_trace(world, "CRASH: %s; the batch in flight %s%s", why,
                landed ? "landed" : "did not land", machine->power_lost ? "; power lost" : "");
    world->crashes++;
    era_crash(world);
    world->history = hash_mix(world->history, core_digest(machine->core));
    bool is_replaced = leave_ghost(world);
    machine_stop(world);
    program_crash(world);
    net_break_connections(world, is_replaced);
    mail_break_all(world, is_replaced);
    line_cut_all(world, is_replaced);
    still_end(world);
    uint64_t down_ns = !world->is_calm && world_chance(world, 10)
                           ? world_random(world, 150 * SECOND)
                           : world_random(world, 2 * SECOND);
    queue_add(&world->queue, world->now_ns + down_ns, QUEUE_BOOT, NULL, 0);
}

/* The process may die at any step. True: it did. */
static bool dies_here(struct world *world, const char *where)
{
    bool dies = world->machine.is_overtaken ||
                (!world->is_calm && world_random(world, 10000) < world->plan.step_crash_permyriad);
    if (!dies)
        return false;
    machine_crash(world, where, world_chance(world, 50));
    return true;
}

static void hand_over(struct world *world)
{
    struct machine *machine = &world->machine;
    struct store_batch batch;
    if (world->disk.is_busy || !core_take_batch(machine->core, &batch))
        return;
    machine->batches++;
    machine->began_ns = world->now_ns;
    machine->was_over = machine->has_lasted || is_grace_over(world);
    check_disk(world, disk_take(&world->disk, &batch));
    uint64_t delay_ns = 1 + world_random(world, world->plan.commit_max_ns);
    if (!world->is_calm && !era_is_pressing(world) && world_chance(world, world->plan.stall))
        delay_ns += world_random(world, 40 * SECOND);
    world_trace(world, "batch %llu with %u changes to the disk", (unsigned long long)batch.txn,
                batch.count);
    if (!machine->holds_commits)
        queue_add(&world->queue, world->now_ns + delay_ns, QUEUE_COMMIT, NULL, world->disk.ticket);
}

static void send_reply(struct world *world, struct call *call, struct connection *connection,
                       struct bytes message)
{
    if (call->owner->is_tcp && (connection == NULL || !connection->is_open)) {
        world_trace(world, "owner %u: the answer to %s finds its connection closed",
                    call->owner->index, world_procedure_text(call->procedure));
        return;
    }
    oracle_answered(world, call, message);
    net_send_reply(world, call, connection, message);
}

static void note_end(struct world *world, struct call *call)
{
    call->ended_run = world->machine.run;
    call->ended_ns = world->now_ns;
}

/* An answer that had waited for the disk. */
static void release(struct world *world, const struct rpc_reply *reply)
{
    struct connection *connection;
    world->answers++;
    world->history = hash_mix(world->history, hash_bytes(world->now_ns, reply->message));
    if (statd_release(world, reply->peer, reply->message) || mail_release(world, reply))
        return;
    struct call *call = net_find_call(world, reply, &connection);
    if (call == NULL)
        return;
    note_end(world, call);
    send_reply(world, call, connection, reply->message);
}

/* Nobody is given up before his time (R-NOTIFY-4). */
static void check_given_up(struct world *world)
{
    const struct plan *plan = &world->plan;
    struct core_status status;
    core_status(world->machine.core, &status);
    uint64_t earliest_ns =
        world->machine.first_ready_ns + max_u64(plan->window_ns, plan->grace_ns) + plan->give_up_ns;
    uint64_t now_ns = still_lived_ns(world);
    if (status.notify.given_up > 0 && now_ns < earliest_ns)
        world_fail(world, "O11", "somebody was given up %llu s too early",
                   (unsigned long long)((earliest_ns - now_ns) / SECOND));
}

/* Calls of our own: those that are due begin, those that have ended are told to the core. */
static void call_out(struct world *world)
{
    struct machine *machine = &world->machine;
    bool is_full = world->now_ns <= machine->still.full_ns;
    if (is_full || machine->still.is_reading)
        core_listen_first(machine->core);
    rpc_server_work(machine->server, machine_now_ns(world), world_wall_ns(world));
    resolver_turn(world);
    outcall_turn(machine->core, machine->client, machine->server, machine_now_ns(world),
                 world_wall_ns(world));
    note_events(world);
    check_calls(world);
    check_given_up(world);
    outcall_ask(&machine->asks, machine->core, machine->client, true);
    line_turn(world);
    rpc_client_check(machine->client);
    uint64_t next_ns = rpc_client_deadline_ns(machine->client);
    uint64_t due_ns = outcall_deadline_ns(machine->core, machine->client);
    next_ns = due_ns < next_ns ? due_ns : next_ns;
    for (uint32_t i = 0; i < LOOKUPS_MAX; i++) {
        uint64_t lookup_ns = core_lookup_deadline_ns(machine->core);
        if (!machine->lookups[i].is_used && lookup_ns < next_ns)
            next_ns = lookup_ns;
    }
    if (next_ns != UINT64_MAX)
        next_ns += machine->pace.stood_ns; /* when that will be on the clock */
    if (next_ns == UINT64_MAX || next_ns >= machine->tick_ns)
        return;
    uint64_t soon_ns = world->now_ns + (is_full ? MILLISECOND : 1);
    machine->tick_ns = next_ns > world->now_ns ? next_ns : soon_ns;
    queue_add(&world->queue, machine->tick_ns, QUEUE_TICK, NULL, machine->tick_ns);
}

/* The steps of a turn; before each but the first the process may be stopped. */
enum { TURN_BATCH, TURN_ANSWERS, TURN_CALLS, TURN_LAST };

/* False: it died, or stands still. */
static bool send_answers(struct world *world)
{
    struct machine *machine = &world->machine;
    struct rpc_reply reply;
    while (rpc_server_next(machine->server, machine_now_ns(world), &reply)) {
        release(world, &reply);
        if (dies_here(world, "between two answers") || still_here(world, TURN_ANSWERS))
            return false;
    }
    return true;
}

void machine_turn_from(struct world *world, uint32_t step)
{
    if (!world->machine.is_up)
        return;
    if (step <= TURN_BATCH) {
        if (dies_here(world, "before the batch is taken"))
            return;
        outcall_ask(&world->machine.asks, world->machine.core, world->machine.client, true);
        hand_over(world);
        if (dies_here(world, "after the batch is taken") || still_here(world, TURN_ANSWERS))
            return;
    }
    if (step <= TURN_ANSWERS && (!send_answers(world) || still_here(world, TURN_CALLS)))
        return;
    if (step <= TURN_CALLS) {
        call_out(world);
        if (dies_here(world, "after calls were made") || still_here(world, TURN_LAST))
            return;
    }
    hand_over(world);
    program_check_excess(world);
}

void machine_turn(struct world *world)
{
    machine_turn_from(world, TURN_BATCH);
}

void machine_stand_still(struct world *world, uint64_t for_ns)
{
    still_begin(world, for_ns, 0);
    world_run_until(world, world->now_ns + for_ns);
}

void machine_ready(struct world *world, uint64_t run)
{
    struct machine *machine = &world->machine;
    if (!machine->is_up || machine->run != run)
        return;
    world_trace(world, "READY: notification begins");
    struct core_input input = {
        .kind = CORE_READY, .now_ns = machine_now_ns(world), .wall_ns = world_wall_ns(world)};
    core_step(machine->core, &input, NULL);
    machine->is_ready = true;
    machine->ready_ns = machine->first_ready_ns = still_lived_ns(world);
    begin_grace(world);
    session_ready(world);
    check_invariants(world);
    machine_turn(world);
}

void machine_called(struct world *world)
{
    rpc_client_check(world->machine.client);
    machine_turn(world);
}

void machine_tick(struct world *world, uint64_t ticket)
{
    struct machine *machine = &world->machine;
    if (!machine->is_up || machine->tick_ns != ticket)
        return;
    machine->tick_ns = UINT64_MAX;
    rpc_client_tick(machine->client, machine_now_ns(world));
    machine_called(world);
}

enum rpc_verdict machine_receive_raw(struct world *world, const struct rpc_source *from,
                                     struct bytes message, struct bytes *ret)
{
    struct machine *machine = &world->machine;
    uint32_t reply_max = rpc_server_reply_max(machine->server);
    *ret = (struct bytes){0};
    if (still_is(world))
        return RPC_NO_ANSWER;         /* of one that does not wait in a socket: it is lost */
    core_listen_first(machine->core); /* something was read */
    struct xdr_out out = {machine->reply, machine->reply, machine->reply + reply_max, false};
    enum rpc_verdict verdict = rpc_server_receive(
        machine->server, from, message, machine_now_ns(world), world_wall_ns(world), &out);
    *ret = (struct bytes){machine->reply, (uint32_t)(out.at - out.start)};
    if (verdict == RPC_BUSY && from->peer.transport == TRANSPORT_TCP)
        machine->still.full_ns = world->now_ns + FULL_NS;
    check_invariants(world);
    return verdict;
}

bool machine_receive(struct world *world, const struct parcel *parcel)
{
    struct machine *machine = &world->machine;
    struct call *call = parcel->call;
    struct owner *owner = call->owner;
    struct rpc_source from = {
        .peer = {.address = owner->host->address,
                 .local = owner->host->local,
                 .port = parcel->port,
                 .transport = owner->is_tcp ? TRANSPORT_TCP : TRANSPORT_UDP},
        .route = parcel->connection ? parcel->connection->route : 0,
    };
    bool is_repeat = oracle_is_cached(world, call);
    struct bytes reply, message = {parcel->bytes, parcel->len};
    enum rpc_verdict verdict = machine_receive_raw(world, &from, message, &reply);
    world_trace(world, "owner %u: server takes %s #%u%s: %s", owner->index,
                world_procedure_text(call->procedure), call->id, is_repeat ? " (repeat)" : "",
                verdict == RPC_ANSWERED  ? "answered at once"
                : verdict == RPC_WAITING ? "waiting"
                : verdict == RPC_BUSY    ? "busy"
                                         : "no answer");
    if (verdict == RPC_BUSY)
        return false;
    /* What the cache may have forgotten but had not is a repeat too. */
    bool is_kept = call->procedure != PEER_NSM_NULL && call->procedure != PEER_NSM_STAT;
    if (verdict != RPC_WAITING && is_kept && call->taken_run == machine->run)
        is_repeat = true;
    if (!is_repeat)
        oracle_executed(world, call, parcel->port);
    else if (verdict == RPC_WAITING)
        call->copies_taken++;
    if (verdict == RPC_NO_ANSWER && !is_repeat)
        world_fail(world, "O6", "%s got no answer", world_procedure_text(call->procedure));
    if (verdict == RPC_ANSWERED) {
        if (!is_repeat)
            note_end(world, call);
        send_reply(world, call, parcel->connection, reply);
    }
    if (machine->is_up && !dies_here(world, "after a call"))
        machine_turn(world);
    return true;
}

void machine_received(struct world *world)
{
    if (world->machine.is_up && !dies_here(world, "after a call"))
        machine_turn(world);
}

void machine_hear(struct world *world, const struct address *from, uint16_t port,
                  struct bytes message)
{
    struct rpc_source source = {
        .peer = {.address = *from, .port = port, .transport = TRANSPORT_UDP}};
    struct bytes ignored;
    (void)machine_receive_raw(world, &source, message, &ignored);
}

/* An offer of a run before that nobody has answered: it is held now, and not written again for
 * that (R-BLK-19). */
static bool has_old_offers(const struct world *world)
{
    uint32_t used = disk_slots_used(&world->disk, RECORD_LOCK), offers = 0, waiting = 0;
    for (uint32_t slot = 0; slot < used; slot++) {
        struct record_lock lock;
        struct bytes value = disk_at(&world->disk, RECORD_LOCK, slot);
        offers += value.len > 0 && record_get_lock(value, slot, &lock) == RECORD_GOOD &&
                  (lock.flags & RECORD_LOCK_OFFER);
    }
    used = disk_slots_used(&world->disk, RECORD_WAITER);
    for (uint32_t slot = 0; slot < used; slot++) {
        struct record_waiter waiter;
        struct bytes value = disk_at(&world->disk, RECORD_WAITER, slot);
        waiting += value.len > 0 && record_get_waiter(value, slot, &waiter) == RECORD_GOOD &&
                   waiter.offer != UINT32_MAX;
    }
    return world->plan.resumes ? offers != waiting : offers != 0;
}

void machine_compare(struct world *world)
{
    if (has_old_offers(world))
        return;
    struct core *fresh = load_core(world, world->options.seed ^ 0x5eed);
    core_check(fresh);
    uint64_t stored = core_digest(fresh), running = core_digest(world->machine.core);
    core_free(fresh);
    if (stored != running)
        world_fail(world, "O1", "the disk does not hold what the core believes it holds");
}

/* Notices and locks may grow in number in a full store: one for each name that is watched; by
 * offers, and by UNLOCKs that split. */
static void check_growth(struct world *world, const uint32_t before[static RECORD_KIND_END])
{
    static const enum record_kind kinds[] = {RECORD_CLIENT, RECORD_REGISTRANT, RECORD_SHARE,
                                             RECORD_WAITER, RECORD_TRACKED};
    for (uint32_t i = 0; world->machine.full_for > 1 && i < sizeof kinds / sizeof kinds[0]; i++)
        if (disk_count(&world->disk, kinds[i]) > before[kinds[i]])
            world_fail(world, "R-PER-8", "the store is full, and one more %s is stored",
                       record_kind_name(kinds[i]));
}

void machine_commit(struct world *world, uint64_t ticket)
{
    struct machine *machine = &world->machine;
    struct disk *disk = &world->disk;
    if (!machine->is_up || !disk->is_busy || ticket != disk->ticket)
        return;
    if (!world->is_calm && world_random(world, 1000) < world->plan.commit_failure_permille) {
        machine_crash(world, "a commit failed (D9)", false);
        return;
    }
    uint64_t txn = disk->batch.txn;
    uint32_t counts[RECORD_KIND_END];
    for (uint32_t kind = 1; kind < RECORD_KIND_END; kind++)
        counts[kind] = disk_count(disk, kind);
    apply_batch(world);
    check_growth(world, counts);
    program_stored(world);
    program_check(world);
    vanish_stored(world);
    if (disk->batch.epoch > world->ledger.epoch_max)
        world->ledger.epoch_max = disk->batch.epoch;
    bool stays = machine->store_is_full && prng_chance(&world->more, world->plan.full_stays);
    machine->store_is_full =
        !world->is_calm && (world_chance(world, world->plan.full) || stays || !disk_has_room(disk));
    machine->full_for = machine->store_is_full ? machine->full_for + 1 : 0;
    world_trace(world, "batch %llu is durable%s", (unsigned long long)txn,
                machine->store_is_full ? "; the store is full" : "");
    if (dies_here(world, "between the commit and its report"))
        return;
    machine->send_until_ns = machine->began_ns + SEND_NS;
    rpc_server_stored(machine->server, txn, !machine->store_is_full, machine_now_ns(world),
                      world_wall_ns(world));
    check_invariants(world);
    audit_disk(world);
    claim_disk_audit(world);
    session_stored(world);
    begin_grace(world);
    machine_turn(world);
    if (machine->is_up && !disk->is_busy && !still_is(world) && world_chance(world, 5))
        machine_compare(world);
}

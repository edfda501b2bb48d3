/*
 * story.c -- see story.h.
 */
#include "story.h"

#include "ask.h"
#include "callee.h"
#include "claim_disk.h"
#include "machine.h"
#include "peer/peer_nsm.h"
#include "watcher.h"

#define EXPECT SCENARIO_EXPECT

const struct extent story_bytes = {.file = 0, .offset = 2, .len = 4, .exclusive = true};

struct locker *story_locker(struct world *world, enum who who)
{
    return &world->lockers->at[who];
}

struct process *story_process(struct world *world, enum who who)
{
    return &world->lockers->at[who].processes[0];
}

struct core_status story_status(const struct world *world)
{
    struct core_status status;
    core_status(world->machine.core, &status);
    return status;
}

struct extent story_part(uint32_t file, uint64_t offset, uint64_t len)
{
    return (struct extent){.file = file, .offset = offset, .len = len, .exclusive = true};
}

void story_wait_ms(struct world *world, uint64_t ms)
{
    world_run_until(world, world->now_ns + ms * MILLISECOND);
}

void story_wait_for_end(struct world *world, int64_t ms)
{
    uint64_t end_ns =
        world->lockers->era.ready_ns + world->plan.grace_ns + world->machine.still.left_out_ns;
    uint64_t at_ns = end_ns + (uint64_t)(ms * (int64_t)MILLISECOND);
    EXPECT(at_ns >= world->now_ns);
    world_run_until(world, at_ns);
}

/* ---- calls ---- */

void story_ask(struct world *world, enum who who, enum peer_nlm_procedure procedure,
               const struct extent *extent, bool block)
{
    struct process *process = story_process(world, who);
    if (procedure == PEER_NLM_LOCK && block) {
        process->wish = *extent;
        process->is_waiting = true;
    }
    process->is_cancelling = procedure == PEER_NLM_CANCEL;
    process->locks_again = false;
    (void)ask_begin(world, process,
                    &(struct ask_what){.procedure = procedure, .extent = *extent, .block = block});
}

void story_do(struct world *world, enum who who, enum peer_nlm_procedure procedure, bool block)
{
    story_ask(world, who, procedure, &story_bytes, block);
    story_wait_ms(world, 100);
    EXPECT(story_process(world, who)->ask == NULL);
}

static enum peer_nlm_status lock(struct world *world, enum who who, struct extent extent,
                                 bool reclaim)
{
    struct process *process = story_process(world, who);
    bool is_unmonitored = process->locker->kind == LOCKER_PCNFS;
    struct ask_what what = {.procedure = is_unmonitored ? PEER_NLM_NM_LOCK : PEER_NLM_LOCK,
                            .extent = extent,
                            .reclaim = reclaim};
    (void)ask_begin(world, process, &what);
    story_wait_ms(world, 100);
    EXPECT(process->ask == NULL);
    return world->lockers->answered;
}

enum peer_nlm_status story_lock(struct world *world, enum who who, struct extent extent)
{
    return lock(world, who, extent, false);
}

enum peer_nlm_status story_reclaim(struct world *world, enum who who, struct extent extent)
{
    return lock(world, who, extent, true);
}

bool story_has(struct world *world, enum who who)
{
    const struct cells *held = &story_process(world, who)->held[story_bytes.file];
    return (held->any & locker_cells(story_bytes.offset, story_bytes.len)) != 0;
}

bool story_holds(struct world *world, enum who who, struct extent extent)
{
    const struct cells *held = &story_process(world, who)->held[extent.file];
    return (locker_cells(extent.offset, extent.len) & ~held->any) == 0;
}

bool story_is_waiting(struct world *world, enum who who)
{
    return story_process(world, who)->is_waiting;
}

void story_take(struct world *world, enum who who)
{
    story_do(world, who, PEER_NLM_LOCK, false);
    EXPECT(story_has(world, who));
}

void story_wait_for(struct world *world, enum who who)
{
    story_do(world, who, PEER_NLM_LOCK, true);
    EXPECT(!story_has(world, who) && story_is_waiting(world, who));
}

void story_give_back(struct world *world, enum who who)
{
    story_do(world, who, PEER_NLM_UNLOCK, false);
}

/* ---- everything else ---- */

void story_be(struct world *world, enum who who, enum callee_mood mood)
{
    world->lockers->at[who].host->mood = mood;
}

void story_restart(struct world *world)
{
    machine_crash(world, "killed by the story", false);
    while (!world->machine.is_up || !world->machine.is_ready)
        story_wait_ms(world, 100);
    story_wait_ms(world, 300);
}

void story_simulate_crash(struct world *world)
{
    static struct packet packet;
    static uint32_t xid = 1;
    packet_clear(&packet);
    peer_nsm_put_simu_crash(&packet, xid++);
    story_send(world, "127.0.0.1", 600, &packet);
    machine_begin_anew(world);
    locker_forgotten(world);
    machine_turn(world);
}

bool story_is_told(struct world *world, enum who who)
{
    return story_locker(world, who)->told_state == story_status(world).state;
}

void story_send(struct world *world, const char *from, uint16_t port, const struct packet *packet)
{
    struct rpc_source source = {.peer = {.port = port, .transport = TRANSPORT_UDP}};
    struct bytes reply;
    (void)address_parse(bytes_of_text(from), &source.peer.address);
    (void)address_parse(bytes_of_text("192.0.2.1"), &source.peer.local);
    enum rpc_verdict verdict =
        machine_receive_raw(world, &source, (struct bytes){packet->bytes, packet->len}, &reply);
    EXPECT(verdict != RPC_BUSY);
}

void story_raw(struct world *world, const struct story_raw *call)
{
    static struct packet packet;
    static struct peer_nlm_args args;
    static uint32_t xid = 1000000;
    static const uint8_t long_cookie[PEER_NLM_NETOBJ_MAX];
    memset(&args, 0, sizeof args);
    args.cookie = peer_nlm_text("raw");
    if (call->cookie_len > 0)
        args.cookie = peer_nlm_bytes_of(long_cookie, call->cookie_len);
    args.block = call->block;
    args.exclusive = !call->is_shared;
    args.reclaim = call->reclaim;
    args.state = call->state;
    args.lock.caller_name = peer_nlm_text(call->name);
    args.lock.fh = locker_handle(call->file);
    args.lock.svid = call->svid;
    args.lock.offset = call->offset;
    args.lock.len = call->len;
    packet_clear(&packet);
    peer_nlm_put_call(&packet, call->xid != 0 ? call->xid : xid++, 4, call->procedure, &args);
    story_send(world, call->from != NULL ? call->from : "192.0.2.14", 800, &packet);
    if (call->wait_ms == 0)
        return;
    machine_turn(world);
    story_wait_ms(world, call->wait_ms);
}

void story_notice(struct world *world, const char *from, const char *name, uint32_t state)
{
    static struct packet packet;
    static uint32_t xid = 1;
    packet_clear(&packet);
    peer_nsm_put_notify(&packet, xid++, name, state);
    story_send(world, from, 650, &packet);
    machine_turn(world);
}

enum order_result story_order(struct world *world, enum order_kind kind, enum who who,
                              const struct extent *extent)
{
    enum order_result result = operator_order(world, kind, story_locker(world, who), extent);
    story_wait_ms(world, 300);
    return result;
}

static void init_locker(struct world *world, enum who who)
{
    static const enum locker_kind kinds[] = {LOCKER_LINUX, LOCKER_LINUX, LOCKER_MACOS,
                                             LOCKER_FREEBSD, LOCKER_LINUX};
    struct locker *locker = &world->lockers->at[who];
    struct host *host = &world->hosts[who];
    locker->kind = kinds[who];
    locker->host = host;
    locker->version = 4;
    locker->says_state = locker->kind > LOCKER_LINUX_2026;
    locker->is_tcp = locker->restarts = locker->frees_all = false;
    locker->notifies = locker->is_multihomed = false;
    locker->keeps_port = true;
    locker->port = (uint16_t)(700 + who);
    locker->mounted = who % STATD_NAMES;
    host->nsm_state = locker->state;
    host->kind = CALLEE_BOTH;
    host->has_no_statd = false;
    host->versions = 1U << 2 | 1U << 3 | 1U << 4;
    host->portmapper_tcp_only = false;
}

struct world *story_new(const char *name, uint32_t allows, bool verbose)
{
    struct world *world =
        world_new(&(struct world_options){.seed = 1, .verbose = verbose, .allows = allows});
    world->scenario = name;
    world->is_manual = world->is_calm = true;
    world->plan = (struct plan){.lockers = 5,
                                .names = 8,
                                .allows = allows,
                                .clients_max = 100,
                                .locks_max = 4000,
                                .locks_per_client_max = 4000,
                                .waiters_max = 100,
                                .outbox_max = 64,
                                .cache_max = 4096,
                                .batch_puts_max = 64,
                                .bytes_max = 1024 * 1024,
                                .calls_max = 64,
                                .lines_max = 64,
                                .window_ns = 90 * SECOND,
                                .give_up_ns = 900 * SECOND,
                                .grace_ns = 20 * SECOND,
                                .nat_forwards = true,
                                .commit_max_ns = 5 * MILLISECOND};
    world->lockers->plan = (struct locker_plan){.files = 2, .span = 8};
    watcher_init(world);
    callee_init(world);
    locker_init(world);
    for (uint32_t i = 0; i < world->plan.lockers; i++)
        init_locker(world, (enum who)i);
    return world;
}

void story_boot(struct world *world)
{
    machine_boot(world);
    story_wait_ms(world, 1000);
}

void story_end(struct world *world)
{
    claim_disk_audit(world);
    world_free(world);
}

void story_run(const struct scenario *scenario, bool verbose)
{
    struct world *world = story_new(scenario->name, scenario->allows, verbose);
    story_boot(world);
    scenario->play(world);
    story_end(world);
}

/*
 * world.c -- the seed's plan, the loop over events, and the end; see world.h.
 *
 * A life has three parts. In the chaos everything fails as often as the plan says. Then it is calm:
 * nothing is lost, delayed or killed any more, every owner gets its answers (O6), and everybody is
 * told what he must be told (O11). At last the owners unregister everything, and the tables must be
 * empty (O4).
 */
#include "world.h"

#include "base/hash.h"
#include "core/lock.h"

#include "audit.h"
#include "callee.h"
#include "claim_disk.h"
#include "era.h"
#include "locker.h"
#include "machine.h"
#include "mail.h"
#include "net.h"
#include "operator.h"
#include "program.h"
#include "resolver.h"
#include "session.h"
#include "spoofer.h"
#include "statd.h"
#include "still.h"
#include "stranger.h"
#include "told.h"
#include "vandal.h"
#include "vanish.h"
#include "watcher.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define WALL_START_NS (UINT64_C(1700000000) * SECOND)
#define CALM_MAX_NS   (900 * SECOND)
#define MARKS_MAX_NS  (300 * SECOND) /* the ladder's longest step, a call, and some */

uint32_t world_host_count(const struct world *world)
{
    return world->plan.hosts + world->plan.lockers;
}

uint64_t world_side(struct world *world, uint64_t below)
{
    return below == 0 ? 0 : prng_below(&world->side, below);
}

bool world_side_chance(struct world *world, uint32_t percent)
{
    return prng_chance(&world->side, percent);
}

uint64_t world_random(struct world *world, uint64_t below)
{
    return below == 0 ? 0 : prng_below(&world->prng, below);
}

bool world_allows(const struct world *world, enum world_exclusion exclusion)
{
    return (world->plan.allows & exclusion) != 0;
}

bool world_chance(struct world *world, uint32_t percent)
{
    return prng_chance(&world->prng, percent);
}

uint64_t world_resend_ns(struct world *world)
{
    if (world->is_calm || world->is_manual || era_is_pressing(world) ||
        !prng_chance(&world->tcp, 1 + world->plan.loss / 2))
        return 0;
    uint64_t most_ns = prng_chance(&world->tcp, 60) ? 2 * SECOND : 25 * SECOND;
    return 200 * MILLISECOND + prng_below(&world->tcp, most_ns);
}

uint64_t world_wall_ns(const struct world *world)
{
    return WALL_START_NS + world->now_ns + (uint64_t)world->wall_skew_ns;
}

/* Until counters that were lost are stored again, the clock is all that makes up for them: a second
 * fault would leave nothing (D16). */
static bool needs_clock(const struct world *world)
{
    struct record_server stored;
    return !world->disk.is_new && !disk_server(&world->disk, &stored);
}

void world_set_clock(struct world *world, struct prng *prng)
{
    if (needs_clock(world))
        return;
    int64_t day_ns = (int64_t)(86400 * SECOND);
    world->wall_skew_ns = (int64_t)prng_below(prng, 20 * (uint64_t)day_ns) - 10 * day_ns;
    if (prng_chance(prng, 30))
        world->wall_skew_ns = -(int64_t)WALL_START_NS;
    else if (prng_chance(prng, 30))
        world->wall_skew_ns = 0;
    world_trace(world, "the clock is set to %llu s",
                (unsigned long long)(world_wall_ns(world) / SECOND));
}

const char *world_procedure_text(uint32_t procedure)
{
    static const char *const names[] = {"NULL",      "STAT",       "MON",   "UNMON",
                                        "UNMON_ALL", "SIMU_CRASH", "NOTIFY"};
    return procedure < sizeof names / sizeof names[0] ? names[procedure] : "?";
}

static void print_time(const struct world *world, FILE *out)
{
    fprintf(out, "%4llu.%06llu  ", (unsigned long long)(world->now_ns / SECOND),
            (unsigned long long)(world->now_ns % SECOND / 1000));
}

void world_trace(const struct world *world, const char *format, ...)
{
    if (!world->options.verbose)
        return;
    va_list arguments;
    va_start(arguments, format);
    print_time(world, stdout);
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
}

_Noreturn void world_fail(const struct world *world, const char *rule, const char *format, ...)
{
    locker_trace(world);
    va_list arguments;
    va_start(arguments, format);
    fflush(stdout);
    if (world->scenario != NULL)
        fprintf(stderr, "sim: scenario %s broke %s at ", world->scenario, rule);
    else
        fprintf(stderr, "sim: seed %llu broke %s at ", (unsigned long long)world->options.seed,
                rule);
    print_time(world, stderr);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    if (world->scenario != NULL)
        fprintf(stderr, "\nsim: see it happen: sim --scenario %s --verbose\n", world->scenario);
    else
        fprintf(stderr, "\nsim: see it happen: sim --seed %llu --verbose\n",
                (unsigned long long)world->options.seed);
    exit(1);
}

static uint32_t between(struct world *world, uint32_t low, uint32_t high)
{
    return low + (uint32_t)world_random(world, high - low + 1);
}

/* Sizes: mostly ample, sometimes so small that the limit is the story. */
static void plan_sizes(struct world *world, struct plan *plan)
{
    plan->hosts = between(world, 3, HOST_MAX);
    plan->owners = between(world, 3, OWNER_MAX);
    plan->names = 2 * plan->hosts + between(world, 4, 20);
    plan->clients_max = world_chance(world, 35) ? between(world, 1, 20) : 200;
    plan->limits_vary = world_chance(world, 25);
    plan->outbox_max = world_chance(world, 20) ? between(world, 1, 4) : 64;
    plan->small_cache = world_chance(world, 15);
    plan->cache_max = plan->small_cache ? plan->outbox_max + between(world, 1, 5) : 4096;
    plan->batch_puts_max = world_chance(world, 25) ? between(world, 1, 3) : 64;
    plan->few_bytes = world_chance(world, 12);
    plan->bytes_max = (plan->few_bytes ? between(world, 1, 12) : 1024) * UINT64_C(1024);
    plan->sync_process = world_chance(world, 15);
    plan->few_calls = world_chance(world, 15);
    plan->calls_max = plan->few_calls ? between(world, 1, 4) : 256;
    plan->lines_max = world_chance(world, 20) ? between(world, 1, 3) : 64;
    plan->locks_max = plan->locks_per_client_max = plan->waiters_max = 10;
}

/* Odd seeds are worlds of lockers; every fourth of them has watchers too. */
static void plan_lockers(struct world *world, struct plan *plan)
{
    if (world->options.seed % 2 == 0)
        return;
    struct lockers *all = world->lockers = calloc(1, sizeof *all);
    if (all == NULL)
        abort();
    bool has_watchers = world->options.seed % 8 == 7;
    plan->hosts = has_watchers ? 3 : 0;
    plan->owners = has_watchers ? 3 : 0;
    plan->lockers = between(world, 2, LOCKER_MAX);
    bool few_locks = world_chance(world, 12);
    plan->locks_max = few_locks ? between(world, 1, 12) : 200;
    plan->locks_per_client_max = few_locks ? between(world, 1, 6) : 200;
    plan->waiters_max = few_locks ? between(world, 1, 4) : 100;
    if (plan->few_bytes)
        plan->bytes_max = 64 * between(world, 1, 8);
    if (plan->clients_max > 20 || world_chance(world, 60))
        plan->clients_max = 200;
    else
        plan->clients_max = between(world, 1, 6);
    plan->messages_per_second = world_chance(world, 15) ? between(world, 1, 3) : 0;
    all->plan = (struct locker_plan){
        .files = between(world, 1, LOCKER_FILES_MAX),
        .span = between(world, 2, LOCKER_CELLS - 1),
        .blocking = between(world, 20, 90),
        .exclusive = between(world, 30, 100),
        .mute = between(world, 0, 30),
        .reboots = world_chance(world, 60) ? between(world, 5, 30) : 0,
        .think_max_ns = between(world, 20, 2000) * MILLISECOND,
        .poll_max_ns = between(world, 1, 15) * SECOND,
        .pieces = between(world, 0, 60),
        .orders = world_chance(world, 30) ? between(world, 1, 10) : 0,
        .is_limited = few_locks || plan->few_bytes || plan->full > 0 || plan->clients_max <= 20,
    };
    bool is_told = !all->plan.is_limited && !plan->few_calls && world_chance(world, 60);
    plan->allows |= is_told ? 0 : WORLD_UNTOLD;
    plan->allows |= plan->sync_process ? WORLD_INCOMPLETE : 0;
    plan->allows |= world_chance(world, 15) ? WORLD_OVERRIDE : 0;
    plan->nat_forwards = is_told || world_chance(world, 50);
    if (is_told) {
        plan->messages_per_second = 0;
        plan->gone = 0;
        plan->grace_ns = between(world, 60, 100) * SECOND;
    }
}

static void plan_faults(struct world *world, struct plan *plan)
{
    bool is_quiet = world_chance(world, 10);
    plan->loss = is_quiet ? 0 : between(world, 0, 25);
    plan->duplication = between(world, 0, 30);
    plan->late = between(world, 0, 15);
    plan->stall = world_chance(world, 30) ? between(world, 1, 5) : 0;
    plan->full = world_chance(world, 20) ? between(world, 5, 50) : 0;
    plan->reboot = world_chance(world, 45) ? between(world, 3, 20) : 0;
    plan->commit_failure_permille = between(world, 0, 10);
    plan->step_crash_permyriad = world_chance(world, 60) ? between(world, 1, 60) : 0;
    plan->delay_max_ns = between(world, 1, 400) * MILLISECOND;
    plan->commit_max_ns = between(world, 1, 300) * MILLISECOND;
    plan->long_runs = world_chance(world, 25);
    plan->crash_mean_ns = (plan->long_runs ? 300 : between(world, 2, 30)) * SECOND;
    plan->chaos_ns = (plan->long_runs ? 230 : between(world, 15, 55)) * SECOND;
    plan->think_max_ns = between(world, 20, plan->long_runs ? 8000 : 3000) * MILLISECOND;
    plan->moody = is_quiet ? 0 : between(world, 0, 90);
    plan->gone = is_quiet ? 0 : between(world, 0, 30);
    plan->forged = between(world, 0, 30);
    bool is_impatient = world_chance(world, 50);
    plan->window_ns = (is_impatient ? between(world, 0, 20) : 90) * SECOND;
    plan->give_up_ns = (is_impatient ? between(world, 1, 30) : 900) * SECOND;
    plan->grace_ns = (world_chance(world, 70) ? between(world, 1, 20) : 90) * SECOND;
    plan->resumes = world_chance(world, 35);
    plan->has_sessions = world_chance(world, 25);
    plan->holds = world_chance(world, 40);
    plan->verifies = world_chance(world, 10);
    plan->distrusts = world_chance(world, 10);
    plan->ready_max_ns = world_chance(world, 30) ? 5 * SECOND : 200 * MILLISECOND;
}

/* Strict worlds (is_told) have no limits that anybody meets. */
static void plan_more(struct world *world, struct plan *plan)
{
    struct prng *more = &world->more;
    plan->full_stays = prng_chance(more, 50) ? (uint32_t)prng_below(more, 95) : 0;
    plan->wall_jumps = prng_chance(more, 30);
    bool may_shrink = world->lockers != NULL && (plan->allows & WORLD_UNTOLD);
    if (may_shrink && prng_chance(more, 30)) {
        plan->shrinks = true;
        world->lockers->plan.is_limited = true;
    }
    /* Watchers (O5) know no share; locker's worlds without them do. */
    if (world->lockers != NULL && world->lockers->plan.is_limited && plan->owners == 0 &&
        prng_chance(more, 50))
        plan->per_address_percent = 10 + (uint32_t)prng_below(more, 60);
}

/* Restarts with other modes and limits; a world that is strict otherwise may have small tables,
 * because what is stored above a limit may be reclaimed all the same. */
static void plan_restarts(struct world *world, struct plan *plan)
{
    struct prng *jumps = &world->jumps;
    plan->reconfigures = prng_chance(jumps, 35);
    if (world->lockers != NULL && prng_chance(jumps, 10))
        plan->allows |= WORLD_OVERRIDE;
    if (plan->reconfigures && world->lockers != NULL && prng_chance(jumps, 50)) {
        plan->shrinks = true;
        world->lockers->plan.is_limited = true;
    }
}

/* Worlds without them stay as they were. */
static void plan_standstills(struct world *world, struct plan *plan)
{
    struct prng *prng = &world->still_prng;
    if (!prng_chance(prng, 25))
        return;
    plan->still_mean_ns = (4 + prng_below(prng, 40)) * SECOND;
    plan->still_step_permyriad = prng_chance(prng, 60) ? 1 + (uint32_t)prng_below(prng, 60) : 0;
}

/* The disk has an end in some worlds; in some of them it is there from the beginning. */
static void plan_room(struct world *world)
{
    uint64_t dice = hash_mix(UINT64_C(0xf0117), world->options.seed);
    bool may_be_full = world->lockers == NULL || (world->plan.allows & WORLD_UNTOLD);
    if (!may_be_full || dice % 100 >= 25)
        return;
    world->disk.room = 1 + (uint32_t)(dice / 100 % 40);
    world->disk.reserve = 2 * (world->plan.batch_puts_max + LOCK_ACCEPT_PUTS_MAX);
    if (world->lockers != NULL)
        world->lockers->plan.is_limited = true;
}

/* On a shared disk each step of a call takes a batch, and a world that is hard on everybody sees no
 * callback: in half of them few faults come in the way of many who want the same bytes, and the
 * server is replaced when it calls one of them (machine_overtake). */
static void plan_contention(struct world *world, struct plan *plan)
{
    uint64_t dice = hash_mix(UINT64_C(0xc0417e), world->options.seed);
    if (!plan->lease.is_shared || world->lockers == NULL || dice % 2 != 0)
        return;
    struct locker_plan *lockers = &world->lockers->plan;
    plan->crash_mean_ns = 120 * SECOND;
    plan->step_crash_permyriad = 0;
    plan->commit_failure_permille = 0;
    plan->chaos_ns = (60 + dice / 2 % 60) * SECOND;
    plan->commit_max_ns = 20 * MILLISECOND;
    plan->delay_max_ns = 50 * MILLISECOND;
    plan->stall = plan->moody = plan->gone = 0;
    plan->resumes = dice / 128 % 3 != 0;
    plan->grace_ns = (30 + dice / 512 % 60) * SECOND;
    lockers->is_contended = true;
    lockers->files = 1;
    lockers->span = 2;
    lockers->blocking = 90;
    lockers->exclusive = 95;
    lockers->think_max_ns = 500 * MILLISECOND;
}

/* A server that is replaced on a shared disk is on another machine, with other programs. */
static void plan_programs(struct world *world, struct plan *plan)
{
    uint64_t dice = hash_mix(UINT64_C(0x9209a7), world->options.seed);
    if (world->lockers == NULL || plan->lease.is_shared)
        return;
    plan->has_programs = dice % 3 == 0;
    plan->has_few_pieces = plan->has_programs && dice / 3 % 4 == 0;
    plan->removes = dice / 12 % 4 == 0;
}

static uint64_t until_next_crash_ns(struct world *world)
{
    return 1 + world_random(world, 2 * world->plan.crash_mean_ns);
}

struct world *world_new(const struct world_options *options)
{
    struct world *world = calloc(1, sizeof *world);
    if (world == NULL)
        abort();
    world->options = *options;
    world->tcp.state = options->seed * UINT64_C(0x9e6c63d0876a9a47) + 3;
    world->prng.state = options->seed * UINT64_C(0x2545f4914f6cdd1d) + 1;
    world->more.state = options->seed * UINT64_C(0x9e3779b97f4a7c15) + 7;
    world->jumps.state = options->seed * UINT64_C(0xaf251af3b0f025b5) + 9;
    world->still_prng.state = options->seed * UINT64_C(0xd1342543de82ef95) + 5;
    world->side.state = options->seed * UINT64_C(0x9e6c63d0876a9a47) + 7;
    world->plan.allows = options->allows;
    plan_sizes(world, &world->plan);
    plan_faults(world, &world->plan);
    plan_lockers(world, &world->plan);
    plan_more(world, &world->plan);
    world->plan.lease.is_shared = hash_mix(UINT64_C(0x5ba6ed), options->seed) % 4 == 0;
    world->plan.has_echo = world->plan.lease.is_shared;
    plan_contention(world, &world->plan);
    plan_restarts(world, &world->plan);
    plan_standstills(world, &world->plan);
    plan_room(world);
    plan_programs(world, &world->plan);
    world->disk.is_new = true;
    world->disk.is_lazy = world->plan.sync_process;
    return world;
}

void world_free(struct world *world)
{
    struct queue_event event;
    while (queue_take(&world->queue, &event))
        if (event.name == QUEUE_PARCEL || event.name == QUEUE_LETTER || event.name == QUEUE_MAIL)
            free(event.subject);
    queue_done(&world->queue);
    machine_stop(world);
    still_done(world);
    rpc_client_free(world->machine.ghost);
    free(world->machine.reply);
    disk_done(&world->disk);
    watcher_done(world);
    for (uint32_t i = 0; i < world->connection_count; i++)
        free(world->connections[i]);
    free(world->connections);
    line_done(world);
    locker_done(world);
    session_done(world);
    stranger_done(world);
    program_done(world);
    free(world);
}

static void wake_owners(struct world *world)
{
    for (uint32_t i = 0; i < world->plan.owners; i++) {
        struct owner *owner = &world->owners[i];
        owner->timeout_ns = 2 * SECOND;
        owner->again = NULL;
        queue_add(&world->queue, world->now_ns + 1 + i, QUEUE_OWNER, owner, ++owner->timer);
    }
}

static void begin_calm(struct world *world)
{
    world_trace(world, "CALM: faults end");
    world->is_calm = true;
    still_wake_now(world);
    /* Each step of a call takes a commit there: over fewer connections not all can be told before
     * they are given up, and the next start, which owes it to all anew, changes nothing. */
    if (world->plan.lease.is_shared && world->plan.lines_max < 4)
        world->plan.lines_max = 4;
    callee_be_well(world);
    wake_owners(world);
    locker_be_calm(world);
    stranger_be_calm(world);
    program_be_calm(world);
    if (world_chance(world, 50))
        machine_crash(world, "the last time", false);
    queue_add(&world->queue, world->now_ns + SECOND, QUEUE_MARKS, NULL, 0);
}

/* Whoever is still to be told was given up; nobody's turn is yet to come, which is late where only
 * few calls are made at a time. */
static bool has_given_up(const struct world *world)
{
    struct core_status status = {0};
    if (world->machine.is_up)
        core_status(world->machine.core, &status);
    return status.notify.given_up > 0 && status.notify.given_up >= status.notify.owed;
}

/* O11, and then the owners go. */
static void await_marks(struct world *world)
{
    if (watcher_all_answered(world) && told_all_ended(world)) {
        world_trace(world, "FAREWELL: everybody knows everything");
        world->is_farewell = true;
        wake_owners(world);
        return;
    }
    if (has_given_up(world)) /* who was given up is tried again after the next start */
        machine_crash(world, "to be started anew", false);
    if (world->now_ns > world->plan.chaos_ns + MARKS_MAX_NS)
        world_fail(world, "O11", "faults ended %llu s ago, and somebody is still not told",
                   (unsigned long long)(MARKS_MAX_NS / SECOND));
    queue_add(&world->queue, world->now_ns + SECOND, QUEUE_MARKS, NULL, 0);
}

/* A call of its was executed, and the answer waits for the disk. */
static bool has_pending(const struct world *world, const struct host *host)
{
    for (uint32_t i = 0; i < world->plan.owners; i++) {
        const struct call *call = world->owners[i].call;
        if (world->owners[i].host == host && call != NULL && !call->has_reply &&
            call->taken_run == world->machine.run)
            return true;
    }
    return false;
}

/* Mostly one that is waiting for an answer: that is when a reboot is interesting. */
static struct host *host_to_reboot(struct world *world)
{
    uint32_t first = (uint32_t)world_random(world, world->plan.hosts);
    for (uint32_t i = 0; i < world->plan.hosts && world_chance(world, 90); i++) {
        struct host *host = &world->hosts[(first + i) % world->plan.hosts];
        if (has_pending(world, host))
            return host;
    }
    return &world->hosts[first];
}

/* A boot loop: it waits some time for a moment in which an answer is pending. */
static void reboot_again(struct world *world, struct host *host, uint64_t waited)
{
    if (has_pending(world, host) || waited >= 40)
        watcher_reboot(world, host);
    else
        queue_add(&world->queue, world->now_ns + 1 + world_random(world, 100 * MILLISECOND),
                  QUEUE_REBOOT, host, waited + 1);
}

static void disturb_lockers(struct world *world)
{
    struct lockers *all = world->lockers;
    if (world_chance(world, all->plan.orders))
        operator_act(world);
    else if (world_chance(world, all->plan.reboots))
        locker_reboot(world, &all->at[world_random(world, all->count)]);
    else if (!still_is(world))
        spoofer_strike(world);
}

static void disturb(struct world *world)
{
    if (world->is_calm)
        return;
    if (world->plan.wall_jumps && prng_chance(&world->jumps, 12))
        world_set_clock(world, &world->jumps);
    if (world->lockers != NULL && world_chance(world, 60))
        disturb_lockers(world);
    else if (world->plan.owners > 0 && world_chance(world, world->plan.reboot))
        watcher_reboot(world, host_to_reboot(world));
    else if (!still_is(world))
        vandal_strike(world);
    queue_add(&world->queue, world->now_ns + 1 + world_random(world, 4 * SECOND), QUEUE_VANDAL,
              NULL, 0);
}

static void crash(struct world *world)
{
    if (world->is_calm)
        return;
    machine_crash(world, "killed", world_chance(world, 50));
    queue_add(&world->queue, world->now_ns + until_next_crash_ns(world), QUEUE_CRASH, NULL, 0);
}

/* What the server machine does when the time has come. */
static void (*const of_machine[])(struct world *, uint64_t ticket) = {
    [QUEUE_COMMIT] = machine_commit,    [QUEUE_READY] = machine_ready,
    [QUEUE_TICK] = machine_tick,        [QUEUE_THAW] = machine_thaw,
    [QUEUE_STAND] = still_stand,        [QUEUE_WAKE] = still_wake,
    [QUEUE_RESOLVED] = resolver_answer, [QUEUE_ORDER] = operator_give,
    [QUEUE_PROGRAM] = program_act,      [QUEUE_VANISH] = vanish_act,
};

void world_handle(struct world *world, const struct queue_event *event)
{
    struct owner *owner = event->subject;
    struct process *process = event->subject;
    if (still_holds(world, event))
        return;
    switch (event->name) {
    case QUEUE_PARCEL:
        net_arrive(world, event->subject);
        break;
    case QUEUE_OWNER:
        if (event->ticket == owner->timer)
            watcher_act(world, owner);
        break;
    case QUEUE_CRASH:
        crash(world);
        break;
    case QUEUE_BOOT:
        machine_boot(world);
        break;
    case QUEUE_VANDAL:
        disturb(world);
        break;
    case QUEUE_REBOOT:
        if (!world->is_calm)
            reboot_again(world, event->subject, event->ticket);
        break;
    case QUEUE_CALM:
        begin_calm(world);
        break;
    case QUEUE_LETTER:
        line_arrive(world, event->subject);
        break;
    case QUEUE_MOOD:
        callee_change_mood(world, event->subject);
        break;
    case QUEUE_MARKS:
        await_marks(world);
        break;
    case QUEUE_PROCESS:
        if (event->ticket == process->timer)
            locker_act(world, process);
        break;
    case QUEUE_MAIL:
        mail_arrive(world, event->subject);
        break;
    case QUEUE_STRANGER:
        stranger_act(world);
        break;
    case QUEUE_SESSION:
        session_act(world);
        break;
    case QUEUE_STATD:
        if (event->ticket == ((struct locker *)event->subject)->notice_xid)
            statd_act(world, event->subject);
        break;
    case QUEUE_NOTICE:
        statd_arrive(world, event->subject, event->ticket);
        break;
    case QUEUE_COMMIT:
    case QUEUE_READY:
    case QUEUE_TICK:
    case QUEUE_THAW:
    case QUEUE_STAND:
    case QUEUE_WAKE:
    case QUEUE_RESOLVED:
    case QUEUE_ORDER:
    case QUEUE_PROGRAM:
    case QUEUE_VANISH:
        of_machine[event->name](world, event->ticket);
        break;
    }
}

void world_run_until(struct world *world, uint64_t time_ns)
{
    struct queue_event event;
    while (queue_take(&world->queue, &event)) {
        if (event.time_ns > time_ns) {
            queue_put_back(&world->queue, &event);
            break;
        }
        world->now_ns = event.time_ns;
        world_handle(world, &event);
    }
    if (time_ns != UINT64_MAX)
        world->now_ns = time_ns;
}

/* Who cannot be told is tried for ever, and on a shared disk each try takes a batch. */
static void let_end(struct world *world)
{
    bool is_trying = world->plan.lease.is_shared && era_untellable_count(world) > 0;
    for (uint32_t i = 0; i < 4000 && is_trying && world->disk.is_busy; i++)
        world_run_until(world, world->now_ns + 5 * MILLISECOND);
}

void world_run(struct world *world)
{
    watcher_init(world);
    callee_init(world);
    locker_init(world);
    session_init(world);
    stranger_init(world);
    program_init(world);
    machine_boot(world);
    still_init(world);
    operator_init(world);
    vanish_init(world);
    queue_add(&world->queue, until_next_crash_ns(world), QUEUE_CRASH, NULL, 0);
    queue_add(&world->queue, world_random(world, 4 * SECOND), QUEUE_VANDAL, NULL, 0);
    queue_add(&world->queue, world->plan.chaos_ns, QUEUE_CALM, NULL, 0);
    world_run_until(world, world->plan.chaos_ns + CALM_MAX_NS);
    let_end(world);
    if (!watcher_all_finished(world))
        world_fail(world, "O6", "faults ended %llu s ago, and a call is still not answered",
                   (unsigned long long)(CALM_MAX_NS / SECOND));
    if (!locker_all_finished(world))
        world_fail(world, "L6", "faults ended %llu s ago, and somebody still waits",
                   (unsigned long long)(CALM_MAX_NS / SECOND));
    if (world->disk.is_busy || !world->machine.is_up ||
        rpc_server_waiting(world->machine.server) != 0 ||
        (rpc_client_count(world->machine.client) != 0 && era_untellable_count(world) == 0))
        world_fail(world, "O6", "everybody is done, but the server is not");
    audit_disk(world);
    audit_empty(world);
    claim_disk_audit(world);
    claim_disk_empty(world);
    program_check_empty(world);
    session_check_empty(world);
    machine_compare(world);
    world->history = world->history * 31 + core_digest(world->machine.core);
}

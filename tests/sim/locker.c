/*
 * locker.c -- what locking clients are and do; see locker.h.
 *
 * In the chaos a process does something, thinks, does something else; when it is told BLOCKED it
 * polls, or cancels and locks again, until it is granted or loses patience. A LOCK that it gave up
 * without an answer leaves it in doubt: it unlocks those bytes before anything else.
 *
 * In the calm whoever waits asks once more, and then, if it can be called, only waits: the server
 * must call it. Who waits for nothing gives everything back.
 */
#include "locker.h"

#include "ask.h"
#include "callee.h"
#include "claim.h"
#include "claim_disk.h"
#include "era.h"
#include "mail.h"
#include "statd.h"

#include <stdio.h>
#include <stdlib.h>

void locker_set_timer(struct world *world, struct process *process, uint64_t delay_ns)
{
    queue_add(&world->queue, world->now_ns + delay_ns, QUEUE_PROCESS, process, ++process->timer);
}

uint16_t locker_cells(uint64_t offset, uint64_t len)
{
    uint16_t cells = 0;
    for (uint32_t cell = 0; cell < LOCKER_CELLS; cell++)
        if (cell >= offset && (len == 0 || len == UINT64_MAX || cell - offset < len))
            cells |= (uint16_t)(1U << cell);
    return cells;
}

struct peer_nlm_bytes locker_handle(uint32_t file)
{
    uint8_t bytes[32] = "simulated file handle";
    bytes[31] = (uint8_t)file;
    return peer_nlm_bytes_of(bytes, sizeof bytes);
}

struct peer_nlm_bytes locker_oh(const struct process *process)
{
    const struct locker *locker = process->locker;
    char text[40];
    if (locker->kind == LOCKER_MACOS) { /* of its lock daemon: it changes when that starts anew */
        uint8_t bytes[16] = {0};
        bytes[3] = (uint8_t)locker->index;
        bytes[15] = (uint8_t)locker->oh_count;
        return peer_nlm_bytes_of(bytes, sizeof bytes);
    }
    (void)snprintf(text, sizeof text, "%u@%s", process->svid, locker->name);
    return peer_nlm_text(text);
}

/* ---- what happens next ---- */

static void go_on(struct world *world, struct process *process)
{
    if (world->is_manual)
        return;
    uint64_t think_ns = world->is_calm ? MILLISECOND : world->lockers->plan.think_max_ns;
    locker_set_timer(world, process, 1 + world_random(world, think_ns));
}

static bool can_be_called(const struct locker *locker)
{
    return !locker->host->has_no_lockd &&
           (locker->host->kind == CALLEE_BOTH || locker->host->kind == CALLEE_UDP);
}

/* It was told BLOCKED, or goes on waiting. */
static void wait_on(struct world *world, struct process *process)
{
    if (world->is_manual)
        return;
    bool is_patient = can_be_called(process->locker) && !world->lockers->plan.is_limited;
    if (!world->is_calm)
        locker_set_timer(world, process, 1 + world_random(world, world->lockers->plan.poll_max_ns));
    else if (!is_patient || !process->has_polled)
        locker_set_timer(world, process, SECOND + world_random(world, 5 * SECOND));
}

static void lock_wish(struct world *world, struct process *process)
{
    process->is_waiting = true;
    process->has_polled = world->is_calm;
    (void)ask_begin(
        world, process,
        &(struct ask_what){.procedure = PEER_NLM_LOCK, .extent = process->wish, .block = true});
}

static void cancel_wish(struct world *world, struct process *process, bool locks_again)
{
    process->is_cancelling = true;
    process->locks_again = locks_again;
    (void)ask_begin(
        world, process,
        &(struct ask_what){.procedure = PEER_NLM_CANCEL, .extent = process->wish, .block = true});
}

static void unlock(struct world *world, struct process *process, const struct extent *extent)
{
    (void)ask_begin(world, process,
                    &(struct ask_what){.procedure = PEER_NLM_UNLOCK, .extent = *extent});
}

/* The timer of one that waits. */
static void ask_again(struct world *world, struct process *process)
{
    bool is_macos = process->locker->kind == LOCKER_MACOS;
    /* A wish of an earlier life may be granted while this one waits, and close a circle then. */
    bool has_ghosts = world->is_calm && process->ghost_count > 0;
    if (has_ghosts || (!world->is_calm && world->now_ns >= process->patience_ns))
        cancel_wish(world, process, false);
    else if (is_macos && !world->is_calm)
        cancel_wish(world, process, true);
    else
        lock_wish(world, process);
}

/* ---- answers ---- */

static void stop_waiting(struct process *process)
{
    process->is_waiting = process->is_blocked = process->is_cancelling = false;
}

void locker_has(struct world *world, struct process *process, const struct extent *extent,
                bool is_confirmed)
{
    const struct extent *wish = &process->wish;
    if (wish->file == extent->file && wish->offset == extent->offset && wish->len == extent->len)
        stop_waiting(process);
    claim_begins(world, process, extent, is_confirmed);
    go_on(world, process);
}

/* The bytes of this extent may be its own or not: it unlocks them first. */
static void doubt(struct world *world, struct process *process, const struct extent *extent)
{
    stop_waiting(process);
    process->wish = *extent;
    process->is_in_doubt = true;
    go_on(world, process);
}

/* The server did that in this era. */
static bool is_confirmed(const struct world *world, const struct ask *ask)
{
    return ask->taken_era == world->lockers->era.number;
}

/* It has learned of a restart since it made that call: what it is granted is reclaimed, too. */
static bool is_old_news(const struct ask *ask)
{
    return ask->heard_count != ask->process->locker->heard_count;
}

static void lock_answered(struct world *world, struct process *process, struct ask *ask,
                          uint32_t status)
{
    if (status == PEER_NLM_IS_GRANTED) {
        process->locker->is_known = process->locker->has_state = true;
        process->locker->is_forgotten = false;
        locker_has(world, process, &ask->extent, is_confirmed(world, ask));
        if (is_old_news(ask))
            statd_reclaim_also(world, process, &ask->extent);
        return;
    }
    if (status == PEER_NLM_IS_GRACE) {
        /* It may have been executed before the restart: the weaker mode goes on. */
        process->is_blocked = process->has_polled = false;
        if (process->is_waiting && !world->is_manual)
            locker_set_timer(world, process, SECOND + world_random(world, 4 * SECOND));
        else
            go_on(world, process);
        return;
    }
    if (status == PEER_NLM_IS_BLOCKED) {
        if (!process->is_blocked)
            process->patience_ns = world->now_ns + world_random(world, 30 * SECOND);
        process->is_blocked = true;
        wait_on(world, process);
        return;
    }
    bool was_queued = process->is_blocked;
    /* Who was never granted anything is not recorded, nor is its state (D1). */
    process->locker->is_known |= process->locker->has_state && !world->plan.distrusts;
    stop_waiting(process);
    claim_refused(world, ask);
    if (status == PEER_NLM_IS_NOLOCKS && was_queued)
        doubt(world, process, &ask->extent);
    else
        go_on(world, process);
}

/* CANCEL answered DENIED. That says what is stored, and confirms nothing that it is to reclaim. */
static void owns(struct world *world, struct process *process, const struct ask *ask)
{
    bool must_reclaim = process->locker->heard_ns >= world->lockers->era.start_ns;
    bool may_be_old =
        ask->may_be_grace || (must_reclaim && era_may_be_provisional(world, process->locker));
    locker_has(world, process, &ask->extent, is_confirmed(world, ask) && !may_be_old);
    if (must_reclaim)
        statd_reclaim_also(world, process, &ask->extent);
}

static void cancel_answered(struct world *world, struct process *process, const struct ask *ask,
                            uint32_t status)
{
    bool has_it = status == PEER_NLM_IS_DENIED;
    stop_waiting(process);
    if (process->locks_again && process->locker->kind == LOCKER_MACOS)
        lock_wish(world, process);
    else if (has_it && process->locker->kind == LOCKER_FREEBSD)
        owns(world, process, ask);
    else if (has_it)
        doubt(world, process, &ask->extent);
    else
        go_on(world, process);
}

/* A reboot that the server knows: from here on the host counts its xids anew. */
static void free_all_answered(struct world *world, struct locker *locker)
{
    locker->xid_count = 0;
    locker->life++;
    locker->is_known |= locker->kind == LOCKER_PCNFS; /* it never says another state */
    for (uint32_t p = 0; p < locker->process_count; p++) {
        locker->processes[p].is_frozen = false;
        go_on(world, &locker->processes[p]);
    }
}

static void reserved(struct world *world, struct process *process, const struct ask *ask)
{
    claim_reserves(world, process, ask->extent.file, ask->reservation, is_confirmed(world, ask));
    if (is_old_news(ask))
        statd_reclaim_share_also(world, process, ask->extent.file);
}

void locker_answered(struct world *world, struct ask *ask, const struct peer_nlm_res *res)
{
    struct process *process = ask->process;
    process->timer++; /* no repetition */
    world->lockers->answered = (enum peer_nlm_status)res->status;
    world->lockers->heard = *res;
    if (ask->reclaim) {
        statd_reclaimed(world, ask, res->status);
        return;
    }
    bool gives_up = ask->plain == PEER_NLM_UNLOCK || ask->plain == PEER_NLM_CANCEL ||
                    ask->plain == PEER_NLM_UNSHARE;
    if (gives_up && res->status == PEER_NLM_IS_GRACE) { /* it has asked that before, long ago */
        (void)ask_begin(world, process,
                        &(struct ask_what){
                            .procedure = ask->plain, .extent = ask->extent, .block = ask->block});
        return;
    }
    if (ask->plain == PEER_NLM_LOCK) {
        lock_answered(world, process, ask, res->status);
        return;
    }
    if (ask->plain == PEER_NLM_CANCEL) {
        cancel_answered(world, process, ask, res->status);
        return;
    }
    if (ask->plain == PEER_NLM_FREE_ALL) {
        free_all_answered(world, process->locker);
        return;
    }
    if (ask->plain == PEER_NLM_UNLOCK)
        process->is_in_doubt = false;
    else if (ask->plain == PEER_NLM_SHARE && res->status == PEER_NLM_IS_GRANTED)
        reserved(world, process, ask);
    else if (ask->plain == PEER_NLM_SHARE && res->status != PEER_NLM_IS_GRACE)
        claim_refused(world, ask);
    go_on(world, process);
}

/* No answer came, and it goes on without. */
static void give_up(struct world *world, struct process *process)
{
    struct ask *ask = process->ask;
    world_trace(world, "%s/%u gives up %s #%u", process->locker->label, process->svid,
                peer_nlm_procedure_text(ask->procedure), ask->number);
    ask_drop(process);
    if (world_chance(world, 30))
        mail_close(process->locker);
    if (ask->plain == PEER_NLM_LOCK && process->is_blocked && world_chance(world, 50))
        return; /* it will poll again */
    if (ask->plain == PEER_NLM_LOCK || ask->plain == PEER_NLM_CANCEL ||
        ask->plain == PEER_NLM_UNLOCK)
        doubt(world, process, &ask->extent);
}

/* ---- choices ---- */

static struct extent random_extent(struct world *world, const struct process *process)
{
    const struct locker_plan *plan = &world->lockers->plan;
    struct extent extent = {
        .file = (uint32_t)world_random(world, plan->files),
        .offset = world_random(world, plan->span),
        .len = 1 + world_random(world, 4),
        .exclusive = world_chance(world, plan->exclusive),
    };
    if (extent.offset + extent.len >= LOCKER_CELLS || world_chance(world, 8))
        extent.len = process->locker->kind == LOCKER_SOLARIS ? UINT64_MAX : 0;
    return extent;
}

/* Something that it holds, in the other mode. False: it holds nothing there. */
static bool other_mode(struct world *world, const struct process *process, struct extent *ret)
{
    const struct cells *held = &process->held[ret->file];
    uint32_t first = (uint32_t)world_random(world, LOCKER_CELLS - 1);
    for (uint32_t i = 0; i < LOCKER_CELLS - 1; i++) {
        uint32_t cell = (first + i) % (LOCKER_CELLS - 1);
        if ((held->any >> cell & 1) == 0)
            continue;
        ret->offset = cell;
        ret->len = 1 + world_random(world, 2);
        if (cell + ret->len >= LOCKER_CELLS)
            ret->len = 1;
        ret->exclusive = (held->exclusive >> cell & 1) == 0;
        return true;
    }
    return false;
}

static void begin_lock(struct world *world, struct process *process, const struct extent *extent)
{
    bool block = world_chance(world, world->lockers->plan.blocking);
    if (process->locker->kind == LOCKER_PCNFS) {
        (void)ask_begin(
            world, process,
            &(struct ask_what){.procedure = PEER_NLM_NM_LOCK, .extent = *extent, .block = block});
        return;
    }
    process->wish = *extent;
    process->is_waiting = block;
    (void)ask_begin(
        world, process,
        &(struct ask_what){.procedure = PEER_NLM_LOCK, .extent = *extent, .block = block});
}

static void begin_share(struct world *world, struct process *process, uint32_t file)
{
    bool is_end = world_chance(world, 50);
    struct ask_what what = {
        .procedure = is_end ? PEER_NLM_UNSHARE : PEER_NLM_SHARE,
        .extent = {.file = file},
        .reservation = {(uint32_t)world_random(world, 4), (uint32_t)world_random(world, 4)}};
    (void)ask_begin(world, process, &what);
}

/* (1): SHARE carries no state. Between a reboot and the first sign of it that the server believes
 * it would look like one from before, and end with that. Those who reserve notify first. */
static bool shares(const struct world *world, const struct locker *locker)
{
    if (!world_allows(world, WORLD_UNTOLD) && locker->kind == LOCKER_PCNFS)
        return false; /* without a status monitor it loses them with every restart (P2 (2)) */
    return locker->version >= 3 && locker->kind != LOCKER_MACOS &&
           (locker->is_known || world->is_calm || world_allows(world, WORLD_ALIKE));
}

/* Nothing is held, asked for or in doubt: as after the end of a program. */
static bool is_clean(const struct locker *locker)
{
    for (uint32_t p = 0; p < locker->process_count; p++) {
        const struct process *process = &locker->processes[p];
        if (process->ask != NULL || process->is_waiting || process->is_in_doubt)
            return false;
        for (uint32_t file = 0; file < LOCKER_FILES_MAX; file++)
            if (process->held[file].any != 0)
                return false;
    }
    return true;
}

/* A call that was given up may be in progress still: its answer will leave. */
static bool is_being_answered(const struct world *world, const struct locker *locker)
{
    const struct lockers *all = world->lockers;
    uint32_t run = world->machine.run;
    for (uint32_t i = 0; i < all->ask_count; i++)
        if (all->asks[i]->process->locker == locker && all->asks[i]->taken_run == run &&
            all->asks[i]->ended_run != run)
            return true;
    return false;
}

/* Another run of the same program: it counts its calls from one again, from another port or from
 * the same. There it would take an answer to its run before for its own, whatever the server does:
 * so none is under way any more. */
static void restart_program(struct world *world, struct locker *locker)
{
    if (locker->is_bound && is_being_answered(world, locker))
        return;
    world_trace(world, "%s starts its program anew", locker->label);
    mail_close_all(locker);
    if (locker->is_bound) {
        mail_reset(world, locker);
        locker->program++;
    } else {
        locker->port = (uint16_t)(5000 + 100 * locker->index + ++locker->restart_count % 100);
    }
    locker->xid_count = 0;
    locker->life++;
}

static void begin_something(struct world *world, struct process *process)
{
    struct extent extent = random_extent(world, process);
    struct locker *locker = process->locker;
    uint64_t dice = world_random(world, 100);
    if (locker->restarts && is_clean(locker) && world_chance(world, 50))
        restart_program(world, locker);
    if (dice < 30) {
        if (world_chance(world, 50)) {
            extent.offset = 0;
            extent.len = 0;
        }
        unlock(world, process, &extent);
    } else if (dice < 40) {
        (void)ask_begin(world, process,
                        &(struct ask_what){.procedure = PEER_NLM_TEST, .extent = extent});
    } else if (dice < 50 && shares(world, locker)) {
        begin_share(world, process, extent.file);
    } else if (dice < 62 && other_mode(world, process, &extent)) {
        begin_lock(world, process, &extent);
    } else {
        begin_lock(world, process, &extent);
    }
}

/* Gives everything back; true when that is done. */
static bool say_farewell(struct world *world, struct process *process)
{
    uint32_t step = process->farewell++;
    struct extent extent = {.file = step / 2};
    if (extent.file >= world->lockers->plan.files) {
        process->is_finished = true;
        return true;
    }
    if (step % 2 == 0)
        unlock(world, process, &extent);
    else if (shares(world, process->locker))
        (void)ask_begin(world, process,
                        &(struct ask_what){.procedure = PEER_NLM_UNSHARE, .extent = extent});
    else
        return say_farewell(world, process);
    return false;
}

static void clear_doubt(struct world *world, struct process *process)
{
    struct extent extent = process->wish;
    if (world_chance(world, 50)) {
        extent.offset = 0;
        extent.len = 0;
    }
    unlock(world, process, &extent);
}

void locker_act(struct world *world, struct process *process)
{
    if (process->is_finished || process->is_frozen)
        return;
    if (process->ask != NULL) {
        bool is_bored = !world->is_calm && !process->ask->reclaim &&
                        process->tries >= process->tries_max &&
                        process->ask->procedure != PEER_NLM_FREE_ALL && world_chance(world, 40);
        if (!is_bored) {
            ask_send(world, process);
            return;
        }
        give_up(world, process);
    }
    if (statd_reclaims(world, process) || world->is_manual)
        return;
    if (process->is_in_doubt)
        clear_doubt(world, process);
    else if (process->is_waiting)
        ask_again(world, process);
    else if (!world->is_calm)
        begin_something(world, process);
    else
        (void)say_farewell(world, process);
}

/* ---- reboots, the calm ---- */

bool locker_is_first(const struct world *world, const struct locker *locker)
{
    for (uint32_t i = 0; i < locker->index; i++)
        if (world->lockers->at[i].host == locker->host)
            return false;
    return true;
}

static void announce_reboot(struct world *world, struct locker *locker)
{
    for (uint32_t p = 1; p < locker->process_count; p++)
        locker->processes[p].is_frozen = true;
    (void)ask_begin(world, &locker->processes[0],
                    &(struct ask_what){.procedure = PEER_NLM_FREE_ALL});
}

void locker_reboot(struct world *world, struct locker *locker)
{
    world_trace(world, "%s reboots", locker->label);
    mail_reset(world, locker);
    locker->state += 2;
    if (locker_is_first(world, locker))
        locker->host->nsm_state = locker->state;
    locker->server_state = 0;
    locker->is_known = false;
    locker->had_state = locker->has_state;
    locker->since.is_owed = false;
    locker->oh_count++;
    locker->life++;
    callee_restart(world, locker->host);
    for (uint32_t p = 0; p < locker->process_count; p++) {
        struct process *process = &locker->processes[p];
        claim_vanishes(process);
        ask_drop(process);
        stop_waiting(process);
        process->is_in_doubt = false;
        process->void_before = process->number + 1;
        if (!world->is_manual)
            locker_set_timer(world, process, SECOND + world_random(world, 10 * SECOND));
    }
    statd_announce(world, locker);
    if (locker->frees_all)
        announce_reboot(world, locker);
}

void locker_be_calm(struct world *world)
{
    struct lockers *all = world->lockers;
    for (uint32_t i = 0; all != NULL && i < all->count; i++)
        for (uint32_t p = 0; p < all->at[i].process_count; p++) {
            struct process *process = &all->at[i].processes[p];
            process->timeout_ns = 2 * SECOND;
            process->has_polled = false;
            locker_set_timer(world, process, 1 + world_random(world, SECOND));
        }
}

void locker_forgotten(struct world *world)
{
    for (uint32_t i = 0; world->lockers != NULL && i < world->lockers->count; i++)
        world->lockers->at[i].forgets++;
}

void locker_server_started(struct world *world)
{
    struct lockers *all = world->lockers;
    if (world->machine.has_resumed)
        return; /* waiting clients still wait, as far as the server knows (D12) */
    for (uint32_t i = 0; all != NULL && world->is_calm && !world->is_manual && i < all->count; i++)
        for (uint32_t p = 0; p < all->at[i].process_count; p++) {
            struct process *process = &all->at[i].processes[p];
            process->has_polled = false;
            if (process->is_waiting && process->ask == NULL)
                wait_on(world, process);
        }
}

void locker_trace(const struct world *world)
{
    const struct lockers *all = world->lockers;
    if (all != NULL && world->options.verbose)
        claim_disk_trace(world);
    for (uint32_t i = 0; all != NULL && i < all->count; i++)
        for (uint32_t p = 0; p < all->at[i].process_count; p++) {
            const struct process *process = &all->at[i].processes[p];
            for (uint32_t file = 0; file < all->plan.files; file++)
                if (process->held[file].any != 0)
                    world_trace(world, "%s/%u relies on cells %04x, exclusively %04x, of file %u",
                                all->at[i].label, process->svid, process->held[file].any,
                                process->held[file].exclusive, file);
            if (process->is_waiting)
                world_trace(world, "%s/%u waits for file %u %llu+%llu %s", all->at[i].label,
                            process->svid, process->wish.file,
                            (unsigned long long)process->wish.offset,
                            (unsigned long long)process->wish.len,
                            process->wish.exclusive ? "exclusive" : "shared");
        }
}

bool locker_all_finished(const struct world *world)
{
    const struct lockers *all = world->lockers;
    for (uint32_t i = 0; all != NULL && i < all->count; i++)
        for (uint32_t p = 0; p < all->at[i].process_count; p++)
            if (!all->at[i].processes[p].is_finished)
                return false;
    return true;
}

void locker_done(struct world *world)
{
    struct lockers *all = world->lockers;
    if (all == NULL)
        return;
    for (uint32_t i = 0; i < all->ask_count; i++) {
        free(all->asks[i]->bytes);
        free(all->asks[i]);
    }
    free(all->asks);
    for (uint32_t i = 0; i < all->kept_count; i++)
        free(all->kept[i]);
    mail_done(world);
    free(all);
}

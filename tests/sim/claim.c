/*
 * claim.c -- who relies on what, and who may have what; see claim.h.
 *
 * What the server may hold for a process is kept per cell as the number of the last call that asked
 * for it, shared or exclusive; 0: it cannot hold it. An answered UNLOCK sets to 0 what was asked
 * for before it, because nothing older can be executed after it (mail.h).
 */
#include "claim.h"

#include "claim_disk.h"
#include "era.h"
#include "machine.h"
#include "program.h"
#include "still.h"
#include "stranger.h"

#include <stdlib.h>

static uint16_t cells_of(const struct ask *ask)
{
    return locker_cells(ask->extent.offset, ask->extent.len);
}

static bool is_cell(uint16_t cells, uint32_t cell)
{
    return (cells >> cell & 1) != 0;
}

/* ---- what is relied on ---- */

static void give_up(struct cells *held, uint16_t cells)
{
    held->any &= (uint16_t)~cells;
    held->exclusive &= (uint16_t)~cells;
}

static bool conflicts(const struct cells *a, const struct cells *b)
{
    return (a->exclusive & b->any) != 0 || (a->any & b->exclusive) != 0;
}

static bool denies(const struct reservation *a, const struct reservation *b)
{
    return (a->access & b->mode) != 0 || (a->mode & b->access) != 0;
}

/* L2: whoever relies on something new must not meet anybody who relies on something else. */
static void check_alone(struct world *world, const struct process *process, uint32_t file)
{
    struct lockers *all = world->lockers;
    for (uint32_t i = 0; i < all->count && !world->is_unjudged; i++)
        for (uint32_t p = 0; p < all->at[i].process_count; p++) {
            const struct process *other = &all->at[i].processes[p];
            if (other == process)
                continue;
            if (conflicts(&process->held[file], &other->held[file]))
                world_fail(world, "L2", "%s/%u and %s/%u rely on conflicting locks in file %u",
                           process->locker->label, process->svid, other->locker->label, other->svid,
                           file);
            if (denies(&process->reserved[file], &other->reserved[file]))
                world_fail(world, "L2", "%s/%u and %s/%u rely on conflicting shares of file %u",
                           process->locker->label, process->svid, other->locker->label, other->svid,
                           file);
        }
}

void claim_begins(struct world *world, struct process *process, const struct extent *extent,
                  bool is_confirmed)
{
    uint16_t cells = locker_cells(extent->offset, extent->len);
    struct cells *held = &process->held[extent->file];
    world_trace(world, "%s/%u relies on file %u %llu+%llu %s", process->locker->label,
                process->svid, extent->file, (unsigned long long)extent->offset,
                (unsigned long long)extent->len, extent->exclusive ? "exclusive" : "shared");
    give_up(held, cells);
    give_up(&process->believed[extent->file], cells);
    held->any |= cells;
    if (extent->exclusive)
        held->exclusive |= cells;
    process->since.confirmed[extent->file] &= (uint16_t)~cells;
    if (is_confirmed)
        process->since.confirmed[extent->file] |= cells;
    world->lockers->grants++;
    if (!is_confirmed)
        claim_disk_accept_late(world, process, extent->file);
    era_expire(world);
    check_alone(world, process, extent->file);
    program_check(world);
}

void claim_reserves(struct world *world, struct process *process, uint32_t file,
                    struct reservation reservation, bool is_confirmed)
{
    process->reserved[file] = reservation;
    process->since.share_confirmed[file] = is_confirmed;
    era_expire(world);
    check_alone(world, process, file);
}

void claim_lost(struct world *world, struct process *process, const struct ask *ask)
{
    uint32_t file = ask->extent.file;
    world_trace(world, "%s/%u has lost it", process->locker->label, process->svid);
    if (ask->plain == PEER_NLM_SHARE) {
        process->reserved[file] = (struct reservation){0};
        return;
    }
    give_up(&process->held[file], cells_of(ask));
    give_up(&process->believed[file], cells_of(ask));
}

void claim_vanishes(struct process *process)
{
    if ((process->is_waiting || process->is_in_doubt) && process->ghost_count < LOCKER_GHOSTS_MAX)
        process->ghosts[process->ghost_count++] = process->wish;
    for (uint32_t file = 0; file < LOCKER_FILES_MAX; file++) {
        process->held[file] = process->believed[file] = (struct cells){0};
        process->reserved[file] = (struct reservation){0};
        process->pending[file] = 0;
        process->share_pending[file] = false;
    }
    process->must_reclaim = false;
}

/* ---- what the server may hold ---- */

static void lock_asked(struct ask *ask)
{
    struct process *process = ask->process;
    uint32_t file = ask->extent.file;
    struct cells *held = &process->held[file];
    uint16_t cells = cells_of(ask);
    ask->held_before = *held;
    ask->is_new = true;
    for (uint32_t cell = 0; cell < LOCKER_CELLS; cell++)
        ask->is_new &= process->shared_number[file][cell] == 0;
    if (!ask->extent.exclusive)
        held->exclusive &= (uint16_t)~cells;
    for (uint32_t cell = 0; cell < LOCKER_CELLS; cell++) {
        if (!is_cell(cells, cell))
            continue;
        process->shared_number[file][cell] = ask->number;
        if (ask->extent.exclusive)
            process->exclusive_number[file][cell] = ask->number;
    }
}

void claim_asked(struct world *world, struct ask *ask)
{
    struct process *process = ask->process;
    uint32_t file = ask->extent.file;
    (void)world;
    if (ask->plain == PEER_NLM_LOCK) {
        lock_asked(ask);
    } else if (ask->plain == PEER_NLM_UNLOCK) {
        give_up(&process->held[file], cells_of(ask));
        give_up(&process->believed[file], cells_of(ask));
    } else if (ask->procedure == PEER_NLM_SHARE) {
        ask->reserved_before = process->reserved[file];
        ask->is_new = process->reserved_number[file] == 0;
        process->reserved[file].mode &= ask->reservation.mode;
        process->reserved[file].access &= ask->reservation.access;
        process->reserved_number[file] = ask->number;
    } else if (ask->procedure == PEER_NLM_UNSHARE) {
        process->reserved[file] = (struct reservation){0};
    }
}

void claim_refused(struct world *world, struct ask *ask)
{
    struct process *process = ask->process;
    uint32_t file = ask->extent.file;
    ask->is_refused = true;
    if (ask->plain == PEER_NLM_LOCK)
        process->held[file].exclusive |= ask->held_before.exclusive & process->held[file].any;
    else if (ask->procedure == PEER_NLM_SHARE)
        process->reserved[file] = ask->reserved_before;
    check_alone(world, process, file);
}

/* Nothing that was asked for before this call is there any more. */
static void forget(struct process *process, uint32_t file, uint16_t cells, uint32_t number)
{
    for (uint32_t cell = 0; cell < LOCKER_CELLS; cell++) {
        if (!is_cell(cells, cell))
            continue;
        if (process->shared_number[file][cell] < number)
            process->shared_number[file][cell] = 0;
        if (process->exclusive_number[file][cell] < number)
            process->exclusive_number[file][cell] = 0;
    }
}

/* Of these cells, those that no wish of an earlier life covers; one that lies inside them has ended
 * with them. */
static uint16_t without_ghosts(struct process *process, uint32_t file, uint16_t cells)
{
    uint16_t left = cells;
    for (uint32_t i = 0; i < process->ghost_count;) {
        uint16_t ghost = locker_cells(process->ghosts[i].offset, process->ghosts[i].len);
        if (process->ghosts[i].file == file && (ghost & ~cells) == 0) {
            process->ghosts[i] = process->ghosts[--process->ghost_count];
            continue;
        }
        if (process->ghosts[i].file == file)
            left &= (uint16_t)~ghost;
        i++;
    }
    return process->ghost_count == LOCKER_GHOSTS_MAX ? 0 : left;
}

bool claim_is_conflict(const struct world *world, const struct process *process,
                       const struct extent *extent)
{
    const struct lockers *all = world->lockers;
    uint16_t cells = locker_cells(extent->offset, extent->len);
    if (stranger_is_in_the_way(world, extent))
        return true;
    for (uint32_t i = 0; i < all->count; i++)
        for (uint32_t p = 0; p < all->at[i].process_count; p++) {
            const struct process *other = &all->at[i].processes[p];
            for (uint32_t cell = 0; cell < LOCKER_CELLS && other != process; cell++)
                if (is_cell(cells, cell) &&
                    (extent->exclusive ? other->shared_number
                                       : other->exclusive_number)[extent->file][cell] != 0)
                    return true;
        }
    return false;
}

/* Something that nobody has stands in the way for a while. What is in the first batch of a run may
 * be stored after the call is executed, so it is looked at when the answer leaves, too. */
static bool is_lingering(const struct world *world, const struct ask *ask, uint64_t lived_ns)
{
    const struct lockers *all = world->lockers;
    uint16_t cells = cells_of(ask);
    for (uint32_t i = 0; i < all->count; i++)
        for (uint32_t p = 0; p < all->at[i].process_count; p++) {
            const struct process *other = &all->at[i].processes[p];
            if (other == ask->process)
                continue;
            struct cells there = claim_disk_lingering(world, other, ask->extent.file, lived_ns);
            if (((ask->extent.exclusive ? there.any : there.exclusive) & cells) != 0)
                return true;
        }
    return false;
}

/* What TEST may name when it is executed: it may be gone when the answer leaves, which may be that
 * to any copy of it. */
static void note_nameable(const struct world *world, struct ask *ask)
{
    const struct lockers *all = world->lockers;
    uint32_t file = ask->extent.file;
    if (ask->taken_run != world->machine.run)
        ask->nameable = (struct cells){0};
    for (uint32_t i = 0; i < all->count; i++)
        for (uint32_t p = 0; p < all->at[i].process_count; p++) {
            const struct process *other = &all->at[i].processes[p];
            struct cells there = claim_disk_lingering(world, other, file, still_lived_ns(world));
            for (uint32_t cell = 0; cell < LOCKER_CELLS; cell++) {
                there.any |= (uint16_t)((other->shared_number[file][cell] != 0) << cell);
                there.exclusive |= (uint16_t)((other->exclusive_number[file][cell] != 0) << cell);
            }
            ask->nameable.any |= there.any;
            ask->nameable.exclusive |= there.exclusive;
        }
}

static bool is_share_conflict(const struct world *world, const struct ask *ask)
{
    const struct lockers *all = world->lockers;
    for (uint32_t i = 0; i < all->count; i++)
        for (uint32_t p = 0; p < all->at[i].process_count; p++)
            if (&all->at[i].processes[p] != ask->process &&
                all->at[i].processes[p].reserved_number[ask->extent.file] != 0)
                return true;
    return stranger_may_share(world, ask->extent.file);
}

/* Somebody relies on something in the way of this call. */
static bool is_relied_on(const struct world *world, const struct ask *ask)
{
    const struct lockers *all = world->lockers;
    uint16_t cells = cells_of(ask);
    for (uint32_t i = 0; i < all->count; i++)
        for (uint32_t p = 0; p < all->at[i].process_count; p++) {
            const struct process *other = &all->at[i].processes[p];
            const struct cells *held = &other->held[ask->extent.file];
            if (other != ask->process &&
                ((ask->extent.exclusive ? held->any : held->exclusive) & cells) != 0)
                return true;
        }
    return false;
}

/* Everything that it asks for is relied on. */
static bool is_its_own(const struct ask *ask)
{
    const struct process *process = ask->process;
    const struct cells *held = &process->held[ask->extent.file];
    const struct reservation *reserved = &process->reserved[ask->extent.file];
    if (ask->plain == PEER_NLM_SHARE)
        return (ask->reservation.mode & ~reserved->mode) == 0 &&
               (ask->reservation.access & ~reserved->access) == 0;
    return (cells_of(ask) & ~(ask->extent.exclusive ? held->exclusive : held->any)) == 0;
}

/* In a new run nothing of what was true before counts: its answer is lost. */
static void note_grace(struct world *world, struct ask *ask)
{
    bool is_first = ask->taken_run != world->machine.run;
    bool must = era_must_be_grace(world), may = era_may_be_grace(world);
    bool is_own = ask->reclaim && is_its_own(ask);
    ask->must_be_grace = (is_first || ask->must_be_grace) && must;
    ask->may_be_grace = (!is_first && ask->may_be_grace) || may;
    ask->must_be_granted = (is_first || ask->must_be_granted) && is_own;
}

void claim_executing(struct world *world, struct ask *ask)
{
    era_expire(world);
    note_grace(world, ask);
    if (ask->plain == PEER_NLM_TEST)
        note_nameable(world, ask);
    ask->was_full = (ask->taken_run == 0 || ask->was_full) && world->machine.store_is_full;
    if (ask->procedure == PEER_NLM_SHARE)
        ask->may_be_denied |= is_share_conflict(world, ask);
    else if (ask->plain == PEER_NLM_LOCK || ask->plain == PEER_NLM_TEST)
        ask->may_be_denied |= claim_is_conflict(world, ask->process, &ask->extent) ||
                              is_lingering(world, ask, still_lived_ns(world)) ||
                              program_may_refuse(world, &ask->extent);
    if (ask->plain == PEER_NLM_TEST) {
        uint32_t programs = program_in_the_way(world, &ask->extent);
        ask->programs |= programs;
        ask->must_be_denied = (ask->must_be_denied || ask->taken_run == 0) &&
                              (programs != 0 || is_relied_on(world, ask));
    }
}

/* ---- answers that leave ---- */

/* What the process has asked for since may have undone it, or an operator (P2 (4)). */
static bool is_last(const struct ask *ask)
{
    const struct process *process = ask->process;
    return process->taken == ask->number && process->number == ask->number &&
           process->void_before <= ask->number && process->released[ask->extent.file] < ask->number;
}

/* P2, P4: what grace demands of the answer to LOCK, TEST and SHARE. */
static void check_grace(struct world *world, const struct ask *ask, uint32_t status)
{
    const struct process *process = ask->process;
    bool is_void = process->void_before > ask->number; /* nobody relies on that any more */
    if (world->is_unjudged)
        return;
    if (ask->reclaim && ask->must_be_granted && !is_void && status != PEER_NLM_IS_GRANTED)
        world_fail(world, "P2", "a reclaim of %s/%u is refused with status %u",
                   process->locker->label, process->svid, status);
    if (ask->reclaim)
        return;
    if (ask->must_be_grace && status != PEER_NLM_IS_GRACE)
        world_fail(world, "P4", "%s/%u is answered %u: grace must stand, not all is reclaimed",
                   process->locker->label, process->svid, status);
    if (!ask->may_be_grace && status == PEER_NLM_IS_GRACE)
        world_fail(world, "P4", "%s/%u is told of a grace that cannot stand",
                   process->locker->label, process->svid);
}

static void check_granted(struct world *world, const struct ask *ask)
{
    if (world->is_unjudged)
        return;
    struct cells stored = claim_disk_cells(world, ask->process, ask->extent.file, false);
    uint16_t cells = cells_of(ask);
    uint16_t there = ask->extent.exclusive ? stored.exclusive : stored.any;
    if ((cells & ~there) != 0)
        world_fail(world, "L3", "GRANTED leaves for %s/%u, but the lock is not on the disk",
                   ask->process->locker->label, ask->process->svid);
}

/* TEST: nobody who relied on something in the way all the time may be overlooked, and a holder is
 * somebody who can have that. */
static void check_test(struct world *world, const struct ask *ask, const struct peer_nlm_res *res)
{
    const struct lockers *all = world->lockers;
    bool is_found = (stranger_is_owner(&res->oh) && stranger_is_in_the_way(world, &ask->extent)) ||
                    program_is_named(res, ask->programs);
    check_grace(world, ask, res->status);
    uint16_t cells = res->status == PEER_NLM_IS_DENIED ? locker_cells(res->offset, res->len) : 0;
    for (uint32_t i = 0; i < all->count; i++)
        for (uint32_t p = 0; p < all->at[i].process_count; p++) {
            const struct process *other = &all->at[i].processes[p];
            struct peer_nlm_bytes oh = locker_oh(other);
            if (other == ask->process || other->svid != res->svid ||
                (!peer_nlm_bytes_equal(&oh, &res->oh) && all->at[i].kind != LOCKER_MACOS))
                continue;
            struct cells lingers =
                claim_disk_lingering(world, other, ask->extent.file, ask->taken_ns);
            bool may = true;
            for (uint32_t cell = 0; cell < LOCKER_CELLS; cell++)
                may &= !is_cell(cells, cell) ||
                       (res->exclusive ? other->exclusive_number
                                       : other->shared_number)[ask->extent.file][cell] != 0;
            lingers.any |= ask->nameable.any;
            lingers.exclusive |= ask->nameable.exclusive;
            is_found |= may || (cells & ~(res->exclusive ? lingers.exclusive : lingers.any)) == 0;
        }
    if (res->status == PEER_NLM_IS_GRANTED && ask->must_be_denied)
        world_fail(world, "L3", "TEST of %s/%u overlooks a lock that somebody relies on",
                   ask->process->locker->label, ask->process->svid);
    if (res->status == PEER_NLM_IS_DENIED && !is_found)
        world_fail(world, "L5",
                   "TEST names a holder, process %u, %s, bytes %llu+%llu, that cannot be one",
                   res->svid, res->exclusive ? "exclusive" : "shared",
                   (unsigned long long)res->offset, (unsigned long long)res->len);
}

static void reclaim_leaves(struct world *world, struct ask *ask, uint32_t status)
{
    if (status == PEER_NLM_IS_GRANTED)
        era_reclaimed(ask->process->locker, ask->taken_ns);
    else if (status != PEER_NLM_IS_DENIED && status != PEER_NLM_IS_GRACE &&
             status != PEER_NLM_IS_NOLOCKS)
        world_fail(world, "L1", "a reclaim is answered with status %u", status);
}

static void lock_leaves(struct world *world, struct ask *ask, uint32_t status)
{
    struct process *process = ask->process;
    check_grace(world, ask, status);
    if (ask->reclaim)
        reclaim_leaves(world, ask, status);
    if (ask->reclaim && status != PEER_NLM_IS_GRANTED)
        return;
    ask->may_be_denied |= is_lingering(world, ask, ask->taken_ns);
    switch ((enum peer_nlm_status)status) {
    case PEER_NLM_IS_GRANTED:
        if (is_last(ask))
            check_granted(world, ask);
        return;
    case PEER_NLM_IS_BLOCKED:
        if (!ask->block || process->locker->kind == LOCKER_PCNFS)
            world_fail(world, "L1", "a LOCK that does not wait is told BLOCKED");
        if (!ask->may_be_denied && !world->is_unjudged)
            world_fail(world, "L5", "%s/%u is blocked by nothing", process->locker->label,
                       process->svid);
        return;
    case PEER_NLM_IS_DENIED:
    case PEER_NLM_IS_DEADLCK:
        if (!ask->may_be_denied && !world->is_unjudged)
            world_fail(world, "L5", "%s/%u is denied without a reason", process->locker->label,
                       process->svid);
        return;
    case PEER_NLM_IS_NOLOCKS:
        if (!world->lockers->plan.is_limited)
            world_fail(world, "L5", "%s/%u is refused for lack of resources",
                       process->locker->label, process->svid);
        return;
    case PEER_NLM_IS_GRACE:
        return;
    case PEER_NLM_IS_ROFS:
    case PEER_NLM_IS_STALE_FH:
    case PEER_NLM_IS_FBIG:
    case PEER_NLM_IS_FAILED:
        break;
    }
    world_fail(world, "L1", "LOCK is answered with status %u", status);
}

static void unlock_leaves(struct world *world, struct ask *ask, uint32_t status)
{
    struct process *process = ask->process;
    uint32_t file = ask->extent.file;
    if (status != PEER_NLM_IS_GRANTED)
        world_fail(world, "L1", "UNLOCK is answered with status %u (R-NLM-7)", status);
    if (world->is_unjudged)
        return;
    /* An offer whose callback is under way stands until that has ended. */
    struct cells held = claim_disk_cells(world, process, file, true);
    struct cells stored = claim_disk_cells(world, process, file, false);
    uint16_t offered = stored.any & (uint16_t)~held.any;
    uint16_t gone = without_ghosts(process, file, cells_of(ask) & (uint16_t)~offered);
    forget(process, file, gone, ask->number);
    for (uint32_t cell = 0; cell < LOCKER_CELLS; cell++)
        if (is_cell(held.any & cells_of(ask), cell) && process->shared_number[file][cell] == 0)
            world_fail(world, "L4", "UNLOCK is answered, and the lock of %s/%u is still stored",
                       process->locker->label, process->svid);
}

static void share_leaves(struct world *world, struct ask *ask, uint32_t status)
{
    struct process *process = ask->process;
    bool is_found = false;
    if (ask->procedure == PEER_NLM_UNSHARE) {
        if (status != PEER_NLM_IS_GRANTED)
            world_fail(world, "L1", "UNSHARE is answered with status %u", status);
        if (process->reserved_number[ask->extent.file] < ask->number)
            process->reserved_number[ask->extent.file] = 0;
        return;
    }
    check_grace(world, ask, status);
    if (ask->reclaim)
        reclaim_leaves(world, ask, status);
    if (status == PEER_NLM_IS_GRACE)
        return;
    struct reservation stored = claim_disk_reservation(world, process, ask->extent.file, &is_found);
    if (status == PEER_NLM_IS_GRANTED && is_last(ask) &&
        (!is_found || stored.mode != ask->reservation.mode ||
         stored.access != ask->reservation.access))
        world_fail(world, "L3", "SHARE is granted to %s, but not on the disk",
                   process->locker->label);
    if (status == PEER_NLM_IS_DENIED && !ask->may_be_denied && !ask->reclaim)
        world_fail(world, "L5", "SHARE of %s is denied without a reason", process->locker->label);
    if (status != PEER_NLM_IS_GRANTED && status != PEER_NLM_IS_DENIED &&
        !(status == PEER_NLM_IS_NOLOCKS && world->lockers->plan.is_limited))
        world_fail(world, "L1", "SHARE is answered with status %u", status);
}

void claim_overridden(struct locker *locker, const struct extent *extent)
{
    for (uint32_t p = 0; p < locker->process_count; p++)
        for (uint32_t file = 0; file < LOCKER_FILES_MAX; file++) {
            struct process *process = &locker->processes[p];
            if (extent != NULL && extent->file != file)
                continue;
            process->believed[file] = process->held[file];
            process->held[file] = (struct cells){0};
            process->reserved[file] = (struct reservation){0};
            process->released[file] = process->number;
        }
}

void claim_frees(struct world *world, struct locker *locker)
{
    if (locker->freed_run != world->machine.run || locker->freed_state != locker->state)
        locker->freed_ns = still_lived_ns(world); /* the first word of this reboot */
    locker->freed_run = world->machine.run;
    locker->freed_state = locker->state;
    for (uint32_t p = 0; p < locker->process_count; p++) {
        struct process *process = &locker->processes[p];
        for (uint32_t file = 0; file < LOCKER_FILES_MAX; file++) {
            forget(process, file, UINT16_MAX, process->void_before);
            if (process->reserved_number[file] < process->void_before)
                process->reserved_number[file] = 0;
        }
    }
}

static void free_all_leaves(struct world *world, struct ask *ask)
{
    if (ask->number >= ask->process->void_before) /* else its host has rebooted again */
        claim_frees(world, ask->process->locker);
}

/* Decision 020: a copy of a message that its process has gone on from is told to ask again. */
static bool is_put_off(const struct ask *ask, uint32_t status)
{
    const struct process *process = ask->process;
    bool is_ended = ask->ended_run != 0 || ask->number < process->taken || process->tries > 1;
    return ask->is_message && is_ended && status == PEER_NLM_IS_GRACE &&
           (ask->plain == PEER_NLM_UNLOCK || ask->plain == PEER_NLM_CANCEL ||
            (ask->plain == PEER_NLM_LOCK && !ask->reclaim));
}

void claim_leaves(struct world *world, struct ask *ask, const struct peer_nlm_res *res)
{
    if (is_put_off(ask, res->status))
        return;
    bool takes = ask->plain == PEER_NLM_LOCK || ask->procedure == PEER_NLM_SHARE;
    if (takes && ask->is_new && ask->was_full && res->status == PEER_NLM_IS_GRANTED)
        world_fail(world, "R-PER-8", "%s/%u gets something new, and the store is full",
                   ask->process->locker->label, ask->process->svid);
    if (ask->plain == PEER_NLM_LOCK)
        lock_leaves(world, ask, res->status);
    else if (ask->plain == PEER_NLM_UNLOCK)
        unlock_leaves(world, ask, res->status);
    else if (ask->plain == PEER_NLM_TEST)
        check_test(world, ask, res);
    else if (ask->procedure == PEER_NLM_SHARE || ask->procedure == PEER_NLM_UNSHARE)
        share_leaves(world, ask, res->status);
    else if (ask->procedure == PEER_NLM_FREE_ALL)
        free_all_leaves(world, ask);
    else if (res->status != PEER_NLM_IS_GRANTED && res->status != PEER_NLM_IS_DENIED)
        world_fail(world, "L1", "CANCEL is answered with status %u", res->status);
}

/* ---- callbacks that leave ---- */

/* L8, and L3 if the client would take it now. */
static void check_callback(struct world *world, const struct locker *locker,
                           const struct process *process, const struct address *local,
                           const struct packet_call *call, const struct peer_nlm_args *args)
{
    const struct extent *wish = &process->wish;
    struct peer_nlm_bytes fh = locker_handle(wish->file), oh = locker_oh(process);
    bool is_wish = process->is_waiting && !process->is_cancelling &&
                   peer_nlm_bytes_equal(&fh, &args->lock.fh) && wish->offset == args->lock.offset &&
                   wish->len == args->lock.len;
    if (!address_equal(local, &locker->host->local))
        world_fail(world, "L8", "a callback leaves from an address that %s does not know",
                   locker->label);
    if (call->vers != locker->version)
        world_fail(world, "L8", "a callback to %s is in version %u", locker->label, call->vers);
    if (!is_wish || process->void_before > process->taken)
        return;
    /* What it asked for last may have died with the run that took it. */
    bool is_known = process->taken == process->number &&
                    (process->ask == NULL || process->ask->taken_run == world->machine.run);
    if (is_known && args->exclusive != wish->exclusive)
        world_fail(world, "L8", "a callback to %s/%u has the other mode", locker->label,
                   process->svid);
    if (args->exclusive != wish->exclusive)
        return; /* it is called for what it asked for before */
    if ((!peer_nlm_bytes_equal(&oh, &args->lock.oh) && locker->kind != LOCKER_MACOS))
        world_fail(world, "L8", "a callback to %s/%u does not say what was asked for",
                   locker->label, process->svid);
    struct cells stored = claim_disk_cells(world, process, wish->file, false);
    uint16_t cells = locker_cells(wish->offset, wish->len);
    if ((cells & ~(wish->exclusive ? stored.exclusive : stored.any)) != 0)
        world_fail(world, "L3", "a callback leaves for %s/%u, but what it offers is not stored",
                   locker->label, process->svid);
}

void claim_callback(struct world *world, const struct host *host, const struct address *local,
                    const struct packet_call *call, const struct peer_nlm_args *args)
{
    struct lockers *all = world->lockers;
    for (uint32_t i = 0; i < all->count; i++) {
        struct locker *locker = &all->at[i];
        struct peer_nlm_bytes name = peer_nlm_text(locker->name);
        if (locker->host != host || !peer_nlm_bytes_equal(&name, &args->lock.caller_name))
            continue;
        for (uint32_t p = 0; p < locker->process_count; p++) {
            if (locker->processes[p].svid != args->lock.svid)
                continue;
            if (args->cookie.len != 8)
                world_fail(world, "L8", "a callback has a cookie of %u bytes", args->cookie.len);
            all->cookie_seen =
                (uint64_t)load_be32(args->cookie.at) << 32 | load_be32(args->cookie.at + 4);
            all->cookie_host = host;
            all->callbacks++;
            world_trace(world, "%s/%u is called: %s file %u %llu+%llu", locker->label,
                        args->lock.svid, peer_nlm_procedure_text(call->proc), args->lock.fh.at[31],
                        (unsigned long long)args->lock.offset, (unsigned long long)args->lock.len);
            if (!world->is_unjudged)
                check_callback(world, locker, &locker->processes[p], local, call, args);
            return;
        }
    }
    world_fail(world, "L8", "a callback for process %u goes to somebody else", args->lock.svid);
}

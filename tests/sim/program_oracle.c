/*
 * program_oracle.c -- programs and clients, held against each other and against the disk; see
 * program.h.
 *
 * What clients rely on is known from their side (claim.h), what is stored from the disk, what the
 * server holds from the kernel. Of the server itself only what operators see is believed: the event
 * that a file is refused, and how many are.
 */
#include "program.h"

#include "base/hash.h"
#include "era.h"
#include "machine.h"
#include "still.h"

#include <stdlib.h>

#define EXCESS_NS SECOND

static bool is_mirrored(const struct world *world)
{
    return world->programs != NULL && world->machine.is_up && world->programs->is_mirrored;
}

static bool conflicts(const struct cells *a, const struct cells *b)
{
    return (a->exclusive & b->any) != 0 || (a->any & b->exclusive) != 0;
}

static bool covers(const struct cells *all, const struct cells *part)
{
    return (part->any & ~all->any) == 0 && (part->exclusive & ~all->exclusive) == 0;
}

/* ---- questions of claim.c ---- */

uint32_t program_in_the_way(const struct world *world, const struct extent *extent)
{
    const struct programs *all = world->programs;
    uint16_t cells = locker_cells(extent->offset, extent->len);
    uint32_t found = 0;
    for (uint32_t i = 0; is_mirrored(world) && i < all->count; i++) {
        const struct cells *held = &all->at[i].held[extent->file];
        if (((extent->exclusive ? held->any : held->exclusive) & cells) != 0)
            found |= 1U << i;
    }
    return found;
}

/* Where a file may be held as a whole, whoever has anything of it may be in the way. */
bool program_may_refuse(const struct world *world, const struct extent *extent)
{
    const struct extent whole = {.file = extent->file, .exclusive = true};
    return program_in_the_way(world, world->plan.has_few_pieces ? &whole : extent) != 0;
}

bool program_is_named(const struct peer_nlm_res *res, uint32_t programs)
{
    struct peer_nlm_bytes oh = peer_nlm_text("a program on the server");
    return peer_nlm_bytes_equal(&oh, &res->oh) && res->svid >= PROGRAM_PID &&
           res->svid < PROGRAM_PID + PROGRAM_MAX &&
           (programs >> (res->svid - PROGRAM_PID) & 1) != 0;
}

/* ---- what is seen of the server ---- */

static uint32_t file_of(const struct world *world, struct bytes fh)
{
    uint32_t file = 0;
    for (; file < world->lockers->plan.files; file++) {
        struct peer_nlm_bytes handle = locker_handle(file);
        if (handle.len == fh.len && memcmp(handle.at, fh.at, fh.len) == 0)
            break;
    }
    return file;
}

void program_reported(struct world *world, struct bytes fh)
{
    struct programs *all = world->programs;
    bool has_reason = false;
    if (all == NULL)
        world_fail(world, "M3", "a file is refused, and there are no programs");
    uint32_t file = file_of(world, fh);
    if (file == world->lockers->plan.files)
        world_fail(world, "M3", "a file is refused that nobody knows");
    world_trace(world, "file %u is reported as refused", file);
    all->files[file].is_reported = true;
    for (uint32_t i = 0; i < all->count; i++)
        has_reason |= all->at[i].unguarded[file] != 0;
    /* What power took away may bring back anything (D16). */
    if (!has_reason && !world->plan.has_few_pieces && !world->ledger.incomplete)
        world_fail(world, "M3", "file %u is refused, and no program took anything unguarded", file);
}

/* Not of a stranger's file. */
static void add_stored(struct world *world, uint32_t slot)
{
    struct record_lock lock;
    struct bytes value = disk_at(&world->disk, RECORD_LOCK, slot);
    if (value.len == 0 || record_get_lock(value, slot, &lock) != RECORD_GOOD)
        return;
    uint32_t file = file_of(world, lock.fh);
    if (file == world->lockers->plan.files)
        return;
    uint64_t len = lock.end == UINT64_MAX ? 0 : lock.end - lock.start + 1;
    uint16_t cells = locker_cells(lock.start, len);
    struct cells *stored = &world->programs->files[file].stored;
    stored->any |= cells;
    if (lock.flags & RECORD_LOCK_EXCLUSIVE)
        stored->exclusive |= cells;
}

void program_stored(struct world *world)
{
    struct programs *all = world->programs;
    if (all == NULL)
        return;
    for (uint32_t file = 0; file < LOCKER_FILES_MAX; file++) {
        all->files[file].stored = (struct cells){0};
        if (all->files[file].reported_left > 0)
            all->files[file].reported_left--;
    }
    uint32_t used = disk_slots_used(&world->disk, RECORD_LOCK);
    for (uint32_t slot = 0; slot < used; slot++)
        add_stored(world, slot);
}

/* ---- checks ---- */

static struct cells relied_on(const struct world *world, uint32_t file)
{
    const struct lockers *all = world->lockers;
    struct cells sum = {0};
    for (uint32_t i = 0; i < all->count; i++)
        for (uint32_t p = 0; p < all->at[i].process_count; p++) {
            sum.any |= all->at[i].processes[p].held[file].any;
            sum.exclusive |= all->at[i].processes[p].held[file].exclusive;
        }
    return sum;
}

static void check_file(struct world *world, uint32_t index)
{
    const struct programs *all = world->programs;
    const struct program_file *file = &all->files[index];
    struct cells relied = relied_on(world, index);
    if (file->is_reported)
        return;
    for (uint32_t i = 0; i < all->count; i++)
        if (conflicts(&all->at[i].held[index], &relied))
            world_fail(world, "M1", "program %u and a client rely on the same of file %u, a secret",
                       i, index);
    if (!covers(&file->server, &relied))
        world_fail(world, "M2", "a client relies on bytes of file %u that programs can have",
                   index);
    if (file->reported_left == 0 && !covers(&file->server, &file->stored))
        world_fail(world, "M2", "bytes of file %u are stored that programs can have", index);
}

void program_check(struct world *world)
{
    struct programs *all = world->programs;
    struct core_status status;
    if (!is_mirrored(world) || world->is_unjudged)
        return;
    core_status(world->machine.core, &status);
    era_expire(world);
    for (uint32_t file = 0; file < world->lockers->plan.files; file++) {
        all->files[file].is_reported &= status.local_refused > 0;
        if (all->files[file].is_reported)
            all->files[file].reported_left = 2; /* one on its way, one that is open */
        check_file(world, file);
    }
}

void program_check_excess(struct world *world)
{
    struct programs *all = world->programs;
    if (!is_mirrored(world) || world->is_unjudged)
        return;
    for (uint32_t index = 0; index < world->lockers->plan.files; index++) {
        struct program_file *file = &all->files[index];
        bool is_more = !world->disk.is_busy && !still_is(world) && !file->is_whole &&
                       !covers(&file->stored, &file->server);
        if (!is_more)
            file->excess_ns = 0;
        else if (file->excess_ns == 0)
            file->excess_ns = world->now_ns;
        else if (world->now_ns > file->excess_ns + EXCESS_NS)
            world_fail(world, "M4", "cells %04x of file %u are held for nobody", file->server.any,
                       index);
    }
}

void program_check_empty(struct world *world)
{
    const struct programs *all = world->programs;
    if (!is_mirrored(world))
        return;
    for (uint32_t file = 0; file < LOCKER_FILES_MAX; file++)
        if (all->files[file].is_open || all->files[file].server.any != 0)
            world_fail(world, "M6", "all is given back, and the server has file %u open", file);
}

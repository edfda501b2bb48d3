/*
 * vanish.c -- see vanish.h.
 */
#include "vanish.h"

#include "claim_disk.h"
#include "machine.h"
#include "program.h"
#include "still.h"

#define EVERY_NS (6 * SECOND)

static bool is_handle(uint32_t file, struct bytes fh)
{
    struct peer_nlm_bytes handle = locker_handle(file);
    return handle.len == fh.len && memcmp(handle.at, fh.at, fh.len) == 0;
}

/* Locks that are no offers, and reservations, on the disk, of anybody. */
static uint32_t held_count(const struct world *world, uint32_t file)
{
    uint32_t count = 0;
    for (uint32_t slot = 0; slot < disk_slots_used(&world->disk, RECORD_LOCK); slot++) {
        struct record_lock lock;
        struct bytes value = disk_at(&world->disk, RECORD_LOCK, slot);
        count += value.len > 0 && record_get_lock(value, slot, &lock) == RECORD_GOOD &&
                 is_handle(file, lock.fh) && (lock.flags & RECORD_LOCK_OFFER) == 0;
    }
    for (uint32_t slot = 0; slot < disk_slots_used(&world->disk, RECORD_SHARE); slot++) {
        struct record_share share;
        struct bytes value = disk_at(&world->disk, RECORD_SHARE, slot);
        count += value.len > 0 && record_get_share(value, slot, &share) == RECORD_GOOD &&
                 is_handle(file, share.fh);
    }
    return count;
}

/* Something is under way that it would take for its lock in the old file. */
static bool is_concerned(const struct world *world, const struct process *process, uint32_t file)
{
    const struct ask *ask = process->ask;
    if (ask != NULL && ask->extent.file == file && ask->taken_run != 0 &&
        ask->plain != PEER_NLM_TEST && ask->plain != PEER_NLM_UNLOCK)
        return true;
    struct cells held = claim_disk_cells(world, process, file, true);
    struct cells stored = claim_disk_cells(world, process, file, false);
    if ((stored.any & ~held.any) != 0 || (stored.exclusive & ~held.exclusive) != 0)
        return true; /* it is being called */
    uint16_t wish = locker_cells(process->wish.offset, process->wish.len);
    return process->is_waiting && process->wish.file == file && (held.any & wish) != 0;
}

static void forget(struct process *process, uint32_t file)
{
    struct ask *ask = process->ask;
    if (ask != NULL && ask->extent.file == file) { /* a refusal gives nothing back */
        ask->held_before = (struct cells){0};
        ask->reserved_before = (struct reservation){0};
    }
    process->held[file] = process->believed[file] = (struct cells){0};
    process->reserved[file] = (struct reservation){0};
    process->pending[file] = 0;
    process->share_pending[file] = false;
    process->released[file] = process->number;
}

bool vanish_file(struct world *world, uint32_t file)
{
    struct machine *machine = &world->machine;
    struct lockers *all = world->lockers;
    if (!machine->is_up || still_is(world) || world->disk.is_busy || core_is_full(machine->core))
        return false;
    for (uint32_t i = 0; i < all->count; i++)
        for (uint32_t p = 0; p < all->at[i].process_count; p++)
            if (is_concerned(world, &all->at[i].processes[p], file))
                return false;
    world_trace(world, "REMOVED: file %u", file);
    for (uint32_t i = 0; i < all->count; i++)
        for (uint32_t p = 0; p < all->at[i].process_count; p++)
            forget(&all->at[i].processes[p], file);
    program_loses_file(world, file);
    struct peer_nlm_bytes fh = locker_handle(file);
    const struct core_input input = {.kind = CORE_FILE_GONE,
                                     .now_ns = machine_now_ns(world),
                                     .wall_ns = world_wall_ns(world),
                                     .fh = {fh.at, fh.len}};
    bool has_any = held_count(world, file) > 0;
    uint32_t run = machine->run;
    uint64_t ticket = world->disk.ticket;
    rpc_server_step(machine->server, &input, NULL);
    rpc_server_work(machine->server, machine_now_ns(world), world_wall_ns(world));
    machine_received(world);
    if (!has_any || !machine->is_up || machine->run != run || still_is(world))
        return true;
    if (world->disk.ticket == ticket)
        world_fail(world, "V1", "file %u is gone, and nothing of it is freed", file);
    world->vanish.file = file;
    world->vanish.run = run;
    world->vanish.ticket = ticket + 1;
    return true;
}

void vanish_stored(struct world *world)
{
    struct vanish *vanish = &world->vanish;
    if (vanish->ticket == 0 || vanish->run != world->machine.run ||
        vanish->ticket != world->disk.ticket)
        return;
    vanish->ticket = 0;
    if (held_count(world, vanish->file) > 0)
        world_fail(world, "V1", "file %u is gone, and something in it is still held", vanish->file);
}

static void set_next(struct world *world)
{
    queue_add(&world->queue, world->now_ns + 1 + prng_below(&world->vanish.prng, EVERY_NS),
              QUEUE_VANISH, NULL, 0);
}

void vanish_act(struct world *world, uint64_t ticket)
{
    (void)ticket;
    if (world->is_calm)
        return;
    (void)vanish_file(world, (uint32_t)prng_below(&world->vanish.prng, world->lockers->plan.files));
    set_next(world);
}

void vanish_init(struct world *world)
{
    if (!world->plan.removes)
        return;
    world->vanish.prng.state = world->options.seed * UINT64_C(0xca5a826395121157) + 19;
    set_next(world);
}

/*
 * operator.c -- orders, and what they mean to those who are concerned; see operator.h.
 */
#include "operator.h"

#include "claim.h"
#include "era.h"
#include "machine.h"
#include "still.h"

/* The id of the client on the disk; 0: there is none. */
static uint64_t client_id(const struct world *world, const struct locker *locker)
{
    uint32_t used = disk_slots_used(&world->disk, RECORD_CLIENT);
    for (uint32_t slot = 0; slot < used; slot++) {
        struct record_client record;
        struct bytes value = disk_at(&world->disk, RECORD_CLIENT, slot);
        if (value.len > 0 && record_get_client(value, slot, &record) == RECORD_GOOD &&
            address_equal(&record.address, &locker->host->address) &&
            bytes_equal(record.caller_name, bytes_of_text(locker->name)))
            return record.id;
    }
    return 0;
}

static enum order_result give(struct world *world, const struct order *order, struct locker *locker,
                              const struct extent *extent)
{
    static const char *const names[] = {"END_GRACE", "RELEASE", "NOTIFY", "MOVE"};
    enum order_kind kind = order->kind;
    struct core_answer answer;
    if (kind != ORDER_NOTIFY && !world_allows(world, WORLD_OVERRIDE))
        world_fail(world, "its plan", "this world allows no such order");
    struct core_input input = {.kind = CORE_ORDER,
                               .now_ns = machine_now_ns(world),
                               .wall_ns = world_wall_ns(world),
                               .order = order};
    struct core_status before, after;
    core_status(world->machine.core, &before);
    world_trace(world, "the operator orders %s of %s", names[kind], locker->label);
    rpc_server_step(world->machine.server, &input, &answer);
    if (answer.order_result == ORDER_DONE || answer.order_result == ORDER_BEGUN) {
        core_status(world->machine.core, &after);
        world->machine.bumps += (after.state - before.state) / 2;
        if (kind == ORDER_END_GRACE)
            era_end(world);
        if (kind == ORDER_RELEASE) {
            claim_overridden(locker, extent);
            locker->overridden = world->lockers->taken;
            locker->since.is_owed = false; /* it is told of the release, or is gone for good */
            /* The record of one that holds nothing is forgotten, and with it what it said of its
             * reboot: a copy of its notice may say that once more. */
            if (extent == NULL && locker->kind != LOCKER_PCNFS) {
                locker->is_known = locker->has_state = false;
                locker->is_forgotten = true;
            }
        }
    }
    machine_received(world);
    return answer.order_result;
}

enum order_result operator_order(struct world *world, enum order_kind kind, struct locker *locker,
                                 const struct extent *extent)
{
    struct peer_nlm_bytes fh = locker_handle(extent != NULL ? extent->file : 0);
    struct order order = {.kind = kind, .client = client_id(world, locker)};
    if (extent != NULL)
        order.fh = (struct bytes){fh.at, fh.len};
    return give(world, &order, locker, extent);
}

enum order_result operator_move(struct world *world, struct locker *locker,
                                const struct address *to)
{
    struct order order = {.kind = ORDER_MOVE, .client = client_id(world, locker), .to = *to};
    return give(world, &order, locker, NULL);
}

/* No call of it about this file is under way (NULL: any), nor does it wait there. */
static bool is_idle(const struct locker *locker, const struct extent *extent)
{
    for (uint32_t p = 0; p < locker->process_count; p++) {
        const struct process *process = &locker->processes[p];
        bool is_there = extent == NULL || process->wish.file == extent->file;
        bool asks_there = process->ask != NULL && (extent == NULL || process->ask->reclaim ||
                                                   process->ask->extent.file == extent->file);
        if (asks_there || (is_there && (process->is_waiting || process->is_in_doubt)))
            return false;
    }
    return true;
}

enum { ANY_ORDER, END_OF_GRACE };

static void set_next(struct world *world)
{
    queue_add(&world->queue, world->now_ns + 1 + prng_below(&world->jumps, 16 * SECOND),
              QUEUE_ORDER, NULL, ANY_ORDER);
}

void operator_init(struct world *world)
{
    if (world->lockers != NULL && world_allows(world, WORLD_OVERRIDE))
        set_next(world);
}

void operator_grace(struct world *world)
{
    if (world->is_calm || world->is_manual || !world_allows(world, WORLD_OVERRIDE) ||
        !prng_chance(&world->jumps, 30))
        return;
    queue_add(&world->queue, world->now_ns + prng_below(&world->jumps, world->plan.grace_ns + 1),
              QUEUE_ORDER, NULL, END_OF_GRACE);
}

void operator_give(struct world *world, uint64_t ticket)
{
    struct lockers *all = world->lockers;
    struct prng *prng = &world->jumps;
    if (world->is_calm)
        return;
    if (ticket == ANY_ORDER)
        set_next(world);
    if (!world->machine.is_up || still_is(world) || core_is_full(world->machine.core))
        return;
    struct locker *locker = &all->at[prng_below(prng, all->count)];
    struct extent extent = {.file = (uint32_t)prng_below(prng, all->plan.files)};
    const struct extent *where = prng_chance(prng, 50) ? &extent : NULL;
    if (ticket == END_OF_GRACE || prng_chance(prng, 20))
        (void)operator_order(world, ORDER_END_GRACE, locker, NULL);
    else if (prng_chance(prng, 25))
        (void)operator_order(world, ORDER_NOTIFY, locker, NULL);
    else if (is_idle(locker, where))
        (void)operator_order(world, ORDER_RELEASE, locker, where);
}

void operator_act(struct world *world)
{
    struct lockers *all = world->lockers;
    struct locker *locker = &all->at[world_random(world, all->count)];
    if (!world->machine.is_up || still_is(world) || core_is_full(world->machine.core))
        return;
    bool ends = world_allows(world, WORLD_OVERRIDE) && world_chance(world, 50);
    (void)operator_order(world, ends ? ORDER_END_GRACE : ORDER_NOTIFY, locker, NULL);
}

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
    core_step(world->machine.core, &input, &answer);
    if (answer.order_result == ORDER_DONE) {
        core_status(world->machine.core, &after);
        world->machine.bumps += (after.state - before.state) / 2;
        if (kind == ORDER_END_GRACE)
            era_end(world);
        if (kind == ORDER_RELEASE) {
            claim_overridden(locker, extent);
            locker->since.is_owed = false; /* it is told of the release, or is gone for good */
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

void operator_act(struct world *world)
{
    struct lockers *all = world->lockers;
    struct locker *locker = &all->at[world_random(world, all->count)];
    if (!world->machine.is_up || still_is(world) || core_is_full(world->machine.core))
        return;
    bool ends = world_allows(world, WORLD_OVERRIDE) && world_chance(world, 50);
    (void)operator_order(world, ends ? ORDER_END_GRACE : ORDER_NOTIFY, locker, NULL);
}

/*
 * configure.c -- see configure.h.
 *
 * Limits may fall below what is stored; modes may change. Whoever judges a run looks at what was in
 * force in it (world->plan, world->machine).
 */
#include "configure.h"

#include "locker.h"

/* An operator may have changed the limits, also to less than is stored: then they concern only what
 * is new (P2, R-RNG-5). */
static void choose_limits(struct world *world)
{
    struct machine *machine = &world->machine;
    const struct plan *plan = &world->plan;
    machine->locks_max = plan->locks_max;
    machine->locks_per_client_max = plan->locks_per_client_max;
    machine->waiters_max = plan->waiters_max;
    if (!plan->shrinks || machine->run == 0)
        return;
    uint32_t most = 1 + (uint32_t)prng_below(&world->more, 12);
    machine->locks_max = 1 + (uint32_t)prng_below(&world->more, plan->locks_max);
    machine->locks_per_client_max = most < plan->locks_per_client_max ? most : machine->locks_max;
    machine->waiters_max = 1 + (uint32_t)prng_below(&world->more, 6);
}

static void choose_clients_max(struct world *world)
{
    struct machine *machine = &world->machine;
    const struct plan *plan = &world->plan;
    if (machine->run != 0 && !plan->limits_vary)
        return;
    machine->clients_max =
        plan->clients_max + (uint32_t)world_random(world, plan->clients_max + 1) / 2;
    bool may_be_few = world->lockers == NULL || world->lockers->plan.is_limited;
    if (machine->run != 0 && plan->reconfigures && may_be_few)
        machine->clients_max = 1 + (uint32_t)prng_below(&world->jumps, plan->clients_max);
}

static uint32_t few_or(struct world *world, uint32_t few, uint32_t many)
{
    return prng_chance(&world->jumps, 30) ? 1 + (uint32_t)prng_below(&world->jumps, few) : many;
}

/* Everything that an operator may say otherwise at the next start. A byte budget and shares of one
 * address are met only where the plan has them. */
static void reconfigure(struct world *world)
{
    struct prng *jumps = &world->jumps;
    struct plan *plan = &world->plan;
    plan->outbox_max = few_or(world, 4, 64);
    if (plan->small_cache)
        plan->cache_max = plan->outbox_max + 1 + (uint32_t)prng_below(jumps, 5);
    plan->batch_puts_max = few_or(world, 3, 64);
    plan->lines_max = few_or(world, 3, 64);
    if (world->lockers == NULL || world_allows(world, WORLD_UNTOLD)) {
        plan->calls_max = few_or(world, 4, 256);
        plan->few_calls = plan->calls_max < 256;
    }
    if (plan->few_bytes)
        plan->bytes_max = 64 + prng_below(jumps, plan->bytes_max * 2);
    if (plan->per_address_percent != 0 && plan->owners == 0) /* watchers (O5) know no share */
        plan->per_address_percent = 1 + (uint32_t)prng_below(jumps, 100);
    plan->resumes ^= prng_chance(jumps, 30);
    plan->holds ^= prng_chance(jumps, 30);
    plan->verifies ^= prng_chance(jumps, 20);
    plan->distrusts ^= prng_chance(jumps, 20);
}

void configure_run(struct world *world)
{
    choose_clients_max(world);
    choose_limits(world);
    if (world->machine.run > 0 && world->plan.reconfigures)
        reconfigure(world);
}

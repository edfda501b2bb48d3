/*
 * kernel.c -- see kernel.h.
 */
#include "kernel.h"

#include "base/hash.h"
#include "machine.h"

/* What gives a lock must arrive while that can still be reclaimed: a grace that is over before the
 * kernel gives up is an operator's choice (docs/recovery.md). Chances are its own: worlds without a
 * replaced server stay as they were. */
struct kept kernel_keep(struct world *world)
{
    struct machine *machine = &world->machine;
    uint64_t kept_ns = lease_kept_ms() * MILLISECOND;
    struct kept kept = {.run = machine->run, .until_ns = machine->send_until_ns + kept_ns};
    if (world->plan.grace_ns < ECHO_NS + 8 * SECOND)
        kept.until_ns = 1;
    if (!world->is_manual && kept.until_ns > world->now_ns && prng_chance(&world->side, 70))
        kept.from_ns = world->now_ns + prng_below(&world->side, kept.until_ns - world->now_ns);
    return kept;
}

bool kernel_holds(struct world *world, const struct kept *kept, enum event_name name, void *subject)
{
    if (kept->until_ns == 0)
        return false;
    if (world->now_ns >= kept->from_ns) {
        world_trace(world, "the kernel of run %u, which was replaced, delivers", kept->run);
        return false;
    }
    queue_add(&world->queue, kept->from_ns, name, subject, 0);
    return true;
}

bool kernel_has_dropped(const struct world *world, const struct kept *kept)
{
    return kept->until_ns != 0 && world->now_ns > kept->until_ns;
}

/*
 * resolver.c -- see resolver.h.
 */
#include "resolver.h"

#include "base/hash.h"
#include "machine.h"

enum { RUN_SHIFT = 8 };

static bool is_same_name(const struct world *world, uint32_t name, struct bytes text)
{
    return bytes_equal_fold(bytes_of_text(world->names[name].text), text);
}

static uint32_t find_name(const struct world *world, struct bytes text)
{
    uint32_t name = 0;
    while (name < world->plan.names && !is_same_name(world, name, text))
        name++;
    return name;
}

void resolver_init(struct world *world)
{
    for (uint32_t i = 0; i < world->plan.names && world->plan.hosts > 0; i++) {
        uint32_t first = find_name(world, bytes_of_text(world->names[i].text));
        uint64_t chance = hash_mix(world->options.seed, UINT64_C(0x4e53) + first);
        uint32_t hosts = world->plan.hosts;
        uint32_t one = 1U << chance / 16 % hosts, two = one | 1U << chance / 256 % hosts;
        world->names[i].at_hosts = chance % 4 == 0 ? 0 : chance % 4 == 1 ? two : one;
        world->names[i].is_slow = chance / 4 % 4 == 0;
    }
}

void resolver_boot(struct world *world)
{
    memset(world->machine.lookups, 0, sizeof world->machine.lookups);
}

bool resolver_is_host_of(const struct world *world, const struct host *host, uint32_t name)
{
    struct address address;
    if (address_parse(bytes_of_text(world->names[name].text), &address))
        return address_equal(&address, &host->address);
    return world->names[name].at_hosts >> host->index & 1;
}

void resolver_turn(struct world *world)
{
    struct machine *machine = &world->machine;
    for (uint32_t i = 0; i < LOOKUPS_MAX; i++) {
        struct core_lookup lookup;
        if (machine->lookups[i].is_used ||
            !core_next_lookup(machine->core, machine_now_ns(world), &lookup))
            continue;
        uint32_t name = find_name(world, lookup.name);
        bool is_slow = !world->is_calm && name < world->plan.names && world->names[name].is_slow;
        uint64_t delay_ns = 1 + world_side(world, (is_slow ? 40 * SECOND : 100 * MILLISECOND));
        machine->lookups[i].is_used = true;
        machine->lookups[i].id = lookup.id;
        machine->lookups[i].name = name;
        world_trace(world, "the resolver is asked for %.*s",
                    (int)(lookup.name.len < 40 ? lookup.name.len : 40),
                    (const char *)lookup.name.at);
        queue_add(&world->queue, world->now_ns + delay_ns, QUEUE_RESOLVED, NULL,
                  (uint64_t)machine->run << RUN_SHIFT | i);
    }
}

/* Whoever watches it may be told from now on. */
static void note_news(struct world *world, uint32_t name)
{
    for (uint32_t i = 0; i < world->plan.names; i++)
        if (is_same_name(world, i, bytes_of_text(world->names[name].text)))
            world->names[i].news_ns = world->now_ns;
}

void resolver_answer(struct world *world, uint64_t ticket)
{
    struct machine *machine = &world->machine;
    uint32_t i = ticket & ((1 << RUN_SHIFT) - 1), name = machine->lookups[i].name;
    if (!machine->is_up || machine->run != ticket >> RUN_SHIFT)
        return;
    if (core_is_full(machine->core)) {
        queue_add(&world->queue, world->now_ns + MILLISECOND, QUEUE_RESOLVED, NULL, ticket);
        return;
    }
    struct address addresses[HOST_MAX];
    uint32_t count = 0;
    for (uint32_t host = 0; name < world->plan.names && host < world->plan.hosts; host++)
        if (world->names[name].at_hosts >> host & 1)
            addresses[count++] = world->hosts[host].address;
    if (name < world->plan.names)
        note_news(world, name);
    struct core_input input = {.kind = CORE_RESOLVED,
                               .now_ns = machine_now_ns(world),
                               .wall_ns = world_wall_ns(world),
                               .lookup = machine->lookups[i].id,
                               .addresses = addresses,
                               .address_count = count};
    machine->lookups[i].is_used = false;
    rpc_server_step(machine->server, &input, NULL);
    core_check(machine->core);
    machine_turn(world);
}

/*
 * locker_init.c -- who the lockers are: hosts, names, kinds, processes; see locker.h.
 *
 * The last two have the same name at different addresses; the second may share the address of the
 * first, behind a translator. Processes have the same numbers everywhere, so that nothing but the
 * client tells them apart.
 */
#include "locker.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const names[] = {"alpha", "beta", "gamma", "delta", "localhost", "localhost"};
static const char *const addresses[] = {"192.0.2.11", "192.0.2.12",    "192.0.2.13",
                                        "192.0.2.14", "2001:db8::2:5", "2001:db8::2:6"};

static void init_host(struct world *world, uint32_t index)
{
    struct host *host = &world->hosts[world->plan.hosts + index];
    host->index = world->plan.hosts + index;
    if (!address_parse(bytes_of_text(addresses[index]), &host->address))
        abort();
    const char *local = host->address.family == 4 ? "192.0.2.1" : "2001:db8::2:1";
    if (!address_parse(bytes_of_text(local), &host->local))
        abort();
}

static void init_kind(struct world *world, struct locker *locker)
{
    locker->kind = world_chance(world, 35) ? LOCKER_LINUX
                                           : (enum locker_kind)world_random(world, LOCKER_KIND_END);
    locker->version = world_chance(world, 75) ? 4 : 3;
    locker->is_tcp = world_chance(world, 50);
    locker->frees_all = world_chance(world, 20);
    switch (locker->kind) {
    case LOCKER_LINUX:
    case LOCKER_LINUX_2026:
        if (world_chance(world, 10))
            locker->version = 1;
        locker->restarts = world_chance(world, 30);
        break;
    case LOCKER_FREEBSD:
        locker->is_tcp = false;
        break;
    case LOCKER_SOLARIS:
        locker->is_tcp = true;
        locker->version = 4;
        break;
    case LOCKER_PCNFS:
        locker->version = 3;
        locker->frees_all = true;
        locker->restarts = world_chance(world, 30);
        break;
    case LOCKER_MACOS:
    case LOCKER_KIND_END:
        break;
    }
    if (locker->version < 3)
        locker->frees_all = false;
    locker->keeps_port = !locker->restarts && world_chance(world, 60);
}

static void init_locker(struct world *world, uint32_t index)
{
    struct locker *locker = &world->lockers->at[index];
    /* The second may be behind the same translator as the first. */
    bool is_hidden =
        index == 1 && world_chance(world, 25) && world->lockers->at[0].kind != LOCKER_PCNFS;
    uint32_t host = is_hidden ? 0 : index;
    locker->index = index;
    locker->host = &world->hosts[world->plan.hosts + host];
    (void)snprintf(locker->name, sizeof locker->name, "%s", names[index]);
    (void)snprintf(locker->label, sizeof locker->label, "%s.%u", names[index], index);
    init_kind(world, locker);
    if (!is_hidden)
        locker->host->has_no_statd = locker->kind == LOCKER_PCNFS;
    bool is_registered = locker->host->kind == CALLEE_BOTH || locker->host->kind == CALLEE_UDP;
    if (locker->kind == LOCKER_MACOS && !is_registered)
        locker->is_tcp = false; /* its results could not be carried */
    locker->port = (uint16_t)(700 + index);
    locker->state = 101 + 1000 * index;
    if (locker_is_first(world, locker))
        locker->host->nsm_state = locker->state;
    locker->mounted = (uint32_t)world_random(world, STATD_NAMES);
    locker->notifies = locker->kind != LOCKER_PCNFS && world_chance(world, 75);
    locker->is_multihomed = world_chance(world, 15);
    locker->notice_xid = 1000 * (index + 1);
    locker->is_known = true;
    locker->says_state = locker->kind > LOCKER_LINUX_2026 || world_allows(world, WORLD_INCOMPLETE);
    locker->process_count = 1 + (uint32_t)world_random(world, LOCKER_PROCESSES_MAX);
    for (uint32_t p = 0; p < locker->process_count; p++) {
        struct process *process = &locker->processes[p];
        process->locker = locker;
        process->index = p;
        process->svid = 1 + p; /* everywhere the same */
        if (!world->is_manual)
            locker_set_timer(world, process, 1 + world_random(world, SECOND));
    }
}

static void rename_locker(struct locker *locker, const char *name)
{
    (void)snprintf(locker->name, sizeof locker->name, "%s", name);
    (void)snprintf(locker->label, sizeof locker->label, "%s.%u", name, locker->index);
}

/*
 * Who can be mistaken for whom. The last two may be clones: with one name, and one state number,
 * until one of them reboots. The first two may have names that differ in the domain only, and
 * others of that kind may be around who never lock (spoofer.h). None of them calls itself "web1"
 * unless the world allows exclusion (1) of P2: there another announces its whole name.
 * And before some hosts there is a box whose own status monitor answers.
 */
static void init_likeness(struct world *world)
{
    struct lockers *all = world->lockers;
    if (all->count == LOCKER_MAX && world_side_chance(world, 50)) {
        struct locker *clone = &all->at[LOCKER_MAX - 1];
        clone->state = clone->host->nsm_state = all->at[LOCKER_MAX - 2].state;
    }
    if (world_side_chance(world, 40)) {
        rename_locker(&all->at[0], world_allows(world, WORLD_ALIKE) ? "web1" : "web1.prod");
        if (all->count > 1)
            rename_locker(&all->at[1], "web1.test");
    }
    for (uint32_t i = 0; i < all->count; i++) {
        struct host *host = all->at[i].host;
        if (!locker_is_first(world, &all->at[i]) || !world_side_chance(world, 15))
            continue;
        host->has_box = true; /* older or newer than everybody, and nobody's */
        host->box_state = world_side_chance(world, 30) ? 11 : 50011 + 1000 * i;
    }
}

void locker_init(struct world *world)
{
    struct lockers *all = world->lockers;
    if (all == NULL)
        return;
    all->count = world->plan.lockers;
    for (uint32_t i = 0; i < all->count; i++)
        init_host(world, i);
    for (uint32_t i = 0; i < all->count; i++)
        init_locker(world, i);
    if (!world->is_manual)
        init_likeness(world);
}

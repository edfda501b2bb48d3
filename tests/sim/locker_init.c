/*
 * locker_init.c -- who the lockers are: hosts, names, kinds, processes; see locker.h.
 *
 * The last two have the same name at different addresses; some share an address, behind a
 * translator. Processes have the same numbers everywhere, so that nothing but the
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
    locker->is_tcp = world_chance(world, 50) || world->lockers->plan.is_contended;
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
    locker->index = locker->xid_base = index;
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

/* The generator of what this file decides beyond init_locker: it shifts nobody's history. */
static struct prng likeness_of(const struct world *world)
{
    return (struct prng){world->options.seed * UINT64_C(0xaf251af3b0f025b5) + 13};
}

static bool is_called(const struct locker *locker, const char *name)
{
    return strcmp(locker->name, name) == 0;
}

/* It is behind the same address as another one from now on. */
static void move_behind(struct locker *locker, struct locker *first)
{
    bool is_registered = first->host->kind == CALLEE_BOTH || first->host->kind == CALLEE_UDP;
    locker->host = first->host;
    if (locker->kind == LOCKER_MACOS && !is_registered)
        locker->is_tcp = false;
}

/* A box before any of them, with one, two or three hosts behind it, and a status monitor of its own
 * that answers for all. Its number is older or newer than everybody's, or by chance that of one. */
static void add_box(struct world *world, struct prng *like)
{
    struct lockers *all = world->lockers;
    uint32_t first = (uint32_t)prng_below(like, all->count), behind = 1;
    struct locker *front = &all->at[first];
    if (front->kind == LOCKER_PCNFS || front->host->has_no_statd)
        return;
    uint32_t wanted = 1 + (uint32_t)prng_below(like, 3);
    for (uint32_t i = first + 1; i < all->count && behind < wanted; i++) {
        bool is_alike = false; /* exclusion (1) */
        for (uint32_t k = 0; k < all->count; k++)
            is_alike |= all->at[k].host == front->host && is_called(&all->at[k], all->at[i].name);
        if (is_alike || all->at[i].host == front->host)
            continue;
        move_behind(&all->at[i], front);
        behind++;
    }
    struct host *host = front->host;
    host->has_box = prng_chance(like, 70);
    host->box_state = prng_chance(like, 30)   ? 11
                      : prng_chance(like, 30) ? front->state
                                              : 50011 + 1000 * first;
    host->box_swallows = world_allows(world, WORLD_UNTOLD) && prng_chance(like, 40);
}

/* A clone: name, state, process numbers and xids of its master, at another address. Some have no
 * lock manager that could be called back. */
static void add_clone(struct world *world, struct prng *like)
{
    struct lockers *all = world->lockers;
    struct locker *clone = &all->at[all->count - 1];
    struct locker *master = &all->at[prng_below(like, all->count - 1)];
    for (uint32_t i = 0; i + 1 < all->count; i++)
        if (all->at[i].host == clone->host ||
            (all->at[i].host == master->host && &all->at[i] != master))
            return; /* not behind one address with another */
    rename_locker(clone, master->name);
    clone->state = clone->host->nsm_state = master->state;
    clone->xid_base = master->xid_base;
    struct locker *deaf = prng_chance(like, 50) ? clone : master;
    if (!prng_chance(like, 50))
        return;
    deaf->host->has_no_lockd = true;
    if (deaf->kind == LOCKER_MACOS)
        deaf->is_tcp = false; /* its results could not be carried */
}

/* Names that differ in the domain only, or in that one has none; often behind one address. */
static void add_domains(struct world *world, struct prng *like)
{
    struct lockers *all = world->lockers;
    struct locker *first = &all->at[0], *second = &all->at[1];
    bool is_bare = !all->plan.is_limited && prng_chance(like, 80);
    rename_locker(first, "web1.prod");
    rename_locker(second, is_bare ? "web1" : "web1.test");
    if (first->kind != LOCKER_PCNFS && first->host != second->host && prng_chance(like, 60))
        move_behind(second, first);
}

/* Programs that are bound to a port have it again when they start anew. */
static void bind_programs(struct world *world)
{
    struct lockers *all = world->lockers;
    struct prng prng = {world->options.seed * UINT64_C(0x9fb21c651e98df25) + 29};
    for (uint32_t i = 0; i < all->count; i++)
        if (all->at[i].restarts && prng_chance(&prng, 60))
            all->at[i].is_bound = all->at[i].keeps_port = true;
}

/*
 * Who can be mistaken for whom. Two may be clones. Two may have names that differ in the domain
 * only, and others of that kind may be around who never lock (spoofer.h). Before some hosts there
 * is a box whose own status monitor answers. The two localhosts may have one state number.
 */
static void init_likeness(struct world *world)
{
    struct lockers *all = world->lockers;
    struct prng like = likeness_of(world);
    if (all->count == LOCKER_MAX && world_side_chance(world, 50)) {
        struct locker *clone = &all->at[LOCKER_MAX - 1];
        clone->state = clone->host->nsm_state = all->at[LOCKER_MAX - 2].state;
    }
    if (all->count > 1 && prng_chance(&like, 40))
        add_domains(world, &like);
    if (prng_chance(&like, 40))
        add_box(world, &like);
    if (all->count > 2 && prng_chance(&like, 35))
        add_clone(world, &like);
    bind_programs(world);
    for (uint32_t i = 0; i < all->count; i++)
        all->at[i].has_two = all->at[i].is_tcp && !all->at[i].keeps_port && prng_chance(&like, 60);
    for (uint32_t i = 0; i < all->count; i++)
        world_trace(world, "%s is at host %u, state %u, xids of %u%s%s", all->at[i].label,
                    all->at[i].host->index, all->at[i].state, all->at[i].xid_base,
                    all->at[i].host->has_box ? ", behind a box" : "",
                    all->at[i].host->has_no_lockd ? ", not called back" : "");
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
    for (uint32_t i = 0; i < all->count && all->plan.is_contended; i++)
        all->at[i].host->kind = CALLEE_BOTH;
    if (!world->is_manual)
        init_likeness(world);
}

/*
 * spoofer.c -- UNLOCK, CANCEL, FREE_ALL, UNSHARE, GRANTED_RES and SM_NOTIFY in a victim's name; see
 * spoofer.h.
 *
 * The victim's name, process, file, and the cookie of the last callback are known to the stranger.
 * He sends from an address of nobody, or from that of another locker whose name is another one. He
 * also sends what only servers send (GRANTED, *_RES), which must be answered and change nothing.
 */
#include "spoofer.h"

#include "locker.h"
#include "machine.h"
#include "oracle.h"
#include "peer/peer_nsm.h"

#include <stdio.h>

static const enum peer_nlm_procedure orders[] = {
    PEER_NLM_UNLOCK,      PEER_NLM_UNLOCK,  PEER_NLM_CANCEL,      PEER_NLM_UNLOCK_MSG,
    PEER_NLM_CANCEL_MSG,  PEER_NLM_UNSHARE, PEER_NLM_GRANTED_RES, PEER_NLM_GRANTED_RES,
    PEER_NLM_GRANTED_RES, PEER_NLM_GRANTED, PEER_NLM_LOCK_RES,    PEER_NLM_FREE_ALL,
    PEER_NLM_FREE_ALL};

static const struct process *choose_victim(struct world *world)
{
    struct lockers *all = world->lockers;
    const struct locker *locker = &all->at[world_random(world, all->count)];
    return &locker->processes[world_random(world, locker->process_count)];
}

static void put_order(struct world *world, const struct process *victim,
                      enum peer_nlm_procedure procedure, struct packet *packet)
{
    static struct peer_nlm_args args;
    static struct peer_nlm_res res;
    uint8_t cookie[8];
    uint32_t xid = (uint32_t)world_random(world, UINT32_MAX);
    const struct extent *wish = &victim->wish;
    bool is_wish = world_chance(world, 50);
    store_be32(cookie, (uint32_t)(world->lockers->cookie_seen >> 32));
    store_be32(cookie + 4, (uint32_t)world->lockers->cookie_seen);
    packet_clear(packet);
    if (procedure == PEER_NLM_GRANTED_RES || procedure == PEER_NLM_LOCK_RES) {
        memset(&res, 0, sizeof res);
        res.cookie = peer_nlm_bytes_of(cookie, 8);
        res.status = world_chance(world, 80) ? PEER_NLM_IS_DENIED : PEER_NLM_IS_GRANTED;
        peer_nlm_put_res_call(packet, xid, 4, procedure, &res);
        return;
    }
    memset(&args, 0, sizeof args);
    args.cookie = peer_nlm_bytes_of(cookie, 8);
    args.block = true;
    args.exclusive = wish->exclusive;
    args.lock.caller_name = peer_nlm_text(victim->locker->name);
    args.lock.fh = locker_handle(
        is_wish ? wish->file : (uint32_t)world_random(world, world->lockers->plan.files));
    args.lock.oh = locker_oh(victim);
    args.lock.svid = victim->svid;
    args.lock.offset = is_wish ? wish->offset : 0;
    args.lock.len = is_wish ? wish->len : 0;
    args.state = 4711;
    peer_nlm_put_call(packet, xid, 4, procedure, &args);
}

/* Another locker's address, if it has another name; else nobody's. */
static struct address choose_address(struct world *world, const struct process *victim)
{
    struct lockers *all = world->lockers;
    const struct locker *other = &all->at[world_random(world, all->count)];
    bool is_same = address_equal(&other->host->address, &victim->locker->host->address) ||
                   other->host == all->cookie_host;
    for (uint32_t i = 0; i < all->count; i++)
        is_same |=
            all->at[i].host == other->host && strcmp(all->at[i].name, victim->locker->name) == 0;
    struct address address;
    (void)address_parse(bytes_of_text("10.66.6.6"), &address);
    return is_same || world_chance(world, 50) ? address : other->host->address;
}

/* SM_NOTIFY: the victim is said to have rebooted. */
static void strike_with_notice(struct world *world, const struct process *victim,
                               const struct address *address)
{
    static struct packet packet;
    const struct locker *locker = victim->locker;
    uint32_t state = locker->state + 2 * (uint32_t)world_random(world, 3);
    struct rpc_source from = {.peer = {.address = *address,
                                       .local = locker->host->local,
                                       .port = 998,
                                       .transport = TRANSPORT_UDP}};
    struct bytes reply;
    packet_clear(&packet);
    peer_nsm_put_notify(&packet, (uint32_t)world_random(world, UINT32_MAX), locker->name, state);
    world_trace(world, "somebody sends SM_NOTIFY in the name of %s, state %u", locker->label,
                state);
    (void)machine_receive_raw(world, &from, (struct bytes){packet.bytes, packet.len}, &reply);
    machine_turn(world);
}

/* A host that never locks, behind the address of one whose name differs in the domain only, says
 * that it restarted: under its own name, and under the short one that both have. */
static bool strike_from_next_door(struct world *world)
{
    static struct packet packet;
    struct lockers *all = world->lockers;
    const struct locker *locker = &all->at[world_side(world, all->count)];
    const char *dot = strchr(locker->name, '.');
    if (dot == NULL || !world_side_chance(world, 40))
        return false;
    char name[64];
    bool is_short = world_side_chance(world, 70);
    for (uint32_t i = 0; i < all->count; i++) /* exclusion (1): it would be that one's whole name */
        is_short &= all->at[i].host != locker->host || strchr(all->at[i].name, '.') != NULL;
    uint32_t state = locker->state + 2 * (uint32_t)world_side(world, 3);
    struct rpc_source from = {.peer = {.address = locker->host->address,
                                       .local = locker->host->local,
                                       .port = 997,
                                       .transport = TRANSPORT_UDP}};
    struct bytes reply;
    (void)snprintf(name, sizeof name, "%.*s%s", (int)(dot - locker->name), locker->name,
                   is_short ? "" : ".dev");
    packet_clear(&packet);
    peer_nsm_put_notify(&packet, (uint32_t)world_side(world, UINT32_MAX), name, state);
    world_trace(world, "the neighbour of %s says that %s restarted, state %u", locker->label, name,
                state);
    (void)machine_receive_raw(world, &from, (struct bytes){packet.bytes, packet.len}, &reply);
    machine_turn(world);
    return true;
}

/* FREE_ALL says that a client booted: the cache forgets what that name asked from this address. */
static void note_forgotten(struct world *world, const struct address *address, const char *name)
{
    struct lockers *all = world->lockers;
    for (uint32_t i = 0; i < all->count; i++)
        if (address_equal(&all->at[i].host->address, address) && strcmp(all->at[i].name, name) == 0)
            all->at[i].forgets++;
}

/* SM_MON of a name that others watch, then SM_NOTIFY of it: to watch gives no right to speak.
 * Whether anybody is told is for audit.c. He unregisters in the same breath, so that the store
 * never knows him. */
static bool strike_as_watcher(struct world *world)
{
    static struct packet packet;
    uint8_t priv[PEER_NSM_PRIV_LEN] = "stranger";
    bool has_room = world->plan.owners > 0 &&
                    oracle_possible_count(world) < world->machine.clients_max &&
                    !world->machine.store_is_full;
    if (!has_room || !world_side_chance(world, 40))
        return false;
    const struct owner *owner = &world->owners[world_side(world, world->plan.owners)];
    const struct key *key = &owner->keys[world_side(world, owner->key_count)];
    struct peer_nsm_id id = {world->names[key->name].text, "stranger", 100021, 4, 16};
    struct rpc_source from = {
        .peer = {.local = owner->host->local, .port = 996, .transport = TRANSPORT_UDP}};
    (void)address_parse(bytes_of_text("10.66.6.6"), &from.peer.address);
    uint32_t xid = (uint32_t)world_side(world, UINT32_MAX);
    enum rpc_verdict verdict = RPC_NO_ANSWER;
    world_trace(world, "somebody registers %.40s, and says that it restarted", id.mon_name);
    for (uint32_t i = 0; i < 3 && verdict != RPC_BUSY; i++) {
        struct bytes reply;
        packet_clear(&packet);
        if (i == 0)
            peer_nsm_put_mon(&packet, xid, &id, priv);
        else if (i == 1)
            peer_nsm_put_notify(&packet, xid + 1, id.mon_name, 4711);
        else
            peer_nsm_put_unmon(&packet, xid + 2, &id);
        struct bytes message = {packet.bytes, packet.len};
        verdict = machine_receive_raw(world, &from, message, &reply);
    }
    if (verdict == RPC_BUSY)
        machine_crash(world, "with a stranger's registration in the open batch", false);
    else
        machine_turn(world);
    return true;
}

/* The box before a host says that it restarted itself. */
static bool strike_from_box(struct world *world)
{
    static struct packet packet;
    struct lockers *all = world->lockers;
    const struct host *host = all->at[world_side(world, all->count)].host;
    if (!host->has_box || !world_side_chance(world, 40))
        return false;
    struct rpc_source from = {.peer = {.address = host->address,
                                       .local = host->local,
                                       .port = 996,
                                       .transport = TRANSPORT_UDP}};
    struct bytes reply;
    packet_clear(&packet);
    peer_nsm_put_notify(&packet, (uint32_t)world_side(world, UINT32_MAX), "nat-box",
                        host->box_state);
    world_trace(world, "the box before host %u says that it restarted, state %u", host->index,
                host->box_state);
    (void)machine_receive_raw(world, &from, (struct bytes){packet.bytes, packet.len}, &reply);
    machine_turn(world);
    return true;
}

void spoofer_strike(struct world *world)
{
    static struct packet packet;
    if (!world->machine.is_up || strike_from_next_door(world) || strike_from_box(world) ||
        strike_as_watcher(world))
        return;
    const struct process *victim = choose_victim(world);
    enum peer_nlm_procedure procedure =
        orders[world_random(world, sizeof orders / sizeof orders[0])];
    struct address address = choose_address(world, victim);
    if (world_chance(world, 25)) {
        strike_with_notice(world, victim, &address);
        return;
    }
    /* The result of a message is rightly carried to whoever sent it: only lockers are there. */
    bool is_message = procedure >= PEER_NLM_TEST_MSG && procedure <= PEER_NLM_GRANTED_MSG;
    if (is_message && address.bytes[0] == 10)
        procedure -= PEER_NLM_TEST_MSG - PEER_NLM_TEST;
    put_order(world, victim, procedure, &packet);
    struct rpc_source from = {.peer = {.address = address,
                                       .local = victim->locker->host->local,
                                       .port = 999,
                                       .transport = TRANSPORT_UDP}};
    struct bytes reply;
    world_trace(world, "somebody sends %s in the name of %s/%u", peer_nlm_procedure_text(procedure),
                victim->locker->label, victim->svid);
    if (procedure == PEER_NLM_FREE_ALL)
        note_forgotten(world, &address, victim->locker->name);
    enum rpc_verdict verdict =
        machine_receive_raw(world, &from, (struct bytes){packet.bytes, packet.len}, &reply);
    if (verdict == RPC_NO_ANSWER && world->plan.messages_per_second == 0)
        world_fail(world, "P6", "%s from a stranger is not answered",
                   peer_nlm_procedure_text(procedure));
    machine_turn(world);
}

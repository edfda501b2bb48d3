/*
 * stranger_say.c -- any legal message of a stranger; see stranger.h.
 *
 * Every procedure of NLM and NSM in every version that has it. Names are the strangers' own, or
 * those of lockers; files their own, or those of lockers, then with the same ranges as theirs.
 * What changes nothing is left to the oracles, which know what may be there.
 */
#include "machine.h"
#include "peer/peer_nsm.h"
#include "stranger.h"

#include <stdio.h>

enum { KEYS_MAX = 24, OWN_SPAN = 4000 };

static uint64_t any(struct strangers *all, uint64_t below)
{
    return prng_below(&all->prng, below);
}

static bool chance(struct strangers *all, uint32_t percent)
{
    return prng_chance(&all->prng, percent);
}

/* ---- parts ---- */

/* Of a locker, or one of their own. */
static struct peer_nlm_bytes name_of(const struct world *world, uint32_t index, bool locks)
{
    char text[32];
    const struct lockers *lockers = world->lockers;
    if (lockers != NULL && index < lockers->count && (world->strangers->poses || !locks))
        return peer_nlm_text(lockers->at[index].name);
    (void)snprintf(text, sizeof text, "stranger-%u", index);
    return peer_nlm_text(text);
}

static uint32_t any_state(struct strangers *all)
{
    static const uint32_t states[] = {0, 1, 101, 103, 1101, 50011, UINT32_MAX};
    return chance(all, 50) ? states[any(all, sizeof states / sizeof states[0])]
                           : 1 + 2 * (uint32_t)any(all, 5000);
}

static struct peer_nlm_bytes own_file(const struct strangers *all)
{
    uint8_t bytes[32] = "a file of strangers";
    bytes[31] = (uint8_t)all->who;
    return peer_nlm_bytes_of(bytes, sizeof bytes);
}

static void choose_range(struct world *world, struct peer_nlm_args *args)
{
    struct strangers *all = world->strangers;
    args->exclusive = chance(all, 60);
    if (all->intrudes && all->theme == STRANGER_ANY && chance(all, 40)) {
        struct extent extent = {.file = (uint32_t)any(all, world->lockers->plan.files),
                                .offset = any(all, world->lockers->plan.span),
                                .len = 1 + any(all, 4)};
        if (extent.offset + extent.len >= LOCKER_CELLS || chance(all, 10))
            extent.len = 0;
        args->lock.fh = locker_handle(extent.file);
        args->lock.offset = extent.offset;
        args->lock.len = extent.len;
        return;
    }
    args->lock.fh = own_file(all);
    args->lock.offset = 3 * any(all, OWN_SPAN);
    args->lock.len = chance(all, 5) ? 0 : 1 + any(all, 4);
}

static void fill_args(struct world *world, struct peer_nlm_args *args)
{
    struct strangers *all = world->strangers;
    uint8_t cookie[8];
    memset(args, 0, sizeof *args);
    store_be32(cookie, (uint32_t)(all->cookie >> 32));
    store_be32(cookie + 4, (uint32_t)all->cookie + (uint32_t)any(all, 3));
    args->cookie = peer_nlm_bytes_of(cookie, 8);
    args->block = chance(all, 50);
    args->reclaim = chance(all, 15);
    args->state = any_state(all);
    args->lock.caller_name =
        name_of(world, (uint32_t)any(all, chance(all, 80) ? 8 : STRANGER_NAMES), true);
    args->lock.oh = peer_nlm_text(chance(all, 50) ? "stranger" : "stranger 2");
    args->lock.svid = 1 + (uint32_t)any(all, chance(all, 70) ? 3 : 1000);
    args->mode = (uint32_t)any(all, 4);
    args->access = (uint32_t)any(all, 4);
    choose_range(world, args);
}

/* What they may have from now on, in a file of lockers. */
static void note_asked(struct world *world, uint32_t procedure, const struct peer_nlm_args *args)
{
    struct strangers *all = world->strangers;
    uint16_t cells = locker_cells(args->lock.offset, args->lock.len);
    for (uint32_t file = 0; world->lockers != NULL && file < LOCKER_FILES_MAX; file++) {
        struct peer_nlm_bytes handle = locker_handle(file);
        if (!peer_nlm_bytes_equal(&handle, &args->lock.fh))
            continue;
        if (procedure == PEER_NLM_SHARE)
            all->has_shared[file] = true;
        if (procedure != PEER_NLM_LOCK && procedure != PEER_NLM_LOCK_MSG &&
            procedure != PEER_NLM_NM_LOCK)
            continue;
        all->asked[file].any |= cells;
        all->asked[file].exclusive |= args->exclusive ? cells : 0;
    }
}

/* ---- NLM ---- */

static bool is_result(uint32_t procedure)
{
    return procedure >= PEER_NLM_TEST_RES && procedure <= PEER_NLM_GRANTED_RES;
}

static void put_nlm(struct world *world, struct packet *packet, uint32_t procedure,
                    const struct peer_nlm_args *args)
{
    static struct peer_nlm_res res;
    struct strangers *all = world->strangers;
    uint32_t version = procedure >= PEER_NLM_SHARE && all->version < 3 ? 3 : all->version;
    if (is_result(procedure)) {
        memset(&res, 0, sizeof res);
        res.cookie = args->cookie;
        res.status = (uint32_t)any(all, 6);
        res.oh = args->lock.oh;
        peer_nlm_put_res_call(packet, all->xid, version, procedure, &res);
        return;
    }
    note_asked(world, procedure, args);
    world_trace(world, "stranger %u as %.*s/%u: %s, version %u, %llu+%llu, state %u%s%s", all->who,
                (int)args->lock.caller_name.len, (const char *)args->lock.caller_name.at,
                args->lock.svid, peer_nlm_procedure_text(procedure), version,
                (unsigned long long)args->lock.offset, (unsigned long long)args->lock.len,
                args->state, args->block ? ", block" : "", args->reclaim ? ", reclaim" : "");
    peer_nlm_put_call(packet, all->xid, version, procedure, args);
}

static uint32_t any_procedure(struct strangers *all)
{
    static const enum peer_nlm_procedure often[] = {
        PEER_NLM_LOCK,   PEER_NLM_LOCK,   PEER_NLM_LOCK_MSG, PEER_NLM_NM_LOCK,
        PEER_NLM_UNLOCK, PEER_NLM_CANCEL, PEER_NLM_SHARE};
    if (chance(all, 50))
        return often[any(all, sizeof often / sizeof often[0])];
    uint32_t procedure = (uint32_t)any(all, 21); /* 0 to 16, 20 to 23 */
    return procedure <= PEER_NLM_SM_NOTIFY ? procedure : procedure + 3;
}

/* What it has is let go; then one has a whole file, the others wait for a part each, and at last
 * all of them are offered it. */
static uint32_t ask_for_offers(struct strangers *all, struct peer_nlm_args *args)
{
    bool is_last = all->said + 1 == all->length, is_holder = all->said == 1 || is_last;
    args->lock.fh = own_file(all);
    store_be32(args->lock.fh.at + 24, all->row);
    args->lock.caller_name = peer_nlm_text("stranger-9");
    args->lock.svid = is_holder ? 1 : 1000 + all->said;
    args->lock.offset = is_holder ? 0 : 2 * all->said;
    args->lock.len = is_holder ? 0 : 1;
    args->state = 1;
    args->reclaim = false;
    args->block = !is_holder;
    args->exclusive = true;
    return all->said == 0 ? PEER_NLM_FREE_ALL : is_last ? PEER_NLM_UNLOCK : PEER_NLM_LOCK;
}

static void put_any_nlm(struct world *world, struct packet *packet)
{
    static struct peer_nlm_args args;
    struct strangers *all = world->strangers;
    uint32_t procedure = any_procedure(all);
    fill_args(world, &args);
    if (all->theme == STRANGER_OFFERS) {
        procedure = ask_for_offers(all, &args);
    } else if (all->theme == STRANGER_LOCKS || all->theme == STRANGER_NAMES_) {
        procedure =
            all->theme == STRANGER_NAMES_ && chance(all, 20) ? PEER_NLM_SHARE : PEER_NLM_LOCK;
        args.block = args.reclaim = false;
        if (all->theme == STRANGER_NAMES_)
            args.lock.caller_name = name_of(world, all->said % STRANGER_NAMES, true);
    }
    put_nlm(world, packet, procedure, &args);
}

/* ---- NSM ---- */

static void put_any_nsm(struct world *world, struct packet *packet)
{
    static const uint8_t priv[PEER_NSM_PRIV_LEN] = "a stranger's";
    static const uint32_t programs[] = {100021, 200048, 100024};
    struct strangers *all = world->strangers;
    char mon_name[32], my_name[32];
    bool has_victims = world->lockers != NULL && world->plan.owners == 0;
    struct peer_nlm_bytes victim = name_of(world, has_victims ? (uint32_t)any(all, 6) : 6, false);
    uint32_t key = (uint32_t)any(all, KEYS_MAX);
    (void)snprintf(my_name, sizeof my_name, "stranger-%u", key % 3);
    (void)snprintf(mon_name, sizeof mon_name, "stranger-%u", key);
    uint64_t dice = all->theme == STRANGER_MONS ? 0 : any(all, 100);
    if (chance(all, 30))
        (void)snprintf(mon_name, sizeof mon_name, "%.*s", (int)victim.len, (const char *)victim.at);
    struct peer_nsm_id id = {mon_name, my_name, programs[key % 3], 1, 1};
    if (dice < 40) {
        all->keys = all->count * (2 * KEYS_MAX + 6);
        peer_nsm_put_mon(packet, all->xid, &id, priv);
    } else if (dice < 50) {
        peer_nsm_put_unmon(packet, all->xid, &id);
    } else if (dice < 55) {
        peer_nsm_put_unmon_all(packet, all->xid, &id);
    } else if (dice < 65) {
        peer_nsm_put_stat(packet, all->xid, mon_name);
    } else if (dice < 70) {
        peer_nsm_put_null(packet, all->xid);
    } else if (dice < 75) {
        peer_nsm_put_simu_crash(packet, all->xid);
    } else {
        peer_nsm_put_notify(packet, all->xid, mon_name, any_state(all));
    }
}

/* ---- sending ---- */

static bool send(struct world *world, uint32_t who, const struct packet *packet)
{
    struct strangers *all = world->strangers;
    const struct host *host = &all->hosts[who];
    struct rpc_source from = {.peer = {.address = host->address,
                                       .local = host->local,
                                       .port = all->port,
                                       .transport = all->is_tcp ? TRANSPORT_TCP : TRANSPORT_UDP},
                              .route = all->is_tcp ? all->route : 0};
    struct bytes reply;
    enum rpc_verdict verdict =
        machine_receive_raw(world, &from, (struct bytes){packet->bytes, packet->len}, &reply);
    if (verdict == RPC_BUSY)
        return false;
    all->taken++;
    if (world->lockers != NULL)
        world->lockers->taken++;
    machine_received(world);
    return true;
}

bool stranger_say(struct world *world)
{
    static struct packet packet;
    struct strangers *all = world->strangers;
    bool is_repeat = all->theme == STRANGER_REPEAT && all->said > 0;
    if (!is_repeat) {
        all->xid++;
        packet_clear(&packet);
        if (all->theme == STRANGER_MONS || (all->theme <= STRANGER_ANY && chance(all, 25)))
            put_any_nsm(world, &packet);
        else
            put_any_nlm(world, &packet);
    }
    return send(world, all->who, &packet);
}

bool stranger_frees(struct world *world, uint32_t who, struct bytes name)
{
    static struct packet packet;
    static struct peer_nlm_args args;
    memset(&args, 0, sizeof args);
    args.lock.caller_name = peer_nlm_bytes_of(name.at, name.len);
    packet_clear(&packet);
    peer_nlm_put_call(&packet, ++world->strangers->xid, 4, PEER_NLM_FREE_ALL, &args);
    return send(world, who, &packet);
}

bool stranger_unmonitors(struct world *world, uint32_t who, struct bytes my_name)
{
    static struct packet packet;
    char text[64];
    (void)snprintf(text, sizeof text, "%.*s", (int)my_name.len, (const char *)my_name.at);
    struct peer_nsm_id id = {"", text, 100021, 1, 1};
    packet_clear(&packet);
    peer_nsm_put_unmon_all(&packet, ++world->strangers->xid, &id);
    return send(world, who, &packet);
}

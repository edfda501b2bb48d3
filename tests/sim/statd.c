/*
 * statd.c -- SM_NOTIFY to and from lockers, and what they reclaim; see statd.h.
 */
#include "statd.h"

#include "ask.h"
#include "claim.h"
#include "era.h"
#include "machine.h"
#include "peer/peer_nsm.h"
#include "told.h"

#include <stdio.h>

enum { NAME_MAX_LEN = 1024, NOTICE_PORT = 900, NOTICE_TRIES = 8 };

/* ---- told of our restarts ---- */

static bool read_body(struct packet_reader *body, char *ret_name, uint32_t *ret_state)
{
    uint32_t len;
    const uint8_t *name = packet_get_opaque(body, NAME_MAX_LEN, &len);
    *ret_state = packet_get_u32(body);
    if (!packet_is_done(body) || len >= STATD_NAME_MAX)
        return false;
    memcpy(ret_name, name, len);
    ret_name[len] = '\0';
    return true;
}

void statd_names(const struct host *host, char ret[STATD_NAMES][STATD_NAME_MAX])
{
    struct address local = address_without_zone(&host->local);
    (void)snprintf(ret[0], STATD_NAME_MAX, "%s", TOLD_SERVER_NAME);
    (void)snprintf(ret[1], STATD_NAME_MAX, "%s", STATD_SERVER_SHORT);
    address_text(&local, ret[2]);
}

void statd_sent(struct world *world, const struct host *host, const struct address *local,
                struct packet_reader *body)
{
    char name[STATD_NAME_MAX], names[STATD_NAMES][STATD_NAME_MAX];
    const struct lockers *all = world->lockers;
    struct record_server server = {0};
    uint32_t state;
    bool is_ours = false;
    if (!read_body(body, name, &state))
        world_fail(world, "P3", "an SM_NOTIFY that leaves cannot be read");
    world_trace(world, "host %u is told that %s is at state %u", host->index, name, state);
    if (world->is_unjudged)
        return;
    statd_names(host, names);
    for (uint32_t i = 0; i < STATD_NAMES; i++)
        is_ours |= strcmp(name, names[i]) == 0;
    (void)disk_server(&world->disk, &server);
    if (!is_ours)
        world_fail(world, "P3", "a locker is told of \"%s\", which is none of our names", name);
    if (!world->machine.is_ready && !world->machine.ghost_speaks)
        world_fail(world, "P3", "a locker is told before the server is ready (R-NOTIFY-7)");
    if (!address_equal(local, &host->local))
        world_fail(world, "P3", "host %u is told from an address that it does not know",
                   host->index);
    if (state % 2 == 0 || state > server.state)
        world_fail(world, "P3", "a locker is told of state %u, durable is %u", state, server.state);
    for (uint32_t i = 0; i < all->count; i++)
        if (all->at[i].host == host && all->at[i].told_era < all->era.number &&
            state <= all->at[i].told_state && state >= all->era.state)
            world_fail(world, "P3", "%s is told of state %u in a new era, and knew it before",
                       all->at[i].label, state);
}

/* protocol.md 2.4. */
static bool matches(const struct locker *locker, const char *name, uint32_t state)
{
    char names[STATD_NAMES][STATD_NAME_MAX];
    statd_names(locker->host, names);
    bool is_name = strcmp(name, names[locker->mounted]) == 0;
    if (locker->kind == LOCKER_FREEBSD || locker->kind == LOCKER_SOLARIS)
        return is_name;
    return state != locker->server_state;
}

static void begin_reclaim(struct world *world, struct locker *locker)
{
    for (uint32_t p = 0; p < locker->process_count; p++) {
        struct process *process = &locker->processes[p];
        for (uint32_t file = 0; file < LOCKER_FILES_MAX; file++) {
            const struct reservation *reserved = &process->reserved[file];
            process->pending[file] = process->held[file].any | process->believed[file].any;
            process->share_pending[file] = reserved->mode != 0 || reserved->access != 0;
            process->must_reclaim |= process->pending[file] != 0 || process->share_pending[file];
        }
        process->timeout_ns = SECOND; /* a call under way is in the way */
        if (process->must_reclaim && !world->lockers->holds_reclaims)
            locker_set_timer(world, process, 1 + world_random(world, 50 * MILLISECOND));
    }
}

/* Behind a translator one of them hears it, unless it forwards to both. */
static bool hears(const struct world *world, const struct locker *locker)
{
    const struct lockers *all = world->lockers;
    if (locker->kind == LOCKER_PCNFS || (locker->host->has_box && locker->host->box_swallows))
        return false;
    for (uint32_t i = 0; i < locker->index && !world->plan.nat_forwards; i++)
        if (all->at[i].host == locker->host)
            return false;
    return true;
}

bool statd_notified(struct world *world, struct host *host, struct packet_reader *body)
{
    char name[STATD_NAME_MAX];
    struct lockers *all = world->lockers;
    uint32_t state;
    if (!read_body(body, name, &state))
        return false;
    if (all->falls_silent)
        host->mood = CALLEE_SILENT;
    for (uint32_t i = 0; i < all->count; i++) {
        struct locker *locker = &all->at[i];
        if (locker->host != host)
            continue;
        if (!hears(world, locker)) {
            era_told(world, locker, state); /* as far as anybody can know */
            continue;
        }
        bool is_news = matches(locker, name, state);
        if (is_news || state == locker->server_state)
            era_told(world, locker, state);
        if (!is_news)
            continue;
        world_trace(world, "%s learns that we restarted: state %u", locker->label, state);
        locker->server_state = state;
        locker->heard_count++;
        locker->heard_ns = world->now_ns;
        begin_reclaim(world, locker);
    }
    return true;
}

/* ---- reclaims ---- */

/* The first bytes that are still to be reclaimed, as far as they have one mode; sometimes a part of
 * them. */
static struct extent next_extent(struct world *world, const struct process *process, uint32_t file)
{
    uint16_t pending = process->pending[file];
    uint16_t exclusive = process->held[file].exclusive | process->believed[file].exclusive;
    uint32_t first = 0;
    while ((pending >> first & 1) == 0)
        first++;
    uint32_t end = first + 1;
    bool is_exclusive = (exclusive >> first & 1) != 0;
    while (end < LOCKER_CELLS && (pending >> end & 1) != 0 &&
           ((exclusive >> end & 1) != 0) == is_exclusive)
        end++;
    uint32_t len = end - first;
    if (len > 1 && world_chance(world, world->lockers->plan.pieces))
        len = 1 + (uint32_t)world_random(world, len - 1);
    bool to_the_end = first + len == LOCKER_CELLS;
    uint64_t eof = process->locker->kind == LOCKER_SOLARIS ? UINT64_MAX : 0;
    return (struct extent){
        .file = file, .offset = first, .len = to_the_end ? eof : len, .exclusive = is_exclusive};
}

bool statd_reclaims(struct world *world, struct process *process)
{
    if (!process->must_reclaim || world->lockers->holds_reclaims)
        return false;
    for (uint32_t file = 0; file < LOCKER_FILES_MAX; file++) {
        const struct reservation *reserved = &process->reserved[file];
        process->pending[file] &= process->held[file].any | process->believed[file].any;
        process->share_pending[file] &= reserved->mode != 0 || reserved->access != 0;
        if (process->pending[file] != 0) {
            struct ask_what what = {.procedure = PEER_NLM_LOCK,
                                    .extent = next_extent(world, process, file),
                                    .reclaim = true};
            (void)ask_begin(world, process, &what);
            return true;
        }
        if (process->share_pending[file]) {
            (void)ask_begin(world, process,
                            &(struct ask_what){.procedure = PEER_NLM_SHARE,
                                               .extent = {.file = file},
                                               .reservation = *reserved,
                                               .reclaim = true});
            return true;
        }
    }
    process->must_reclaim = false;
    return false;
}

void statd_reclaim_also(struct world *world, struct process *process, const struct extent *extent)
{
    if (process->locker->kind == LOCKER_PCNFS)
        return;
    process->pending[extent->file] |= locker_cells(extent->offset, extent->len);
    process->must_reclaim = true;
    locker_set_timer(world, process, 1);
}

void statd_reclaim_share_also(struct world *world, struct process *process, uint32_t file)
{
    process->share_pending[file] = true;
    process->must_reclaim = true;
    locker_set_timer(world, process, 1);
}

void statd_reclaimed(struct world *world, struct ask *ask, uint32_t status)
{
    struct process *process = ask->process;
    const struct extent *extent = &ask->extent;
    uint16_t cells = locker_cells(extent->offset, extent->len);
    bool is_share = ask->plain == PEER_NLM_SHARE;
    bool is_now = ask->heard_count == process->locker->heard_count;
    if (status == PEER_NLM_IS_NOLOCKS) {
        /* What a power loss took is new to the server, and there may be no room for it. It does not
         * keep the rest from being reclaimed. */
        if (is_now && !is_share)
            process->pending[extent->file] &= (uint16_t)(~cells | process->held[extent->file].any);
        locker_set_timer(world, process, SECOND);
        return; /* once more */
    }
    if (is_now && is_share)
        process->share_pending[extent->file] = false;
    else if (is_now)
        process->pending[extent->file] &= (uint16_t)~cells;
    if (status == PEER_NLM_IS_GRANTED && is_share)
        claim_reserves(world, process, extent->file, ask->reservation,
                       ask->taken_era == world->lockers->era.number);
    else if (status == PEER_NLM_IS_GRANTED)
        claim_begins(world, process, extent, ask->taken_era == world->lockers->era.number);
    else
        claim_lost(world, process, ask);
    locker_set_timer(world, process, 1 + world_random(world, 5 * MILLISECOND));
}

/* ---- telling of their own ---- */

/* Decision 021: one that has a client's number by chance, and starts anew before that client tells
 * its next one, is believed. No server could tell. */
static bool may_start_anew(const struct world *world, const struct host *host)
{
    const struct lockers *all = world->lockers;
    for (uint32_t i = 0; i < all->count; i++)
        if (all->at[i].host == host &&
            (all->at[i].state == host->box_state || !all->at[i].is_known))
            return false;
    return true;
}

/* A box that translates addresses starts anew at times; its number has to do with nobody's. */
uint32_t statd_state(struct world *world, struct host *host)
{
    if (!host->has_box)
        return host->nsm_state;
    if (world_side_chance(world, 20) && may_start_anew(world, host))
        host->box_state += 2;
    return host->box_state;
}

/* Which of its two notices has the name that it locks under. */
static uint32_t exact_notice(const struct locker *locker)
{
    return strchr(locker->name, '.') == NULL ? 1 : 0;
}

/* Its name without a domain may be that of another one behind the same address. */
static bool is_ambiguous(const struct world *world, const struct locker *locker)
{
    const struct lockers *all = world->lockers;
    size_t len = strlen(locker->name);
    for (uint32_t i = 0; i < all->count; i++)
        if (all->at[i].host == locker->host && strncmp(all->at[i].name, locker->name, len) == 0 &&
            all->at[i].name[len] == '.')
            return true;
    return false;
}

/* Exclusion (1): what it announces is the whole name of another one behind its address, and the
 * server does not know that there are two. */
static bool is_anothers(const struct world *world, const struct locker *locker)
{
    const struct lockers *all = world->lockers;
    size_t len = strcspn(locker->name, ".");
    bool has_namesake = false;
    for (uint32_t i = 0; i < all->count; i++)
        has_namesake |= &all->at[i] != locker && all->at[i].host == locker->host &&
                        strlen(all->at[i].name) == len &&
                        strncmp(all->at[i].name, locker->name, len) == 0;
    struct record_client record;
    return has_namesake && !world_allows(world, WORLD_ALIKE) &&
           !era_find_record(world, locker, &record);
}

static void put_notice(const struct locker *locker, bool is_short, struct packet *packet)
{
    char name[STATD_NAME_MAX];
    bool has_domain = strchr(locker->name, '.') != NULL;
    int len = (int)(has_domain && is_short ? strcspn(locker->name, ".") : strlen(locker->name));
    (void)snprintf(name, sizeof name, "%.*s%s", len, locker->name,
                   has_domain || is_short ? "" : ".example.org");
    packet_clear(packet);
    peer_nsm_put_notify(packet, locker->notice_xid + is_short, name, locker->state);
}

/* The ticket says what the notice says, for the copy that arrives long after. */
static void post_notice(struct world *world, struct locker *locker, bool is_short)
{
    const struct plan *plan = &world->plan;
    bool is_kind = world->is_calm || era_is_pressing(world);
    uint32_t copies = !is_kind && world_chance(world, plan->loss) ? 0 : 1;
    copies += !is_kind && world_chance(world, plan->duplication);
    for (uint32_t i = 0; i < copies; i++) {
        uint64_t delay_ns = 1 + world_random(world, is_kind ? MILLISECOND : plan->delay_max_ns);
        if (!is_kind && world_chance(world, plan->late))
            delay_ns += world_random(world, 60 * SECOND);
        queue_add(&world->queue, world->now_ns + delay_ns, QUEUE_NOTICE, locker,
                  (uint64_t)locker->notice_xid << 33 | (uint64_t)locker->state << 1 | is_short);
    }
}

void statd_announce(struct world *world, struct locker *locker)
{
    if (!locker->notifies)
        return;
    locker->notice_xid += 2;
    locker->notice_tries = 0;
    locker->is_noticed[0] = locker->is_noticed[1] = false;
    queue_add(&world->queue, world->now_ns + 1 + world_random(world, 3 * SECOND), QUEUE_STATD,
              locker, locker->notice_xid);
}

void statd_act(struct world *world, struct locker *locker)
{
    if (locker->is_noticed[0] && locker->is_noticed[1])
        return;
    for (uint32_t is_short = 0; is_short < 2; is_short++)
        if (!locker->is_noticed[is_short])
            post_notice(world, locker, is_short != 0);
    if (++locker->notice_tries < NOTICE_TRIES || !world_allows(world, WORLD_UNTOLD))
        queue_add(&world->queue,
                  world->now_ns + (SECOND << (locker->notice_tries < 4 ? locker->notice_tries : 4)),
                  QUEUE_STATD, locker, locker->notice_xid);
}

void statd_arrive(struct world *world, struct locker *locker, uint64_t ticket)
{
    static struct packet packet;
    struct lockers *all = world->lockers;
    struct locker said = *locker;
    struct bytes reply;
    bool is_short = ticket & 1;
    said.state = (uint32_t)(ticket >> 1);
    said.notice_xid = (uint32_t)(ticket >> 33);
    if (!world->machine.is_up)
        return;
    if (is_short && is_anothers(world, locker))
        return;
    put_notice(&said, is_short, &packet);
    struct rpc_source from = {.peer = {.address = locker->host->address,
                                       .local = locker->host->local,
                                       .port = (uint16_t)(NOTICE_PORT + locker->index),
                                       .transport = TRANSPORT_UDP}};
    if (!locker->is_multihomed)
        era_noticed(world, locker);
    else
        (void)address_parse(bytes_of_text("198.51.100.77"), &from.peer.address);
    world_trace(world, "%s says that it restarted: state %u%s%s", locker->label, said.state,
                is_short ? ", short name" : "", locker->is_multihomed ? ", from elsewhere" : "");
    enum rpc_verdict verdict =
        machine_receive_raw(world, &from, (struct bytes){packet.bytes, packet.len}, &reply);
    for (uint32_t i = 0; i < all->count; i++)
        all->at[i].forgets += all->at[i].host == locker->host;
    if (verdict == RPC_ANSWERED)
        (void)statd_release(world, &from.peer, reply);
    machine_received(world);
}

/* What it held before it rebooted is being freed when the answer leaves (P4), if it is believed by
 * its address and whole name, and had got a lock with its state before: what has no stamp may
 * outlive a reboot that a LOCK of the next life is the first sign of. */
bool statd_release(struct world *world, const struct peer *to, struct bytes message)
{
    struct lockers *all = world->lockers;
    if (all == NULL || to == NULL || to->transport != TRANSPORT_UDP || to->port < NOTICE_PORT ||
        to->port >= NOTICE_PORT + all->count)
        return false;
    struct locker *locker = &all->at[to->port - NOTICE_PORT];
    uint32_t xid = packet_xid(message.at, message.len);
    if (xid != locker->notice_xid && xid != locker->notice_xid + 1)
        return true; /* of an earlier boot */
    if (!locker->is_multihomed && !world->plan.verifies && locker->had_state &&
        xid == locker->notice_xid + exact_notice(locker) && !is_ambiguous(world, locker)) {
        claim_frees(world, locker);
        locker->is_known = !locker->is_forgotten;
    }
    if (world->is_calm || !world_chance(world, world->plan.loss))
        locker->is_noticed[xid - locker->notice_xid] = true;
    return true;
}

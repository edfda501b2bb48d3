/*
 * client.c -- the table of lock clients: who they are, and when they are forgotten; see client.h.
 *
 * Always true; client_check() asserts all but (2) and (5):
 *  (1) A live client is on exactly one chain of each index, the one its fields name, and no two
 *      have the same address and name without case (R-ID-1).
 *  (2) It holds one reference to its address, to its name as first spelled, and to its fold.
 *  (3) lock_count, share_count and waiter_count are what the chains of those tables hold for it.
 *  (4) With nothing here and not draining it has a deadline. One that has something may still have
 *      one too; what it is worth is decided when it comes.
 *  (5) What the store has of a client differs from what is here only where the slot is marked
 *      dirty: seen_wall_ns therefore moves only when the record is written for another reason.
 *
 * Forgetting is lazy, because nothing depends on its moment. A client that calls does not move its
 * deadline, it only says when it was heard; the deadline looks at that when it comes and sets
 * itself again. One that may not be forgotten yet is looked at again 300 s later, whatever holds
 * it: no other file has to remember to say so.
 *
 * The time of its last call is not stored: after a restart it counts from the start, and last_seen,
 * as operators see it, is when it last sent something worth a write: at least then.
 */
#include "core/client.h"

#include "base/check.h"
#include "base/hash.h"
#include "base/units.h"
#include "core/missed.h"
#include "core/state.h"

#define EXPIRY_NS        (300 * SECOND_NS)
#define REBOOTED_KEEP_NS (86400 * SECOND_NS) /* 24 h */

struct client *client_at(const struct core *core, uint32_t slot)
{
    return table_at(&core->clients.table, slot);
}

uint32_t client_slot(const struct core *core, const struct client *client)
{
    return table_slot(&core->clients.table, client);
}

int client_init(struct core *core, const uint32_t slots[])
{
    uint32_t slots_max = slots[RECORD_CLIENT];
    struct clients *all = &core->clients;
    list_init(&all->draining);
    list_init(&all->idle);
    int err = table_init_linked(&all->table, slots_max, sizeof(struct client));
    if (err == 0)
        err = host_index_init(core, &all->index, &all->table);
    if (err == 0)
        err = timers_init(&all->expiry, slots_max);
    return err;
}

void client_done(struct core *core)
{
    struct clients *all = &core->clients;
    table_done(&all->table);
    host_index_done(&all->index);
    timers_done(&all->expiry);
}

/* ---- who they are ---- */

static struct bytes address_bytes(const struct address *address)
{
    return (struct bytes){(const uint8_t *)address, sizeof *address};
}

struct address client_address(const struct core *core, uint32_t slot)
{
    struct address address;
    struct bytes stored =
        intern_bytes(&core->clients.index.addresses, client_at(core, slot)->stored.address);
    CHECK(stored.len == sizeof address);
    memcpy(&address, stored.at, sizeof address);
    return address;
}

static struct bytes name_of(const struct core *core, const struct client *client)
{
    return intern_bytes(&core->names, client->stored.name);
}

static uint64_t key_hash(const struct core *core, uint32_t address, uint32_t fold)
{
    return hash_number(core->seed, (uint64_t)address << 32 | fold);
}

static struct host_place place_of(const struct client *client)
{
    return (struct host_place){client->key_hash, client->stored.address, client->fold};
}

uint32_t client_find_id(const struct core *core, uint64_t id)
{
    const struct table *table = &core->clients.table;
    uint32_t slot = table_next(table, SLOT_NONE);
    while (slot != SLOT_NONE && client_at(core, slot)->stored.id != id)
        slot = table_next(table, slot);
    return slot;
}

uint32_t client_find(const struct core *core, const struct address *address, struct bytes name)
{
    const struct clients *all = &core->clients;
    uint32_t from = intern_find(&all->index.addresses, address_bytes(address));
    uint32_t fold = core_find_fold(core, name);
    if (from == SLOT_NONE || fold == SLOT_NONE)
        return SLOT_NONE;
    uint64_t hash = key_hash(core, from, fold);
    uint32_t slot = hash_index_first(&all->index.by_key, hash);
    for (; slot != SLOT_NONE; slot = hash_index_next(&all->index.by_key, slot)) {
        const struct client *client = client_at(core, slot);
        if (client->stored.address == from && client->fold == fold)
            return slot;
    }
    return SLOT_NONE;
}

static void release_key(struct core *core, const struct client *client)
{
    if (client->stored.address != SLOT_NONE)
        (void)intern_release(&core->clients.index.addresses, client->stored.address);
    if (client->stored.name != SLOT_NONE)
        (void)intern_release(&core->names, client->stored.name);
    if (client->fold != SLOT_NONE)
        (void)intern_release(&core->folds, client->fold);
}

/* References to the parts of a key, or none of them. */
static bool intern_key(struct core *core, const struct address *address, struct bytes name,
                       struct client *client)
{
    client->stored.address = intern_add(&core->clients.index.addresses, address_bytes(address));
    client->stored.name = intern_add(&core->names, name);
    client->fold = core_add_fold(core, name);
    if (client->stored.address == SLOT_NONE || client->stored.name == SLOT_NONE ||
        client->fold == SLOT_NONE) {
        release_key(core, client);
        return false;
    }
    client->key_hash = key_hash(core, client->stored.address, client->fold);
    return true;
}

static void link_slot(struct core *core, uint32_t slot, const struct client *content)
{
    struct clients *all = &core->clients;
    struct client *client = client_at(core, slot);
    *client = *content;
    list_init(&client->life.draining);
    list_init(&client->asked.ready);
    list_init(&client->asked.turn);
    list_init(&client->life.idle);
    list_init(&client->life.idle_here);
    struct address address = client_address(core, slot);
    client->quota = quota_keep(core, &address);
    quota_add(core, client->quota, QUOTA_CLIENT, 1);
    list_init(&client->asked.calibrating);
    host_index_add(&all->index, slot, place_of(client));
}

/* Room for one more, by every limit; the order is the order in which operators can help. Nobody is
 * forgotten for a newcomer that is refused anyway. */
static enum admission admission(struct core *core, const struct address *from)
{
    bool is_within_share = quota_admits_address(core, from, QUOTA_CLIENT);
    bool is_full = core->clients.table.count >= core->limits.clients_max;
    if (!core->has_room) {
        MARK("client_no_room");
        return ADMIT_STORE;
    }
    if (arena_used(core->arena) >= core->limits.bytes_max) {
        MARK("client_no_bytes");
        return ADMIT_BYTES;
    }
    if (!is_within_share)
        return evict_client_of(core, from) ? ADMIT_NEW : ADMIT_ADDRESS;
    if (is_full && !evict_client(core)) {
        MARK("client_limit");
        return ADMIT_LIMIT;
    }
    return ADMIT_NEW;
}

enum admission client_add(struct core *core, const struct peer *from, struct bytes name,
                          uint64_t wall_ns, uint32_t *ret_slot)
{
    uint32_t slot = client_find(core, &from->address, name);
    if (slot != SLOT_NONE) {
        *ret_slot = slot;
        return ADMIT_FOUND;
    }
    enum admission verdict = admission(core, &from->address);
    if (verdict != ADMIT_NEW)
        return verdict;

    struct client fresh = {
        .stored = {.registered_ns = wall_ns,
                   .seen_wall_ns = wall_ns,
                   .server_epoch = core->server.epoch,
                   .local = from->local,
                   .transport = from->transport,
                   .told_state = core->server.state,
                   .incarnation = 1},
        .life = {.seen_ns = core->now_ns},
    };
    if (!intern_key(core, &from->address, name, &fresh))
        return ADMIT_BYTES; /* by fragmentation; the budget itself was looked at above */
    slot = table_add(&core->clients.table);
    CHECK(slot != SLOT_NONE); /* the table has at least clients_max slots */
    fresh.stored.id = core->server.next_id++;
    link_slot(core, slot, &fresh);
    dirty_put(&core->dirty, RECORD_CLIENT, slot);
    core->sync_wanted = true;
    event_add(&core->feed, EVENT_CLIENT_ADDED, &from->address, name, fresh.stored.id);
    client_counts_changed(core, slot);
    *ret_slot = slot;
    return ADMIT_NEW;
}

/* ---- when they are forgotten ---- */

bool client_has_nothing(const struct client *client)
{
    return client->life.lock_count == 0 && client->life.share_count == 0 &&
           client->life.waiter_count == 0 && list_is_empty(&client->life.draining);
}

void client_counts_changed(struct core *core, uint32_t slot)
{
    if (client_has_nothing(client_at(core, slot)))
        timers_set(&core->clients.expiry, slot, core->now_ns + EXPIRY_NS);
    else
        timers_clear(&core->clients.expiry, slot);
    evict_rank(core, slot);
}

/* R-SEC-5: something may still be owed to it, or come from it. One that is not monitored is never
 * notified (R-NM-1). */
static bool must_be_kept(const struct core *core, uint32_t slot)
{
    const struct client *client = client_at(core, slot);
    if (client->stored.flags & RECORD_CLIENT_CRASHED)
        return true;
    if ((client->stored.flags & RECORD_CLIENT_MONITORED) &&
        !target_knows(&core->server, client->stored.told_state))
        return true;
    return client->stored.rebooted_ns != 0 &&
           (core->wall_ns < client->stored.rebooted_ns ||
            core->wall_ns - client->stored.rebooted_ns < REBOOTED_KEEP_NS);
}

void client_forget(struct core *core, uint32_t slot)
{
    struct clients *all = &core->clients;
    struct client client = *client_at(core, slot);
    MARK("client_forgotten");
    CHECK(client_has_nothing(client_at(core, slot)));
    list_remove(&client_at(core, slot)->asked.calibrating);
    notify_forget(core, target_of_client(core, slot));
    turn_leave(core, slot);
    timers_clear(&all->expiry, slot);
    list_remove(&client_at(core, slot)->life.idle);
    list_remove(&client_at(core, slot)->life.idle_here);
    quota_remove(core, client.quota, QUOTA_CLIENT, 1);
    quota_release(core, client.quota);
    host_index_remove(&all->index, slot, place_of(&client));
    table_remove(&all->table, slot);
    dirty_delete(&core->dirty, RECORD_CLIENT, slot);
    release_key(core, &client);
}

bool client_may_give_way(const struct core *core, uint32_t slot)
{
    const struct client *client = client_at(core, slot);
    return client->life.lock_count + client->life.share_count == 0 &&
           list_is_empty(&client->life.draining);
}

/* The record of the same name that is in the way of one that moves. */
static void give_way(struct core *core, uint32_t other, uint32_t slot)
{
    struct client *client = client_at(core, slot);
    MARK("client_gives_way");
    grant_drop_client(core, other);
    client->stored.flags |= client_at(core, other)->stored.flags & RECORD_CLIENT_MONITORED;
    client_forget(core, other);
}

/* What it has counts at this address from now on. */
static void move_quota(struct core *core, uint32_t slot, const struct address *address)
{
    struct client *client = client_at(core, slot);
    const uint32_t counts[QUOTA_KIND_END] = {[QUOTA_CLIENT] = 1,
                                             [QUOTA_LOCK] = client->life.lock_count,
                                             [QUOTA_SHARE] = client->life.share_count,
                                             [QUOTA_WAITER] = client->life.waiter_count};
    uint32_t fresh = quota_keep(core, address);
    turn_leave(core, slot);
    list_remove(&client->life.idle);
    list_remove(&client->life.idle_here);
    for (enum quota_kind kind = 0; kind < QUOTA_KIND_END; kind++) {
        quota_remove(core, client->quota, kind, counts[kind]);
        quota_add(core, fresh, kind, counts[kind]);
    }
    uint32_t old = client->quota;
    client->quota = fresh;
    turn_join(core, slot);
    waiter_wake_moved(core, slot);
    quota_release(core, old);
    evict_rank(core, slot);
}

enum client_move_result client_move(struct core *core, uint32_t slot, const struct address *address,
                                    const struct address *local)
{
    struct clients *all = &core->clients;
    struct client *client = client_at(core, slot);
    uint32_t old = client->stored.address,
             other = client_find(core, address, name_of(core, client));
    CHECK(other != slot);
    if (other != SLOT_NONE && !client_may_give_way(core, other))
        return CLIENT_MOVE_TAKEN;
    uint32_t fresh = intern_add(&all->index.addresses, address_bytes(address));
    if (fresh == SLOT_NONE)
        return CLIENT_MOVE_BYTES;
    if (other != SLOT_NONE)
        give_way(core, other, slot);
    host_index_remove(&all->index, slot, place_of(client));
    move_quota(core, slot, address);
    client->stored.address = fresh;
    client->stored.local = *local;
    client->stored.flags &= ~(uint32_t)RECORD_CLIENT_CALIBRATED;
    client->asked.calibrate_next_ns = 0;
    client->key_hash = key_hash(core, fresh, client->fold);
    host_index_add(&all->index, slot, place_of(client));
    (void)intern_release(&all->index.addresses, old);
    dirty_put(&core->dirty, RECORD_CLIENT, slot);
    core->sync_wanted = true;
    event_add(&core->events, EVENT_CLIENT_MOVED, address, name_of(core, client), client->stored.id);
    return CLIENT_MOVED;
}

void client_expire(struct core *core)
{
    struct timers *expiry = &core->clients.expiry;
    /* What is left when this is not enough is still due, and has its turn soon. */
    for (uint32_t i = 0; i < CLIENT_DRAIN_MAX; i++) {
        uint32_t slot = timers_take(expiry, core->now_ns);
        if (slot == SLOT_NONE)
            return;
        struct client *client = client_at(core, slot);
        if (!client_has_nothing(client))
            continue;
        if (core->now_ns - client->life.seen_ns < EXPIRY_NS)
            timers_set(expiry, slot, client->life.seen_ns + EXPIRY_NS);
        else if (must_be_kept(core, slot))
            timers_set(expiry, slot, core->now_ns + EXPIRY_NS);
        else
            client_forget(core, slot);
    }
}

uint64_t client_deadline_ns(const struct core *core)
{
    if (!list_is_empty(&core->clients.draining))
        return core->now_ns;
    return timers_next_ns(&core->clients.expiry);
}

/* ---- the store ---- */

bool client_load(struct core *core, uint32_t slot, const struct record_client *record)
{
    if (record->id == 0 || client_find(core, &record->address, record->caller_name) != SLOT_NONE ||
        !table_add_at(&core->clients.table, slot))
        return false;
    struct client loaded = {
        .stored = {.id = record->id,
                   .registered_ns = record->registered_ns,
                   .seen_wall_ns = record->seen_ns,
                   .rebooted_ns = record->rebooted_ns,
                   .untold_ns = record->untold_ns,
                   .server_epoch = record->server_epoch,
                   .local = record->local,
                   .transport = record->transport,
                   .versions = record->versions,
                   .grant_proc = record->grant_proc,
                   .state_seen = record->state_seen,
                   .free_below = record->free_below,
                   .told_state = record->told_state,
                   .incarnation = record->incarnation,
                   .flags = record->flags & ~(uint32_t)RECORD_CLIENT_UNUSED},
    };
    /* core_new reserved room for all that is stored. */
    CHECK(intern_key(core, &record->address, record->caller_name, &loaded));
    link_slot(core, slot, &loaded);
    return true;
}

uint32_t client_encode(const struct core *core, uint32_t slot, uint8_t *buffer)
{
    const struct client *client = client_at(core, slot);
    struct record_client record = {
        .id = client->stored.id,
        .registered_ns = client->stored.registered_ns,
        .seen_ns = client->stored.seen_wall_ns,
        .rebooted_ns = client->stored.rebooted_ns,
        .untold_ns = client->stored.untold_ns,
        .server_epoch = client->stored.server_epoch,
        .address = client_address(core, slot),
        .local = client->stored.local,
        .transport = client->stored.transport,
        .versions = client->stored.versions,
        .grant_proc = client->stored.grant_proc,
        .state_seen = client->stored.state_seen,
        .free_below = client->stored.free_below,
        .told_state = client->stored.told_state,
        .incarnation = client->stored.incarnation,
        .flags = client->stored.flags,
        .caller_name = name_of(core, client),
    };
    return record_put_client(buffer, slot, &record);
}

void client_start(struct core *core)
{
    const struct table *table = &core->clients.table;
    for (uint32_t slot = table_next(table, SLOT_NONE); slot != SLOT_NONE;
         slot = table_next(table, slot)) {
        struct client *client = client_at(core, slot);
        client->life.seen_ns = core->now_ns;
        client->recovery.loaded_count = client->life.lock_count;
        if (!client_life_start(core, slot))
            client_counts_changed(core, slot);
    }
}

/* ---- what must be true ---- */

static uint32_t chain_length(const struct chains *chains, uint32_t chain)
{
    uint32_t count = 0;
    for (uint32_t at = chains_first(chains, chain); at != SLOT_NONE; at = chains_next(chains, at))
        count++;
    return count;
}

static void check_one(const struct core *core, uint32_t slot)
{
    const struct clients *all = &core->clients;
    const struct client *client = client_at(core, slot);
    struct address address = client_address(core, slot);
    CHECK(client->stored.id != 0);
    CHECK(client->stored.id < core->server.next_id || !core->started);
    CHECK(client->stored.incarnation > 0);
    CHECK(client->key_hash == key_hash(core, client->stored.address, client->fold));
    CHECK(bytes_equal_fold(intern_bytes(&core->folds, client->fold), name_of(core, client)));
    CHECK(client_find(core, &address, name_of(core, client)) == slot);
    host_index_check(&all->index, slot, place_of(client));
    CHECK(client->life.lock_count == chain_length(&core->locks.by_client, slot));
    CHECK(client->life.share_count == chain_length(&core->shares.by_client, slot));
    CHECK(client->life.waiter_count == chain_length(&core->waiters.by_client, slot));
    CHECK(!core->started || !client_has_nothing(client) || timers_is_set(&all->expiry, slot));
    evict_check(core, slot);
    client_life_check(core, slot);
}

void client_check(const struct core *core)
{
    const struct clients *all = &core->clients;
    table_check(&all->table);
    table_check(&all->index.addresses.table);
    timers_check(&all->expiry);
    uint32_t draining = 0, listed = 0;
    for (uint32_t slot = table_next(&all->table, SLOT_NONE); slot != SLOT_NONE;
         slot = table_next(&all->table, slot)) {
        check_one(core, slot);
        draining += list_is_empty(&client_at(core, slot)->life.draining) ? 0 : 1;
    }
    for (const struct list *at = all->draining.next; at != &all->draining; at = at->next)
        listed++;
    CHECK(draining == listed);
    missed_check(core);
}

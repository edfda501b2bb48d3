/*
 * registrant.c -- the table of SM_MON registrations; see registrant.h.
 *
 * Always true, and asserted by registrant_check():
 *  (1) A live registrant is on exactly one chain of each index, the one its fields name.
 *  (2) No two live registrants have the same key.
 *  (3) It holds one reference to its address, its mon_name, its my_name and its mon_fold.
 *  (4) Every change since the last batch is marked dirty, so the store follows by itself.
 *
 * told_state is set when a registration is new: the answer to SM_MON carries our state. A repeat
 * leaves it alone, because a registrant that must still hear of our restart must hear of it also
 * when it happens to register again first (P3). The same holds for relayed_state.
 */
#include "core/registrant.h"

#include "base/check.h"
#include "base/hash.h"
#include "core/state.h"

struct registrant *registrant_at(const struct core *core, uint32_t slot)
{
    return table_at(&core->registrants.table, slot);
}

void registrant_alive(struct core *core, uint32_t slot)
{
    registrant_at(core, slot)->heard_ns = core->wall_ns;
}

uint64_t registrant_last_seen_ns(const struct registrant *registrant)
{
    return registrant->heard_ns != 0 ? registrant->heard_ns : registrant->registered_ns;
}

int registrant_init(struct core *core, const uint32_t slots[])
{
    uint32_t slots_max = slots[RECORD_REGISTRANT];
    struct registrants *all = &core->registrants;
    int err = table_init_linked(&all->table, slots_max, sizeof(struct registrant));
    return err == 0 ? host_index_init(core, &all->index, &all->table) : err;
}

void registrant_done(struct core *core)
{
    struct registrants *all = &core->registrants;
    table_done(&all->table);
    host_index_done(&all->index);
}

static struct bytes address_bytes(const struct address *address)
{
    return (struct bytes){(const uint8_t *)address, sizeof *address};
}

/* The key as the caller sent it. */
struct key {
    const struct address *address;
    struct bytes mon_name, my_name;
    uint32_t prog, vers, proc;
};

static uint64_t key_hash(const struct core *core, const struct key *key)
{
    uint64_t hash = hash_key(core->seed, address_bytes(key->address));
    hash = hash_number(hash, hash_key(core->seed, key->mon_name));
    hash = hash_number(hash, hash_key(core->seed, key->my_name));
    hash = hash_number(hash, (uint64_t)key->prog << 32 | key->vers);
    return hash_number(hash, key->proc);
}

static bool has_key(const struct core *core, const struct registrant *r, const struct key *key)
{
    return r->my_prog == key->prog && r->my_vers == key->vers && r->my_proc == key->proc &&
           bytes_equal(intern_bytes(&core->names, r->mon_name), key->mon_name) &&
           bytes_equal(intern_bytes(&core->names, r->my_name), key->my_name) &&
           bytes_equal(intern_bytes(&core->registrants.index.addresses, r->address),
                       address_bytes(key->address));
}

static struct key key_of(const struct address *from, const struct request *request)
{
    return (struct key){from,
                        request->mon_name,
                        request->my_name,
                        request->my_prog,
                        request->my_vers,
                        request->my_proc};
}

uint64_t registrant_hash(const struct core *core, const struct address *from,
                         const struct request *request)
{
    struct key key = key_of(from, request);
    return key_hash(core, &key);
}

static struct host_place place_of(const struct registrant *r)
{
    return (struct host_place){r->key_hash, r->address, r->mon_fold};
}

/* What is compared now, and what goes with it if it is removed: all at once, where there are many
 * of them and each would be waited for. */
static void fetch_parts(const struct core *core, uint32_t slot, const struct registrant *r)
{
    table_fetch(&core->names.table, r->mon_name);
    table_fetch(&core->folds.table, r->mon_fold);
    host_index_fetch(&core->registrants.index, slot, place_of(r));
    notify_fetch(core, target_of_registrant(slot));
}

static uint32_t find(const struct core *core, const struct key *key, uint64_t hash)
{
    const struct hash_index *by_key = &core->registrants.index.by_key;
    uint32_t slot = hash_index_first(by_key, hash);
    for (; slot != SLOT_NONE; slot = hash_index_next(by_key, slot)) {
        const struct registrant *r = registrant_at(core, slot);
        if (r->key_hash != hash)
            continue;
        fetch_parts(core, slot, r);
        if (has_key(core, r, key))
            return slot;
    }
    return SLOT_NONE;
}

static void link_slot(struct core *core, uint32_t slot)
{
    struct registrant *r = registrant_at(core, slot);
    struct address address = target_address(core, target_of_registrant(slot));
    r->quota = quota_keep(core, &address);
    quota_add(core, r->quota, QUOTA_REGISTRANT, 1);
    host_index_add(&core->registrants.index, slot, place_of(r));
}

/* In the monitor role a registration that starts over, in this boot of the machine or in this life
 * of its lock manager, begins with what is known of its host: what was locked since then, that host
 * locked after it rebooted. Of one that continues it is kept: it is still to be heard. */
static void renew(struct core *core, uint32_t slot, const struct request *request)
{
    struct registrant *r = registrant_at(core, slot);
    bool is_current = watched_is_current(core, slot);
    bool is_same = memcmp(r->priv, request->priv.at, RECORD_PRIV_LEN) == 0;
    if (!core->limits.is_monitor || (is_current && is_same))
        return;
    if (is_current && r->server_epoch >= core->server.lockd_epoch)
        watched_lockd_restarted(core, slot);
    else
        callout_client(core, CALLOUT_ADD, slot);
    r->relayed_state = notice_state(core, r->mon_fold);
    watched_registered_again(core, slot);
    notify_dismiss(core, target_of_registrant(slot));
}

static void release_key(struct core *core, const struct registrant *r)
{
    if (r->address != SLOT_NONE)
        (void)intern_release(&core->registrants.index.addresses, r->address);
    if (r->mon_name != SLOT_NONE)
        (void)intern_release(&core->names, r->mon_name);
    if (r->my_name != SLOT_NONE)
        (void)intern_release(&core->names, r->my_name);
    if (r->mon_fold != SLOT_NONE)
        (void)intern_release(&core->folds, r->mon_fold);
}

/* References to the strings of a key, or none of them. */
static bool intern_key(struct core *core, const struct key *key, struct registrant *r)
{
    r->address = intern_add(&core->registrants.index.addresses, address_bytes(key->address));
    r->mon_name = intern_add(&core->names, key->mon_name);
    r->my_name = intern_add(&core->names, key->my_name);
    r->mon_fold = core_add_fold(core, key->mon_name);
    if (r->address == SLOT_NONE || r->mon_name == SLOT_NONE || r->my_name == SLOT_NONE ||
        r->mon_fold == SLOT_NONE) {
        release_key(core, r);
        return false;
    }
    return true;
}

static void update(struct core *core, uint32_t slot, const struct peer *from, struct bytes priv)
{
    struct registrant *r = registrant_at(core, slot);
    if (memcmp(r->priv, priv.at, RECORD_PRIV_LEN) == 0 && address_equal(&r->local, &from->local) &&
        r->transport == (uint32_t)from->transport && r->server_epoch == core->server.epoch) {
        MARK("registrant_repeat_changes_nothing");
        return;
    }
    MARK("registrant_updated");
    memcpy(r->priv, priv.at, RECORD_PRIV_LEN);
    r->local = from->local;
    r->port = from->port;
    r->transport = from->transport;
    r->server_epoch = core->server.epoch;
    dirty_put(&core->dirty, RECORD_REGISTRANT, slot);
}

/* Room for one more, by every limit. Nobody is forgotten for a newcomer that is refused anyway. */
static enum admission admission(struct core *core, const struct address *from)
{
    bool is_full = core->registrants.table.count >= core->limits.clients_max;
    if (!core->has_room) {
        MARK("registrant_no_room");
        return ADMIT_STORE;
    }
    if (arena_used(core->arena) >= core->limits.bytes_max) {
        MARK("registrant_no_bytes");
        return ADMIT_BYTES;
    }
    if (!quota_admits_address(core, from, QUOTA_REGISTRANT))
        return ADMIT_ADDRESS;
    if (is_full && (core->limits.is_monitor || !evict_registrant(core))) {
        MARK("registrant_limit");
        return ADMIT_LIMIT;
    }
    return ADMIT_NEW;
}

enum admission registrant_add(struct core *core, const struct peer *from,
                              const struct request *request, uint64_t wall_ns)
{
    struct key key = key_of(&from->address, request);
    uint64_t hash = key_hash(core, &key);
    uint32_t slot = find(core, &key, hash);
    if (slot != SLOT_NONE) {
        renew(core, slot, request);
        update(core, slot, from, request->priv);
        registrant_alive(core, slot);
        unreached_heard(core, &from->address);
        notify_heard(core, target_of_registrant(slot));
        if (core->limits.is_monitor)
            notify_heard(core, target_of_watched(core, slot)); /* its host just locked */
        return ADMIT_FOUND;
    }
    enum admission verdict = admission(core, &from->address);
    if (verdict != ADMIT_NEW)
        return verdict;

    struct registrant fresh = {
        .registered_ns = wall_ns,
        .heard_ns = wall_ns,
        .server_epoch = core->server.epoch,
        .key_hash = hash,
        .my_prog = request->my_prog,
        .my_vers = request->my_vers,
        .my_proc = request->my_proc,
        .port = from->port,
        .transport = from->transport,
        .told_state = core->server.state,
        .local = from->local,
    };
    memcpy(fresh.priv, request->priv.at, RECORD_PRIV_LEN);
    if (!intern_key(core, &key, &fresh))
        return ADMIT_BYTES; /* by fragmentation; the budget itself was looked at above */
    fresh.relayed_state = notice_state(core, fresh.mon_fold);
    slot = table_add(&core->registrants.table);
    CHECK(slot != SLOT_NONE); /* the table has at least clients_max slots */
    fresh.id = core->server.next_id++;
    *registrant_at(core, slot) = fresh;
    link_slot(core, slot);
    watched_add(core, slot, NULL);
    dirty_put(&core->dirty, RECORD_REGISTRANT, slot);
    callout_client(core, CALLOUT_ADD, slot);
    core->sync_wanted = true;
    return ADMIT_NEW;
}

void registrant_forget(struct core *core, uint32_t slot)
{
    struct registrants *all = &core->registrants;
    struct registrant r = *registrant_at(core, slot);
    host_index_remove(&all->index, slot, place_of(&r));
    notify_forget(core, target_of_registrant(slot));
    if (core->limits.is_monitor)
        notify_forget(core, target_of_watched(core, slot));
    watched_remove(core, slot);
    table_remove(&all->table, slot);
    dirty_delete(&core->dirty, RECORD_REGISTRANT, slot);
    quota_remove(core, r.quota, QUOTA_REGISTRANT, 1);
    quota_release(core, r.quota);

    notice_unwatched(core, r.mon_fold);
    release_key(core, &r);
}

/* It was registered, in this boot. */
static void callout_unregistered(struct core *core, uint32_t slot)
{
    if (watched_is_current(core, slot))
        callout_client(core, CALLOUT_DELETE, slot);
}

bool registrant_remove(struct core *core, const struct peer *from, const struct request *request)
{
    struct key key = key_of(&from->address, request);
    uint32_t slot = find(core, &key, key_hash(core, &key));
    if (slot == SLOT_NONE)
        return false;
    callout_unregistered(core, slot);
    (void)watched_unregister(core, slot);
    return true;
}

uint32_t registrant_remove_all(struct core *core, const struct address *from, struct bytes my_name)
{
    struct registrants *all = &core->registrants;
    uint32_t removed = 0;
    uint32_t address = intern_find(&all->index.addresses, address_bytes(from));
    uint32_t name = intern_find(&core->names, my_name);
    if (address == SLOT_NONE || name == SLOT_NONE)
        return 0;
    uint32_t next;
    for (uint32_t slot = chains_first(&all->index.by_address, address); slot != SLOT_NONE;
         slot = next) {
        next = chains_next(&all->index.by_address, slot);
        if (registrant_at(core, slot)->my_name != name)
            continue;
        callout_unregistered(core, slot);
        if (core->limits.unmon_all_notifies)
            watched_tell_lost(core, slot);
        else
            (void)watched_unregister(core, slot);
        removed++;
    }
    return removed;
}

uint32_t registrant_find_id(const struct core *core, uint64_t id)
{
    const struct table *table = &core->registrants.table;
    uint32_t slot = table_next(table, SLOT_NONE);
    while (slot != SLOT_NONE && registrant_at(core, slot)->id != id)
        slot = table_next(table, slot);
    return slot;
}

bool registrant_any_of(const struct core *core, uint32_t fold)
{
    return chains_first(&core->registrants.index.by_name, fold) != SLOT_NONE;
}

bool registrant_load(struct core *core, uint32_t slot, const struct record_registrant *record)
{
    struct key key = {&record->address, record->mon_name, record->my_name,
                      record->my_prog,  record->my_vers,  record->my_proc};
    uint64_t hash = key_hash(core, &key);
    if (find(core, &key, hash) != SLOT_NONE || !table_add_at(&core->registrants.table, slot))
        return false;
    struct registrant loaded = {
        .id = record->id,
        .registered_ns = record->registered_ns,
        .server_epoch = record->server_epoch,
        .key_hash = hash,
        .my_prog = record->my_prog,
        .my_vers = record->my_vers,
        .my_proc = record->my_proc,
        .port = record->port,
        .transport = record->transport,
        .told_state = record->told_state,
        .relayed_state = record->relayed_state,
        .local = record->local,
    };
    memcpy(loaded.priv, record->priv, RECORD_PRIV_LEN);
    CHECK(intern_key(core, &key, &loaded)); /* core_new reserved room for all that is stored */
    *registrant_at(core, slot) = loaded;
    link_slot(core, slot);
    watched_add(core, slot, record->hosts);
    return true;
}

uint32_t registrant_encode(const struct core *core, uint32_t slot, uint8_t *buffer)
{
    const struct registrant *r = registrant_at(core, slot);
    struct record_registrant record = {
        .id = r->id,
        .registered_ns = r->registered_ns,
        .server_epoch = r->server_epoch,
        .local = r->local,
        .port = r->port,
        .transport = r->transport,
        .my_prog = r->my_prog,
        .my_vers = r->my_vers,
        .my_proc = r->my_proc,
        .told_state = r->told_state,
        .relayed_state = r->relayed_state,
        .mon_name = intern_bytes(&core->names, r->mon_name),
        .my_name = intern_bytes(&core->names, r->my_name),
    };
    memcpy(&record.address, intern_bytes(&core->registrants.index.addresses, r->address).at,
           sizeof record.address);
    memcpy(record.priv, r->priv, RECORD_PRIV_LEN);
    watched_put_hosts(core, slot, record.hosts);
    return record_put_registrant(buffer, slot, &record);
}

void registrant_check(const struct core *core)
{
    const struct registrants *all = &core->registrants;
    table_check(&all->table);
    table_check(&all->index.addresses.table);
    uint32_t slot = table_next(&all->table, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(&all->table, slot)) {
        const struct registrant *r = registrant_at(core, slot);
        struct address address;
        struct bytes stored = intern_bytes(&all->index.addresses, r->address);
        CHECK(stored.len == sizeof address);
        memcpy(&address, stored.at, sizeof address);
        struct key key = {&address,
                          intern_bytes(&core->names, r->mon_name),
                          intern_bytes(&core->names, r->my_name),
                          r->my_prog,
                          r->my_vers,
                          r->my_proc};
        CHECK(r->key_hash == key_hash(core, &key));
        CHECK(find(core, &key, r->key_hash) == slot);
        CHECK(bytes_equal_fold(intern_bytes(&core->folds, r->mon_fold), key.mon_name));
        host_index_check(&all->index, slot, place_of(r));
        CHECK(r->id != 0);
        CHECK(r->id < core->server.next_id || !core->started);
    }
}

/*
 * owner.c -- the table of lock owners; see owner.h.
 *
 * An owner is never stored: it is what the locks and waiters of one (client, svid) have in common,
 * and comes back with them. The code that adds a lock or a waiter counts it here, and asks for the
 * owner's release when it goes.
 *
 * Always true, and asserted by owner_check():
 *  (1) A live owner is on the chain of its key, and no other owner has the same key.
 *  (2) Between steps a live owner has a lock, an offer or a waiter.
 *
 * The counts themselves are compared with the locks by lock_check and with the waiters by
 * waiter_check.
 */
#include "core/owner.h"

#include "base/check.h"
#include "base/hash.h"
#include "core/state.h"

int owner_init(struct core *core, const uint32_t slots[])
{
    uint32_t slots_max = slots[RECORD_LOCK] + slots[RECORD_WAITER];
    struct owners *all = &core->owners;
    list_init(&all->waiting);
    list_init(&all->leaving);
    int err = table_init_linked(&all->table, slots_max, sizeof(struct owner));
    if (err == 0)
        err = hash_index_init_in(&all->by_key, &all->table);
    return err;
}

void owner_done(struct core *core)
{
    table_done(&core->owners.table);
    hash_index_done(&core->owners.by_key);
}

struct owner *owner_at(const struct core *core, uint32_t slot)
{
    return table_at(&core->owners.table, slot);
}

uint64_t owner_hash(const struct core *core, uint32_t client, uint32_t svid)
{
    return hash_number(core->seed, (uint64_t)client << 32 | svid);
}

static uint32_t find(const struct core *core, uint32_t client, uint32_t svid, uint64_t hash)
{
    const struct hash_index *by_key = &core->owners.by_key;
    uint32_t slot = hash_index_first(by_key, hash);
    for (; slot != SLOT_NONE; slot = hash_index_next(by_key, slot)) {
        const struct owner *owner = owner_at(core, slot);
        if (owner->client == client && owner->svid == svid)
            return slot;
    }
    return SLOT_NONE;
}

uint32_t owner_find(const struct core *core, uint32_t client, uint32_t svid)
{
    return find(core, client, svid, owner_hash(core, client, svid));
}

uint32_t owner_add(struct core *core, uint32_t client, uint32_t svid)
{
    struct owners *all = &core->owners;
    uint64_t hash = owner_hash(core, client, svid);
    uint32_t slot = find(core, client, svid, hash);
    if (slot != SLOT_NONE)
        return slot;
    slot = table_add(&all->table);
    CHECK(slot != SLOT_NONE); /* one for every lock and waiter, and one for the request at hand */
    *owner_at(core, slot) = (struct owner){.client = client, .svid = svid};
    list_init(&owner_at(core, slot)->waiting);
    list_init(&owner_at(core, slot)->leaving);
    hash_index_add(&all->by_key, hash, slot);
    return slot;
}

void owner_note(struct core *core, uint32_t slot)
{
    struct owners *all = &core->owners;
    struct owner *owner = owner_at(core, slot);
    bool is_waiting = owner->lock_count > 0 && owner->queued_count > 0;
    if (is_waiting == !list_is_empty(&owner->waiting))
        return;
    if (is_waiting)
        list_append(&all->waiting, &owner->waiting);
    else
        list_remove(&owner->waiting);
    all->waiting_count += is_waiting ? 1 : UINT32_MAX;
}

void owner_release(struct core *core, uint32_t slot)
{
    struct owners *all = &core->owners;
    struct owner *owner = owner_at(core, slot);
    if (owner->lock_count > 0 || owner->waiter_count > 0)
        return;
    CHECK(list_is_empty(&owner->waiting) && owner->waiters == 0);
    list_remove(&owner->leaving);
    hash_index_remove(&all->by_key, slot);
    table_remove(&all->table, slot);
}

void owner_check(const struct core *core)
{
    const struct table *table = &core->owners.table;
    table_check(table);
    for (uint32_t slot = table_next(table, SLOT_NONE); slot != SLOT_NONE;
         slot = table_next(table, slot)) {
        const struct owner *owner = owner_at(core, slot);
        CHECK(table_is_live(&core->clients.table, owner->client));
        CHECK(owner_find(core, owner->client, owner->svid) == slot);
        CHECK(owner->lock_count > 0 || owner->waiter_count > 0);
        CHECK(list_is_empty(&owner->waiting) ==
              (owner->lock_count == 0 || owner->queued_count == 0));
    }
}

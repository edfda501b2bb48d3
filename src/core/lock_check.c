/*
 * lock_check.c -- what must be true of all locks, as the files of core/lock say at their tops.
 */
#include "base/check.h"
#include "core/lock_element.h"
#include "core/lock_range.h"
#include "core/state.h"

static void check_element(const struct core *core, uint32_t slot)
{
    const struct lock *lock = lock_at(core, slot);
    CHECK(lock->claim.start <= lock->claim.end);
    CHECK(table_is_live(&core->owners.table, lock->claim.owner));
    CHECK(intern_references(&core->locks.ohs, lock->oh) > 0);
    CHECK((lock->flags & RECORD_LOCK_EXCLUSIVE) == 0);
    CHECK(lock_find_conflict(core, &lock->claim) == SLOT_NONE);
    if (lock->flags & RECORD_LOCK_OFFER) {
        CHECK(!lock->is_left_over || lock->link == SLOT_NONE);
        CHECK(!lock->is_lingering || lock->link == SLOT_NONE);
        return;
    }
    CHECK(!lock->is_left_over && !lock->is_lingering);
    CHECK(lock->link == lock_element_holding(core, lock->claim.owner, lock->claim.file));
}

static const struct holding *holding_of(const struct core *core, uint32_t slot)
{
    return table_at(&core->locks.holdings, slot);
}

/* Returns how many locks it has. */
static uint32_t check_holding(const struct core *core, uint32_t slot)
{
    const struct spans *own = &core->locks.own;
    const struct holding *holding = holding_of(core, slot);
    uint32_t count = span_check(own, holding->locks);
    CHECK(count > 0);
    CHECK(lock_element_holding(core, holding->owner, holding->file) == slot);
    uint32_t before = SLOT_NONE, at = span_first(own, holding->locks);
    for (; at != SLOT_NONE; before = at, at = span_next(own, holding->locks, at)) {
        const struct lock *lock = lock_at(core, at);
        CHECK(lock->claim.owner == holding->owner);
        CHECK(lock->claim.file == holding->file);
        CHECK(lock->link == slot);
        if (before == SLOT_NONE)
            continue;
        const struct lock *left = lock_at(core, before);
        CHECK(left->claim.end < lock->claim.start);
        CHECK(left->claim.end + 1 < lock->claim.start || !lock_element_is_alike(left, lock));
    }
    return count;
}

/* Returns how many elements of the client there are. */
static uint32_t check_client(const struct core *core, uint32_t slot)
{
    const struct chains *by_client = &core->locks.by_client;
    const struct client *client = client_at(core, slot);
    uint32_t count = 0;
    bool is_drained = client->life.drain_at == 0;
    uint32_t at = chains_first(by_client, slot);
    for (; at != SLOT_NONE; at = chains_next(by_client, at), count++) {
        CHECK(owner_at(core, lock_at(core, at)->claim.owner)->client == slot);
        is_drained = is_drained || client->life.drain_at == at + 1;
    }
    CHECK(is_drained); /* where it continues is an element of this client */
    CHECK(client->life.lock_count == count);
    uint32_t left_over = 0;
    for (at = chains_first(&core->locks.left_over, slot); at != SLOT_NONE;
         at = chains_next(&core->locks.left_over, at), left_over++)
        CHECK(lock_at(core, at)->is_left_over);
    CHECK(client->recovery.left_over_count == left_over);
    return count;
}

void lock_check(const struct core *core)
{
    const struct locks *all = &core->locks;
    const struct table *files = &core->files.handles.table, *clients = &core->clients.table;
    const struct table *owners = &core->owners.table;
    uint32_t in_files = 0, of_clients = 0, of_owners = 0, held = 0, left_over = 0, near = 0, slot;
    table_check(&all->table);
    table_check(&all->holdings);
    table_check(&all->ohs.table);
    for (slot = table_next(files, SLOT_NONE); slot != SLOT_NONE; slot = table_next(files, slot)) {
        const struct file *file = file_at(core, slot);
        CHECK(span_check(&all->by_start, file->locks) == file->lock_count);
        in_files += file->lock_count;
        for (uint32_t at = span_first(&all->by_start, file->locks); at != SLOT_NONE;
             at = span_next(&all->by_start, file->locks, at)) {
            CHECK(lock_at(core, at)->claim.file == slot);
            check_element(core, at);
        }
    }
    for (slot = table_next(&all->holdings, SLOT_NONE); slot != SLOT_NONE;
         slot = table_next(&all->holdings, slot))
        held += check_holding(core, slot);
    for (slot = table_next(clients, SLOT_NONE); slot != SLOT_NONE; slot = table_next(clients, slot))
        of_clients += check_client(core, slot);
    for (slot = table_next(owners, SLOT_NONE); slot != SLOT_NONE; slot = table_next(owners, slot)) {
        const struct owner *owner = owner_at(core, slot);
        of_owners += owner->lock_count;
        if (owner->near != 0)
            CHECK(holding_of(core, owner->near - 1)->owner == slot);
        near += owner->near != 0;
        left_over += tree_check(&all->left_over_own, owner->left_over);
    }
    hash_index_check(&all->far_holdings);
    CHECK(near + all->far_holdings.count == all->holdings.count);
    CHECK(in_files == all->table.count);
    CHECK(of_clients == all->table.count);
    CHECK(of_owners == all->table.count);
    CHECK(left_over == core->offers_left);
    CHECK(held + all->offer_count == all->table.count);
}

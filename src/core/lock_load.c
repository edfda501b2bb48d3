/*
 * lock_load.c -- locks and their records, and what must be true of all of them; see lock.h.
 *
 * A record that contradicts what is already loaded is damage: the lock table never wrote two such
 * records in one batch, and a batch is stored whole. It is refused, and the caller reports it and
 * marks the store incomplete (D16).
 *
 * An offer comes back without its waiter: in reclaim mode waiters are not stored (R-BLK-14), and
 * for other owners the offer stands like a lock all the same.
 */
#include "base/check.h"
#include "core/lock_element.h"
#include "core/lock_range.h"
#include "core/state.h"

/* Does the owner hold something in this range, or something alike right beside it? */
static bool meets_own(const struct core *core, const struct lock *fresh)
{
    struct claim reach = claim_widened(&fresh->claim);
    uint32_t slot = lock_range_first_own(core, &reach);
    for (; slot != SLOT_NONE; slot = tree_next(&core->locks.own, slot)) {
        const struct lock *lock = lock_at(core, slot);
        if (!claim_overlaps(&lock->claim, &reach))
            return false;
        if (claim_overlaps(&lock->claim, &fresh->claim) || lock_element_is_alike(lock, fresh))
            return true;
    }
    return false;
}

static bool is_sound(const struct core *core, const struct lock *fresh)
{
    if (fresh->claim.file == SLOT_NONE)
        return true; /* nothing is on that file yet */
    if (lock_find_conflict(core, &fresh->claim) != SLOT_NONE)
        return false;
    return (fresh->flags & RECORD_LOCK_OFFER) || fresh->claim.owner == SLOT_NONE ||
           !meets_own(core, fresh);
}

bool lock_load(struct core *core, uint32_t slot, const struct record_lock *record)
{
    uint32_t client = record->of.client;
    if (!table_is_live(&core->clients.table, client) ||
        client_at(core, client)->id != record->of.client_id || record->start > record->end ||
        record->of.incarnation > client_at(core, client)->incarnation)
        return false;
    struct lock loaded = {
        .claim = {.start = record->start,
                  .end = record->end,
                  .owner = owner_find(core, client, record->svid),
                  .file = file_find(core, record->fh),
                  .exclusive = record->flags & RECORD_LOCK_EXCLUSIVE},
        .len = record->len,
        .granted_ns = record->granted_ns,
        .holding = SLOT_NONE,
        .waiter = SLOT_NONE,
        .callback = SLOT_NONE,
        .state = record->of.state,
        .incarnation = record->of.incarnation,
        .flags = record->flags & ~(uint32_t)RECORD_LOCK_EXCLUSIVE,
    };
    if (!is_sound(core, &loaded) || !table_add_at(&core->locks.table, slot))
        return false;
    /* core_new reserved room for the bytes of all that is stored. */
    loaded.claim.owner = owner_add(core, client, record->svid);
    loaded.claim.file = file_add(core, record->fh);
    loaded.oh = intern_add(&core->locks.ohs, record->oh);
    CHECK(loaded.claim.file != SLOT_NONE);
    CHECK(loaded.oh != SLOT_NONE);
    lock_element_load(core, slot, &loaded);
    (void)intern_release(&core->locks.ohs, loaded.oh);
    file_release(core, loaded.claim.file);
    return true;
}

uint32_t lock_encode(const struct core *core, uint32_t slot, uint8_t *buffer)
{
    const struct lock *lock = lock_at(core, slot);
    const struct owner *owner = owner_at(core, lock->claim.owner);
    struct record_lock record = {
        .of = {.client_id = client_at(core, owner->client)->id,
               .client = owner->client,
               .incarnation = lock->incarnation,
               .state = lock->state},
        .granted_ns = lock->granted_ns,
        .start = lock->claim.start,
        .end = lock->claim.end,
        .len = lock->len,
        .svid = owner->svid,
        .flags = lock->flags | (lock->claim.exclusive ? RECORD_LOCK_EXCLUSIVE : 0U),
        .fh = file_handle(core, lock->claim.file),
        .oh = intern_bytes(&core->locks.ohs, lock->oh),
    };
    return record_put_lock(buffer, slot, &record);
}

/* ---- what must be true ---- */

static bool is_same_reach(const struct lock_reach *a, const struct lock_reach *b)
{
    return a->owner == b->owner && a->other_owner == b->other_owner &&
           (a->owner == SLOT_NONE || a->end == b->end) &&
           (a->other_owner == SLOT_NONE || a->other_end == b->other_end);
}

/* By computing them again: the children's are checked like its own. */
static void check_sums(const struct core *core, uint32_t slot)
{
    const struct tree *tree = &core->locks.by_start;
    struct lock *lock = lock_at(core, slot);
    struct lock_reach any = lock->any, exclusives = lock->exclusives;
    (void)lock_range_sum(tree->context, slot, tree_left(tree, slot), tree_right(tree, slot));
    CHECK(is_same_reach(&any, &lock->any));
    CHECK(is_same_reach(&exclusives, &lock->exclusives));
}

static void check_element(const struct core *core, uint32_t slot)
{
    const struct lock *lock = lock_at(core, slot);
    CHECK(lock->claim.start <= lock->claim.end);
    CHECK(table_is_live(&core->owners.table, lock->claim.owner));
    CHECK(intern_references(&core->locks.ohs, lock->oh) > 0);
    CHECK((lock->flags & RECORD_LOCK_EXCLUSIVE) == 0);
    CHECK(lock_find_conflict(core, &lock->claim) == SLOT_NONE);
    check_sums(core, slot);
    if (lock->flags & RECORD_LOCK_OFFER) {
        CHECK(lock->holding == SLOT_NONE);
        CHECK(!lock->is_left_over || lock->waiter == SLOT_NONE);
        return;
    }
    CHECK(lock->waiter == SLOT_NONE && !lock->is_left_over);
    CHECK(lock->callback == SLOT_NONE);
    CHECK(lock->holding == lock_element_holding(core, lock->claim.owner, lock->claim.file));
}

/* Returns how many locks it has. */
static uint32_t check_holding(const struct core *core, uint32_t slot)
{
    const struct tree *own = &core->locks.own;
    const struct holding *holding = table_at(&core->locks.holdings, slot);
    CHECK(holding->count > 0);
    CHECK(tree_check(own, holding->locks) == holding->count);
    CHECK(lock_element_holding(core, holding->owner, holding->file) == slot);
    uint32_t before = SLOT_NONE, at = tree_first(own, holding->locks);
    for (; at != SLOT_NONE; before = at, at = tree_next(own, at)) {
        const struct lock *lock = lock_at(core, at);
        CHECK(lock->claim.owner == holding->owner);
        CHECK(lock->claim.file == holding->file);
        CHECK(lock->holding == slot);
        if (before == SLOT_NONE)
            continue;
        const struct lock *left = lock_at(core, before);
        CHECK(left->claim.end < lock->claim.start);
        CHECK(left->claim.end + 1 < lock->claim.start || !lock_element_is_alike(left, lock));
    }
    return holding->count;
}

/* Returns how many elements of the client there are. */
static uint32_t check_client(const struct core *core, uint32_t slot)
{
    const struct chains *by_client = &core->locks.by_client;
    const struct client *client = client_at(core, slot);
    uint32_t count = 0;
    bool is_drained = client->drain_at == 0;
    uint32_t at = chains_first(by_client, slot);
    for (; at != SLOT_NONE; at = chains_next(by_client, at), count++) {
        CHECK(owner_at(core, lock_at(core, at)->claim.owner)->client == slot);
        is_drained = is_drained || client->drain_at == at + 1;
    }
    CHECK(is_drained); /* where it goes on is an element of this client */
    CHECK(client->lock_count == count);
    uint32_t left_over = 0;
    for (at = chains_first(&core->locks.left_over, slot); at != SLOT_NONE;
         at = chains_next(&core->locks.left_over, at), left_over++)
        CHECK(lock_at(core, at)->is_left_over);
    CHECK(client->left_over_count == left_over);
    return count;
}

void lock_check(const struct core *core)
{
    const struct locks *all = &core->locks;
    const struct table *files = &core->files.handles.table, *clients = &core->clients.table;
    const struct table *owners = &core->owners.table;
    uint32_t in_files = 0, of_clients = 0, of_owners = 0, held = 0, left_over = 0, slot;
    table_check(&all->table);
    table_check(&all->holdings);
    table_check(&all->ohs.table);
    for (slot = table_next(files, SLOT_NONE); slot != SLOT_NONE; slot = table_next(files, slot)) {
        const struct file *file = file_at(core, slot);
        CHECK(tree_check(&all->by_start, file->locks) == file->lock_count);
        in_files += file->lock_count;
        for (uint32_t at = tree_first(&all->by_start, file->locks); at != SLOT_NONE;
             at = tree_next(&all->by_start, at)) {
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
        of_owners += owner_at(core, slot)->lock_count;
        left_over += tree_check(&all->left_over_own, owner_at(core, slot)->left_over);
    }
    CHECK(in_files == all->table.count);
    CHECK(of_clients == all->table.count);
    CHECK(of_owners == all->table.count);
    CHECK(left_over == core->offers_left);
    CHECK(held + all->offer_count == all->table.count);
}

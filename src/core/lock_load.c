/*
 * lock_load.c -- locks and their records; see lock.h.
 *
 * A record that contradicts what is already loaded is damage: the lock table never wrote two such
 * records in one batch, and a batch is stored whole. It is refused, and the caller reports it and
 * marks the store incomplete (D16).
 *
 * An offer comes back without its waiter: in reclaim mode waiters are not stored (R-BLK-14), and
 * the offer still blocks other owners like a lock.
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
        client_at(core, client)->stored.id != record->of.client_id || record->start > record->end ||
        record->of.incarnation > client_at(core, client)->stored.incarnation)
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
        .of = {.client_id = client_at(core, owner->client)->stored.id,
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

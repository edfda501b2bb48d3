/*
 * lock_load.c -- locks and their records; see lock.h.
 *
 * A record that contradicts what is already loaded is damage: the lock table never wrote two such
 * records in one batch, and a batch is stored whole. It is refused, reported, and marks the store
 * incomplete (D16).
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
    for (; slot != SLOT_NONE; slot = lock_range_next_own(core, slot)) {
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
    return lock_find_conflict(core, &fresh->claim) == SLOT_NONE &&
           ((fresh->flags & RECORD_LOCK_OFFER) || !meets_own(core, fresh));
}

/* False: it contradicts one that is indexed. */
static bool index_or_unload(struct core *core, uint32_t slot)
{
    bool is_good = is_sound(core, lock_at(core, slot));
    if (is_good)
        lock_element_index(core, slot);
    else
        lock_element_unload(core, slot);
    return is_good;
}

bool lock_load(struct core *core, uint32_t slot, const struct record_lock *record)
{
    uint32_t client = record->of.client;
    if (!table_is_live(&core->clients.table, client) ||
        client_at(core, client)->stored.id != record->of.client_id || record->start > record->end ||
        record->of.incarnation > client_at(core, client)->stored.incarnation ||
        !table_add_at(&core->locks.table, slot))
        return false;
    /* core_new reserved room for the bytes of all that is stored. */
    struct lock loaded = {
        .claim = {.start = record->start,
                  .end = record->end,
                  .owner = owner_add(core, client, record->svid),
                  .file = file_add(core, record->fh),
                  .exclusive = record->flags & RECORD_LOCK_EXCLUSIVE},
        .len = record->len,
        .granted_ns = record->granted_ns,
        .oh = intern_add(&core->locks.ohs, record->oh),
        .link = SLOT_NONE,
        .state = record->of.state,
        .incarnation = record->of.incarnation,
        .flags = (uint8_t)(record->flags & ~(uint32_t)RECORD_LOCK_EXCLUSIVE),
    };
    CHECK(loaded.claim.file != SLOT_NONE);
    CHECK(loaded.oh != SLOT_NONE);
    lock_element_load(core, slot, &loaded);
    (void)intern_release(&core->locks.ohs, loaded.oh);
    file_release(core, loaded.claim.file);
    if (core->locks.is_built)
        return index_or_unload(core, slot);
    span_pile_add(&core->locks.by_start, &file_at(core, loaded.claim.file)->locks, slot);
    return true;
}

/* ---- all of them ---- */

static bool comes_before(const void *context, uint32_t a, uint32_t b)
{
    (void)context;
    return a < b;
}

/* One after the other, as they came: of two that contradict each other the first one stays. */
static void build_with_care(struct core *core, span_root *locks)
{
    struct spans *by_start = &core->locks.by_start;
    span_pile_sort(by_start, locks, comes_before);
    uint32_t slot = span_pile_first(*locks), next;
    *locks = 0;
    for (; slot != SLOT_NONE; slot = next) {
        next = span_pile_next(by_start, slot);
        if (index_or_unload(core, slot))
            continue;
        core->locks.refused_count++;
        recover_refuse(core, RECORD_LOCK, slot);
    }
}

/* Piles a held lock up in its holding, after those that begin before it. False: it overlaps the
 * last one, or is alike and touches it. */
static bool join_own(struct core *core, uint32_t slot)
{
    const struct lock *lock = lock_at(core, slot);
    struct holding *holding = lock_element_enter_holding(core, slot);
    uint32_t last = span_pile_first(holding->locks);
    span_pile_add(&core->locks.own, &holding->locks, slot);
    if (last == SLOT_NONE)
        return true;
    const struct lock *before = lock_at(core, last);
    return before->claim.end < lock->claim.start &&
           (before->claim.end + 1 < lock->claim.start || !lock_element_is_alike(before, lock));
}

/* Is it in conflict with one of those that begin before it? Then it is one of them. */
static bool is_met(struct span_sum *seen, const struct claim *claim)
{
    bool is = span_reach_first(&seen->any, &seen->exclusives, 0, 1, claim) == 0;
    span_reach_add(seen, claim);
    return is;
}

/* Gives every held lock of a sorted pile its holding. False: two contradict each other, and nothing
 * is as it should be. */
static bool join_all(struct core *core, span_root pile)
{
    struct span_sum seen;
    span_reach_clear(&seen);
    uint32_t slot = span_pile_first(pile);
    for (; slot != SLOT_NONE; slot = span_pile_next(&core->locks.by_start, slot)) {
        const struct lock *lock = lock_at(core, slot);
        if (is_met(&seen, &lock->claim) ||
            ((lock->flags & RECORD_LOCK_OFFER) == 0 && !join_own(core, slot)))
            return false;
    }
    return true;
}

static void leave_all(struct core *core, span_root pile)
{
    uint32_t slot = span_pile_first(pile);
    for (; slot != SLOT_NONE; slot = span_pile_next(&core->locks.by_start, slot)) {
        uint32_t holding = lock_holding(lock_at(core, slot));
        if (holding == SLOT_NONE)
            continue;
        span_root *own = &((struct holding *)table_at(&core->locks.holdings, holding))->locks;
        if (*own == slot + 1) /* on top of its pile, and so the last one that is met */
            *own = 0;
        lock_element_leave_holding(core, slot);
    }
}

/* A holding is built at its last lock, which is on top of its pile and met after all others. */
static void build_own(struct core *core, span_root pile)
{
    struct spans *own = &core->locks.own;
    uint32_t slot = span_pile_first(pile);
    for (; slot != SLOT_NONE; slot = span_pile_next(&core->locks.by_start, slot)) {
        uint32_t at = lock_holding(lock_at(core, slot));
        struct holding *holding = at == SLOT_NONE ? NULL : table_at(&core->locks.holdings, at);
        if (holding == NULL || holding->locks != slot + 1)
            continue;
        span_pile_reverse(own, &holding->locks);
        span_pile_build(own, &holding->locks);
    }
}

/*
 * Records come in the order of slots, and every insertion would walk a tree that is in no cache. So
 * the elements of a file are only piled up until all are there.
 */
void lock_build(struct core *core)
{
    struct locks *all = &core->locks;
    const struct table *files = &core->files.handles.table;
    if (all->is_built)
        return;
    all->is_built = true;
    uint32_t at = table_next(files, SLOT_NONE);
    for (; at != SLOT_NONE; at = table_next(files, at)) {
        span_root *locks = &file_at(core, at)->locks;
        span_pile_reverse(&all->by_start, locks); /* the newest is on top */
        span_pile_sort(&all->by_start, locks, NULL);
        if (join_all(core, *locks)) {
            build_own(core, *locks);
            span_pile_build(&all->by_start, locks);
        } else {
            leave_all(core, *locks);
            build_with_care(core, locks);
        }
    }
}

/* ---- records ---- */

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

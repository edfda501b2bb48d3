/*
 * unsettled.c -- ranges that wait to be reclaimed; see unsettled.h.
 *
 * The ranges of one owner in one file never overlap: they come from its held locks, which do not.
 *
 * Always true, and asserted by unsettled_check():
 *  (1) A range is inside a lock of its owner that is not unsettled as a whole.
 *  (2) On the chain of a client's locks none before recovery.unsettled_at is: what is new comes to
 *      its front, and is settled.
 *
 * What a claim settles or meets is found by a walk over the locks of its owner that it overlaps, as
 * everything does that takes or gives up a range.
 */
#include "core/unsettled.h"

#include "base/check.h"
#include "core/lock_element.h"
#include "core/lock_range.h"
#include "core/missed.h"
#include "core/state.h"

struct claim *unsettled_at(const struct core *core, uint32_t slot)
{
    return table_at(&core->unsettled.table, slot);
}

static bool comes_before(const void *context, uint32_t a, uint32_t b)
{
    return unsettled_at(context, a)->start < unsettled_at(context, b)->start;
}

int unsettled_init(struct core *core, const uint32_t slots[])
{
    uint32_t slots_max = 2 * slots[RECORD_LOCK];
    struct unsettled *all = &core->unsettled;
    int err = table_init(&all->table, slots_max, sizeof(struct claim));
    if (err == 0)
        err = tree_init(&all->by_start, slots_max, core->seed, comes_before, NULL, core);
    if (err == 0)
        err = chains_init(&all->by_client, core->clients.table.max, slots_max);
    return err;
}

void unsettled_done(struct core *core)
{
    table_done(&core->unsettled.table);
    tree_done(&core->unsettled.by_start);
    chains_done(&core->unsettled.by_client);
}

/* Where the ranges of this owner in this file are; NULL: it holds nothing there. */
static struct holding *holding_of(const struct core *core, const struct claim *claim)
{
    uint32_t slot = lock_element_holding(core, claim->owner, claim->file);
    return slot == SLOT_NONE ? NULL : table_at(&core->locks.holdings, slot);
}

static struct client *client_of(const struct core *core, uint32_t owner)
{
    return client_at(core, owner_at(core, owner)->client);
}

/* One range more in the table. Its client counts it already, or is about to. */
static void put_range(struct core *core, struct holding *holding, const struct claim *claim)
{
    struct unsettled *all = &core->unsettled;
    uint32_t slot = table_add(&all->table);
    CHECK(holding != NULL);
    CHECK(slot != SLOT_NONE);
    *unsettled_at(core, slot) = *claim;
    tree_add(&all->by_start, &holding->unsettled, slot);
    chains_add(&all->by_client, owner_at(core, holding->owner)->client, slot);
}

void unsettled_add(struct core *core, const struct claim *claim)
{
    struct client *client = client_of(core, claim->owner);
    put_range(core, holding_of(core, claim), claim);
    missed_more(core, client, &client->recovery.unsettled_count);
}

static void remove_range(struct core *core, struct holding *holding, uint32_t slot)
{
    struct unsettled *all = &core->unsettled;
    struct client *client = client_of(core, holding->owner);
    tree_remove(&all->by_start, &holding->unsettled, slot);
    chains_remove(&all->by_client, owner_at(core, holding->owner)->client, slot);
    missed_less(core, client, &client->recovery.unsettled_count);
    table_remove(&all->table, slot);
}

/* ---- whole locks ---- */

void unsettled_add_lock(struct core *core, uint32_t slot)
{
    struct lock *lock = lock_at(core, slot);
    uint32_t client = owner_at(core, lock->claim.owner)->client;
    struct client_recovery *recovery = &client_at(core, client)->recovery;
    CHECK(!lock->is_unsettled && lock_holding(lock) != SLOT_NONE);
    lock->is_unsettled = true;
    core->unsettled.whole_count++;
    recovery->unsettled_at = chains_first(&core->locks.by_client, client) + 1;
    missed_more(core, client_at(core, client), &recovery->unsettled_count);
}

static void clear_bit(struct core *core, struct lock *lock)
{
    lock->is_unsettled = false;
    core->unsettled.whole_count--;
}

static void settle_lock(struct core *core, struct lock *lock)
{
    struct client *client = client_of(core, lock->claim.owner);
    clear_bit(core, lock);
    missed_less(core, client, &client->recovery.unsettled_count);
}

void unsettled_detach(struct core *core, uint32_t slot)
{
    struct lock *lock = lock_at(core, slot);
    if (!lock->is_unsettled)
        return;
    clear_bit(core, lock);
    put_range(core, table_at(&core->locks.holdings, lock_holding(lock)), &lock->claim);
}

/* The first from here on that is unsettled as a whole and begins before the claim ends. */
static uint32_t whole_from(const struct core *core, uint32_t slot, const struct claim *claim)
{
    while (slot != SLOT_NONE && !lock_at(core, slot)->is_unsettled)
        slot = lock_at(core, slot)->claim.start <= claim->end ? lock_range_next_own(core, slot)
                                                              : SLOT_NONE;
    return slot != SLOT_NONE && lock_at(core, slot)->claim.start <= claim->end ? slot : SLOT_NONE;
}

static uint32_t first_whole(const struct core *core, const struct claim *claim)
{
    if (core->unsettled.whole_count == 0)
        return SLOT_NONE;
    return whole_from(core, lock_range_first_own(core, claim), claim);
}

/* Locks inside the claim are settled; of others that it overlaps, it will find ranges. */
static void settle_whole(struct core *core, const struct claim *claim)
{
    uint32_t slot = first_whole(core, claim), next;
    for (; slot != SLOT_NONE; slot = next) {
        next = whole_from(core, lock_range_next_own(core, slot), claim);
        if (claim_is_inside(&lock_at(core, slot)->claim, claim))
            settle_lock(core, lock_at(core, slot));
        else
            unsettled_detach(core, slot);
    }
}

/* ---- all of them ---- */

bool unsettled_has_room(const struct core *core, uint32_t count)
{
    return count <= core->unsettled.table.max - unsettled_count(core);
}

void unsettled_clear(struct core *core)
{
    const struct table *table = &core->unsettled.table, *locks = &core->locks.table;
    uint32_t slot = table_next(table, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(table, slot))
        remove_range(core, holding_of(core, unsettled_at(core, slot)), slot);
    slot = SLOT_NONE;
    while (core->unsettled.whole_count > 0 && (slot = table_next(locks, slot)) != SLOT_NONE)
        if (lock_at(core, slot)->is_unsettled)
            settle_lock(core, lock_at(core, slot));
}

/* The first range that does not end before the claim begins. They do not overlap, so their ends are
 * in order too. */
static uint32_t first_reaching(const struct core *core, const struct holding *holding,
                               const struct claim *claim)
{
    const struct tree *tree = &core->unsettled.by_start;
    uint32_t slot = tree_top(holding->unsettled), found = SLOT_NONE;
    while (slot != SLOT_NONE) {
        if (unsettled_at(core, slot)->end >= claim->start) {
            found = slot;
            slot = tree_left(tree, slot);
        } else {
            slot = tree_right(tree, slot);
        }
    }
    return found;
}

bool unsettled_settle(struct core *core, const struct claim *claim)
{
    if (unsettled_count(core) == 0) /* as always but after a restart */
        return true;
    settle_whole(core, claim);
    struct holding *holding = holding_of(core, claim);
    if (holding == NULL || holding->unsettled == 0)
        return true;
    uint32_t slot = first_reaching(core, holding, claim), next;
    for (; slot != SLOT_NONE && unsettled_at(core, slot)->start <= claim->end; slot = next) {
        struct claim *range = unsettled_at(core, slot);
        next = tree_next(&core->unsettled.by_start, slot);
        struct claim_rests rests = claim_rests(range, claim);
        if (rests.has_left && rests.has_right) {
            uint32_t client = owner_at(core, claim->owner)->client;
            if (!unsettled_has_room(core, 1) ||
                client_at(core, client)->recovery.unsettled_count >= lock_most_pieces(core, client))
                return false; /* it was the only one that overlaps */
            MARK("unsettled_split");
            *range = rests.left;
            unsettled_add(core, &rests.right);
        } else if (rests.has_left) {
            *range = rests.left;
        } else if (rests.has_right) {
            *range = rests.right; /* still before its successor */
        } else {
            remove_range(core, holding, slot);
        }
    }
    return true;
}

static bool meets(const struct core *core, const struct holding *holding, const struct claim *claim)
{
    if (holding == NULL || holding->unsettled == 0)
        return false;
    uint32_t slot = first_reaching(core, holding, claim);
    return slot != SLOT_NONE && claim_overlaps(unsettled_at(core, slot), claim);
}

bool unsettled_meets(const struct core *core, const struct claim *claim)
{
    return unsettled_count(core) > 0 &&
           (first_whole(core, claim) != SLOT_NONE || meets(core, holding_of(core, claim), claim));
}

bool unsettled_meets_lock(const struct core *core, const struct lock *lock)
{
    return lock->is_unsettled ||
           (core->unsettled.table.count > 0 &&
            meets(core, table_at(&core->locks.holdings, lock_holding(lock)), &lock->claim));
}

bool unsettled_of_client(struct core *core, uint32_t client, uint32_t *budget, struct claim *ret)
{
    struct client_recovery *recovery = &client_at(core, client)->recovery;
    uint32_t slot = chains_first(&core->unsettled.by_client, client);
    if (recovery->unsettled_count == 0 || *budget == 0)
        return false;
    --*budget;
    if (slot != SLOT_NONE) {
        *ret = *unsettled_at(core, slot);
        return true;
    }
    for (;; --*budget) {
        CHECK(recovery->unsettled_at != 0);
        slot = recovery->unsettled_at - 1;
        if (lock_at(core, slot)->is_unsettled)
            break;
        if (*budget == 0)
            return false;
        recovery->unsettled_at = chains_next(&core->locks.by_client, slot) + 1;
    }
    *ret = lock_at(core, slot)->claim;
    return true;
}

uint32_t unsettled_count(const struct core *core)
{
    return core->unsettled.whole_count + core->unsettled.table.count;
}

/* Returns how many of a client's locks are unsettled as a whole. */
static uint32_t check_locks(const struct core *core, uint32_t client)
{
    uint32_t count = 0, slot = chains_first(&core->locks.by_client, client);
    bool is_behind = false;
    for (; slot != SLOT_NONE; slot = chains_next(&core->locks.by_client, slot)) {
        is_behind = is_behind || client_at(core, client)->recovery.unsettled_at == slot + 1;
        if (!lock_at(core, slot)->is_unsettled)
            continue;
        CHECK(is_behind && lock_holding(lock_at(core, slot)) != SLOT_NONE);
        count++;
    }
    return count;
}

void unsettled_check(const struct core *core)
{
    const struct unsettled *all = &core->unsettled;
    table_check(&all->table);
    uint32_t slot = table_next(&core->clients.table, SLOT_NONE), whole_count = 0, counted = 0;
    for (; slot != SLOT_NONE; slot = table_next(&core->clients.table, slot)) {
        whole_count += check_locks(core, slot);
        counted += client_at(core, slot)->recovery.unsettled_count;
    }
    CHECK(whole_count == all->whole_count && counted == unsettled_count(core));
    slot = table_next(&all->table, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(&all->table, slot)) {
        const struct claim *range = unsettled_at(core, slot);
        CHECK(range->start <= range->end);
        uint32_t held = lock_range_first_own(core, range);
        CHECK(held != SLOT_NONE);
        CHECK(claim_is_inside(range, &lock_at(core, held)->claim));
        CHECK(!lock_at(core, held)->is_unsettled);
        uint32_t next = tree_next(&all->by_start, slot);
        CHECK(next == SLOT_NONE || unsettled_at(core, next)->start > range->end);
    }
}

/*
 * unsettled.c -- ranges that wait to be reclaimed; see unsettled.h.
 *
 * The ranges of one owner in one file never overlap: they come from its held locks, which do not.
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

static void add_to(struct core *core, struct holding *holding, const struct claim *claim)
{
    struct unsettled *all = &core->unsettled;
    uint32_t slot = table_add(&all->table);
    CHECK(holding != NULL);
    CHECK(slot != SLOT_NONE);
    *unsettled_at(core, slot) = *claim;
    tree_add(&all->by_start, &holding->unsettled, slot);
    chains_add(&all->by_client, owner_at(core, holding->owner)->client, slot);
    struct client *client = client_at(core, owner_at(core, holding->owner)->client);
    missed_more(core, client, &client->recovery.unsettled_count);
}

void unsettled_add(struct core *core, const struct claim *claim)
{
    add_to(core, holding_of(core, claim), claim);
}

void unsettled_add_lock(struct core *core, const struct lock *lock)
{
    add_to(core, table_at(&core->locks.holdings, lock_holding(lock)), &lock->claim);
}

static void remove_from(struct core *core, struct holding *holding, uint32_t slot)
{
    struct unsettled *all = &core->unsettled;
    tree_remove(&all->by_start, &holding->unsettled, slot);
    chains_remove(&all->by_client, owner_at(core, holding->owner)->client, slot);
    struct client *client = client_at(core, owner_at(core, holding->owner)->client);
    missed_less(core, client, &client->recovery.unsettled_count);
    table_remove(&all->table, slot);
}

bool unsettled_has_room(const struct core *core, uint32_t count)
{
    const struct table *table = &core->unsettled.table;
    return count <= table->max - table->count;
}

void unsettled_clear(struct core *core)
{
    const struct table *table = &core->unsettled.table;
    uint32_t slot = table_next(table, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(table, slot))
        remove_from(core, holding_of(core, unsettled_at(core, slot)), slot);
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
            remove_from(core, holding, slot);
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
    return unsettled_count(core) > 0 && meets(core, holding_of(core, claim), claim);
}

bool unsettled_meets_lock(const struct core *core, const struct lock *lock)
{
    return meets(core, table_at(&core->locks.holdings, lock_holding(lock)), &lock->claim);
}

uint32_t unsettled_of_client(const struct core *core, uint32_t client)
{
    return chains_first(&core->unsettled.by_client, client);
}

uint32_t unsettled_count(const struct core *core)
{
    return core->unsettled.table.count;
}

void unsettled_check(const struct core *core)
{
    const struct unsettled *all = &core->unsettled;
    table_check(&all->table);
    uint32_t slot = table_next(&all->table, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(&all->table, slot)) {
        const struct claim *range = unsettled_at(core, slot);
        CHECK(range->start <= range->end);
        uint32_t held = lock_range_first_own(core, range);
        CHECK(held != SLOT_NONE);
        CHECK(claim_is_inside(range, &lock_at(core, held)->claim));
        uint32_t next = tree_next(&all->by_start, slot);
        CHECK(next == SLOT_NONE || unsettled_at(core, next)->start > range->end);
    }
}

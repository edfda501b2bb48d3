/*
 * lock.c -- what becomes of an owner's locks when it takes or gives up a range; see lock.h.
 *
 * Searches are in lock_range.c, single elements in lock_element.c, what a new lock does to those
 * beside it in lock_plan.c, offers in lock_offer.c, records in lock_load.c.
 *
 * Always true, and asserted by lock_check():
 *  (1) No two elements of different owners that overlap are in each other's way.
 *  (2) The held locks of one owner in one file do not overlap, and alike ones do not touch.
 *  (3) An element whose client rebooted (it is "doomed") is freed whole when its owner takes or
 *      gives up any of its bytes: nobody relies on it any more, and rests of it would hide from
 *      lock_drain.
 *
 * The table has more slots than locks may be taken (see core_new). Takes stop at the limit; what
 * comes out of the reserve are the second and third piece of a take or an UNLOCK, and accepted
 * offers. UNLOCK fails when also the reserve is used up, and only if it splits (R-RNG-5).
 */
#include "core/lock.h"

#include "base/check.h"
#include "core/lock_element.h"
#include "core/lock_plan.h"
#include "core/lock_range.h"
#include "core/state.h"

static uint32_t max_u32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

int lock_init(struct core *core, const uint32_t slots[])
{
    uint32_t slots_max = slots[RECORD_LOCK];
    struct locks *all = &core->locks;
    const struct core_limits *limits = &core->limits;
    CHECK(core->clients.table.slots != NULL); /* by_client has a chain for each of its slots */
    /* Shares and waiters keep theirs in the same pool. */
    uint32_t ohs_max = slots_max + max_u32(limits->locks_max, limits->slots_used[RECORD_SHARE]) +
                       max_u32(limits->waiters_max, limits->slots_used[RECORD_WAITER]);
    int err = table_init(&all->table, slots_max, sizeof(struct lock));
    if (err == 0)
        err = span_init(&all->by_start, slots_max, lock_range_claim, core);
    if (err == 0)
        err = span_init(&all->own, slots_max, lock_range_claim, core);
    if (err == 0)
        err = chains_init(&all->by_client, core->clients.table.max, slots_max);
    if (err == 0)
        err = leftover_init(core, slots_max);
    if (err == 0)
        err = table_init_linked(&all->holdings, slots_max, sizeof(struct holding));
    if (err == 0)
        err = hash_index_init_in(&all->far_holdings, &all->holdings);
    if (err == 0)
        err = intern_init(&all->ohs, core->arena, ohs_max, core->seed);
    return err;
}

void lock_done(struct core *core)
{
    struct locks *all = &core->locks;
    table_done(&all->table);
    span_done(&all->by_start);
    span_done(&all->own);
    chains_done(&all->by_client);
    leftover_done(core);
    table_done(&all->holdings);
    hash_index_done(&all->far_holdings);
    intern_done(&all->ohs);
}

struct lock *lock_at(const struct core *core, uint32_t slot)
{
    return table_at(&core->locks.table, slot);
}

enum admission lock_room(const struct core *core, uint32_t client)
{
    const struct core_limits *limits = &core->limits;
    uint32_t count = client == SLOT_NONE ? 0 : client_at(core, client)->life.lock_count;
    if (core->locks.table.count >= limits->locks_max)
        return ADMIT_LIMIT;
    if (count >= limits->locks_per_client_max)
        return ADMIT_CLIENT;
    if (client != SLOT_NONE && !quota_admits(core, client_at(core, client)->quota, QUOTA_LOCK))
        return ADMIT_ADDRESS;
    if (arena_used(core->arena) >= limits->bytes_max)
        return ADMIT_BYTES;
    if (!core->has_room)
        return ADMIT_STORE;
    return ADMIT_NEW;
}

/*
 * The reserve is for everybody: one client gets as much of it again as it may hold (R-RNG-5). What
 * was stored under larger limits it may hold, and cut, like anything else.
 */
uint64_t lock_most_pieces(const struct core *core, uint32_t client)
{
    const struct core_limits *limits = &core->limits;
    bool is_few = limits->locks_per_client_max < limits->locks_max;
    uint32_t may_hold = max_u32(is_few ? limits->locks_per_client_max : limits->locks_max,
                                client_at(core, client)->recovery.loaded_count);
    return UINT64_C(2) * may_hold + LOCK_ACCEPT_PUTS_MAX;
}

static bool may_split(const struct core *core, uint32_t owner)
{
    uint32_t client = owner_at(core, owner)->client;
    return lock_element_free_count(core) > 0 &&
           client_at(core, client)->life.lock_count < lock_most_pieces(core, client);
}

bool lock_take(struct core *core, const struct lock_want *want)
{
    struct lock fresh;
    CHECK(lock_find_conflict(core, &want->claim) == SLOT_NONE);
    if (!lock_plan_shape(core, want, &fresh))
        return false;
    fresh.asked = ++core->locks.serial;
    struct lock_plan plan = lock_plan_make(core, &fresh);
    bool has_slots = plan.slots <= lock_element_free_count(core) &&
                     (plan.slots == 0 || may_split(core, want->claim.owner)) &&
                     unsettled_settle(core, &want->claim);
    if (has_slots) {
        lock_plan_carry_out(core, &fresh, &plan);
        leftover_cut(core, &want->claim);
    }
    (void)intern_release(&core->locks.ohs, fresh.oh);
    client_counts_changed(core, owner_at(core, want->claim.owner)->client);
    return has_slots;
}

/* With or without regard to the share of its client in the reserve. */
static bool release_held(struct core *core, const struct claim *claim, bool is_asked)
{
    CHECK(claim->start <= claim->end);
    uint32_t slot = lock_range_first_own(core, claim), next;
    if (slot == SLOT_NONE || lock_at(core, slot)->claim.start > claim->end)
        return true;
    bool may = is_asked ? may_split(core, claim->owner) : lock_element_free_count(core) > 0;
    if (lock_plan_is_split(core, lock_at(core, slot), claim) && !may)
        return false;
    if (!unsettled_settle(core, claim))
        return false;
    for (; slot != SLOT_NONE && lock_at(core, slot)->claim.start <= claim->end; slot = next) {
        next = lock_range_next_own(core, slot);
        lock_plan_cut(core, slot, claim);
    }
    return true;
}

static bool release(struct core *core, const struct claim *claim, bool is_asked)
{
    if (!release_held(core, claim, is_asked))
        return false;
    leftover_cut(core, claim);
    lock_element_finish(core, claim->owner);
    return true;
}

bool lock_release(struct core *core, const struct claim *claim)
{
    return release(core, claim, true);
}

bool lock_give_up(struct core *core, const struct claim *claim)
{
    return release(core, claim, false);
}

/* ---- clients that rebooted ---- */

/* False: it goes by itself, when nothing of its callback can arrive any more, ours or that of a
 * server before us. */
static bool free_one(struct core *core, uint32_t slot)
{
    const struct lock *lock = lock_at(core, slot);
    uint32_t owner = lock->claim.owner;
    if (lock_waiter(lock) != SLOT_NONE)
        grant_lost(core, lock_waiter(lock));
    if (lock->is_lingering || echo_keep(core, slot))
        return false;
    if (lock_holding(lock) != SLOT_NONE)
        lock_plan_settle(core, lock);
    lock_element_remove(core, slot); /* and drain_at moves on, if it stood here */
    lock_element_finish(core, owner);
    return true;
}

bool lock_free_if_doomed(struct core *core, uint32_t slot)
{
    const struct lock *lock = lock_at(core, slot);
    if (!lock_element_is_doomed(core, lock))
        return false;
    struct client *client = client_at(core, owner_at(core, lock->claim.owner)->client);
    client->life.drained_count++; /* before: the last one may end the client's time here */
    if (free_one(core, slot))
        return true;
    client->life.drained_count--;
    return false;
}

uint32_t lock_free_file(struct core *core, uint32_t client, uint32_t file)
{
    const struct chains *by_client = &core->locks.by_client;
    uint32_t next, count = 0;
    for (uint32_t slot = chains_first(by_client, client); slot != SLOT_NONE; slot = next) {
        next = chains_next(by_client, slot);
        if (lock_at(core, slot)->claim.file != file || echo_is(core, slot))
            continue;
        if (free_one(core, slot) || echo_is(core, slot)) /* which is nobody's any more */
            count++;
    }
    return count;
}

uint32_t lock_free_held(struct core *core, uint32_t file, uint32_t max)
{
    const struct spans *spans = &core->locks.by_start;
    uint32_t next, count = 0, slot = span_first(spans, file_at(core, file)->locks);
    for (; slot != SLOT_NONE && count < max; slot = next) {
        next = span_next(spans, file_at(core, file)->locks, slot);
        if (lock_holding(lock_at(core, slot)) != SLOT_NONE && free_one(core, slot))
            count++;
    }
    return count;
}

uint32_t lock_drain(struct core *core, uint32_t slot, uint32_t max)
{
    struct client *client = client_at(core, slot);
    uint32_t seen = 0;
    for (; seen < max && client->life.drain_at != 0; seen++) {
        uint32_t at = client->life.drain_at - 1;
        if (!lock_free_if_doomed(core, at))
            client->life.drain_at = chains_next(&core->locks.by_client, at) + 1;
    }
    return seen;
}

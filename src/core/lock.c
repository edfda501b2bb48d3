/*
 * lock.c -- what becomes of an owner's locks when it takes, gives up or is offered a range; see
 * lock.h. Searches are in lock_range.c, single elements in lock_element.c, records in lock_load.c.
 *
 * Taking a range, with what the owner already holds there and right beside it:
 *
 *            start        end
 *   ====A====|             |===A===      alike (mode and stamp): one of them becomes the new lock
 *   ----B----|-----        |             of another kind, reaching out: cut off, a rest stays
 *            | --C--       |             of another kind, inside: goes; if nothing is alike, one of
 *            |             |             these becomes the new lock
 *   ---------|------D------|-------      reaching out on both sides: split in two
 *
 * So a slot is changed rather than freed and used again, and a repeat writes nothing. All of it is
 * in one batch, because a batch is taken between steps and never inside one (R-RNG-4).
 *
 * Always true, and asserted by lock_check():
 *  (1) No two elements of different owners that overlap are in each other's way.
 *  (2) The held locks of one owner in one file do not overlap, and alike ones do not touch.
 *  (3) An element whose client started anew (it is "doomed") is freed whole when its owner takes or
 *      gives up any of its bytes: nobody relies on it any more, and rests of it would hide from
 *      lock_drain.
 *
 * An offer that its client confirms replaces what the owner held there before it. One that the
 * client only may have taken is accepted piece by piece: each stretch of it that the owner holds
 * exclusively stays exclusive. Everything gets the offer's stamp. That makes as many locks as there
 * are stretches, so there is a bound: beyond it the offer stands, which excludes others as well.
 *
 * The table has more slots than locks may be taken (see core_new). Takes stop at the limit; what
 * comes out of the reserve are the second and third piece of a take or an UNLOCK, and accepted
 * offers. UNLOCK fails when also the reserve is used up, and only if it splits (R-RNG-5).
 */
#include "core/lock.h"

#include "base/check.h"
#include "core/lock_element.h"
#include "core/lock_range.h"
#include "core/state.h"

static uint32_t max_u32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

int lock_init(struct core *core, uint32_t slots_max)
{
    struct locks *all = &core->locks;
    const struct core_limits *limits = &core->limits;
    CHECK(core->clients.table.elements != NULL); /* by_client has a chain for each of its slots */
    /* Shares and waiters keep theirs in the same pool. */
    uint32_t ohs_max = slots_max + max_u32(limits->locks_max, limits->slots_used[RECORD_SHARE]) +
                       max_u32(limits->waiters_max, limits->slots_used[RECORD_WAITER]);
    int err = table_init(&all->table, slots_max, sizeof(struct lock));
    if (err == 0)
        err = tree_init(&all->by_start, slots_max, core->seed, lock_range_before, lock_range_sum,
                        core);
    if (err == 0)
        err = tree_init(&all->own, slots_max, core->seed, lock_range_before, NULL, core);
    if (err == 0)
        err = chains_init(&all->by_client, core->clients.table.max, slots_max);
    if (err == 0)
        err = leftover_init(core, slots_max);
    if (err == 0)
        err = table_init(&all->holdings, slots_max, sizeof(struct holding));
    if (err == 0)
        err = chains_init_hash(&all->holdings_by_key, slots_max);
    if (err == 0)
        err = intern_init(&all->ohs, core->arena, ohs_max, core->seed);
    return err;
}

void lock_done(struct core *core)
{
    struct locks *all = &core->locks;
    table_done(&all->table);
    tree_done(&all->by_start);
    tree_done(&all->own);
    chains_done(&all->by_client);
    leftover_done(core);
    table_done(&all->holdings);
    chains_done(&all->holdings_by_key);
    intern_done(&all->ohs);
}

struct lock *lock_at(const struct core *core, uint32_t slot)
{
    return table_at(&core->locks.table, slot);
}

enum lock_room lock_room(const struct core *core, uint32_t client)
{
    const struct core_limits *limits = &core->limits;
    uint32_t count = client == SLOT_NONE ? 0 : client_at(core, client)->lock_count;
    if (core->locks.table.count >= limits->locks_max)
        return LOCK_ROOM_TOTAL;
    if (count >= limits->locks_per_client_max)
        return LOCK_ROOM_CLIENT;
    if (client != SLOT_NONE && !quota_admits(core, client_at(core, client)->quota, QUOTA_LOCK))
        return LOCK_ROOM_ADDRESS;
    if (arena_used(core->arena) >= limits->bytes_max)
        return LOCK_ROOM_BYTES;
    if (!core->has_room)
        return LOCK_ROOM_STORE;
    return LOCK_ROOM;
}

/* ---- pieces ---- */

/* Nothing of it is left when the owner takes or gives up this range of it. */
static bool is_cleared(const struct core *core, const struct lock *lock, const struct claim *range)
{
    return claim_is_inside(&lock->claim, range) || lock_element_is_doomed(core, lock);
}

static bool is_split(const struct core *core, const struct lock *lock, const struct claim *range)
{
    struct claim_rests rests = claim_rests(&lock->claim, range);
    return rests.has_left && rests.has_right && !lock_element_is_doomed(core, lock);
}

/* All of an element that goes: never a part of an unsettled range, so this needs no slot. */
static void settle(struct core *core, const struct lock *lock)
{
    CHECK(unsettled_settle(core, &lock->claim));
}

/* Takes a range out of a lock that overlaps it. */
static void cut(struct core *core, uint32_t slot, const struct claim *range)
{
    struct lock rest = *lock_at(core, slot);
    if (is_cleared(core, &rest, range)) {
        settle(core, &rest);
        lock_element_remove(core, slot);
        return;
    }
    struct claim_rests rests = claim_rests(&rest.claim, range);
    if (rests.has_left) {
        rest.claim = rests.left;
        rest.len = claim_len(&rest.claim);
        lock_element_change(core, slot, &rest);
    }
    if (rests.has_right) {
        rest.claim = rests.right;
        rest.len = claim_len(&rest.claim);
        if (!rests.has_left) {
            lock_element_change(core, slot, &rest);
        } else {
            MARK("lock_split");
            (void)lock_element_add(core, &rest);
        }
    }
}

/* ---- taking ---- */

/* How the owner's locks make room for a fresh one. */
struct plan {
    struct claim reach;  /* of the fresh lock, and what touches it */
    struct claim merged; /* of the fresh lock and all that it is merged with */
    uint32_t first;      /* of its locks that overlap `reach`; SLOT_NONE: none */
    uint32_t kept;       /* the one that becomes the fresh lock; SLOT_NONE: a new slot does */
    uint32_t slots;      /* that it takes from the table at most while it is carried out */
    bool is_alone;       /* nothing is alike and touches it, nothing overlaps it */
};

static struct plan make_plan(const struct core *core, const struct lock *fresh)
{
    struct plan plan = {.reach = claim_widened(&fresh->claim),
                        .merged = fresh->claim,
                        .kept = SLOT_NONE,
                        .is_alone = true};
    bool has_alike = false, has_split = false;
    plan.first = lock_range_first_own(core, &plan.reach);
    uint32_t slot = plan.first;
    for (; slot != SLOT_NONE; slot = tree_next(&core->locks.own, slot)) {
        const struct lock *lock = lock_at(core, slot);
        if (!claim_overlaps(&lock->claim, &plan.reach))
            break;
        if (lock_element_is_alike(lock, fresh)) {
            if (!has_alike)
                plan.kept = slot;
            has_alike = true;
            if (lock->claim.start < plan.merged.start)
                plan.merged.start = lock->claim.start;
            if (lock->claim.end > plan.merged.end)
                plan.merged.end = lock->claim.end;
        } else if (claim_overlaps(&lock->claim, &fresh->claim)) {
            if (plan.kept == SLOT_NONE && is_cleared(core, lock, &fresh->claim))
                plan.kept = slot;
            has_split = has_split || is_split(core, lock, &fresh->claim);
        } else {
            continue;
        }
        plan.is_alone = false;
    }
    plan.slots = (plan.kept == SLOT_NONE ? 1U : 0U) + (has_split ? 1U : 0U);
    return plan;
}

/* Everything of the owner's that is in the way of the plan, but for what is kept. Something is kept
 * if anything goes, so that owner, file and holding stay. */
static void clear_range(struct core *core, const struct lock *fresh, const struct plan *plan)
{
    uint32_t next;
    for (uint32_t slot = plan->first; slot != SLOT_NONE; slot = next) {
        const struct lock *lock = lock_at(core, slot);
        if (!claim_overlaps(&lock->claim, &plan->reach))
            return;
        next = tree_next(&core->locks.own, slot);
        if (slot == plan->kept)
            continue;
        if (lock_element_is_alike(lock, fresh)) {
            MARK("lock_merged");
            lock_element_remove(core, slot);
        } else if (claim_overlaps(&lock->claim, &fresh->claim)) {
            cut(core, slot, &fresh->claim);
        }
    }
}

/* The kept lock becomes the fresh one. */
static void renew(struct core *core, const struct lock *fresh, const struct plan *plan)
{
    struct lock *old = lock_at(core, plan->kept);
    struct lock to = *fresh;
    to.claim = plan->merged;
    bool is_as_asked = claim_is_same_range(&to.claim, &fresh->claim);
    bool is_same = claim_is_same_range(&to.claim, &old->claim) && lock_element_is_alike(old, &to);
    if (is_same && old->oh == to.oh) {
        MARK("lock_repeated");
        /* It was asked for again, also if only in part, and its client is told that it has it. */
        old->serial = ++core->locks.serial;
        old->is_doubtful = false;
        return;
    }
    if (lock_element_is_doomed(core, old))
        settle(core, old); /* nobody will reclaim what it covered beyond the fresh one */
    if (is_same)
        to.granted_ns = old->granted_ns; /* only its oh is new */
    if (!is_as_asked)
        to.len = is_same ? old->len : claim_len(&to.claim);
    lock_element_change(core, plan->kept, &to);
}

static void carry_out(struct core *core, const struct lock *fresh, const struct plan *plan)
{
    clear_range(core, fresh, plan);
    if (plan->kept == SLOT_NONE)
        (void)lock_element_add(core, fresh);
    else
        renew(core, fresh, plan);
}

/*
 * The element that is wanted, with a reference to oh that stays the caller's. False: no bytes.
 *
 * A client may still send an old state while what it took under older ones is being freed. What is
 * granted now is not among that: it is stamped as the oldest that stays.
 */
static bool shape(struct core *core, const struct lock_want *want, struct lock *ret)
{
    CHECK(want->claim.start <= want->claim.end);
    const struct client *client = client_at(core, owner_at(core, want->claim.owner)->client);
    struct lock fresh = {
        .claim = want->claim,
        .len = want->len,
        .granted_ns = want->wall_ns,
        .holding = SLOT_NONE,
        .waiter = SLOT_NONE,
        .callback = SLOT_NONE,
        .state = client_stamp(client, want->state),
        .incarnation = client->incarnation,
        .flags = want->is_unmonitored ? RECORD_LOCK_UNMONITORED : 0U,
    };
    fresh.oh = intern_add(&core->locks.ohs, want->oh);
    if (fresh.oh == SLOT_NONE)
        return false;
    *ret = fresh;
    return true;
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
                                client_at(core, client)->loaded_count);
    return UINT64_C(2) * may_hold + LOCK_ACCEPT_PUTS_MAX;
}

static bool may_split(const struct core *core, uint32_t owner)
{
    uint32_t client = owner_at(core, owner)->client;
    return lock_element_free_count(core) > 0 &&
           client_at(core, client)->lock_count < lock_most_pieces(core, client);
}

bool lock_take(struct core *core, const struct lock_want *want)
{
    struct lock fresh;
    CHECK(lock_find_conflict(core, &want->claim) == SLOT_NONE);
    if (!shape(core, want, &fresh))
        return false;
    struct plan plan = make_plan(core, &fresh);
    bool has_slots = plan.slots <= lock_element_free_count(core) &&
                     (plan.slots == 0 || may_split(core, want->claim.owner)) &&
                     unsettled_settle(core, &want->claim);
    if (has_slots) {
        carry_out(core, &fresh, &plan);
        leftover_settle(core, &want->claim);
    }
    (void)intern_release(&core->locks.ohs, fresh.oh);
    client_settle(core, owner_at(core, want->claim.owner)->client);
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
    if (is_split(core, lock_at(core, slot), claim) && !may)
        return false;
    if (!unsettled_settle(core, claim))
        return false;
    for (; slot != SLOT_NONE && lock_at(core, slot)->claim.start <= claim->end; slot = next) {
        next = tree_next(&core->locks.own, slot);
        cut(core, slot, claim);
    }
    return true;
}

static bool release(struct core *core, const struct claim *claim, bool is_asked)
{
    if (!release_held(core, claim, is_asked))
        return false;
    leftover_settle(core, claim);
    lock_element_settle(core, claim->owner);
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

/* ---- offers ---- */

uint32_t lock_offer(struct core *core, const struct lock_want *want, uint32_t waiter)
{
    struct lock fresh;
    uint32_t client = owner_at(core, want->claim.owner)->client;
    CHECK(lock_find_conflict(core, &want->claim) == SLOT_NONE);
    if (lock_room(core, client) != LOCK_ROOM || lock_element_free_count(core) == 0 ||
        !shape(core, want, &fresh))
        return SLOT_NONE;
    fresh.flags |= RECORD_LOCK_OFFER;
    fresh.waiter = waiter;
    uint32_t slot = lock_element_add(core, &fresh);
    (void)intern_release(&core->locks.ohs, fresh.oh);
    client_settle(core, client);
    return slot;
}

void lock_withdraw(struct core *core, uint32_t slot)
{
    const struct lock *lock = lock_at(core, slot);
    uint32_t owner = lock->claim.owner;
    CHECK(lock->flags & RECORD_LOCK_OFFER);
    CHECK(lock->callback == SLOT_NONE);
    if (echo_keep(core, slot))
        return;
    lock_element_remove(core, slot);
    lock_element_settle(core, owner);
}

/*
 * The next stretch of what an offer will be, from this byte on: as much as the owner holds
 * exclusively, or as much as it does not.
 */
static struct lock stretch_at(const struct core *core, const struct lock *offer, uint64_t from,
                              uint64_t kept_serial)
{
    struct lock stretch = *offer;
    stretch.claim.start = from;
    uint32_t slot = SLOT_NONE;
    if (!offer->claim.exclusive)
        slot = lock_range_first_own(core, &stretch.claim);
    for (; slot != SLOT_NONE; slot = tree_next(&core->locks.own, slot)) {
        const struct lock *lock = lock_at(core, slot);
        if (lock->claim.start > offer->claim.end)
            break;
        if (!lock->claim.exclusive || lock->serial < kept_serial ||
            lock_element_is_doomed(core, lock))
            continue;
        if (lock->claim.start > from) {
            stretch.claim.end = lock->claim.start - 1;
        } else {
            stretch.claim.exclusive = true;
            stretch.claim.end =
                lock->claim.end < offer->claim.end ? lock->claim.end : offer->claim.end;
        }
        break;
    }
    if (!claim_is_same_range(&stretch.claim, &offer->claim))
        stretch.len = claim_len(&stretch.claim);
    return stretch;
}

/* The stretches of an offer, counted no further than to more than there may be. */
static uint32_t count_stretches(const struct core *core, const struct lock *offer,
                                uint64_t kept_serial)
{
    uint32_t count = 0;
    uint64_t from = offer->claim.start;
    while (count < LOCK_ACCEPT_PUTS_MAX) {
        count++;
        uint64_t end = stretch_at(core, offer, from, kept_serial).claim.end;
        if (end == offer->claim.end)
            break;
        from = end + 1;
    }
    return count;
}

/* Slots, and room in the batch. */
static bool can_accept(const struct core *core, const struct lock *offer, uint64_t kept_serial,
                       bool stays)
{
    uint32_t count = count_stretches(core, offer, kept_serial);
    /* One record per stretch, and the rests of what reaches out at either end. */
    uint32_t puts = count + 2;
    if (puts > LOCK_ACCEPT_PUTS_MAX ||
        core->dirty.put_count + puts > core->limits.batch_puts_max + LOCK_ACCEPT_PUTS_MAX)
        return false;
    /* One slot per stretch at most, and the offer's own comes free if it goes. Only a single
     * stretch can lie inside a lock that reaches out on both sides, and split it. */
    struct lock stretch = stretch_at(core, offer, offer->claim.start, kept_serial);
    uint32_t slots = count == 1 ? make_plan(core, &stretch).slots : count;
    return slots <= lock_element_free_count(core) + (stays ? 0 : 1);
}

/* The offer becomes held; exclusive locks with this serial or a later one stay exclusive. */
static bool accept(struct core *core, uint32_t slot, uint64_t kept_serial, bool stays)
{
    struct lock offer = *lock_at(core, slot);
    CHECK(offer.flags & RECORD_LOCK_OFFER);
    if (lock_element_is_doomed(core, &offer))
        return false; /* it is not its client's any more, and must replace nothing that is */
    offer.flags &= ~(uint32_t)RECORD_LOCK_OFFER;
    offer.waiter = SLOT_NONE;
    offer.is_left_over = offer.is_echoed = false;
    if (!can_accept(core, &offer, kept_serial, stays))
        return false;
    struct plan plan = make_plan(core, &offer);
    if (plan.is_alone && !stays) {
        lock_element_hold(core, slot);
        return true;
    }
    if (!unsettled_settle(core, &offer.claim))
        return false;
    if (!plan.is_alone)
        MARK("offer_meets_own_locks");
    uint32_t oh = intern_add(&core->locks.ohs, intern_bytes(&core->locks.ohs, offer.oh));
    CHECK(oh == offer.oh);
    if (!stays)
        lock_element_remove(core, slot); /* its owner holds something here, and so stays */
    for (uint64_t from = offer.claim.start;;) {
        struct lock stretch = stretch_at(core, &offer, from, kept_serial);
        plan = make_plan(core, &stretch);
        carry_out(core, &stretch, &plan);
        if (stretch.claim.end == offer.claim.end)
            break;
        from = stretch.claim.end + 1;
    }
    (void)intern_release(&core->locks.ohs, oh);
    client_settle(core, owner_at(core, offer.claim.owner)->client);
    return true;
}

bool lock_accept(struct core *core, uint32_t slot, bool stays)
{
    return accept(core, slot, 0, stays);
}

bool lock_confirm(struct core *core, uint32_t slot, bool stays)
{
    /* Of an offer that was loaded nobody knows any more what is older. */
    uint64_t serial = lock_at(core, slot)->serial;
    return accept(core, slot, serial == 0 ? 0 : serial + 1, stays);
}

bool lock_is_doubtful(const struct core *core, const struct claim *claim)
{
    uint32_t slot = lock_range_first_own(core, claim);
    if (slot == SLOT_NONE)
        return false;
    const struct lock *lock = lock_at(core, slot);
    return lock->is_doubtful && claim_is_same_range(&lock->claim, claim) &&
           lock->claim.exclusive == claim->exclusive;
}

bool lock_restore_offer(struct core *core, uint32_t slot)
{
    struct lock offer = *lock_at(core, slot);
    CHECK(offer.flags & RECORD_LOCK_OFFER);
    CHECK(!echo_is(core, slot) && !echo_is_due(core, slot));
    offer.flags &= ~(uint32_t)RECORD_LOCK_OFFER;
    if (lock_element_is_doomed(core, &offer) || !make_plan(core, &offer).is_alone)
        return lock_accept(core, slot, false);
    lock_element_restore(core, slot);
    return true;
}

/* ---- clients that started anew ---- */

/* False: it goes by itself, when nothing of its callback can arrive any more, ours or that of a
 * server before us. */
static bool free_one(struct core *core, uint32_t slot)
{
    const struct lock *lock = lock_at(core, slot);
    uint32_t owner = lock->claim.owner;
    if (lock->waiter != SLOT_NONE)
        grant_lost(core, lock->waiter);
    if (lock->callback != SLOT_NONE || echo_keep(core, slot))
        return false;
    if (lock->holding != SLOT_NONE)
        settle(core, lock);
    lock_element_remove(core, slot); /* and drain_at moves on, if it stood here */
    lock_element_settle(core, owner);
    return true;
}

bool lock_free_if_doomed(struct core *core, uint32_t slot)
{
    const struct lock *lock = lock_at(core, slot);
    if (!lock_element_is_doomed(core, lock))
        return false;
    struct client *client = client_at(core, owner_at(core, lock->claim.owner)->client);
    client->drained_count++; /* before: the last one may end the client's time here */
    if (free_one(core, slot))
        return true;
    client->drained_count--;
    return false;
}

uint32_t lock_free_file(struct core *core, uint32_t client, uint32_t file)
{
    const struct chains *by_client = &core->locks.by_client;
    uint32_t next, count = 0;
    for (uint32_t slot = chains_first(by_client, client); slot != SLOT_NONE; slot = next) {
        next = chains_next(by_client, slot);
        if (lock_at(core, slot)->claim.file == file && free_one(core, slot))
            count++;
    }
    return count;
}

uint32_t lock_drain(struct core *core, uint32_t slot, uint32_t max)
{
    struct client *client = client_at(core, slot);
    uint32_t seen = 0;
    for (; seen < max && client->drain_at != 0; seen++) {
        uint32_t at = client->drain_at - 1;
        if (!lock_free_if_doomed(core, at))
            client->drain_at = chains_next(&core->locks.by_client, at) + 1;
    }
    return seen;
}

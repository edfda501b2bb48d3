/*
 * lock_offer.c -- see lock_offer.h.
 *
 * An offer that its client confirms replaces what the owner held there before it. One that the
 * client only may have taken is accepted piece by piece: each stretch of it that the owner holds
 * exclusively stays exclusive. Everything gets the offer's stamp but what has a later one. That
 * makes as many locks as there are stretches, so there is a bound: beyond it the offer stays an
 * offer, which excludes others as well.
 */
#include "core/lock_offer.h"

#include "base/check.h"
#include "core/lock_element.h"
#include "core/lock_plan.h"
#include "core/lock_range.h"
#include "core/state.h"

uint32_t lock_offer_make(struct core *core, const struct lock_want *want, uint32_t waiter)
{
    struct lock fresh;
    uint32_t client = owner_at(core, want->claim.owner)->client;
    CHECK(lock_find_conflict(core, &want->claim) == SLOT_NONE);
    if (lock_room(core, client) != ADMIT_NEW || lock_element_free_count(core) == 0 ||
        !lock_plan_shape(core, want, &fresh))
        return SLOT_NONE;
    fresh.flags |= RECORD_LOCK_OFFER;
    fresh.link = waiter;
    uint32_t slot = lock_element_add(core, &fresh);
    (void)intern_release(&core->locks.ohs, fresh.oh);
    client_counts_changed(core, client);
    return slot;
}

void lock_offer_stamp(struct core *core, uint32_t slot, uint32_t state, uint64_t asked)
{
    struct lock *lock = lock_at(core, slot);
    CHECK(lock->flags & RECORD_LOCK_OFFER);
    lock->state = state;
    lock->asked = asked;
    dirty_put(&core->dirty, RECORD_LOCK, slot);
}

void lock_offer_withdraw(struct core *core, uint32_t slot)
{
    const struct lock *lock = lock_at(core, slot);
    uint32_t owner = lock->claim.owner;
    CHECK(lock->flags & RECORD_LOCK_OFFER);
    CHECK(!lock->is_lingering);
    if (echo_keep(core, slot))
        return;
    lock_element_remove(core, slot);
    lock_element_finish(core, owner);
}

/*
 * What the owner took in a later life than that in which it asked for the offer stays that life's:
 * nobody may have believed in it yet (client_free_older, client_recount). A counter that started
 * over is smaller in the later life, so what was asked for later decides; where nobody knows that
 * any more, the number does.
 */
static bool is_later(const struct lock *lock, const struct lock *offer)
{
    if (lock->asked == 0 && offer->asked == 0)
        return client_is_newer_state(lock->state, offer->state);
    return lock->state != 0 && lock->state != offer->state && lock->asked > offer->asked;
}

static bool stays_exclusive(const struct lock *lock, const struct lock *offer, uint64_t kept_serial)
{
    return !offer->claim.exclusive && lock->claim.exclusive && lock->serial >= kept_serial;
}

/*
 * The next stretch of what an offer will be, from this byte on: as much as the owner holds
 * exclusively or took in a later life, or as much as it does not.
 */
static struct lock stretch_at(const struct core *core, const struct lock *offer, uint64_t from,
                              uint64_t kept_serial)
{
    struct lock stretch = *offer;
    stretch.claim.start = from;
    uint32_t slot = lock_range_first_own(core, &stretch.claim);
    for (; slot != SLOT_NONE; slot = lock_range_next_own(core, slot)) {
        const struct lock *lock = lock_at(core, slot);
        bool is_exclusive = stays_exclusive(lock, offer, kept_serial);
        if (lock->claim.start > offer->claim.end)
            break;
        if ((!is_exclusive && !is_later(lock, offer)) || lock_element_is_doomed(core, lock))
            continue;
        if (lock->claim.start > from) {
            stretch.claim.end = lock->claim.start - 1;
        } else {
            stretch.claim.exclusive |= is_exclusive;
            if (is_later(lock, offer)) {
                stretch.state = lock->state;
                stretch.asked = lock->asked;
            }
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
    uint32_t slots = count == 1 ? lock_plan_make(core, &stretch).slots : count;
    return slots <= lock_element_free_count(core) + (stays ? 0 : 1);
}

/* The offer becomes held; exclusive locks with this serial or a later one stay exclusive. */
static bool accept(struct core *core, uint32_t slot, uint64_t kept_serial, bool stays)
{
    struct lock offer = *lock_at(core, slot);
    CHECK(offer.flags & RECORD_LOCK_OFFER);
    if (lock_element_is_doomed(core, &offer))
        return false; /* it is not its client's any more, and must replace nothing that is */
    offer.flags &= (uint8_t)~RECORD_LOCK_OFFER;
    offer.link = SLOT_NONE;
    offer.is_left_over = offer.is_echoed = false;
    if (!can_accept(core, &offer, kept_serial, stays))
        return false;
    struct lock_plan plan = lock_plan_make(core, &offer);
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
        plan = lock_plan_make(core, &stretch);
        lock_plan_carry_out(core, &stretch, &plan);
        if (stretch.claim.end == offer.claim.end)
            break;
        from = stretch.claim.end + 1;
    }
    (void)intern_release(&core->locks.ohs, oh);
    client_counts_changed(core, owner_at(core, offer.claim.owner)->client);
    return true;
}

bool lock_offer_accept(struct core *core, uint32_t slot, bool stays)
{
    return accept(core, slot, 0, stays);
}

bool lock_offer_confirm(struct core *core, uint32_t slot, bool stays)
{
    /* Of an offer that was loaded nobody knows any more what is older. */
    uint64_t serial = lock_at(core, slot)->serial;
    return accept(core, slot, serial == 0 ? 0 : serial + 1, stays);
}

bool lock_offer_is_doubtful(const struct core *core, const struct claim *claim)
{
    uint32_t slot = lock_range_first_own(core, claim);
    if (slot == SLOT_NONE)
        return false;
    const struct lock *lock = lock_at(core, slot);
    return lock->is_doubtful && claim_is_same_range(&lock->claim, claim) &&
           lock->claim.exclusive == claim->exclusive;
}

bool lock_offer_restore(struct core *core, uint32_t slot)
{
    struct lock offer = *lock_at(core, slot);
    CHECK(offer.flags & RECORD_LOCK_OFFER);
    CHECK(!echo_is(core, slot) && !echo_is_due(core, slot));
    offer.flags &= (uint8_t)~RECORD_LOCK_OFFER;
    if (lock_element_is_doomed(core, &offer) || !lock_plan_make(core, &offer).is_alone)
        return lock_offer_accept(core, slot, false);
    lock_element_restore(core, slot);
    return true;
}

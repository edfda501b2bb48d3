/*
 * grant_end.c -- how a wait ends by anything but an answer to its callback; see grant.h.
 *
 * CANCEL, UNLOCK and a reclaim are words of the client about it; a reboot of the client or of ours
 * ends it without one. An offer that may have been taken is never just dropped for such a word: it
 * becomes its owner's lock, or its callback lingers (R-BLK-19).
 */
#include "core/grant.h"

#include "base/check.h"
#include "core/state.h"

void grant_cancel(struct core *core, uint32_t slot)
{
    struct waiter *w = waiter_at(core, slot);
    if (w->phase == WAITER_PLACE)
        return;
    uint64_t untold_ns = 0;
    if (w->phase == WAITER_CALLING) {
        MARK("cancel_during_callback");
        untold_ns = CALLBACK_LINGER_NS;
    }
    if (waiter_is_offered(w)) {
        MARK("cancel_of_an_offer");
        grant_withdraw(core, slot);
    }
    waiter_keep_place(core, slot, untold_ns);
}

static void drop(struct core *core, uint32_t slot)
{
    if (waiter_is_offered(waiter_at(core, slot)))
        grant_withdraw(core, slot);
    waiter_remove(core, slot);
}

/* How much one request may do to the waits of its owner: what is withdrawn or removed is deleted
 * from the store, what becomes held is written, in pieces. */
struct effort {
    uint32_t left, puts;
};

static struct effort begin_effort(const struct core *core)
{
    return (struct effort){CLIENT_DRAIN_MAX, core->dirty.put_count};
}

static bool may_go_on(const struct core *core, struct effort *effort)
{
    return effort->left-- > 0 &&
           core->dirty.put_count - effort->puts < CORE_PUTS_PER_REQUEST_MAX / 2;
}

/* One of an owner that unlocks a range it overlaps. False: no slots. */
static bool unlock_called(struct core *core, uint32_t slot, const struct claim *claim)
{
    const struct waiter *w = waiter_at(core, slot);
    if (!claim_is_inside(&w->claim, claim)) {
        MARK("unlock_of_part_of_an_offer");
        return grant_accept(core, slot, false);
    }
    if (w->phase == WAITER_CALLING)
        MARK("unlock_during_callback");
    drop(core, slot);
    return true;
}

bool grant_unlock(struct core *core, const struct claim *claim)
{
    struct effort effort = begin_effort(core);
    const struct table *owners = &core->owners.table; /* the last of its waiters may free it */
    uint32_t slot;
    while (table_is_live(owners, claim->owner) &&
           (slot = waiter_own_called(core, claim)) != SLOT_NONE)
        if (!may_go_on(core, &effort) || !unlock_called(core, slot, claim))
            return false;
    while (table_is_live(owners, claim->owner) &&
           (slot = waiter_own_inside(core, claim)) != SLOT_NONE) {
        if (!may_go_on(core, &effort))
            return false;
        drop(core, slot);
    }
    return true;
}

void grant_reclaim(struct core *core, const struct claim *claim)
{
    struct effort effort = begin_effort(core);
    uint32_t slot;
    while (table_is_live(&core->owners.table, claim->owner) &&
           (slot = waiter_own_called(core, claim)) != SLOT_NONE) {
        MARK("grant_reclaimed");
        if (!may_go_on(core, &effort) || !grant_accept(core, slot, false))
            return; /* too much, or no slots: the offer stays */
    }
}

void grant_drop_client(struct core *core, uint32_t client)
{
    uint32_t slot;
    while ((slot = chains_first(&core->waiters.by_client, client)) != SLOT_NONE)
        drop(core, slot);
}

uint32_t grant_drop_file(struct core *core, uint32_t client, uint32_t file)
{
    const struct chains *by_client = &core->waiters.by_client;
    uint32_t next, count = 0;
    for (uint32_t slot = chains_first(by_client, client); slot != SLOT_NONE; slot = next) {
        next = chains_next(by_client, slot);
        if (waiter_at(core, slot)->claim.file != file)
            continue;
        drop(core, slot);
        count++;
    }
    return count;
}

/* The offer stays without its waiter. */
static void leave_offer(struct core *core, uint32_t slot)
{
    struct waiter *w = waiter_at(core, slot);
    MARK("grant_offer_outlives_its_waiter");
    lock_at(core, w->grant.offer)->link = SLOT_NONE;
    w->grant.offer = SLOT_NONE;
    if (w->grant.callback != SLOT_NONE) {
        turn_ended(core, waiter_client(core, w), TURN_UNKNOWN);
        callback_abort(core, w->grant.callback);
    }
    w->grant.callback = SLOT_NONE;
    waiter_remove(core, slot);
}

void grant_drop_all(struct core *core)
{
    const struct table *table = &core->waiters.table;
    uint32_t slot = table_next(table, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(table, slot)) {
        const struct waiter *w = waiter_at(core, slot);
        if (waiter_is_offered(w) && w->grant.attempt_count > 0)
            leave_offer(core, slot);
        else
            drop(core, slot);
    }
}

void grant_drop_older(struct core *core, uint32_t client)
{
    const struct chains *by_client = &core->waiters.by_client;
    const struct client *of = client_at(core, client);
    uint32_t next;
    for (uint32_t slot = chains_first(by_client, client); slot != SLOT_NONE; slot = next) {
        next = chains_next(by_client, slot);
        if (client_is_over(of, of->stored.incarnation, waiter_at(core, slot)->state))
            drop(core, slot);
    }
}

/*
 * callback.c -- callbacks in flight and lingering; see callback.h.
 *
 * Always true between steps, and asserted by callback_check():
 *  (1) A callback has a waiter in phase CALLING that names it, or it lingers.
 *  (2) The offer of a lingering one names it, has no waiter, and is on no list of what to do: it
 *      goes when the callback has ended, and not before. lock_drain passes it by.
 *  (3) A late answer waits on a lingering callback of its owner that overlaps it, or is ready.
 *
 * There are as many slots as waiters, or as many as sixteen addresses may have in flight. A
 * callback that lingers has lost its waiter, so there could be more of both: none begins while the
 * table is full. How many linger is bounded by address (turn.h), and so is what CANCEL and UNLOCK
 * look at.
 */
#include "core/callback.h"

#include "base/check.h"
#include "core/state.h"

enum { SLOTS_MIN = 16 * TURN_CALLS_MAX };

int callback_init(struct core *core, const uint32_t slots[])
{
    struct callbacks *all = &core->callbacks;
    uint32_t waiters = slots[RECORD_WAITER], slots_max = waiters > SLOTS_MIN ? waiters : SLOTS_MIN;
    list_init(&all->ending);
    list_init(&all->ready);
    int err = table_init(&all->table, slots_max, sizeof(struct callback));
    if (err == 0)
        err = chains_init(&all->by_owner, core->owners.table.max, slots_max);
    if (err == 0)
        err = table_init(&all->late, CALLBACK_LATE_MAX, sizeof(struct late_answer));
    if (err == 0)
        err = chains_init(&all->on_callback, slots_max, CALLBACK_LATE_MAX);
    return err;
}

void callback_done(struct core *core)
{
    struct callbacks *all = &core->callbacks;
    table_done(&all->table);
    chains_done(&all->by_owner);
    table_done(&all->late);
    chains_done(&all->on_callback);
}

static struct callback *callback_at(const struct core *core, uint32_t slot)
{
    return table_at(&core->callbacks.table, slot);
}

static struct late_answer *late_at(const struct core *core, uint32_t slot)
{
    return table_at(&core->callbacks.late, slot);
}

uint32_t callback_count(const struct core *core)
{
    return core->callbacks.calling_count + core->callbacks.lingering_count;
}

bool callback_is_any_lingering(const struct core *core)
{
    return core->callbacks.lingering_count > 0;
}

bool callback_has_room(const struct core *core)
{
    return core->callbacks.table.count < core->callbacks.table.max;
}

uint32_t callback_begin(struct core *core, uint32_t waiter)
{
    uint32_t slot = table_add(&core->callbacks.table);
    CHECK(slot != SLOT_NONE);
    struct callback *callback = callback_at(core, slot);
    *callback = (struct callback){.waiter = waiter, .offer = SLOT_NONE};
    core->callbacks.calling_count++;
    list_init(&callback->ending);
    return slot;
}

uint64_t callback_id(const struct core *core, uint32_t slot)
{
    return core_call_id(CALL_OF_GRANT, table_handle(&core->callbacks.table, slot));
}

/* ---- lingering ---- */

static void end_request(struct core *core, uint32_t slot, uint64_t deadline_ns)
{
    struct callbacks *all = &core->callbacks;
    struct callback *callback = callback_at(core, slot);
    CHECK(callback->waiter != SLOT_NONE);
    callback->waiter = SLOT_NONE;
    all->calling_count--;
    callback->deadline_ns = deadline_ns;
    callback->serial = ++all->serial;
    list_append(&all->ending, &callback->ending);
}

void callback_linger(struct core *core, uint32_t slot, uint32_t offer)
{
    struct lock *lock = lock_at(core, offer);
    MARK("callback_lingers");
    CHECK(lock->flags & RECORD_LOCK_OFFER);
    end_request(core, slot, core->now_ns + CALLBACK_LINGER_NS);
    core->callbacks.lingered++;
    core->callbacks.lingering_count++;
    callback_at(core, slot)->offer = offer;
    lock->link = SLOT_NONE;
    lock->is_lingering = true;
    chains_add(&core->callbacks.by_owner, lock->claim.owner, slot);
}

void callback_abort(struct core *core, uint32_t slot)
{
    end_request(core, slot, core->now_ns);
}

bool callback_next_ending(struct core *core, uint64_t *ret_id, uint64_t *ret_deadline_ns)
{
    struct callbacks *all = &core->callbacks;
    if (list_is_empty(&all->ending))
        return false;
    struct callback *callback = LIST_ELEMENT(all->ending.next, struct callback, ending);
    list_remove(&callback->ending);
    *ret_id = callback_id(core, table_slot(&all->table, callback));
    *ret_deadline_ns = callback->deadline_ns;
    return true;
}

/* ---- answers that wait ---- */

/* A callback of this owner that keeps some of these bytes, and began to before the answer. */
static uint32_t find_lingering(const struct core *core, const struct claim *claim, uint64_t serial)
{
    const struct chains *by_owner = &core->callbacks.by_owner;
    uint32_t slot = chains_first(by_owner, claim->owner);
    for (; slot != SLOT_NONE; slot = chains_next(by_owner, slot)) {
        const struct callback *callback = callback_at(core, slot);
        if (callback->serial <= serial &&
            claim_overlaps(&lock_at(core, callback->offer)->claim, claim))
            return slot;
    }
    return SLOT_NONE;
}

/* On the next callback that concerns it, if there is one. */
static void hang(struct core *core, uint32_t slot)
{
    struct callbacks *all = &core->callbacks;
    struct late_answer *late = late_at(core, slot);
    late->hangs_on = find_lingering(core, &late->claim, late->serial);
    if (late->hangs_on != SLOT_NONE)
        chains_add(&all->on_callback, late->hangs_on, slot);
    else
        list_append(&all->ready, &late->ready);
}

enum answer_when callback_defer(struct core *core, const struct claim *claim, uint32_t *ret_ticket)
{
    struct callbacks *all = &core->callbacks;
    if (find_lingering(core, claim, all->serial) == SLOT_NONE)
        return ANSWER_NOW;
    uint32_t client = owner_at(core, claim->owner)->client;
    uint32_t slot = SLOT_NONE;
    if (client_at(core, client)->asked.late_count < CALLBACK_LATE_PER_CLIENT_MAX)
        slot = table_add(&all->late);
    if (slot == SLOT_NONE) {
        MARK("callback_too_many_wait");
        all->unanswered++;
        return ANSWER_NEVER;
    }
    MARK("callback_answer_waits");
    *late_at(core, slot) =
        (struct late_answer){.client = client, .claim = *claim, .serial = all->serial};
    list_init(&late_at(core, slot)->ready);
    client_at(core, client)->asked.late_count++;
    hang(core, slot);
    *ret_ticket = slot;
    return ANSWER_LATER;
}

bool callback_next_answer(struct core *core, struct core_late *ret)
{
    struct callbacks *all = &core->callbacks;
    if (list_is_empty(&all->ready))
        return false;
    struct late_answer *late = LIST_ELEMENT(all->ready.next, struct late_answer, ready);
    list_remove(&late->ready);
    *ret = (struct core_late){.ticket = table_slot(&all->late, late)};
    table_remove(&all->late, ret->ticket);
    return true;
}

/* ---- the end ---- */

/* It lingered, and has ended. That it was aborted says something only if it had all its time. */
static enum turn_end how_ended(const struct core *core, const struct callback *callback,
                               enum core_call_outcome outcome)
{
    if (outcome == CALL_ANSWERED || outcome == CALL_REFUSED)
        return TURN_ANSWERED;
    return core->now_ns >= callback->deadline_ns ? TURN_SILENT : TURN_UNKNOWN;
}

/* Nothing of it can arrive any more. The owner is there until its offer goes. */
static void resolve(struct core *core, uint32_t slot, enum core_call_outcome outcome)
{
    struct callbacks *all = &core->callbacks;
    uint32_t offer = callback_at(core, slot)->offer, late;
    list_remove(&callback_at(core, slot)->ending);
    if (offer == SLOT_NONE) {
        table_remove(&all->table, slot);
        return;
    }
    uint32_t owner = lock_at(core, offer)->claim.owner;
    chains_remove(&all->by_owner, owner, slot);
    all->lingering_count--;
    turn_ended(core, owner_at(core, owner)->client,
               how_ended(core, callback_at(core, slot), outcome));
    while ((late = chains_first(&all->on_callback, slot)) != SLOT_NONE) {
        chains_remove(&all->on_callback, slot, late);
        hang(core, late);
        if (late_at(core, late)->hangs_on == SLOT_NONE)
            client_at(core, late_at(core, late)->client)->asked.late_count--;
    }
    table_remove(&all->table, slot);
    lock_at(core, offer)->is_lingering = false;
    lock_offer_withdraw(core, offer);
}

void callback_ended(struct core *core, uint64_t handle, const struct core_input *input)
{
    struct callbacks *all = &core->callbacks;
    uint32_t slot = table_find(&all->table, handle);
    if (slot == SLOT_NONE)
        return;
    uint32_t waiter = callback_at(core, slot)->waiter;
    if (waiter == SLOT_NONE) {
        if (input->outcome == CALL_ANSWERED)
            MARK("callback_answered_when_over");
        resolve(core, slot, input->outcome);
        return;
    }
    table_remove(&all->table, slot);
    all->calling_count--;
    waiter_at(core, waiter)->grant.callback = SLOT_NONE;
    grant_call_done(core, waiter, input);
}

void callback_check(const struct core *core)
{
    const struct callbacks *all = &core->callbacks;
    table_check(&all->table);
    table_check(&all->late);
    uint32_t slot = table_next(&all->table, SLOT_NONE), lingering = 0;
    for (; slot != SLOT_NONE; slot = table_next(&all->table, slot)) {
        const struct callback *callback = callback_at(core, slot);
        if (callback->waiter != SLOT_NONE) {
            const struct waiter *w = waiter_at(core, callback->waiter);
            CHECK(w->phase == WAITER_CALLING);
            CHECK(w->grant.callback == slot);
            CHECK(callback->offer == SLOT_NONE);
        } else if (callback->offer != SLOT_NONE) {
            const struct lock *offer = lock_at(core, callback->offer);
            CHECK(offer->flags & RECORD_LOCK_OFFER);
            CHECK(offer->is_lingering);
            CHECK(lock_waiter(offer) == SLOT_NONE);
            CHECK(callback->serial <= all->serial);
            lingering++;
        }
    }
    for (slot = table_next(&core->locks.table, SLOT_NONE); slot != SLOT_NONE;
         slot = table_next(&core->locks.table, slot))
        lingering -= lock_at(core, slot)->is_lingering;
    CHECK(lingering == 0); /* each has an offer of its own */
    for (slot = table_next(&all->late, SLOT_NONE); slot != SLOT_NONE;
         slot = table_next(&all->late, slot)) {
        const struct late_answer *late = late_at(core, slot);
        CHECK((late->hangs_on == SLOT_NONE) == !list_is_empty(&late->ready));
        if (late->hangs_on == SLOT_NONE)
            continue;
        const struct lock *offer = lock_at(core, callback_at(core, late->hangs_on)->offer);
        CHECK(offer->claim.owner == late->claim.owner);
        CHECK(claim_overlaps(&offer->claim, &late->claim));
    }
}

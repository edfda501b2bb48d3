/*
 * waiter_wake.c -- see waiter_wake.h.
 *
 * Always true between steps, and asserted by waiter_wake_check(): a QUEUED waiter is woken, or
 * waits on exactly one thing that conflicts with it: a lock or offer of another owner, an earlier
 * waiter that is queued or offered, or a program on this machine. Hence a waiter whose conflict
 * here is gone is always woken (P4).
 *
 * waiter_wake_lock_changed only notes who must look again. Nothing is offered inside it: the lock
 * table may be half way through a change.
 */
#include "core/waiter_wake.h"

#include "base/check.h"
#include "core/state.h"

enum { LEAVING_PER_TURN = 1024 };

static bool is_earlier(const void *context, uint32_t a, uint32_t b)
{
    return waiter_at(context, a)->order < waiter_at(context, b)->order;
}

int waiter_wake_init(struct core *core, uint32_t slots_max, uint32_t lock_slots_max)
{
    struct waiters *all = &core->waiters;
    list_init(&all->wake_turns);
    int err = chains_init(&all->behind, core->owners.table.max, slots_max);
    if (err == 0)
        err = chains_init(&all->on_lock, lock_slots_max, slots_max);
    if (err == 0)
        err = chains_init(&all->on_waiter, slots_max, slots_max);
    if (err == 0)
        err = tree_init(&all->woken, slots_max, core->seed, is_earlier, NULL, core);
    return err;
}

void waiter_wake_done(struct core *core)
{
    struct waiters *all = &core->waiters;
    chains_done(&all->behind);
    chains_done(&all->on_lock);
    chains_done(&all->on_waiter);
    tree_done(&all->woken);
}

static void unhang(struct core *core, uint32_t slot)
{
    struct waiter *w = waiter_at(core, slot);
    if (w->hangs_on != SLOT_NONE && w->on_waiter)
        chains_remove(&core->waiters.behind, w->claim.owner, slot);
    if (w->hangs_on != SLOT_NONE)
        chains_remove(w->on_waiter ? &core->waiters.on_waiter : &core->waiters.on_lock, w->hangs_on,
                      slot);
    w->hangs_on = SLOT_NONE;
    if (!list_is_empty(&w->on_program))
        core->mirrors.waiting_count--;
    list_remove(&w->on_program);
}

void waiter_wake_hang_on_program(struct core *core, uint32_t slot)
{
    struct mirrors *mirrors = &core->mirrors;
    if (list_is_empty(&mirrors->waiting))
        mirrors->waiting_ns = core->now_ns + MIRROR_AGAIN_NS;
    list_append(&mirrors->waiting, &waiter_at(core, slot)->on_program);
    mirrors->waiting_count++;
}

void waiter_wake_hang(struct core *core, uint32_t slot, bool on_waiter, uint32_t thing)
{
    struct waiter *w = waiter_at(core, slot);
    CHECK(w->hangs_on == SLOT_NONE);
    w->on_waiter = on_waiter;
    w->hangs_on = thing;
    chains_add(on_waiter ? &core->waiters.on_waiter : &core->waiters.on_lock, thing, slot);
    if (on_waiter)
        chains_add(&core->waiters.behind, w->claim.owner, slot);
}

static struct quota *quota_of(const struct core *core, const struct waiter *w)
{
    return quota_at(core, client_at(core, waiter_client(core, w))->quota);
}

/* Whose turn it is when this file has its own: its first one's address. */
static void rank_file(struct core *core, struct file *file)
{
    list_remove(&file->wake_turn);
    uint32_t first = tree_first(&core->waiters.woken, file->woken);
    if (first == SLOT_NONE)
        return;
    struct quota *quota = quota_of(core, waiter_at(core, first));
    list_append(&quota->woken_files, &file->wake_turn);
    if (list_is_empty(&quota->wake_turn))
        list_append(&core->waiters.wake_turns, &quota->wake_turn);
}

static void join_woken(struct core *core, uint32_t slot)
{
    struct file *file = file_at(core, waiter_at(core, slot)->claim.file);
    tree_add(&core->waiters.woken, &file->woken, slot);
    waiter_at(core, slot)->is_woken = true;
    if (tree_first(&core->waiters.woken, file->woken) == slot)
        rank_file(core, file);
}

static void leave_woken(struct core *core, uint32_t slot)
{
    struct file *file = file_at(core, waiter_at(core, slot)->claim.file);
    bool was_first = tree_first(&core->waiters.woken, file->woken) == slot;
    tree_remove(&core->waiters.woken, &file->woken, slot);
    waiter_at(core, slot)->is_woken = false;
    if (was_first)
        rank_file(core, file);
}

void waiter_wake_up(struct core *core, uint32_t slot)
{
    unhang(core, slot);
    if (!waiter_at(core, slot)->is_woken)
        join_woken(core, slot);
}

void waiter_wake_forget(struct core *core, uint32_t slot)
{
    unhang(core, slot);
    if (waiter_at(core, slot)->is_woken)
        leave_woken(core, slot);
}

uint32_t waiter_wake_take(struct core *core)
{
    struct list *turns = &core->waiters.wake_turns;
    while (!list_is_empty(turns)) {
        struct quota *quota = LIST_ELEMENT(turns->next, struct quota, wake_turn);
        list_remove(&quota->wake_turn);
        if (list_is_empty(&quota->woken_files))
            continue;
        list_append(turns, &quota->wake_turn);
        struct file *file = LIST_ELEMENT(quota->woken_files.next, struct file, wake_turn);
        uint32_t slot = tree_first(&core->waiters.woken, file->woken);
        leave_woken(core, slot);
        return slot;
    }
    return SLOT_NONE;
}

void waiter_wake_moved(struct core *core, uint32_t client)
{
    const struct chains *by_client = &core->waiters.by_client;
    uint32_t slot = chains_first(by_client, client);
    for (; slot != SLOT_NONE; slot = chains_next(by_client, slot))
        if (waiter_at(core, slot)->is_woken)
            rank_file(core, file_at(core, waiter_at(core, slot)->claim.file));
}

static void wake_chain(struct core *core, const struct chains *chains, uint32_t chain)
{
    uint32_t slot;
    while ((slot = chains_first(chains, chain)) != SLOT_NONE)
        waiter_wake_up(core, slot);
}

void waiter_wake_behind(struct core *core, uint32_t slot)
{
    wake_chain(core, &core->waiters.on_waiter, slot);
}

void waiter_wake_lock_changed(struct core *core, uint32_t lock)
{
    wake_chain(core, &core->waiters.on_lock, lock);
}

void waiter_wake_owner_holds(struct core *core, uint32_t owner)
{
    struct owner *at = owner_at(core, owner);
    if (chains_first(&core->waiters.behind, owner) != SLOT_NONE && list_is_empty(&at->leaving))
        list_append(&core->owners.leaving, &at->leaving);
}

void waiter_wake_leavers(struct core *core)
{
    struct list *leaving = &core->owners.leaving;
    for (uint32_t left = LEAVING_PER_TURN; left > 0 && !list_is_empty(leaving); left--) {
        struct owner *owner = LIST_ELEMENT(leaving->next, struct owner, leaving);
        uint32_t slot = chains_first(&core->waiters.behind, table_slot(&core->owners.table, owner));
        if (slot == SLOT_NONE || owner->lock_count == 0) {
            list_remove(&owner->leaving);
            continue;
        }
        MARK("waiter_leaves_queue_order");
        waiter_wake_up(core, slot);
    }
}

void waiter_wake_check(const struct core *core, uint32_t slot)
{
    const struct waiter *w = waiter_at(core, slot);
    CHECK(w->is_woken ==
          (w->phase == WAITER_QUEUED && w->hangs_on == SLOT_NONE && list_is_empty(&w->on_program)));
    if (w->hangs_on == SLOT_NONE)
        return;
    CHECK(w->phase == WAITER_QUEUED);
    if (w->on_waiter) {
        const struct waiter *other = waiter_at(core, w->hangs_on);
        CHECK(other->phase == WAITER_QUEUED || waiter_is_offered(other));
        CHECK(other->order < w->order && claim_conflicts(&other->claim, &w->claim));
        CHECK(owner_at(core, w->claim.owner)->lock_count == 0 ||
              !list_is_empty(&owner_at(core, w->claim.owner)->leaving));
    } else {
        CHECK(claim_conflicts(&lock_at(core, w->hangs_on)->claim, &w->claim));
    }
}

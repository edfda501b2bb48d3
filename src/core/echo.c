/*
 * echo.c -- see echo.h.
 *
 * Always true, and asserted by echo_check(): an echo is an offer without a waiter, a callback or
 * any use for its owner.
 *
 * What is stored says that an echo is nobody's, lest the next start make it its owner's lock. Of a
 * client that rebooted it says so already, by the stamp: nothing is written then, because all
 * offers of a client can go in one step. Everything else that ends offers does so a few at a time.
 * An operator who releases a file may end more of them than one batch takes: the rest goes at once,
 * which is an override of P2 like the release itself.
 */
#include "core/echo.h"

#include "base/check.h"
#include "core/lock_element.h"
#include "core/state.h"

enum {
    PER_TURN = 256,
    PUTS_MAX = CORE_PUTS_PER_REQUEST_MAX - 8, /* of one step; no request gets that far */
};

bool echo_is(const struct core *core, uint32_t slot)
{
    return (lock_at(core, slot)->flags & RECORD_LOCK_LINGERS) != 0;
}

bool echo_is_due(const struct core *core, uint32_t slot)
{
    const struct lock *lock = lock_at(core, slot);
    return lock->is_echoed && core->now_ns < core->echoes.until_ns;
}

bool echo_keep(struct core *core, uint32_t slot)
{
    struct lock *lock = lock_at(core, slot);
    bool has_room = core->dirty.put_count < core->limits.batch_puts_max + PUTS_MAX;
    if (!echo_is_due(core, slot) || !has_room)
        return false;
    MARK("echo_of_an_offer");
    CHECK(lock->flags & RECORD_LOCK_OFFER);
    CHECK(!lock->is_lingering);
    if (!lock_element_is_doomed(core, lock))
        dirty_put(&core->dirty, RECORD_LOCK, slot);
    lock_element_unleave(core, slot);
    lock->is_echoed = false;
    lock->flags |= RECORD_LOCK_LINGERS;
    lock->link = SLOT_NONE;
    core->echoes.may_be_some = true;
    return true;
}

void echo_begin(struct core *core, uint64_t until_ns)
{
    const struct table *table = &core->locks.table;
    bool is_needed = until_ns > core->now_ns;
    core->echoes =
        (struct echoes){.until_ns = is_needed ? until_ns : core->now_ns, .at = SLOT_NONE};
    uint32_t slot = table_next(table, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(table, slot)) {
        struct lock *lock = lock_at(core, slot);
        lock->is_echoed = is_needed && (lock->flags & RECORD_LOCK_OFFER) && !echo_is(core, slot);
        core->echoes.may_be_some = core->echoes.may_be_some || echo_is(core, slot);
    }
}

void echo_work(struct core *core)
{
    struct echoes *echoes = &core->echoes;
    if (!echoes->may_be_some || core->now_ns < echoes->until_ns)
        return;
    for (uint32_t i = 0; i < PER_TURN && echoes->may_be_some && !core_is_full(core); i++) {
        echoes->at = table_next(&core->locks.table, echoes->at);
        if (echoes->at == SLOT_NONE) {
            echoes->may_be_some = false; /* once through the table: none is added any more */
        } else if (echo_is(core, echoes->at)) {
            MARK("echo_is_over");
            lock_offer_withdraw(core, echoes->at);
        }
    }
}

uint64_t echo_deadline_ns(const struct core *core)
{
    const struct echoes *echoes = &core->echoes;
    return !echoes->may_be_some || core_is_full(core) ? UINT64_MAX : echoes->until_ns;
}

void echo_check(const struct core *core)
{
    const struct table *table = &core->locks.table;
    uint32_t slot = table_next(table, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(table, slot)) {
        const struct lock *lock = lock_at(core, slot);
        CHECK(!lock->is_echoed || (lock->flags & RECORD_LOCK_OFFER));
        if (!echo_is(core, slot))
            continue;
        CHECK(!core->started || core->echoes.may_be_some);
        CHECK(lock->flags & RECORD_LOCK_OFFER);
        CHECK(lock->link == SLOT_NONE && !lock->is_lingering && !lock->is_left_over);
    }
}

/*
 * echo.c -- see echo.h.
 *
 * An element of the lock table with RECORD_LOCK_LINGERS is an echo. It goes earlier than its time
 * where everything of its client goes: a client that started anew waits for nothing of before.
 */
#include "core/echo.h"

#include "base/check.h"
#include "core/lock_element.h"
#include "core/state.h"

enum { PER_TURN = 256 };

bool echo_is(const struct core *core, uint32_t slot)
{
    return (lock_at(core, slot)->flags & RECORD_LOCK_LINGERS) != 0;
}

static void add_echo(struct core *core, uint32_t slot)
{
    struct lock echo = *lock_at(core, slot);
    if (lock_element_free_count(core) == 0) {
        core->echoes.missed++;
        return;
    }
    MARK("echo_of_an_offer");
    echo.flags |= RECORD_LOCK_LINGERS;
    echo.waiter = SLOT_NONE;
    (void)lock_element_add(core, &echo);
    core->echoes.may_be_some = true;
}

void echo_begin(struct core *core, uint64_t until_ns)
{
    const struct table *table = &core->locks.table;
    bool is_needed = until_ns > core->now_ns;
    core->echoes =
        (struct echoes){.until_ns = is_needed ? until_ns : core->now_ns, .at = SLOT_NONE};
    uint32_t slot = table_next(table, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(table, slot))
        if (echo_is(core, slot))
            core->echoes.may_be_some = true;
        else if (is_needed && (lock_at(core, slot)->flags & RECORD_LOCK_OFFER))
            add_echo(core, slot);
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
            lock_withdraw(core, echoes->at);
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
    for (uint32_t slot = table_next(table, SLOT_NONE); slot != SLOT_NONE;
         slot = table_next(table, slot)) {
        if (!echo_is(core, slot))
            continue;
        CHECK(!core->started || core->echoes.may_be_some);
        CHECK(lock_at(core, slot)->flags & RECORD_LOCK_OFFER);
        CHECK(lock_at(core, slot)->waiter == SLOT_NONE);
    }
}

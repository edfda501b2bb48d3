/*
 * view_wait.c -- who blocks each waiter, for those who count them all; see view.h.
 *
 * A waiter hangs on the latest earlier one, so a queue is one chain, as long as the queue. What the
 * end of a chain says is noted for every waiter on the way, and none is gone through twice.
 */
#include "base/check.h"
#include "core/state.h"
#include "core/view.h"

/* What is noted of a slot; a client's slot follows these. */
enum { UNKNOWN, UNBLOCKED, CLIENTS };

uint32_t view_wait_slots(const struct core *core)
{
    return core->waiters.table.used;
}

static uint32_t note_of_owner(const struct core *core, uint32_t owner)
{
    return owner_at(core, owner)->client + CLIENTS;
}

/* What is known of a waiter without asking the one ahead of it, whose slot is *ret_ahead; UNKNOWN:
 * that one's note is its own, too. */
static uint32_t look(const struct core *core, uint32_t slot, uint32_t *ret_ahead)
{
    const struct waiter *waiter = waiter_at(core, slot);
    if (waiter->hangs_on == SLOT_NONE)
        return UNBLOCKED;
    if (!waiter->on_waiter)
        return note_of_owner(core, lock_at(core, waiter->hangs_on)->claim.owner);
    *ret_ahead = waiter->hangs_on;
    const struct waiter *ahead = waiter_at(core, waiter->hangs_on);
    return waiter_is_offered(ahead) ? note_of_owner(core, ahead->claim.owner) : UNKNOWN;
}

/* Notes it for this waiter and all that it waits behind. False: the budget is used up. */
static bool find_out(const struct core *core, struct view_waits *waits, uint32_t slot)
{
    uint32_t note = waits->notes[slot], ahead = SLOT_NONE;
    for (uint32_t at = slot; note == UNKNOWN; at = ahead) {
        if (waits->budget == 0)
            return false;
        waits->budget--;
        note = look(core, at, &ahead);
        if (note == UNKNOWN)
            note = waits->notes[ahead];
    }
    for (uint32_t at = slot; waits->notes[at] == UNKNOWN; at = ahead) {
        waits->notes[at] = note;
        if (look(core, at, &ahead) != UNKNOWN)
            break;
    }
    return true;
}

bool view_next_wait(const struct core *core, struct view_waits *waits, struct view_wait *ret)
{
    const struct table *table = &core->waiters.table;
    for (; waits->cursor < table->used; waits->cursor++) {
        uint32_t slot = (uint32_t)waits->cursor;
        if (!table_is_live(table, slot)) {
            if (waits->budget == 0)
                return false;
            waits->budget--;
            continue;
        }
        if (!find_out(core, waits, slot))
            return false;
        uint32_t note = waits->notes[slot];
        CHECK(note != UNKNOWN);
        *ret = (struct view_wait){
            .client = note >= CLIENTS ? client_at(core, note - CLIENTS)->stored.id : 0,
            .queued_ns = waiter_at(core, slot)->queued_ns,
        };
        waits->cursor++;
        return true;
    }
    waits->cursor = VIEW_END;
    return false;
}

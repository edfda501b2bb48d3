/*
 * watched_name.c -- names of watched hosts: asked off the loop, kept, asked again; see watched.h.
 *
 *              watched_want_lookup            its time has come          an address
 *   (nothing) --------------------> WAITING -------------------> ASKING ------------> (nothing)
 *                                      ^                            |
 *                                      |  none: after 5 s, doubling |
 *                                      +----------------------------+  to 5 minutes, forever
 *
 * SM_MON of a name is answered at once, and the registration counts from then on: that the resolver
 * is slow, or does not know the name, must not keep the lock manager of this machine from work, and
 * it has only one thread. Until the name has an address its host can neither be told nor believed;
 * that is reported once, and when it is over.
 *
 * Of a host that has an address and does not answer there, the name is asked again: it may have
 * moved. What the resolver says then takes the place of what is stored; if it says nothing, what is
 * stored stays.
 */
#include "base/check.h"
#include "base/units.h"
#include "core/state.h"

#define AGAIN_FIRST_NS (5 * SECOND_NS)
#define AGAIN_LAST_NS  (300 * SECOND_NS)

enum { SAME_NAME_MAX = CORE_PUTS_PER_REQUEST_MAX / 2 }; /* the others are asked for when due */

void watched_want_lookup(struct core *core, uint32_t slot, uint64_t time_ns)
{
    struct timers *lookups = &core->watching.lookups;
    if (!watched_at(core, slot)->is_asking && !timers_is_set(lookups, slot))
        timers_set(lookups, slot, time_ns);
}

bool watched_next_lookup(struct core *core, uint32_t *ret_slot, struct bytes *ret_name)
{
    uint32_t slot = SLOT_NONE;
    if (core->watching.at != NULL && core->started)
        slot = timers_take(&core->watching.lookups, core->now_ns);
    if (slot == SLOT_NONE)
        return false;
    watched_at(core, slot)->is_asking = true;
    *ret_slot = slot;
    *ret_name = intern_bytes(&core->names, registrant_at(core, slot)->mon_name);
    return true;
}

uint64_t watched_lookup_deadline_ns(const struct core *core)
{
    if (core->watching.at == NULL || !core->started)
        return UINT64_MAX;
    return timers_next_ns(&core->watching.lookups);
}

static uint64_t pause_ns(const struct watched *w)
{
    uint64_t pause_ns = AGAIN_FIRST_NS << (w->lookups_failed < 6 ? w->lookups_failed : 6);
    return pause_ns < AGAIN_LAST_NS ? pause_ns : AGAIN_LAST_NS;
}

static void report(struct core *core, enum event_kind kind, uint32_t slot, uint64_t value)
{
    struct address host = watched_address(core, slot);
    event_add(&core->events, kind, host.family != 0 ? &host : NULL,
              intern_bytes(&core->names, registrant_at(core, slot)->mon_name), value);
}

static void not_found(struct core *core, uint32_t slot)
{
    struct watched *w = watched_at(core, slot);
    if (w->host_count > 0)
        return;
    MARK("watched_name_unknown");
    if (!w->is_reported)
        report(core, EVENT_UNRESOLVED, slot, 0);
    w->is_reported = true;
    watched_want_lookup(core, slot, core->now_ns + pause_ns(w));
    w->lookups_failed++;
}

static void resolved(struct core *core, uint32_t slot, const struct address *addresses,
                     uint32_t count)
{
    struct watched *w = watched_at(core, slot);
    bool had_none = w->host_count == 0;
    if (count > 0)
        watched_set_hosts(core, slot, addresses, count);
    if (w->host_count == 0) {
        CHECK(had_none || count > 0);
        core->watching.unresolved += !had_none;
        not_found(core, slot);
        return;
    }
    w->lookups_failed = 0;
    if (count > 0)
        dirty_put(&core->dirty, RECORD_REGISTRANT, slot);
    if (!had_none)
        return;
    MARK("watched_name_found");
    core->watching.unresolved--;
    if (w->is_reported)
        report(core, EVENT_RESOLVED, slot, 0);
    w->is_reported = false;
    watched_clear_if_ours(core, slot);
    if (table_is_live(&core->registrants.table, slot) && watched_is_callable(core, slot))
        notify_news(core, target_of_watched(core, slot));
}

void watched_resolved(struct core *core, uint32_t slot, const struct address *addresses,
                      uint32_t count)
{
    watched_at(core, slot)->is_asking = false;
    resolved(core, slot, addresses, count);
}

void watched_resolved_name(struct core *core, struct bytes mon_name,
                           const struct address *addresses, uint32_t count)
{
    const struct chains *by_name = &core->registrants.index.by_name;
    uint32_t fold = core_find_fold(core, mon_name), next;
    uint32_t slot = fold != SLOT_NONE ? chains_first(by_name, fold) : SLOT_NONE;
    for (uint32_t i = 0; i < SAME_NAME_MAX && slot != SLOT_NONE; i++, slot = next) {
        next = chains_next(by_name, slot);
        if (watched_at(core, slot)->is_name)
            resolved(core, slot, addresses, count);
    }
}

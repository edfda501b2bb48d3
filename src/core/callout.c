/*
 * callout.c -- see callout.h.
 */
#include "core/callout.h"

#include "base/check.h"
#include "core/state.h"

#include <stdlib.h>

int callout_init(struct core *core, const uint32_t slots[])
{
    (void)slots;
    if (!core->limits.has_callout)
        return 0;
    core->callouts.at = calloc(CALLOUT_MAX, sizeof *core->callouts.at);
    return core->callouts.at == NULL ? -1 : 0;
}

void callout_done(struct core *core)
{
    free(core->callouts.at);
}

/* The names are referred to from here on. */
static void add(struct core *core, const struct callout *callout, struct bytes mon_name,
                struct bytes my_name)
{
    struct callouts *all = &core->callouts;
    uint32_t mon = SLOT_NONE, my = SLOT_NONE;
    bool has_room = all->count < CALLOUT_MAX;
    if (has_room)
        mon = intern_add(&core->names, mon_name);
    if (mon != SLOT_NONE && my_name.len > 0)
        my = intern_add(&core->names, my_name);
    if (mon == SLOT_NONE || (my == SLOT_NONE && my_name.len > 0)) {
        if (mon != SLOT_NONE)
            (void)intern_release(&core->names, mon);
        all->lost++;
        return;
    }
    struct callout *at = &all->at[(all->head + all->count++) % CALLOUT_MAX];
    *at = *callout;
    at->mon_name = mon;
    at->my_name = my;
    at->after_txn = core->server.txn + 1; /* it tells of a change, which is in the open batch */
}

void callout_client(struct core *core, enum core_callout_kind kind, uint32_t slot)
{
    if (core->callouts.at == NULL)
        return;
    const struct registrant *r = registrant_at(core, slot);
    add(core, &(struct callout){.kind = kind}, intern_bytes(&core->names, r->mon_name),
        intern_bytes(&core->names, r->my_name));
}

void callout_notice(struct core *core, struct bytes name, const struct address *from,
                    uint32_t state)
{
    if (core->callouts.at == NULL)
        return;
    add(core, &(struct callout){.kind = CALLOUT_NOTIFY, .from = *from, .state = state}, name,
        (struct bytes){0});
}

/* The one that was shown has been looked at. */
static void drop_first(struct core *core)
{
    struct callouts *all = &core->callouts;
    const struct callout *first = &all->at[all->head];
    (void)intern_release(&core->names, first->mon_name);
    if (first->my_name != SLOT_NONE)
        (void)intern_release(&core->names, first->my_name);
    all->head = (all->head + 1) % CALLOUT_MAX;
    all->count--;
    all->is_shown = false;
}

bool core_next_callout(struct core *core, struct core_callout *ret)
{
    struct callouts *all = &core->callouts;
    if (all->is_shown)
        drop_first(core);
    if (all->count == 0 || all->at[all->head].after_txn > core_durable_txn(core))
        return false;
    const struct callout *first = &all->at[all->head];
    *ret = (struct core_callout){.kind = first->kind,
                                 .mon_name = intern_bytes(&core->names, first->mon_name),
                                 .from = first->from,
                                 .state = first->state};
    if (first->my_name != SLOT_NONE)
        ret->my_name = intern_bytes(&core->names, first->my_name);
    all->is_shown = true;
    return true;
}

uint64_t core_lost_callouts(const struct core *core)
{
    return core->callouts.lost;
}

void callout_check(const struct core *core)
{
    const struct callouts *all = &core->callouts;
    CHECK(all->at != NULL || (all->count == 0 && all->lost == 0));
    CHECK(all->count <= CALLOUT_MAX);
    CHECK(!all->is_shown || all->count > 0);
    for (uint32_t i = 1; i < all->count; i++)
        CHECK(all->at[(all->head + i - 1) % CALLOUT_MAX].after_txn <=
              all->at[(all->head + i) % CALLOUT_MAX].after_txn);
}

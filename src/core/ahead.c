/*
 * ahead.c -- see ahead.h.
 */
#include "core/ahead.h"

#include "base/fetch.h"
#include "core/lock_element.h"
#include "core/state.h"

void core_ahead(struct core *core, const struct peer *from, const struct request *request)
{
    struct ahead *ahead = &core->ahead;
    ahead->what = AHEAD_NOTHING;
    switch (request->kind) {
    case REQUEST_NSM_MON:
        ahead->what = AHEAD_NEW_REGISTRANT;
        ahead->registrant = registrant_hash(core, &from->address, request);
        ahead->name = intern_fetch(&core->names, request->mon_name);
        ahead->fold = core_fetch_fold(core, request->mon_name);
        hash_index_fetch(&core->registrants.index.by_key, ahead->registrant);
        return;
    case REQUEST_NSM_UNMON:
        ahead->what = AHEAD_REGISTRANT;
        ahead->registrant = registrant_hash(core, &from->address, request);
        hash_index_fetch(&core->registrants.index.by_key, ahead->registrant);
        return;
    case REQUEST_NLM_TEST:
    case REQUEST_NLM_LOCK:
    case REQUEST_NLM_CANCEL:
    case REQUEST_NLM_UNLOCK:
        ahead->what = AHEAD_LOCK;
        ahead->file = intern_fetch(&core->files.handles, request->lock.fh);
        ahead->owner = owner_hash(core, ahead->client, request->lock.svid);
        hash_index_fetch(&core->owners.by_key, ahead->owner);
        return;
    case REQUEST_NSM_STAT:
    case REQUEST_NSM_UNMON_ALL:
    case REQUEST_NSM_SIMU_CRASH:
    case REQUEST_NSM_NOTIFY:
    case REQUEST_NLM_GRANTED:
    case REQUEST_NLM_GRANTED_RES:
    case REQUEST_NLM_SHARE:
    case REQUEST_NLM_UNSHARE:
    case REQUEST_NLM_FREE_ALL:
        return;
    }
}

static void fetch_registrant(const struct core *core)
{
    const struct registrants *all = &core->registrants;
    uint32_t slot = hash_index_fetch_first(&all->index.by_key, core->ahead.registrant);
    if (slot != SLOT_NONE)
        fetch_lines(table_generation(&all->table, slot), all->table.stride);
}

/* The slots that its chains begin with. */
static void fetch_lock(struct core *core)
{
    struct ahead *ahead = &core->ahead;
    uint32_t file = hash_index_fetch_first(&core->files.handles.by_hash, ahead->file);
    ahead->owner_slot = hash_index_fetch_first(&core->owners.by_key, ahead->owner);
    if (file == SLOT_NONE)
        return;
    fetch_line(&core->files.at[file]);
    ahead->file_slot = file;
    ahead->what = AHEAD_HOLDING;
}

static void fetch_holding(const struct core *core)
{
    const struct ahead *ahead = &core->ahead;
    uint32_t owner = ahead->owner_slot;
    if (table_is_live(&core->owners.table, owner) && owner_at(core, owner)->near != 0)
        table_fetch(&core->locks.holdings, owner_at(core, owner)->near - 1);
    span_fetch(&core->locks.by_start, core->files.at[ahead->file_slot].locks);
}

void core_ahead_next(struct core *core)
{
    struct ahead *ahead = &core->ahead;
    switch (ahead->what) {
    case AHEAD_NOTHING:
        return;
    case AHEAD_NEW_REGISTRANT:
        (void)hash_index_fetch_first(&core->names.by_hash, ahead->name);
        (void)hash_index_fetch_first(&core->folds.by_hash, ahead->fold);
        (void)hash_index_fetch_first(&core->registrants.index.by_key, ahead->registrant);
        break;
    case AHEAD_REGISTRANT:
        fetch_registrant(core);
        break;
    case AHEAD_LOCK:
        ahead->what = AHEAD_NOTHING;
        fetch_lock(core);
        return;
    case AHEAD_HOLDING:
        fetch_holding(core);
        break;
    }
    ahead->what = AHEAD_NOTHING;
}

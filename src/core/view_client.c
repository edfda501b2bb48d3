/*
 * view_client.c -- clients of every protocol as operators see them; see view.h.
 *
 * The cursor is the table (registrants, lock clients, others) in its upper half and the slot to go
 * on with in its lower one.
 */
#include "base/check.h"
#include "core/state.h"
#include "core/view.h"

enum part { PART_NSM, PART_NLM, PART_OTHER, PART_END };

static const struct table *table_of(const struct core *core, uint32_t part)
{
    switch ((enum part)part) {
    case PART_NSM:
        return &core->registrants.table;
    case PART_NLM:
        return &core->clients.table;
    case PART_OTHER:
        return &core->tracker.table;
    case PART_END:
        break;
    }
    UNREACHABLE();
}

static void view_news(const struct core *core, uint32_t target, struct view_client *ret)
{
    const struct notify_job *job = &core->notify.jobs[target];
    ret->attempt_count = job->attempt_count;
    if (timers_is_set(&core->notify.timers, target))
        ret->next_try_ns = timers_deadline_ns(&core->notify.timers, target);
    switch (job->phase) {
    case NOTIFY_IDLE:
        ret->news = job->attempt_count > 0 ? VIEW_TOLD : VIEW_NOT_TOLD;
        return;
    case NOTIFY_WAITING:
        ret->news = VIEW_OWED;
        return;
    case NOTIFY_CALLING:
        ret->news = VIEW_CALLING;
        return;
    case NOTIFY_GIVEN_UP:
        ret->news = VIEW_GIVEN_UP;
        return;
    }
    UNREACHABLE();
}

/* What operators look for is the host, not the lock manager, of which there is one. */
static void view_watched(const struct core *core, uint32_t slot, struct view_client *ret)
{
    const struct registrant *r = registrant_at(core, slot);
    ret->name = ret->mon_name;
    ret->address = watched_address(core, slot);
    ret->is_watched = true;
    ret->is_owed = watched_is_owed(core, slot);
    ret->is_current = watched_is_current(core, slot);
    ret->upcall = watched_upcall(core, slot);
    ret->state = notice_state(core, r->mon_fold);
    ret->rebooted_ns = notice_heard_ns(core, r->mon_fold);
    view_news(core, target_of_watched(core, slot), ret);
    bool is_over = ret->news != VIEW_CALLING && ret->attempt_count > 0;
    ret->transport = watched_transport(ret->attempt_count - is_over);
    if (ret->is_owed && ret->news == VIEW_NOT_TOLD)
        ret->news = VIEW_OWED; /* its name does not resolve, or the NFS server is not up yet */
}

static void view_registrant(const struct core *core, uint32_t slot, struct view_client *ret)
{
    const struct registrant *r = table_at(&core->registrants.table, slot);
    *ret = (struct view_client){
        .id = r->id,
        .protocol = VIEW_NSM,
        .protocol_name = bytes_of_text("nsm"),
        .name = intern_bytes(&core->names, r->my_name),
        .my_name = intern_bytes(&core->names, r->my_name),
        .mon_name = intern_bytes(&core->names, r->mon_name),
        .priv = {r->priv, RECORD_PRIV_LEN},
        .local = r->local,
        .prog = r->my_prog,
        .vers = r->my_vers,
        .proc = r->my_proc,
        .port = r->port,
        .transport = r->transport,
        .server_epoch = r->server_epoch,
        .registered_ns = r->registered_ns,
        .seen_ns = registrant_last_seen_ns(r),
        .is_monitored = true,
    };
    memcpy(&ret->address, intern_bytes(&core->registrants.index.addresses, r->address).at,
           sizeof ret->address);
    view_news(core, target_of_registrant(slot), ret);
    if (core->limits.is_monitor)
        view_watched(core, slot, ret);
}

static void view_lock_client(const struct core *core, uint32_t slot, struct view_client *ret)
{
    const struct client *client = client_at(core, slot);
    *ret = (struct view_client){
        .id = client->stored.id,
        .protocol = VIEW_NLM,
        .protocol_name = bytes_of_text("nlm"),
        .name = intern_bytes(&core->names, client->stored.name),
        .address = client_address(core, slot),
        .local = client->stored.local,
        .transport = client->stored.transport,
        .state = client->stored.state_seen,
        .server_epoch = client->stored.server_epoch,
        .registered_ns = client->stored.registered_ns,
        .seen_ns = client_last_seen_ns(client),
        .rebooted_ns = client->stored.rebooted_ns,
        .lock_count = client->life.lock_count,
        .share_count = client->life.share_count,
        .waiter_count = client->life.waiter_count,
        .unsettled_count = client->recovery.unsettled_count + client->recovery.unsettled_shares +
                           client->recovery.left_over_count,
        .reclaimed_count = client->recovery.reclaimed_count,
        .is_monitored = client->stored.flags & RECORD_CLIENT_MONITORED,
        .is_crashed = client->stored.flags & RECORD_CLIENT_CRASHED,
        .is_moved = namesake_is_met(core, slot),
        .is_draining = !list_is_empty(&client->life.draining),
        .reached_ns = client->recovery.reached_ns,
        .told_ns = client->recovery.told_ns,
    };
    view_news(core, target_of_client(core, slot), ret);
}

static void view_other(const struct core *core, uint32_t slot, struct view_client *ret)
{
    struct tracker_view view;
    tracker_view_slot(core, slot, &view);
    *ret = (struct view_client){
        .id = view.id,
        .protocol = VIEW_OTHER,
        .protocol_name = view.protocol,
        .name = view.name,
        .address = view.address,
        .registered_ns = view.registered_ns,
        .is_crashed = view.state == RECORD_TRACKED_EXPIRED,
        .tracked = view.state,
        .window_s = view.window_s,
        .deadline_ns = view.deadline_ns,
    };
}

static void view_slot(const struct core *core, uint32_t part, uint32_t slot,
                      struct view_client *ret)
{
    if (part == PART_NSM)
        view_registrant(core, slot, ret);
    else if (part == PART_NLM)
        view_lock_client(core, slot, ret);
    else
        view_other(core, slot, ret);
}

bool view_next_client(const struct core *core, uint64_t *cursor, uint32_t *budget,
                      struct view_client *ret)
{
    uint32_t part = (uint32_t)(*cursor >> 32), slot = (uint32_t)*cursor;
    for (; part < PART_END; part++, slot = 0) {
        const struct table *table = table_of(core, part);
        for (; *budget > 0 && slot < table->used; slot++) {
            --*budget;
            if (!table_is_live(table, slot))
                continue;
            view_slot(core, part, slot, ret);
            *cursor = (uint64_t)part << 32 | (slot + 1);
            return true;
        }
        if (slot < table->used) {
            *cursor = (uint64_t)part << 32 | slot;
            return false;
        }
    }
    *cursor = VIEW_END;
    return false;
}

bool view_next_unsettled(const struct core *core, uint64_t *cursor, uint32_t *budget,
                         struct view_client *ret)
{
    const struct table *table = &core->clients.table;
    for (uint64_t slot = *cursor; slot < table->used; slot++) {
        if (*budget == 0) {
            *cursor = slot;
            return false;
        }
        --*budget;
        if (!table_is_live(table, (uint32_t)slot))
            continue;
        const struct client *client = client_at(core, (uint32_t)slot);
        if (client->recovery.unsettled_count == 0 && client->recovery.unsettled_shares == 0 &&
            client->recovery.left_over_count == 0)
            continue;
        view_lock_client(core, (uint32_t)slot, ret);
        *cursor = slot + 1;
        return true;
    }
    *cursor = VIEW_END;
    return false;
}

bool view_next_owed(const struct core *core, uint64_t *cursor, uint32_t *budget,
                    struct view_client *ret)
{
    const struct table *table = &core->registrants.table;
    for (uint64_t at = *cursor; at < table->used; at++) {
        uint32_t slot = (uint32_t)at;
        *cursor = at;
        if (*budget == 0)
            return false;
        --*budget;
        if (!table_is_live(table, slot) || !watched_has_duty(core, slot))
            continue;
        view_registrant(core, slot, ret);
        *cursor = at + 1;
        return true;
    }
    *cursor = VIEW_END;
    return false;
}

bool view_next_tracked(const struct core *core, uint64_t *cursor, uint32_t *budget,
                       struct tracker_view *ret)
{
    const struct table *table = &core->tracker.table;
    for (uint64_t at = *cursor; at < table->used; at++) {
        *cursor = at;
        if (*budget == 0)
            return false;
        --*budget;
        if (!table_is_live(table, (uint32_t)at))
            continue;
        tracker_view_slot(core, (uint32_t)at, ret);
        *cursor = at + 1;
        return true;
    }
    *cursor = VIEW_END;
    return false;
}

bool view_find_tracked(const struct core *core, struct bytes protocol, struct bytes key,
                       struct tracker_view *ret)
{
    return tracker_find(core, protocol, key, ret);
}

bool view_protocol(const struct core *core, uint32_t index, struct view_protocol_counts *ret)
{
    return tracker_count(core, index, &ret->name, ret->in);
}

bool view_find_client(const struct core *core, uint64_t id, struct view_client *ret)
{
    uint32_t registrant = registrant_find_id(core, id), client = client_find_id(core, id);
    uint32_t other = tracker_find_id(core, id);
    if (registrant != SLOT_NONE)
        view_registrant(core, registrant, ret);
    else if (client != SLOT_NONE)
        view_lock_client(core, client, ret);
    else if (other != SLOT_NONE)
        view_other(core, other, ret);
    return registrant != SLOT_NONE || client != SLOT_NONE || other != SLOT_NONE;
}

bool view_is_freeing(const struct core *core, uint64_t handle)
{
    uint32_t slot = table_find(&core->clients.table, handle);
    return slot != SLOT_NONE && !list_is_empty(&client_at(core, slot)->life.draining);
}

void view_name_used(struct core *core, const struct view_client *client, struct bytes *ret)
{
    struct bytes names[CORE_CALL_NAMES_MAX];
    *ret =
        client->is_watched && client->my_name.len > 0 ? client->my_name : core->limits.server_name;
    if (client->protocol == VIEW_NLM && naming_list(core, &client->local, names) > 0)
        *ret = names[0];
}

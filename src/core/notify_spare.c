/*
 * notify_spare.c -- clients that need not be notified of a restart; see notify.h.
 *
 * A client that held nothing and waited for nothing lost nothing: the store says so, unless it may
 * have lost what they held (D16), or they did not know of the restart before.
 */
#include "core/notify.h"

#include "base/check.h"
#include "core/state.h"

void notify_spare_idle(struct core *core, const struct record_server *before)
{
    const struct table *table = &core->clients.table;
    bool is_restart = before->state != core->server.state;
    bool is_complete = !(core->server.flags & RECORD_SERVER_INCOMPLETE);
    uint32_t slot = table_next(table, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(table, slot)) {
        struct client *client = client_at(core, slot);
        bool is_idle = client->life.lock_count == 0 && client->life.share_count == 0 &&
                       !(client->stored.flags & RECORD_CLIENT_WAITS);
        client->recovery.is_spared = is_restart && is_complete && is_idle &&
                                     target_knows(before, client->stored.told_state) &&
                                     (client->stored.flags & RECORD_CLIENT_MONITORED);
        evict_rank(core, slot);
    }
    core->notify.spare_at = table_next(table, SLOT_NONE);
}

void notify_write_spared(struct core *core)
{
    const struct table *table = &core->clients.table;
    uint32_t *at = &core->notify.spare_at;
    for (; *at != SLOT_NONE && !core_is_full(core); *at = table_next(table, *at)) {
        if (!table_is_live(table, *at) || !client_at(core, *at)->recovery.is_spared)
            continue;
        MARK("notify_spares_the_idle");
        client_at(core, *at)->recovery.is_spared = false;
        client_at(core, *at)->stored.told_state = core->server.state;
        dirty_put(&core->dirty, RECORD_CLIENT, *at);
    }
}

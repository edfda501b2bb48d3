/*
 * client_alive.c -- what a client's calls and answers say of it; see client.h.
 *
 * Any sign of life of a client ends in client_alive. It tells all that depend on it,
 * and none of them calls another: unreached.c takes its mark away, notify.c tries it now, grace.c
 * gives it time to reclaim.
 */
#include "core/client.h"

#include "base/check.h"
#include "core/state.h"

void client_called(struct core *core, uint32_t slot)
{
    client_at(core, slot)->life.seen_ns = core->now_ns;
    evict_rank(core, slot);
    client_alive(core, slot);
}

void client_alive(struct core *core, uint32_t slot)
{
    struct client *client = client_at(core, slot);
    uint32_t target = target_of_client(core, slot);
    bool is_first = client->recovery.reached_ns == 0;
    client->life.heard_wall_ns = core->wall_ns;
    if (is_first)
        client->recovery.reached_ns = core->now_ns > 0 ? core->now_ns : 1;
    unreached_client_alive(core, slot);
    if (is_first || notify_is_given_up(core, target))
        notify_heard(core, target);
    if (is_first)
        grace_judge(core, slot);
}

/* The wall clock may have been set back since: what was heard last counts, not what is later. */
uint64_t client_last_seen_ns(const struct client *client)
{
    return client->life.heard_wall_ns != 0 ? client->life.heard_wall_ns
                                           : client->stored.seen_wall_ns;
}

/* What recovery needs, when it changed. */
static void note_request(struct core *core, uint32_t slot, const struct peer *from,
                         const struct lock_request *request)
{
    struct client *client = client_at(core, slot);
    uint32_t versions = client->stored.versions | UINT32_C(1) << request->version;
    uint32_t flags = client->stored.flags | (request->is_unmonitored ? 0 : RECORD_CLIENT_MONITORED);
    bool is_newer = client_is_newer_state(request->state, client->stored.state_seen);
    if (address_equal(&client->stored.local, &from->local) &&
        client->stored.transport == (uint32_t)from->transport &&
        client->stored.versions == versions && client->stored.flags == flags && !is_newer)
        return;
    client->stored.local = from->local;
    client->stored.transport = from->transport;
    client->stored.versions = versions;
    if ((flags & ~client->stored.flags) & RECORD_CLIENT_MONITORED)
        client->stored.told_state =
            core->server.state; /* until now it relied on nothing (R-NM-1) */
    /* That it waits no longer is worth no write of its own: at worst it is notified in vain. */
    client->stored.flags =
        client->life.waiter_count > 0 ? flags : flags & ~(uint32_t)RECORD_CLIENT_WAITS;
    if (is_newer)
        client_saw_state(core, slot, request->state);
    client->stored.seen_wall_ns = core->wall_ns;
    dirty_put(&core->dirty, RECORD_CLIENT, slot);
}

void client_asked(struct core *core, uint32_t slot, const struct peer *from,
                  const struct lock_request *request)
{
    client_at(core, slot)->life.is_counted = false;
    client_alive(core, slot);
    note_request(core, slot, from, request);
    if (request->state != 0 && !request->is_unmonitored)
        probe_want_calibration(core, slot);
}

void client_waits(struct core *core, uint32_t slot)
{
    struct client *client = client_at(core, slot);
    if (client->stored.flags & RECORD_CLIENT_WAITS)
        return;
    client->stored.flags |= RECORD_CLIENT_WAITS;
    dirty_put(&core->dirty, RECORD_CLIENT, slot);
}

void client_granted_by(struct core *core, uint32_t slot, uint32_t proc)
{
    struct client *client = client_at(core, slot);
    if (client->stored.grant_proc == proc)
        return;
    client->stored.grant_proc = proc;
    dirty_put(&core->dirty, RECORD_CLIENT, slot);
}

/*
 * evict.c -- see evict.h.
 *
 * Clients are on two lists in the same order, of all and of their address. A client that may be
 * forgotten is always on them (evict_check); one that is on them may no longer be, and is taken off
 * when its turn comes: what makes it one that may be forgotten again puts it back, at the end.
 */
#include "core/evict.h"

#include "base/check.h"
#include "core/state.h"

static bool may_be_forgotten(const struct core *core, uint32_t slot)
{
    uint32_t target = target_of_client(core, slot);
    if (!client_has_nothing(client_at(core, slot)))
        return false;
    return target_owed(core, target).state == 0 || notify_is_given_up(core, target);
}

static void leave(struct client *client)
{
    list_remove(&client->life.idle);
    list_remove(&client->life.idle_here);
}

void evict_rank(struct core *core, uint32_t slot)
{
    struct client *client = client_at(core, slot);
    leave(client);
    if (!may_be_forgotten(core, slot))
        return;
    list_append(&core->clients.idle, &client->life.idle);
    list_append(&quota_at(core, client->quota)->idle, &client->life.idle_here);
}

/* False: it must stay. */
static bool evict(struct core *core, struct client *client)
{
    uint32_t slot = client_slot(core, client);
    if (!may_be_forgotten(core, slot)) {
        MARK("evict_not_any_more");
        leave(client);
        return false;
    }
    MARK("evict_client");
    struct address address = client_address(core, slot);
    core->quotas.counters.evicted_clients++;
    event_add(&core->events, EVENT_RECORD_EVICTED, &address,
              intern_bytes(&core->names, client->stored.name), client->stored.id);
    client_forget(core, slot);
    return true;
}

bool evict_client(struct core *core)
{
    struct list *idle = &core->clients.idle;
    while (!list_is_empty(idle))
        if (evict(core, LIST_ELEMENT(idle->next, struct client, life.idle)))
            return true;
    return false;
}

bool evict_client_of(struct core *core, const struct address *address)
{
    uint32_t quota = quota_find(core, address);
    if (quota == SLOT_NONE)
        return false;
    struct list *idle = &quota_at(core, quota)->idle;
    while (!list_is_empty(idle))
        if (evict(core, LIST_ELEMENT(idle->next, struct client, life.idle_here)))
            return true;
    return false;
}

bool evict_registrant(struct core *core)
{
    uint32_t slot = notify_first_given_up(core);
    if (slot == SLOT_NONE)
        return false;
    core->quotas.counters.evicted_registrants++;
    const struct registrant *r = registrant_at(core, slot);
    target_report(core, EVENT_RECORD_EVICTED, target_of_registrant(slot), r->id);
    registrant_forget(core, slot);
    return true;
}

void evict_check(const struct core *core, uint32_t slot)
{
    const struct client *client = client_at(core, slot);
    CHECK(list_is_empty(&client->life.idle) == list_is_empty(&client->life.idle_here));
    CHECK(!core->started || !may_be_forgotten(core, slot) || !list_is_empty(&client->life.idle));
}

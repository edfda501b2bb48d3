/*
 * turn.c -- see turn.h.
 *
 * Always true, and asserted by turn_check():
 *  (1) A client with ready offers is on turn or parked; one without is neither.
 *  (2) Of an address, as many clients are on turn as `turning` says, and as many callbacks are
 *      in flight or linger as `calling` says.
 *  (3) Somebody of an address is parked only while those on turn and in flight are as many as it
 *      may have: whatever ends one of them lets the next in, so nobody is parked forever.
 */
#include "core/turn.h"

#include "base/check.h"
#include "core/state.h"

static struct quota *quota_of(const struct core *core, const struct client *client)
{
    return quota_at(core, client->quota);
}

static uint32_t calls_max(const struct quota *quota)
{
    return quota->is_silent ? TURN_SILENT_MAX : TURN_CALLS_MAX;
}

static bool has_room(const struct quota *quota)
{
    return quota->turning + quota->calling < calls_max(quota);
}

static void go_on_turn(struct core *core, struct client *client)
{
    list_append(&core->grants.turns, &client->asked.turn);
    client->asked.is_on_turn = true;
    quota_of(core, client)->turning++;
}

static void enter(struct core *core, struct client *client)
{
    struct quota *quota = quota_of(core, client);
    if (list_is_empty(&client->asked.ready))
        return;
    if (has_room(quota)) {
        go_on_turn(core, client);
        return;
    }
    list_append(&quota->parked, &client->asked.turn);
}

/* Those who are parked come in, as far as there is room. */
static void let_in(struct core *core, struct quota *quota)
{
    while (has_room(quota) && !list_is_empty(&quota->parked)) {
        struct client *client = LIST_ELEMENT(quota->parked.next, struct client, asked.turn);
        list_remove(&client->asked.turn);
        go_on_turn(core, client);
    }
}

static void step_off(struct core *core, struct client *client)
{
    if (client->asked.is_on_turn)
        quota_of(core, client)->turning--;
    client->asked.is_on_turn = false;
    list_remove(&client->asked.turn);
}

void turn_add(struct core *core, uint32_t slot)
{
    struct waiter *w = waiter_at(core, slot);
    struct client *client = client_at(core, waiter_client(core, w));
    bool is_first = list_is_empty(&client->asked.ready);
    w->grant.is_ready = true;
    list_append(&client->asked.ready, &w->grant.queue);
    if (is_first)
        enter(core, client);
}

void turn_remove(struct core *core, uint32_t slot)
{
    struct waiter *w = waiter_at(core, slot);
    struct client *client = client_at(core, waiter_client(core, w));
    bool was_ready = w->grant.is_ready;
    list_remove(&w->grant.queue);
    w->grant.is_ready = false;
    if (!was_ready || !list_is_empty(&client->asked.ready))
        return;
    step_off(core, client);
    let_in(core, quota_of(core, client));
}

uint32_t turn_take(struct core *core)
{
    while (!list_is_empty(&core->grants.turns)) {
        struct client *client = LIST_ELEMENT(core->grants.turns.next, struct client, asked.turn);
        struct quota *quota = quota_of(core, client);
        step_off(core, client);
        if (quota->calling >= calls_max(quota)) { /* it has become silent since */
            list_append(&quota->parked, &client->asked.turn);
            continue;
        }
        struct waiter *w = LIST_ELEMENT(client->asked.ready.next, struct waiter, grant.queue);
        list_remove(&w->grant.queue);
        w->grant.is_ready = false;
        quota->calling++;
        client->asked.calling++;
        enter(core, client);
        let_in(core, quota);
        return table_slot(&core->waiters.table, w);
    }
    return SLOT_NONE;
}

void turn_ended(struct core *core, uint32_t slot, enum turn_end how)
{
    struct client *client = client_at(core, slot);
    struct quota *quota = quota_of(core, client);
    CHECK(client->asked.calling > 0 && quota->calling > 0);
    client->asked.calling--;
    quota->calling--;
    if (how != TURN_UNKNOWN)
        quota->is_silent = how == TURN_SILENT;
    let_in(core, quota);
}

bool turn_has_any(const struct core *core)
{
    return !list_is_empty(&core->grants.turns);
}

void turn_leave(struct core *core, uint32_t slot)
{
    struct client *client = client_at(core, slot);
    step_off(core, client);
    quota_of(core, client)->calling -= client->asked.calling;
    let_in(core, quota_of(core, client));
}

void turn_join(struct core *core, uint32_t slot)
{
    struct client *client = client_at(core, slot);
    quota_of(core, client)->calling += client->asked.calling;
    enter(core, client);
}

static void check_client(const struct core *core, const struct client *client)
{
    const struct quota *quota = quota_of(core, client);
    bool is_listed = !list_is_empty(&client->asked.turn);
    CHECK(is_listed == !list_is_empty(&client->asked.ready));
    CHECK(is_listed || !client->asked.is_on_turn);
    CHECK(!is_listed || client->asked.is_on_turn || !has_room(quota));
}

void turn_check(const struct core *core)
{
    const struct table *clients = &core->clients.table, *quotas = &core->quotas.table;
    uint64_t turning = 0, calling = 0, on_turn = 0, under_way = 0;
    uint32_t slot = table_next(clients, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(clients, slot)) {
        const struct client *client = client_at(core, slot);
        check_client(core, client);
        on_turn += client->asked.is_on_turn;
        under_way += client->asked.calling;
    }
    for (slot = table_next(quotas, SLOT_NONE); slot != SLOT_NONE; slot = table_next(quotas, slot)) {
        turning += quota_at(core, slot)->turning;
        calling += quota_at(core, slot)->calling;
    }
    CHECK(turning == on_turn);
    CHECK(calling == under_way);
    CHECK(calling == callback_count(core));
}

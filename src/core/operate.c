/*
 * operate.c -- see operate.h.
 */
#include "core/operate.h"

#include "base/check.h"
#include "core/state.h"

/* It is notified of a state that is new to it. One without a status monitor cannot be (R-NM-1). */
static bool tell(struct core *core, uint32_t slot)
{
    struct client *client = client_at(core, slot);
    if (!(client->stored.flags & RECORD_CLIENT_MONITORED))
        return false;
    MARK("operate_tells");
    core_raise_state(core);
    client->stored.told_state = 0;
    client->recovery.is_spared = false;
    client->recovery.must_know = core->server.state;
    dirty_put(&core->dirty, RECORD_CLIENT, slot);
    notify_news(core, target_of_client(core, slot));
    return true;
}

/* What it was told is its is not: no answer may say so again. */
static void override(struct core *core, uint32_t slot)
{
    struct address address = client_address(core, slot);
    core_client_overridden(core, slot, &address);
}

/* False: it holds nothing there. */
static bool release_file(struct core *core, uint32_t slot, struct bytes fh)
{
    uint32_t file = file_find(core, fh);
    if (file == SLOT_NONE)
        return false;
    MARK("operate_releases_a_file");
    file_keep(core, file);
    uint32_t ended = grant_drop_file(core, slot, file);
    uint32_t freed = lock_free_file(core, slot, file) + share_free_file(core, slot, file);
    file_release(core, file);
    core->reboots.released += freed;
    client_counts_changed(core, slot);
    return ended + freed > 0;
}

/* Whatever it may still be owed: an operator does without it, from now on. */
static enum order_result forget_registrant(struct core *core, uint64_t id, struct bytes fh)
{
    uint32_t slot = registrant_find_id(core, id);
    if (slot == SLOT_NONE)
        return ORDER_NO_CLIENT;
    if (fh.len > 0)
        return ORDER_NOTHING;
    registrant_forget(core, slot);
    return ORDER_DONE;
}

/* All that it has is being freed as it is: a repeated order has nothing to add. */
static bool is_going(const struct core *core, uint32_t slot)
{
    const struct client *client = client_at(core, slot);
    return !list_is_empty(&client->life.draining) && client->life.current_count == 0 &&
           client->life.waiter_count == 0;
}

static enum order_result release(struct core *core, uint32_t slot, struct bytes fh)
{
    const struct client *client = client_at(core, slot);
    if (fh.len > 0) {
        if (!release_file(core, slot, fh))
            return ORDER_NOTHING;
        override(core, slot);
        (void)tell(core, slot);
        return ORDER_DONE;
    }
    if (is_going(core, slot))
        return ORDER_BEGUN;
    if (client_has_nothing(client)) {
        MARK("operate_forgets");
        client_forget(core, slot);
        return ORDER_DONE;
    }
    client_release(core, slot);
    override(core, slot);
    (void)tell(core, slot);
    return client_drain_now(core, slot) ? ORDER_DONE : ORDER_BEGUN;
}

/* The address of ours that it uses now: what it asked when it was refused, else the one it used
 * before. Of another family none is known; its next lock says. */
static struct address local_for(const struct core *core, uint32_t slot, const struct address *to)
{
    const struct namesake *pair = namesake_find(core, slot, to);
    const struct client *client = client_at(core, slot);
    if (pair != NULL)
        return pair->local;
    return client->stored.local.family == to->family ? client->stored.local : (struct address){0};
}

static enum order_result move(struct core *core, uint32_t slot, const struct address *to)
{
    struct address from = client_address(core, slot), local = local_for(core, slot, to);
    if (!address_is_host(to))
        return ORDER_BAD_ADDRESS;
    if (address_equal(&from, to))
        return ORDER_NOTHING;
    switch (client_move(core, slot, to, &local)) {
    case CLIENT_MOVED:
        MARK("operate_moves");
        core_client_overridden(core, slot, &from);
        (void)tell(core, slot);
        return ORDER_DONE;
    case CLIENT_MOVE_TAKEN:
        return ORDER_TAKEN;
    case CLIENT_MOVE_BYTES:
        return ORDER_NO_BYTES;
    }
    UNREACHABLE();
}

enum order_result operate(struct core *core, const struct order *order)
{
    uint32_t slot;
    switch (order->kind) {
    case ORDER_END_GRACE:
        if (grace_is_unstored(core))
            return ORDER_LATER;
        return grace_end_now(core) ? ORDER_DONE : ORDER_NOTHING;
    case ORDER_RESTART_NOTICE:
        if (!core->limits.is_monitor)
            return ORDER_NOTHING;
        watched_restart_notice(core);
        return ORDER_DONE;
    case ORDER_RELEASE:
        slot = client_find_id(core, order->client);
        return slot == SLOT_NONE ? forget_registrant(core, order->client, order->fh)
                                 : release(core, slot, order->fh);
    case ORDER_NOTIFY:
        slot = client_find_id(core, order->client);
        if (slot == SLOT_NONE)
            return ORDER_NO_CLIENT;
        return tell(core, slot) ? ORDER_DONE : ORDER_NOTHING;
    case ORDER_MOVE:
        slot = client_find_id(core, order->client);
        return slot == SLOT_NONE ? ORDER_NO_CLIENT : move(core, slot, &order->to);
    }
    UNREACHABLE();
}

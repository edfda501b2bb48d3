/*
 * client_life.c -- the lives of a client: its states, what is over with them, and how that is
 * freed; see client.h.
 *
 * Always true, and asserted by client_life_check():
 *  (1) A client is on the list `draining` while anything may be left that is over (client_is_over):
 *      cursors exist only there, and off the list nothing that it has is.
 *  (2) current_count locks and shares are of its present incarnation.
 *
 * A client that rebooted (client_start_over) is freed in the order of its chains. New locks and
 * shares go to the front of them, behind which the cursors walk away, so a client that locks faster
 * than it is drained does not keep the drain from ending. What was loaded is in the order of its
 * slots: a drain that continues after a start may meet what was taken since, and passes by.
 *
 * Stamps say what is of an earlier life. Usually everything is, and a new incarnation says so. When
 * only a part is, because the client took locks in its new life before we believed in it,
 * `free_below` says which states are older. It stays when the drain has ended, and from then on
 * means that nothing older will come: such a state of a late request counts as free_below
 * (client_stamp).
 *
 * A crash is counted once. A client that was not reached is counted then (D5); when it says later
 * that it rebooted, and was not heard from in between, that is the same crash. What is freed for it
 * is counted when it is freed: when grace ends, or by a drain.
 */
#include "base/check.h"
#include "core/client.h"
#include "core/lock_element.h"
#include "core/state.h"

enum { ECHOES_RESTAMPED_MAX = CORE_PUTS_PER_REQUEST_MAX / 2 - 16 };

#define STATE_HALF UINT32_C(0x80000000) /* of the circle of state numbers */

static struct bytes name_of(const struct core *core, const struct client *client)
{
    return intern_bytes(&core->names, client->stored.name);
}

bool client_is_newer_state(uint32_t state, uint32_t than)
{
    return state != 0 && state != than && (than == 0 || state - than < STATE_HALF);
}

static void forget_older(struct client *client)
{
    client->stored.free_below = 0;
    client->stored.flags &= ~(uint32_t)RECORD_CLIENT_RECOUNTED;
}

void client_saw_state(struct core *core, uint32_t slot, uint32_t state)
{
    struct client *client = client_at(core, slot);
    if (!client_is_newer_state(state, client->stored.state_seen))
        return;
    client->stored.state_seen = state;
    client->stored.flags &= ~(uint32_t)RECORD_CLIENT_CALIBRATED;
    client->asked.calibrate_next_ns = 0;
    /* What is taken under the new state must get it as its stamp, also where the counter had
     * started over and every state other than its first was older. */
    if (list_is_empty(&client->life.draining))
        forget_older(client);
    dirty_put(&core->dirty, RECORD_CLIENT, slot);
}

void client_calibrate(struct core *core, uint32_t slot, uint32_t state)
{
    struct client *client = client_at(core, slot);
    if (state == 0 || state != client->stored.state_seen || client_is_calibrated(client))
        return;
    MARK("client_calibrated");
    client->stored.flags |= RECORD_CLIENT_CALIBRATED;
    dirty_put(&core->dirty, RECORD_CLIENT, slot);
}

/* A cursor at the first slot of a chain. */
static uint32_t cursor_at_first(const struct chains *chains, uint32_t chain)
{
    uint32_t slot = chains_first(chains, chain);
    return slot == SLOT_NONE ? 0 : slot + 1;
}

static void begin_drain(struct core *core, uint32_t slot)
{
    struct client *client = client_at(core, slot);
    client->life.drain_at = cursor_at_first(&core->locks.by_client, slot);
    client->life.share_drain_at = cursor_at_first(&core->shares.by_client, slot);
    if (!list_is_empty(&client->life.draining)) {
        MARK("client_starts_over_while_draining");
        return;
    }
    client->life.drained_count = 0;
    list_append(&core->clients.draining, &client->life.draining);
    client_counts_changed(core, slot);
}

/* Unless that is the crash that was counted when it was not reached. */
static void count_crash(struct core *core, struct client *client)
{
    if (client->life.is_counted)
        return;
    core->reboots.crashes_detected++;
    client->life.is_cleaned = false;
}

void client_count_freed(struct core *core, uint32_t slot, uint32_t count)
{
    struct client *client = client_at(core, slot);
    if (count == 0)
        return;
    core->reboots.cleanups += client->life.is_cleaned ? 0 : 1;
    core->reboots.locks_cleaned += count;
    client->life.is_cleaned = true;
}

/* What makes some of its elements be over is set: it is made known, and freed from now on. */
static void begin_anew(struct core *core, uint32_t slot, bool is_crash)
{
    struct client *client = client_at(core, slot);
    struct address address = client_address(core, slot);
    if (is_crash) {
        count_crash(core, client);
        client->life.is_counted = client->life.is_released = false;
    }
    client->life.drain_is_search = false; /* what was looked for is over with the rest */
    dirty_put(&core->dirty, RECORD_CLIENT, slot);
    event_add(&core->events, EVENT_CLIENT_RENEWED, &address, name_of(core, client),
              client->stored.id);
    begin_drain(core, slot);
}

/*
 * What is left when everything of a client was freed is only kept from others for a while: offers
 * with a callback that lingers, of which an address has few, and echoes. They become of the first
 * number. Echoes that are too many for one batch go at once: only their own client could be hurt,
 * and only after four thousand million lives of it.
 */
static void restamp_kept(struct core *core, uint32_t slot)
{
    const struct chains *locks = &core->locks.by_client;
    uint32_t puts_max = core->limits.batch_puts_max + ECHOES_RESTAMPED_MAX, next;
    for (uint32_t at = chains_first(locks, slot); at != SLOT_NONE; at = next) {
        next = chains_next(locks, at);
        if (lock_at(core, at)->is_lingering || core->dirty.put_count < puts_max)
            lock_element_restamp(core, at, 1);
        else
            lock_offer_withdraw(core, at);
    }
}

/*
 * There is no number after this one. Everything that has a stamp goes now, in one batch, so that
 * numbers can be used again: the first one for what has to stay, the others are on nothing.
 */
static void begin_count_anew(struct core *core, uint32_t slot)
{
    struct client *client = client_at(core, slot);
    client->stored.incarnation = 0; /* of nothing: all that it has is over */
    client->life.current_count = 0;
    grant_drop_client(core, slot);
    begin_drain(core, slot);
    while (!client_drain_now(core, slot))
        continue;
    restamp_kept(core, slot);
    client->stored.incarnation = 1;
}

/* An order that comes while a crash is being cleaned up is counted with that, and the other way
 * round: there is one count of what a drain frees. */
static void renew(struct core *core, uint32_t slot, bool is_released)
{
    struct client *client = client_at(core, slot);
    bool has_found = !client->life.drain_is_search || client->life.drained_count > 0;
    bool is_new = list_is_empty(&client->life.draining) || !has_found;
    client->life.is_released = is_released && (is_new || client->life.is_released);
    if (client->stored.incarnation == UINT32_MAX) {
        begin_count_anew(core, slot);
        client->life.is_released = is_released;
    }
    client->stored.incarnation++;
    client->life.current_count = 0;
    forget_older(client);
    grant_drop_client(core, slot);
    begin_anew(core, slot, !is_released);
}

void client_start_over(struct core *core, uint32_t slot)
{
    MARK("client_starts_over");
    renew(core, slot, false);
}

void client_release(struct core *core, uint32_t slot)
{
    MARK("client_released");
    renew(core, slot, true);
}

/* Has it anything that is over, and not by its incarnation? */
static bool has_older(const struct core *core, uint32_t slot)
{
    const struct client *client = client_at(core, slot);
    const struct chains *locks = &core->locks.by_client, *shares = &core->shares.by_client;
    for (uint32_t at = chains_first(locks, slot); at != SLOT_NONE; at = chains_next(locks, at))
        if (!lock_at(core, at)->is_lingering && !echo_is(core, at) &&
            client_is_over(client, client->stored.incarnation, lock_at(core, at)->state))
            return true;
    for (uint32_t at = chains_first(shares, slot); at != SLOT_NONE; at = chains_next(shares, at))
        if (client_is_over(client, client->stored.incarnation, share_at(core, at)->state))
            return true;
    const struct chains *waiters = &core->waiters.by_client;
    for (uint32_t at = chains_first(waiters, slot); at != SLOT_NONE; at = chains_next(waiters, at))
        if (client_is_over(client, client->stored.incarnation, waiter_at(core, at)->state))
            return true;
    return false;
}

/* A client that has very much is not searched in one go: the drain looks at all of it, in pieces,
 * and finds out whether there is anything. Nothing is announced before that is known. */
bool client_free_older(struct core *core, uint32_t slot)
{
    struct client *client = client_at(core, slot);
    struct client before = *client;
    bool is_much = client->life.lock_count + client->life.share_count + client->life.waiter_count >
                   CLIENT_DRAIN_MAX;
    if (client->stored.free_below == client->stored.state_seen)
        return false;
    forget_older(client);
    client->stored.free_below = client->stored.state_seen;
    if (!is_much && !has_older(core, slot)) {
        client->stored.free_below = before.stored.free_below;
        client->stored.flags = before.stored.flags;
        return false;
    }
    MARK("client_older_freed");
    grant_drop_older(core, slot);
    if (!is_much) {
        begin_anew(core, slot, true);
        return true;
    }
    client->life.drain_is_search = true;
    client->life.has_found = false;
    dirty_put(&core->dirty, RECORD_CLIENT, slot);
    begin_drain(core, slot);
    return true;
}

void client_recount(struct core *core, uint32_t slot, uint32_t state)
{
    struct client *client = client_at(core, slot);
    MARK("client_recounted");
    CHECK(state != 0);
    client->stored.state_seen = state;
    client->stored.free_below = state;
    client->stored.flags |= RECORD_CLIENT_RECOUNTED;
    grant_drop_older(core, slot);
    begin_anew(core, slot, true);
}

bool client_free_all(struct core *core, const struct address *from, struct bytes name,
                     uint32_t state)
{
    uint32_t slot = name.len == 0 ? SLOT_NONE : client_find(core, from, name);
    if (slot == SLOT_NONE) {
        MARK("free_all_of_nobody");
        event_add(&core->events, EVENT_FREE_ALL_IGNORED, from, name, 0);
        return false;
    }
    client_alive(core, slot);
    core_host_restarted(core, from);
    client_start_over(core, slot);
    client_saw_state(core, slot, state); /* or its first LOCK would free what it took since */
    return true;
}

/* Looks at up to `max` locks and shares of one client; returns at how many. */
static uint32_t drain_one(struct core *core, uint32_t slot, uint32_t max)
{
    struct client *client = client_at(core, slot);
    uint32_t shares_freed = 0;
    uint32_t count = lock_drain(core, slot, max);
    CHECK(count <= max);
    if (client->life.drain_at == 0)
        count += share_drain(core, slot, max - count, &shares_freed);
    CHECK(count <= max);
    client->life.drained_count += shares_freed; /* lock_free_if_doomed counts the locks */
    if (client->life.drain_is_search && client->life.drained_count > 0 && !client->life.has_found) {
        struct address address = client_address(core, slot);
        client->life.has_found = true;
        core_host_restarted(core, &address);
    }
    return count;
}

static void end_drain(struct core *core, uint32_t slot)
{
    struct client *client = client_at(core, slot);
    struct address address = client_address(core, slot);
    list_remove(&client->life.draining);
    client_counts_changed(core, slot);
    bool is_search = client->life.drain_is_search, is_released = client->life.is_released;
    client->life.drain_is_search = client->life.is_released = false;
    if (client->life.drained_count == 0)
        return;
    if (is_search && !is_released)
        count_crash(core, client);
    if (is_released)
        core->reboots.released += client->life.drained_count;
    else
        client_count_freed(core, slot, client->life.drained_count);
    event_add(&core->events, EVENT_CLIENT_FREED, &address, name_of(core, client),
              client->life.drained_count);
}

bool client_drain(struct core *core)
{
    struct clients *all = &core->clients;
    uint32_t left = CLIENT_DRAIN_MAX;
    while (!list_is_empty(&all->draining) && core->restarted_count < RESTARTED_MAX) {
        struct client *client = LIST_ELEMENT(all->draining.next, struct client, life.draining);
        uint32_t slot = client_slot(core, client);
        left -= drain_one(core, slot, left);
        if (client->life.drain_at != 0 || client->life.share_drain_at != 0) {
            MARK("client_drained_in_pieces");
            return true;
        }
        end_drain(core, slot);
    }
    return !list_is_empty(&all->draining);
}

bool client_drain_now(struct core *core, uint32_t slot)
{
    const struct client *client = client_at(core, slot);
    if (list_is_empty(&client->life.draining))
        return true;
    (void)drain_one(core, slot, CLIENT_DRAIN_MAX);
    if (client->life.drain_at != 0 || client->life.share_drain_at != 0)
        return false;
    end_drain(core, slot);
    return true;
}

/* Of what this client has here, is anything over? */
static bool has_old(const struct core *core, uint32_t slot)
{
    const struct chains *locks = &core->locks.by_client, *shares = &core->shares.by_client;
    for (uint32_t at = chains_first(locks, slot); at != SLOT_NONE; at = chains_next(locks, at))
        if (lock_element_is_doomed(core, lock_at(core, at)))
            return true;
    for (uint32_t at = chains_first(shares, slot); at != SLOT_NONE; at = chains_next(shares, at))
        if (share_is_over(core, share_at(core, at)))
            return true;
    return false;
}

bool client_life_start(struct core *core, uint32_t slot)
{
    if (!has_old(core, slot))
        return false;
    MARK("client_drain_goes_on");
    begin_drain(core, slot);
    return true;
}

static uint32_t count_current(const struct core *core, uint32_t slot)
{
    const struct client *client = client_at(core, slot);
    const struct chains *locks = &core->locks.by_client, *shares = &core->shares.by_client;
    uint32_t count = 0;
    for (uint32_t at = chains_first(locks, slot); at != SLOT_NONE; at = chains_next(locks, at))
        count += lock_at(core, at)->incarnation == client->stored.incarnation;
    for (uint32_t at = chains_first(shares, slot); at != SLOT_NONE; at = chains_next(shares, at))
        count += share_at(core, at)->incarnation == client->stored.incarnation;
    return count;
}

void client_life_check(const struct core *core, uint32_t slot)
{
    const struct client *client = client_at(core, slot);
    CHECK(client->life.current_count == count_current(core, slot));
    if (list_is_empty(&client->life.draining)) {
        CHECK(client->life.drain_at == 0);
        CHECK(client->life.share_drain_at == 0);
        CHECK(!core->started || !has_old(core, slot));
        return;
    }
    if (client->life.drain_at != 0)
        CHECK(chains_has(&core->locks.by_client, slot, client->life.drain_at - 1));
    if (client->life.share_drain_at != 0)
        CHECK(chains_has(&core->shares.by_client, slot, client->life.share_drain_at - 1));
}

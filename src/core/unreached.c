/*
 * unreached.c -- see unreached.h.
 *
 * Always true, and asserted by unreached_check():
 *  A host on the list has no members left, and is on it once.
 *
 * A client that is marked crashed is one that must still be notified of a restart, so it is kept
 * for that reason anyway: the mark keeps nobody longer.
 *
 * The members are counted rather than looked for: a thousand targets behind one address cost a
 * thousand steps and not a million (P7).
 */
#include "core/unreached.h"

#include "base/check.h"
#include "core/missed.h"
#include "core/state.h"

#include <stdlib.h>

enum { MARKS_PER_TURN = 64 }; /* a step may put so many records beside its own */

static struct unreached_host *host_at(const struct core *core, uint32_t host)
{
    CHECK(host < core->notify.unreached.host_max);
    return &core->notify.unreached.hosts[host];
}

int unreached_init(struct core *core, uint32_t clients_max)
{
    struct unreached *unreached = &core->notify.unreached;
    list_init(&unreached->failed);
    unreached->host_max = clients_max;
    unreached->hosts = calloc(clients_max > 0 ? clients_max : 1, sizeof *unreached->hosts);
    return unreached->hosts == NULL ? -1 : 0;
}

void unreached_done(struct core *core)
{
    free(core->notify.unreached.hosts);
}

static void release(struct core *core, uint32_t host)
{
    (void)intern_release(&core->clients.index.addresses, host);
}

static void leave_list(struct core *core, struct unreached_host *at)
{
    list_remove(&at->queue);
    at->is_failed = false;
    release(core, (uint32_t)(at - core->notify.unreached.hosts));
}

void unreached_begin(struct core *core)
{
    struct unreached *unreached = &core->notify.unreached;
    while (!list_is_empty(&unreached->failed))
        leave_list(core, LIST_ELEMENT(unreached->failed.next, struct unreached_host, queue));
    for (uint32_t host = 0; host < core->clients.index.addresses.table.used; host++) {
        CHECK(unreached->hosts[host].left == 0);
        unreached->hosts[host].is_reached = false;
    }
}

static uint32_t find_host(const struct core *core, const struct address *address)
{
    struct bytes bytes = {(const uint8_t *)address, sizeof *address};
    return intern_find(&core->clients.index.addresses, bytes);
}

uint32_t unreached_join(struct core *core, uint32_t target)
{
    struct address address = target_address(core, target);
    struct bytes bytes = {(const uint8_t *)&address, sizeof address};
    if (find_host(core, &address) == SLOT_NONE)
        return SLOT_NONE;
    uint32_t host = intern_add(&core->clients.index.addresses, bytes); /* one more reference */
    CHECK(host != SLOT_NONE);
    host_at(core, host)->left++;
    if (target_is_client(core, target) &&
        client_at(core, target_client(core, target))->recovery.reached_ns != 0)
        host_at(core, host)->is_reached = true; /* it called before we were ready (D5 (6)) */
    return host;
}

void unreached_leave(struct core *core, uint32_t host, bool is_reached)
{
    if (host == SLOT_NONE)
        return;
    struct unreached_host *at = host_at(core, host);
    CHECK(at->left > 0);
    at->left--;
    at->is_reached |= is_reached;
    if (at->left > 0 || at->is_reached || core->limits.hold_unreachable) {
        release(core, host);
        return;
    }
    MARK("unreached_address");
    at->is_failed = true;
    list_append(&core->notify.unreached.failed, &at->queue);
}

void unreached_heard(struct core *core, const struct address *address)
{
    uint32_t host = find_host(core, address);
    if (host != SLOT_NONE)
        host_at(core, host)->is_reached = true;
}

void unreached_client_alive(struct core *core, uint32_t slot)
{
    struct client *client = client_at(core, slot);
    host_at(core, client->stored.address)->is_reached = true;
    if (!(client->stored.flags & RECORD_CLIENT_CRASHED))
        return;
    MARK("unreached_client_is_back");
    missed_mark(core, client, false);
    dirty_put(&core->dirty, RECORD_CLIENT, slot);
}

static bool is_to_be_marked(const struct core *core, uint32_t slot)
{
    uint32_t target = target_of_client(core, slot);
    return !core->notify.jobs[target].is_marked && target_owed(core, target).state != 0;
}

static void mark(struct core *core, uint32_t slot)
{
    struct client *client = client_at(core, slot);
    uint64_t locks = (uint64_t)client->recovery.unsettled_count + client->recovery.unsettled_shares;
    MARK("unreached_client_marked");
    core->notify.jobs[target_of_client(core, slot)].is_marked = true;
    if (!client->life.is_counted) {
        core->reboots.crashes_detected++;
        client->life.is_cleaned = false;
    }
    client->life.is_counted = true;
    missed_mark(core, client, true);
    dirty_put(&core->dirty, RECORD_CLIENT, slot);
    if (locks > 0) /* that it was not reached is reported anyway */
        target_report(core, EVENT_CLIENT_UNREACHED, target_of_client(core, slot), locks);
}

bool unreached_work(struct core *core)
{
    struct unreached *unreached = &core->notify.unreached;
    const struct chains *by_address = &core->clients.index.by_address;
    uint32_t left = MARKS_PER_TURN;
    while (!list_is_empty(&unreached->failed)) {
        struct unreached_host *at =
            LIST_ELEMENT(unreached->failed.next, struct unreached_host, queue);
        uint32_t slot = chains_first(by_address, (uint32_t)(at - unreached->hosts));
        for (; slot != SLOT_NONE && !at->is_reached; slot = chains_next(by_address, slot)) {
            if (!is_to_be_marked(core, slot))
                continue;
            if (left == 0 || core_is_full(core))
                return true;
            mark(core, slot);
            left--;
        }
        leave_list(core, at);
    }
    return false;
}

bool unreached_has_work(const struct core *core)
{
    return !list_is_empty(&core->notify.unreached.failed);
}

void unreached_check(const struct core *core)
{
    const struct unreached *unreached = &core->notify.unreached;
    for (const struct list *node = unreached->failed.next; node != &unreached->failed;
         node = node->next) {
        const struct unreached_host *at = LIST_ELEMENT(node, struct unreached_host, queue);
        CHECK(at->is_failed && at->left == 0);
    }
}

/*
 * missed.c -- see missed.h.
 *
 * Always true, and asserted by missed_check(): core->clients.missed_count is how many are missed.
 */
#include "core/missed.h"

#include "base/check.h"
#include "core/state.h"

static uint32_t is_missed(const struct client *client)
{
    const struct client_recovery *recovery = &client->recovery;
    return (client->stored.flags & RECORD_CLIENT_CRASHED) &&
           (recovery->unsettled_count > 0 || recovery->unsettled_shares > 0 ||
            recovery->left_over_count > 0);
}

void missed_more(struct core *core, struct client *client, uint32_t *count)
{
    core->clients.missed_count -= is_missed(client);
    ++*count;
    core->clients.missed_count += is_missed(client);
}

void missed_less(struct core *core, struct client *client, uint32_t *count)
{
    core->clients.missed_count -= is_missed(client);
    --*count;
    core->clients.missed_count += is_missed(client);
}

void missed_mark(struct core *core, struct client *client, bool is_crashed)
{
    core->clients.missed_count -= is_missed(client);
    client->stored.flags &= ~(uint32_t)RECORD_CLIENT_CRASHED;
    client->stored.flags |= is_crashed ? RECORD_CLIENT_CRASHED : 0;
    core->clients.missed_count += is_missed(client);
}

void missed_check(const struct core *core)
{
    const struct table *table = &core->clients.table;
    uint32_t count = 0;
    for (uint32_t at = table_next(table, SLOT_NONE); at != SLOT_NONE; at = table_next(table, at))
        count += is_missed(client_at(core, at));
    CHECK(core->clients.missed_count == count);
}

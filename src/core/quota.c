/*
 * quota.c -- see quota.h.
 *
 * Always true, and asserted by quota_check():
 *  (1) An address is here exactly while somebody holds a reference to it, once.
 *  (2) The references are its clients, registrants, tracked clients, files, questions, notices that
 *      wait and their answers; over all addresses each count adds up to what its table holds.
 *  (3) near[] counts the addresses that have most of their share, clients.near_count the clients
 *      that have most of what one may.
 */
#include "core/quota.h"

#include "base/check.h"
#include "base/hash.h"
#include "core/state.h"
#include "core/view.h"

enum { PERCENT = 100 };

struct quota *quota_at(const struct core *core, uint32_t slot)
{
    return table_at(&core->quotas.table, slot);
}

int quota_init(struct core *core, const uint32_t slots[])
{
    uint32_t addresses_max = slots[RECORD_REGISTRANT] + slots[RECORD_CLIENT] +
                             slots[RECORD_TRACKED] + core->limits.local_files_max + PROBE_MAX +
                             HEARSAY_MAX + WITHHELD_MAX + 1; /* one moves */
    struct quotas *all = &core->quotas;
    int err = table_init_linked(&all->table, addresses_max, sizeof(struct quota));
    if (err == 0)
        err = hash_index_init_in(&all->by_address, &all->table);
    return err;
}

void quota_done(struct core *core)
{
    table_done(&core->quotas.table);
    hash_index_done(&core->quotas.by_address);
}

static uint64_t hash_of(const struct core *core, const struct address *address)
{
    return hash_key(core->seed, (struct bytes){(const uint8_t *)address, sizeof *address});
}

static uint32_t find(const struct core *core, const struct address *address, uint64_t hash)
{
    const struct hash_index *by_address = &core->quotas.by_address;
    uint32_t slot = hash_index_first(by_address, hash);
    while (slot != SLOT_NONE && !address_equal(&quota_at(core, slot)->address, address))
        slot = hash_index_next(by_address, slot);
    return slot;
}

uint32_t quota_find(const struct core *core, const struct address *address)
{
    return find(core, address, hash_of(core, address));
}

uint32_t quota_keep(struct core *core, const struct address *address)
{
    struct quotas *all = &core->quotas;
    uint64_t hash = hash_of(core, address);
    uint32_t slot = find(core, address, hash);
    if (slot == SLOT_NONE) {
        slot = table_add(&all->table);
        CHECK(slot != SLOT_NONE); /* there are as many slots as may hold references */
        *quota_at(core, slot) = (struct quota){.address = *address};
        list_init(&quota_at(core, slot)->idle);
        list_init(&quota_at(core, slot)->parked);
        list_init(&quota_at(core, slot)->said);
        list_init(&quota_at(core, slot)->wake_turn);
        list_init(&quota_at(core, slot)->woken_files);
        hash_index_add(&all->by_address, hash, slot);
    }
    quota_at(core, slot)->references++;
    return slot;
}

void quota_release(struct core *core, uint32_t slot)
{
    struct quotas *all = &core->quotas;
    struct quota *quota = quota_at(core, slot);
    CHECK(quota->references > 0);
    if (--quota->references > 0)
        return;
    for (uint32_t kind = 0; kind < QUOTA_KIND_END; kind++)
        CHECK(quota->counts[kind] == 0);
    CHECK(list_is_empty(&quota->idle) && list_is_empty(&quota->parked));
    CHECK(quota->turning == 0 && quota->calling == 0 && list_is_empty(&quota->woken_files));
    CHECK(quota->questions == 0 && quota->calibrations == 0 && quota->said_count == 0);
    CHECK(quota->withheld_count == 0);
    list_remove(&quota->wake_turn);
    hash_index_remove(&all->by_address, slot);
    table_remove(&all->table, slot);
}

uint32_t quota_max(const struct core *core, enum quota_kind kind)
{
    switch (kind) {
    case QUOTA_CLIENT:
    case QUOTA_REGISTRANT:
    case QUOTA_TRACKED:
        return core->limits.clients_max;
    case QUOTA_LOCK:
    case QUOTA_SHARE:
        return core->limits.locks_max;
    case QUOTA_WAITER:
        return core->limits.waiters_max;
    case QUOTA_FILE:
        return core->limits.local_files_max;
    case QUOTA_KIND_END:
        break;
    }
    UNREACHABLE();
}

uint32_t quota_share(const struct core *core, enum quota_kind kind)
{
    uint32_t all = quota_max(core, kind), percent = core->limits.per_address_percent;
    if (percent == 0 || percent >= PERCENT)
        return UINT32_MAX;
    uint32_t share = (uint32_t)((uint64_t)all * percent / PERCENT);
    return share > 0 ? share : 1;
}

bool quota_is_near(uint64_t count, uint64_t max)
{
    return count * PERCENT > max * VIEW_NEAR_PERCENT;
}

void quota_add(struct core *core, uint32_t slot, enum quota_kind kind, uint32_t count)
{
    uint32_t *at = &quota_at(core, slot)->counts[kind], share = quota_share(core, kind);
    core->quotas.near[kind] += !quota_is_near(*at, share) && quota_is_near(*at + count, share);
    *at += count;
}

void quota_remove(struct core *core, uint32_t slot, enum quota_kind kind, uint32_t count)
{
    uint32_t *at = &quota_at(core, slot)->counts[kind], share = quota_share(core, kind);
    CHECK(*at >= count);
    core->quotas.near[kind] -= quota_is_near(*at, share) && !quota_is_near(*at - count, share);
    *at -= count;
}

static uint32_t count_near(const struct core *core, enum quota_kind kind)
{
    const struct table *table = &core->quotas.table;
    uint32_t count = 0, share = quota_share(core, kind);
    for (uint32_t at = table_next(table, SLOT_NONE); at != SLOT_NONE; at = table_next(table, at))
        count += quota_is_near(quota_at(core, at)->counts[kind], share);
    return count;
}

static uint32_t count_near_clients(const struct core *core)
{
    const struct table *table = &core->clients.table;
    uint32_t count = 0, most = core->limits.locks_per_client_max;
    for (uint32_t at = table_next(table, SLOT_NONE); at != SLOT_NONE; at = table_next(table, at))
        count += quota_is_near(client_at(core, at)->life.lock_count, most);
    return count;
}

void quota_grown(struct core *core)
{
    core->clients.near_count = count_near_clients(core);
    for (uint32_t kind = 0; kind < QUOTA_KIND_END; kind++)
        core->quotas.near[kind] = count_near(core, (enum quota_kind)kind);
}

bool quota_admits(const struct core *core, uint32_t slot, enum quota_kind kind)
{
    return quota_at(core, slot)->counts[kind] < quota_share(core, kind);
}

bool quota_admits_address(const struct core *core, const struct address *address,
                          enum quota_kind kind)
{
    uint32_t slot = quota_find(core, address);
    return slot == SLOT_NONE || quota_admits(core, slot, kind);
}

void quota_refused(struct core *core, const struct address *address, struct bytes name,
                   enum quota_kind kind)
{
    MARK("quota_refused");
    core->quotas.counters.refused++;
    event_add(&core->events, EVENT_ADDRESS_LIMIT, address, name, quota_share(core, kind));
}

void quota_check(const struct core *core)
{
    const struct quotas *all = &core->quotas;
    uint64_t sums[QUOTA_KIND_END] = {0};
    table_check(&all->table);
    uint32_t slot = table_next(&all->table, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(&all->table, slot)) {
        const struct quota *quota = quota_at(core, slot);
        const uint32_t *counts = quota->counts;
        CHECK(quota_find(core, &quota->address) == slot);
        CHECK(quota->references == counts[QUOTA_CLIENT] + counts[QUOTA_REGISTRANT] +
                                       counts[QUOTA_TRACKED] + counts[QUOTA_FILE] + quota->keepers);
        for (uint32_t kind = 0; kind < QUOTA_KIND_END; kind++)
            sums[kind] += counts[kind];
    }
    for (uint32_t kind = 0; kind < QUOTA_KIND_END; kind++)
        CHECK(all->near[kind] == count_near(core, (enum quota_kind)kind));
    CHECK(core->clients.near_count == count_near_clients(core));
    CHECK(sums[QUOTA_CLIENT] == core->clients.table.count);
    CHECK(sums[QUOTA_REGISTRANT] == core->registrants.table.count);
    CHECK(sums[QUOTA_TRACKED] == core->tracker.table.count);
    CHECK(sums[QUOTA_LOCK] == core->locks.table.count);
    CHECK(sums[QUOTA_SHARE] == core->shares.table.count);
    CHECK(sums[QUOTA_FILE] == core->mirrors.charged_count);
    CHECK(sums[QUOTA_WAITER] == core->waiters.table.count - core->waiters.place_count);
}

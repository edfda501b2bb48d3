/*
 * quota.c -- see quota.h.
 *
 * Always true, and asserted by quota_check():
 *  (1) An address is here exactly while somebody holds a reference to it, once.
 *  (2) The references are its clients, registrants, tracked clients, files, questions, notices that
 *      wait and their answers; over all addresses each count adds up to what its table holds.
 */
#include "core/quota.h"

#include "base/check.h"
#include "base/hash.h"
#include "core/state.h"

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
    int err = table_init(&all->table, addresses_max, sizeof(struct quota));
    if (err == 0)
        err = chains_init_hash(&all->by_address, addresses_max);
    return err;
}

void quota_done(struct core *core)
{
    table_done(&core->quotas.table);
    chains_done(&core->quotas.by_address);
}

static uint64_t hash_of(const struct core *core, const struct address *address)
{
    return hash_bytes(core->seed, (struct bytes){(const uint8_t *)address, sizeof *address});
}

static uint32_t find(const struct core *core, const struct address *address, uint64_t hash)
{
    const struct chains *by_address = &core->quotas.by_address;
    uint32_t slot = chains_first(by_address, chains_of_hash(by_address, hash));
    while (slot != SLOT_NONE && !address_equal(&quota_at(core, slot)->address, address))
        slot = chains_next(by_address, slot);
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
        *quota_at(core, slot) = (struct quota){.address = *address, .hash = hash};
        list_init(&quota_at(core, slot)->idle);
        list_init(&quota_at(core, slot)->parked);
        list_init(&quota_at(core, slot)->said);
        list_init(&quota_at(core, slot)->wake_turn);
        list_init(&quota_at(core, slot)->woken_files);
        chains_add(&all->by_address, chains_of_hash(&all->by_address, hash), slot);
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
    chains_remove(&all->by_address, chains_of_hash(&all->by_address, quota->hash), slot);
    table_remove(&all->table, slot);
}

void quota_add(struct core *core, uint32_t slot, enum quota_kind kind, uint32_t count)
{
    quota_at(core, slot)->counts[kind] += count;
}

void quota_remove(struct core *core, uint32_t slot, enum quota_kind kind, uint32_t count)
{
    CHECK(quota_at(core, slot)->counts[kind] >= count);
    quota_at(core, slot)->counts[kind] -= count;
}

static uint32_t table_limit(const struct core *core, enum quota_kind kind)
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

/* The most that one address may have in this table. */
static uint32_t limit_of(const struct core *core, enum quota_kind kind)
{
    uint32_t all = table_limit(core, kind), percent = core->limits.per_address_percent;
    if (percent == 0 || percent >= PERCENT)
        return UINT32_MAX;
    uint32_t share = (uint32_t)((uint64_t)all * percent / PERCENT);
    return share > 0 ? share : 1;
}

bool quota_admits(const struct core *core, uint32_t slot, enum quota_kind kind)
{
    return quota_at(core, slot)->counts[kind] < limit_of(core, kind);
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
    event_add(&core->events, EVENT_ADDRESS_LIMIT, address, name, limit_of(core, kind));
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
        CHECK(find(core, &quota->address, quota->hash) == slot);
        CHECK(quota->references == counts[QUOTA_CLIENT] + counts[QUOTA_REGISTRANT] +
                                       counts[QUOTA_TRACKED] + counts[QUOTA_FILE] + quota->keepers);
        for (uint32_t kind = 0; kind < QUOTA_KIND_END; kind++)
            sums[kind] += counts[kind];
    }
    CHECK(sums[QUOTA_CLIENT] == core->clients.table.count);
    CHECK(sums[QUOTA_REGISTRANT] == core->registrants.table.count);
    CHECK(sums[QUOTA_TRACKED] == core->tracker.table.count);
    CHECK(sums[QUOTA_LOCK] == core->locks.table.count);
    CHECK(sums[QUOTA_SHARE] == core->shares.table.count);
    CHECK(sums[QUOTA_FILE] == core->mirrors.charged_count);
    CHECK(sums[QUOTA_WAITER] == core->waiters.table.count - core->waiters.place_count);
}

/*
 * host_index.c -- see host_index.h.
 */
#include "core/host_index.h"

#include "base/check.h"
#include "core/state.h"

int host_index_init(struct core *core, struct host_index *index, const struct table *table)
{
    uint32_t slots_max = table->max;
    int err = intern_init(&index->addresses, core->arena, slots_max, core->seed);
    if (err == 0)
        err = hash_index_init_in(&index->by_key, table);
    if (err == 0)
        err = chains_init(&index->by_address, slots_max, slots_max);
    if (err == 0)
        err = chains_init(&index->by_name, core->folds.table.max, slots_max);
    return err;
}

void host_index_done(struct host_index *index)
{
    intern_done(&index->addresses);
    hash_index_done(&index->by_key);
    chains_done(&index->by_address);
    chains_done(&index->by_name);
}

void host_index_add(struct host_index *index, uint32_t slot, struct host_place place)
{
    hash_index_add(&index->by_key, place.key_hash, slot);
    chains_add(&index->by_address, place.address, slot);
    chains_add(&index->by_name, place.fold, slot);
}

void host_index_remove(struct host_index *index, uint32_t slot, struct host_place place)
{
    hash_index_remove(&index->by_key, slot);
    chains_remove(&index->by_address, place.address, slot);
    chains_remove(&index->by_name, place.fold, slot);
}

void host_index_fetch(const struct host_index *index, uint32_t slot, struct host_place place)
{
    chains_fetch(&index->by_address, place.address, slot);
    chains_fetch(&index->by_name, place.fold, slot);
}

void host_index_check(const struct host_index *index, uint32_t slot, struct host_place place)
{
    CHECK(hash_index_has(&index->by_key, place.key_hash, slot));
    CHECK(chains_has(&index->by_address, place.address, slot));
    CHECK(chains_has(&index->by_name, place.fold, slot));
}

/*
 * write.c -- from marked slots to a batch of records.
 *
 * The batch is made when the store is free to take it: a slot that changed ten times since the last
 * batch is written once, as it is now. Kinds come in the order of their numbers and slots in
 * ascending order, as the store keeps them: a commit then needs the fewest pages.
 */
#include "base/check.h"
#include "base/hash.h"
#include "core/state.h"

/* One stored kind: its table, and how an element becomes a record. */
struct kind_row {
    enum record_kind kind;
    const struct table *(*table)(const struct core *core);
    uint32_t (*encode)(const struct core *core, uint32_t slot, uint8_t *buffer);
    bool (*is_stored)(const struct core *core, uint32_t slot); /* NULL: whatever is live is */
};

static const struct table *registrant_table(const struct core *core)
{
    return &core->registrants.table;
}

static const struct table *notice_table(const struct core *core)
{
    return &core->notices.table;
}

static const struct table *client_table(const struct core *core)
{
    return &core->clients.table;
}

static const struct table *lock_table(const struct core *core)
{
    return &core->locks.table;
}

static const struct table *share_table(const struct core *core)
{
    return &core->shares.table;
}

static const struct table *waiter_table(const struct core *core)
{
    return &core->waiters.table;
}

static const struct table *tracked_table(const struct core *core)
{
    return &core->tracker.table;
}

static const struct kind_row kinds[] = {
    {RECORD_REGISTRANT, registrant_table, registrant_encode, NULL},
    {RECORD_NOTICE, notice_table, notice_encode, NULL},
    {RECORD_CLIENT, client_table, client_encode, NULL},
    {RECORD_LOCK, lock_table, lock_encode, NULL},
    {RECORD_WAITER, waiter_table, waiter_encode, waiter_is_stored},
    {RECORD_SHARE, share_table, share_encode, NULL},
    {RECORD_TRACKED, tracked_table, tracker_encode, NULL},
};

enum { KIND_COUNT = sizeof kinds / sizeof kinds[0] };

static bool is_stored(const struct core *core, const struct kind_row *row, uint32_t slot)
{
    return row->is_stored != NULL ? row->is_stored(core, slot)
                                  : table_is_live(row->table(core), slot);
}

static void write_kind(struct core *core, struct batch_writer *writer, const struct kind_row *row)
{
    const struct dirty_slots *dirty = &core->dirty.of[row->kind];
    uint8_t value[RECORD_VALUE_MAX];
    uint32_t slot = SLOT_NONE;
    for (uint32_t left = dirty->count; left > 0; left--) {
        slot = dirty_next(dirty, slot);
        CHECK(slot != SLOT_NONE);
        if (is_stored(core, row, slot)) {
            uint32_t len = row->encode(core, slot, value);
            store_batch_put(writer, row->kind, slot, (struct bytes){value, len});
        } else {
            store_batch_delete(writer, row->kind, slot);
        }
    }
}

bool core_take_batch(struct core *core, struct store_batch *ret)
{
    CHECK(!core->batch_out);
    if (!core_has_changes(core))
        return false;
    core->server.txn++;
    struct batch_writer writer = {.start = core->batch_memory, .max = core->batch_memory_len};
    uint8_t value[RECORD_VALUE_MAX];
    uint32_t len = record_put_server(value, &core->server);
    store_batch_put(&writer, RECORD_SERVER, 0, (struct bytes){value, len});
    for (uint32_t i = 0; i < KIND_COUNT; i++)
        write_kind(core, &writer, &kinds[i]);

    *ret = (struct store_batch){
        .txn = core->server.txn,
        .epoch = core->server.epoch,
        .must_sync = core->sync_wanted,
        .count = writer.count,
        .lock_change_count = core->dirty.of[RECORD_LOCK].change_count,
        .changes = {writer.start, writer.len},
    };
    dirty_clear(&core->dirty);
    core->server_changed = false;
    core->sync_wanted = false;
    core->batch_out = true;
    return true;
}

uint64_t core_digest(const struct core *core)
{
    uint8_t value[RECORD_VALUE_MAX];
    uint32_t len = record_put_server(value, &core->server);
    uint64_t digest = hash_bytes(0, (struct bytes){value, len});
    for (uint32_t i = 0; i < KIND_COUNT; i++) {
        const struct table *table = kinds[i].table(core);
        for (uint32_t slot = table_next(table, SLOT_NONE); slot != SLOT_NONE;
             slot = table_next(table, slot)) {
            if (!is_stored(core, &kinds[i], slot))
                continue;
            len = kinds[i].encode(core, slot, value);
            uint64_t key = (uint64_t)kinds[i].kind << 32 | slot;
            digest = hash_mix(digest, hash_bytes(key, (struct bytes){value, len}));
        }
    }
    return digest;
}

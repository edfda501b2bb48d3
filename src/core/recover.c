/*
 * recover.c -- from stored records to a running core: load, then start.
 *
 *   core_new ---> core_load (every record) ---> core_start ---> core_step ...
 *
 * The next state number and epoch are part of the first batch (R-PER-4, D6). The gate holds every
 * answer until that batch is durable, so nobody can have seen a number that a crash takes back.
 *
 * A record that cannot be read is reported, removed with the first batch, and marks the store
 * incomplete (R-PER-5, D16): something a client relies on may be missing. The state of an
 * incomplete store also jumps past the wall clock, because the lost part may have held a larger
 * one.
 */
#include "base/check.h"
#include "core/state.h"

#define STATE_MAX UINT32_C(0x7fffffff) /* the protocol's state is a signed number */

uint32_t core_next_state(uint32_t state)
{
    uint32_t next = (state + 2) | 1;
    return next > STATE_MAX ? 1 : next;
}

static enum record_result load_server(struct core *core, struct bytes value)
{
    enum record_result result = record_get_server(value, &core->server);
    if (result == RECORD_GOOD) {
        core->server_loaded = true;
        core->durable_txn = core->server.txn;
    }
    return result;
}

/* Ids and epochs are never used again, also when the server record that counted them is lost. */
static void note_seen(struct core *core, uint64_t id, uint64_t epoch)
{
    if (id > core->id_seen_max)
        core->id_seen_max = id;
    if (epoch > core->epoch_seen_max)
        core->epoch_seen_max = epoch;
}

static enum record_result load_registrant(struct core *core, uint32_t slot, struct bytes value)
{
    struct record_registrant record;
    enum record_result result = record_get_registrant(value, slot, &record);
    if (result != RECORD_GOOD)
        return result;
    if (!registrant_load(core, slot, &record))
        return RECORD_CORRUPT;
    note_seen(core, record.id, record.server_epoch);
    return RECORD_GOOD;
}

static enum record_result load_notice(struct core *core, uint32_t slot, struct bytes value)
{
    struct record_notice record;
    enum record_result result = record_get_notice(value, slot, &record);
    if (result != RECORD_GOOD)
        return result;
    return notice_load(core, slot, &record) ? RECORD_GOOD : RECORD_CORRUPT;
}

static enum record_result load_client(struct core *core, uint32_t slot, struct bytes value)
{
    struct record_client record;
    enum record_result result = record_get_client(value, slot, &record);
    if (result != RECORD_GOOD)
        return result;
    if (!client_load(core, slot, &record))
        return RECORD_CORRUPT;
    note_seen(core, record.id, record.server_epoch);
    return RECORD_GOOD;
}

static enum record_result load_lock(struct core *core, uint32_t slot, struct bytes value)
{
    struct record_lock record;
    enum record_result result = record_get_lock(value, slot, &record);
    if (result != RECORD_GOOD)
        return result;
    return lock_load(core, slot, &record) ? RECORD_GOOD : RECORD_CORRUPT;
}

/* Waiters do not outlive a run (R-BLK-14): their clients ask again. */
static enum record_result load_waiter(struct core *core, uint32_t slot, struct bytes value)
{
    struct record_waiter record;
    enum record_result result = record_get_waiter(value, slot, &record);
    if (result == RECORD_GOOD)
        dirty_delete(&core->dirty, RECORD_WAITER, slot);
    return result;
}

static enum record_result load_share(struct core *core, uint32_t slot, struct bytes value)
{
    struct record_share record;
    enum record_result result = record_get_share(value, slot, &record);
    if (result != RECORD_GOOD)
        return result;
    return share_load(core, slot, &record) ? RECORD_GOOD : RECORD_CORRUPT;
}

enum record_result core_load(struct core *core, enum record_kind kind, uint32_t slot,
                             struct bytes value)
{
    CHECK(!core->started);
    enum record_result result = RECORD_CORRUPT;
    switch (kind) {
    case RECORD_SERVER:
        result = slot == 0 ? load_server(core, value) : RECORD_CORRUPT;
        break;
    case RECORD_REGISTRANT:
        result = load_registrant(core, slot, value);
        break;
    case RECORD_NOTICE:
        result = load_notice(core, slot, value);
        break;
    case RECORD_CLIENT:
        result = load_client(core, slot, value);
        break;
    case RECORD_LOCK:
        result = load_lock(core, slot, value);
        break;
    case RECORD_WAITER:
        result = load_waiter(core, slot, value);
        break;
    case RECORD_SHARE:
        result = load_share(core, slot, value);
        break;
    case RECORD_KIND_END:
        break;
    }
    if (result == RECORD_GOOD)
        core->records_loaded++;
    if (result == RECORD_CORRUPT) {
        core->corrupt_found = true;
        event_add(&core->events, EVENT_CORRUPT_RECORD, NULL, bytes_of_text(record_kind_name(kind)),
                  slot);
        if (kind != RECORD_SERVER && slot < core->dirty.of[kind].max)
            dirty_delete(&core->dirty, kind, slot);
    }
    return result;
}

/* Without its server record a store has lost its counters: go on from beyond what they can be. */
static void replace_lost_server(struct core *core, uint64_t wall_seconds)
{
    struct record_server *server = &core->server;
    *server = (struct record_server){0};
    server->epoch = core->epoch_seen_max > wall_seconds ? core->epoch_seen_max : wall_seconds;
    server->next_id = core->id_seen_max > wall_seconds ? core->id_seen_max : wall_seconds;
    server->next_id++;
}

/*
 * An offer outlives a run as a lock of its owner (R-BLK-19): its client may have taken it, and its
 * waiter is gone. There may be more of them than one batch takes, so this is part of core_work. One
 * that finds no slots for its pieces stands as it is, which excludes others just as well.
 */
bool recover_work(struct core *core)
{
    const struct table *table = &core->locks.table;
    for (; core->accept_at != SLOT_NONE && !core_is_full(core);
         core->accept_at = table_next(table, core->accept_at)) {
        uint32_t slot = core->accept_at;
        bool is_offer = table_is_live(table, slot) &&
                        (lock_at(core, slot)->flags & RECORD_LOCK_OFFER) &&
                        lock_at(core, slot)->waiter == SLOT_NONE;
        if (is_offer && !lock_accept(core, slot))
            MARK("start_offer_stays");
    }
    return core->accept_at != SLOT_NONE;
}

void core_start(struct core *core, const struct core_boot *boot)
{
    CHECK(!core->started);
    struct record_server *server = &core->server;
    uint64_t wall_seconds = boot->wall_ns / 1000000000;
    bool server_lost = !core->server_loaded && (core->records_loaded > 0 || core->corrupt_found);
    if (server_lost) {
        MARK("start_without_server_record");
        replace_lost_server(core, wall_seconds);
    }
    if (server->next_id == 0)
        server->next_id = 1;
    if (server_lost || core->corrupt_found || boot->may_have_lost)
        server->flags |= RECORD_SERVER_INCOMPLETE;

    server->state = core_next_state(server->state);
    if (server->flags & RECORD_SERVER_INCOMPLETE) {
        uint32_t clock_state = (uint32_t)(wall_seconds & STATE_MAX) | 1;
        if (clock_state > server->state)
            server->state = clock_state;
    }
    server->epoch++;
    core->server_changed = true;
    core->sync_wanted = true;
    notice_sweep(core);
    core->started = true;
    client_start(core);
    core->accept_at = table_next(&core->locks.table, SLOT_NONE);
}

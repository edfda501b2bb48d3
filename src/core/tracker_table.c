/*
 * tracker_table.c -- the table of clients of other protocols, by key; to the store and back.
 *
 * Always true, and asserted by tracker_check():
 *  (1) A live client is on the one chain that its key names, and no two have the same protocol and
 *      key. It holds a reference to its protocol and, if it has bytes, a cell of the arena.
 *  (2) Once we are ready it has a timer exactly while it is disconnected.
 *  (3) It is on one of its protocol's lists exactly while it is expired (tracker_expired.c).
 *  (4) The counts of connected, disconnected and expired ones are what the table holds, in all and
 *      for each protocol.
 */
#include "base/check.h"
#include "base/hash.h"
#include "core/state.h"

uint32_t tracker_find_id(const struct core *core, uint64_t id)
{
    const struct table *table = &core->tracker.table;
    uint32_t slot = table_next(table, SLOT_NONE);
    while (slot != SLOT_NONE && tracker_at(core, slot)->id != id)
        slot = table_next(table, slot);
    return slot;
}

struct tracked *tracker_at(const struct core *core, uint32_t slot)
{
    return table_at(&core->tracker.table, slot);
}

bool tracker_is_protocol(struct bytes protocol)
{
    return record_is_protocol(protocol) && !bytes_equal(protocol, bytes_of_text("nlm")) &&
           !bytes_equal(protocol, bytes_of_text("nsm"));
}

static struct bytes key_of(const struct tracked *tracked)
{
    return (struct bytes){tracked->key, tracked->key_len};
}

static uint64_t key_hash(const struct core *core, struct bytes protocol, struct bytes key)
{
    return hash_mix(hash_bytes(core->seed, protocol), hash_bytes(core->seed, key));
}

uint32_t tracker_find_key(const struct core *core, struct bytes protocol, struct bytes key)
{
    const struct tracker *tracker = &core->tracker;
    uint32_t of = intern_find(&tracker->protocols, protocol);
    if (of == SLOT_NONE)
        return SLOT_NONE;
    uint64_t hash = key_hash(core, protocol, key);
    uint32_t slot = hash_index_first(&tracker->by_key, hash);
    for (; slot != SLOT_NONE; slot = hash_index_next(&tracker->by_key, slot)) {
        const struct tracked *tracked = tracker_at(core, slot);
        if (tracked->key_hash == hash && tracked->protocol == of &&
            bytes_equal(key_of(tracked), key))
            return slot;
    }
    return SLOT_NONE;
}

struct bytes tracker_bytes(const struct core *core, const struct tracked *tracked)
{
    if (tracked->bytes_len == 0)
        return (struct bytes){NULL, 0};
    return arena_at(core->arena, tracked->cell, tracked->bytes_len);
}

/* Keeps other bytes. False: there is no room for them, and the old ones are still there. */
bool tracker_set_bytes(struct core *core, struct tracked *tracked, struct bytes bytes)
{
    uint32_t cell = ARENA_NONE;
    if (bytes_equal(tracker_bytes(core, tracked), bytes))
        return true;
    if (bytes.len > 0) {
        cell = arena_add(core->arena, bytes);
        if (cell == ARENA_NONE)
            return false;
    }
    if (tracked->bytes_len > 0)
        arena_remove(core->arena, tracked->cell, tracked->bytes_len);
    tracked->cell = cell;
    tracked->bytes_len = bytes.len;
    return true;
}

/* Calls it something else. False: there is no room for that, and it is called what it was. */
bool tracker_set_name(struct core *core, struct tracked *tracked, struct bytes name)
{
    uint32_t slot = SLOT_NONE;
    if (name.len > 0) {
        slot = intern_add(&core->names, name);
        if (slot == SLOT_NONE)
            return false;
    }
    if (tracked->name != SLOT_NONE)
        (void)intern_release(&core->names, tracked->name);
    tracked->name = slot;
    return true;
}

bool tracker_fill(struct core *core, uint32_t slot, struct tracked content,
                  const struct tracker_client *said)
{
    struct tracker *tracker = &core->tracker;
    struct bytes protocol = said->protocol, key = said->key;
    content.protocol = intern_add(&tracker->protocols, protocol);
    if (content.protocol == SLOT_NONE)
        return false;
    content.name = SLOT_NONE;
    if (!tracker_set_bytes(core, &content, said->bytes) ||
        !tracker_set_name(core, &content, said->name)) {
        (void)tracker_set_bytes(core, &content, (struct bytes){NULL, 0});
        (void)intern_release(&tracker->protocols, content.protocol);
        return false;
    }
    content.key_hash = key_hash(core, protocol, key);
    content.key_len = key.len;
    memcpy(content.key, key.at, key.len);
    struct tracked *tracked = tracker_at(core, slot);
    *tracked = content;
    tracked->quota = quota_keep(core, &content.address);
    quota_add(core, tracked->quota, QUOTA_TRACKED, 1);
    list_init(&tracked->expired);
    hash_index_add(&tracker->by_key, content.key_hash, slot);
    return true;
}

/* ---- from the store and back ---- */

bool tracker_load(struct core *core, uint32_t slot, const struct record_tracked *record)
{
    if (!tracker_is_protocol(record->protocol) ||
        tracker_find_key(core, record->protocol, record->key) != SLOT_NONE ||
        !table_add_at(&core->tracker.table, slot))
        return false;
    struct tracked loaded = {
        .id = record->id,
        .registered_ns = record->registered_ns,
        .server_epoch = record->server_epoch,
        .deadline_ns = record->deadline_ns,
        .address = record->address,
        .window_s = record->window_s,
        .ttl_s = record->ttl_s,
        .generation = record->generation,
        .state = record->state,
    };
    const struct tracker_client said = {.protocol = record->protocol,
                                        .key = record->key,
                                        .name = record->name,
                                        .bytes = record->bytes};
    /* core_new reserved the bytes; only damage makes more protocols than there were. */
    if (record->name.len > TRACKING_NAME_MAX || !tracker_fill(core, slot, loaded, &said)) {
        table_remove(&core->tracker.table, slot);
        return false;
    }
    if (record->state == RECORD_TRACKED_EXPIRED)
        tracker_queue_expired(core, slot);
    return true;
}

uint32_t tracker_encode(const struct core *core, uint32_t slot, uint8_t *buffer)
{
    const struct tracked *tracked = tracker_at(core, slot);
    struct record_tracked record = {
        .id = tracked->id,
        .registered_ns = tracked->registered_ns,
        .server_epoch = tracked->server_epoch,
        .deadline_ns = tracked->deadline_ns,
        .address = tracked->address,
        .window_s = tracked->window_s,
        .ttl_s = tracked->ttl_s,
        .generation = tracked->generation,
        .state = tracked->state,
        .protocol = intern_bytes(&core->tracker.protocols, tracked->protocol),
        .key = key_of(tracked),
        .bytes = tracker_bytes(core, tracked),
    };
    if (tracked->name != SLOT_NONE)
        record.name = intern_bytes(&core->names, tracked->name);
    return record_put_tracked(buffer, slot, &record);
}

bool tracker_count(const struct core *core, uint32_t index, struct bytes *ret_protocol,
                   uint32_t ret_counts[static RECORD_TRACKED_EXPIRED + 1])
{
    const struct tracker *tracker = &core->tracker;
    if (index >= tracker->protocols.table.used)
        return false;
    *ret_protocol = (struct bytes){NULL, 0};
    if (table_is_live(&tracker->protocols.table, index))
        *ret_protocol = intern_bytes(&tracker->protocols, index);
    memcpy(ret_counts, tracker->counts[index], sizeof tracker->counts[index]);
    return true;
}

static void check_one(const struct core *core, uint32_t slot,
                      uint32_t (*counts)[RECORD_TRACKED_EXPIRED + 1])
{
    const struct tracker *tracker = &core->tracker;
    const struct tracked *tracked = tracker_at(core, slot);
    enum record_tracked_state state = tracker_state(core, tracked);
    struct bytes protocol = intern_bytes(&tracker->protocols, tracked->protocol);
    bool is_timed = timers_is_set(&tracker->timers, slot);
    CHECK(tracker_is_protocol(protocol) && tracked->key_len > 0 &&
          tracked->key_len <= RECORD_KEY_MAX);
    CHECK(tracked->key_hash == key_hash(core, protocol, key_of(tracked)));
    CHECK(tracker_find_key(core, protocol, key_of(tracked)) == slot);
    CHECK(!is_timed || state == RECORD_TRACKED_DISCONNECTED);
    CHECK(is_timed || state != RECORD_TRACKED_DISCONNECTED || !tracker->is_ready);
    CHECK((state == RECORD_TRACKED_EXPIRED) == !list_is_empty(&tracked->expired));
    CHECK(tracked->id != 0 && tracked->generation != 0);
    CHECK(tracked->id < core->server.next_id || !core->started);
    counts[tracked->protocol][state]++;
}

/* Who is on a list of a protocol: expired, of it, and in the order of time. */
static void check_lists(const struct core *core, uint32_t protocol)
{
    const struct tracker *tracker = &core->tracker;
    uint32_t listed = 0;
    uint64_t again_ns = 1;
    const struct list *waiting = &tracker->expired[protocol], *taken = &tracker->taken[protocol];
    for (const struct list *at = waiting->next; at != waiting; at = at->next, listed++)
        CHECK(LIST_ELEMENT(at, const struct tracked, expired)->again_ns == 0);
    for (const struct list *at = taken->next; at != taken; at = at->next, listed++) {
        const struct tracked *tracked = LIST_ELEMENT(at, const struct tracked, expired);
        CHECK(tracked->again_ns >= again_ns && tracked->protocol == protocol);
        again_ns = tracked->again_ns;
    }
    CHECK(listed == tracker->counts[protocol][RECORD_TRACKED_EXPIRED] || !core->started);
}

void tracker_check(const struct core *core)
{
    const struct tracker *tracker = &core->tracker;
    uint32_t counts[TRACKER_PROTOCOLS_MAX][RECORD_TRACKED_EXPIRED + 1] = {0};
    uint32_t sums[RECORD_TRACKED_EXPIRED + 1] = {0};
    uint32_t references = 0;
    table_check(&tracker->table);
    table_check(&tracker->protocols.table);
    timers_check(&tracker->timers);
    uint32_t slot = table_next(&tracker->table, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(&tracker->table, slot))
        check_one(core, slot, counts);
    slot = table_next(&tracker->protocols.table, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(&tracker->protocols.table, slot))
        references += intern_references(&tracker->protocols, slot);
    CHECK(references == tracker->table.count);
    for (uint32_t i = 0; i < TRACKER_PROTOCOLS_MAX; i++) {
        check_lists(core, i);
        for (uint32_t state = 0; state <= RECORD_TRACKED_EXPIRED; state++)
            sums[state] += counts[i][state];
    }
    if (!core->started)
        return;
    CHECK(memcmp(counts, tracker->counts, sizeof counts) == 0);
    CHECK(sums[RECORD_TRACKED_CONNECTED] == tracker->counters.connected);
    CHECK(sums[RECORD_TRACKED_DISCONNECTED] == tracker->counters.disconnected);
    CHECK(sums[RECORD_TRACKED_EXPIRED] == tracker->counters.expired);
}

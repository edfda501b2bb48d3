/*
 * tracker.c -- clients of other protocols: what these say, and whose time has run out; see
 * tracker.h.
 *
 * A restart writes nothing here. A record that says "connected" says in which epoch; in a later
 * one it means "disconnected by the restart", and the next restart reads it the same way. So ten
 * thousand clients cost no write at start, and the store never differs from what is here but where
 * a slot is marked dirty.
 *
 * Deadlines are stored by the wall clock, because nothing else runs while we are away, and run
 * by the monotonic one. A wall clock that was set back would keep a client for years: what is left
 * of its time is never more than it was given.
 *
 * That a client has expired is written when it happens, and not only when it is cleaned up: a
 * client that was told it is gone must not be back after a crash (P1).
 */
#include "core/tracker.h"

#include "base/check.h"
#include "base/units.h"
#include "core/state.h"

enum { EXPIRED_PER_TURN = 1000 };

int tracker_init(struct core *core, const uint32_t slots[])
{
    uint32_t slots_max = slots[RECORD_TRACKED];
    struct tracker *tracker = &core->tracker;
    for (uint32_t i = 0; i < TRACKER_PROTOCOLS_MAX; i++) {
        list_init(&tracker->expired[i]);
        list_init(&tracker->taken[i]);
    }
    int err = table_init_linked(&tracker->table, slots_max, sizeof(struct tracked));
    if (err == 0)
        err = hash_index_init_in(&tracker->by_key, &tracker->table);
    if (err == 0)
        err = intern_init(&tracker->protocols, core->arena, TRACKER_PROTOCOLS_MAX, core->seed);
    if (err == 0)
        err = timers_init(&tracker->timers, slots_max);
    return err;
}

void tracker_done(struct core *core)
{
    struct tracker *tracker = &core->tracker;
    table_done(&tracker->table);
    hash_index_done(&tracker->by_key);
    intern_done(&tracker->protocols);
    timers_done(&tracker->timers);
}

/* ---- whether they are there ---- */

enum record_tracked_state tracker_state(const struct core *core, const struct tracked *tracked)
{
    if (tracked->state == RECORD_TRACKED_CONNECTED && tracked->server_epoch != core->server.epoch)
        return RECORD_TRACKED_DISCONNECTED; /* by our restart */
    return (enum record_tracked_state)tracked->state;
}

static uint64_t window_of(const struct core *core, const struct tracked *tracked)
{
    const struct core_limits *limits = &core->limits;
    if (tracked->window_s != 0)
        return tracked->window_s * SECOND_NS;
    struct bytes protocol = intern_bytes(&core->tracker.protocols, tracked->protocol);
    for (uint32_t i = 0; i < limits->window_count; i++)
        if (bytes_equal(limits->windows[i].protocol, protocol))
            return limits->windows[i].ns;
    return limits->window_ns;
}

static uint32_t *total_of(struct core *core, enum record_tracked_state state)
{
    struct tracker_counters *counters = &core->tracker.counters;
    switch (state) {
    case RECORD_TRACKED_CONNECTED:
        return &counters->connected;
    case RECORD_TRACKED_DISCONNECTED:
        return &counters->disconnected;
    case RECORD_TRACKED_EXPIRED:
        return &counters->expired;
    }
    UNREACHABLE();
}

/* One more, or one less, in the state that it is in. */
static void count(struct core *core, const struct tracked *tracked, bool is_there)
{
    enum record_tracked_state state = tracker_state(core, tracked);
    uint32_t *total = total_of(core, state);
    uint32_t *of_protocol = &core->tracker.counts[tracked->protocol][state];
    *total = is_there ? *total + 1 : *total - 1;
    *of_protocol = is_there ? *of_protocol + 1 : *of_protocol - 1;
}

/* Every change of state while we run; the caller sets what belongs to the new one. */
static void set_state(struct core *core, uint32_t slot, enum record_tracked_state state)
{
    struct tracked *tracked = tracker_at(core, slot);
    count(core, tracked, false);
    tracked->state = state;
    if (state == RECORD_TRACKED_CONNECTED) {
        tracked->server_epoch = core->server.epoch;
        tracked->deadline_ns = 0;
        tracked->ttl_s = 0;
    }
    if (state != RECORD_TRACKED_DISCONNECTED)
        timers_clear(&core->tracker.timers, slot);
    count(core, tracked, true);
    dirty_put(&core->dirty, RECORD_TRACKED, slot);
}

/* For streams: who listens takes it then. "smb/" and the key. */
static void report(struct core *core, const struct tracked *tracked)
{
    uint8_t buffer[RECORD_PROTOCOL_MAX + 1 + RECORD_KEY_MAX];
    struct bytes protocol = intern_bytes(&core->tracker.protocols, tracked->protocol);
    memcpy(buffer, protocol.at, protocol.len);
    buffer[protocol.len] = '/';
    memcpy(buffer + protocol.len + 1, tracked->key, tracked->key_len);
    event_add(&core->feed, EVENT_TRACKED_EXPIRED, &tracked->address,
              (struct bytes){buffer, protocol.len + 1 + tracked->key_len}, tracked->id);
}

static void expire(struct core *core, uint32_t slot)
{
    struct tracked *tracked = tracker_at(core, slot);
    set_state(core, slot, RECORD_TRACKED_EXPIRED);
    if (tracked->deadline_ns == 0)
        tracked->deadline_ns = core->wall_ns; /* it was our restart that disconnected it */
    core->tracker.counters.lost++;
    tracker_queue_expired(core, slot);
    report(core, tracked);
}

/* It is there, or may come back. One whose time has run out is told so although its turn to expire
 * has not come: nobody is lucky because we are busy. */
static bool is_here(struct core *core, uint32_t slot)
{
    const struct tracked *tracked = tracker_at(core, slot);
    if (tracker_state(core, tracked) == RECORD_TRACKED_DISCONNECTED && core->tracker.is_ready &&
        tracked->until_ns <= core->now_ns)
        expire(core, slot);
    return tracker_state(core, tracked) != RECORD_TRACKED_EXPIRED;
}

/* The client of a connection that is its last one; SLOT_NONE: gone. */
static uint32_t slot_of(const struct core *core, struct tracker_ref ref)
{
    uint32_t slot = table_find(&core->tracker.table, ref.handle);
    if (slot == SLOT_NONE || tracker_at(core, slot)->generation != ref.generation)
        return SLOT_NONE;
    return slot;
}

/* ---- how they are seen ---- */

static uint32_t seconds(uint64_t ns)
{
    return (uint32_t)((ns + SECOND_NS - 1) / SECOND_NS);
}

/* A moment of the monotonic clock by the wall clock. */
static uint64_t wall_of(const struct core *core, uint64_t ns)
{
    return core->wall_ns + (ns > core->now_ns ? ns - core->now_ns : 0);
}

void tracker_view_slot(const struct core *core, uint32_t slot, struct tracker_view *ret)
{
    const struct tracker *tracker = &core->tracker;
    const struct tracked *tracked = tracker_at(core, slot);
    *ret = (struct tracker_view){
        .id = tracked->id,
        .protocol = intern_bytes(&tracker->protocols, tracked->protocol),
        .key = {tracked->key, tracked->key_len},
        .name = {tracked->key, tracked->key_len},
        .address = tracked->address,
        .state = tracker_state(core, tracked),
        .registered_ns = tracked->registered_ns,
        .deadline_ns = tracked->deadline_ns,
        .window_s = seconds(window_of(core, tracked)),
        .generation = tracked->generation,
        .ref = {table_handle(&tracker->table, slot), tracked->generation},
    };
    if (tracked->name != SLOT_NONE)
        ret->name = intern_bytes(&core->names, tracked->name);
    if (tracked->bytes_len > 0)
        ret->bytes = arena_at(core->arena, tracked->cell, tracked->bytes_len);
    if (timers_is_set(&tracker->timers, slot))
        ret->deadline_ns = wall_of(core, tracked->until_ns); /* a restart may have moved it */
}

/* ---- what their protocols say ---- */

static bool is_acceptable(const struct tracker_client *client)
{
    return client->key.len > 0 && client->key.len <= RECORD_KEY_MAX &&
           client->bytes.len <= RECORD_BYTES_MAX && client->name.len <= TRACKING_NAME_MAX;
}

/* Room for one more, by every limit; the order is the order in which operators can help. */
static enum tracker_result admission(struct core *core, const struct tracker_client *client)
{
    const struct tracker *tracker = &core->tracker;
    bool is_known = intern_find(&tracker->protocols, client->protocol) != SLOT_NONE;
    if (tracker->table.count >= core->limits.clients_max ||
        (!is_known && tracker->protocols.table.count == TRACKER_PROTOCOLS_MAX))
        return TRACKER_LIMIT;
    /* Who does not say where its clients are answers for them itself: no share. */
    if (client->address.family != 0 &&
        !quota_admits_address(core, &client->address, QUOTA_TRACKED)) {
        quota_refused(core, &client->address, client->key, QUOTA_TRACKED);
        return TRACKER_LIMIT;
    }
    if (!core->has_room)
        return TRACKER_ROOM;
    if (arena_used(core->arena) >= core->limits.bytes_max)
        return TRACKER_BYTES;
    return TRACKER_ADDED;
}

static enum tracker_result add(struct core *core, const struct tracker_client *client,
                               struct tracker_view *ret)
{
    struct tracker *tracker = &core->tracker;
    enum tracker_result verdict = admission(core, client);
    if (verdict != TRACKER_ADDED)
        return verdict;
    struct tracked fresh = {
        .registered_ns = core->wall_ns,
        .server_epoch = core->server.epoch,
        .address = client->address,
        .window_s = client->window_s,
        .generation = 1,
        .state = RECORD_TRACKED_CONNECTED,
    };
    uint32_t slot = table_add(&tracker->table);
    CHECK(slot != SLOT_NONE); /* the table has at least clients_max slots */
    if (!tracker_fill(core, slot, fresh, client)) {
        table_remove(&tracker->table, slot);
        return TRACKER_BYTES; /* by fragmentation; the budget itself was looked at above */
    }
    tracker_at(core, slot)->id = core->server.next_id++;
    count(core, tracker_at(core, slot), true);
    tracker->counters.added++;
    dirty_put(&core->dirty, RECORD_TRACKED, slot);
    core->sync_wanted = true;
    tracker_view_slot(core, slot, ret);
    return TRACKER_ADDED;
}

static void drop_quota(struct core *core, const struct tracked *tracked)
{
    quota_remove(core, tracked->quota, QUOTA_TRACKED, 1);
    quota_release(core, tracked->quota);
}

/* A new connection: whatever an older one still says is not listened to. */
static void join(struct core *core, uint32_t slot, const struct address *address)
{
    struct tracked *tracked = tracker_at(core, slot);
    tracked->generation = tracked->generation == UINT32_MAX ? 1 : tracked->generation + 1;
    tracked->address = *address;
    drop_quota(core, tracked);
    tracked->quota = quota_keep(core, address); /* who comes back comes in, whatever its share */
    quota_add(core, tracked->quota, QUOTA_TRACKED, 1);
    set_state(core, slot, RECORD_TRACKED_CONNECTED);
}

static uint32_t name_len(const struct core *core, const struct tracked *tracked)
{
    return tracked->name == SLOT_NONE ? 0 : intern_bytes(&core->names, tracked->name).len;
}

/* May it say so much of itself from now on? More than before needs room like a new one: those who
 * are there could fill the disk as well, and locks need it. TRACKER_UPDATED: yes. */
static enum tracker_result admit_longer(const struct core *core, const struct tracked *tracked,
                                        uint32_t len)
{
    if (len <= name_len(core, tracked) + tracked->bytes_len)
        return TRACKER_UPDATED;
    if (!core->has_room)
        return TRACKER_ROOM;
    return arena_used(core->arena) < core->limits.bytes_max ? TRACKER_UPDATED : TRACKER_BYTES;
}

/* All of what it says of itself, or nothing: false. */
static bool replace(struct core *core, struct tracked *tracked, const struct tracker_client *client)
{
    uint32_t name = tracked->name;
    if (name != SLOT_NONE)
        intern_keep(&core->names, name);
    bool is_done = tracker_set_name(core, tracked, client->name);
    if (is_done && !tracker_set_bytes(core, tracked, client->bytes)) {
        if (tracked->name != SLOT_NONE)
            (void)intern_release(&core->names, tracked->name);
        tracked->name = name;
        return false;
    }
    if (name != SLOT_NONE)
        (void)intern_release(&core->names, name);
    return is_done;
}

enum tracker_result tracker_register(struct core *core, const struct tracker_client *client,
                                     struct tracker_view *ret)
{
    CHECK(tracker_is_protocol(client->protocol));
    if (!is_acceptable(client))
        return TRACKER_BYTES;
    uint32_t slot = tracker_find_key(core, client->protocol, client->key);
    if (slot == SLOT_NONE)
        return add(core, client, ret);
    if (!is_here(core, slot))
        return TRACKER_GONE;
    struct tracked *tracked = tracker_at(core, slot);
    bool was_here = tracker_state(core, tracked) == RECORD_TRACKED_CONNECTED;
    enum tracker_result admitted =
        admit_longer(core, tracked, client->name.len + client->bytes.len);
    if (admitted != TRACKER_UPDATED)
        return admitted;
    if (!replace(core, tracked, client))
        return TRACKER_BYTES;
    tracked->window_s = client->window_s;
    join(core, slot, &client->address);
    tracker_view_slot(core, slot, ret);
    if (was_here)
        return TRACKER_UPDATED;
    core->tracker.counters.reconnected++;
    return TRACKER_RECONNECTED;
}

enum tracker_result tracker_reconnect(struct core *core, struct bytes protocol, struct bytes key,
                                      const struct address *address, struct tracker_view *ret)
{
    uint32_t slot = tracker_find_key(core, protocol, key);
    if (slot == SLOT_NONE || !is_here(core, slot))
        return TRACKER_GONE;
    join(core, slot, address);
    core->tracker.counters.reconnected++;
    tracker_view_slot(core, slot, ret);
    return TRACKER_RECONNECTED;
}

enum tracker_result tracker_update(struct core *core, struct tracker_ref ref, struct bytes bytes)
{
    uint32_t slot = slot_of(core, ref);
    if (slot == SLOT_NONE || !is_here(core, slot))
        return TRACKER_GONE;
    struct tracked *tracked = tracker_at(core, slot);
    if (bytes.len > RECORD_BYTES_MAX)
        return TRACKER_BYTES;
    if (bytes_equal(tracker_bytes(core, tracked), bytes))
        return TRACKER_UPDATED;
    enum tracker_result admitted = admit_longer(core, tracked, name_len(core, tracked) + bytes.len);
    if (admitted != TRACKER_UPDATED)
        return admitted;
    if (!tracker_set_bytes(core, tracked, bytes))
        return TRACKER_BYTES;
    dirty_put(&core->dirty, RECORD_TRACKED, slot);
    return TRACKER_UPDATED;
}

enum tracker_result tracker_disconnect(struct core *core, struct tracker_ref ref, uint32_t ttl_s)
{
    uint32_t slot = slot_of(core, ref);
    if (slot == SLOT_NONE || !is_here(core, slot))
        return TRACKER_GONE;
    struct tracked *tracked = tracker_at(core, slot);
    if (ttl_s == 0)
        ttl_s = (uint32_t)((window_of(core, tracked) + SECOND_NS - 1) / SECOND_NS);
    set_state(core, slot, RECORD_TRACKED_DISCONNECTED);
    tracked->ttl_s = ttl_s;
    tracked->deadline_ns = core->wall_ns + ttl_s * SECOND_NS;
    tracked->until_ns = core->now_ns + ttl_s * SECOND_NS;
    timers_set(&core->tracker.timers, slot, tracked->until_ns);
    return TRACKER_UPDATED;
}

bool tracker_remove(struct core *core, struct tracker_ref ref)
{
    struct tracker *tracker = &core->tracker;
    uint32_t slot = slot_of(core, ref);
    if (slot == SLOT_NONE)
        return false;
    struct tracked *tracked = tracker_at(core, slot);
    count(core, tracked, false);
    drop_quota(core, tracked);
    list_remove(&tracked->expired);
    timers_clear(&tracker->timers, slot);
    (void)tracker_set_bytes(core, tracked, (struct bytes){NULL, 0});
    (void)tracker_set_name(core, tracked, (struct bytes){NULL, 0});
    hash_index_remove(&tracker->by_key, slot);
    (void)intern_release(&tracker->protocols, tracked->protocol);
    table_remove(&tracker->table, slot);
    dirty_delete(&core->dirty, RECORD_TRACKED, slot);
    return true;
}

bool tracker_find(const struct core *core, struct bytes protocol, struct bytes key,
                  struct tracker_view *ret)
{
    uint32_t slot = tracker_find_key(core, protocol, key);
    if (slot == SLOT_NONE)
        return false;
    tracker_view_slot(core, slot, ret);
    return true;
}

bool tracker_look(struct core *core, struct bytes protocol, struct bytes key,
                  struct tracker_view *ret)
{
    uint32_t slot = tracker_find_key(core, protocol, key);
    if (slot == SLOT_NONE)
        return false;
    (void)is_here(core, slot);
    tracker_view_slot(core, slot, ret);
    return true;
}

/* ---- when their time is over ---- */

void tracker_work(struct core *core)
{
    struct tracker *tracker = &core->tracker;
    if (!tracker->is_ready)
        return;
    for (uint32_t i = 0; i < EXPIRED_PER_TURN && !core_is_full(core); i++) {
        uint32_t slot = timers_take(&tracker->timers, core->now_ns);
        if (slot == SLOT_NONE)
            return;
        expire(core, slot);
    }
}

/* A full batch is taken first: the next turn then asks again. */
uint64_t tracker_deadline_ns(const struct core *core)
{
    if (!core->tracker.is_ready || core_is_full(core))
        return UINT64_MAX;
    return timers_next_ns(&core->tracker.timers);
}

/* What is left of the time of one that was loaded: see tracker.h. */
static uint64_t left_ns(const struct core *core, const struct tracked *tracked)
{
    uint64_t window_ns = window_of(core, tracked), given_ns = tracked->ttl_s * SECOND_NS;
    uint64_t left = 0;
    if (tracked->deadline_ns > core->wall_ns)
        left = tracked->deadline_ns - core->wall_ns;
    if (left > given_ns)
        left = given_ns; /* the wall clock was set back */
    return left > window_ns ? left : window_ns;
}

void tracker_ready(struct core *core)
{
    struct tracker *tracker = &core->tracker;
    tracker->is_ready = true;
    uint32_t slot = table_next(&tracker->table, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(&tracker->table, slot)) {
        struct tracked *tracked = tracker_at(core, slot);
        if (tracker_state(core, tracked) != RECORD_TRACKED_DISCONNECTED ||
            timers_is_set(&tracker->timers, slot))
            continue; /* or it came and went before we were ready */
        tracked->until_ns = core->now_ns + left_ns(core, tracked);
        timers_set(&tracker->timers, slot, tracked->until_ns);
    }
}

void tracker_start(struct core *core)
{
    const struct table *table = &core->tracker.table;
    uint32_t slot = table_next(table, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(table, slot))
        count(core, tracker_at(core, slot), true);
}

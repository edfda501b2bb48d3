/*
 * session.c -- clients of the tracker and what they are promised; see session.h.
 *
 * What a session is now, in the running server, is known exactly: it is the only one that changes
 * it, but for the end of its time. What the disk may hold is one of its values since the last one
 * that is certainly durable.
 */
#include "session.h"

#include "core/tracker.h"
#include "machine.h"
#include "still.h"

#include <stdio.h>
#include <stdlib.h>

enum { SESSIONS_MAX = 4, PAST_VALUES_MAX = 64 };

/* What is stored of one: its bytes; 0: nothing is. */
struct value {
    uint32_t bytes;
    uint64_t id;
    uint32_t batch; /* in which it was handed over, of its run */
};

struct session {
    char key[16];
    uint32_t window_s;
    struct value values[PAST_VALUES_MAX]; /* [0] is durable, the last one is the current one */
    uint32_t value_count;
    bool is_connected;
    bool is_over, is_taken; /* its time is over, as the server said; in this run */
    struct tracker_ref ref;
    uint64_t until_ns; /* before that its time is not over */
};

struct sessions {
    struct session at[SESSIONS_MAX];
    uint32_t bytes_count;
    uint64_t id_max;
};

static const struct bytes protocol = {(const uint8_t *)"smb", 3};

static struct value *now_of(struct session *session)
{
    return &session->values[session->value_count - 1];
}

static uint64_t window_ns(const struct world *world, const struct session *session)
{
    return session->window_s != 0 ? session->window_s * SECOND : world->plan.window_ns;
}

void session_init(struct world *world)
{
    if (!world->plan.has_sessions)
        return;
    struct sessions *all = world->sessions = calloc(1, sizeof *all);
    if (all == NULL)
        abort();
    for (uint32_t i = 0; i < SESSIONS_MAX; i++) {
        (void)snprintf(all->at[i].key, sizeof all->at[i].key, "session-%u", i);
        all->at[i].window_s = i % 2 == 0 ? 0 : 1 + i;
        all->at[i].value_count = 1;
    }
    queue_add(&world->queue, 1 + world_random(world, SECOND), QUEUE_SESSION, NULL, 0);
}

void session_done(struct world *world)
{
    free(world->sessions);
}

/* ---- what changes ---- */

static void set_value(struct world *world, struct session *session, uint32_t bytes, uint64_t id)
{
    if (session->value_count == PAST_VALUES_MAX) /* the oldest is allowed a little longer */
        memmove(&session->values[1], &session->values[2],
                (--session->value_count - 1) * sizeof session->values[0]);
    session->values[session->value_count++] = (struct value){bytes, id, world->machine.batches + 1};
    world_trace(world, "%s is stored with bytes %u, c%llu", session->key, bytes,
                (unsigned long long)id);
}

static struct bytes put_bytes(uint32_t count, uint8_t buffer[static 4])
{
    store_be32(buffer, count);
    return (struct bytes){buffer, 4};
}

static void connected(struct session *session, const struct tracker_view *view)
{
    session->is_connected = true;
    session->is_over = false;
    session->ref = view->ref;
}

static void check_view(struct world *world, struct session *session,
                       const struct tracker_view *view, uint32_t bytes)
{
    if (view->id != now_of(session)->id)
        world_fail(world, "T2", "%s comes back as c%llu, it was c%llu", session->key,
                   (unsigned long long)view->id, (unsigned long long)now_of(session)->id);
    if (view->bytes.len != 4 || load_be32(view->bytes.at) != bytes)
        world_fail(world, "T2", "%s comes back, and its bytes are others", session->key);
}

static void do_register(struct world *world, struct session *session)
{
    uint8_t buffer[4];
    struct sessions *all = world->sessions;
    struct tracker_view view;
    struct tracker_client client = {.protocol = protocol,
                                    .key = bytes_of_text(session->key),
                                    .bytes = put_bytes(++all->bytes_count, buffer),
                                    .window_s = session->window_s};
    bool was_there = now_of(session)->bytes != 0;
    enum tracker_result result = tracker_register(world->machine.core, &client, &view);
    switch (result) {
    case TRACKER_ADDED:
        if (was_there || view.id <= all->id_max)
            world_fail(world, "T1", "%s is new to the server, as c%llu", session->key,
                       (unsigned long long)view.id);
        set_value(world, session, all->bytes_count, view.id);
        connected(session, &view);
        return;
    case TRACKER_UPDATED:
    case TRACKER_RECONNECTED:
        if (!was_there || (result == TRACKER_UPDATED) != session->is_connected || session->is_over)
            world_fail(world, "T1", "%s is known to the server, result %d", session->key,
                       (int)result);
        check_view(world, session, &view, all->bytes_count);
        set_value(world, session, all->bytes_count, view.id);
        connected(session, &view);
        return;
    case TRACKER_GONE:
        if (!was_there || session->is_connected ||
            (still_lived_ns(world) < session->until_ns && !session->is_over))
            world_fail(world, "T2", "the time of %s is over too early", session->key);
        return;
    case TRACKER_LIMIT:
    case TRACKER_BYTES:
    case TRACKER_ROOM:
        return;
    }
}

static void do_reconnect(struct world *world, struct session *session)
{
    struct address address = {0};
    struct tracker_view view;
    bool was_there = now_of(session)->bytes != 0 && !session->is_over;
    enum tracker_result result = tracker_reconnect(world->machine.core, protocol,
                                                   bytes_of_text(session->key), &address, &view);
    if (result == TRACKER_RECONNECTED) {
        if (!was_there)
            world_fail(world, "T1", "%s comes back, and had left", session->key);
        check_view(world, session, &view, now_of(session)->bytes);
        set_value(world, session, now_of(session)->bytes, view.id);
        connected(session, &view);
    } else if (was_there && (session->is_connected || still_lived_ns(world) < session->until_ns)) {
        world_fail(world, "T2", "%s cannot come back in time", session->key);
    }
}

static void do_update(struct world *world, struct session *session)
{
    uint8_t buffer[4];
    uint32_t bytes = ++world->sessions->bytes_count;
    enum tracker_result result =
        tracker_update(world->machine.core, session->ref, put_bytes(bytes, buffer));
    if (result == TRACKER_UPDATED)
        set_value(world, session, bytes, now_of(session)->id);
    else if (session->is_connected && result == TRACKER_GONE)
        world_fail(world, "T1", "%s is connected, and not known", session->key);
}

static void do_disconnect(struct world *world, struct session *session)
{
    uint32_t ttl_s = (uint32_t)world_random(world, 4);
    uint64_t time_ns = ttl_s != 0 ? ttl_s * SECOND : window_ns(world, session);
    if (tracker_disconnect(world->machine.core, session->ref, ttl_s) != TRACKER_UPDATED)
        world_fail(world, "T1", "%s is connected, and not known", session->key);
    session->is_connected = false;
    session->until_ns = still_lived_ns(world) + time_ns;
    set_value(world, session, now_of(session)->bytes, now_of(session)->id);
}

static void do_remove(struct world *world, struct session *session)
{
    if (!tracker_remove(world->machine.core, session->ref))
        world_fail(world, "T1", "%s leaves, and is not known", session->key);
    session->is_connected = session->is_over = session->is_taken = false;
    set_value(world, session, 0, 0);
}

/* T3: those whose time is over are cleaned up. */
static void clean_up(struct world *world)
{
    struct tracker_view view;
    while (!core_is_full(world->machine.core) &&
           tracker_take_expired(world->machine.core, protocol, &view)) {
        struct session *session = NULL;
        for (uint32_t i = 0; i < SESSIONS_MAX; i++)
            if (bytes_equal(bytes_of_text(world->sessions->at[i].key), view.name))
                session = &world->sessions->at[i];
        if (session == NULL || now_of(session)->bytes == 0)
            world_fail(world, "T1", "the time of somebody is over who is not there");
        if (session->is_connected ||
            (still_lived_ns(world) < session->until_ns && !session->is_over))
            world_fail(world, "T2", "the time of %s is over too early", session->key);
        world_trace(world, "the time of %s is over", session->key);
        session->is_over = true;
        /* Who took it never hears of that: it comes again (T3). */
        if (!world->is_calm && world_chance(world, 20))
            continue;
        session->is_taken = true;
        session->ref = view.ref;
        if (world->is_calm || world_chance(world, 70))
            do_remove(world, session);
    }
}

void session_act(struct world *world)
{
    struct machine *machine = &world->machine;
    struct sessions *all = world->sessions;
    struct session *session = &all->at[world_random(world, SESSIONS_MAX)];
    uint64_t pause_ns = world->is_calm ? 200 * MILLISECOND : world_random(world, 3 * SECOND);
    queue_add(&world->queue, world->now_ns + 1 + pause_ns, QUEUE_SESSION, NULL, 0);
    if (!machine->is_up || core_is_full(machine->core) || session_all_finished(world))
        return;
    core_work(machine->core, machine_now_ns(world), world_wall_ns(world));
    clean_up(world);
    if (core_is_full(machine->core))
        return;
    uint64_t dice = world_random(world, 100);
    if (world->is_calm && session->is_connected)
        do_disconnect(world, session);
    else if (session->is_taken && (world->is_calm || dice < 30))
        do_remove(world, session);
    else if (world->is_calm)
        dice = 100; /* its time ends */
    else if (dice < 30)
        do_register(world, session);
    else if (dice < 50)
        do_reconnect(world, session);
    else if (dice < 70 && session->is_connected)
        do_update(world, session);
    else if (dice < 95 && session->is_connected)
        do_disconnect(world, session);
    else if (session->is_connected)
        do_remove(world, session);
    machine_received(world);
}

/* ---- the disk ---- */

/* Everything up to the last value that was handed over in time is history. */
void session_stored(struct world *world)
{
    struct sessions *all = world->sessions;
    for (uint32_t i = 0; all != NULL && i < SESSIONS_MAX; i++) {
        struct session *session = &all->at[i];
        uint32_t first = 0;
        for (uint32_t v = 1; v < session->value_count; v++)
            if (session->values[v].batch <= world->machine.batches)
                first = v;
        memmove(session->values, &session->values[first],
                (session->value_count - first) * sizeof session->values[0]);
        session->value_count -= first;
        if (session->values[0].id > all->id_max)
            all->id_max = session->values[0].id; /* one that is not stored may be used again */
    }
}

static bool find_record(const struct world *world, const struct session *session,
                        struct record_tracked *ret)
{
    uint32_t used = disk_slots_used(&world->disk, RECORD_TRACKED);
    for (uint32_t slot = 0; slot < used; slot++) {
        struct bytes value = disk_at(&world->disk, RECORD_TRACKED, slot);
        if (value.len > 0 && record_get_tracked(value, slot, ret) == RECORD_GOOD &&
            bytes_equal(ret->key, bytes_of_text(session->key)))
            return true;
    }
    return false;
}

/* T1: one of the values that it can have; the server goes on with that. */
void session_started(struct world *world)
{
    struct sessions *all = world->sessions;
    for (uint32_t i = 0; all != NULL && i < SESSIONS_MAX; i++) {
        struct session *session = &all->at[i];
        struct record_tracked record;
        struct value found = {0};
        bool is_allowed = world->ledger.incomplete;
        if (find_record(world, session, &record))
            found = (struct value){load_be32(record.bytes.at), record.id, 0};
        for (uint32_t v = 0; v < session->value_count; v++)
            is_allowed |= session->values[v].bytes == found.bytes &&
                          (found.bytes == 0 || session->values[v].id == found.id);
        if (!is_allowed)
            world_fail(world, "T1", "%s is stored with bytes %u, but %u were stored after them",
                       session->key, found.bytes, session->values[0].bytes);
        session->values[0] = found;
        session->value_count = 1;
        session->is_connected = session->is_taken = false;
        session->is_over = found.bytes != 0 && record.state == RECORD_TRACKED_EXPIRED;
        session->until_ns = UINT64_MAX;
    }
}

void session_ready(struct world *world)
{
    struct sessions *all = world->sessions;
    for (uint32_t i = 0; all != NULL && i < SESSIONS_MAX; i++)
        if (all->at[i].until_ns == UINT64_MAX)
            all->at[i].until_ns = still_lived_ns(world) + window_ns(world, &all->at[i]);
}

bool session_all_finished(const struct world *world)
{
    struct sessions *all = world->sessions;
    for (uint32_t i = 0; all != NULL && i < SESSIONS_MAX; i++)
        if (!world->is_calm || now_of(&all->at[i])->bytes != 0)
            return false;
    return true;
}

void session_check_empty(struct world *world)
{
    struct core_status status;
    core_status(world->machine.core, &status);
    if (!session_all_finished(world) || disk_count(&world->disk, RECORD_TRACKED) != 0 ||
        status.tracked.connected + status.tracked.disconnected + status.tracked.expired != 0)
        world_fail(world, "T3", "faults ended long ago, and a session is still there");
}

/*
 * test_tracker.c -- shows what the tracker promises to a protocol that uses it (D15): a client that
 * comes back in time finds what it had, one that does not is handed over for cleanup exactly once
 * per run, and no crash at any moment loses an acknowledged client or leaves half a cleanup behind.
 *
 * The tracker is called directly, below core_step; lock_fixture.h keeps what its batches say and
 * starts new cores on it. A user with SMB durable handles is in test_tracker_smb.c. A random
 * history over a few clients is compared with a model that knows nothing of timers, slots or
 * records.
 */
#include "base/prng.h"
#include "tracker_fixture.h"
#include "unit/test.h"

static enum tracker_result again(const char *key, struct tracker_view *ret)
{
    struct address address = fixture_address("192.0.2.8");
    enum tracker_result result =
        tracker_reconnect(core, bytes_of_text("smb"), bytes_of_text(key), &address, ret);
    core_check(core);
    return result;
}

static struct tracker_view find(const char *key)
{
    struct tracker_view view;
    assert_true(tracker_find(core, bytes_of_text("smb"), bytes_of_text(key), &view));
    return view;
}

static bool is_there(const char *key)
{
    struct tracker_view view;
    return tracker_find(core, bytes_of_text("smb"), bytes_of_text(key), &view);
}

static void expect_bytes(struct bytes bytes, const char *text)
{
    assert_true(bytes_equal(bytes, bytes_of_text(text)));
}

/* ---- one run ---- */

TEST(test_tracker__registers_and_updates)
{
    struct tracker_view first = add("smb", "a", "one"), other = add("smb", "b", ""), view;
    assert_true(other.id > first.id);
    assert_int_equal(first.state, RECORD_TRACKED_CONNECTED);
    assert_true(first.deadline_ns == 0);
    assert_int_equal(first.window_s, 90);
    expect_bytes(first.bytes, "one");
    expect_bytes(first.name, "a");
    assert_int_equal(other.bytes.len, 0);

    assert_int_equal(tracker_update(core, first.ref, bytes_of_text("two")), TRACKER_UPDATED);
    expect_bytes(find("a").bytes, "two");
    /* The same key of another protocol is somebody else. */
    assert_true(add("rpc-x", "a", "").id > other.id);
    struct tracker_client repeat = client_of("smb", "a", "three");
    repeat.window_s = 30;
    assert_int_equal(tracker_register(core, &repeat, &view), TRACKER_UPDATED);
    assert_true(view.id == first.id);
    assert_int_equal(view.window_s, 30);
    expect_bytes(view.bytes, "three");
    assert_true(tracker_remove(core, view.ref));
    assert_false(tracker_remove(core, view.ref));
    assert_false(is_there("a"));
    assert_true(add("smb", "a", "").id > other.id + 1);
}

TEST(test_tracker__comes_back_in_time_or_never)
{
    struct tracker_view a = add("smb", "a", "its handles"), b = add("smb", "b", ""), view;
    assert_int_equal(tracker_disconnect(core, a.ref, 30), TRACKER_UPDATED);
    assert_int_equal(tracker_disconnect(core, b.ref, 0), TRACKER_UPDATED);
    assert_int_equal(find("a").state, RECORD_TRACKED_DISCONNECTED);
    assert_true(find("a").deadline_ns == core->wall_ns + 30 * SECOND);
    assert_true(core_deadline_ns(core) == core->now_ns + 30 * SECOND);
    wait_s(29);
    assert_int_equal(again("a", &view), TRACKER_RECONNECTED);
    assert_true(view.id == a.id);
    assert_true(view.deadline_ns == 0);
    expect_bytes(view.bytes, "its handles");
    struct address address = fixture_address("192.0.2.8");
    assert_true(address_equal(&view.address, &address));
    wait_s(60); /* 89 s: b has its window */
    assert_int_equal(find("b").state, RECORD_TRACKED_DISCONNECTED);
    assert_int_equal(tracker_disconnect(core, view.ref, 10), TRACKER_UPDATED);
    wait_s(1);
    assert_int_equal(find("b").state, RECORD_TRACKED_EXPIRED);
    assert_int_equal(again("b", &view), TRACKER_GONE);

    /* Nobody is lucky because we are busy: no core_work ran since its time was over. */
    lock_fixture_wait(core, 9);
    assert_int_equal(again("a", &view), TRACKER_GONE);
    assert_int_equal(find("a").state, RECORD_TRACKED_EXPIRED);
    struct core_status status;
    core_status(core, &status);
    assert_int_equal(status.tracked.expired, 2);
    assert_true(status.tracked.lost == 2 && status.tracked.reconnected == 1);
}

/* A connection that was replaced has nothing to say any more. */
TEST(test_tracker__only_the_last_connection_counts)
{
    struct tracker_view first = add("smb", "a", "x"), second, third;
    assert_int_equal(again("a", &second), TRACKER_RECONNECTED); /* before its loss was noticed */
    assert_int_equal(tracker_disconnect(core, first.ref, 1), TRACKER_GONE);
    assert_int_equal(tracker_update(core, first.ref, bytes_of_text("old")), TRACKER_GONE);
    assert_false(tracker_remove(core, first.ref));
    struct tracker_client client = client_of("smb", "a", "y");
    assert_int_equal(tracker_register(core, &client, &third), TRACKER_UPDATED);
    assert_int_equal(tracker_update(core, second.ref, bytes_of_text("old")), TRACKER_GONE);
    assert_int_equal(find("a").state, RECORD_TRACKED_CONNECTED);
    expect_bytes(find("a").bytes, "y");
    assert_true(tracker_remove(core, third.ref));
    struct tracker_view fresh = add("smb", "a", "z"); /* the same slot, perhaps */
    assert_int_equal(tracker_disconnect(core, third.ref, 1), TRACKER_GONE);
    assert_int_equal(find("a").state, RECORD_TRACKED_CONNECTED);
    assert_int_equal(tracker_disconnect(core, fresh.ref, 1), TRACKER_UPDATED);
    assert_int_equal(tracker_update(core, fresh.ref, bytes_of_text("while away")), TRACKER_UPDATED);
    assert_int_equal(tracker_disconnect(core, fresh.ref, 50),
                     TRACKER_UPDATED); /* the last counts */
    wait_s(49);
    assert_int_equal(find("a").state, RECORD_TRACKED_DISCONNECTED);
    wait_s(1);
    assert_int_equal(tracker_update(core, fresh.ref, bytes_of_text("late")), TRACKER_GONE);
    assert_int_equal(tracker_disconnect(core, fresh.ref, 50), TRACKER_GONE);
    expect_bytes(find("a").bytes, "while away");
}

TEST(test_tracker__expired_are_taken_by_their_protocol)
{
    struct tracker_view view, other;
    assert_int_equal(tracker_disconnect(core, add("smb", "a", "1").ref, 5), TRACKER_UPDATED);
    assert_int_equal(tracker_disconnect(core, add("rpc-x", "c", "").ref, 6), TRACKER_UPDATED);
    assert_int_equal(tracker_disconnect(core, add("smb", "b", "2").ref, 7), TRACKER_UPDATED);
    assert_false(tracker_take_expired(core, bytes_of_text("smb"), &view));
    wait_s(7);
    assert_false(tracker_take_expired(core, bytes_of_text("afp"), &view));
    assert_true(tracker_take_expired(core, bytes_of_text("smb"), &view)); /* the oldest first */
    expect_bytes(view.name, "a");
    expect_bytes(view.bytes, "1");
    struct tracker_client client = client_of("smb", "a", "");
    assert_int_equal(tracker_register(core, &client, &other), TRACKER_GONE);
    assert_true(tracker_take_expired(core, bytes_of_text("smb"), &other));
    expect_bytes(other.name, "b");
    assert_false(tracker_take_expired(core, bytes_of_text("smb"), &other)); /* not twice */
    assert_true(tracker_remove(core, view.ref));
    assert_int_equal(tracker_register(core, &client, &other), TRACKER_ADDED);
    assert_true(other.id > view.id);
    assert_true(tracker_remove(core, find("b").ref));
    assert_true(tracker_take_expired(core, bytes_of_text("rpc-x"), &view));
}

/* No turn expires more than the batch takes, and nobody spins meanwhile. */
TEST(test_tracker__expires_in_pieces)
{
    struct core_limits small = small_limits();
    char key[16];
    small.batch_puts_max = 4;
    begin_with(&small);
    for (int i = 0; i < 10; i++) {
        (void)snprintf(key, sizeof key, "k%d", i);
        assert_int_equal(tracker_disconnect(core, add("smb", key, "").ref, 5), TRACKER_UPDATED);
        store();
    }
    for (uint32_t expired = 0; expired < 10;) {
        wait_s(expired == 0 ? 5 : 0);
        uint32_t now = core->tracker.counters.expired;
        assert_true(now > expired && now <= expired + 4);
        expired = now;
        assert_true(core_deadline_ns(core) > core->now_ns);
        store();
        assert_true((core_deadline_ns(core) == core->now_ns) == (expired < 10));
    }
}

/* ---- limits ---- */

TEST(test_tracker__limits)
{
    struct core_limits few = small_limits();
    few.clients_max = 2;
    begin_with(&few);
    struct tracker_view view, a = add("smb", "a", "");
    struct tracker_client third = client_of("smb", "c", ""), known = client_of("smb", "a", "more");
    (void)add("smb", "b", "");
    assert_int_equal(tracker_register(core, &third, &view), TRACKER_LIMIT);
    assert_int_equal(tracker_register(core, &known, &view), TRACKER_UPDATED); /* D2 */
    assert_true(tracker_remove(core, view.ref));
    assert_int_equal(tracker_update(core, a.ref, bytes_of_text("")), TRACKER_GONE);

    /* The store has no room. */
    core_step(core,
              &(struct core_input){
                  .kind = CORE_STORED, .wall_ns = core->wall_ns, .txn = core->durable_txn},
              NULL);
    assert_int_equal(tracker_register(core, &third, &view), TRACKER_ROOM);
    known = client_of("smb", "b", "");
    assert_int_equal(tracker_register(core, &known, &view), TRACKER_UPDATED);
    assert_int_equal(tracker_update(core, view.ref, bytes_of_text("more")), TRACKER_ROOM);
    known = client_of("smb", "b", "more"); /* all of those who are there could fill the disk */
    assert_int_equal(tracker_register(core, &known, &view), TRACKER_ROOM);
    store();
    assert_int_equal(tracker_register(core, &third, &view), TRACKER_ADDED);
}

TEST(test_tracker__lengths)
{
    static const uint8_t many[RECORD_BYTES_MAX + 1];
    struct tracker_view view;
    struct tracker_client client = client_of("smb", "a", "");
    client.key = (struct bytes){many, 0};
    assert_int_equal(tracker_register(core, &client, &view), TRACKER_BYTES);
    client.key.len = RECORD_KEY_MAX + 1;
    assert_int_equal(tracker_register(core, &client, &view), TRACKER_BYTES);
    client.key.len = RECORD_KEY_MAX;
    client.bytes = (struct bytes){many, RECORD_BYTES_MAX + 1};
    assert_int_equal(tracker_register(core, &client, &view), TRACKER_BYTES);
    client.bytes.len = RECORD_BYTES_MAX;
    assert_int_equal(tracker_register(core, &client, &view), TRACKER_ADDED);
    assert_int_equal(tracker_update(core, view.ref, (struct bytes){many, RECORD_BYTES_MAX + 1}),
                     TRACKER_BYTES);
    store();
    restart_after(1);
    struct address address = fixture_address("192.0.2.8");
    assert_int_equal(tracker_reconnect(core, client.protocol, client.key, &address, &view),
                     TRACKER_RECONNECTED);
    assert_true(bytes_equal(view.bytes, client.bytes));
    assert_true(bytes_equal(view.name, client.key));
}

TEST(test_tracker__bytes_have_a_budget)
{
    static const uint8_t many[RECORD_BYTES_MAX];
    struct core_limits small = small_limits();
    small.bytes_max = 64 * 1024;
    begin_with(&small);
    char key[16];
    struct tracker_view view, first = add("smb", "first", "a few");
    enum tracker_result result = TRACKER_ADDED;
    uint32_t count = 0;
    for (; result == TRACKER_ADDED; count++) {
        (void)snprintf(key, sizeof key, "k%u", count);
        struct tracker_client client = client_of("smb", key, "");
        client.bytes = (struct bytes){many, sizeof many};
        result = tracker_register(core, &client, &view);
    }
    assert_int_equal(result, TRACKER_BYTES);
    assert_in_range(count, 60, 70);
    core_check(core);
    struct bytes longer = {many, 100}, shorter = {many, 3};
    assert_int_equal(tracker_update(core, first.ref, longer), TRACKER_BYTES);
    expect_bytes(find("first").bytes, "a few");
    assert_int_equal(tracker_update(core, first.ref, shorter), TRACKER_UPDATED);
    assert_true(tracker_remove(core, find("k0").ref));
    assert_true(tracker_remove(core, find("k1").ref));
    assert_int_equal(tracker_update(core, first.ref, longer), TRACKER_UPDATED);
    store();
    restart_after(1); /* what was stored is loaded whatever the budget */
    assert_true(is_there("first") && is_there("k2"));
}

TEST(test_tracker__protocols_have_a_limit)
{
    char name[16];
    struct tracker_view view, views[TRACKER_PROTOCOLS_MAX];
    for (uint32_t i = 0; i < TRACKER_PROTOCOLS_MAX; i++) {
        (void)snprintf(name, sizeof name, "p%u", i);
        views[i] = add(name, "k", "");
    }
    struct tracker_client other = client_of("other", "k", ""), known = client_of("p3", "l", "");
    assert_int_equal(tracker_register(core, &other, &view), TRACKER_LIMIT);
    assert_int_equal(tracker_register(core, &known, &view), TRACKER_ADDED);
    assert_true(tracker_remove(core, views[7].ref));
    assert_int_equal(tracker_register(core, &other, &view), TRACKER_ADDED);
    store();
    restart_after(1);
    assert_int_equal(core->tracker.table.count, TRACKER_PROTOCOLS_MAX + 1);
}

/* ---- restarts ---- */

TEST(test_tracker__restart_disconnects_everybody)
{
    struct tracker_view a = add("smb", "a", "x"), view;
    struct tracker_client quick = client_of("smb", "b", "");
    quick.window_s = 30;
    assert_int_equal(tracker_register(core, &quick, &view), TRACKER_ADDED);
    store();
    uint64_t last_id = view.id;
    core = lock_fixture_restart(core, &limits, 0);
    assert_int_equal(find("a").state, RECORD_TRACKED_DISCONNECTED);
    assert_int_equal(lock_fixture_store(core, NULL), 0); /* and nothing had to be written */
    /* Nobody's time runs before we are ready (R-GRACE-8). */
    wait_s(1000);
    assert_int_equal(find("a").state, RECORD_TRACKED_DISCONNECTED);
    assert_true(find("a").deadline_ns == 0);
    core_step(
        core,
        &(struct core_input){.kind = CORE_READY, .now_ns = core->now_ns, .wall_ns = core->wall_ns},
        NULL);
    assert_true(find("a").deadline_ns == core->wall_ns + 90 * SECOND);
    assert_true(find("b").deadline_ns == core->wall_ns + 30 * SECOND);
    wait_s(30);
    assert_int_equal(find("b").state, RECORD_TRACKED_EXPIRED);
    wait_s(59);
    assert_int_equal(again("a", &view), TRACKER_RECONNECTED);
    assert_true(view.id == a.id && view.generation == a.generation + 1);
    expect_bytes(view.bytes, "x");
    wait_s(1000);
    assert_int_equal(find("a").state, RECORD_TRACKED_CONNECTED);
    assert_true(add("smb", "c", "").id > last_id);
    assert_int_equal(tracker_update(core, a.ref, bytes_of_text("")), TRACKER_GONE);
}

/* One that comes and goes before we are ready has the time it was given then. */
TEST(test_tracker__may_come_before_we_are_ready)
{
    struct tracker_view view;
    (void)add("smb", "a", "");
    store();
    core = lock_fixture_restart(core, &limits, 0);
    assert_int_equal(again("a", &view), TRACKER_RECONNECTED);
    assert_int_equal(tracker_disconnect(core, view.ref, 10), TRACKER_UPDATED);
    wait_s(5);
    core_step(
        core,
        &(struct core_input){.kind = CORE_READY, .now_ns = core->now_ns, .wall_ns = core->wall_ns},
        NULL);
    core_check(core);
    wait_s(4);
    assert_int_equal(find("a").state, RECORD_TRACKED_DISCONNECTED);
    wait_s(1);
    assert_int_equal(find("a").state, RECORD_TRACKED_EXPIRED);
}

/* What is left of 600 s when 100 of them had passed before the crash. */
static void expect_left(int64_t away_s, uint64_t left_s)
{
    struct tracker_view a = add("smb", "a", "");
    assert_int_equal(tracker_disconnect(core, a.ref, 600), TRACKER_UPDATED);
    wait_s(100);
    store();
    restart_after(away_s);
    assert_true(find("a").deadline_ns == core->wall_ns + left_s * SECOND);
    wait_s(left_s - 1);
    assert_int_equal(find("a").state, RECORD_TRACKED_DISCONNECTED);
    wait_s(1);
    assert_int_equal(find("a").state, RECORD_TRACKED_EXPIRED);
    assert_true(tracker_remove(core, find("a").ref));
    store();
}

TEST(test_tracker__deadlines_survive_a_restart)
{
    expect_left(0, 500);
    expect_left(200, 300);
    expect_left(499, 90); /* nobody could come back while we were away */
    expect_left(100000, 90);
    expect_left(-1, 501);      /* a clock that was corrected a little */
    expect_left(-100000, 600); /* one that was set back: never more than it was given */
}

TEST(test_tracker__expired_stay_expired)
{
    struct tracker_view view, a = add("smb", "a", "bytes");
    assert_int_equal(tracker_disconnect(core, a.ref, 5), TRACKER_UPDATED);
    store();
    wait_s(5);
    /* Not stored yet: a crash takes it back, and nobody was told anything (P1). */
    restart_after(0);
    assert_int_equal(find("a").state, RECORD_TRACKED_DISCONNECTED);
    wait_s(90);
    assert_int_equal(again("a", &view), TRACKER_GONE);
    assert_true(core_gate_txn(core) > core->durable_txn); /* "gone" waits for the store too */
    store();
    for (int round = 0; round < 3; round++) {
        restart_after(0);
        assert_int_equal(again("a", &view), TRACKER_GONE);
        assert_true(tracker_take_expired(core, bytes_of_text("smb"), &view));
        assert_true(view.id == a.id);
        expect_bytes(view.bytes, "bytes");
        assert_false(tracker_take_expired(core, bytes_of_text("smb"), &view));
    }
    assert_true(tracker_remove(core, find("a").ref));
    store();
    restart_after(0);
    assert_false(is_there("a"));
}

TEST(test_tracker__answers_wait_for_the_store)
{
    bool must_sync = false;
    struct tracker_view view;
    store();
    assert_true(core_gate_txn(core) == core->durable_txn);
    struct tracker_view a = add("smb", "a", "x");
    assert_true(core_gate_txn(core) == core->durable_txn + 1);
    assert_int_equal(lock_fixture_store(core, &must_sync), 1);
    assert_true(must_sync); /* a new client, also with --sync process */
    assert_int_equal(tracker_update(core, a.ref, bytes_of_text("x")), TRACKER_UPDATED);
    assert_true(core_gate_txn(core) == core->durable_txn); /* nothing changed */
    assert_int_equal(tracker_update(core, a.ref, bytes_of_text("y")), TRACKER_UPDATED);
    assert_int_equal(lock_fixture_store(core, NULL), 1);
    assert_int_equal(tracker_disconnect(core, a.ref, 5), TRACKER_UPDATED);
    assert_int_equal(lock_fixture_store(core, NULL), 1);
    assert_int_equal(again("a", &view), TRACKER_RECONNECTED);
    assert_int_equal(lock_fixture_store(core, NULL), 1);
    assert_true(tracker_remove(core, view.ref));
    assert_int_equal(lock_fixture_store(core, NULL), 1);
}

TEST(test_tracker__odd_records_are_not_loaded)
{
    uint8_t value[RECORD_VALUE_MAX];
    struct record_tracked record = {.id = 3,
                                    .generation = 1,
                                    .state = RECORD_TRACKED_CONNECTED,
                                    .protocol = bytes_of_text("smb"),
                                    .key = bytes_of_text("a")};
    lock_fixture_free(core);
    core = core_new(&limits, 1);
    assert_non_null(core);
    uint32_t len = record_put_tracked(value, 0, &record);
    assert_int_equal(core_load(core, RECORD_TRACKED, 0, (struct bytes){value, len}), RECORD_GOOD);
    len = record_put_tracked(value, 1, &record); /* the same client twice */
    assert_int_equal(core_load(core, RECORD_TRACKED, 1, (struct bytes){value, len}),
                     RECORD_CORRUPT);
    record.protocol = bytes_of_text("nlm"); /* they have tables of their own */
    len = record_put_tracked(value, 2, &record);
    assert_int_equal(core_load(core, RECORD_TRACKED, 2, (struct bytes){value, len}),
                     RECORD_CORRUPT);
    core_start(core, &(struct core_boot){.wall_ns = LOCK_FIXTURE_WALL_NS});
    core_check(core);
    assert_int_equal(core->tracker.table.count, 1);
    assert_true(core->server.flags & RECORD_SERVER_INCOMPLETE);
}

/* ---- a random history ---- */

enum { KEYS = 6 };

struct model_client {
    bool is_here;
    enum record_tracked_state state;
    uint64_t id, until_ns; /* by the model's own clock */
    char bytes[8];
};

struct model {
    struct model_client clients[KEYS];
    uint64_t last_id;
};

static const char *const keys[KEYS] = {"k0", "k1", "k2", "k3", "k4", "k5"};

static void model_expire(struct model *model, uint64_t now_ns)
{
    for (int i = 0; i < KEYS; i++) {
        struct model_client *client = &model->clients[i];
        if (client->is_here && client->state == RECORD_TRACKED_DISCONNECTED &&
            client->until_ns <= now_ns)
            client->state = RECORD_TRACKED_EXPIRED;
    }
}

static void compare(const struct model *model)
{
    for (int i = 0; i < KEYS; i++) {
        struct tracker_view view;
        const struct model_client *client = &model->clients[i];
        bool is_here = tracker_find(core, bytes_of_text("smb"), bytes_of_text(keys[i]), &view);
        assert_int_equal(is_here, client->is_here);
        if (!is_here)
            continue;
        assert_int_equal(view.state, client->state);
        assert_true(view.id == client->id);
        expect_bytes(view.bytes, client->bytes);
    }
}

static void act(struct model *model, struct prng *prng, uint64_t now_ns, int i)
{
    struct model_client *client = &model->clients[i];
    struct tracker_view view;
    char bytes[8];
    (void)snprintf(bytes, sizeof bytes, "%u", (unsigned)prng_below(prng, 1000));
    bool may_be = client->is_here && client->state != RECORD_TRACKED_EXPIRED;
    switch (prng_below(prng, 5)) {
    case 0: {
        struct tracker_client said = client_of("smb", keys[i], bytes);
        enum tracker_result result = tracker_register(core, &said, &view);
        if (client->is_here && !may_be) {
            assert_int_equal(result, TRACKER_GONE);
            return;
        }
        assert_int_equal(result, !client->is_here                            ? TRACKER_ADDED
                                 : client->state == RECORD_TRACKED_CONNECTED ? TRACKER_UPDATED
                                                                             : TRACKER_RECONNECTED);
        assert_true(client->is_here ? view.id == client->id : view.id > model->last_id);
        *client = (struct model_client){true, RECORD_TRACKED_CONNECTED, view.id, 0, ""};
        memcpy(client->bytes, bytes, sizeof bytes);
        if (view.id > model->last_id)
            model->last_id = view.id;
        return;
    }
    case 1:
        assert_int_equal(again(keys[i], &view), may_be ? TRACKER_RECONNECTED : TRACKER_GONE);
        if (may_be)
            client->state = RECORD_TRACKED_CONNECTED;
        return;
    case 2: {
        uint32_t ttl_s = 1 + (uint32_t)prng_below(prng, 200);
        if (!client->is_here)
            return;
        assert_int_equal(tracker_disconnect(core, find(keys[i]).ref, ttl_s),
                         may_be ? TRACKER_UPDATED : TRACKER_GONE);
        if (may_be) {
            client->state = RECORD_TRACKED_DISCONNECTED;
            client->until_ns = now_ns + ttl_s * SECOND;
        }
        return;
    }
    case 3:
        if (!client->is_here)
            return;
        assert_int_equal(tracker_update(core, find(keys[i]).ref, bytes_of_text(bytes)),
                         may_be ? TRACKER_UPDATED : TRACKER_GONE);
        if (may_be)
            memcpy(client->bytes, bytes, sizeof bytes);
        return;
    default:
        if (client->is_here)
            assert_true(tracker_remove(core, find(keys[i]).ref));
        client->is_here = false;
        return;
    }
}

/* The clock of the model goes on while the server is away. */
static void crash(struct model *model, const struct model *stored, uint64_t *now_ns,
                  uint64_t away_s)
{
    *model = *stored; /* an id that was not stored was not seen by anybody either */
    restart_after((int64_t)away_s);
    *now_ns += away_s * SECOND;
    for (int i = 0; i < KEYS; i++) {
        struct model_client *client = &model->clients[i];
        uint64_t window_ns = *now_ns + 90 * SECOND;
        if (!client->is_here || client->state == RECORD_TRACKED_EXPIRED)
            continue;
        if (client->state == RECORD_TRACKED_CONNECTED || client->until_ns < window_ns)
            client->until_ns = window_ns;
        client->state = RECORD_TRACKED_DISCONNECTED;
    }
}

TEST(test_tracker__random_histories)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct prng prng = {seed};
        struct model model = {0}, stored = {0};
        uint64_t now_ns = 0;
        struct core_limits small = small_limits();
        begin_with(&small);
        for (int step = 0; step < 300; step++) {
            uint64_t choice = prng_below(&prng, 20);
            if (choice < 13) {
                act(&model, &prng, now_ns, (int)prng_below(&prng, KEYS));
            } else if (choice < 16) {
                uint64_t seconds = prng_below(&prng, 60);
                now_ns += seconds * SECOND;
                model_expire(&model, now_ns);
                wait_s(seconds);
            } else if (choice < 19) {
                store();
                stored = model;
            } else {
                crash(&model, &stored, &now_ns, prng_below(&prng, 150));
                stored = model; /* but for what a restart makes of it, which every one does again */
            }
            core_check(core);
            compare(&model);
        }
    }
}

TEST_MAIN(set_up, tear_down, NULL, NULL)

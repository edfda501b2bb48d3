/*
 * test_share.c -- share reservations: who conflicts with whom, what replaces what, and what is
 * written and freed (R-SH-1, R-NM-1, R-SEC-3, P5).
 *
 * All pairs of reservations, and all triples in which one replaces another, are compared with the
 * sentence that defines a conflict; long random histories with a model that walks over everything.
 */
#include "fixture.h"
#include "lock_fixture.h"

#include "base/prng.h"
#include "unit/test.h"

static struct core *core;

enum { READ = 1, WRITE = 2 };

static struct core *new_core(void)
{
    return lock_fixture_new(&lock_fixture_limits);
}

/* One may not do what the other denies, neither way round. `pair` has the mode above the access. */
static bool may_stand_together(uint32_t a, uint32_t b)
{
    for (uint32_t deed = READ; deed <= WRITE; deed++) {
        bool a_does = a & deed, a_denies = a >> 2 & deed;
        bool b_does = b & deed, b_denies = b >> 2 & deed;
        if ((a_does && b_denies) || (b_does && a_denies))
            return false;
    }
    return true;
}

static enum lock_status take(uint32_t client, const char *fh, const char *oh, uint32_t pair)
{
    return lock_fixture_share(core, client, fh, oh, pair >> 2, pair & 3);
}

static void release(uint32_t client, const char *fh, const char *oh)
{
    struct lock_request request = lock_fixture_request(fh, oh);
    share_release(core, client, &request);
}

/* The only share there is. */
static uint32_t only(void)
{
    assert_int_equal(core->shares.table.count, 1);
    return table_next(&core->shares.table, SLOT_NONE);
}

static struct record_share stored_share(uint32_t slot)
{
    struct record_share record;
    assert_int_equal(record_get_share(lock_fixture_stored(RECORD_SHARE, slot), slot, &record),
                     RECORD_GOOD);
    return record;
}

TEST_FIXTURE(set_up)
{
    core = new_core();
}

TEST_FIXTURE(tear_down)
{
    lock_fixture_free(core);
}

TEST(test_share__every_pair)
{
    uint32_t a = lock_fixture_client(core, "10.0.0.2", "a");
    uint32_t b = lock_fixture_client(core, "10.0.0.3", "b");
    for (uint32_t old = 0; old < 16; old++)
        for (uint32_t new = 0; new < 16; new ++) {
            enum lock_status expected = may_stand_together(old, new) ? LOCK_GRANTED : LOCK_DENIED;
            assert_int_equal(take(a, "file", "one", old), LOCK_GRANTED);
            assert_int_equal(take(b, "file", "one", new), expected);
            release(b, "file", "one");
            assert_int_equal(take(a, "file", "two", new), expected); /* its own, other oh */
            release(a, "file", "two");
            assert_int_equal(take(b, "other", "one", new), LOCK_GRANTED);
            release(b, "other", "one");
            assert_int_equal(core->shares.table.count, 1);
            release(a, "file", "one");
            core_check(core);
        }
}

TEST(test_share__every_replacement)
{
    uint32_t a = lock_fixture_client(core, "10.0.0.2", "a");
    uint32_t b = lock_fixture_client(core, "10.0.0.3", "b");
    uint32_t refused = 0;
    for (uint32_t i = 0; i < 16 * 16 * 16; i++) {
        uint32_t old = i & 15, other = i >> 4 & 15, new = i >> 8;
        if (!may_stand_together(old, other))
            continue;
        assert_int_equal(take(a, "file", "oh", old), LOCK_GRANTED);
        assert_int_equal(take(b, "file", "oh", other), LOCK_GRANTED);
        uint32_t slot = chains_first(&core->shares.by_client, a);
        bool is_granted = may_stand_together(new, other);
        assert_int_equal(take(a, "file", "oh", new), is_granted ? LOCK_GRANTED : LOCK_DENIED);
        assert_int_equal(core->shares.table.count, 2);
        uint32_t stands = is_granted ? new : old; /* refused: as it was */
        assert_int_equal(share_at(core, slot)->mode, stands >> 2);
        assert_int_equal(share_at(core, slot)->access, stands & 3);
        core_check(core);
        release(a, "file", "oh");
        release(b, "file", "oh");
        refused += is_granted ? 0 : 1;
    }
    assert_true(refused > 100);
}

enum { CLIENTS = 3, OHS = 2, FILES = 3, KEYS = CLIENTS * OHS * FILES, NOTHING = 16 };

static bool model_allows(const uint32_t model[static KEYS], uint32_t key, uint32_t pair)
{
    for (uint32_t other = 0; other < KEYS; other++)
        if (other != key && other / (CLIENTS * OHS) == key / (CLIENTS * OHS) &&
            model[other] != NOTHING && !may_stand_together(model[other], pair))
            return false;
    return true;
}

TEST(test_share__random_histories)
{
    static const char *const ohs[OHS] = {"", "one"}, *const files[FILES] = {"f", "g", "fg"};
    struct prng prng = {.state = 7};
    uint32_t model[KEYS], clients[CLIENTS], granted = 0, denied = 0;
    for (uint32_t i = 0; i < CLIENTS; i++)
        clients[i] = lock_fixture_client(core, i == 0 ? "10.0.0.2" : "10.0.0.3", i < 2 ? "a" : "b");
    for (uint32_t i = 0; i < KEYS; i++)
        model[i] = NOTHING;
    for (uint32_t i = 0; i < 20000; i++) {
        uint32_t key = (uint32_t)(prng_next(&prng) % KEYS);
        const char *fh = files[key / (CLIENTS * OHS)], *oh = ohs[key % OHS];
        uint32_t client = clients[key / OHS % CLIENTS], pair = (uint32_t)(prng_next(&prng) % 24);
        if (pair >= 16) {
            release(client, fh, oh);
            model[key] = NOTHING;
        } else if (model_allows(model, key, pair)) {
            assert_int_equal(take(client, fh, oh, pair), LOCK_GRANTED);
            model[key] = pair;
            granted++;
        } else {
            assert_int_equal(take(client, fh, oh, pair), LOCK_DENIED);
            denied++;
        }
        if (i % 16 == 0)
            (void)lock_fixture_store(core, NULL);
        if (i % 5000 == 4999) {
            (void)lock_fixture_store(core, NULL);
            core = lock_fixture_restart(core, &lock_fixture_limits, 0);
        }
        uint32_t expected = 0;
        for (uint32_t k = 0; k < KEYS; k++)
            expected += model[k] != NOTHING ? 1 : 0;
        assert_int_equal(core->shares.table.count, expected);
    }
    assert_true(granted > 1000);
    assert_true(denied > 1000);
}

TEST(test_share__repeat_writes_nothing)
{
    uint32_t client = lock_fixture_client(core, "10.0.0.2", "a");
    struct lock_request request = lock_fixture_request("file", "oh");
    request.mode = READ;
    request.access = WRITE;
    request.is_unmonitored = true;
    assert_int_equal(share_take(core, client, &request, 5), LOCK_GRANTED);
    assert_int_equal(lock_fixture_store(core, NULL), 2);
    uint32_t slot = only();
    struct record_share record = stored_share(slot);
    assert_int_equal(record.of.client, client);
    assert_int_equal(record.of.client_id, client_at(core, client)->stored.id);
    assert_int_equal(record.of.incarnation, 1);
    assert_int_equal(record.of.state, 0);
    assert_int_equal(record.granted_ns, 5);
    assert_int_equal(record.mode, READ);
    assert_int_equal(record.access, WRITE);
    assert_int_equal(record.flags, RECORD_LOCK_UNMONITORED);
    assert_true(bytes_equal(record.fh, request.fh));
    assert_true(bytes_equal(record.oh, request.oh));

    assert_int_equal(share_take(core, client, &request, 6), LOCK_GRANTED);
    assert_int_equal(lock_fixture_store(core, NULL), 0);

    request.is_unmonitored = false; /* the stamp is part of what is asked for */
    assert_int_equal(share_take(core, client, &request, 7), LOCK_GRANTED);
    assert_int_equal(lock_fixture_store(core, NULL), 1);
    assert_int_equal(stored_share(slot).flags, 0);
    client_at(core, client)->stored.state_seen = 9; /* R-SEC-3: its own state, or the newest seen */
    assert_int_equal(share_take(core, client, &request, 8), LOCK_GRANTED);
    assert_int_equal(lock_fixture_store(core, NULL), 1);
    assert_int_equal(stored_share(slot).of.state, 9);
    request.state = 8;
    assert_int_equal(share_take(core, client, &request, 9), LOCK_GRANTED);
    assert_int_equal(lock_fixture_store(core, NULL), 1);
    assert_int_equal(stored_share(slot).of.state, 8);
    assert_int_equal(stored_share(slot).granted_ns, 9);
    assert_int_equal(only(), slot);
}

TEST(test_share__release_needs_the_whole_key)
{
    uint32_t a = lock_fixture_client(core, "10.0.0.2", "a");
    uint32_t b = lock_fixture_client(core, "10.0.0.3", "a");
    assert_int_equal(take(a, "file", "oh", 15), LOCK_GRANTED);
    assert_int_equal(take(b, "other", "ho", 15), LOCK_GRANTED);
    (void)lock_fixture_store(core, NULL);
    release(b, "file", "oh"); /* the same name from another address (P5) */
    release(a, "file", "ho");
    release(a, "other", "oh");
    release(a, "file", "unknown");
    release(a, "unknown", "oh");
    assert_int_equal(lock_fixture_store(core, NULL), 0);
    assert_int_equal(core->shares.table.count, 2);
    release(a, "file", "oh");
    release(a, "file", "oh");
    assert_int_equal(lock_fixture_store(core, NULL), 1);
    assert_int_equal(core->shares.table.count, 1);
    assert_int_equal(file_find(core, bytes_of_text("file")), SLOT_NONE);
    assert_int_equal(intern_find(&core->locks.ohs, bytes_of_text("oh")), SLOT_NONE);
}

TEST_WITH(test_share__limits, NULL, tear_down)
{
    struct core_limits limits = lock_fixture_limits;
    limits.locks_max = 3;
    limits.locks_per_client_max = 2;
    core = lock_fixture_new(&limits);
    uint32_t a = lock_fixture_client(core, "10.0.0.2", "a");
    uint32_t b = lock_fixture_client(core, "10.0.0.3", "b");
    lock_fixture_lock(core, a, 1, "file", 0);
    assert_int_equal(take(a, "file", "1", 0), LOCK_GRANTED);
    assert_int_equal(share_room(core, a), ADMIT_CLIENT);
    assert_int_equal(take(a, "file", "2", 0), LOCK_NO_RESOURCES);
    assert_int_equal(take(a, "file", "1", READ), LOCK_GRANTED); /* a replacement is no new one */

    core->has_room = false;
    assert_int_equal(share_room(core, b), ADMIT_STORE);
    assert_int_equal(take(b, "file", "1", 0), LOCK_NO_RESOURCES);
    core->has_room = true;
    core->limits.bytes_max = arena_used(core->arena);
    assert_int_equal(share_room(core, b), ADMIT_BYTES);
    assert_int_equal(take(b, "file", "1", 0), LOCK_NO_RESOURCES);
    core->limits.bytes_max = limits.bytes_max;
    assert_int_equal(take(b, "file", "1", 0), LOCK_GRANTED);
    assert_int_equal(take(b, "file", "2", 0), LOCK_GRANTED);
    uint32_t c = lock_fixture_client(core, "10.0.0.4", "c");
    assert_int_equal(share_room(core, c), ADMIT_LIMIT);
    assert_int_equal(take(c, "file", "1", 0), LOCK_NO_RESOURCES);
    release(b, "file", "1");
    assert_int_equal(take(c, "file", "1", 0), LOCK_GRANTED);
}

TEST(test_share__drain_frees_older_incarnations)
{
    uint32_t a = lock_fixture_client(core, "10.0.0.2", "a");
    uint32_t b = lock_fixture_client(core, "10.0.0.3", "b");
    static const char *const ohs[] = {"0", "1", "2", "3", "4", "5"};
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(take(a, "file", ohs[i], READ), LOCK_GRANTED);
    client_start_over(core, a);
    assert_int_equal(take(b, "file", "oh", READ << 2), LOCK_DENIED); /* it still stands */
    assert_int_equal(take(a, "file", "new", READ), LOCK_GRANTED);
    assert_int_equal(take(a, "file", "2", READ), LOCK_GRANTED); /* reserved again: stays */
    release(a, "file", "5");                                    /* where the drain stands */
    core_check(core);

    uint32_t freed = 99;
    assert_int_equal(share_drain(core, a, 0, &freed), 0);
    assert_int_equal(freed, 0);
    assert_int_equal(share_drain(core, a, 1, &freed), 1);
    assert_int_equal(freed, 1);
    release(a, "file", "3");
    core_check(core);
    assert_int_equal(share_drain(core, a, 100, &freed), 3); /* 2, 1, 0 */
    assert_int_equal(freed, 2);
    assert_int_equal(share_drain(core, a, 100, &freed), 0);
    assert_int_equal(freed, 0);
    assert_int_equal(client_at(core, a)->life.share_count, 2);
    assert_false(client_drain(core));
    release(a, "file", "new");
    assert_int_equal(take(b, "file", "oh", READ << 2), LOCK_DENIED);
    release(a, "file", "2");
    assert_int_equal(take(b, "file", "oh", READ << 2), LOCK_GRANTED);
}

TEST_WITH(test_share__load_refuses_what_cannot_be, NULL, NULL)
{
    core = core_new(&lock_fixture_limits, 1);
    assert_non_null(core);
    struct record_client client = {
        .id = 4,
        .address = fixture_address("10.0.0.2"),
        .local = fixture_address("10.0.0.1"),
        .transport = TRANSPORT_TCP,
        .incarnation = 2,
        .caller_name = bytes_of_text("a"),
    };
    assert_true(client_load(core, 3, &client));
    const struct record_share good = {
        .of = {.client_id = 4, .client = 3, .incarnation = 2},
        .mode = READ,
        .access = WRITE,
        .fh = bytes_of_text("file"),
        .oh = bytes_of_text("oh"),
    };
    assert_true(share_load(core, 5, &good));
    assert_false(share_load(core, 6, &good)); /* the same key */
    struct record_share bad = good;
    bad.oh = bytes_of_text("other");
    bad.access = READ;
    assert_false(share_load(core, 6, &bad)); /* it conflicts */
    bad.mode = 0;
    bad.access = 0;
    bad.of.client = 2;
    assert_false(share_load(core, 6, &bad)); /* no such client */
    bad.of.client = RECORD_SLOT_MAX - 1;
    assert_false(share_load(core, 6, &bad));
    bad.of = good.of;
    bad.of.client_id = 5;
    assert_false(share_load(core, 6, &bad)); /* the slot is another's now */
    bad.of = good.of;
    bad.of.incarnation = 3;
    assert_false(share_load(core, 6, &bad)); /* from the future */
    bad.of.incarnation = 1;
    assert_false(share_load(core, 5, &bad)); /* the slot is taken */
    assert_false(share_load(core, RECORD_SLOT_MAX - 1, &bad));
    assert_true(share_load(core, 6, &bad));
    share_check(core);
    client_check(core);
    core_free(core);
}

TEST_MAIN(set_up, tear_down, NULL, NULL)

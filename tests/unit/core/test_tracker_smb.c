/*
 * test_tracker_smb.c -- shows that a protocol with sessions and durable handles can be built on the
 * tracker alone (D15), and that no crash breaks it, wherever it comes.
 *
 * The user is a small SMB server. A session is a tracked client of "smb", known by the client's
 * GUID. An open handle is one of "smb-open", known by GUID and number; its id is the persistent
 * file id and its bytes are the path and the oplock. A lost connection disconnects the session and
 * its handles with the time to live that the client asked for; a client that comes back in time
 * finds its handles under the same ids; one that does not has them closed.
 *
 * The rule that must hold for whatever is stored at any moment: no handle without its session.
 * Every step of a session's life is cut by a crash, before and after it is stored, and followed by
 * two futures: the client comes back, or it never does.
 */
#include "fixture.h"
#include "lock_fixture.h"
#include "unit/test.h"

#define SECOND FIXTURE_SECOND

enum { GUID_LEN = 16, OPENS = 3, TTL_S = 30, STORED_SLOTS = 200 };

static const struct bytes SESSION = {(const uint8_t *)"smb", 3};
static const struct bytes OPEN = {(const uint8_t *)"smb-open", 8};

static struct core *core;
static struct core_limits limits;

/* Cores are made by the hundred here: small ones. */
static struct core_limits small_limits(void)
{
    struct core_limits small = lock_fixture_limits;
    small.locks_max = 100;
    small.waiters_max = 10;
    small.batch_puts_max = 200;
    small.bytes_max = 256 * 1024;
    return small;
}

/* ---- the SMB server ---- */

struct key {
    uint8_t at[GUID_LEN + 2];
    uint32_t len;
};

static struct key session_key(uint8_t guid)
{
    struct key key = {.len = GUID_LEN};
    memset(key.at, guid, GUID_LEN);
    return key;
}

static struct key open_key(uint8_t guid, uint32_t number)
{
    struct key key = session_key(guid);
    key.at[GUID_LEN] = (uint8_t)(number >> 8);
    key.at[GUID_LEN + 1] = (uint8_t)number;
    key.len += 2;
    return key;
}

static struct bytes key_bytes(const struct key *key)
{
    return (struct bytes){key->at, key->len};
}

static bool find_open(uint8_t guid, uint32_t number, struct tracker_view *ret)
{
    struct key key = open_key(guid, number);
    return tracker_find(core, OPEN, key_bytes(&key), ret);
}

static bool find_session(uint8_t guid, struct tracker_view *ret)
{
    struct key key = session_key(guid);
    return tracker_find(core, SESSION, key_bytes(&key), ret);
}

static uint64_t smb_connect(uint8_t guid)
{
    struct key key = session_key(guid);
    struct tracker_view view;
    struct tracker_client client = {.protocol = SESSION,
                                    .key = key_bytes(&key),
                                    .bytes = bytes_of_text("dialect 3.1.1"),
                                    .address = fixture_address("192.0.2.1")};
    enum tracker_result result = tracker_register(core, &client, &view);
    assert_true(result == TRACKER_ADDED || result == TRACKER_RECONNECTED);
    return view.id;
}

static uint64_t smb_open(uint8_t guid, uint32_t number, const char *path)
{
    struct key key = open_key(guid, number);
    struct tracker_view view;
    struct tracker_client client = {
        .protocol = OPEN, .key = key_bytes(&key), .bytes = bytes_of_text(path)};
    assert_int_equal(tracker_register(core, &client, &view), TRACKER_ADDED);
    return view.id;
}

/* The next handle of this client; only a prefix of the keys is its own. */
static bool next_open(uint8_t guid, uint32_t *slot, struct tracker_view *ret)
{
    struct key key = session_key(guid);
    while ((*slot = table_next(&core->tracker.table, *slot)) != SLOT_NONE) {
        tracker_view_slot(core, *slot, ret);
        if (bytes_equal(ret->protocol, OPEN) && memcmp(ret->name.at, key.at, key.len) == 0)
            return true;
    }
    return false;
}

static void smb_lost(uint8_t guid)
{
    struct tracker_view view;
    uint32_t slot = SLOT_NONE;
    while (next_open(guid, &slot, &view))
        assert_int_equal(tracker_disconnect(core, view.ref, TTL_S), TRACKER_UPDATED);
    assert_true(find_session(guid, &view));
    assert_int_equal(tracker_disconnect(core, view.ref, TTL_S), TRACKER_UPDATED);
}

/* DURABLE_HANDLE_RECONNECT of all of them. False: they are gone. */
static bool smb_return(uint8_t guid)
{
    struct key key = session_key(guid);
    struct address address = fixture_address("192.0.2.2");
    struct tracker_view view;
    uint32_t slot = SLOT_NONE;
    if (tracker_reconnect(core, SESSION, key_bytes(&key), &address, &view) != TRACKER_RECONNECTED)
        return false;
    while (next_open(guid, &slot, &view)) {
        struct key open = {.len = view.name.len};
        memcpy(open.at, view.name.at, open.len);
        assert_int_equal(tracker_reconnect(core, OPEN, key_bytes(&open), &address, &view),
                         TRACKER_RECONNECTED);
    }
    return true;
}

/* Closes at most `max` handles of a session that is over, and then the session. True: done. */
static bool smb_clean(const struct tracker_view *session, uint32_t max)
{
    struct tracker_view view;
    uint8_t guid = session->name.at[0];
    uint32_t slot = SLOT_NONE;
    for (uint32_t i = 0; next_open(guid, &slot, &view); i++) {
        if (i == max)
            return false;
        assert_true(tracker_remove(core, view.ref));
    }
    return tracker_remove(core, session->ref);
}

/* One turn of the server: whoever has expired is cleaned up, in the batch that is open. */
static void smb_turn(void)
{
    struct tracker_view view;
    core_work(core, core->now_ns, core->wall_ns);
    while (tracker_take_expired(core, SESSION, &view))
        assert_true(smb_clean(&view, UINT32_MAX));
    while (tracker_take_expired(core, OPEN, &view))
        assert_true(
            tracker_remove(core, view.ref)); /* its own time was over before its session's */
    core_check(core);
}

/* ---- what is stored ---- */

static bool stored_record(uint32_t slot, struct record_tracked *ret)
{
    struct bytes value = lock_fixture_stored(RECORD_TRACKED, slot);
    if (value.len == 0)
        return false;
    assert_int_equal(record_get_tracked(value, slot, ret), RECORD_GOOD);
    return true;
}

static bool is_session_stored(const uint8_t *guid)
{
    struct record_tracked record;
    for (uint32_t slot = 0; slot < STORED_SLOTS; slot++)
        if (stored_record(slot, &record) && bytes_equal(record.protocol, SESSION) &&
            memcmp(record.key.at, guid, GUID_LEN) == 0)
            return true;
    return false;
}

/* The rule. Returns how many records there are. */
static uint32_t check_stored(void)
{
    struct record_tracked record;
    uint32_t count = 0;
    for (uint32_t slot = 0; slot < STORED_SLOTS; slot++) {
        if (!stored_record(slot, &record))
            continue;
        count++;
        if (bytes_equal(record.protocol, OPEN))
            assert_true(is_session_stored(record.key.at));
    }
    return count;
}

static void store(void)
{
    (void)lock_fixture_store(core, NULL);
    (void)check_stored();
}

static void ready(void)
{
    core_step(
        core,
        &(struct core_input){.kind = CORE_READY, .now_ns = core->now_ns, .wall_ns = core->wall_ns},
        NULL);
}

static void restart(void)
{
    uint64_t wall_ns = core->wall_ns;
    (void)check_stored();
    core = lock_fixture_restart(core, &limits, 0);
    core->wall_ns = wall_ns + 3 * SECOND;
    ready();
    core_check(core);
}

TEST_FIXTURE(set_up)
{
    limits = small_limits();
    core = lock_fixture_new(&limits);
    ready();
}

TEST_FIXTURE(tear_down)
{
    lock_fixture_free(core);
}

/* ---- a life, in steps; each is one batch ---- */

/* What the client was told, which is what was stored. */
struct told {
    bool is_session, is_over; /* over: it was told that it came too late, or would be */
    uint64_t session_id, open_ids[OPENS];
    const char *paths[OPENS]; /* NULL: not open */
};

static void step_connect(struct told *told)
{
    told->session_id = smb_connect('G');
    told->is_session = true;
}

static void step_open_two(struct told *told)
{
    for (uint32_t i = 0; i < 2; i++) {
        told->paths[i] = i == 0 ? "a.txt rwh" : "b.txt r";
        told->open_ids[i] = smb_open('G', i, told->paths[i]);
    }
}

static void step_break_oplock(struct told *told)
{
    struct tracker_view view;
    assert_true(find_open('G', 0, &view));
    told->paths[0] = "a.txt r";
    assert_int_equal(tracker_update(core, view.ref, bytes_of_text(told->paths[0])),
                     TRACKER_UPDATED);
}

static void step_lose(struct told *told)
{
    (void)told;
    smb_lost('G');
}

static void step_return(struct told *told)
{
    (void)told;
    lock_fixture_wait(core, TTL_S - 1);
    assert_true(smb_return('G'));
}

static void step_close_one(struct told *told)
{
    struct tracker_view view;
    assert_true(find_open('G', 1, &view));
    assert_true(tracker_remove(core, view.ref));
    told->paths[1] = NULL;
}

static void step_open_third(struct told *told)
{
    told->paths[2] = "c.txt";
    told->open_ids[2] = smb_open('G', 2, told->paths[2]);
}

static void step_time_is_over(struct told *told)
{
    lock_fixture_wait(core, TTL_S);
    core_work(core, core->now_ns, core->wall_ns);
    told->is_over = true;
}

static void step_clean(struct told *told)
{
    smb_turn();
    *told = (struct told){0};
}

static void (*const life[])(struct told *told) = {
    step_connect,   step_open_two,   step_break_oplock, step_lose,         step_return,
    step_close_one, step_open_third, step_lose,         step_time_is_over, step_clean,
};

enum { LIFE_LEN = sizeof life / sizeof life[0] };

/* Lives up to step `end`; the last step is stored or not. Returns what the client knows. */
static struct told live(uint32_t end, bool is_last_stored)
{
    struct told told = {0};
    for (uint32_t i = 0; i <= end; i++) {
        struct told next = told;
        life[i](&next);
        core_check(core);
        if (i == end && !is_last_stored)
            break;
        store();
        told = next;
    }
    return told;
}

/* ---- after the crash ---- */

static void expect_handles(const struct told *told)
{
    struct tracker_view view;
    assert_true(find_session('G', &view));
    assert_true(view.id == told->session_id);
    assert_true(bytes_equal(view.bytes, bytes_of_text("dialect 3.1.1")));
    for (uint32_t i = 0; i < OPENS; i++) {
        assert_int_equal(find_open('G', i, &view), told->paths[i] != NULL);
        if (told->paths[i] == NULL)
            continue;
        assert_true(view.id == told->open_ids[i]);
        assert_true(bytes_equal(view.bytes, bytes_of_text(told->paths[i])));
    }
}

static void expect_nothing(void)
{
    store();
    assert_int_equal(check_stored(), 0);
    assert_int_equal(core->tracker.table.count, 0);
}

static void comes_back(const struct told *told)
{
    lock_fixture_wait(core, 89);
    smb_turn();
    bool is_back = smb_return('G');
    assert_int_equal(is_back, told->is_session && !told->is_over);
    if (is_back)
        expect_handles(told);
    else
        expect_nothing(); /* nothing of it was left, or smb_turn has cleaned it up */
    lock_fixture_wait(core, 1000);
    smb_turn();
    if (is_back)
        expect_handles(told);
}

static void never_comes_back(void)
{
    struct tracker_view view;
    lock_fixture_wait(core, 90);
    smb_turn();
    assert_false(smb_return('G'));
    assert_false(find_session('G', &view));
    expect_nothing();
}

TEST(test_tracker_smb__a_whole_life)
{
    struct told told = live(LIFE_LEN - 3, true);
    expect_handles(&told);
    uint64_t last_id = told.open_ids[2];
    step_time_is_over(&told);
    assert_false(smb_return('G')); /* too late, although nothing was cleaned up yet */
    smb_turn();
    expect_nothing();
    assert_true(smb_connect('G') > last_id); /* somebody new, in every respect */
    assert_true(smb_open('G', 0, "a.txt") > last_id + 1);
}

TEST(test_tracker_smb__crash_anywhere)
{
    for (uint32_t end = 0; end < LIFE_LEN; end++)
        for (uint32_t variant = 0; variant < 4; variant++) {
            (void)tear_down(NULL);
            (void)set_up(NULL);
            struct told told = live(end, variant & 1);
            restart();
            if (told.is_session && !told.is_over)
                expect_handles(&told);
            if (variant & 2)
                comes_back(&told);
            else
                never_comes_back();
        }
}

/* The next crash comes inside the window of the first: it begins anew, and nothing is lost. */
TEST(test_tracker_smb__crash_after_crash)
{
    struct told told = live(6, true);
    for (int round = 0; round < 5; round++) {
        restart();
        lock_fixture_wait(core, 60);
        smb_turn();
        store();
        expect_handles(&told);
    }
    restart();
    comes_back(&told);
}

/* More handles than a batch takes: the session goes with the last of them, whatever happens. */
TEST(test_tracker_smb__cleanup_in_pieces)
{
    enum { MANY = 50, PIECE = 8 };
    struct tracker_view view;
    uint32_t turns = 0, stored = MANY + 1;
    (void)smb_connect('M');
    for (uint32_t i = 0; i < MANY; i++)
        (void)smb_open('M', i, "file");
    store();
    smb_lost('M');
    lock_fixture_wait(core, TTL_S);
    core_work(core, core->now_ns, core->wall_ns);
    store();
    for (bool is_done = false; !is_done; turns++) {
        if (turns % 2 == 1)
            restart(); /* whoever was being cleaned up is found again */
        if (turns == 0 || turns % 2 == 1)
            assert_true(tracker_take_expired(core, SESSION, &view));
        assert_true(find_session('M', &view));
        is_done = smb_clean(&view, PIECE);
        core_check(core);
        store();
        uint32_t left = check_stored();
        assert_true(left == stored - PIECE || is_done);
        stored = left;
        assert_true(turns < MANY);
    }
    assert_int_equal(stored, 0);
    assert_int_equal(turns, MANY / PIECE + 1);
    restart();
    assert_false(tracker_take_expired(core, SESSION, &view));
    assert_false(tracker_take_expired(core, OPEN, &view));
}

/* A handle may be given less time than its session, and goes alone. */
TEST(test_tracker_smb__handle_with_its_own_time)
{
    struct tracker_view view;
    struct told told = live(1, true);
    smb_lost('G');
    assert_true(find_open('G', 1, &view));
    assert_int_equal(tracker_disconnect(core, view.ref, 10), TRACKER_UPDATED);
    store();
    lock_fixture_wait(core, 10);
    smb_turn();
    store();
    told.paths[1] = NULL;
    expect_handles(&told);
    lock_fixture_wait(core, 10);
    assert_true(smb_return('G'));
    expect_handles(&told);
}

/* One client's end is no concern of another's. */
TEST(test_tracker_smb__others_keep_their_handles)
{
    struct told told = live(1, true);
    (void)smb_connect('H');
    (void)smb_open('H', 0, "other");
    smb_lost('H');
    store();
    lock_fixture_wait(core, TTL_S);
    smb_turn();
    store();
    struct tracker_view view;
    assert_false(find_session('H', &view));
    assert_false(find_open('H', 0, &view));
    expect_handles(&told);
}

TEST_MAIN(set_up, tear_down, NULL, NULL)

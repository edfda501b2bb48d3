/*
 * test_client.c -- lock clients: what makes two of them the same, what is written of them and when,
 * when they are forgotten and when not, and how those that started anew are freed piece by piece,
 * also over a crash (R-ID-1, D1, D2, R-SEC-3, R-SEC-5, R-NLM-8, P5, P7).
 *
 * The clients are asked below core_step. Where it matters that something is durable, the test reads
 * the stored record, or starts a new core on what was stored.
 */
#include "fixture.h"
#include "lock_fixture.h"
#include "unit/test.h"

static struct core *core;

#define NOT_TOUCHED 12345u

static struct core *new_core(void)
{
    return lock_fixture_new(&lock_fixture_limits);
}

static uint32_t find(const char *address, const char *name)
{
    struct address from = fixture_address(address);
    return client_find(core, &from, bytes_of_text(name));
}

static struct record_client stored_client(uint32_t slot)
{
    struct record_client record;
    assert_int_equal(record_get_client(lock_fixture_stored(RECORD_CLIENT, slot), slot, &record),
                     RECORD_GOOD);
    return record;
}

static enum admission try_add(const char *address, const char *name)
{
    struct peer peer = fixture_peer(address, 700);
    uint32_t slot = NOT_TOUCHED;
    enum admission result = client_add(core, &peer, bytes_of_text(name), core->wall_ns, &slot);
    bool is_filled = result == ADMIT_FOUND || result == ADMIT_NEW;
    assert_int_equal(slot != NOT_TOUCHED, is_filled);
    return result;
}

/* ---- who is who ---- */

TEST_FIXTURE(set_up)
{
    core = new_core();
}

TEST_FIXTURE(tear_down)
{
    lock_fixture_free(core);
}

TEST(test_client__key)
{
    struct peer peer = fixture_peer("10.0.0.2", 700);
    uint32_t slot, again;
    assert_int_equal(client_add(core, &peer, bytes_of_text("Web3.Example"), 5, &slot), ADMIT_NEW);
    peer.port = 900; /* none of these is part of the key */
    peer.transport = TRANSPORT_UDP;
    peer.local = fixture_address("10.0.0.7");
    assert_int_equal(client_add(core, &peer, bytes_of_text("wEB3.eXAMPLE"), 6, &again),
                     ADMIT_FOUND);
    assert_int_equal(slot, again);
    assert_int_equal(find("::ffff:10.0.0.2", "web3.example"), slot);

    uint32_t other_name = lock_fixture_client(core, "10.0.0.2", "web3");
    uint32_t other_address = lock_fixture_client(core, "10.0.0.3", "web3.example");
    assert_int_equal(core->clients.table.count, 3);
    assert_int_not_equal(other_name, slot);
    assert_int_not_equal(other_address, slot);
    assert_int_not_equal(other_address, other_name);
    assert_int_equal(find("10.0.0.2", "WEB3"), other_name);
    assert_int_equal(find("10.0.0.3", "WEB3.EXAMPLE"), other_address);
    assert_int_equal(find("10.0.0.3", "web3"), SLOT_NONE);
    assert_int_equal(find("10.0.0.4", "web3"), SLOT_NONE);
    assert_int_equal(find("10.0.0.2", "web"), SLOT_NONE);

    struct address address = client_address(core, other_address),
                   expected = fixture_address("10.0.0.3");
    assert_true(address_equal(&address, &expected));
}

TEST(test_client__new_one_is_stored_and_synced)
{
    uint64_t next_id = core->server.next_id;
    uint32_t slot = lock_fixture_client(core, "10.0.0.2", "Web3");
    bool must_sync = false;
    assert_int_equal(lock_fixture_store(core, &must_sync), 1);
    assert_true(must_sync);
    struct record_client record = stored_client(slot);
    struct address expected = fixture_address("10.0.0.2");
    assert_true(address_equal(&record.address, &expected));
    assert_true(bytes_equal(record.caller_name, bytes_of_text("Web3")));
    assert_int_equal(record.id, next_id);
    assert_int_equal(record.registered_ns, LOCK_FIXTURE_WALL_NS);
    assert_int_equal(record.told_state, core->server.state);
    assert_int_equal(record.server_epoch, core->server.epoch);
    assert_int_equal(record.incarnation, 1);
    assert_int_equal(record.flags, 0);
    assert_int_equal(record.state_seen, 0);
    (void)lock_fixture_client(core, "10.0.0.2", "wEB3");
    assert_int_equal(lock_fixture_store(core, NULL), 0);
    assert_int_equal(core->server.next_id, next_id + 1);
}

TEST_WITH(test_client__limits, NULL, tear_down)
{
    struct core_limits limits = lock_fixture_limits;
    limits.clients_max = 2;
    core = lock_fixture_new(&limits);
    static const uint8_t priv[RECORD_PRIV_LEN];
    struct peer peer = fixture_peer("10.0.0.2", 700);
    for (uint32_t prog = 1; prog <= 2; prog++) { /* a table of their own (D1) */
        struct request mon = {.kind = REQUEST_NSM_MON,
                              .mon_name = bytes_of_text("srv"),
                              .my_name = bytes_of_text("me"),
                              .my_prog = prog,
                              .priv = {priv, sizeof priv}};
        assert_int_equal(registrant_add(core, &peer, &mon, 1), ADMIT_NEW);
    }
    assert_int_equal(try_add("10.0.0.2", "a"), ADMIT_NEW);
    core->has_room = false;
    assert_int_equal(try_add("10.0.0.2", "b"), ADMIT_STORE);
    assert_int_equal(try_add("10.0.0.2", "A"), ADMIT_FOUND);
    core->has_room = true;
    core->limits.bytes_max = arena_used(core->arena);
    assert_int_equal(try_add("10.0.0.2", "b"), ADMIT_BYTES);
    core->limits.bytes_max++;
    assert_int_equal(try_add("10.0.0.2", "b"), ADMIT_NEW);
    core->limits.bytes_max *= 2;
    for (const char *name = "a"; name != NULL; name = *name == 'a' ? "b" : NULL)
        lock_fixture_lock(core, lock_fixture_client(core, "10.0.0.2", name), 1, "f",
                          (uint8_t)name[0]);
    assert_int_equal(try_add("10.0.0.2", "c"), ADMIT_LIMIT);
    assert_int_equal(try_add("10.0.0.2", "B"), ADMIT_FOUND);
    assert_int_equal(core->clients.table.count, 2);
}

/* A request of this client at this time of the wall clock. */
static void asks(uint32_t slot, const struct peer *from, const struct lock_request *request,
                 uint64_t wall_ns)
{
    core->wall_ns = wall_ns;
    client_called(core, slot);
    client_asked(core, slot, from, request);
}

/* ---- what is written of them ---- */

TEST(test_client__heard_writes_only_what_changed)
{
    struct peer peer = fixture_peer("10.0.0.2", 700);
    uint32_t slot = lock_fixture_client(core, "10.0.0.2", "web3");
    struct lock_request request = {.version = 4, .is_unmonitored = true};
    asks(slot, &peer, &request, 7);
    (void)lock_fixture_store(core, NULL);
    assert_int_equal(stored_client(slot).flags, 0);
    assert_int_equal(stored_client(slot).versions, 1 << 4);
    assert_int_equal(stored_client(slot).seen_ns, 7);

    lock_fixture_wait(core, 1);
    peer.port = 9;
    asks(slot, &peer, &request, 8);
    assert_int_equal(client_at(core, slot)->life.seen_ns, core->now_ns);
    assert_int_equal(lock_fixture_store(core, NULL), 0);

    request.is_unmonitored = false;
    asks(slot, &peer, &request, 9);
    assert_int_equal(lock_fixture_store(core, NULL), 1);
    assert_int_equal(stored_client(slot).flags, RECORD_CLIENT_MONITORED);
    assert_int_equal(stored_client(slot).seen_ns, 9);
    request.is_unmonitored = true; /* it holds a monitored one all the same */
    asks(slot, &peer, &request, 9);
    assert_int_equal(lock_fixture_store(core, NULL), 0);

    peer.transport = TRANSPORT_UDP;
    asks(slot, &peer, &request, 9);
    assert_int_equal(lock_fixture_store(core, NULL), 1);
    assert_int_equal(stored_client(slot).transport, TRANSPORT_UDP);
    peer.local = fixture_address("10.0.0.7");
    asks(slot, &peer, &request, 9);
    assert_int_equal(lock_fixture_store(core, NULL), 1);
    struct address local = stored_client(slot).local;
    assert_true(address_equal(&local, &peer.local));
    request.version = 1;
    asks(slot, &peer, &request, 9);
    assert_int_equal(lock_fixture_store(core, NULL), 1);
    assert_int_equal(stored_client(slot).versions, 1 << 4 | 1 << 1);
    request.version = 4;
    asks(slot, &peer, &request, 9);
    assert_int_equal(lock_fixture_store(core, NULL), 0);

    core = lock_fixture_restart(core, &lock_fixture_limits, 0);
    asks(slot, &peer, &request, 10);
    assert_int_equal(lock_fixture_store(core, NULL), 0); /* R-GRACE-9: a reclaim writes nothing */
    assert_true(stored_client(slot).server_epoch < core->server.epoch);
}

TEST(test_client__newest_state_is_kept)
{
    static const struct {
        uint32_t said, kept;
    } steps[] = {
        {0, 0},
        {5, 5},
        {5, 5},
        {4, 5}, /* older */
        {0, 5}, /* not known */
        {6, 6}, /* even ones too */
        {0x80000005, 0x80000005},
        {0x80000004, 0x80000005},
        {5, 0x80000005},          /* half a circle away is not newer */
        {4, 4},                   /* less than half a circle ahead is */
        {0x80000004, 4},          /* half again */
        {0x7fffffff, 0x7fffffff}, /* the last one that a signed number has */
        {0xfffffff0, 0xfffffff0},
        {3, 3}, /* round the circle, to which 0 does not belong */
    };
    struct peer peer = fixture_peer("10.0.0.2", 700);
    uint32_t slot = lock_fixture_client(core, "10.0.0.2", "web3");
    struct lock_request request = {.version = 4};
    asks(slot, &peer, &request, 1);
    (void)lock_fixture_store(core, NULL);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        uint32_t before = stored_client(slot).state_seen;
        request.state = steps[i].said;
        asks(slot, &peer, &request, 2);
        assert_int_equal(lock_fixture_store(core, NULL), steps[i].kept != before);
        assert_int_equal(stored_client(slot).state_seen, steps[i].kept);
    }
}

TEST(test_client__granting_procedure_is_remembered)
{
    uint32_t slot = lock_fixture_client(core, "10.0.0.2", "web3");
    (void)lock_fixture_store(core, NULL);
    client_granted_by(core, slot, 10);
    assert_int_equal(lock_fixture_store(core, NULL), 1);
    assert_int_equal(stored_client(slot).grant_proc, 10);
    client_granted_by(core, slot, 10);
    assert_int_equal(lock_fixture_store(core, NULL), 0);
    client_granted_by(core, slot, 5);
    assert_int_equal(lock_fixture_store(core, NULL), 1);
    assert_int_equal(stored_client(slot).grant_proc, 5);
}

TEST(test_client__every_field_survives_a_restart)
{
    uint32_t slot = lock_fixture_client(core, "fe80::1%3", "Web3");
    struct client *client = client_at(core, slot);
    client->stored.rebooted_ns = 11;
    client->stored.untold_ns = 12;
    client->stored.free_below = 13;
    client->stored.state_seen = 14;
    client->stored.grant_proc = 5;
    client->stored.versions = 1 << 3;
    client->stored.incarnation = 15;
    client->stored.flags = RECORD_CLIENT_CRASHED | RECORD_CLIENT_WAITS;
    (void)lock_fixture_store(core, NULL);
    uint8_t before[RECORD_VALUE_MAX], after[RECORD_VALUE_MAX];
    uint32_t before_len = client_encode(core, slot, before);
    core = lock_fixture_restart(core, &lock_fixture_limits, 0);
    assert_int_equal(find("fe80::1%3", "web3"), slot);
    assert_int_equal(client_encode(core, slot, after), before_len);
    assert_memory_equal(before, after, before_len);
}

TEST_WITH(test_client__load_refuses_what_cannot_be, NULL, NULL)
{
    core = core_new(&lock_fixture_limits, 1);
    assert_non_null(core);
    struct record_client record = {
        .id = 4,
        .address = fixture_address("10.0.0.2"),
        .local = fixture_address("10.0.0.1"),
        .transport = TRANSPORT_TCP,
        .incarnation = 1,
        .caller_name = bytes_of_text("Web3"),
    };
    assert_true(client_load(core, 3, &record));
    assert_false(client_load(core, 3, &record));
    record.caller_name = bytes_of_text("wEB3"); /* the same key in another slot */
    assert_false(client_load(core, 4, &record));
    record.caller_name = bytes_of_text("other");
    assert_false(client_load(core, 3, &record));
    assert_false(client_load(core, lock_fixture_limits.clients_max, &record));
    record.id = 0;
    assert_false(client_load(core, 4, &record));
    assert_int_equal(core->clients.table.count, 1);
    client_check(core);
    core_free(core);
}

/* ---- when they are forgotten ---- */

TEST(test_client__forgotten_300_s_after_its_last_call)
{
    uint32_t names = core->names.table.count, folds = core->folds.table.count;
    uint32_t slot = lock_fixture_client(core, "10.0.0.2", "web3");
    uint64_t id = client_at(core, slot)->stored.id;
    (void)lock_fixture_store(core, NULL);
    assert_int_equal(client_deadline_ns(core), core->now_ns + 300 * FIXTURE_SECOND);

    lock_fixture_wait(core, 299);
    client_expire(core);
    assert_int_equal(find("10.0.0.2", "web3"), slot);
    struct peer peer = fixture_peer("10.0.0.2", 700);
    asks(slot, &peer, &(struct lock_request){.version = 4, .is_unmonitored = true}, 1);
    lock_fixture_wait(core, 299);
    client_expire(core);
    assert_int_equal(find("10.0.0.2", "web3"), slot);
    assert_int_equal(client_deadline_ns(core), core->now_ns + FIXTURE_SECOND);
    (void)lock_fixture_store(core, NULL);
    lock_fixture_wait(core, 1);
    client_expire(core);
    assert_int_equal(find("10.0.0.2", "web3"), SLOT_NONE);
    assert_int_equal(client_deadline_ns(core), UINT64_MAX);
    assert_int_equal(core->clients.index.addresses.table.count, 0);
    assert_int_equal(core->names.table.count, names);
    assert_int_equal(core->folds.table.count, folds);
    assert_int_equal(lock_fixture_store(core, NULL), 1);
    assert_int_equal(lock_fixture_stored(RECORD_CLIENT, slot).len, 0);

    assert_int_equal(lock_fixture_client(core, "10.0.0.2", "web3"), slot);
    assert_int_not_equal(client_at(core, slot)->stored.id, id); /* never used again */
}

TEST(test_client__kept_while_it_has_something)
{
    uint32_t locks = lock_fixture_client(core, "10.0.0.2", "locks");
    uint32_t shares = lock_fixture_client(core, "10.0.0.2", "shares");
    lock_fixture_lock(core, locks, 1, "file", 0);
    assert_int_equal(lock_fixture_share(core, shares, "file", "oh", 0, 1), LOCK_GRANTED);
    assert_int_equal(client_deadline_ns(core), UINT64_MAX);
    lock_fixture_wait(core, 100000);
    client_expire(core);
    core_check(core);
    assert_int_equal(core->clients.table.count, 2);

    /* 300 s from when it had nothing any more, however long ago it called. */
    struct claim claim = {.owner = owner_find(core, locks, 1),
                          .file = file_find(core, bytes_of_text("file"))};
    assert_true(lock_release(core, &claim));
    struct lock_request request = lock_fixture_request("file", "oh");
    share_release(core, shares, &request);
    core_check(core);
    lock_fixture_wait(core, 299);
    client_expire(core);
    assert_int_equal(core->clients.table.count, 2);
    lock_fixture_wait(core, 1);
    client_expire(core);
    assert_int_equal(core->clients.table.count, 0);
}

TEST(test_client__kept_while_something_is_owed)
{
    struct peer peer = fixture_peer("10.0.0.2", 700);
    uint32_t monitored = lock_fixture_client(core, "10.0.0.2", "monitored");
    uint32_t crashed = lock_fixture_client(core, "10.0.0.2", "crashed");
    asks(monitored, &peer, &(struct lock_request){.version = 4}, 1);
    client_at(core, crashed)->stored.flags |= RECORD_CLIENT_CRASHED;
    core->server.state = core->server.restart_state = core_next_state(core->server.state);
    uint32_t unmonitored = lock_fixture_client(core, "10.0.0.2", "unmonitored");
    client_at(core, unmonitored)->stored.told_state = 1; /* nobody will tell it (R-NM-1) */
    for (uint32_t i = 0; i < 3; i++) {
        lock_fixture_wait(core, 1000);
        client_expire(core);
        core_check(core);
        assert_int_equal(core->clients.table.count, 2);
        assert_int_equal(find("10.0.0.2", "unmonitored"), SLOT_NONE);
    }
    client_at(core, monitored)->stored.told_state = core->server.state;
    client_at(core, crashed)->stored.flags = 0;
    lock_fixture_wait(core, 300);
    client_expire(core);
    assert_int_equal(core->clients.table.count, 0);
}

TEST(test_client__kept_a_day_after_its_reboot)
{
    uint32_t slot = lock_fixture_client(core, "10.0.0.2", "web3");
    client_at(core, slot)->stored.rebooted_ns = core->wall_ns;
    for (uint32_t i = 0; i < 24 * 12 - 1; i++) {
        lock_fixture_wait(core, 300);
        client_expire(core);
        assert_int_equal(find("10.0.0.2", "web3"), slot);
    }
    core->wall_ns = client_at(core, slot)->stored.rebooted_ns - 1; /* the clock was set back */
    core->now_ns += 300 * FIXTURE_SECOND;
    client_expire(core);
    assert_int_equal(find("10.0.0.2", "web3"), slot);
    core->wall_ns += 1 + 24 * 3600 * FIXTURE_SECOND;
    core->now_ns += 300 * FIXTURE_SECOND;
    client_expire(core);
    assert_int_equal(find("10.0.0.2", "web3"), SLOT_NONE);
}

TEST(test_client__a_restart_gives_300_s_whatever_the_clock_says)
{
    (void)lock_fixture_client(core, "10.0.0.2", "web3");
    (void)lock_fixture_store(core, NULL);
    core = lock_fixture_restart(core, &lock_fixture_limits, 5000000 * FIXTURE_SECOND);
    client_expire(core);
    core_check(core);
    assert_int_equal(core->clients.table.count, 1);
    lock_fixture_wait(core, 299);
    client_expire(core);
    assert_int_equal(core->clients.table.count, 1);
    lock_fixture_wait(core, 1);
    client_expire(core);
    assert_int_equal(core->clients.table.count, 0);
}

/* ---- how they are freed ---- */

TEST(test_client__free_all_needs_address_and_name)
{
    static const char *const names[] = {"web3", "WEB3", "web4"};
    static const char *const addresses[] = {"10.0.0.2", "10.0.0.3", "10.0.0.2"};
    (void)lock_fixture_client(core, "10.0.0.2", ""); /* not even that one */
    uint32_t slots[3];
    for (uint32_t i = 0; i < 3; i++) {
        slots[i] = lock_fixture_client(core, addresses[i], names[i]);
        lock_fixture_lock(core, slots[i], 1, "file", i);
        assert_int_equal(lock_fixture_share(core, slots[i], "file", "oh", 0, 1), LOCK_GRANTED);
    }
    (void)lock_fixture_store(core, NULL);
    lock_fixture_forget_events(core);
    static const struct {
        const char *address, *name;
    } wrong[] = {
        {"10.0.0.2", ""}, {"10.0.0.2", "web5"}, {"10.0.0.3", "web4"}, {"10.0.0.4", "web3"}};
    struct event event;
    for (uint32_t i = 0; i < 4; i++) {
        struct address from = fixture_address(wrong[i].address);
        assert_false(client_free_all(core, &from, bytes_of_text(wrong[i].name), 5));
        assert_true(lock_fixture_event(core, EVENT_FREE_ALL_IGNORED, &event));
        assert_false(client_drain(core));
        assert_int_equal(lock_fixture_store(core, NULL), 0);
    }
    struct address from = fixture_address("10.0.0.2");
    assert_true(client_free_all(core, &from, bytes_of_text("wEb3"), 0));
    assert_true(lock_fixture_event(core, EVENT_CLIENT_RENEWED, &event));
    assert_int_equal(event.value, client_at(core, slots[0])->stored.id);
    assert_int_equal(client_deadline_ns(core), core->now_ns);
    assert_false(client_drain(core));
    assert_true(lock_fixture_event(core, EVENT_CLIENT_FREED, &event));
    assert_int_equal(event.value, 2);
    assert_int_equal(client_at(core, slots[0])->life.lock_count, 0);
    assert_int_equal(client_at(core, slots[0])->life.share_count, 0);
    for (uint32_t i = 1; i < 3; i++) {
        assert_int_equal(client_at(core, slots[i])->life.lock_count, 1);
        assert_int_equal(client_at(core, slots[i])->life.share_count, 1);
    }
    assert_int_equal(lock_fixture_store(core, NULL), 3); /* it, its lock, its share */
    assert_int_equal(stored_client(slots[0]).incarnation, 2);
}

enum { LOCKS = 2500, SHARES = 2000, BOTH = LOCKS + SHARES };

static void take_much(uint32_t client)
{
    char oh[16];
    for (uint32_t i = 0; i < LOCKS; i++)
        lock_fixture_lock(core, client, 1, "locked", 2 * i);
    for (uint32_t i = 0; i < SHARES; i++) {
        (void)snprintf(oh, sizeof oh, "%u", i);
        assert_int_equal(lock_fixture_share(core, client, "shared", oh, 0, 3), LOCK_GRANTED);
    }
    core_check(core);
}

static uint32_t count_of(uint32_t slot)
{
    const struct client *client = client_at(core, slot);
    return client->life.lock_count + client->life.share_count;
}

TEST(test_client__is_freed_in_pieces)
{
    uint32_t slot = lock_fixture_client(core, "10.0.0.2", "web3");
    uint32_t other = lock_fixture_client(core, "10.0.0.2", "other");
    uint32_t small = lock_fixture_client(core, "10.0.0.2", "small");
    take_much(slot);
    lock_fixture_lock(core, other, 1, "locked", 1);
    lock_fixture_lock(core, small, 1, "locked", 3);
    client_start_over(core, slot);
    client_start_over(core, small); /* waits for its turn */
    lock_fixture_lock(core, slot, 2, "new", 0);
    assert_int_equal(lock_fixture_share(core, slot, "new", "oh", 0, 1), LOCK_GRANTED);

    assert_true(client_drain(core));
    core_check(core);
    assert_int_equal(count_of(slot), 2 + BOTH - CLIENT_DRAIN_MAX);
    lock_fixture_lock(core, slot, 3, "new", 7); /* in the middle of it */
    assert_true(client_drain(core));
    core_check(core);
    assert_int_equal(count_of(slot), 3 + BOTH - 2 * CLIENT_DRAIN_MAX);
    assert_int_equal(client_at(core, small)->life.lock_count, 1);
    lock_fixture_forget_events(core);
    assert_false(client_drain(core));
    core_check(core);
    assert_int_equal(count_of(slot), 3);
    assert_int_equal(client_at(core, small)->life.lock_count, 0);
    assert_int_equal(client_at(core, other)->life.lock_count, 1);
    struct event event;
    assert_true(lock_fixture_event(core, EVENT_CLIENT_FREED, &event));
    assert_int_equal(event.value, BOTH);
    assert_true(lock_fixture_event(core, EVENT_CLIENT_FREED, &event));
    assert_int_equal(event.value, 1);
    assert_false(client_drain(core));
}

TEST(test_client__the_pieces_of_all_are_bounded_together)
{
    uint32_t slots[3];
    static const char *const names[] = {"a", "b", "c"};
    for (uint32_t i = 0; i < 3; i++) {
        slots[i] = lock_fixture_client(core, "10.0.0.2", names[i]);
        for (uint32_t k = 0; k < 1500; k++)
            lock_fixture_lock(core, slots[i], 1, names[i], 2 * k);
        client_start_over(core, slots[i]);
    }
    for (uint32_t left = 4500; left > 0;) {
        uint32_t freed = left < CLIENT_DRAIN_MAX ? left : CLIENT_DRAIN_MAX;
        assert_int_equal(client_drain(core), freed < left);
        left -= freed;
        assert_int_equal(core->locks.table.count, left);
        core_check(core);
    }
}

TEST(test_client__starts_anew_while_it_is_freed)
{
    uint32_t slot = lock_fixture_client(core, "10.0.0.2", "web3");
    take_much(slot);
    client_start_over(core, slot);
    lock_fixture_lock(core, slot, 2, "second", 0);
    assert_int_equal(lock_fixture_share(core, slot, "second", "oh", 0, 1), LOCK_GRANTED);
    assert_true(client_drain(core));
    client_start_over(core, slot);
    lock_fixture_lock(core, slot, 3, "third", 0);
    lock_fixture_forget_events(core);
    while (client_drain(core))
        core_check(core);
    core_check(core);
    struct event event;
    assert_true(lock_fixture_event(core, EVENT_CLIENT_FREED, &event));
    assert_int_equal(event.value, BOTH + 2);
    assert_int_equal(count_of(slot), 1);
    assert_int_not_equal(owner_find(core, slot, 3), SLOT_NONE);
    assert_int_equal(client_at(core, slot)->stored.incarnation, 3);
}

TEST(test_client__a_crash_in_between_loses_nothing)
{
    uint32_t slot = lock_fixture_client(core, "10.0.0.2", "web3");
    uint32_t other = lock_fixture_client(core, "10.0.0.2", "other");
    take_much(slot);
    lock_fixture_lock(core, other, 1, "locked", 1);
    (void)lock_fixture_store(core, NULL);
    client_start_over(core, slot);
    lock_fixture_lock(core, slot, 2, "new", 0);
    assert_int_equal(lock_fixture_share(core, slot, "new", "oh", 0, 1), LOCK_GRANTED);
    assert_true(client_drain(core));
    (void)lock_fixture_store(core, NULL);
    assert_true(client_drain(core)); /* not stored */

    core = lock_fixture_restart(core, &lock_fixture_limits, 0);
    assert_int_equal(count_of(slot), 2 + BOTH - CLIENT_DRAIN_MAX);
    assert_int_equal(client_deadline_ns(core), core->now_ns);
    uint32_t turns = 1;
    for (; client_drain(core); turns++)
        core_check(core);
    assert_int_equal(turns, 2); /* 2,502 are left to be looked at */
    core_check(core);
    assert_int_equal(count_of(slot), 2);
    assert_int_not_equal(owner_find(core, slot, 2), SLOT_NONE);
    assert_int_equal(client_at(core, other)->life.lock_count, 1);
    (void)lock_fixture_store(core, NULL);
    core = lock_fixture_restart(core, &lock_fixture_limits, 0);
    assert_int_equal(count_of(slot), 2);
    assert_false(client_drain(core));
}

TEST(test_client__is_not_forgotten_while_it_is_freed)
{
    uint32_t slot = lock_fixture_client(core, "10.0.0.2", "web3");
    client_start_over(core, slot);
    lock_fixture_wait(core, 1000);
    client_expire(core);
    assert_int_equal(find("10.0.0.2", "web3"), slot);
    assert_false(client_drain(core));
    core_check(core);
    lock_fixture_wait(core, 300);
    client_expire(core);
    assert_int_equal(find("10.0.0.2", "web3"), SLOT_NONE);
}

/* A blocked request of this client for the byte that lock_fixture_lock took. */
static uint32_t wait_for(const char *address, uint32_t client, const char *fh)
{
    struct peer peer = fixture_peer(address, 700);
    struct request request = {.kind = REQUEST_NLM_LOCK, .lock = lock_fixture_request(fh, "oh")};
    request.lock.len = 1;
    request.lock.block = true;
    request.lock.exclusive = true;
    struct claim claim = {.owner = owner_add(core, client, 1),
                          .file = file_add(core, request.lock.fh),
                          .exclusive = true};
    assert_int_equal(waiter_add(core, &claim, &peer, &request), LOCK_BLOCKED);
    file_release(core, claim.file);
    core_check(core);
    return waiter_find(core, &claim, 1);
}

TEST(test_client__waiters_go_at_once_and_others_are_served)
{
    uint32_t holder = lock_fixture_client(core, "10.0.0.2", "holder");
    uint32_t gone = lock_fixture_client(core, "10.0.0.3", "gone");
    uint32_t patient = lock_fixture_client(core, "10.0.0.4", "patient");
    lock_fixture_lock(core, holder, 1, "file", 0);
    (void)wait_for("10.0.0.3", gone, "file");
    uint32_t waiter = wait_for("10.0.0.4", patient, "file");
    (void)lock_fixture_store(core, NULL);
    assert_int_equal(client_deadline_ns(core), UINT64_MAX); /* who waits is not forgotten */

    client_start_over(core, gone);
    core_check(core);
    assert_int_equal(client_at(core, gone)->life.waiter_count, 0);
    assert_int_equal(client_at(core, patient)->life.waiter_count, 1);
    client_start_over(core, holder);
    assert_false(client_drain(core));
    while (waiter_work(core))
        continue;
    core_check(core);
    assert_int_equal(client_at(core, holder)->life.lock_count, 0);
    assert_int_equal(client_at(core, patient)->life.lock_count, 1);
    assert_true(waiter_is_offered(waiter_at(core, waiter)));
}

TEST_MAIN(set_up, tear_down, NULL, NULL)

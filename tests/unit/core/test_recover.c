/*
 * test_recover.c -- from stored records to a running core: state and epoch, every record back in
 * its slot, and what a damaged store becomes (R-PER-4, R-PER-5, D6, D16).
 */
#include "fixture.h"
#include "unit/test.h"

#define WALL_SECONDS UINT64_C(1700000000)

static const struct core_boot boot = {.wall_ns = WALL_SECONDS * 1000000000};

static struct core *new_core(uint32_t registrants, uint32_t notices)
{
    struct core_limits limits = fixture_limits;
    limits.slots_used[RECORD_SERVER] = 1;
    limits.slots_used[RECORD_REGISTRANT] = registrants;
    limits.slots_used[RECORD_NOTICE] = notices;
    struct core *core = core_new(&limits, 7);
    assert_non_null(core);
    return core;
}

static enum record_result load_server(struct core *core, uint32_t state, uint64_t epoch,
                                      uint64_t txn)
{
    uint8_t value[RECORD_VALUE_MAX];
    struct record_server server = {
        .txn = txn, .epoch = epoch, .next_id = 18, .state = state, .restart_state = state};
    uint32_t len = record_put_server(value, &server);
    return core_load(core, RECORD_SERVER, 0, (struct bytes){value, len});
}

static struct record_registrant registrant(uint64_t id, const char *mon_name)
{
    return (struct record_registrant){.id = id,
                                      .server_epoch = 3,
                                      .address = fixture_address("10.0.0.2"),
                                      .local = fixture_address("10.0.0.1"),
                                      .port = 900,
                                      .transport = TRANSPORT_UDP,
                                      .my_prog = 100021,
                                      .my_vers = 4,
                                      .my_proc = 16,
                                      .told_state = 5,
                                      .mon_name = bytes_of_text(mon_name),
                                      .my_name = bytes_of_text("lockd")};
}

static enum record_result load_registrant(struct core *core, uint32_t slot, uint64_t id,
                                          const char *mon_name, int damage)
{
    uint8_t value[RECORD_VALUE_MAX];
    struct record_registrant record = registrant(id, mon_name);
    uint32_t len = record_put_registrant(value, slot, &record);
    value[len / 2] ^= (uint8_t)damage;
    return core_load(core, RECORD_REGISTRANT, slot, (struct bytes){value, len});
}

TEST(test_recover__empty_store)
{
    struct core *core = fixture_new(&fixture_limits);
    struct core_status status = fixture_status(core);
    assert_int_equal(status.state, 3);
    assert_true(status.epoch == 1);
    assert_false(status.incomplete);
    core_free(core);
}

TEST(test_recover__state_and_epoch_grow)
{
    static const struct {
        uint32_t stored, next;
    } states[] = {{1, 3}, {3, 5}, {7, 9}, {1700000001, 1700000003}, {0x7fffffff, 1}};
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        struct core *core = new_core(0, 0);
        assert_int_equal(load_server(core, states[i].stored, 8, 40), RECORD_GOOD);
        core_start(core, &boot);
        struct core_status status = fixture_status(core);
        assert_int_equal(status.state, states[i].next);
        assert_true(status.epoch == 9);
        assert_true(status.durable_txn == 40);
        assert_int_equal(fixture_stat(core, "x").after_txn, 41);
        core_free(core);
    }
}

TEST(test_recover__records_come_back)
{
    struct core *core = new_core(5, 1);
    load_server(core, 5, 3, 9);
    assert_int_equal(load_registrant(core, 1, 4, "one", 0), RECORD_GOOD);
    assert_int_equal(load_registrant(core, 4, 2, "two", 0), RECORD_GOOD);
    uint8_t value[RECORD_VALUE_MAX];
    struct record_notice notice = {
        .address = fixture_address("10.0.0.2"), .state = 9, .mon_name = bytes_of_text("ONE")};
    uint32_t len = record_put_notice(value, 0, &notice);
    assert_int_equal(core_load(core, RECORD_NOTICE, 0, (struct bytes){value, len}), RECORD_GOOD);
    core_start(core, &boot);
    core_check(core);
    struct core_status status = fixture_status(core);
    assert_int_equal(status.registrants, 2);
    assert_int_equal(status.notices, 1);
    assert_false(status.incomplete);
    fixture_store(core);
    /* They are what they were: the same keys, removable by the same caller. */
    fixture_mon(core, "10.0.0.2", "two", "lockd", 0);
    assert_int_equal(fixture_status(core).registrants, 2);
    fixture_unmon_all(core, "10.0.0.2", "lockd");
    assert_int_equal(fixture_status(core).names, 0);
    assert_int_equal(fixture_store(core), 4); /* server, two registrants, their notice */
    core_free(core);
}

TEST(test_recover__more_than_the_limit_is_kept)
{
    struct core_limits limits = fixture_limits;
    limits.clients_max = 1;
    limits.bytes_max = 1;
    limits.slots_used[RECORD_REGISTRANT] = 3;
    struct core *core = core_new(&limits, 7);
    load_server(core, 5, 3, 9);
    load_registrant(core, 0, 1, "one", 0);
    load_registrant(core, 1, 2, "a name of another size than the others have", 0);
    load_registrant(core, 2, 3, "three", 0);
    core_start(core, &boot);
    assert_int_equal(fixture_status(core).registrants, 3);
    assert_true(fixture_mon(core, "10.0.0.2", "new", "lockd", 1).response.refused);
    assert_false(fixture_mon(core, "10.0.0.2", "three", "lockd", 9).response.refused);
    core_free(core);
}

TEST(test_recover__corrupt_record)
{
    struct core *core = new_core(3, 0);
    load_server(core, 5, 3, 9);
    load_registrant(core, 0, 1, "one", 0);
    assert_int_equal(load_registrant(core, 2, 2, "two", 0x10), RECORD_CORRUPT);
    struct event event;
    assert_true(event_take(core_events(core), &event));
    assert_int_equal(event.kind, EVENT_CORRUPT_RECORD);
    assert_int_equal(event.value, 2);
    core_start(core, &boot);
    struct core_status status = fixture_status(core);
    assert_int_equal(status.registrants, 1);
    assert_true(status.incomplete);
    assert_int_equal(status.state, WALL_SECONDS | 1);
    struct store_batch batch;
    struct record_change change;
    bool removed = false;
    assert_true(core_take_batch(core, &batch));
    for (uint64_t at = 0; store_batch_next(&batch, &at, &change);)
        removed |= change.kind == RECORD_REGISTRANT && change.slot == 2 && change.deleted;
    assert_true(removed);
    core_free(core);
}

TEST(test_recover__same_key_twice_is_corrupt)
{
    struct core *core = new_core(3, 0);
    load_server(core, 5, 3, 9);
    assert_int_equal(load_registrant(core, 0, 1, "one", 0), RECORD_GOOD);
    assert_int_equal(load_registrant(core, 1, 2, "one", 0), RECORD_CORRUPT);
    core_start(core, &boot);
    core_check(core);
    assert_int_equal(fixture_status(core).registrants, 1);
    assert_true(fixture_status(core).incomplete);
    core_free(core);
}

TEST(test_recover__lost_server_record)
{
    struct core *core = new_core(1, 0);
    load_registrant(core, 0, 12, "one", 0);
    core_start(core, &boot);
    core_check(core);
    struct core_status status = fixture_status(core);
    assert_true(status.incomplete);
    assert_int_equal(status.state, WALL_SECONDS | 1);
    assert_true(status.epoch > 3); /* beyond any that a record mentions */
    core_free(core);
}

/* A clock that begins in 1970, and clients that were told more than it says (A18). */
TEST(test_recover__lost_server_record_and_no_clock)
{
    static const struct core_boot early = {.wall_ns = UINT64_C(60) * 1000000000};
    struct core *core = new_core(1, 0);
    assert_int_equal(load_registrant(core, 0, 4, "web1", 0), RECORD_GOOD); /* told 5 */
    uint8_t value[RECORD_VALUE_MAX];
    struct record_registrant record = registrant(900, "web2");
    record.told_state = 4711;
    record.server_epoch = 300;
    core_free(core);
    core = new_core(2, 0);
    uint32_t len = record_put_registrant(value, 1, &record);
    assert_int_equal(load_registrant(core, 0, 4, "web1", 0), RECORD_GOOD);
    assert_int_equal(core_load(core, RECORD_REGISTRANT, 1, (struct bytes){value, len}),
                     RECORD_GOOD);
    core_start(core, &early);
    core_check(core);
    struct core_status status = fixture_status(core);
    assert_int_equal(status.state, 4713 + (1 << 20)); /* far beyond what records say */
    assert_true(status.epoch > 300);
    assert_true(status.incomplete);
    fixture_store(core);
    fixture_ready(core);
    assert_int_equal(fixture_status(core).notify.owed, 2);
    core_free(core);
}

/* Records that decode, with numbers that nobody can have counted (A16). */
TEST(test_recover__absurd_counters)
{
    static const struct record_server servers[] = {
        {.txn = UINT64_MAX, .epoch = 3, .next_id = 18, .state = 5, .restart_state = 5},
        {.txn = 9, .epoch = UINT64_MAX, .next_id = 18, .state = 5, .restart_state = 5},
        {.txn = 9, .epoch = 3, .next_id = UINT64_MAX, .state = 5, .restart_state = 5},
        {.txn = 9, .epoch = 3, .next_id = 18, .state = UINT32_MAX, .restart_state = 5},
        {.txn = 9, .epoch = 3, .next_id = 18, .state = 5, .restart_state = UINT32_MAX},
    };
    for (size_t i = 0; i < sizeof servers / sizeof servers[0]; i++) {
        struct core *core = new_core(1, 0);
        uint8_t value[RECORD_VALUE_MAX];
        uint32_t len = record_put_server(value, &servers[i]);
        assert_int_equal(core_load(core, RECORD_SERVER, 0, (struct bytes){value, len}),
                         RECORD_CORRUPT);
        struct record_registrant record = registrant(UINT64_MAX, "web1");
        len = record_put_registrant(value, 0, &record);
        assert_int_equal(core_load(core, RECORD_REGISTRANT, 0, (struct bytes){value, len}),
                         RECORD_CORRUPT);
        core_start(core, &boot);
        core_check(core);
        assert_true(fixture_store(core) > 0);
        assert_true(fixture_status(core).incomplete);
        assert_false(fixture_mon(core, "10.0.0.2", "web1", "lockd", 1).response.refused);
        core_free(core);
    }
}

/* A server record that is behind the others: ids are not used twice. */
TEST(test_recover__counters_pass_what_is_loaded)
{
    struct core *core = new_core(1, 0);
    load_server(core, 5, 3, 9); /* next_id 18 */
    assert_int_equal(load_registrant(core, 0, 500, "web1", 0), RECORD_GOOD);
    core_start(core, &boot);
    core_check(core);
    assert_false(fixture_mon(core, "10.0.0.3", "web2", "lockd", 1).response.refused);
    core_check(core);
    core_free(core);
}

/* A core into which a client has been loaded, with room for three locks and a waiter. */
static struct core *new_core_of_locker(bool resumes)
{
    struct core_limits limits = fixture_limits;
    uint8_t value[RECORD_VALUE_MAX];
    struct record_client client = {.id = 4,
                                   .server_epoch = 3,
                                   .address = fixture_address("10.0.0.2"),
                                   .local = fixture_address("10.0.0.1"),
                                   .transport = TRANSPORT_UDP,
                                   .versions = 1 << 4,
                                   .incarnation = 1,
                                   .flags = RECORD_CLIENT_MONITORED,
                                   .caller_name = bytes_of_text("web1")};
    limits.slots_used[RECORD_CLIENT] = 1;
    limits.slots_used[RECORD_LOCK] = 3;
    limits.slots_used[RECORD_WAITER] = 1;
    limits.resume = resumes;
    struct core *core = core_new(&limits, 7);
    load_server(core, 5, 3, 9);
    uint32_t len = record_put_client(value, 0, &client);
    assert_int_equal(core_load(core, RECORD_CLIENT, 0, (struct bytes){value, len}), RECORD_GOOD);
    return core;
}

static enum record_result load_flagged_lock(struct core *core, uint32_t slot, uint32_t svid,
                                            uint32_t flags)
{
    uint8_t value[RECORD_VALUE_MAX];
    struct record_lock lock = {.of = {.client_id = 4, .client = 0, .incarnation = 1},
                               .start = 10,
                               .end = 19,
                               .len = 10,
                               .svid = svid,
                               .flags = RECORD_LOCK_EXCLUSIVE | flags,
                               .fh = bytes_of_text("file"),
                               .oh = bytes_of_text("oh")};
    uint32_t len = record_put_lock(value, slot, &lock);
    return core_load(core, RECORD_LOCK, slot, (struct bytes){value, len});
}

static enum record_result load_lock(struct core *core, uint32_t slot, uint32_t svid)
{
    return load_flagged_lock(core, slot, svid, 0);
}

/* Of the offer in slot 0. */
static enum record_result load_waiter(struct core *core, uint64_t len)
{
    uint8_t value[RECORD_VALUE_MAX];
    struct record_waiter waiter = {.of = {.client_id = 4, .client = 0, .incarnation = 1},
                                   .order = 1,
                                   .cookie = 77,
                                   .offset = 10,
                                   .len = len,
                                   .local = fixture_address("10.0.0.1"),
                                   .offer = 0,
                                   .svid = 1,
                                   .version = 4,
                                   .transport = TRANSPORT_UDP,
                                   .flags = RECORD_WAITER_EXCLUSIVE,
                                   .caller_name = bytes_of_text("web1"),
                                   .fh = bytes_of_text("file"),
                                   .oh = bytes_of_text("oh")};
    uint32_t size = record_put_waiter(value, 0, &waiter);
    return core_load(core, RECORD_WAITER, 0, (struct bytes){value, size});
}

/* What it would be granted is not what is kept for it. */
TEST(test_recover__a_waiter_that_contradicts_its_offer)
{
    static const struct {
        uint64_t len;
        uint32_t flags;
        enum record_result result;
    } cases[] = {
        {10, RECORD_LOCK_OFFER, RECORD_GOOD},
        {11, RECORD_LOCK_OFFER, RECORD_CORRUPT},
        {9, RECORD_LOCK_OFFER, RECORD_CORRUPT},
        {0, RECORD_LOCK_OFFER, RECORD_CORRUPT},
        {10, 0, RECORD_CORRUPT},
        {10, RECORD_LOCK_OFFER | RECORD_LOCK_LINGERS, RECORD_CORRUPT},
    };
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct core *core = new_core_of_locker(true);
        assert_int_equal(load_flagged_lock(core, 0, 1, cases[i].flags), RECORD_GOOD);
        assert_int_equal(load_waiter(core, cases[i].len), cases[i].result);
        core_start(core, &boot);
        core_check(core);
        assert_int_equal(fixture_status(core).incomplete, cases[i].result == RECORD_CORRUPT);
        core_free(core);
    }
}

/* Each is sound by itself: that there are both is damage, and the second one goes. */
TEST(test_recover__locks_that_contradict_each_other)
{
    struct core *core = new_core_of_locker(false);
    struct event event;
    assert_int_equal(load_lock(core, 0, 1), RECORD_GOOD);
    assert_int_equal(load_lock(core, 2, 2), RECORD_GOOD);
    assert_int_equal(core_loaded(core), 1);
    assert_int_equal(core_loaded(core), 1);
    assert_int_equal(load_lock(core, 1, 3), RECORD_CORRUPT); /* and one that comes late, at once */
    for (uint32_t slot = 2; slot >= 1; slot--) {
        assert_true(event_take(core_events(core), &event));
        assert_int_equal(event.kind, EVENT_CORRUPT_RECORD);
        assert_int_equal(event.value, slot);
    }
    core_start(core, &boot);
    core_check(core);
    assert_true(fixture_status(core).incomplete);
    assert_int_equal(fixture_status(core).locks, 1);
    assert_true(fixture_store(core) >= 3); /* the server record, and both are removed */
    core_free(core);
}

TEST(test_recover__power_was_lost)
{
    struct core_boot after_loss = boot;
    after_loss.may_have_lost = true;
    struct core *core = new_core(0, 0);
    load_server(core, 5, 3, 9);
    core_start(core, &after_loss);
    assert_true(fixture_status(core).incomplete);
    assert_int_equal(fixture_status(core).state, WALL_SECONDS | 1);
    core_free(core);

    core = new_core(0, 0); /* a state beyond the clock still grows */
    load_server(core, 1800000001, 3, 9);
    core_start(core, &after_loss);
    assert_int_equal(fixture_status(core).state, 1800000003);
    core_free(core);
}

TEST(test_recover__notice_without_registrant_goes)
{
    struct core *core = new_core(0, 1);
    load_server(core, 5, 3, 9);
    uint8_t value[RECORD_VALUE_MAX];
    struct record_notice notice = {
        .address = fixture_address("10.0.0.2"), .state = 9, .mon_name = bytes_of_text("nobody")};
    uint32_t len = record_put_notice(value, 0, &notice);
    core_load(core, RECORD_NOTICE, 0, (struct bytes){value, len});
    core_start(core, &boot);
    core_check(core);
    assert_int_equal(fixture_status(core).notices, 0);
    assert_int_equal(fixture_store(core), 2);
    core_free(core);
}

TEST_MAIN(NULL, NULL, NULL, NULL)

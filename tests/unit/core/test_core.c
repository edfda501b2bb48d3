/*
 * test_core.c -- the step, the gate and the batches, through core.h alone: which batch each answer
 * waits for, what a batch contains, what the procedures answer and refuse.
 */
#include "fixture.h"
#include "unit/test.h"

static struct core *core;

TEST_FIXTURE(set_up)
{
    core = fixture_new(&fixture_limits);
}

TEST_FIXTURE(tear_down)
{
    core_free(core);
}

TEST(test_core__first_answer_waits_for_the_first_batch)
{
    assert_int_equal(fixture_stat(core, "any").after_txn, 1);
    struct store_batch batch;
    assert_true(core_take_batch(core, &batch));
    assert_int_equal(batch.txn, 1);
    assert_int_equal(batch.epoch, 1);
    assert_true(batch.must_sync);
    assert_int_equal(batch.count, 1); /* the server record */
    assert_int_equal(fixture_stat(core, "any").after_txn, 1);
    fixture_stored(core, 1, true);
    assert_int_equal(fixture_stat(core, "any").after_txn, 1);
    assert_int_equal(fixture_status(core).durable_txn, 1);
    assert_false(core_take_batch(core, &batch));
}

TEST(test_core__observers_wait_for_what_they_see)
{
    fixture_store(core);
    assert_int_equal(fixture_mon(core, "10.0.0.2", "srv", "lockd", 1).after_txn, 2);
    assert_int_equal(fixture_stat(core, "any").after_txn, 2);
    struct store_batch batch;
    assert_true(core_take_batch(core, &batch));
    /* Wrote nothing, but sees a registration that is not durable yet. */
    assert_int_equal(fixture_mon(core, "10.0.0.2", "srv", "lockd", 1).after_txn, 2);
    /* While batch 2 syncs, batch 3 fills. */
    assert_int_equal(fixture_mon(core, "10.0.0.3", "srv", "lockd", 1).after_txn, 3);
    assert_int_equal(fixture_stat(core, "any").after_txn, 3);
    fixture_stored(core, 2, true);
    assert_int_equal(fixture_stat(core, "any").after_txn, 3);
    assert_int_equal(fixture_store(core), 2);
}

TEST(test_core__batch_says_what_changed)
{
    fixture_store(core);
    fixture_mon(core, "10.0.0.2", "one", "lockd", 1);
    fixture_mon(core, "10.0.0.2", "two", "lockd", 2);
    assert_int_equal(fixture_store(core), 3);
    fixture_mon(core, "10.0.0.2", "two", "lockd", 7);
    fixture_mon(core, "10.0.0.2", "two", "lockd", 8); /* changed twice, written once */
    fixture_unmon(core, "10.0.0.2", "one", "lockd");
    struct store_batch batch;
    assert_true(core_take_batch(core, &batch));
    assert_false(batch.must_sync); /* adds no client */
    assert_int_equal(batch.count, 3);
    struct record_change change;
    uint32_t seen = 0;
    for (uint64_t at = 0; store_batch_next(&batch, &at, &change); seen++) {
        if (change.kind == RECORD_SERVER)
            continue;
        assert_int_equal(change.kind, RECORD_REGISTRANT);
        assert_int_equal(change.deleted, change.slot == 0);
        struct record_registrant record;
        if (change.slot == 1) {
            assert_int_equal(record_get_registrant(change.value, 1, &record), RECORD_GOOD);
            assert_int_equal(record.priv[0], 8);
        }
    }
    assert_int_equal(seen, 3);
}

TEST_WITH(test_core__full_batch_is_announced, NULL, tear_down)
{
    struct core_limits limits = fixture_limits;
    limits.batch_puts_max = 2;
    core = fixture_new(&limits);
    assert_false(core_is_full(core));
    fixture_mon(core, "10.0.0.2", "one", "lockd", 1);
    assert_false(core_is_full(core));
    fixture_mon(core, "10.0.0.2", "two", "lockd", 1);
    assert_true(core_is_full(core));
    fixture_store(core);
    assert_false(core_is_full(core));
}

TEST(test_core__bad_names_and_programs_are_refused)
{
    static const char *const bad[] = {"", ".", ".x", "/", "a/b", "a\tb", "a\x7f", "\x01"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_true(fixture_mon(core, "10.0.0.2", bad[i], "lockd", 1).response.refused);
        assert_true(fixture_stat(core, bad[i]).response.refused);
        assert_false(fixture_notify_restarts(core, "10.0.0.2", bad[i], 3));
    }
    struct peer peer = fixture_peer("10.0.0.2", 900);
    static const uint8_t priv[RECORD_PRIV_LEN];
    struct request request = {.kind = REQUEST_NSM_MON,
                              .mon_name = {(const uint8_t *)"a\0b", 3},
                              .priv = {priv, sizeof priv},
                              .my_prog = 300000};
    assert_true(fixture_step(core, &peer, &request).response.refused); /* embedded NUL */
    request.mon_name = bytes_of_text("good");
    static const struct {
        uint32_t prog;
        bool refused;
    } programs[] = {{100000, true}, {100003, true},  {100005, true},
                    {100099, true}, {100021, false}, {100024, false},
                    {99999, false}, {100100, false}, {300000, false}};
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        request.my_prog = programs[i].prog;
        assert_int_equal(fixture_step(core, &peer, &request).response.refused, programs[i].refused);
    }
    assert_int_equal(fixture_status(core).registrants, 5);
}

TEST_WITH(test_core__refusals_are_reported, NULL, tear_down)
{
    struct core_limits limits = fixture_limits;
    limits.clients_max = 1;
    core = fixture_new(&limits);
    fixture_mon(core, "10.0.0.2", "a/b", "lockd", 1);
    fixture_mon(core, "10.0.0.2", "one", "lockd", 1);
    fixture_mon(core, "10.0.0.2", "two", "lockd", 1);
    fixture_simu_crash(core, "10.0.0.2", 700);
    static const enum event_kind expected[] = {EVENT_BAD_NAME, EVENT_LIMIT, EVENT_CRASH_REFUSED};
    struct event event;
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        assert_true(event_take(core_events(core), &event));
        assert_int_equal(event.kind, expected[i]);
    }
    assert_false(event_take(core_events(core), &event));
}

TEST(test_core__simulated_crash)
{
    fixture_mon(core, "10.0.0.2", "one", "lockd", 1);
    fixture_store(core);
    uint32_t first = fixture_status(core).state;
    static const struct {
        const char *from;
        uint16_t port;
        bool acts;
    } callers[] = {{"10.0.0.2", 700, false},  {"127.0.0.1", 1024, false}, {"::1", 40000, false},
                   {"127.0.0.1", 1023, true}, {"127.8.8.8", 1, true},     {"::1", 600, true}};
    for (size_t i = 0; i < sizeof callers / sizeof callers[0]; i++) {
        uint32_t before = fixture_status(core).state;
        fixture_simu_crash(core, callers[i].from, callers[i].port);
        assert_int_equal(fixture_status(core).state, before + (callers[i].acts ? 2 : 0));
        struct store_batch batch;
        assert_int_equal(core_take_batch(core, &batch), callers[i].acts);
        if (callers[i].acts) {
            assert_true(batch.must_sync);
            fixture_stored(core, batch.txn, true);
        }
    }
    assert_int_equal(fixture_stat(core, "x").response.state, first + 6);
    assert_int_equal(fixture_status(core).registrants, 1);
}

TEST_WITH(test_core__mon_from_loopback, NULL, tear_down)
{
    struct core_limits limits = fixture_limits;
    limits.mon_from_loopback = true;
    core = fixture_new(&limits);
    assert_true(fixture_mon(core, "10.0.0.2", "srv", "lockd", 1).response.refused);
    assert_false(fixture_mon(core, "127.0.0.1", "srv", "lockd", 1).response.refused);
    assert_false(fixture_mon(core, "::1", "srv", "lockd", 1).response.refused);
    fixture_unmon_all(core, "10.0.0.2", "lockd");
    assert_int_equal(fixture_status(core).registrants, 2);
}

TEST_WITH(test_core__digest_follows_content, NULL, NULL)
{
    struct core *one = fixture_new(&fixture_limits), *two = fixture_new(&fixture_limits);
    assert_true(core_digest(one) == core_digest(two));
    fixture_mon(one, "10.0.0.2", "srv", "lockd", 1);
    assert_true(core_digest(one) != core_digest(two));
    fixture_mon(two, "10.0.0.2", "srv", "lockd", 2);
    assert_true(core_digest(one) != core_digest(two));
    fixture_mon(two, "10.0.0.2", "srv", "lockd", 1);
    assert_true(core_digest(one) == core_digest(two));
    core_free(one);
    core_free(two);
}

TEST_MAIN(set_up, tear_down, NULL, NULL)

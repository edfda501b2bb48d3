/*
 * test_notice.c -- SM_NOTIFY through the core: whose word counts, what is kept, and for how long
 * (D7).
 */
#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_notice__needs_somebody_who_watches(void **state)
{
    (void)state;
    struct core *core = fixture_new(&fixture_limits);
    fixture_store(core);
    assert_false(fixture_notify_restarts(core, "10.0.0.7", "10.0.0.7", 5));
    assert_int_equal(fixture_status(core).notices, 0);
    assert_int_equal(fixture_store(core), 0);
    fixture_mon(core, "10.0.0.2", "10.0.0.7", "lockd", 1);
    assert_true(fixture_notify_restarts(core, "10.0.0.7", "10.0.0.7", 5));
    assert_int_equal(fixture_status(core).notices, 1);
    core_free(core);
}

static void test_notice__standing(void **state)
{
    (void)state;
    struct core *core = fixture_new(&fixture_limits);
    fixture_mon(core, "10.0.0.2", "client7", "lockd", 1);
    fixture_mon(core, "10.0.0.2", "10.0.0.7", "lockd", 1);
    /* A stranger, and a host that is named but is not the sender. */
    fixture_notify(core, "10.0.0.66", "client7", 5);
    fixture_notify(core, "10.0.0.66", "10.0.0.7", 5);
    assert_int_equal(fixture_status(core).notices, 0);
    /* An SM_MON of that name came from there. */
    fixture_notify(core, "10.0.0.2", "CLIENT7", 5);
    assert_int_equal(fixture_status(core).notices, 1);
    /* The name is the sender's address, also when it comes v4-mapped. */
    fixture_notify(core, "::ffff:10.0.0.7", "10.0.0.7", 5);
    assert_int_equal(fixture_status(core).notices, 2);
    core_free(core);
}

static void test_notice__one_per_name_in_any_spelling(void **state)
{
    (void)state;
    struct core *core = fixture_new(&fixture_limits);
    fixture_mon(core, "10.0.0.2", "Client7", "lockd", 1);
    fixture_mon(core, "10.0.0.2", "client7", "lockd", 1);
    fixture_notify(core, "10.0.0.2", "client7", 5);
    fixture_store(core);
    fixture_notify(core, "10.0.0.2", "CLIENT7", 5); /* a repeat */
    assert_int_equal(fixture_store(core), 0);
    assert_false(fixture_notify_restarts(core, "10.0.0.2", "client7", 5));
    assert_true(fixture_notify_restarts(core, "10.0.0.2", "CLIENT7", 7));
    assert_int_equal(fixture_status(core).notices, 1);

    struct store_batch batch;
    struct record_change change;
    struct record_notice record = {0};
    assert_true(core_take_batch(core, &batch));
    for (uint64_t at = 0; batch_next(&batch, &at, &change);)
        if (change.kind == RECORD_NOTICE)
            assert_int_equal(record_get_notice(change.value, change.slot, &record), RECORD_GOOD);
    assert_int_equal(record.state, 7);
    core_free(core);
}

static void test_notice__goes_with_the_last_who_watches(void **state)
{
    (void)state;
    struct core *core = fixture_new(&fixture_limits);
    fixture_mon(core, "10.0.0.2", "client7", "lockd", 1);
    fixture_mon(core, "10.0.0.3", "Client7", "lockd", 1);
    fixture_notify(core, "10.0.0.2", "client7", 5);
    fixture_unmon(core, "10.0.0.2", "client7", "lockd");
    assert_int_equal(fixture_status(core).notices, 1);
    fixture_unmon(core, "10.0.0.3", "Client7", "lockd");
    struct core_status status = fixture_status(core);
    assert_int_equal(status.notices, 0);
    assert_int_equal(status.names, 0);
    core_free(core);
}

/* Who registers after a reboot need not hear of it; who was there before must. */
static void test_notice__newcomer_is_not_told(void **state)
{
    (void)state;
    struct core *core = fixture_new(&fixture_limits);
    fixture_mon(core, "10.0.0.2", "client7", "lockd", 1);
    fixture_notify(core, "10.0.0.2", "client7", 5);
    fixture_mon(core, "10.0.0.3", "client7", "lockd", 1);
    struct store_batch batch;
    struct record_change change;
    assert_true(core_take_batch(core, &batch));
    uint32_t seen = 0;
    for (uint64_t at = 0; batch_next(&batch, &at, &change);) {
        struct record_registrant record;
        if (change.kind != RECORD_REGISTRANT)
            continue;
        assert_int_equal(record_get_registrant(change.value, change.slot, &record), RECORD_GOOD);
        assert_int_equal(record.relayed_state, change.slot == 0 ? 0 : 5);
        seen++;
    }
    assert_int_equal(seen, 2);
    core_free(core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_notice__needs_somebody_who_watches),
        cmocka_unit_test(test_notice__standing),
        cmocka_unit_test(test_notice__one_per_name_in_any_spelling),
        cmocka_unit_test(test_notice__goes_with_the_last_who_watches),
        cmocka_unit_test(test_notice__newcomer_is_not_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

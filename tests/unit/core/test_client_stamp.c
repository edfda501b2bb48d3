/*
 * test_client_stamp.c -- by its stamps a part of what a client has is told from the rest (R-SEC-3).
 *
 * Shares stand for everything here: locks are test_reboot_life's. Every test is killed while it is
 * freed, and goes on from what was stored.
 */
#include "lock_fixture.h"
#include "unit/test.h"

static uint32_t stored_free_below(uint32_t slot)
{
    struct record_client record;
    struct bytes value = lock_fixture_stored(RECORD_CLIENT, slot);
    assert_int_equal(record_get_client(value, slot, &record), RECORD_GOOD);
    return record.free_below;
}

/* A share of a client in this state; 0: it does not say. */
static void share_in(struct core *core, uint32_t client, const char *oh, uint32_t client_state)
{
    struct lock_request request = lock_fixture_request("shared", oh);
    request.access = 1;
    request.state = client_state;
    assert_int_equal(share_take(core, client, &request, core->wall_ns), LOCK_GRANTED);
}

static bool has_share(struct core *core, uint32_t client, const char *oh)
{
    struct lock_request request = lock_fixture_request("shared", oh);
    request.access = 1;
    return share_matches(core, client, &request);
}

TEST(test_client_stamp__what_is_stamped_older_is_freed)
{
    struct core *core = lock_fixture_new(&lock_fixture_limits);
    uint32_t slot = lock_fixture_client(core, "10.0.0.2", "web3");
    share_in(core, slot, "unknown", 0);
    client_saw_state(core, slot, 3);
    assert_false(client_free_older(core, slot)); /* what is not known is not older */
    share_in(core, slot, "three", 0);
    client_saw_state(core, slot, 1); /* older: not seen */
    client_saw_state(core, slot, 5);
    share_in(core, slot, "five", 5);
    (void)lock_fixture_store(core, NULL);
    assert_true(client_free_older(core, slot));
    assert_false(client_free_older(core, slot)); /* being done */
    assert_false(has_share(core, slot, "three"));
    share_in(core, slot, "late", 3); /* not among what is freed */
    core_check(core);
    (void)lock_fixture_store(core, NULL);
    assert_int_equal(stored_free_below(slot), 5);

    core = lock_fixture_restart(core, &lock_fixture_limits, 0);
    assert_int_equal(client_at(core, slot)->life.share_count, 4);
    assert_int_equal(client_deadline_ns(core), core->now_ns);
    assert_false(client_drain(core));
    assert_int_equal(client_at(core, slot)->life.share_count, 3);
    assert_true(has_share(core, slot, "unknown"));
    assert_true(has_share(core, slot, "five"));
    assert_true(has_share(core, slot, "late"));
    assert_int_equal(core->reboots.locks_cleaned, 1);
    client_start_over(core, slot);
    assert_false(client_drain(core));
    assert_int_equal(client_at(core, slot)->life.share_count, 0);
    assert_int_equal(client_at(core, slot)->stored.free_below, 0);
    lock_fixture_free(core);
}

TEST(test_client_stamp__counts_anew)
{
    struct core *core = lock_fixture_new(&lock_fixture_limits);
    uint32_t slot = lock_fixture_client(core, "10.0.0.2", "web3");
    client_saw_state(core, slot, 57);
    share_in(core, slot, "old", 57);
    share_in(core, slot, "older", 55);
    share_in(core, slot, "new", 1);
    (void)lock_fixture_store(core, NULL);
    client_recount(core, slot, 1);
    (void)lock_fixture_store(core, NULL);
    core = lock_fixture_restart(core, &lock_fixture_limits, 0);
    assert_false(client_drain(core));
    assert_int_equal(client_at(core, slot)->life.share_count, 1);
    assert_true(has_share(core, slot, "new"));
    share_in(core, slot, "late", 57);
    client_saw_state(core, slot, 3); /* a reclaim's: from here on it counts as ever */
    share_in(core, slot, "three", 3);
    assert_true(client_free_older(core, slot));
    assert_false(client_drain(core));
    assert_true(has_share(core, slot, "three"));
    assert_int_equal(client_at(core, slot)->life.share_count, 1);
    lock_fixture_free(core);
}

TEST_MAIN(NULL, NULL, NULL, NULL)

/*
 * test_lease.c -- unit tests for base/lease.c: what each length bounds, to the nanosecond.
 */
#include "base/lease.h"
#include "base/units.h"
#include "unit/test.h"

/* A store of our own bounds nothing, whatever its fields say. */
TEST(test_lease__own_store)
{
    const struct lease own = {.raised_ns = 5, .confirmed_ns = 5};
    const struct lease *const leases[] = {NULL, &own};
    for (uint32_t i = 0; i < 2; i++) {
        assert_false(lease_is_shared(leases[i]));
        assert_true(lease_may_send(leases[i], 3600 * SECOND_NS));
        assert_true(lease_may_move(leases[i], 3600 * SECOND_NS));
        assert_int_equal(lease_sends_left_ns(leases[i], 0), 0);
        assert_int_equal(lease_echoes_left_ns(leases[i], 0), 0);
    }
}

TEST(test_lease__a_commit_renews_it)
{
    struct lease lease = {.is_shared = true};
    lease_renew(&lease, 100 * SECOND_NS);
    assert_true(lease_is_shared(&lease));
    assert_true(lease_may_send(&lease, 102 * SECOND_NS - 1));
    assert_false(lease_may_send(&lease, 102 * SECOND_NS));
    assert_true(lease_may_move(&lease, 108 * SECOND_NS));
    assert_false(lease_may_move(&lease, 108 * SECOND_NS + 1));
    lease_renew(&lease, 101 * SECOND_NS);
    assert_true(lease_may_send(&lease, 102 * SECOND_NS));
}

/* The predecessor sends for 2 s after the epoch was raised, its kernel for 10 s more. */
TEST(test_lease__a_successor_waits_it_out)
{
    const struct lease lease = {.is_shared = true, .raised_ns = 100 * SECOND_NS};
    assert_int_equal(lease_sends_left_ns(&lease, 101 * SECOND_NS), SECOND_NS);
    assert_int_equal(lease_sends_left_ns(&lease, 102 * SECOND_NS), 0);
    assert_int_equal(lease_echoes_left_ns(&lease, 101 * SECOND_NS), 11 * SECOND_NS);
    assert_int_equal(lease_echoes_left_ns(&lease, 112 * SECOND_NS), 0);
}

TEST_MAIN(NULL, NULL, NULL, NULL)

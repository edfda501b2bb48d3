/*
 * test_descriptors.c -- how open files are divided, whatever their limit is.
 */
#include "daemon/descriptors.h"
#include "unit/test.h"

static const struct descriptors_shares wanted = {4096, 16384};

/* Beside the connections that we count there must be room for the rest, and for one more caller. */
TEST(test_descriptors__never_more_than_there_are)
{
    for (uint64_t limit = 16; limit < 30000; limit++) {
        struct descriptors_shares shares = descriptors_divide(limit, &wanted);
        assert_in_range(shares.callers, 1, wanted.callers);
        assert_in_range(shares.calls, 1, wanted.calls);
        uint64_t spare = limit < 2 * DESCRIPTORS_SPARE ? limit / 2 : DESCRIPTORS_SPARE;
        assert_true(shares.callers + shares.calls + spare / 2 < limit);
    }
}

TEST(test_descriptors__callers_come_first)
{
    struct descriptors_shares shares = descriptors_divide(1024, &wanted);
    assert_int_equal(shares.callers, 1024 - DESCRIPTORS_SPARE);
    shares = descriptors_divide(wanted.callers + DESCRIPTORS_SPARE + 1000, &wanted);
    assert_int_equal(shares.callers, wanted.callers);
    assert_int_equal(shares.calls, 1000);
    shares = descriptors_divide(UINT64_C(1) << 30, &wanted);
    assert_int_equal(shares.callers, wanted.callers);
    assert_int_equal(shares.calls, wanted.calls);
}

TEST(test_descriptors__an_unknown_limit)
{
    struct descriptors_shares shares = descriptors_divide(0, &wanted);
    assert_int_equal(shares.callers, wanted.callers);
    assert_in_range(shares.calls, 1, DESCRIPTORS_SPARE);
}

TEST(test_descriptors__files_have_a_quarter_of_too_few)
{
    assert_int_equal(descriptors_for_files(10000, 10000, 4096), 4096);
    assert_int_equal(descriptors_for_files(9999, 10000, 4096), 2499);
    assert_int_equal(descriptors_for_files(64, 10000, 4096), 16);
    assert_int_equal(descriptors_for_files(30000, 40000, 4096), 4096);
    assert_int_equal(descriptors_for_files(64, 10000, 0), 0); /* none are served */
    assert_in_range(descriptors_for_files(0, 10000, 4096), 1, 1024);
}

TEST(test_descriptors__pipes_have_a_small_part_of_too_few)
{
    assert_int_equal(descriptors_for_pipes(10000, 10000, 48), 48);
    assert_int_equal(descriptors_for_pipes(1024, 10000, 48), 16);
    assert_int_equal(descriptors_for_pipes(9999, 10000, 48), 48);
    assert_int_equal(descriptors_for_pipes(50, 10000, 48), 0);
    assert_int_equal(descriptors_for_pipes(20000, 10000, 0), 0); /* no files are served */
    assert_in_range(descriptors_for_pipes(0, 10000, 48), 1, 8);  /* it is not known */
}

TEST(test_descriptors__locked_files_have_half_of_the_rest)
{
    assert_int_equal(descriptors_for_mirror(UINT64_C(1) << 20, 10000, 65536), 65536);
    assert_int_equal(descriptors_for_mirror(20000, 10000, 65536), 2500);
    assert_int_equal(descriptors_for_mirror(10000, 10000, 65536), 312); /* some in any case */
    assert_in_range(descriptors_for_mirror(0, 10000, 65536), 1, 1024);
}

TEST_MAIN(NULL, NULL, NULL, NULL)

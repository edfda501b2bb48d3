/*
 * test_dirty.c -- marks of changed slots: each once, in the order of the first change, until
 * cleared.
 */
#include "core/dirty.h"
#include "unit/test.h"

static const uint32_t slots_max[RECORD_KIND_END] = {[RECORD_REGISTRANT] = 8, [RECORD_NOTICE] = 4};

TEST(test_dirty__marks_once_in_order)
{
    struct dirty dirty;
    assert_int_equal(dirty_init(&dirty, slots_max), 0);
    assert_true(dirty_is_empty(&dirty));
    dirty_put(&dirty, RECORD_REGISTRANT, 5);
    dirty_delete(&dirty, RECORD_REGISTRANT, 2);
    dirty_put(&dirty, RECORD_REGISTRANT, 5);
    dirty_delete(&dirty, RECORD_REGISTRANT, 5);
    dirty_put(&dirty, RECORD_NOTICE, 3);
    assert_false(dirty_is_empty(&dirty));
    assert_int_equal(dirty.of[RECORD_REGISTRANT].count, 2);
    assert_int_equal(dirty.of[RECORD_REGISTRANT].slots[0], 5);
    assert_int_equal(dirty.of[RECORD_REGISTRANT].slots[1], 2);
    assert_int_equal(dirty.of[RECORD_NOTICE].count, 1);
    assert_int_equal(dirty.of[RECORD_REGISTRANT].change_count, 4);
    dirty_done(&dirty);
}

TEST(test_dirty__clear_forgets)
{
    struct dirty dirty;
    assert_int_equal(dirty_init(&dirty, slots_max), 0);
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t slot = 0; slot < 8; slot++)
            dirty_put(&dirty, RECORD_REGISTRANT, slot);
        assert_int_equal(dirty.of[RECORD_REGISTRANT].count, 8);
        assert_in_range(dirty.put_count, 8, 8);
        dirty_clear(&dirty);
        assert_true(dirty_is_empty(&dirty));
        assert_int_equal(dirty.put_count, 0);
        assert_int_equal(dirty.of[RECORD_REGISTRANT].change_count, 0);
    }
    dirty_done(&dirty);
}

TEST_MAIN(NULL, NULL, NULL, NULL)

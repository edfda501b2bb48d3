/*
 * test_dirty.c -- marks of changed slots: each once, found in the order of slots, until cleared.
 */
#include "core/dirty.h"

#include "base/prng.h"
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
    assert_int_equal(dirty_next(&dirty.of[RECORD_REGISTRANT], SLOT_NONE), 2);
    assert_int_equal(dirty_next(&dirty.of[RECORD_REGISTRANT], 2), 5);
    assert_int_equal(dirty_next(&dirty.of[RECORD_REGISTRANT], 5), SLOT_NONE);
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

/* Of tables of any length, with few and with many marks. */
TEST(test_dirty__finds_each_in_ascending_order)
{
    const uint32_t lengths[] = {1, 63, 64, 65, 4095, 4096, 4097, 20000};
    struct prng prng = {5};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        const uint32_t max[RECORD_KIND_END] = {[RECORD_LOCK] = lengths[i]};
        struct dirty dirty;
        assert_int_equal(dirty_init(&dirty, max), 0);
        for (uint32_t rarity = 1; rarity <= 10000; rarity *= 10) {
            bool is_marked[20000] = {false};
            for (uint32_t slot = lengths[i]; slot-- > 0;)
                is_marked[slot] = slot == lengths[i] - 1 || prng_below(&prng, rarity) == 0;
            for (uint32_t slot = lengths[i]; slot-- > 0;)
                if (is_marked[slot])
                    dirty_put(&dirty, RECORD_LOCK, slot);
            uint32_t found = SLOT_NONE;
            for (uint32_t slot = 0; slot < lengths[i]; slot++)
                if (is_marked[slot])
                    assert_int_equal(found = dirty_next(&dirty.of[RECORD_LOCK], found), slot);
            assert_int_equal(dirty_next(&dirty.of[RECORD_LOCK], found), SLOT_NONE);
            dirty_clear(&dirty);
            assert_true(dirty_is_empty(&dirty));
            assert_int_equal(dirty_next(&dirty.of[RECORD_LOCK], SLOT_NONE), SLOT_NONE);
        }
        dirty_done(&dirty);
    }
}

TEST_MAIN(NULL, NULL, NULL, NULL)

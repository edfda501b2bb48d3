/*
 * test_table.c -- slots, generations and handles: a handle names one life of one slot, freed slots
 * come back last-freed-first, stored records get the slots they name. A random history with
 * table_check after every step is compared with a model.
 */
#include "base/prng.h"
#include "base/table.h"
#include "unit/test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

TEST(test_table__adds_in_ascending_order_until_full)
{
    struct table table;
    assert_int_equal(table_init(&table, 3, sizeof(uint64_t)), 0);
    for (uint32_t slot = 0; slot < 3; slot++)
        assert_int_equal(table_add(&table), slot);
    assert_int_equal(table_add(&table), SLOT_NONE);
    assert_int_equal(table.count, 3);
    table_check(&table);
    table_done(&table);
}

TEST(test_table__an_empty_capacity_is_always_full)
{
    struct table table;
    assert_int_equal(table_init(&table, 0, 8), 0);
    assert_int_equal(table_add(&table), SLOT_NONE);
    assert_false(table_add_at(&table, 0));
    assert_int_equal(table_next(&table, SLOT_NONE), SLOT_NONE);
    table_check(&table);
    table_done(&table);
}

TEST(test_table__freed_last_is_used_first)
{
    struct table table;
    assert_int_equal(table_init(&table, 5, 8), 0);
    for (uint32_t i = 0; i < 4; i++)
        table_add(&table);
    table_remove(&table, 0);
    table_remove(&table, 2);
    assert_int_equal(table_add(&table), 2);
    assert_int_equal(table_add(&table), 0);
    assert_int_equal(table_add(&table), 4);
    table_check(&table);
    table_done(&table);
}

TEST(test_table__a_new_element_is_zero)
{
    struct table table;
    assert_int_equal(table_init(&table, 2, 24), 0);
    uint32_t slot = table_add(&table);
    memset(table_at(&table, slot), 0xff, 24);
    table_remove(&table, slot);
    assert_int_equal(table_add(&table), slot);
    const uint8_t zeros[24] = {0};
    assert_memory_equal(table_at(&table, slot), zeros, 24);
    table_done(&table);
}

TEST(test_table__a_handle_names_one_life)
{
    struct table table;
    assert_int_equal(table_init(&table, 2, 8), 0);
    uint32_t slot = table_add(&table);
    uint64_t first = table_handle(&table, slot);
    assert_int_equal(table_find(&table, first), slot);
    table_remove(&table, slot);
    assert_int_equal(table_find(&table, first), SLOT_NONE);
    assert_int_equal(table_add(&table), slot);
    assert_int_equal(table_find(&table, first), SLOT_NONE);
    assert_int_equal(table_find(&table, table_handle(&table, slot)), slot);
    /* Numbers that no table_handle ever returned. */
    assert_int_equal(table_find(&table, 0), SLOT_NONE);
    assert_int_equal(table_find(&table, UINT64_C(1) << 32 | 1), SLOT_NONE);
    assert_int_equal(table_find(&table, UINT64_MAX), SLOT_NONE);
    table_done(&table);
}

TEST(test_table__add_at_takes_the_named_slot)
{
    struct table table;
    assert_int_equal(table_init(&table, 6, 8), 0);
    assert_true(table_add_at(&table, 3));
    assert_false(table_add_at(&table, 3));
    assert_false(table_add_at(&table, 6));
    assert_false(table_add_at(&table, SLOT_NONE));
    table_check(&table);
    assert_true(table_add_at(&table, 1)); /* from the middle of the free chain */
    assert_true(table_add_at(&table, 4));
    table_check(&table);
    assert_int_equal(table.count, 3);

    /* The gaps are filled before new slots are used. */
    uint32_t gaps = 0;
    for (uint32_t i = 0; i < 2; i++)
        gaps |= UINT32_C(1) << table_add(&table);
    assert_int_equal(gaps, 1 << 0 | 1 << 2);
    assert_int_equal(table_add(&table), 5);
    assert_int_equal(table_add(&table), SLOT_NONE);
    table_check(&table);
    table_done(&table);
}

/* A store in which only a late slot is left costs no more than that slot: those before it are free,
 * and nobody has touched their elements. */
TEST(test_table__slots_that_are_passed_over_stay_untouched)
{
    enum { SLOTS = 100000, LEN = 1000, PAGE = 4096 };
    static unsigned char pages[SLOTS * (LEN + TABLE_HEAD_LEN) / PAGE + 2];
    struct table table;
    const char *perturb = getenv("MALLOC_PERTURB_");
    if (perturb != NULL && strcmp(perturb, "0") != 0)
        skip(); /* calloc() then touches all of it */
    assert_int_equal(table_init(&table, SLOTS, LEN), 0);
    assert_true(table_add_at(&table, SLOTS - 1));
    uintptr_t from = (uintptr_t)table.slots / PAGE * PAGE;
    size_t len = (uintptr_t)table.slots + (size_t)SLOTS * table.stride - from;
    uint32_t resident = 0;
    assert_int_equal(mincore((void *)from, len, pages), 0);
    for (size_t i = 0; i < (len + PAGE - 1) / PAGE; i++)
        resident += pages[i] & 1;
    assert_true(resident <= 2 * 512); /* a huge page at either end */
    assert_int_equal(table.count, 1);
    table_check(&table);
    table_done(&table);
}

TEST(test_table__next_walks_in_ascending_order)
{
    struct table table;
    assert_int_equal(table_init(&table, 8, 8), 0);
    for (uint32_t i = 0; i < 8; i++)
        table_add(&table);
    for (uint32_t i = 0; i < 8; i += 3)
        table_remove(&table, i);
    const uint32_t expected[] = {1, 2, 4, 5, 7};
    uint32_t slot = SLOT_NONE;
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        slot = table_next(&table, slot);
        assert_int_equal(slot, expected[i]);
    }
    assert_int_equal(table_next(&table, slot), SLOT_NONE);
    table_done(&table);
}

TEST(test_table__random_history_matches_a_model)
{
    enum { SLOT_MAX = 50, STEPS = 20000 };
    uint64_t handles[SLOT_MAX] = {0}, values[SLOT_MAX] = {0};
    bool live[SLOT_MAX] = {0};
    uint32_t count = 0, full = 0;
    struct table table;
    struct prng prng = {11};
    assert_int_equal(table_init(&table, SLOT_MAX, sizeof(uint64_t)), 0);
    for (uint32_t step = 0; step < STEPS; step++) {
        uint32_t slot = (uint32_t)prng_below(&prng, SLOT_MAX);
        bool added = false;
        if (prng_chance(&prng, 35)) {
            added = table_add_at(&table, slot);
            assert_int_equal(added, !live[slot]);
        } else if (prng_chance(&prng, 35)) {
            slot = table_add(&table);
            assert_int_equal(slot == SLOT_NONE, count == SLOT_MAX);
            added = slot != SLOT_NONE;
            full += !added;
        } else if (live[slot]) {
            assert_true(*(uint64_t *)table_at(&table, slot) == values[slot]);
            table_remove(&table, slot);
            live[slot] = false;
            count--;
        }
        if (added) {
            assert_false(live[slot]);
            assert_int_equal(table_find(&table, handles[slot]), SLOT_NONE);
            live[slot] = true;
            count++;
            handles[slot] = table_handle(&table, slot);
            values[slot] = prng_next(&prng);
            *(uint64_t *)table_at(&table, slot) = values[slot];
        }
        table_check(&table);
        assert_int_equal(table.count, count);
        for (uint32_t i = 0; i < SLOT_MAX; i++) {
            assert_int_equal(table_is_live(&table, i), live[i]);
            assert_int_equal(table_find(&table, handles[i]), live[i] ? i : SLOT_NONE);
        }
    }
    assert_true(full > 0); /* the history reached the limit */
    table_done(&table);
}

TEST_MAIN(NULL, NULL, NULL, NULL)

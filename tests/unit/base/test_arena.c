/*
 * test_arena.c -- the arena keeps what it was given, inside its budget, and a budget spent on one
 * size can be spent on another once it is free again. A random history is compared with a model
 * that remembers every byte.
 */
#include "base/arena.h"
#include "base/prng.h"
#include "unit/test.h"

enum { BLOCK_LEN = 64 * 1024 };

static uint8_t pattern[ARENA_CELL_MAX];

static struct bytes filled(uint8_t value, uint32_t len)
{
    memset(pattern, value, len);
    return (struct bytes){pattern, len};
}

static void assert_filled(const struct arena *arena, uint32_t cell, uint8_t value, uint32_t len)
{
    struct bytes kept = arena_at(arena, cell, len);
    assert_int_equal(kept.len, len);
    for (uint32_t i = 0; i < len; i++)
        assert_int_equal(kept.at[i], value);
}

TEST(test_arena__keeps_every_length)
{
    struct arena *arena = arena_new(16 << 20);
    assert_non_null(arena);
    static uint32_t cells[ARENA_CELL_MAX + 1];
    for (uint32_t len = 0; len <= ARENA_CELL_MAX; len++) {
        uint64_t used = arena_used(arena);
        cells[len] = arena_add(arena, filled((uint8_t)len, len));
        assert_int_not_equal(cells[len], ARENA_NONE);
        assert_in_range(arena_cell_len(len), len, ARENA_CELL_MAX);
        assert_int_equal(arena_used(arena) - used, arena_cell_len(len));
    }
    for (uint32_t len = 0; len <= ARENA_CELL_MAX; len++)
        assert_filled(arena, cells[len], (uint8_t)len, len);
    for (uint32_t len = 0; len <= ARENA_CELL_MAX; len++)
        arena_remove(arena, cells[len], len);
    assert_int_equal(arena_used(arena), 0);
    arena_free(arena);
}

TEST(test_arena__budget_is_a_limit)
{
    struct arena *arena = arena_new(BLOCK_LEN);
    uint32_t cells[BLOCK_LEN / 1024];
    for (uint32_t i = 0; i < BLOCK_LEN / 1024; i++) {
        cells[i] = arena_add(arena, filled((uint8_t)i, 1000));
        assert_int_not_equal(cells[i], ARENA_NONE);
    }
    assert_int_equal(arena_used(arena), BLOCK_LEN);
    assert_int_equal(arena_add(arena, filled(0xaa, 1000)), ARENA_NONE);
    assert_int_equal(arena_add(arena, filled(0xaa, 1)), ARENA_NONE);
    for (uint32_t i = 0; i < BLOCK_LEN / 1024; i++)
        assert_filled(arena, cells[i], (uint8_t)i, 1000);

    /* One cell back is one cell more, of that size only. */
    arena_remove(arena, cells[5], 1000);
    assert_int_equal(arena_add(arena, filled(0xaa, 1)), ARENA_NONE);
    assert_int_equal(arena_add(arena, filled(0xbb, 600)), cells[5]);
    assert_filled(arena, cells[5], 0xbb, 600);
    arena_free(arena);
}

TEST(test_arena__a_free_block_serves_any_size)
{
    struct arena *arena = arena_new(BLOCK_LEN);
    for (uint32_t size = 16; size <= ARENA_CELL_MAX; size *= 2) {
        static uint32_t cells[BLOCK_LEN / 16];
        uint32_t count = BLOCK_LEN / size;
        for (uint32_t i = 0; i < count; i++) {
            cells[i] = arena_add(arena, filled((uint8_t)size, size));
            assert_int_not_equal(cells[i], ARENA_NONE);
        }
        assert_int_equal(arena_add(arena, filled(1, size)), ARENA_NONE);
        for (uint32_t i = 0; i < count; i++)
            arena_remove(arena, cells[i], size);
        assert_int_equal(arena_used(arena), 0);
    }
    arena_free(arena);
}

TEST(test_arena__an_empty_budget_is_one_block)
{
    struct arena *arena = arena_new(0);
    assert_non_null(arena);
    assert_int_not_equal(arena_add(arena, filled(1, 10)), ARENA_NONE);
    arena_free(arena);
    arena_free(NULL);
}

TEST(test_arena__a_budget_beyond_the_cell_numbers_is_refused)
{
    assert_null(arena_new(UINT64_C(1) << 40));
    assert_null(arena_new(UINT64_MAX));
}

TEST(test_arena__random_history_matches_a_model)
{
    enum { ITEM_MAX = 600, STEPS = 60000 };
    static struct {
        uint32_t cell, len;
        uint8_t value;
        bool live;
    } items[ITEM_MAX];
    memset(items, 0, sizeof items);
    struct arena *arena = arena_new(6 * BLOCK_LEN);
    struct prng prng = {7};
    uint64_t used = 0;
    uint32_t refused = 0;
    for (uint32_t step = 0; step < STEPS; step++) {
        uint32_t i = (uint32_t)prng_below(&prng, ITEM_MAX);
        if (items[i].live) {
            assert_filled(arena, items[i].cell, items[i].value, items[i].len);
            arena_remove(arena, items[i].cell, items[i].len);
            items[i].live = false;
        } else {
            items[i].len = (uint32_t)prng_below(&prng, prng_chance(&prng, 50) ? 40 : 2049);
            items[i].value = (uint8_t)prng_next(&prng);
            items[i].cell = arena_add(arena, filled(items[i].value, items[i].len));
            items[i].live = items[i].cell != ARENA_NONE;
            refused += !items[i].live;
        }
        if (!items[i].live && items[i].cell == ARENA_NONE)
            continue;
        uint32_t size = 16;
        while (size < items[i].len)
            size *= 2;
        used = items[i].live ? used + size : used - size;
        assert_int_equal(arena_used(arena), used);
    }
    assert_true(refused > 0); /* the history reached the limit */
    for (uint32_t i = 0; i < ITEM_MAX; i++) {
        if (!items[i].live)
            continue;
        assert_filled(arena, items[i].cell, items[i].value, items[i].len);
        arena_remove(arena, items[i].cell, items[i].len);
    }
    assert_int_equal(arena_used(arena), 0);
    arena_free(arena);
}

/* Room is counted in blocks: one thing in a block takes it from all other sizes. */
TEST(test_arena__room_for_things_of_any_length)
{
    struct arena *arena = arena_new(4 * 65536);
    assert_non_null(arena);
    assert_true(arena_has_room(arena, 4));
    assert_false(arena_has_room(arena, 5));
    const struct bytes small = {(const uint8_t *)"x", 1};
    uint32_t first = arena_add(arena, small), second = arena_add(arena, small);
    assert_true(arena_has_room(arena, 3));
    assert_false(arena_has_room(arena, 4));
    arena_remove(arena, first, 1);
    assert_false(arena_has_room(arena, 4));
    arena_remove(arena, second, 1);
    assert_true(arena_has_room(arena, 4));
    assert_false(arena_has_room(arena, 5));
    arena_free(arena);
}

TEST_MAIN(NULL, NULL, NULL, NULL)

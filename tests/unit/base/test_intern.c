/*
 * test_intern.c -- each distinct string is kept once and counted; all spellings of a host name are
 * found together; a full table or a spent budget refuses without a trace.
 */
#include "base/intern.h"
#include "unit/test.h"

static struct arena *arena;
static struct intern names;

static void open_names(uint32_t max)
{
    arena = arena_new(1 << 20);
    assert_non_null(arena);
    assert_int_equal(intern_init(&names, arena, max, 42), 0);
}

static void close_names(void)
{
    intern_done(&names);
    arena_free(arena);
}

TEST(test_intern__same_string_same_slot)
{
    open_names(10);
    uint32_t one = intern_add(&names, bytes_of_text("client"));
    assert_int_not_equal(one, SLOT_NONE);
    char copy[] = "client"; /* equal by content, not by address */
    assert_int_equal(intern_add(&names, bytes_of_text(copy)), one);
    assert_int_equal(intern_references(&names, one), 2);
    assert_true(bytes_equal(intern_bytes(&names, one), bytes_of_text("client")));
    assert_int_equal(intern_find(&names, bytes_of_text("client")), one);
    assert_int_equal(intern_references(&names, one), 2);

    assert_false(intern_release(&names, one));
    assert_int_equal(intern_find(&names, bytes_of_text("client")), one);
    assert_true(intern_release(&names, one));
    assert_int_equal(intern_find(&names, bytes_of_text("client")), SLOT_NONE);
    assert_int_equal(arena_used(arena), 0);
    close_names();
}

/* What was found last is looked at first, and may be another string by now, or none. */
TEST(test_intern__the_last_one_may_be_gone)
{
    open_names(10);
    uint32_t one = intern_add(&names, bytes_of_text("first"));
    assert_int_equal(intern_find(&names, bytes_of_text("first")), one);
    assert_true(intern_release(&names, one));
    assert_int_equal(intern_find(&names, bytes_of_text("first")), SLOT_NONE);
    assert_int_equal(intern_add(&names, bytes_of_text("other")), one); /* the slot is used again */
    assert_int_equal(intern_find(&names, bytes_of_text("first")), SLOT_NONE);
    assert_int_equal(intern_find(&names, bytes_of_text("other")), one);
    uint32_t two = intern_add(&names, bytes_of_text("first"));
    assert_int_not_equal(two, one);
    assert_int_equal(intern_add(&names, bytes_of_text("first")), two);
    assert_int_equal(intern_references(&names, two), 2);
    assert_int_equal(intern_references(&names, one), 1);
    close_names();
}

TEST(test_intern__the_string_is_a_copy)
{
    open_names(10);
    char name[] = "before";
    uint32_t slot = intern_add(&names, bytes_of_text(name));
    memcpy(name, "after!", 6);
    assert_true(bytes_equal(intern_bytes(&names, slot), bytes_of_text("before")));
    close_names();
}

TEST(test_intern__any_bytes_are_a_string)
{
    open_names(10);
    struct bytes empty = {0}, nul = {(const uint8_t *)"\0", 1}, two = {(const uint8_t *)"\0\0", 2};
    uint32_t slots[] = {intern_add(&names, empty), intern_add(&names, nul),
                        intern_add(&names, two)};
    assert_int_not_equal(slots[0], slots[1]);
    assert_int_not_equal(slots[1], slots[2]);
    assert_int_equal(intern_find(&names, empty), slots[0]);
    assert_int_equal(intern_find(&names, nul), slots[1]);
    assert_int_equal(intern_find(&names, two), slots[2]);
    close_names();
}

TEST(test_intern__full_refuses_new_ones_only)
{
    open_names(2);
    uint32_t one = intern_add(&names, bytes_of_text("one"));
    uint32_t two = intern_add(&names, bytes_of_text("two"));
    uint64_t used = arena_used(arena);
    assert_int_equal(intern_add(&names, bytes_of_text("three")), SLOT_NONE);
    assert_int_equal(arena_used(arena), used);
    assert_int_equal(intern_add(&names, bytes_of_text("two")), two);
    assert_true(intern_release(&names, one));
    assert_int_equal(intern_add(&names, bytes_of_text("three")), one);
    close_names();
}

TEST(test_intern__no_bytes_left_refuses_without_a_trace)
{
    open_names(1000);
    static uint8_t name[ARENA_CELL_MAX];
    uint32_t count = 0;
    for (; count < 1000; count++) {
        store_be32(name, count);
        if (intern_add(&names, (struct bytes){name, sizeof name}) == SLOT_NONE)
            break;
    }
    assert_int_equal(count, (1 << 20) / ARENA_CELL_MAX);
    assert_int_equal(names.table.count, count);
    assert_int_equal(intern_find(&names, (struct bytes){name, sizeof name}), SLOT_NONE);
    table_check(&names.table);

    static const uint8_t too_long[ARENA_CELL_MAX + 1];
    assert_int_equal(intern_add(&names, (struct bytes){too_long, sizeof too_long}), SLOT_NONE);
    close_names();
}

TEST(test_intern__many_strings_stay_apart)
{
    enum { MANY = 2000 };
    open_names(MANY);
    static uint32_t slots[MANY];
    uint8_t name[4];
    for (uint32_t i = 0; i < MANY; i++) {
        store_be32(name, i);
        slots[i] = intern_add(&names, (struct bytes){name, 4});
        assert_int_not_equal(slots[i], SLOT_NONE);
    }
    for (uint32_t i = 0; i < MANY; i += 2)
        assert_true(intern_release(&names, slots[i]));
    for (uint32_t i = 0; i < MANY; i++) {
        store_be32(name, i);
        uint32_t expected = i % 2 == 0 ? SLOT_NONE : slots[i];
        assert_int_equal(intern_find(&names, (struct bytes){name, 4}), expected);
    }
    close_names();
}

TEST_MAIN(NULL, NULL, NULL, NULL)

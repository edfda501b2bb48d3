/*
 * test_file.c -- files live while something refers to them, and belong to the share with the
 * longest prefix of their handle (D14).
 */
#include "lock_world.h"
#include "unit/test.h"

static uint32_t share_of(struct core *core, const char *handle)
{
    uint32_t slot = file_add(core, bytes_of_text(handle));
    assert_int_not_equal(slot, SLOT_NONE);
    file_check(core);
    uint32_t share = file_at(core, slot)->set;
    file_release(core, slot);
    return share;
}

TEST(test_file__longest_prefix_wins)
{
    const struct file_set shares[] = {
        {bytes_of_text("default"), {0}},
        {bytes_of_text("a"), bytes_of_text("aa")},
        {bytes_of_text("b"), bytes_of_text("aabb")},
        {bytes_of_text("again"), bytes_of_text("aabb")},
        {bytes_of_text("c"), bytes_of_text("aab")},
    };
    struct core_limits limits = lock_world_limits;
    limits.file_sets = shares;
    limits.file_set_count = 5;
    struct core *core = lock_world_new(1, 16, &limits);
    assert_int_equal(share_of(core, "xx"), 0);
    assert_int_equal(share_of(core, "a"), 0);
    assert_int_equal(share_of(core, "aa"), 1);
    assert_int_equal(share_of(core, "aaxbb"), 1);
    assert_int_equal(share_of(core, "aab"), 4);
    assert_int_equal(share_of(core, "aabb"), 2);
    assert_int_equal(share_of(core, "aabbc"), 2);
    lock_world_free(core);
}

TEST(test_file__lives_by_references)
{
    struct core *core = lock_world_new(1, 16, &lock_world_limits);
    struct bytes handle = bytes_of_text("handle");
    assert_int_equal(file_find(core, handle), SLOT_NONE);
    uint32_t slot = file_add(core, handle);
    assert_int_equal(file_add(core, handle), slot);
    file_keep(core, slot);
    assert_true(bytes_equal(file_handle(core, slot), handle));
    file_release(core, slot);
    file_release(core, slot);
    assert_int_equal(file_find(core, handle), slot);
    file_check(core);
    file_release(core, slot);
    assert_int_equal(file_find(core, handle), SLOT_NONE);
    file_check(core);
    lock_world_free(core);
}

/* A file that is new in a slot knows nothing of the one before it. */
TEST(test_file__begins_empty)
{
    struct core *core = lock_world_new(1, 16, &lock_world_limits);
    const struct who who = {0, 1, 0};
    assert_true(lock_world_take(core, who, 0, 9, true));
    uint32_t slot = lock_world_file(core, 0);
    assert_int_equal(file_at(core, slot)->lock_count, 1);
    assert_true(lock_world_release(core, who, 0, 9));
    assert_int_equal(file_add(core, bytes_of_text("another")), slot);
    assert_int_equal(file_at(core, slot)->lock_count, 0);
    assert_int_equal(file_at(core, slot)->locks, 0);
    file_release(core, slot);
    lock_world_free(core);
}

TEST_MAIN(NULL, NULL, NULL, NULL)

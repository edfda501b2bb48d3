/*
 * test_owner.c -- an owner is (client, svid) and nothing else (R-OWN-1), and lives while it has
 * something.
 */
#include "lock_world.h"
#include "unit/test.h"

TEST(test_owner__is_client_and_svid)
{
    struct core *core = lock_world_new(2, 16, &lock_world_limits);
    assert_int_equal(owner_find(core, 0, 5), SLOT_NONE);
    uint32_t owner = owner_add(core, 0, 5), other = owner_add(core, 1, 5);
    assert_int_not_equal(owner, other);
    assert_int_equal(owner_add(core, 0, 5), owner);
    assert_int_equal(owner_find(core, 0, 5), owner);
    assert_int_equal(owner_find(core, 1, 5), other);
    assert_int_equal(owner_find(core, 0, 6), SLOT_NONE);
    assert_int_equal(owner_at(core, other)->client, 1);
    assert_int_equal(owner_at(core, other)->svid, 5);
    owner_release(core, owner);
    assert_int_equal(owner_find(core, 0, 5), SLOT_NONE);
    assert_int_equal(owner_find(core, 1, 5), other);
    owner_release(core, other);
    owner_check(core);
    lock_world_free(core);
}

TEST(test_owner__lives_while_it_has_something)
{
    struct core *core = lock_world_new(1, 16, &lock_world_limits);
    uint32_t owner = owner_add(core, 0, 5);
    owner_at(core, owner)->lock_count = 1;
    owner_release(core, owner);
    assert_int_equal(owner_find(core, 0, 5), owner);
    owner_at(core, owner)->lock_count = 0;
    owner_at(core, owner)->waiter_count = 1;
    owner_release(core, owner);
    assert_int_equal(owner_find(core, 0, 5), owner);
    owner_check(core);
    owner_at(core, owner)->waiter_count = 0;
    owner_release(core, owner);
    assert_int_equal(owner_find(core, 0, 5), SLOT_NONE);
    lock_world_free(core);
}

/* R-OWN-1: a lock daemon that restarts sends another oh, and its locks are still its own. */
TEST(test_owner__oh_is_not_compared)
{
    struct core *core = lock_world_new(1, 16, &lock_world_limits);
    const struct who who = {0, 5, 0};
    struct lock_want want = lock_world_want(0, 9, true);
    assert_true(lock_world_carry_out(core, who, &want));
    want = lock_world_want(10, 19, true);
    want.oh = bytes_of_text("after a restart");
    assert_true(lock_world_carry_out(core, who, &want));
    assert_string_equal(lock_world_held(core, who), "x 0-19");
    assert_true(lock_world_release(core, who, 0, 19));
    assert_int_equal(core->locks.table.count, 0);
    assert_int_equal(core->locks.ohs.table.count, 0);
    lock_world_free(core);
}

TEST_MAIN(NULL, NULL, NULL, NULL)

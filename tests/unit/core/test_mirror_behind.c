/*
 * test_mirror_behind.c -- files of which more changed than is followed byte by byte
 * (core/mirror.c): they are gone through as a whole, in pieces.
 *
 * Passing shows that all bytes are right in the end, whatever is released meanwhile, and that none
 * is given back before it is durable.
 */
#include "fake_kernel.h"
#include "unit/test.h"

TEST(test_mirror_behind__more_is_released_than_can_be_noted)
{
    tell("A lock 0 4 X -> granted; B lock 6 1 X -> granted");
    uint32_t file = file_find(the_core, bytes_of_text("f"));
    const struct claim nothing = {100, 100, SLOT_NONE, file, true};
    while (list_is_empty(&file_at(the_core, file)->behind))
        mirror_loosen(the_core, &nothing);
    assert_int_equal(step_only(REQUEST_NLM_UNLOCK, A, 0, 4, X), LOCK_GRANTED);
    assert_held("XXXX--X");
    for (int i = 0; i < 20; i++)
        settle(); /* so much is lowered in a turn, and no more */
    assert_held("------X");
    tell("B unlock 6 1 -> granted");
    assert_int_equal(kernel.open_count, 0);
}

TEST(test_mirror_behind__a_file_that_is_held_as_a_whole_is_refined_when_its_pieces_are_few)
{
    with_many_locks();
    for (uint32_t i = 0; i < 600; i++)
        assert_int_equal(lock(A, 2 * (uint64_t)i, 1, X), LOCK_GRANTED);
    kernel.is_whole = true;
    memset(kernel.ours, LOCAL_EXCLUSIVE, BYTES);
    tell("A unlock 1100 20 -> granted");
    assert_int_equal(kernel.refined, 0);
    tell("A unlock 20 1180 -> granted");
    settle();
    assert_int_equal(kernel.refined, 1);
    assert_held("X-X-X-X-X-X-X-X-X-X-");
}

TEST(test_mirror_behind__what_is_released_while_a_file_is_gone_through_is_kept_until_it_is_durable)
{
    struct store_batch batch;
    tell("A lock 0 2 X -> granted; B lock 4 4 X -> granted");
    kernel.is_whole = true;
    memset(kernel.ours, LOCAL_EXCLUSIVE, BYTES);
    assert_int_equal(step_only(REQUEST_NLM_UNLOCK, A, 0, 2, X), LOCK_GRANTED);
    assert_true(core_take_batch(the_core, &batch));
    assert_int_equal(step_only(REQUEST_NLM_LOCK, A, 9, 1, X), LOCK_GRANTED);
    fixture_stored(the_core, batch.txn, true);
    core_work(the_core, fixture_now_ns(), fixture_now_ns());
    assert_int_equal(kernel.refined, 0);
    /* It is gone through when this batch is durable; these bytes are released in the next. */
    assert_true(core_take_batch(the_core, &batch));
    assert_int_equal(step_only(REQUEST_NLM_UNLOCK, B, 5, 2, X), LOCK_GRANTED);
    assert_int_equal(kernel.ours[0], LOCAL_EXCLUSIVE);
    fixture_stored(the_core, batch.txn, true);
    core_work(the_core, fixture_now_ns(), fixture_now_ns());
    assert_held("----XXXX-X");
    settle();
    assert_held("----X--X-X");
}

/* As much as one turn does is not all of it; what is released in front of that is seen, too. */
TEST(test_mirror_behind__what_is_released_where_it_was_already_is_seen)
{
    with_many_locks();
    for (uint64_t offset = 0; offset < 6000; offset += 80) {
        lock_many(the_core, 3, A, offset, 40);
        settle();
    }
    uint32_t slot = file_find(the_core, bytes_of_text("f"));
    const struct claim nothing = {69000, 69000, SLOT_NONE, slot, true};
    const struct file *file = file_at(the_core, slot);
    while (list_is_empty(&file->behind))
        mirror_loosen(the_core, &nothing);
    struct store_batch batch;
    assert_int_equal(step_only(REQUEST_NLM_LOCK, A, 65000, 1, X), LOCK_GRANTED);
    assert_true(core_take_batch(the_core, &batch));
    fixture_stored(the_core, batch.txn, true);
    core_work(the_core, fixture_now_ns(), fixture_now_ns());
    assert_true(!list_is_empty(&file->behind) && file->behind_at > 0);
    assert_int_equal(step_only(REQUEST_NLM_UNLOCK, A, 0, 1, X), LOCK_GRANTED);
    for (int i = 0; i < 20; i++)
        settle();
    assert_true(list_is_empty(&file->behind));
    assert_int_equal(kernel.ours[0], LOCAL_NONE);
    assert_int_equal(kernel.ours[2], LOCAL_EXCLUSIVE);
}

TEST(test_mirror_behind__a_whole_file_is_refined_also_when_more_was_released_than_can_be_noted)
{
    tell("A lock 0 4 X -> granted; B lock 6 1 X -> granted");
    kernel.is_whole = true;
    memset(kernel.ours, LOCAL_EXCLUSIVE, BYTES);
    uint32_t file = file_find(the_core, bytes_of_text("f"));
    const struct claim nothing = {100, 100, SLOT_NONE, file, true};
    while (list_is_empty(&file_at(the_core, file)->behind))
        mirror_loosen(the_core, &nothing);
    assert_int_equal(step_only(REQUEST_NLM_UNLOCK, A, 0, 4, X), LOCK_GRANTED);
    for (int i = 0; i < 20; i++)
        settle();
    assert_held("------X");
}

TEST_MAIN(kernel_set_up, locker_tear_down, NULL, NULL)

/*
 * test_hash_index.c -- an index finds exactly the slots that were added with a hash and not
 * removed, newest first, while its chains are split below it; and its chains are as many as it
 * needs. With links of its own and with links in the slots of a table, which keeps its elements.
 */
#include "base/hash_index.h"
#include "base/prng.h"
#include "base/table.h"
#include "unit/test.h"

static void assert_slots(const struct hash_index *index, uint64_t hash, const uint32_t *slots,
                         uint32_t count)
{
    uint32_t slot = hash_index_first(index, hash);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(slot, slots[i]);
        assert_true(hash_index_has(index, hash, slot));
        slot = hash_index_next(index, slot);
    }
    assert_int_equal(slot, SLOT_NONE);
}

TEST(test_hash_index__new_ones_are_empty)
{
    struct hash_index index;
    assert_int_equal(hash_index_init(&index, 10), 0);
    assert_slots(&index, 0, NULL, 0);
    assert_slots(&index, UINT64_MAX, NULL, 0);
    assert_false(hash_index_has(&index, 7, 3));
    hash_index_check(&index);
    hash_index_done(&index);
    assert_int_equal(hash_index_init(&index, 0), 0);
    assert_slots(&index, 1, NULL, 0);
    hash_index_done(&index);
    hash_index_done(&index); /* a done one may be done again */
}

TEST(test_hash_index__neighbours_on_a_chain_are_not_mixed_up)
{
    struct hash_index index;
    assert_int_equal(hash_index_init(&index, 8), 0);
    for (uint32_t slot = 0; slot < 8; slot++)
        hash_index_add(&index, (uint64_t)(slot % 2) << 20 | 5, slot); /* one chain, two hashes */
    assert_slots(&index, 5, (const uint32_t[]){6, 4, 2, 0}, 4);
    assert_slots(&index, 1 << 20 | 5, (const uint32_t[]){7, 5, 3, 1}, 4);
    hash_index_remove(&index, 7);
    hash_index_remove(&index, 2);
    hash_index_remove(&index, 0);
    assert_slots(&index, 5, (const uint32_t[]){6, 4}, 2);
    assert_slots(&index, 1 << 20 | 5, (const uint32_t[]){5, 3, 1}, 3);
    hash_index_check(&index);
    hash_index_done(&index);
}

TEST(test_hash_index__current_slot_may_go_during_a_walk)
{
    struct hash_index index;
    assert_int_equal(hash_index_init(&index, 8), 0);
    for (uint32_t slot = 0; slot < 8; slot++)
        hash_index_add(&index, 9, slot);
    uint32_t visited = 0;
    for (uint32_t slot = hash_index_first(&index, 9), next; slot != SLOT_NONE; slot = next) {
        next = hash_index_next(&index, slot);
        if (slot % 2 == 1)
            hash_index_remove(&index, slot);
        visited++;
    }
    assert_int_equal(visited, 8);
    assert_slots(&index, 9, (const uint32_t[]){6, 4, 2, 0}, 4);
    hash_index_done(&index);
}

TEST(test_hash_index__chains_follow_what_is_in_it)
{
    enum { SLOTS = 1000 };
    struct hash_index index;
    struct prng prng = {5};
    assert_int_equal(hash_index_init(&index, SLOTS), 0);
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        hash_index_add(&index, prng_next(&prng), slot);
        assert_true(index.chain_count >= index.count);
        assert_true(index.chain_count <= index.count + 16);
        hash_index_check(&index);
    }
    hash_index_done(&index);
}

TEST(test_hash_index__links_in_a_table_leave_elements_and_slots_alone)
{
    enum { SLOTS = 300 };
    struct table table;
    struct hash_index index;
    assert_int_equal(table_init_linked(&table, SLOTS, sizeof(uint32_t)), 0);
    assert_int_equal(hash_index_init_in(&index, &table), 0);
    for (uint32_t i = 0; i < 3 * SLOTS; i++) {
        if (table.count == SLOTS) { /* one in two goes, in another order than they came */
            for (uint32_t slot = 1; slot < SLOTS; slot += 2) {
                hash_index_remove(&index, slot);
                table_remove(&table, slot);
            }
            table_check(&table);
            hash_index_check(&index);
        }
        uint32_t slot = table_add(&table);
        assert_int_equal(*(uint32_t *)table_at(&table, slot), 0);
        memset(table_at(&table, slot), 0xff, sizeof(uint32_t));
        *(uint32_t *)table_at(&table, slot) = ~slot;
        hash_index_add(&index, slot % 100, slot);
    }
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        if (table_is_live(&table, slot)) {
            assert_int_equal(*(uint32_t *)table_at(&table, slot), ~slot);
            assert_true(hash_index_has(&index, slot % 100, slot));
        }
    table_check(&table);
    hash_index_check(&index);
    hash_index_done(&index);
    table_done(&table);
}

/* However many slots have one hash, one of them is removed in a step: 100,000 would walk over five
 * billion links, for minutes. */
TEST(test_hash_index__removing_costs_the_same_however_long_a_chain_is)
{
    enum { SLOTS = 100000 };
    struct hash_index index;
    assert_int_equal(hash_index_init(&index, SLOTS), 0);
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        hash_index_add(&index, 7, slot);
    for (uint32_t slot = 0; slot < SLOTS; slot++) /* the one at the end of the chain */
        hash_index_remove(&index, slot);
    assert_slots(&index, 7, NULL, 0);
    hash_index_check(&index);
    hash_index_done(&index);
}

/* Few hashes, so that many slots have the same; the chains grow to all there may be. */
static void check_random_history(bool is_in_table)
{
    enum { HASHES = 300, SLOTS = 700, STEPS = 60000 };
    static uint32_t model[HASHES][SLOTS], lengths[HASHES], hash_of[SLOTS];
    static uint64_t hashes[HASHES];
    struct prng prng = {3};
    struct table table = {0};
    struct hash_index index;
    if (is_in_table) {
        assert_int_equal(table_init_linked(&table, SLOTS, 12), 0);
        assert_int_equal(hash_index_init_in(&index, &table), 0);
    } else {
        assert_int_equal(hash_index_init(&index, SLOTS), 0);
    }
    memset(lengths, 0, sizeof lengths);
    for (uint32_t i = 0; i < HASHES; i++)
        hashes[i] = prng_next(&prng);
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        hash_of[slot] = SLOT_NONE;
    for (uint32_t step = 0; step < STEPS; step++) {
        uint32_t slot = (uint32_t)prng_below(&prng, SLOTS), hash = hash_of[slot];
        if (hash == SLOT_NONE) {
            hash = (uint32_t)prng_below(&prng, HASHES);
            memmove(model[hash] + 1, model[hash], lengths[hash] * sizeof model[0][0]);
            model[hash][0] = slot;
            lengths[hash]++;
            hash_of[slot] = hash;
            hash_index_add(&index, hashes[hash], slot);
        } else if (prng_below(&prng, 100) < 60) { /* so that it fills */
            continue;
        } else {
            uint32_t at = 0;
            while (model[hash][at] != slot)
                at++;
            lengths[hash]--;
            memmove(model[hash] + at, model[hash] + at + 1,
                    (lengths[hash] - at) * sizeof model[0][0]);
            hash_of[slot] = SLOT_NONE;
            hash_index_remove(&index, slot);
        }
        assert_slots(&index, hashes[hash], model[hash], lengths[hash]);
        if (step % 500 == 0)
            hash_index_check(&index);
    }
    assert_true(index.chain_count > 256);
    for (uint32_t i = 0; i < HASHES; i++)
        assert_slots(&index, hashes[i], model[i], lengths[i]);
    hash_index_done(&index);
    table_done(&table);
}

TEST(test_hash_index__random_history_matches_arrays)
{
    check_random_history(false);
    check_random_history(true);
}

TEST_MAIN(NULL, NULL, NULL, NULL)

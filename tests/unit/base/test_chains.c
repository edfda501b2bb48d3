/*
 * test_chains.c -- chains hold exactly the slots that were added and not removed, newest first. A
 * random history over a few chains is compared with plain arrays.
 */
#include "base/chains.h"
#include "base/prng.h"
#include "base/table.h"
#include "unit/test.h"

static void assert_chain(const struct chains *chains, uint32_t chain, const uint32_t *slots,
                         uint32_t count)
{
    uint32_t slot = chains_first(chains, chain);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(slot, slots[i]);
        slot = chains_next(chains, slot);
    }
    assert_int_equal(slot, SLOT_NONE);
}

TEST(test_chains__new_ones_are_empty)
{
    struct chains chains;
    assert_int_equal(chains_init(&chains, 3, 10), 0);
    for (uint32_t chain = 0; chain < 3; chain++)
        assert_chain(&chains, chain, NULL, 0);
    chains_done(&chains);
    assert_int_equal(chains_init(&chains, 0, 0), 0);
    chains_done(&chains);
    chains_done(&chains); /* a done one may be done again */
}

TEST(test_chains__newest_first_and_removal_anywhere)
{
    for (uint32_t removed = 0; removed < 4; removed++) {
        struct chains chains;
        assert_int_equal(chains_init(&chains, 2, 5), 0);
        for (uint32_t slot = 0; slot < 4; slot++)
            chains_add(&chains, 1, slot);
        assert_chain(&chains, 1, (const uint32_t[]){3, 2, 1, 0}, 4);
        chains_remove(&chains, 1, removed);
        uint32_t rest[3], count = 0;
        for (uint32_t slot = 4; slot-- > 0;)
            if (slot != removed)
                rest[count++] = slot;
        assert_chain(&chains, 1, rest, 3);
        assert_chain(&chains, 0, NULL, 0);
        chains_done(&chains);
    }
}

TEST(test_chains__current_slot_may_go_during_a_walk)
{
    struct chains chains;
    assert_int_equal(chains_init(&chains, 1, 8), 0);
    for (uint32_t slot = 0; slot < 8; slot++)
        chains_add(&chains, 0, slot);
    uint32_t visited = 0;
    for (uint32_t slot = chains_first(&chains, 0), next; slot != SLOT_NONE; slot = next) {
        next = chains_next(&chains, slot);
        if (slot % 2 == 1)
            chains_remove(&chains, 0, slot);
        visited++;
    }
    assert_int_equal(visited, 8);
    assert_chain(&chains, 0, (const uint32_t[]){6, 4, 2, 0}, 4);
    chains_done(&chains);
}

TEST(test_chains__random_history_matches_arrays)
{
    enum { CHAIN_MAX = 5, SLOT_MAX = 40, STEPS = 20000 };
    static uint32_t model[CHAIN_MAX][SLOT_MAX], lengths[CHAIN_MAX], chain_of[SLOT_MAX];
    memset(lengths, 0, sizeof lengths);
    for (uint32_t slot = 0; slot < SLOT_MAX; slot++)
        chain_of[slot] = SLOT_NONE;
    struct chains chains;
    assert_int_equal(chains_init(&chains, CHAIN_MAX, SLOT_MAX), 0);
    struct prng prng = {3};
    for (uint32_t step = 0; step < STEPS; step++) {
        uint32_t slot = (uint32_t)prng_below(&prng, SLOT_MAX), chain = chain_of[slot];
        if (chain == SLOT_NONE) {
            chain = (uint32_t)prng_below(&prng, CHAIN_MAX);
            memmove(model[chain] + 1, model[chain], lengths[chain] * sizeof model[0][0]);
            model[chain][0] = slot;
            lengths[chain]++;
            chain_of[slot] = chain;
            chains_add(&chains, chain, slot);
        } else {
            uint32_t at = 0;
            while (model[chain][at] != slot)
                at++;
            lengths[chain]--;
            memmove(model[chain] + at, model[chain] + at + 1,
                    (lengths[chain] - at) * sizeof model[0][0]);
            chain_of[slot] = SLOT_NONE;
            chains_remove(&chains, chain, slot);
        }
        assert_chain(&chains, chain, model[chain], lengths[chain]);
    }
    for (uint32_t chain = 0; chain < CHAIN_MAX; chain++)
        assert_chain(&chains, chain, model[chain], lengths[chain]);
    chains_done(&chains);
}

TEST_MAIN(NULL, NULL, NULL, NULL)

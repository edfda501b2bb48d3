/*
 * test_prng.c -- the generator is splitmix64: a seed of a failed simulation must name the same
 * history on every machine. The expected numbers are the published sequence for seed 1234567.
 */
#include "base/prng.h"
#include "unit/test.h"

TEST(test_prng__is_splitmix64)
{
    struct prng prng = {1234567};
    assert_true(prng_next(&prng) == UINT64_C(6457827717110365317));
    assert_true(prng_next(&prng) == UINT64_C(3203168211198807973));
    assert_true(prng_next(&prng) == UINT64_C(9817491932198370423));
}

TEST(test_prng__below_stays_below_and_reaches_all)
{
    struct prng prng = {1};
    uint32_t seen[7] = {0};
    for (uint32_t i = 0; i < 7000; i++) {
        uint64_t number = prng_below(&prng, 7);
        assert_true(number < 7);
        seen[number]++;
    }
    for (uint32_t i = 0; i < 7; i++)
        assert_in_range(seen[i], 800, 1200);
}

TEST(test_prng__chance_is_in_percent)
{
    struct prng prng = {1};
    uint32_t yes = 0;
    for (uint32_t i = 0; i < 10000; i++) {
        assert_false(prng_chance(&prng, 0));
        assert_true(prng_chance(&prng, 100));
        yes += prng_chance(&prng, 30);
    }
    assert_in_range(yes, 2700, 3300);
}

TEST_MAIN(NULL, NULL, NULL, NULL)

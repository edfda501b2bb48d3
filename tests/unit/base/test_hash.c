/*
 * test_hash.c -- the hash is SipHash-1-3 with the documented key, and folding makes all spellings
 * of a name hash alike.
 *
 * A second SipHash, written here from the paper and parametrised by its rounds, is first checked
 * with the paper's own test value for SipHash-2-4 (appendix A) and then compared with hash.c over
 * every length up to 300.
 */
#include "base/hash.h"
#include "unit/test.h"

static uint64_t rotated(uint64_t value, unsigned bits)
{
    return value << bits | value >> (64 - bits);
}

static void rounds(uint64_t v[static 4], unsigned count)
{
    while (count-- > 0) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotated(v[1], 13) ^ v[0];
        v[3] = rotated(v[3], 16) ^ v[2];
        v[0] = rotated(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = rotated(v[1], 17) ^ v[2];
        v[3] = rotated(v[3], 21) ^ v[0];
        v[2] = rotated(v[2], 32);
    }
}

static uint64_t siphash(unsigned compression, unsigned finalization, uint64_t key0, uint64_t key1,
                        struct bytes data)
{
    uint64_t v[4] = {
        key0 ^ UINT64_C(0x736f6d6570736575),
        key1 ^ UINT64_C(0x646f72616e646f6d),
        key0 ^ UINT64_C(0x6c7967656e657261),
        key1 ^ UINT64_C(0x7465646279746573),
    };
    uint32_t word_count = data.len / 8 + 1;
    for (uint32_t w = 0; w < word_count; w++) {
        uint64_t word = w + 1 == word_count ? (uint64_t)(data.len & 0xff) << 56 : 0;
        for (uint32_t i = 0; i < 8 && 8 * w + i < data.len; i++)
            word |= (uint64_t)data.at[8 * w + i] << 8 * i;
        v[3] ^= word;
        rounds(v, compression);
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    rounds(v, finalization);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static uint64_t key1_of(uint64_t seed)
{
    return seed * UINT64_C(0x9e3779b97f4a7c15) ^ UINT64_C(0x5851f42d4c957f2d);
}

TEST(test_hash__reference_matches_the_paper)
{
    uint8_t data[15];
    for (uint8_t i = 0; i < sizeof data; i++)
        data[i] = i;
    uint64_t hash = siphash(2, 4, UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908),
                            (struct bytes){data, sizeof data});
    assert_true(hash == UINT64_C(0xa129ca6149be45e5));
}

TEST(test_hash__is_siphash_1_3)
{
    uint8_t data[300];
    for (uint32_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 7 + 0x41);
    const uint64_t seeds[] = {0, 1, UINT64_C(0x0123456789abcdef), UINT64_MAX};
    for (size_t s = 0; s < sizeof seeds / sizeof seeds[0]; s++) {
        for (uint32_t len = 0; len <= sizeof data; len++) {
            struct bytes view = {data, len};
            uint64_t expected = siphash(1, 3, seeds[s], key1_of(seeds[s]), view);
            assert_true(hash_bytes(seeds[s], view) == expected);
        }
    }
    assert_true(hash_bytes(1, (struct bytes){0}) == hash_bytes(1, bytes_of_text("")));
}

TEST(test_hash__a_nul_behind_a_name_is_another_name)
{
    struct bytes name = {(const uint8_t *)"client\0", 6}, longer = {name.at, 7};
    assert_true(hash_bytes(5, name) != hash_bytes(5, longer));
}

TEST(test_hash__mix_depends_on_both)
{
    assert_true(hash_mix(1, 2) == hash_mix(1, 2));
    assert_true(hash_mix(1, 2) != hash_mix(2, 1));
    assert_true(hash_mix(1, 2) != hash_mix(1, 3));
    /* Chains use the low bits: numbers that differ only in high ones must spread. */
    uint32_t buckets[16] = {0};
    for (uint64_t i = 0; i < 16000; i++)
        buckets[hash_mix(1, i << 40) & 15]++;
    for (uint32_t i = 0; i < 16; i++)
        assert_in_range(buckets[i], 800, 1200);
}

/* Tables use the low bits: numbers that differ in a few bits anywhere spread, with any seed. */
TEST(test_hash__numbers_spread)
{
    const uint64_t seeds[] = {0, 1, UINT64_C(0x8000000000000000), UINT64_C(0x123456789abcdef),
                              UINT64_MAX};
    for (size_t s = 0; s < sizeof seeds / sizeof seeds[0]; s++) {
        for (unsigned shift = 0; shift <= 48; shift += 16) {
            uint32_t buckets[16] = {0}, changed = 0;
            for (uint64_t i = 0; i < 16000; i++) {
                uint64_t hash = hash_number(seeds[s], i << shift);
                buckets[hash & 15]++;
                changed += hash != hash_number(seeds[s] ^ 2, i << shift);
            }
            assert_true(changed > 15990);
            for (uint32_t i = 0; i < 16; i++)
                assert_in_range(buckets[i], 800, 1200);
        }
    }
}

/* What differs, in one bit or in how much there is of it, has another hash; so has another seed.
 * Tables use the low bits: they spread. */
TEST(test_hash__keys_depend_on_every_bit)
{
    uint8_t data[70] = {0};
    for (uint32_t len = 0; len < sizeof data; len++) {
        struct bytes key = {data, len};
        uint64_t hash = hash_key(9, key);
        uint32_t buckets[4] = {0};
        assert_true(hash != hash_key(8, key));
        assert_true(hash != hash_key(9, (struct bytes){data, len + 1}));
        for (uint32_t bit = 0; bit < 8 * len; bit++) {
            data[bit / 8] ^= (uint8_t)(1 << bit % 8);
            uint64_t other = hash_key(9, key);
            assert_true(other != hash);
            buckets[other & 3]++;
            data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        for (uint32_t i = 0; i < 4 && len >= 50; i++)
            assert_in_range(buckets[i], len, 3 * len);
    }
    assert_true(hash_key(1, (struct bytes){0}) == hash_key(1, bytes_of_text("")));
}

/* Handles of one file system differ in a few bytes. */
TEST(test_hash__similar_keys_spread)
{
    const uint64_t seeds[] = {0, 1, UINT64_C(0x8000000000000000), UINT64_MAX};
    for (size_t s = 0; s < sizeof seeds / sizeof seeds[0]; s++)
        for (uint32_t at = 0; at <= 28; at += 4) {
            uint8_t handle[32] = {1, 0, 7};
            uint32_t buckets[16] = {0};
            for (uint32_t i = 0; i < 16000; i++) {
                store_be32(handle + at, i);
                buckets[hash_key(seeds[s], (struct bytes){handle, sizeof handle}) & 15]++;
            }
            for (uint32_t i = 0; i < 16; i++)
                assert_in_range(buckets[i], 800, 1200);
        }
}

TEST_MAIN(NULL, NULL, NULL, NULL)

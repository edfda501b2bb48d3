/*
 * hash.c -- see hash.h.
 *
 * SipHash-1-3: one round per eight bytes and three at the end. The single 64-bit seed is spread
 * into the two key words by a fixed odd multiplier.
 *
 * hash_key multiplies two words at a time, each made secret first: one by a factor that follows
 * from the seed, the other by the hash of what came before. Nobody can choose a word that makes the
 * product zero, and with it forgets what came before.
 */
#include "base/hash.h"

#include "base/sip.h"

static struct sip start(uint64_t seed)
{
    return sip_begin(seed, seed * UINT64_C(0x9e3779b97f4a7c15) ^ UINT64_C(0x5851f42d4c957f2d));
}

uint64_t hash_bytes(uint64_t seed, struct bytes data)
{
    struct sip s = start(seed);
    uint64_t last = sip_bytes(&s, data, 1);
    return sip_end(&s, last, 1, 3);
}

uint64_t hash_mix(uint64_t seed, uint64_t value)
{
    struct sip s = start(seed);
    return sip_end(&s, value, 1, 3);
}

/* The last bytes, up to sixteen, as two words; they overlap where there are less. */
static void last_words(const uint8_t *at, uint32_t len, uint64_t ret[static 2])
{
    if (len >= 8) {
        ret[0] = sip_whole_word_of(at);
        ret[1] = sip_whole_word_of(at + len - 8);
    } else if (len >= 4) {
        ret[0] = load_be32(at);
        ret[1] = load_be32(at + len - 4);
    } else {
        ret[0] = len > 0 ? (uint64_t)at[0] << 16 | (uint64_t)at[len / 2] << 8 | at[len - 1] : 0;
        ret[1] = 0;
    }
}

uint64_t hash_key(uint64_t seed, struct bytes data)
{
    uint64_t factor = (seed * UINT64_C(0x9e3779b97f4a7c15)) ^ UINT64_C(0xa0761d6478bd642e);
    uint64_t hash = seed ^ UINT64_C(0xe7037ed1a0b428db), last[2];
    const uint8_t *at = data.at;
    uint32_t left = data.len;
    for (; left > 16; left -= 16, at += 16)
        hash = hash_fold(sip_whole_word_of(at) ^ factor, sip_whole_word_of(at + 8) ^ hash);
    last_words(at, left, last);
    hash = hash_fold(last[0] ^ factor, last[1] ^ hash);
    return hash_fold(hash ^ data.len, factor | 1);
}

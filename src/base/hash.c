/*
 * hash.c -- SipHash-1-3 over byte views, written from the algorithm's description.
 *
 * One compression round per eight bytes and three at the end; the length goes into the top byte of
 * the last word, so that a name and the same name with a NUL behind it differ. The single 64-bit
 * seed is spread into the two key words by a fixed odd multiplier.
 */
#include "base/hash.h"

struct sip {
    uint64_t v0, v1, v2, v3;
};

static inline uint64_t rotate(uint64_t value, unsigned bits)
{
    return value << bits | value >> (64 - bits);
}

static inline void sip_round(struct sip *s)
{
    s->v0 += s->v1;
    s->v1 = rotate(s->v1, 13) ^ s->v0;
    s->v0 = rotate(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = rotate(s->v3, 16) ^ s->v2;
    s->v0 += s->v3;
    s->v3 = rotate(s->v3, 21) ^ s->v0;
    s->v2 += s->v1;
    s->v1 = rotate(s->v1, 17) ^ s->v2;
    s->v2 = rotate(s->v2, 32);
}

static inline void sip_word(struct sip *s, uint64_t word)
{
    s->v3 ^= word;
    sip_round(s);
    s->v0 ^= word;
}

static struct sip sip_start(uint64_t seed)
{
    uint64_t key0 = seed, key1 = seed * UINT64_C(0x9e3779b97f4a7c15) ^ UINT64_C(0x5851f42d4c957f2d);
    return (struct sip){
        key0 ^ UINT64_C(0x736f6d6570736575),
        key1 ^ UINT64_C(0x646f72616e646f6d),
        key0 ^ UINT64_C(0x6c7967656e657261),
        key1 ^ UINT64_C(0x7465646279746573),
    };
}

static uint64_t sip_end(struct sip *s, uint64_t last)
{
    sip_word(s, last);
    s->v2 ^= 0xff;
    sip_round(s);
    sip_round(s);
    sip_round(s);
    return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

/* Up to eight bytes as one little-endian word. */
static inline uint64_t word_of(const uint8_t *at, uint32_t len)
{
    uint64_t word = 0;
    for (uint32_t i = 0; i < len; i++)
        word |= (uint64_t)at[i] << (8 * i);
    return word;
}

uint64_t hash_bytes(uint64_t seed, struct bytes data)
{
    struct sip s = sip_start(seed);
    uint32_t at = 0;
    for (; data.len - at >= 8; at += 8)
        sip_word(&s, word_of(data.at + at, 8));
    uint64_t rest =
        data.len > at ? word_of(data.at + at, data.len - at) : 0; /* no bytes: no pointer */
    return sip_end(&s, rest | (uint64_t)data.len << 56);
}

uint64_t hash_mix(uint64_t seed, uint64_t value)
{
    struct sip s = sip_start(seed);
    return sip_end(&s, value);
}

/*
 * hash.c -- SipHash-1-3 over byte views.
 *
 * One round per eight bytes and three at the end. The single 64-bit
 * seed is spread into the two key words by a fixed odd multiplier.
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

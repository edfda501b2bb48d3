/*
 * mac.c -- SipHash-2-4 with its full 128-bit key, written from the algorithm's description.
 *
 * Two rounds per eight bytes and four at the end: twice what hash.c does, which keeps tables
 * balanced and proves nothing to anybody.
 */
#include "base/mac.h"

struct sip {
    uint64_t v0, v1, v2, v3;
};

static uint64_t rotate(uint64_t value, unsigned bits)
{
    return value << bits | value >> (64 - bits);
}

static void rounds(struct sip *s, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
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
}

static void add_word(struct sip *s, uint64_t word)
{
    s->v3 ^= word;
    rounds(s, 2);
    s->v0 ^= word;
}

static uint64_t word_of(const uint8_t *at, uint32_t len)
{
    uint64_t word = 0;
    for (uint32_t i = 0; i < len; i++)
        word |= (uint64_t)at[i] << (8 * i);
    return word;
}

uint64_t mac_of(const struct mac_key *key, struct bytes data)
{
    struct sip s = {
        key->words[0] ^ UINT64_C(0x736f6d6570736575),
        key->words[1] ^ UINT64_C(0x646f72616e646f6d),
        key->words[0] ^ UINT64_C(0x6c7967656e657261),
        key->words[1] ^ UINT64_C(0x7465646279746573),
    };
    uint32_t at = 0;
    for (; data.len - at >= 8; at += 8)
        add_word(&s, word_of(data.at + at, 8));
    uint64_t rest = data.len > at ? word_of(data.at + at, data.len - at) : 0;
    add_word(&s, rest | (uint64_t)data.len << 56);
    s.v2 ^= 0xff;
    rounds(&s, 4);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

/*
 * sip.h -- the rounds of SipHash, written from the algorithm's description; for hash.c and mac.c,
 * which say how many of them and with which key. Inline, because every look-up hashes.
 *
 * The length goes into the top byte of the last word, so that a name and the same name with a NUL
 * behind it differ.
 */
#ifndef BASE_SIP_H
#define BASE_SIP_H

#include "base/bytes.h"

struct sip {
    uint64_t v0, v1, v2, v3;
};

static inline uint64_t sip_rotate(uint64_t value, unsigned bits)
{
    return value << bits | value >> (64 - bits);
}

static inline void sip_rounds(struct sip *s, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        s->v0 += s->v1;
        s->v1 = sip_rotate(s->v1, 13) ^ s->v0;
        s->v0 = sip_rotate(s->v0, 32);
        s->v2 += s->v3;
        s->v3 = sip_rotate(s->v3, 16) ^ s->v2;
        s->v0 += s->v3;
        s->v3 = sip_rotate(s->v3, 21) ^ s->v0;
        s->v2 += s->v1;
        s->v1 = sip_rotate(s->v1, 17) ^ s->v2;
        s->v2 = sip_rotate(s->v2, 32);
    }
}

static inline struct sip sip_begin(uint64_t key0, uint64_t key1)
{
    return (struct sip){
        key0 ^ UINT64_C(0x736f6d6570736575),
        key1 ^ UINT64_C(0x646f72616e646f6d),
        key0 ^ UINT64_C(0x6c7967656e657261),
        key1 ^ UINT64_C(0x7465646279746573),
    };
}

static inline void sip_word(struct sip *s, uint64_t word, unsigned rounds)
{
    s->v3 ^= word;
    sip_rounds(s, rounds);
    s->v0 ^= word;
}

/* Up to eight bytes as one little-endian word. */
static inline uint64_t sip_word_of(const uint8_t *at, uint32_t len)
{
    uint64_t word = 0;
    for (uint32_t i = 0; i < len; i++)
        word |= (uint64_t)at[i] << (8 * i);
    return word;
}

/* The same of eight, written so that compilers make one load of it. */
static inline uint64_t sip_whole_word_of(const uint8_t *at)
{
    return (uint64_t)at[0] | (uint64_t)at[1] << 8 | (uint64_t)at[2] << 16 | (uint64_t)at[3] << 24 |
           (uint64_t)at[4] << 32 | (uint64_t)at[5] << 40 | (uint64_t)at[6] << 48 |
           (uint64_t)at[7] << 56;
}

/* All but the last word, which it returns for sip_end. */
static inline uint64_t sip_bytes(struct sip *s, struct bytes data, unsigned rounds)
{
    uint32_t at = 0;
    for (; data.len - at >= 8; at += 8)
        sip_word(s, sip_whole_word_of(data.at + at), rounds);
    uint64_t rest =
        data.len > at ? sip_word_of(data.at + at, data.len - at) : 0; /* or no pointer */
    return rest | (uint64_t)data.len << 56;
}

static inline uint64_t sip_end(struct sip *s, uint64_t last, unsigned rounds, unsigned end_rounds)
{
    sip_word(s, last, rounds);
    s->v2 ^= 0xff;
    sip_rounds(s, end_rounds);
    return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

#endif

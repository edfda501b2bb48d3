/*
 * sha256.c -- see sha256.h.
 *
 * The message is taken in blocks of 64 bytes; the last one or two are made here, from what is left,
 * a one bit, zeros, and the length in bits. The constants are the first 32 bits of the fractions of
 * square and cube roots of the first primes, as the standard lists them.
 */
#include "admin/sha256.h"

#include <string.h>

enum { BLOCK = 64, ROUNDS = 64, WORDS = 8, LENGTH_AT = BLOCK - 8 };

static const uint32_t round_constants[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t word, unsigned count)
{
    return word >> count | word << (32 - count);
}

static void extend(const uint8_t block[static BLOCK], uint32_t schedule[static ROUNDS])
{
    for (size_t i = 0; i < 16; i++)
        schedule[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
                      (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < ROUNDS; i++) {
        uint32_t early = schedule[i - 15], late = schedule[i - 2];
        schedule[i] = schedule[i - 16] + schedule[i - 7] +
                      (rotate(early, 7) ^ rotate(early, 18) ^ early >> 3) +
                      (rotate(late, 17) ^ rotate(late, 19) ^ late >> 10);
    }
}

static void take_block(uint32_t hash[static WORDS], const uint8_t block[static BLOCK])
{
    uint32_t schedule[ROUNDS], now[WORDS];
    extend(block, schedule);
    memcpy(now, hash, sizeof now);
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t a = now[0], b = now[1], c = now[2], e = now[4], f = now[5], g = now[6];
        uint32_t first = now[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
                         ((e & f) ^ (~e & g)) + round_constants[i] + schedule[i];
        uint32_t second =
            (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        memmove(now + 1, now, sizeof now - sizeof now[0]);
        now[4] += first;
        now[0] = first + second;
    }
    for (int i = 0; i < WORDS; i++)
        hash[i] += now[i];
}

void sha256(const void *data, size_t len, uint8_t ret[static SHA256_LEN])
{
    uint32_t hash[WORDS] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                            0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    const uint8_t *at = data;
    size_t left = len;
    for (; left >= BLOCK; at += BLOCK, left -= BLOCK)
        take_block(hash, at);
    uint8_t last[2 * BLOCK] = {0};
    if (left > 0)
        memcpy(last, at, left);
    last[left] = 0x80;
    size_t end = left < LENGTH_AT ? BLOCK : 2 * BLOCK;
    uint64_t bits = (uint64_t)len * 8;
    for (int i = 0; i < 8; i++)
        last[end - 1 - (size_t)i] = (uint8_t)(bits >> 8 * i);
    for (size_t i = 0; i < end; i += BLOCK)
        take_block(hash, last + i);
    for (int i = 0; i < SHA256_LEN; i++)
        ret[i] = (uint8_t)(hash[i / 4] >> (24 - 8 * (i % 4)));
}

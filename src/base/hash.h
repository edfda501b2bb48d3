/*
 * hash.h -- a keyed hash for tables whose keys come from the network.
 *
 * SipHash-1-3: an attacker who does not know the seed cannot aim names at one chain. It is strong
 * enough for a hash to stand for what was hashed, as in a mark that says whose call it is. Where a
 * number is the key of a table, and what is found is compared, hash_number is enough: two
 * multiplications with secret factors.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "base/bytes.h"

uint64_t hash_bytes(uint64_t seed, struct bytes data);

/* Combine a running hash with one more number; for keys made of several parts. */
uint64_t hash_mix(uint64_t seed, uint64_t value);

/* The high and the low half of a product depend on all bits of both factors. */
static inline uint64_t hash_fold(uint64_t a, uint64_t b)
{
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* For a table: the place of a number. Nothing that is compared instead of the number. */
static inline uint64_t hash_number(uint64_t seed, uint64_t value)
{
    uint64_t factor = (seed * UINT64_C(0x9e3779b97f4a7c15)) | 1;
    uint64_t once = hash_fold(value ^ seed, factor ^ UINT64_C(0xa0761d6478bd642e));
    return hash_fold(once ^ UINT64_C(0xe7037ed1a0b428db), factor);
}

#endif

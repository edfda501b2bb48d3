/*
 * hash.h -- keyed hashes for tables whose keys come from the network: an attacker who does not know
 * the seed cannot aim names at one chain.
 *
 * hash_bytes and hash_mix are SipHash-1-3, strong enough for a hash to stand for what was hashed
 * also where somebody wants two things to be one. hash_key and hash_number, a multiplication with a
 * secret factor for each sixteen bytes, are for tables that compare what they find, and for marks
 * that can deceive nobody but who made them, or who shares their address and could send the same
 * call anyway: every call is hashed several times.
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

/* For a table: the place of these bytes. */
uint64_t hash_key(uint64_t seed, struct bytes data);

/* The same of a number. */
static inline uint64_t hash_number(uint64_t seed, uint64_t value)
{
    uint64_t factor = (seed * UINT64_C(0x9e3779b97f4a7c15)) | 1;
    uint64_t once = hash_fold(value ^ seed, factor ^ UINT64_C(0xa0761d6478bd642e));
    return hash_fold(once ^ UINT64_C(0xe7037ed1a0b428db), factor);
}

#endif

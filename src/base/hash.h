/*
 * hash.h -- a keyed hash for tables whose keys come from the network.
 *
 * SipHash-1-3: an attacker who does not know the seed cannot aim names at one chain.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "base/bytes.h"

uint64_t hash_bytes(uint64_t seed, struct bytes data);

/* Combine a running hash with one more number; for keys made of several parts. */
uint64_t hash_mix(uint64_t seed, uint64_t value);

#endif

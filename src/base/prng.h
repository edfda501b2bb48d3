/*
 * prng.h -- a small seeded generator (splitmix64): same seed, same numbers, everywhere.
 */
#ifndef BASE_PRNG_H
#define BASE_PRNG_H

#include <stdbool.h>
#include <stdint.h>

struct prng {
    uint64_t state;
};

static inline uint64_t prng_next(struct prng *prng)
{
    uint64_t z = prng->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* A number below `bound`, which must not be 0; the bias is far below what a simulation can see. */
static inline uint64_t prng_below(struct prng *prng, uint64_t bound)
{
    return prng_next(prng) % bound;
}

static inline bool prng_chance(struct prng *prng, uint32_t percent)
{
    return prng_below(prng, 100) < percent;
}

#endif

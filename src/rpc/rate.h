/*
 * rate.h -- how many messages an address may send us, in fixed memory (R-SEC-6).
 *
 * A message over UDP makes us send a call of our own to whatever source address it carries, so a
 * forged one uses us against somebody else. Each address may have `burst` at once and `per_second`
 * from then on.
 *
 * Addresses share buckets by a keyed hash: memory does not grow with their number, nobody can
 * choose whom it shares with, and sharing only ever lowers what one may send.
 */
#ifndef RPC_RATE_H
#define RPC_RATE_H

#include "base/address.h"

struct rate;

struct rate_limits {
    uint32_t bucket_count;
    uint32_t per_second; /* 1 to 1,000,000,000 */
    uint32_t burst;      /* at least 1 */
};

/* NULL when memory cannot be reserved. */
struct rate *rate_new(const struct rate_limits *limits, uint64_t seed);
void rate_free(struct rate *rate);

/* True, and counted, when one more is within the limit now. */
bool rate_allow(struct rate *rate, const struct address *from, uint64_t now_ns);

#endif

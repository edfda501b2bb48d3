/*
 * rate.c -- see rate.h.
 *
 * A bucket is one number: when it would be full again if nothing more came. A message moves it
 * later by the time that one message takes at the permitted rate; one that would move it more than
 * `burst` messages ahead of now is refused and moves nothing. That is a token bucket without a
 * count to refill.
 */
#include "rpc/rate.h"

#include "base/check.h"
#include "base/hash.h"
#include "base/units.h"

#include <stdlib.h>

struct rate {
    uint64_t *full_ns; /* by bucket; 0, or any time that is past: full now */
    uint64_t seed;
    uint64_t message_ns; /* what one message takes */
    uint64_t burst_ns;   /* what a burst takes */
    uint32_t bucket_count;
};

struct rate *rate_new(const struct rate_limits *limits, uint64_t seed)
{
    CHECK(limits->bucket_count > 0);
    CHECK(limits->per_second > 0 && limits->per_second <= SECOND_NS);
    CHECK(limits->burst > 0);
    struct rate *rate = calloc(1, sizeof *rate);
    if (rate == NULL)
        return NULL;
    rate->seed = seed;
    rate->message_ns = SECOND_NS / limits->per_second;
    rate->burst_ns = rate->message_ns * limits->burst;
    rate->bucket_count = limits->bucket_count;
    rate->full_ns = calloc(limits->bucket_count, sizeof *rate->full_ns);
    if (rate->full_ns == NULL) {
        rate_free(rate);
        return NULL;
    }
    return rate;
}

void rate_free(struct rate *rate)
{
    if (rate == NULL)
        return;
    free(rate->full_ns);
    free(rate);
}

bool rate_allow(struct rate *rate, const struct address *from, uint64_t now_ns)
{
    uint64_t hash = hash_bytes(rate->seed, (struct bytes){(const uint8_t *)from, sizeof *from});
    uint64_t *full_ns = &rate->full_ns[hash % rate->bucket_count];
    uint64_t next_ns = (*full_ns > now_ns ? *full_ns : now_ns) + rate->message_ns;
    if (next_ns > now_ns + rate->burst_ns)
        return false;
    *full_ns = next_ns;
    return true;
}

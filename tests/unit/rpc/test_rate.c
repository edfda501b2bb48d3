/*
 * test_rate.c -- how many messages an address may send: the burst, the rate behind it, that one
 * address does not spend another's share, and that the same history has the same answers.
 */
#include "rpc/rate.h"

#include "base/prng.h"
#include "base/units.h"
#include "unit/test.h"

static const struct rate_limits limits = {.bucket_count = 4096, .per_second = 1000, .burst = 2000};

static struct address host(uint32_t number)
{
    const uint8_t bytes[] = {10, (uint8_t)(number >> 16), (uint8_t)(number >> 8), (uint8_t)number};
    return address_v4(bytes);
}

/* How many of `count` are let through now. */
static uint32_t try(struct rate *rate, const struct address *from, uint32_t count, uint64_t now_ns)
{
    uint32_t allowed = 0;
    for (uint32_t i = 0; i < count; i++)
        allowed += rate_allow(rate, from, now_ns);
    return allowed;
}

TEST(test_rate__a_burst_then_the_rate)
{
    const uint64_t starts_ns[] = {0, 1, 5000 * MS_NS, UINT64_C(1) << 60};
    for (size_t i = 0; i < sizeof starts_ns / sizeof starts_ns[0]; i++) {
        struct rate *rate = rate_new(&limits, 7);
        struct address from = host(1);
        uint64_t now_ns = starts_ns[i];
        assert_int_equal(try(rate, &from, 5000, now_ns), 2000);
        assert_int_equal(try(rate, &from, 10, now_ns + MS_NS - 1), 0);
        assert_int_equal(try(rate, &from, 10, now_ns + MS_NS), 1);
        assert_int_equal(try(rate, &from, 1000, now_ns + 501 * MS_NS), 500);
        /* What was refused costs nothing; a rest of two seconds is a whole burst. */
        now_ns += 501 * MS_NS;
        assert_int_equal(try(rate, &from, 5000, now_ns + 2000 * MS_NS), 2000);
        /* A longer rest is no larger burst. */
        assert_int_equal(try(rate, &from, 5000, now_ns + 60000 * MS_NS), 2000);
        rate_free(rate);
    }
}

TEST(test_rate__an_honest_sender_is_never_refused)
{
    struct rate *rate = rate_new(&limits, 7);
    struct address from = host(1);
    for (uint64_t i = 0; i < 100000; i++)
        assert_true(rate_allow(rate, &from, i * MS_NS));
    rate_free(rate);
}

/* One that sends without end does not spend what others have, unless they share a bucket. */
TEST(test_rate__addresses_are_apart)
{
    struct rate *rate = rate_new(&limits, 7);
    struct address flood = host(1);
    assert_int_equal(try(rate, &flood, 100000, 0), 2000);
    uint32_t unharmed = 0;
    for (uint32_t i = 2; i < 1002; i++) {
        struct address other = host(i);
        unharmed += try(rate, &other, 1, 0);
    }
    assert_in_range(unharmed, 990, 1000);
    /* The same bytes in another family are another address. */
    uint8_t v6[16] = {10, 0, 0, 1};
    struct address other = address_v6(v6, NULL);
    assert_int_equal(try(rate, &other, 1, 0), 1);
    rate_free(rate);
}

/* With one bucket everybody shares it: never more than the limit leaves, whoever sends. */
TEST(test_rate__buckets_are_shared)
{
    struct rate *rate = rate_new(&(struct rate_limits){1, 10, 5}, 7);
    uint32_t allowed = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        struct address from = host(i);
        allowed += try(rate, &from, 1, i * MS_NS); /* for a second */
    }
    assert_in_range(allowed, 14, 15);
    rate_free(rate);
}

TEST(test_rate__the_same_history_has_the_same_answers)
{
    struct rate *one = rate_new(&limits, 7), *two = rate_new(&limits, 7);
    struct prng prng = {3};
    uint64_t now_ns = 0;
    uint32_t refused = 0;
    for (uint32_t i = 0; i < 50000; i++) {
        struct address from = host((uint32_t)prng_below(&prng, 3));
        now_ns += prng_below(&prng, MS_NS / 4);
        bool allowed = rate_allow(one, &from, now_ns);
        refused += !allowed;
        assert_int_equal(rate_allow(two, &from, now_ns), allowed);
    }
    assert_true(refused > 0);
    rate_free(one);
    rate_free(two);
}

TEST_MAIN(NULL, NULL, NULL, NULL)

/*
 * test_mac.c -- SipHash-2-4 against the value that its authors print.
 */
#include "base/mac.h"

#include "../test.h"

static uint64_t of_counting_bytes(uint32_t len)
{
    const struct mac_key key = {{UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)}};
    uint8_t data[64];
    for (uint8_t i = 0; i < sizeof data; i++)
        data[i] = i;
    return mac_of(&key, (struct bytes){data, len});
}

TEST(test_mac__published_values)
{
    assert_int_equal(of_counting_bytes(0), UINT64_C(0x726fdb47dd0e0e31));
    assert_int_equal(of_counting_bytes(1), UINT64_C(0x74f839c593dc67fd));
    assert_int_equal(of_counting_bytes(8), UINT64_C(0x93f5f5799a932462));
    assert_int_equal(of_counting_bytes(15), UINT64_C(0xa129ca6149be45e5));
}

TEST(test_mac__every_bit_of_the_key_counts)
{
    struct mac_key key = {{1, 2}};
    struct bytes data = bytes_of_text("handle");
    uint64_t mac = mac_of(&key, data);
    for (int bit = 0; bit < 128; bit++) {
        struct mac_key other = key;
        other.words[bit / 64] ^= UINT64_C(1) << bit % 64;
        assert_int_not_equal(mac_of(&other, data), mac);
    }
}

TEST_MAIN(NULL, NULL, NULL, NULL)

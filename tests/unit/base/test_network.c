/*
 * test_network.c -- a network is read as people write it, and has exactly the addresses whose first
 * bits agree with its own.
 */
#include "base/network.h"
#include "unit/test.h"

static bool has(const char *network_text, const char *address_text)
{
    struct network network;
    struct address address;
    assert_int_equal(network_parse(network_text, &network), NETWORK_OK);
    assert_true(address_parse(bytes_of_text(address_text), &address));
    return network_has(&network, &address);
}

TEST(test_network__has_what_agrees_in_its_bits)
{
    assert_true(has("10.0.0.0/8", "10.255.0.1"));
    assert_false(has("10.0.0.0/8", "11.0.0.1"));
    assert_true(has("192.0.2.128/25", "192.0.2.200"));
    assert_false(has("192.0.2.128/25", "192.0.2.127"));
    assert_true(has("0.0.0.0/0", "203.0.113.9"));
    assert_true(has("2001:db8::/33", "2001:db8:7fff::1"));
    assert_false(has("2001:db8::/33", "2001:db8:8000::1"));
    assert_true(has("::/0", "2001:db8::1"));
}

TEST(test_network__families_do_not_mix)
{
    assert_false(has("0.0.0.0/0", "2001:db8::1"));
    assert_false(has("::/0", "192.0.2.1"));
    assert_true(has("10.0.0.0/8", "::ffff:10.0.0.1")); /* IPv4, however it arrived */
}

TEST(test_network__netmasks)
{
    assert_true(has("10.1.0.0/255.255.0.0", "10.1.2.3"));
    assert_false(has("10.1.0.0/255.255.0.0", "10.2.2.3"));
    assert_true(has("10.1.0.0/0.0.0.0", "192.0.2.1"));
}

TEST(test_network__one_address)
{
    struct network network;
    assert_int_equal(network_parse("192.0.2.1", &network), NETWORK_OK);
    assert_true(network_is_address(&network));
    assert_int_equal(network_parse("2001:db8::1/128", &network), NETWORK_OK);
    assert_true(network_is_address(&network));
    assert_int_equal(network_parse("192.0.2.0/31", &network), NETWORK_OK);
    assert_false(network_is_address(&network));
    assert_false(has("192.0.2.1", "192.0.2.2"));
}

TEST(test_network__says_which_half_is_wrong)
{
    static const char *const addresses[] = {"", "/8", "ten/8", "10.0.0/8", "*", "10.0.0.0.0"};
    static const char *const lengths[] = {
        "10.0.0.0/",   "10.0.0.0/33", "10.0.0.0/8 ", "10.0.0.0/255.0.255.0",
        "10.0.0.0/-1", "::/129",      "::/ffff::",   "10.0.0.0/4294967304"};
    struct network network;
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++)
        assert_int_equal(network_parse(addresses[i], &network), NETWORK_BAD_ADDRESS);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
        assert_int_equal(network_parse(lengths[i], &network), NETWORK_BAD_LENGTH);
}

TEST_MAIN(NULL, NULL, NULL, NULL)

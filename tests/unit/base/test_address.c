/*
 * test_address.c -- addresses have one form in which they compare equal (R-ID-2): v4-mapped ones
 * are folded, scopes are kept where they mean something, and text and struct convert both ways.
 */
#include "base/address.h"
#include "unit/test.h"

#include <arpa/inet.h>

static struct address parse(const char *text)
{
    struct address address;
    assert_true(address_parse(bytes_of_text(text), &address));
    return address;
}

static void assert_text(const struct address *address, const char *expected)
{
    char text[ADDRESS_TEXT_MAX];
    address_text(address, text);
    assert_string_equal(text, expected);
}

TEST(test_address__has_no_padding)
{
    /* Equality and hashing are over the bytes of the struct. */
    assert_int_equal(sizeof(struct address), 16 + ADDRESS_ZONE_MAX + 4);
    assert_int_equal(sizeof(struct address) % 8, 0);
}

TEST(test_address__v4_mapped_is_v4)
{
    const uint8_t mapped[16] = {[10] = 0xff, [11] = 0xff, [12] = 192, 0, 2, 1};
    struct address folded = address_v6(mapped, "eth5");
    struct address plain = address_v4((const uint8_t[]){192, 0, 2, 1});
    assert_true(address_equal(&folded, &plain));
    assert_int_equal(folded.family, 4);
    assert_string_equal(folded.zone, "");

    struct address parsed = parse("::ffff:192.0.2.1");
    assert_true(address_equal(&parsed, &plain));

    /* One byte off the prefix is an IPv6 address like any other. */
    const uint8_t almost[16] = {[10] = 0xff, [11] = 0xfe, [12] = 192, 0, 2, 1};
    assert_int_equal(address_v6(almost, NULL).family, 6);
}

TEST(test_address__zone_only_on_link_local)
{
    struct address one = parse("fe80::1%eth0"), other = parse("fe80::1%eth1");
    assert_string_equal(one.zone, "eth0");
    assert_false(address_equal(&one, &other));
    struct address edge = parse("febf::1%br-lan.100");
    assert_string_equal(edge.zone, "br-lan.100");
    struct address beyond = parse("fec0::1%eth0");
    assert_string_equal(beyond.zone, "");
    struct address bare = address_without_zone(&one), plain = parse("fe80::1");
    assert_true(address_equal(&bare, &plain));
    struct address global = parse("2001:db8::1%eth0"), same = parse("2001:db8::1");
    assert_true(address_equal(&global, &same));
}

TEST(test_address__loopback)
{
    const char *yes[] = {"127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1"};
    const char *no[] = {"128.0.0.1", "126.255.255.255", "0.0.0.0", "::", "::2", "fe80::1%1"};
    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
        struct address address = parse(yes[i]);
        assert_true(address_is_loopback(&address));
    }
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++) {
        struct address address = parse(no[i]);
        assert_false(address_is_loopback(&address));
    }
    struct address none = {0};
    assert_false(address_is_loopback(&none));
}

TEST(test_address__text_and_back)
{
    const char *texts[] = {
        "0.0.0.0",    "255.255.255.255",
        "192.0.2.17", "::",
        "::1",        "2001:db8::17",
        "fe80::1%3",  "fe80:1111:2222:3333:4444:5555:6666:7777%enp65535s0f0np0",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct address address = parse(texts[i]);
        assert_text(&address, texts[i]);
    }
    struct address none = {0};
    assert_text(&none, "none");
    struct address mapped = parse("::ffff:192.0.2.1");
    assert_text(&mapped, "192.0.2.1");
}

TEST(test_address__ipv4_is_written_as_the_library_does)
{
    static const uint8_t numbers[] = {0, 9, 10, 99, 100, 109, 199, 200, 255};
    enum { COUNT = sizeof numbers / sizeof *numbers };
    for (uint32_t i = 0; i < COUNT * COUNT; i++) {
        const uint8_t bytes[4] = {numbers[i % COUNT], numbers[i / COUNT], numbers[i % COUNT], 1};
        char expected[INET_ADDRSTRLEN], text[ADDRESS_TEXT_MAX];
        struct address address = address_v4(bytes);
        address_text(&address, text);
        assert_string_equal(text, inet_ntop(AF_INET, bytes, expected, sizeof expected));
    }
}

TEST(test_address__what_is_no_literal_is_refused)
{
    const char *texts[] = {
        "",
        "localhost",
        "192.0.2",
        "192.0.2.256",
        "192.0.2.1 ",
        "192.0.2.1%3",
        "fe80::1%",
        "fe80::1%enp65535s0f0np01",
        "fe80::1%eth 0",
        "fe80::1%eth/0",
        "fe80::1%eth:0",
        "fe80::1%eth\"0",
        "fe80::1%eth\x1b",
        "fe80::1%\xc3\xa4",
        "fe80::1%3%4",
        "fe80::1::2",
        "[::1]",
        "1111:2222:3333:4444:5555:6666:7777:8888%000000000000000000000000000000000001",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct address address = {.family = 99};
        assert_false(address_parse(bytes_of_text(texts[i]), &address));
        assert_int_equal(address.family, 99);
    }
    /* A view is not a C string: a NUL in it must not end it early. */
    struct address address = {.family = 99};
    struct bytes with_nul = {(const uint8_t *)"127.0.0.1\0x", 11};
    assert_false(address_parse(with_nul, &address));
    assert_int_equal(address.family, 99);
}

TEST(test_address__host)
{
    static const char *const hosts[] = {"10.0.0.1", "127.0.0.1", "223.255.255.255", "1.0.0.0",
                                        "::1",      "fe80::1%2", "2001:db8::1"};
    static const char *const others[] = {"0.0.0.0", "0.1.2.3", "224.0.0.1", "255.255.255.255",
                                         "::",      "ff02::1", "fe80::1"};
    struct address address;
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        assert_true(address_parse(bytes_of_text(hosts[i]), &address));
        assert_true(address_is_host(&address));
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_true(address_parse(bytes_of_text(others[i]), &address));
        assert_false(address_is_host(&address));
    }
    const struct address none = {0};
    assert_false(address_is_host(&none));
}

TEST_MAIN(NULL, NULL, NULL, NULL)

/*
 * test_sockaddr.c -- shows that addresses survive the way to the kernel's form and back, and that
 * one host has one address, also when the kernel says it as IPv4 inside IPv6 (R-ID-2).
 */
#include "unit/test.h"
#include "wire/sockaddr.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <sys/un.h>

static struct address address_of(const char *text)
{
    struct address address;
    assert_true(address_parse(bytes_of_text(text), &address));
    return address;
}

TEST(test_sockaddr__there_and_back)
{
    static const char *const texts[] = {"127.0.0.1", "0.0.0.0", "255.255.255.255", "192.0.2.7",
                                        "::1",       "::",      "2001:db8::7",     "fe80::1"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct address address = address_of(texts[i]);
        struct sockaddr_storage name;
        memset(&name, 0xff, sizeof name);
        uint16_t port = 0;
        socklen_t len = sockaddr_of(&address, 12049, &name);
        bool is_v4 = address.family == 4;
        assert_int_equal(name.ss_family, is_v4 ? AF_INET : AF_INET6);
        assert_int_equal(len, is_v4 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
        struct address back = sockaddr_address((const struct sockaddr *)&name, &port);
        assert_true(address_equal(&back, &address));
        assert_int_equal(port, 12049);
    }
}

TEST(test_sockaddr__the_kernels_bytes)
{
    struct address address = address_of("192.0.2.7");
    struct sockaddr_storage name;
    (void)sockaddr_of(&address, 0x1234, &name);
    struct sockaddr_in in;
    memcpy(&in, &name, sizeof in);
    assert_int_equal(in.sin_port, htons(0x1234));
    assert_int_equal(in.sin_addr.s_addr, htonl(0xc0000207));
}

static struct sockaddr_storage name_of(const char *text, uint32_t index)
{
    struct sockaddr_in6 in6 = {
        .sin6_family = AF_INET6, .sin6_port = htons(5), .sin6_scope_id = index};
    struct sockaddr_storage name = {0};
    assert_int_equal(inet_pton(AF_INET6, text, &in6.sin6_addr), 1);
    memcpy(&name, &in6, sizeof in6);
    return name;
}

static uint32_t index_in(const struct sockaddr_storage *name)
{
    struct sockaddr_in6 in6;
    memcpy(&in6, name, sizeof in6);
    return in6.sin6_scope_id;
}

/* An interface is known by its name, which lasts, and not by its number (A15). */
TEST(test_sockaddr__the_link_of_an_address_is_a_name)
{
    uint16_t port;
    uint32_t index = if_nametoindex("lo");
    assert_true(index != 0);
    struct sockaddr_storage name = name_of("fe80::9", index), back;
    struct address address = sockaddr_address((const struct sockaddr *)&name, &port);
    assert_string_equal(address.zone, "lo");
    (void)sockaddr_of(&address, port, &back);
    assert_memory_equal(&back, &name, sizeof(struct sockaddr_in6));
    /* Of other addresses the number says only how they came. */
    name = name_of("2001:db8::9", index);
    address = sockaddr_address((const struct sockaddr *)&name, &port);
    assert_string_equal(address.zone, "");
}

TEST(test_sockaddr__nobody_is_on_a_link_that_is_gone)
{
    uint16_t port;
    struct sockaddr_storage name = name_of("fe80::9", 987654321);
    assert_int_equal(sockaddr_address((const struct sockaddr *)&name, &port).family, 0);
    struct address gone = address_of("fe80::9%no-such-link");
    (void)sockaddr_of(&gone, 5, &name);
    assert_int_equal(index_in(&name), 0); /* which the kernel refuses to send to */
}

/* Records of older programs have the number that a link had then. */
TEST(test_sockaddr__nobody_is_called_over_a_number)
{
    struct sockaddr_storage name;
    char text[32];
    (void)snprintf(text, sizeof text, "fe80::9%%%u", if_nametoindex("lo"));
    struct address stored = address_of(text);
    (void)sockaddr_of(&stored, 5, &name);
    assert_int_equal(index_in(&name), 0);
}

/* People may type a number; it is a name from then on. */
TEST(test_sockaddr__a_number_that_is_typed_becomes_a_name)
{
    char text[32];
    (void)snprintf(text, sizeof text, "fe80::9%%%u", if_nametoindex("lo"));
    struct address typed = address_of(text), named = sockaddr_typed(&typed);
    assert_string_equal(named.zone, "lo");
    static const char *const others[] = {"fe80::9%lo",         "fe80::9",
                                         "192.0.2.7",          "2001:db8::7",
                                         "fe80::9%4294967296", "fe80::9%999999999999999",
                                         "fe80::9%7x",         "fe80::9%987654321"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        typed = address_of(others[i]);
        named = sockaddr_typed(&typed);
        assert_true(address_equal(&typed, &named));
    }
}

TEST(test_sockaddr__mapped_is_v4)
{
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(700)};
    assert_int_equal(inet_pton(AF_INET6, "::ffff:192.0.2.7", &in6.sin6_addr), 1);
    struct sockaddr_storage name = {0};
    memcpy(&name, &in6, sizeof in6);
    uint16_t port = 0;
    struct address address = sockaddr_address((const struct sockaddr *)&name, &port);
    struct address v4 = address_of("192.0.2.7");
    assert_true(address_equal(&address, &v4));
    assert_int_equal(port, 700);
}

TEST(test_sockaddr__other_families_are_none)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX, .sun_path = "x"};
    struct sockaddr_storage name = {0};
    memcpy(&name, &un, sizeof un);
    uint16_t port = 9;
    assert_int_equal(sockaddr_address((const struct sockaddr *)&name, &port).family, 0);
    assert_int_equal(port, 0);
}

TEST_MAIN(NULL, NULL, NULL, NULL)

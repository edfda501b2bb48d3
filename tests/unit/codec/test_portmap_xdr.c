/*
 * test_portmap_xdr.c -- the portmapper's arguments and results against bytes written out by hand
 * from RFC 1833, cut and lengthened everywhere; network ids; universal addresses, good and bad.
 */
#include "codec/portmap_xdr.h"
#include "unit/test.h"

/* 100024 version 1 on TCP, port 12049 */
static const uint8_t mapping_bytes[] = {0, 1, 0x86, 0xb8, 0, 0, 0, 1, 0, 0, 0, 6, 0, 0, 0x2f, 0x11};

static const uint8_t rpcb_bytes[] = {
    0, 1, 0x86, 0xb8, 0,   0,   0,   4,                       /* prog, vers */
    0, 0, 0,    4,    't', 'c', 'p', '6',                     /* netid */
    0, 0, 0,    8,    ':', ':', '1', '.', '4', '7', '.', '1', /* "::1.47.1" */
    0, 0, 0,    5,    's', 'u', 'p', 'e', 'r', 0,   0,   0,   /* owner */
};

/* An exact copy, so that reading too far is seen by the sanitizer build. */
static uint8_t *copy_of(const uint8_t *bytes, uint32_t len)
{
    uint8_t *copy = malloc(len > 0 ? len : 1);
    assert_non_null(copy);
    if (len > 0)
        memcpy(copy, bytes, len);
    return copy;
}

static bool get_mapping(const uint8_t *bytes, uint32_t len, struct portmap_mapping *ret)
{
    uint8_t *copy = copy_of(bytes, len);
    struct xdr_in in = xdr_in_of((struct bytes){copy, len});
    bool is_good = portmap_xdr_get_mapping(&in, ret);
    free(copy);
    return is_good;
}

TEST(test_portmap_xdr__mapping)
{
    struct portmap_mapping mapping = {.prog = 77};
    uint8_t longer[sizeof mapping_bytes + 1] = {0};
    memcpy(longer, mapping_bytes, sizeof mapping_bytes);
    for (uint32_t len = 0; len < sizeof mapping_bytes; len++)
        assert_false(get_mapping(mapping_bytes, len, &mapping));
    assert_false(get_mapping(longer, sizeof longer, &mapping));
    assert_int_equal(mapping.prog, 77); /* untouched by failures */

    assert_true(get_mapping(mapping_bytes, sizeof mapping_bytes, &mapping));
    assert_int_equal(mapping.prog, 100024);
    assert_int_equal(mapping.vers, 1);
    assert_int_equal(mapping.prot, TRANSPORT_TCP);
    assert_int_equal(mapping.port, 12049);

    uint8_t memory[64];
    struct xdr_out out = xdr_out_of(memory, sizeof memory);
    portmap_xdr_put_mapping(&out, &mapping);
    assert_int_equal(xdr_out_len(&out), sizeof mapping_bytes);
    assert_memory_equal(memory, mapping_bytes, sizeof mapping_bytes);
}

static bool get_rpcb(const uint8_t *bytes, uint32_t len, struct portmap_rpcb *ret)
{
    uint8_t *copy = copy_of(bytes, len);
    struct xdr_in in = xdr_in_of((struct bytes){copy, len});
    bool is_good = portmap_xdr_get_rpcb(&in, ret);
    if (is_good) { /* views of the original instead, which lives on */
        ret->netid.at = bytes + (ret->netid.at - copy);
        ret->uaddr.at = bytes + (ret->uaddr.at - copy);
        ret->owner.at = bytes + (ret->owner.at - copy);
    }
    free(copy);
    return is_good;
}

TEST(test_portmap_xdr__rpcb)
{
    struct portmap_rpcb rpcb = {.prog = 77};
    uint8_t longer[sizeof rpcb_bytes + 1] = {0};
    memcpy(longer, rpcb_bytes, sizeof rpcb_bytes);
    for (uint32_t len = 0; len < sizeof rpcb_bytes; len++)
        assert_false(get_rpcb(rpcb_bytes, len, &rpcb));
    assert_false(get_rpcb(longer, sizeof longer, &rpcb));
    assert_int_equal(rpcb.prog, 77);

    assert_true(get_rpcb(rpcb_bytes, sizeof rpcb_bytes, &rpcb));
    assert_int_equal(rpcb.prog, 100024);
    assert_int_equal(rpcb.vers, 4);
    assert_true(bytes_equal(rpcb.netid, bytes_of_text("tcp6")));
    assert_true(bytes_equal(rpcb.uaddr, bytes_of_text("::1.47.1")));
    assert_true(bytes_equal(rpcb.owner, bytes_of_text("super")));

    uint8_t memory[64];
    struct xdr_out out = xdr_out_of(memory, sizeof memory);
    portmap_xdr_put_rpcb(&out, &rpcb);
    assert_int_equal(xdr_out_len(&out), sizeof rpcb_bytes);
    assert_memory_equal(memory, rpcb_bytes, sizeof rpcb_bytes);
}

TEST(test_portmap_xdr__strings_have_a_longest)
{
    static uint8_t text[200];
    memset(text, 'x', sizeof text);
    const struct {
        uint32_t netid_len, uaddr_len, owner_len;
        bool is_good;
    } rows[] = {
        {PORTMAP_NETID_MAX, PORTMAP_UADDR_MAX, PORTMAP_OWNER_MAX, true},
        {PORTMAP_NETID_MAX + 1, 0, 0, false},
        {0, PORTMAP_UADDR_MAX + 1, 0, false},
        {0, 0, PORTMAP_OWNER_MAX + 1, false},
        {0, 0, 0, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t memory[512];
        struct xdr_out out = xdr_out_of(memory, sizeof memory);
        struct portmap_rpcb rpcb = {.netid = {text, rows[i].netid_len},
                                    .uaddr = {text, rows[i].uaddr_len},
                                    .owner = {text, rows[i].owner_len}};
        portmap_xdr_put_rpcb(&out, &rpcb);
        assert_false(out.overflowed);
        assert_int_equal(get_rpcb(memory, xdr_out_len(&out), &rpcb), rows[i].is_good);
    }
}

TEST(test_portmap_xdr__results)
{
    const uint8_t port_bytes[] = {0, 0, 0xff, 0xff}, large[] = {0, 1, 0, 0};
    const uint8_t uaddr_bytes[] = {0, 0, 0, 3, 'a', '.', 'b', 0};
    const uint8_t bools[][4] = {{0, 0, 0, 0}, {0, 0, 0, 1}, {0, 0, 0, 9}};
    uint32_t port = 5;
    struct xdr_in in = xdr_in_of((struct bytes){port_bytes, 4});
    assert_true(portmap_xdr_get_port(&in, &port));
    assert_int_equal(port, 65535);
    in = xdr_in_of((struct bytes){large, 4}); /* no port has this number */
    assert_false(portmap_xdr_get_port(&in, &port));
    in = xdr_in_of((struct bytes){port_bytes, 3});
    assert_false(portmap_xdr_get_port(&in, &port));
    assert_int_equal(port, 65535);

    struct bytes uaddr = {0};
    in = xdr_in_of((struct bytes){uaddr_bytes, 8});
    assert_true(portmap_xdr_get_uaddr(&in, &uaddr));
    assert_true(bytes_equal(uaddr, bytes_of_text("a.b")));
    for (uint32_t len = 0; len < 8; len++) {
        in = xdr_in_of((struct bytes){uaddr_bytes, len});
        assert_false(portmap_xdr_get_uaddr(&in, &uaddr));
    }
    for (uint32_t i = 0; i < 3; i++) {
        bool value = i == 0;
        in = xdr_in_of((struct bytes){bools[i], 4});
        assert_true(portmap_xdr_get_bool(&in, &value));
        assert_int_equal(value, i > 0);
    }
    bool value = true;
    in = xdr_in_of((struct bytes){bools[0], 3});
    assert_false(portmap_xdr_get_bool(&in, &value));
    assert_true(value);
}

TEST(test_portmap_xdr__netids)
{
    const struct {
        const char *netid;
        uint32_t prot, family;
    } rows[] = {{"tcp", 6, 4}, {"udp", 17, 4}, {"tcp6", 6, 6}, {"udp6", 17, 6}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint32_t prot = 0, family = 0;
        assert_true(portmap_netid_parse(bytes_of_text(rows[i].netid), &prot, &family));
        assert_int_equal(prot, rows[i].prot);
        assert_int_equal(family, rows[i].family);
        assert_string_equal(portmap_netid(prot, family), rows[i].netid);
    }
    const char *others[] = {"", "local", "TCP", "tcp4", "tcp ", "udp66"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        uint32_t prot = 1, family = 2;
        assert_false(portmap_netid_parse(bytes_of_text(others[i]), &prot, &family));
        assert_int_equal(prot, 1);
        assert_int_equal(family, 2);
    }
    assert_string_equal(portmap_netid(1, 4), "");
}

TEST(test_portmap_xdr__universal_addresses)
{
    const struct {
        const char *text, *address;
        uint16_t port;
    } rows[] = {
        {"10.0.0.5.47.17", "10.0.0.5", 12049},
        {"0.0.0.0.0.111", "0.0.0.0", 111},
        {"255.255.255.255.255.255", "255.255.255.255", 65535},
        {"::.0.111", "::", 111},
        {"::1.2.3", "::1", 515},
        {"2001:db8::5.0.1", "2001:db8::5", 1},
        {"fe80::1%3.8.1", "fe80::1%3", 2049},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct address address = {0}, expected;
        uint16_t port = 0;
        char text[PORTMAP_UADDR_MAX];
        assert_true(address_parse(bytes_of_text(rows[i].address), &expected));
        assert_true(portmap_uaddr_parse(bytes_of_text(rows[i].text), &address, &port));
        assert_true(address_equal(&address, &expected));
        assert_int_equal(port, rows[i].port);
        portmap_uaddr_put(&address, port, text);
        assert_string_equal(text, rows[i].text);
    }
    /* A v4-mapped address is the IPv4 one (R-ID-2). */
    struct address address;
    uint16_t port;
    assert_true(portmap_uaddr_parse(bytes_of_text("::ffff:10.1.2.3.1.0"), &address, &port));
    assert_int_equal(address.family, 4);
    assert_int_equal(port, 256);
}

TEST(test_portmap_xdr__bad_universal_addresses)
{
    const char *rows[] = {
        "",
        ".",
        "..",
        "1.2",
        "10.0.0.5",
        "10.0.0.5.1",
        "10.0.0.5.1.",
        "10.0.0.5..1",
        "10.0.0.5.256.1",
        "10.0.0.5.1.256",
        "10.0.0.5.1.0001",
        "10.0.0.5.1.-1",
        "10.0.0.5.1.1 ",
        "/run/rpcbind.sock",
        "host.1.1",
        "10.0.0.5.1.x",
        "10.0.0.5.4294967297.1",
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct address address = {.family = 9};
        uint16_t port = 7;
        assert_false(portmap_uaddr_parse(bytes_of_text(rows[i]), &address, &port));
        assert_int_equal(address.family, 9);
        assert_int_equal(port, 7);
    }
}

TEST_MAIN(NULL, NULL, NULL, NULL)

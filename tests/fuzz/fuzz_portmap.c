/*
 * fuzz_portmap.c -- any bytes as arguments or results of the portmapper: views stay inside, what is
 * accepted is written again as the same bytes and refused one byte shorter or longer, and a
 * universal address that parses is printed and parsed again as the same.
 *
 * Input: mode (1 byte), then the bytes: a mapping, an rpcb, a port, a universal address as a
 * result, a bool, a network id, a universal address.
 */
#include "codec/portmap_xdr.h"
#include "fuzz.h"

enum mode { MAPPING, RPCB, PORT, UADDR_RESULT, BOOL, NETID, UADDR, MODES };

static struct xdr_in in_of(const uint8_t *data, uint32_t len)
{
    return xdr_in_of((struct bytes){data, len});
}

static bool get(enum mode mode, const uint8_t *data, uint32_t len)
{
    struct xdr_in in = in_of(data, len);
    struct portmap_mapping mapping;
    struct portmap_rpcb rpcb;
    struct bytes uaddr;
    uint32_t port;
    bool value;
    switch (mode) {
    case MAPPING:
        return portmap_xdr_get_mapping(&in, &mapping);
    case RPCB:
        return portmap_xdr_get_rpcb(&in, &rpcb) && fuzz_is_inside(rpcb.netid, data, len) &&
               fuzz_is_inside(rpcb.uaddr, data, len) && fuzz_is_inside(rpcb.owner, data, len) &&
               rpcb.netid.len <= PORTMAP_NETID_MAX && rpcb.uaddr.len <= PORTMAP_UADDR_MAX &&
               rpcb.owner.len <= PORTMAP_OWNER_MAX;
    case PORT:
        return portmap_xdr_get_port(&in, &port) && port <= UINT16_MAX;
    case UADDR_RESULT:
        return portmap_xdr_get_uaddr(&in, &uaddr) && fuzz_is_inside(uaddr, data, len);
    case BOOL:
        return portmap_xdr_get_bool(&in, &value);
    case NETID:
    case UADDR:
    case MODES:
        break;
    }
    UNREACHABLE();
}

/* What was accepted, as its writer writes it. */
static uint32_t put_again(enum mode mode, const uint8_t *data, uint32_t len, uint8_t *ret)
{
    struct xdr_in in = in_of(data, len);
    struct xdr_out out = xdr_out_of(ret, len);
    struct portmap_mapping mapping;
    struct portmap_rpcb rpcb;
    if (mode == MAPPING && portmap_xdr_get_mapping(&in, &mapping))
        portmap_xdr_put_mapping(&out, &mapping);
    else if (mode == RPCB && portmap_xdr_get_rpcb(&in, &rpcb))
        portmap_xdr_put_rpcb(&out, &rpcb);
    CHECK(!out.overflowed);
    return xdr_out_len(&out);
}

static void check_xdr(enum mode mode, struct bytes data)
{
    uint8_t *copy = fuzz_copy(data);
    if (get(mode, copy, data.len)) {
        uint8_t *again = malloc((size_t)data.len + 1);
        CHECK(again != NULL);
        memcpy(again, copy, data.len);
        again[data.len] = 0;
        CHECK(!get(mode, again, data.len + 1));
        CHECK(!get(mode, again, data.len - 1));
        if (mode == MAPPING || mode == RPCB) {
            /* Padding may have been anything; its writer's is zero, so compare what is read. */
            CHECK(put_again(mode, copy, data.len, again) == data.len);
            CHECK(get(mode, again, data.len));
            uint8_t *third = fuzz_copy((struct bytes){again, data.len});
            CHECK(put_again(mode, again, data.len, third) == data.len);
            CHECK(memcmp(again, third, data.len) == 0);
            free(third);
        }
        free(again);
    }
    free(copy);
}

static void check_uaddr(struct bytes text)
{
    uint8_t *copy = fuzz_copy(text);
    struct address address, again;
    uint16_t port, port_again;
    char printed[PORTMAP_UADDR_MAX];
    if (portmap_uaddr_parse((struct bytes){copy, text.len}, &address, &port)) {
        CHECK(address.family == 4 || address.family == 6);
        portmap_uaddr_put(&address, port, printed);
        CHECK(portmap_uaddr_parse(bytes_of_text(printed), &again, &port_again));
        CHECK(address_equal(&address, &again));
        CHECK(port == port_again);
    }
    free(copy);
}

static void check_netid(struct bytes netid)
{
    uint8_t *copy = fuzz_copy(netid);
    uint32_t prot, family;
    if (portmap_netid_parse((struct bytes){copy, netid.len}, &prot, &family))
        CHECK(bytes_equal(netid, bytes_of_text(portmap_netid(prot, family))));
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz fuzz = {data, size};
    enum mode mode = (enum mode)(fuzz_u8(&fuzz) % MODES);
    struct bytes rest = fuzz_slice(&fuzz, 1024);
    if (mode == UADDR)
        check_uaddr(rest);
    else if (mode == NETID)
        check_netid(rest);
    else
        check_xdr(mode, rest);
    return 0;
}

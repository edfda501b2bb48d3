/*
 * portmap_xdr.c -- see portmap_xdr.h.
 *
 * A universal address is the address as text, a dot, the port's high byte, a dot, its low byte, all
 * in decimal: the last two dots belong to the port, whatever the address looks like.
 */
#include "codec/portmap_xdr.h"

#include "base/text.h"

static struct portmap_mapping get_mapping(struct xdr_in *in)
{
    struct portmap_mapping mapping = {0};
    mapping.prog = xdr_get_u32(in);
    mapping.vers = xdr_get_u32(in);
    mapping.prot = xdr_get_u32(in);
    mapping.port = xdr_get_u32(in);
    return mapping;
}

bool portmap_xdr_get_mapping(struct xdr_in *in, struct portmap_mapping *ret)
{
    struct portmap_mapping mapping = get_mapping(in);
    if (!xdr_in_done(in))
        return false;
    *ret = mapping;
    return true;
}

bool portmap_xdr_next_mapping(struct xdr_in *in, struct portmap_mapping *ret)
{
    if (!xdr_get_bool(in))
        return false;
    struct portmap_mapping mapping = get_mapping(in);
    if (!xdr_in_ok(in))
        return false;
    *ret = mapping;
    return true;
}

void portmap_xdr_put_mapping(struct xdr_out *out, const struct portmap_mapping *mapping)
{
    xdr_put_u32(out, mapping->prog);
    xdr_put_u32(out, mapping->vers);
    xdr_put_u32(out, mapping->prot);
    xdr_put_u32(out, mapping->port);
}

static struct portmap_rpcb get_rpcb(struct xdr_in *in)
{
    struct portmap_rpcb rpcb = {0};
    rpcb.prog = xdr_get_u32(in);
    rpcb.vers = xdr_get_u32(in);
    rpcb.netid = xdr_get_opaque(in, PORTMAP_NETID_MAX);
    rpcb.uaddr = xdr_get_opaque(in, PORTMAP_UADDR_MAX);
    rpcb.owner = xdr_get_opaque(in, PORTMAP_OWNER_MAX);
    return rpcb;
}

bool portmap_xdr_get_rpcb(struct xdr_in *in, struct portmap_rpcb *ret)
{
    struct portmap_rpcb rpcb = get_rpcb(in);
    if (!xdr_in_done(in))
        return false;
    *ret = rpcb;
    return true;
}

bool portmap_xdr_next_rpcb(struct xdr_in *in, struct portmap_rpcb *ret)
{
    if (!xdr_get_bool(in))
        return false;
    struct portmap_rpcb rpcb = get_rpcb(in);
    if (!xdr_in_ok(in))
        return false;
    *ret = rpcb;
    return true;
}

void portmap_xdr_put_rpcb(struct xdr_out *out, const struct portmap_rpcb *rpcb)
{
    xdr_put_u32(out, rpcb->prog);
    xdr_put_u32(out, rpcb->vers);
    xdr_put_opaque(out, rpcb->netid);
    xdr_put_opaque(out, rpcb->uaddr);
    xdr_put_opaque(out, rpcb->owner);
}

bool portmap_xdr_get_port(struct xdr_in *in, uint32_t *ret_port)
{
    uint32_t port = xdr_get_u32(in);
    if (!xdr_in_done(in) || port > UINT16_MAX)
        return false;
    *ret_port = port;
    return true;
}

bool portmap_xdr_get_uaddr(struct xdr_in *in, struct bytes *ret_uaddr)
{
    struct bytes uaddr = xdr_get_opaque(in, PORTMAP_UADDR_MAX);
    if (!xdr_in_done(in))
        return false;
    *ret_uaddr = uaddr;
    return true;
}

bool portmap_xdr_get_bool(struct xdr_in *in, bool *ret)
{
    bool value = xdr_get_bool(in);
    if (!xdr_in_done(in))
        return false;
    *ret = value;
    return true;
}

static const struct {
    const char *netid;
    uint32_t prot, family;
} netids[] = {
    {"tcp", TRANSPORT_TCP, 4},
    {"udp", TRANSPORT_UDP, 4},
    {"tcp6", TRANSPORT_TCP, 6},
    {"udp6", TRANSPORT_UDP, 6},
};

bool portmap_netid_parse(struct bytes netid, uint32_t *ret_prot, uint32_t *ret_family)
{
    for (size_t i = 0; i < sizeof netids / sizeof netids[0]; i++) {
        if (!bytes_equal(netid, bytes_of_text(netids[i].netid)))
            continue;
        *ret_prot = netids[i].prot;
        *ret_family = netids[i].family;
        return true;
    }
    return false;
}

const char *portmap_netid(uint32_t prot, uint32_t family)
{
    for (size_t i = 0; i < sizeof netids / sizeof netids[0]; i++)
        if (netids[i].prot == prot && netids[i].family == family)
            return netids[i].netid;
    return "";
}

/* Takes ".N" with N below 256 off the end of the text. */
static bool take_byte(struct bytes *text, uint32_t *ret)
{
    uint32_t value = 0, scale = 1, digits = 0;
    while (text->len > 0 && text->at[text->len - 1] != '.') {
        uint8_t c = text->at[--text->len];
        if (c < '0' || c > '9' || ++digits > 3)
            return false;
        value += scale * (uint32_t)(c - '0');
        scale *= 10;
    }
    if (text->len == 0 || digits == 0 || value > 255)
        return false;
    text->len--;
    *ret = value;
    return true;
}

bool portmap_uaddr_parse(struct bytes uaddr, struct address *ret_address, uint16_t *ret_port)
{
    uint32_t low, high;
    struct address address;
    if (!take_byte(&uaddr, &low) || !take_byte(&uaddr, &high) || !address_parse(uaddr, &address))
        return false;
    *ret_address = address;
    *ret_port = (uint16_t)(high << 8 | low);
    return true;
}

void portmap_uaddr_put(const struct address *address, uint16_t port,
                       char ret_text[static PORTMAP_UADDR_MAX])
{
    struct text text;
    text_init(&text, ret_text, PORTMAP_UADDR_MAX);
    text_add_address(&text, address);
    text_add_char(&text, '.');
    text_add_u64(&text, port >> 8);
    text_add_char(&text, '.');
    text_add_u64(&text, port & 255);
}

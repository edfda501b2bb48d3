/*
 * lookup.c -- see lookup.h.
 *
 * A universal address names a host too. It is not looked at: the server calls back only addresses
 * that called it (P5), and many portmappers answer with the wildcard.
 */
#include "rpc/lookup.h"

#include "base/check.h"

struct lookup lookup_begin(uint32_t family, uint32_t prot, bool is_only)
{
    CHECK(prot == TRANSPORT_UDP || !is_only);
    return (struct lookup){
        .vers = family == 6 ? PORTMAP_VERSION_RPCB4 : PORTMAP_VERSION_PMAP,
        .prot = family == 6 ? TRANSPORT_UDP : prot,
        .family = family,
        .is_last = is_only,
    };
}

bool lookup_needs_tcp(const struct lookup *lookup)
{
    return lookup->vers != PORTMAP_VERSION_PMAP && lookup->prot == TRANSPORT_TCP;
}

uint32_t lookup_prot(const struct lookup *lookup, uint32_t way)
{
    return lookup->vers == PORTMAP_VERSION_PMAP ? lookup->prot : way;
}

void lookup_put(const struct lookup *lookup, uint32_t way, uint32_t xid, uint32_t prog,
                uint32_t vers, struct xdr_out *out)
{
    uint32_t prot = lookup_prot(lookup, way);
    rpc_msg_put_call(out, xid, PORTMAP_PROGRAM, lookup->vers, PORTMAP_GETPORT);
    if (lookup->vers == PORTMAP_VERSION_PMAP) {
        portmap_xdr_put_mapping(
            out, &(struct portmap_mapping){.prog = prog, .vers = vers, .prot = prot});
        return;
    }
    struct bytes netid = bytes_of_text(portmap_netid(prot, lookup->family));
    portmap_xdr_put_rpcb(out, &(struct portmap_rpcb){.prog = prog, .vers = vers, .netid = netid});
}

/* The versions in the order in which they are tried after a refusal; 0 ends it. */
static uint32_t next_version(uint32_t vers)
{
    if (vers == PORTMAP_VERSION_PMAP)
        return PORTMAP_VERSION_RPCB4;
    return vers == PORTMAP_VERSION_RPCB4 ? PORTMAP_VERSION_RPCB3 : 0;
}

/* The port in a result; 0: not registered, or nothing that we could call. */
static uint16_t port_of(uint32_t vers, struct bytes results)
{
    struct xdr_in in = xdr_in_of(results);
    uint32_t port = 0;
    if (vers == PORTMAP_VERSION_PMAP)
        return portmap_xdr_get_port(&in, &port) ? (uint16_t)port : 0;
    struct bytes uaddr;
    struct address ignored;
    uint16_t uaddr_port = 0;
    if (!portmap_xdr_get_uaddr(&in, &uaddr) || !portmap_uaddr_parse(uaddr, &ignored, &uaddr_port))
        return 0;
    return uaddr_port;
}

enum lookup_step lookup_answered(struct lookup *lookup, uint32_t way,
                                 const struct rpc_answer *answer, uint16_t *ret_port)
{
    uint32_t next_vers = next_version(lookup->vers), prot = lookup_prot(lookup, way);
    if (answer->stat == RPC_ANSWER_PROG_MISMATCH && next_vers != 0) {
        MARK("lookup_other_version");
        if (lookup->vers == PORTMAP_VERSION_PMAP)
            lookup->prot = TRANSPORT_UDP;
        lookup->vers = next_vers;
        return LOOKUP_ASK;
    }
    if (answer->stat != RPC_ANSWER_SUCCESS)
        return LOOKUP_NOTHING;
    uint16_t port = port_of(lookup->vers, answer->results);
    if (port != 0) {
        *ret_port = port;
        return LOOKUP_FOUND;
    }
    /* RPCBIND was asked over TCP because UDP is silent: so would the program be. */
    if (lookup->is_last || prot != lookup->prot)
        return LOOKUP_NOTHING;
    lookup->prot = prot == TRANSPORT_TCP ? TRANSPORT_UDP : TRANSPORT_TCP;
    lookup->is_last = true;
    return LOOKUP_ASK;
}

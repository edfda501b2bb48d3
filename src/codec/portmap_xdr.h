/*
 * portmap_xdr.h -- the portmapper's arguments and results: PMAP version 2 (RFC 1833 section 3) and
 * RPCBIND versions 3 and 4 (section 2), program 100000, both as caller and as server.
 *
 * Version 2 speaks of protocol numbers and ports, versions 3 and 4 of network ids ("tcp6") and
 * universal addresses ("10.0.0.5.47.17": an address and the two bytes of a port). Both are read
 * into one mapping.
 */
#ifndef CODEC_PORTMAP_XDR_H
#define CODEC_PORTMAP_XDR_H

#include "base/address.h"
#include "base/programs.h"
#include "base/transport.h"
#include "codec/xdr.h"

enum {
    PORTMAP_PORT = 111,
    PORTMAP_VERSION_PMAP = 2,
    PORTMAP_VERSION_RPCB3 = 3,
    PORTMAP_VERSION_RPCB4 = 4,
    PORTMAP_NETID_MAX = 16,
    PORTMAP_UADDR_MAX = 128, /* also a unix socket's path, which we only compare */
    PORTMAP_OWNER_MAX = 128,
};

enum portmap_procedure {
    PORTMAP_NULL = 0,
    PORTMAP_SET = 1,
    PORTMAP_UNSET = 2,
    PORTMAP_GETPORT = 3, /* GETADDR in versions 3 and 4 */
    PORTMAP_DUMP = 4,
    PORTMAP_GETVERSADDR = 9, /* version 4 only */
};

/* PMAP version 2. */
struct portmap_mapping {
    uint32_t prog, vers, prot, port;
};

/* RPCBIND versions 3 and 4; the views point into the message. */
struct portmap_rpcb {
    uint32_t prog, vers;
    struct bytes netid, uaddr, owner;
};

bool portmap_xdr_get_mapping(struct xdr_in *in, struct portmap_mapping *ret);
void portmap_xdr_put_mapping(struct xdr_out *out, const struct portmap_mapping *mapping);
bool portmap_xdr_get_rpcb(struct xdr_in *in, struct portmap_rpcb *ret);
void portmap_xdr_put_rpcb(struct xdr_out *out, const struct portmap_rpcb *rpcb);

/*
 * One element of the list that DUMP returns. False at its end, and when it cannot be read: after
 * the end xdr_in_done tells the two apart.
 */
bool portmap_xdr_next_mapping(struct xdr_in *in, struct portmap_mapping *ret);
bool portmap_xdr_next_rpcb(struct xdr_in *in, struct portmap_rpcb *ret);

/* Results: a port (0: not registered), a universal address (empty: not registered), a bool. */
bool portmap_xdr_get_port(struct xdr_in *in, uint32_t *ret_port);
bool portmap_xdr_get_uaddr(struct xdr_in *in, struct bytes *ret_uaddr);
bool portmap_xdr_get_bool(struct xdr_in *in, bool *ret);

/* Network ids: the protocol and address family that one names; false for others ("local"). */
bool portmap_netid_parse(struct bytes netid, uint32_t *ret_prot, uint32_t *ret_family);
const char *portmap_netid(uint32_t prot, uint32_t family);

/* Universal addresses. False: not one of IPv4 or IPv6. */
bool portmap_uaddr_parse(struct bytes uaddr, struct address *ret_address, uint16_t *ret_port);
/* NUL-terminated text in a buffer of PORTMAP_UADDR_MAX bytes. */
void portmap_uaddr_put(const struct address *address, uint16_t port,
                       char ret_text[static PORTMAP_UADDR_MAX]);

#endif

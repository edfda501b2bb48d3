/*
 * lookup.h -- what to ask a host's portmapper for the port of a program, and what its answers mean.
 *
 * The questions come in a fixed order: is the program on one transport, then on the other; in PMAP
 * version 2 for IPv4 and RPCBIND version 4 for IPv6, and where a version is refused, in the next
 * one (2, 4, 3). Whom to ask over which transport, and for how long, is the client's business.
 */
#ifndef RPC_LOOKUP_H
#define RPC_LOOKUP_H

#include "codec/portmap_xdr.h"
#include "codec/rpc_msg.h"

/* The question that is asked now. */
struct lookup {
    uint32_t vers; /* of the portmapper's protocol */
    uint32_t prot; /* of the program: PORTMAP_TCP or PORTMAP_UDP */
    bool is_last;  /* the other one is not asked for (any more) */
};

enum lookup_step {
    LOOKUP_FOUND,   /* the program is at *ret_port on lookup->prot */
    LOOKUP_ASK,     /* the next question stands in *lookup */
    LOOKUP_NOTHING, /* not registered, or the portmapper cannot say */
};

/* The first question to a host of this address family: for this protocol, then for the other one
 * unless this is the only one that will do. */
struct lookup lookup_begin(uint32_t family, uint32_t prot, bool is_only);

/* The whole call. */
void lookup_put(const struct lookup *lookup, uint32_t xid, uint32_t family, uint32_t prog,
                uint32_t vers, struct xdr_out *out);

enum lookup_step lookup_answered(struct lookup *lookup, const struct rpc_answer *answer,
                                 uint16_t *ret_port);

#endif

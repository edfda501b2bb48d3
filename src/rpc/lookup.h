/*
 * lookup.h -- what to ask a host's portmapper for the port of a program, and what its answers mean.
 *
 * The questions come in a fixed order: is the program on one transport, then on the other; in PMAP
 * version 2 for IPv4 and RPCBIND version 4 for IPv6, and where a version is refused, in the next
 * one (2, 4, 3). Timeouts are the rpc_client's business.
 *
 * PMAP names the transport in its question. RPCBIND does so, too, but rpcbind does not look at it:
 * it answers for the transport that the question came over (RFC 1833, GETADDR). So a question of
 * RPCBIND is about the way it goes. The first one is about UDP, as UDP needs no connection, and one
 * about TCP has to go over TCP. Hosts that speak RPCBIND only are hence called over UDP where the
 * program is there, whatever its caller would like best.
 */
#ifndef RPC_LOOKUP_H
#define RPC_LOOKUP_H

#include "codec/portmap_xdr.h"
#include "codec/rpc_msg.h"

/* The question that is asked now. */
struct lookup {
    uint32_t vers; /* of the portmapper's protocol */
    uint32_t prot; /* of the program: TRANSPORT_TCP or TRANSPORT_UDP */
    uint32_t family;
    bool is_last; /* the other one is not asked for (any more) */
};

/* It has to go over TCP; the others may go either way. */
bool lookup_needs_tcp(const struct lookup *lookup);
/* The transport of the program that this question is about when it goes over `way`. */
uint32_t lookup_prot(const struct lookup *lookup, uint32_t way);

enum lookup_step {
    LOOKUP_FOUND,   /* the program is at *ret_port on the transport that was asked about */
    LOOKUP_ASK,     /* the next question stands in *lookup */
    LOOKUP_NOTHING, /* not registered, or the portmapper cannot say */
};

/* The first question to a host of this address family: for this protocol, then for the other one
 * unless this is the only one that will do, which then is UDP. */
struct lookup lookup_begin(uint32_t family, uint32_t prot, bool is_only);

/* The whole call. `way` is a transport: what it goes, and its answer came, over. */
void lookup_put(const struct lookup *lookup, uint32_t way, uint32_t xid, uint32_t prog,
                uint32_t vers, struct xdr_out *out);

enum lookup_step lookup_answered(struct lookup *lookup, uint32_t way,
                                 const struct rpc_answer *answer, uint16_t *ret_port);

#endif

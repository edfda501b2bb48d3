/*
 * lock_call.h -- NLM calls of many fake clients, each made from a few numbers.
 *
 * A client is an address and a caller_name, a file is a number, and oh follows from svid and name
 * as Linux makes it. The same numbers always mean the same bytes, on the wire and in a dump of the
 * store.
 */
#ifndef INTEGRATION_LOCK_CALL_H
#define INTEGRATION_LOCK_CALL_H

#include "harness.h"
#include "peer/peer_nlm.h"

#define LOCK_CALL_FH_LEN  32 /* what every version takes */
#define LOCK_CALL_HEX_MAX 256

struct lock_call {
    enum peer_nlm_procedure procedure;
    uint32_t vers; /* 0: version 4 */
    const char *name;
    uint32_t svid, file;
    uint32_t cookie; /* another one is not a repeat; 0: the svid */
    uint64_t offset, len;
    bool exclusive, block, reclaim;
    uint32_t state;
    uint32_t mode, access; /* SHARE, UNSHARE */
};

/* The whole call, under a new xid: the same one would be a repeat, from whichever port. */
void lock_call_put(struct packet *packet, const struct lock_call *call);
void lock_call_fh(uint32_t file, uint8_t ret[static LOCK_CALL_FH_LEN]);
/* The file of these bytes; UINT32_MAX: not one of ours. */
uint32_t lock_call_file(const uint8_t *fh, uint32_t len);
/* "4711@name"; valid until the next call. */
const char *lock_call_oh(const struct lock_call *call);

/* The status of a result; negative: it cannot be read. `ret` may be NULL. */
int lock_call_status(const struct lock_call *call, const struct packet_reply *reply,
                     struct peer_nlm_res *ret);
/* "GRANTED", ..., or what is wrong. */
const char *lock_call_text(int status);

/* One call from this address (host byte order; 0: any) over a socket of its own. */
int lock_call_once(const struct harness_server *server, uint32_t source, bool is_udp,
                   const struct lock_call *call, struct peer_nlm_res *ret);

#endif

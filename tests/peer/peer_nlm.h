/*
 * peer_nlm.h -- NLM versions 1, 3 and 4 as the tests speak it (Open Group C702 chapters 10 and 14,
 * RFC 1813 appendix II, program 100021).
 *
 * Both directions: a fake client writes arguments and reads results, and as the target of callbacks
 * it reads arguments and writes results. One flat structure serves all arguments, another one all
 * results; the procedure says which fields are on the wire. Bytes are copies, so that what arrived
 * can be kept and compared; there is room for a little more than the protocol allows, because a
 * hostile client sends that.
 */
#ifndef PEER_PEER_NLM_H
#define PEER_PEER_NLM_H

#include "peer/packet.h"

enum {
    PEER_NLM_PROGRAM = 100021,
    PEER_NLM_NETOBJ_MAX = 1024,
    PEER_NLM_NAME_MAX = 1025, /* of FREE_ALL; caller_name has one less */
    PEER_NLM_KEPT_MAX = 1100, /* what a peer_nlm_bytes can hold */
    PEER_NLM_PRIV_LEN = 16,
    PEER_NLM_PROCEDURES = 24,
};

enum peer_nlm_procedure {
    PEER_NLM_NULL = 0,
    PEER_NLM_TEST = 1,
    PEER_NLM_LOCK = 2,
    PEER_NLM_CANCEL = 3,
    PEER_NLM_UNLOCK = 4,
    PEER_NLM_GRANTED = 5,
    PEER_NLM_TEST_MSG = 6,
    PEER_NLM_LOCK_MSG = 7,
    PEER_NLM_CANCEL_MSG = 8,
    PEER_NLM_UNLOCK_MSG = 9,
    PEER_NLM_GRANTED_MSG = 10,
    PEER_NLM_TEST_RES = 11,
    PEER_NLM_LOCK_RES = 12,
    PEER_NLM_CANCEL_RES = 13,
    PEER_NLM_UNLOCK_RES = 14,
    PEER_NLM_GRANTED_RES = 15,
    PEER_NLM_SM_NOTIFY = 16,
    PEER_NLM_SHARE = 20,
    PEER_NLM_UNSHARE = 21,
    PEER_NLM_NM_LOCK = 22,
    PEER_NLM_FREE_ALL = 23,
};

enum peer_nlm_status {
    PEER_NLM_IS_GRANTED = 0,
    PEER_NLM_IS_DENIED = 1,
    PEER_NLM_IS_NOLOCKS = 2,
    PEER_NLM_IS_BLOCKED = 3,
    PEER_NLM_IS_GRACE = 4,
    PEER_NLM_IS_DEADLCK = 5,
    PEER_NLM_IS_ROFS = 6,
    PEER_NLM_IS_STALE_FH = 7,
    PEER_NLM_IS_FBIG = 8,
    PEER_NLM_IS_FAILED = 9,
};

/* A netobj or a name. */
struct peer_nlm_bytes {
    uint32_t len;
    uint8_t at[PEER_NLM_KEPT_MAX];
};

struct peer_nlm_lock {
    struct peer_nlm_bytes caller_name, fh, oh;
    uint32_t svid;
    uint64_t offset, len; /* as on the wire */
};

struct peer_nlm_args {
    struct peer_nlm_bytes cookie;
    bool block, exclusive, reclaim;
    uint32_t state;            /* lockargs, FREE_ALL, SM_NOTIFY */
    struct peer_nlm_lock lock; /* FREE_ALL and SM_NOTIFY: only caller_name */
    uint32_t mode, access;     /* SHARE, UNSHARE */
    uint8_t priv[PEER_NLM_PRIV_LEN];
};

struct peer_nlm_res {
    struct peer_nlm_bytes cookie;
    uint32_t status;
    /* TEST and TEST_RES, only when DENIED. */
    bool exclusive;
    uint32_t svid;
    struct peer_nlm_bytes oh;
    uint64_t offset, len;
    uint32_t sequence; /* SHARE, UNSHARE */
};

struct peer_nlm_bytes peer_nlm_bytes_of(const void *bytes, uint32_t len);
struct peer_nlm_bytes peer_nlm_text(const char *text);
bool peer_nlm_bytes_equal(const struct peer_nlm_bytes *a, const struct peer_nlm_bytes *b);

/* "LOCK", "GRANTED_MSG", ...; "?" for what has no name. */
const char *peer_nlm_procedure_text(uint32_t procedure);
/* "GRANTED", "DENIED_GRACE_PERIOD", ... */
const char *peer_nlm_status_text(uint32_t status);
/* The procedure that answers a *_MSG: LOCK_MSG gives LOCK_RES; others give NULL. */
enum peer_nlm_procedure peer_nlm_answer_to(uint32_t procedure);

/* Appends the arguments of any procedure but the *_RES. Versions 1 and 3 cut ranges to 32 bits. */
void peer_nlm_put_args(struct packet *packet, uint32_t vers, uint32_t procedure,
                       const struct peer_nlm_args *args);
/* Appends the result of a procedure with an answer of its own, or the arguments of a *_RES. */
void peer_nlm_put_res(struct packet *packet, uint32_t vers, uint32_t procedure,
                      const struct peer_nlm_res *res);
/* A whole call in a cleared packet, AUTH_SYS. */
void peer_nlm_put_call(struct packet *call, uint32_t xid, uint32_t vers, uint32_t procedure,
                       const struct peer_nlm_args *args);
void peer_nlm_put_res_call(struct packet *call, uint32_t xid, uint32_t vers, uint32_t procedure,
                           const struct peer_nlm_res *res);

/* The counterparts. False: cut short, too long for the protocol, or with bytes left over. */
bool peer_nlm_get_args(struct packet_reader *reader, uint32_t vers, uint32_t procedure,
                       struct peer_nlm_args *ret);
bool peer_nlm_get_res(struct packet_reader *reader, uint32_t vers, uint32_t procedure,
                      struct peer_nlm_res *ret);

#endif

/*
 * nlm_xdr.h -- NLM versions 1, 3 and 4: arguments and results (Open Group C702 chapters 10 and 14,
 * RFC 1813 appendix II, program 100021).
 *
 * Versions 1 and 3 have 32-bit ranges and fewer status codes; they are read straight into the
 * structures of version 4 and written back down (R-NLM-5, R-NLM-6), so that nothing above this file
 * knows that there is more than one. A range is kept as it was sent (`offset`, `len`), because a
 * GRANTED callback echoes it, and as the inclusive bytes that it means (R-RNG-1, R-RNG-2).
 *
 * Each decoder takes the whole argument body and fails when it is cut short, too long or has bytes
 * left over; *ret is then untouched. Views point into the message.
 */
#ifndef CODEC_NLM_XDR_H
#define CODEC_NLM_XDR_H

#include "base/programs.h"
#include "codec/xdr.h"

enum {
    NLM_NETOBJ_MAX = 1024,      /* cookie, oh, fh */
    NLM_NAME_MAX = 1024,        /* caller_name */
    NLM_NOTIFY_NAME_MAX = 1025, /* of FREE_ALL */
    NLM_PRIV_LEN = 16,
    NLM_FH_V3_LEN = 32, /* versions 1 and 3: exactly */
    NLM_FH_V4_MAX = 64,
    /* The longest result: testres with the longest cookie and oh. */
    NLM_RESULT_MAX = 4 + NLM_NETOBJ_MAX + 4 + 4 + 4 + 4 + NLM_NETOBJ_MAX + 8 + 8,
    /* The longest arguments of a call that we make: testargs of GRANTED with an 8-byte cookie. */
    NLM_GRANTED_MAX =
        4 + 8 + 4 + 4 + NLM_NAME_MAX + 4 + NLM_FH_V4_MAX + 4 + NLM_NETOBJ_MAX + 4 + 16,
};

enum nlm_procedure {
    NLM_NULL = 0,
    NLM_TEST = 1,
    NLM_LOCK = 2,
    NLM_CANCEL = 3,
    NLM_UNLOCK = 4,
    NLM_GRANTED = 5,
    NLM_TEST_MSG = 6,
    NLM_LOCK_MSG = 7,
    NLM_CANCEL_MSG = 8,
    NLM_UNLOCK_MSG = 9,
    NLM_GRANTED_MSG = 10,
    NLM_TEST_RES = 11,
    NLM_LOCK_RES = 12,
    NLM_CANCEL_RES = 13,
    NLM_UNLOCK_RES = 14,
    NLM_GRANTED_RES = 15,
    NLM_SM_NOTIFY = 16, /* a status monitor's private upcall */
    NLM_SHARE = 20,
    NLM_UNSHARE = 21,
    NLM_NM_LOCK = 22,
    NLM_FREE_ALL = 23,
};

enum nlm_stat {
    NLM_STAT_GRANTED = 0,
    NLM_STAT_DENIED = 1,
    NLM_STAT_DENIED_NOLOCKS = 2,
    NLM_STAT_BLOCKED = 3,
    NLM_STAT_DENIED_GRACE_PERIOD = 4,
    NLM_STAT_DEADLCK = 5,
    NLM_STAT_ROFS = 6,
    NLM_STAT_STALE_FH = 7,
    NLM_STAT_FBIG = 8,
    NLM_STAT_FAILED = 9,
};

/* What a range means. */
enum nlm_range {
    NLM_RANGE_GOOD,
    NLM_RANGE_TOO_BIG, /* version 4: FBIG (R-RNG-1); start and end are then 0 */
};

/* `alock`: who locks which bytes of which file. */
struct nlm_lock {
    struct bytes caller_name, fh, oh;
    uint32_t svid;
    uint64_t offset, len; /* as sent; 32-bit ones widened */
    enum nlm_range range;
    uint64_t start, end; /* inclusive; end UINT64_MAX: to the end of the file */
};

/* testargs, lockargs, cancargs, unlockargs: one shape, with what a procedure lacks left zero. */
struct nlm_args {
    struct bytes cookie;
    bool block, exclusive, reclaim;
    uint32_t state;
    struct nlm_lock lock;
};

struct nlm_share_args {
    struct bytes cookie, caller_name, fh, oh;
    uint32_t mode, access; /* 0..3; anything else does not decode */
    bool reclaim;
};

/* `res`, and `testres` without its holder. */
struct nlm_res {
    struct bytes cookie;
    uint32_t stat; /* as sent */
};

struct nlm_holder {
    bool exclusive;
    uint32_t svid;
    struct bytes oh;
    uint64_t start, end; /* inclusive, as in struct nlm_lock */
};

/* FREE_ALL, and the private upcall, whose priv is left out of the view when it is FREE_ALL. */
struct nlm_notify {
    struct bytes name;
    uint32_t state;
    struct bytes priv; /* NLM_PRIV_LEN bytes, or empty */
};

bool nlm_xdr_is_version(uint32_t version);

/* R-NLM-1: the handle has a length that this version can have. */
bool nlm_xdr_is_handle(uint32_t version, struct bytes fh);

bool nlm_xdr_get_test(struct xdr_in *in, uint32_t version, struct nlm_args *ret);
bool nlm_xdr_get_lock(struct xdr_in *in, uint32_t version, struct nlm_args *ret);
bool nlm_xdr_get_cancel(struct xdr_in *in, uint32_t version, struct nlm_args *ret);
bool nlm_xdr_get_unlock(struct xdr_in *in, uint32_t version, struct nlm_args *ret);
bool nlm_xdr_get_share(struct xdr_in *in, uint32_t version, struct nlm_share_args *ret);
bool nlm_xdr_get_res(struct xdr_in *in, struct nlm_res *ret);
bool nlm_xdr_get_test_res(struct xdr_in *in, uint32_t version, struct nlm_res *ret);
bool nlm_xdr_get_free_all(struct xdr_in *in, struct nlm_notify *ret);
bool nlm_xdr_get_upcall(struct xdr_in *in, struct nlm_notify *ret);

/* Results. Status codes and ranges that the version cannot say are mapped down. */
void nlm_xdr_put_res(struct xdr_out *out, uint32_t version, struct bytes cookie,
                     enum nlm_stat stat);
/* `holder` is read only when stat is DENIED; stat is never DEADLCK: a TEST does not wait. */
void nlm_xdr_put_test_res(struct xdr_out *out, uint32_t version, struct bytes cookie,
                          enum nlm_stat stat, const struct nlm_holder *holder);
void nlm_xdr_put_share_res(struct xdr_out *out, uint32_t version, struct bytes cookie,
                           enum nlm_stat stat);

/* testargs of GRANTED and GRANTED_MSG: the lock as it was asked for (R-BLK-1). Only the fields as
 * sent are read: caller_name, fh, oh, svid, offset, len. `version` is the one it was asked in; a
 * range that another one cannot say is clipped. */
void nlm_xdr_put_granted(struct xdr_out *out, uint32_t version, struct bytes cookie, bool exclusive,
                         const struct nlm_lock *lock);

#endif

/*
 * nlm.c -- the procedures of the Network Lock Manager (Open Group C702 chapters 10 and 14) as a
 * table.
 *
 * The three versions share their rows: nlm_xdr reads versions 1 and 3 into what version 4 says and
 * writes results back down. Version 1 ends behind the status monitor's upcall. Version 2 was a
 * private protocol inside one host and is not offered.
 *
 *   procedure          arguments           result               why cached (R-DRC-1)
 *    0 NULL            void                void
 *    1 TEST            testargs            testres
 *    2 LOCK            lockargs            res                  a late copy would lock again
 *    3 CANCEL          cancargs            res                  ... would cancel a newer request
 *    4 UNLOCK          unlockargs          res                  ... would free a newer lock
 *    5 GRANTED         testargs            res
 *    6-10 ..._MSG      as 1-5              void; then 11-15     as 2-4
 *   11-14 ..._RES      testres, res        void, no effect
 *   15 GRANTED_RES     res                 void
 *   16 SM_NOTIFY       status              void, no effect
 *   20 SHARE           shareargs           shareres             as LOCK
 *   21 UNSHARE         shareargs           shareres             as UNLOCK
 *   22 NM_LOCK         lockargs            res                  as LOCK
 *   23 FREE_ALL        notify              void                 ... would free newer locks
 *
 * Unsolicited results (11-14) and the upcall of a status monitor that we do not use (16) are
 * decoded, so that garbage is called garbage, and change nothing: the sender gets its void reply
 * (R-NLM-4, R-SEC-1). GRANTED and GRANTED_MSG are for clients; a server that receives one has no
 * request pending, and the core says so (DENIED).
 *
 * What a handle or a range of the wrong size means is the core's to answer, because it depends on
 * the procedure: UNLOCK must not fail for it (R-NLM-7).
 */
#include "proto/nlm.h"

#include "codec/nlm_xdr.h"
#include "codec/rpc_msg.h"

_Static_assert((int)LOCK_GRANTED == (int)NLM_STAT_GRANTED &&
                   (int)LOCK_DENIED == (int)NLM_STAT_DENIED &&
                   (int)LOCK_NO_RESOURCES == (int)NLM_STAT_DENIED_NOLOCKS &&
                   (int)LOCK_BLOCKED == (int)NLM_STAT_BLOCKED &&
                   (int)LOCK_GRACE == (int)NLM_STAT_DENIED_GRACE_PERIOD &&
                   (int)LOCK_DEADLOCK == (int)NLM_STAT_DEADLCK &&
                   (int)LOCK_READ_ONLY == (int)NLM_STAT_ROFS &&
                   (int)LOCK_STALE_HANDLE == (int)NLM_STAT_STALE_FH &&
                   (int)LOCK_TOO_BIG == (int)NLM_STAT_FBIG,
               "the core counts as version 4 does");

/* ---- arguments ---- */

static struct request request_of(enum request_kind kind, uint32_t version,
                                 const struct nlm_args *args)
{
    const struct nlm_lock *lock = &args->lock;
    return (struct request){
        .kind = kind,
        .cookie = args->cookie,
        .lock = {.caller_name = lock->caller_name,
                 .fh = lock->fh,
                 .oh = lock->oh,
                 .offset = lock->offset,
                 .len = lock->len,
                 .start = lock->start,
                 .end = lock->end,
                 .is_too_big = lock->range == NLM_RANGE_TOO_BIG,
                 .is_bad_handle = !nlm_xdr_is_handle(version, lock->fh),
                 .exclusive = args->exclusive,
                 .block = args->block,
                 .reclaim = args->reclaim,
                 .svid = lock->svid,
                 .version = version,
                 .state = args->state},
    };
}

static bool in_null(struct xdr_in *in, uint32_t version, struct request *ret)
{
    (void)version;
    (void)ret; /* never reaches the core */
    return xdr_in_done(in);
}

static bool in_test(struct xdr_in *in, uint32_t version, struct request *ret)
{
    struct nlm_args args;
    if (!nlm_xdr_get_test(in, version, &args))
        return false;
    *ret = request_of(REQUEST_NLM_TEST, version, &args);
    return true;
}

static bool in_lock(struct xdr_in *in, uint32_t version, struct request *ret)
{
    struct nlm_args args;
    if (!nlm_xdr_get_lock(in, version, &args))
        return false;
    *ret = request_of(REQUEST_NLM_LOCK, version, &args);
    return true;
}

static bool in_cancel(struct xdr_in *in, uint32_t version, struct request *ret)
{
    struct nlm_args args;
    if (!nlm_xdr_get_cancel(in, version, &args))
        return false;
    *ret = request_of(REQUEST_NLM_CANCEL, version, &args);
    return true;
}

static bool in_unlock(struct xdr_in *in, uint32_t version, struct request *ret)
{
    struct nlm_args args;
    if (!nlm_xdr_get_unlock(in, version, &args))
        return false;
    *ret = request_of(REQUEST_NLM_UNLOCK, version, &args);
    return true;
}

static bool in_granted(struct xdr_in *in, uint32_t version, struct request *ret)
{
    struct nlm_args args;
    if (!nlm_xdr_get_test(in, version, &args))
        return false;
    *ret = request_of(REQUEST_NLM_GRANTED, version, &args);
    return true;
}

/* The same as messages: how a client asks is how it likes to be called back (R-BLK-2). */
static bool in_test_msg(struct xdr_in *in, uint32_t version, struct request *ret)
{
    if (!in_test(in, version, ret))
        return false;
    ret->lock.is_message = true;
    return true;
}

static bool in_lock_msg(struct xdr_in *in, uint32_t version, struct request *ret)
{
    if (!in_lock(in, version, ret))
        return false;
    ret->lock.is_message = true;
    return true;
}

static bool in_cancel_msg(struct xdr_in *in, uint32_t version, struct request *ret)
{
    if (!in_cancel(in, version, ret))
        return false;
    ret->lock.is_message = true;
    return true;
}

static bool in_unlock_msg(struct xdr_in *in, uint32_t version, struct request *ret)
{
    if (!in_unlock(in, version, ret))
        return false;
    ret->lock.is_message = true;
    return true;
}

static bool in_granted_msg(struct xdr_in *in, uint32_t version, struct request *ret)
{
    if (!in_granted(in, version, ret))
        return false;
    ret->lock.is_message = true;
    return true;
}

/* Results of calls that we did not make. */
static bool in_test_res(struct xdr_in *in, uint32_t version, struct request *ret)
{
    (void)ret; /* never reaches the core */
    struct nlm_res res;
    return nlm_xdr_get_test_res(in, version, &res);
}

static bool in_res(struct xdr_in *in, uint32_t version, struct request *ret)
{
    (void)version;
    (void)ret; /* never reaches the core */
    struct nlm_res res;
    return nlm_xdr_get_res(in, &res);
}

static bool in_granted_res(struct xdr_in *in, uint32_t version, struct request *ret)
{
    struct nlm_res res;
    if (!nlm_xdr_get_res(in, &res))
        return false;
    *ret = (struct request){
        .kind = REQUEST_NLM_GRANTED_RES,
        .cookie = res.cookie,
        .lock = {.version = version, .status = res.stat},
    };
    return true;
}

static bool in_upcall(struct xdr_in *in, uint32_t version, struct request *ret)
{
    (void)version;
    (void)ret; /* never reaches the core */
    struct nlm_notify notify;
    return nlm_xdr_get_upcall(in, &notify);
}

/* SHARE has no state: its client counts as monitored, with its known state. */
static bool in_share_of(enum request_kind kind, struct xdr_in *in, uint32_t version,
                        struct request *ret)
{
    struct nlm_share_args args;
    if (!nlm_xdr_get_share(in, version, &args))
        return false;
    *ret = (struct request){
        .kind = kind,
        .cookie = args.cookie,
        .lock = {.caller_name = args.caller_name,
                 .fh = args.fh,
                 .oh = args.oh,
                 .is_bad_handle = !nlm_xdr_is_handle(version, args.fh),
                 .reclaim = args.reclaim,
                 .version = version,
                 .mode = args.mode,
                 .access = args.access},
    };
    return true;
}

static bool in_share(struct xdr_in *in, uint32_t version, struct request *ret)
{
    return in_share_of(REQUEST_NLM_SHARE, in, version, ret);
}

static bool in_unshare(struct xdr_in *in, uint32_t version, struct request *ret)
{
    return in_share_of(REQUEST_NLM_UNSHARE, in, version, ret);
}

/* An unmonitored client cannot be called back either: it never waits (R-NM-1). */
static bool in_nm_lock(struct xdr_in *in, uint32_t version, struct request *ret)
{
    if (!in_lock(in, version, ret))
        return false;
    ret->lock.is_unmonitored = true;
    ret->lock.block = false;
    return true;
}

static bool in_free_all(struct xdr_in *in, uint32_t version, struct request *ret)
{
    struct nlm_notify notify;
    if (!nlm_xdr_get_free_all(in, &notify))
        return false;
    *ret = (struct request){
        .kind = REQUEST_NLM_FREE_ALL,
        .mon_name = notify.name,
        .state = notify.state,
        .lock = {.version = version},
    };
    return true;
}

/* ---- results ---- */

static void out_test_res(struct xdr_out *out, uint32_t version, const struct response *response)
{
    const struct nlm_holder holder = {.exclusive = response->holder.exclusive,
                                      .svid = response->holder.svid,
                                      .oh = response->holder.oh,
                                      .start = response->holder.start,
                                      .end = response->holder.end};
    nlm_xdr_put_test_res(out, version, response->cookie, (enum nlm_stat)response->status, &holder);
}

static void out_res(struct xdr_out *out, uint32_t version, const struct response *response)
{
    nlm_xdr_put_res(out, version, response->cookie, (enum nlm_stat)response->status);
}

static void out_share_res(struct xdr_out *out, uint32_t version, const struct response *response)
{
    nlm_xdr_put_share_res(out, version, response->cookie, (enum nlm_stat)response->status);
}

/* ---- the table ---- */

static const struct procedure nlm_procedures[] = {
    [NLM_NULL] = {.name = "NULL", .decode = in_null, .flags = PROCEDURE_STATELESS},
    [NLM_TEST] = {.name = "TEST", .decode = in_test, .encode = out_test_res},
    [NLM_LOCK] = {.name = "LOCK", .decode = in_lock, .encode = out_res, .flags = PROCEDURE_CACHED},
    [NLM_CANCEL] = {.name = "CANCEL",
                    .decode = in_cancel,
                    .encode = out_res,
                    .flags = PROCEDURE_CACHED},
    [NLM_UNLOCK] = {.name = "UNLOCK",
                    .decode = in_unlock,
                    .encode = out_res,
                    .flags = PROCEDURE_CACHED},
    [NLM_GRANTED] = {.name = "GRANTED", .decode = in_granted, .encode = out_res},

    [NLM_TEST_MSG] = {.name = "TEST_MSG",
                      .decode = in_test_msg,
                      .encode = out_test_res,
                      .flags = PROCEDURE_MESSAGE,
                      .result_proc = NLM_TEST_RES},
    [NLM_LOCK_MSG] = {.name = "LOCK_MSG",
                      .decode = in_lock_msg,
                      .encode = out_res,
                      .flags = PROCEDURE_MESSAGE | PROCEDURE_CACHED,
                      .result_proc = NLM_LOCK_RES},
    [NLM_CANCEL_MSG] = {.name = "CANCEL_MSG",
                        .decode = in_cancel_msg,
                        .encode = out_res,
                        .flags = PROCEDURE_MESSAGE | PROCEDURE_CACHED,
                        .result_proc = NLM_CANCEL_RES},
    [NLM_UNLOCK_MSG] = {.name = "UNLOCK_MSG",
                        .decode = in_unlock_msg,
                        .encode = out_res,
                        .flags = PROCEDURE_MESSAGE | PROCEDURE_CACHED,
                        .result_proc = NLM_UNLOCK_RES},
    [NLM_GRANTED_MSG] = {.name = "GRANTED_MSG",
                         .decode = in_granted_msg,
                         .encode = out_res,
                         .flags = PROCEDURE_MESSAGE,
                         .result_proc = NLM_GRANTED_RES},

    [NLM_TEST_RES] = {.name = "TEST_RES", .decode = in_test_res, .flags = PROCEDURE_STATELESS},
    [NLM_LOCK_RES] = {.name = "LOCK_RES", .decode = in_res, .flags = PROCEDURE_STATELESS},
    [NLM_CANCEL_RES] = {.name = "CANCEL_RES", .decode = in_res, .flags = PROCEDURE_STATELESS},
    [NLM_UNLOCK_RES] = {.name = "UNLOCK_RES", .decode = in_res, .flags = PROCEDURE_STATELESS},
    [NLM_GRANTED_RES] = {.name = "GRANTED_RES", .decode = in_granted_res},
    [NLM_SM_NOTIFY] = {.name = "SM_NOTIFY", .decode = in_upcall, .flags = PROCEDURE_STATELESS},

    [NLM_SHARE] = {.name = "SHARE",
                   .decode = in_share,
                   .encode = out_share_res,
                   .flags = PROCEDURE_CACHED},
    [NLM_UNSHARE] = {.name = "UNSHARE",
                     .decode = in_unshare,
                     .encode = out_share_res,
                     .flags = PROCEDURE_CACHED},
    [NLM_NM_LOCK] = {.name = "NM_LOCK",
                     .decode = in_nm_lock,
                     .encode = out_res,
                     .flags = PROCEDURE_CACHED},
    [NLM_FREE_ALL] = {.name = "FREE_ALL", .decode = in_free_all, .flags = PROCEDURE_CACHED},
};

#define PROCEDURE_COUNT (sizeof nlm_procedures / sizeof nlm_procedures[0])

static const struct program_version nlm_versions[] = {
    {.number = 1, .procedures = nlm_procedures, .procedure_count = NLM_SM_NOTIFY + 1},
    {.number = 3, .procedures = nlm_procedures, .procedure_count = PROCEDURE_COUNT},
    {.number = 4, .procedures = nlm_procedures, .procedure_count = PROCEDURE_COUNT},
};

/* The largest legal call has about 4.3 KiB; 16 KiB is what every program here takes (Appendix A).
 * The header of a call is longer than that of a reply. */
const struct program nlm_program = {
    .number = NLM_PROGRAM,
    .name = "NLM",
    .versions = nlm_versions,
    .version_count = sizeof nlm_versions / sizeof nlm_versions[0],
    .record_max = 16 * 1024,
    .reply_max = RPC_CALL_HEADER_LEN + NLM_RESULT_MAX,
};

/*
 * nsm.c -- the procedures of the Network Status Monitor (Open Group C702 chapter 11) as a table.
 *
 * A row turns argument bytes into a request for the core and the core's response into result
 * bytes. Nothing is decided here: a refusal arrives as response.refused and leaves as STAT_FAIL
 * where the protocol has a place for it, together with whatever state the core chose to send.
 *
 *   procedure        arguments   result                    why cached (R-DRC-1)
 *   0 NULL           void        void
 *   1 STAT           sm_name     sm_stat_res
 *   2 MON            mon         sm_stat_res               a late copy would undo an UNMON
 *   3 UNMON          mon_id      sm_stat, one word         a late copy would undo a MON
 *   4 UNMON_ALL      my_id       sm_stat, one word         the same
 *   5 SIMU_CRASH     void        void                      every execution raises the state
 *   6 NOTIFY         stat_chge   void                      a late copy would report an old reboot
 *
 * There is one version, so no row looks at it.
 *
 * Procedures without arguments refuse bytes in their place: a caller that sends some means
 * something else than it asks for.
 */
#include "proto/nsm.h"

#include "codec/nsm_xdr.h"
#include "codec/rpc_msg.h"

_Static_assert((int)NSM_PRIV_LEN == (int)RECORD_PRIV_LEN, "priv is stored as it is received");
_Static_assert((int)NSM_NAME_MAX <= (int)RECORD_NAME_MAX, "every name that decodes can be stored");

static bool in_null(struct xdr_in *in, uint32_t version, struct request *ret)
{
    (void)version;
    (void)ret; /* never reaches the core */
    return xdr_in_done(in);
}

static bool in_stat(struct xdr_in *in, uint32_t version, struct request *ret)
{
    (void)version;
    struct bytes mon_name;
    if (!nsm_xdr_get_name(in, &mon_name))
        return false;
    *ret = (struct request){.kind = REQUEST_NSM_STAT, .mon_name = mon_name};
    return true;
}

static struct request request_of_my_id(enum request_kind kind, const struct nsm_my_id *my_id)
{
    return (struct request){
        .kind = kind,
        .my_name = my_id->my_name,
        .my_prog = my_id->my_prog,
        .my_vers = my_id->my_vers,
        .my_proc = my_id->my_proc,
    };
}

static bool in_mon(struct xdr_in *in, uint32_t version, struct request *ret)
{
    (void)version;
    struct nsm_mon mon;
    if (!nsm_xdr_get_mon(in, &mon))
        return false;
    *ret = request_of_my_id(REQUEST_NSM_MON, &mon.mon_id.my_id);
    ret->mon_name = mon.mon_id.mon_name;
    ret->priv = mon.priv;
    return true;
}

static bool in_unmon(struct xdr_in *in, uint32_t version, struct request *ret)
{
    (void)version;
    struct nsm_mon_id mon_id;
    if (!nsm_xdr_get_mon_id(in, &mon_id))
        return false;
    *ret = request_of_my_id(REQUEST_NSM_UNMON, &mon_id.my_id);
    ret->mon_name = mon_id.mon_name;
    return true;
}

static bool in_unmon_all(struct xdr_in *in, uint32_t version, struct request *ret)
{
    (void)version;
    struct nsm_my_id my_id;
    if (!nsm_xdr_get_my_id(in, &my_id))
        return false;
    *ret = request_of_my_id(REQUEST_NSM_UNMON_ALL, &my_id);
    return true;
}

static bool in_simu_crash(struct xdr_in *in, uint32_t version, struct request *ret)
{
    (void)version;
    if (!xdr_in_done(in))
        return false;
    *ret = (struct request){.kind = REQUEST_NSM_SIMU_CRASH};
    return true;
}

static bool in_notify(struct xdr_in *in, uint32_t version, struct request *ret)
{
    (void)version;
    struct nsm_stat_chge change;
    if (!nsm_xdr_get_stat_chge(in, &change))
        return false;
    *ret = (struct request){
        .kind = REQUEST_NSM_NOTIFY,
        .mon_name = change.mon_name,
        .state = change.state,
    };
    return true;
}

static void out_stat_res(struct xdr_out *out, uint32_t version, const struct response *response)
{
    (void)version;
    nsm_xdr_put_stat_res(out, response->refused ? NSM_STAT_FAIL : NSM_STAT_SUCC, response->state);
}

static void out_stat(struct xdr_out *out, uint32_t version, const struct response *response)
{
    (void)version;
    nsm_xdr_put_stat(out, response->state);
}

static const struct procedure nsm_procedures[] = {
    [NSM_NULL] = {.name = "NULL", .decode = in_null, .flags = PROCEDURE_STATELESS},
    [NSM_STAT] = {.name = "STAT", .decode = in_stat, .encode = out_stat_res},
    [NSM_MON] = {.name = "MON",
                 .decode = in_mon,
                 .encode = out_stat_res,
                 .flags = PROCEDURE_CACHED},
    [NSM_UNMON] = {.name = "UNMON",
                   .decode = in_unmon,
                   .encode = out_stat,
                   .flags = PROCEDURE_CACHED},
    [NSM_UNMON_ALL] = {.name = "UNMON_ALL",
                       .decode = in_unmon_all,
                       .encode = out_stat,
                       .flags = PROCEDURE_CACHED},
    [NSM_SIMU_CRASH] = {.name = "SIMU_CRASH", .decode = in_simu_crash, .flags = PROCEDURE_CACHED},
    [NSM_NOTIFY] = {.name = "NOTIFY", .decode = in_notify, .flags = PROCEDURE_CACHED},
};

static const struct program_version nsm_versions[] = {
    {.number = NSM_VERSION,
     .procedures = nsm_procedures,
     .procedure_count = sizeof nsm_procedures / sizeof nsm_procedures[0]},
};

/* The largest legal call has about 3 KiB; 16 KiB is what every program here takes (Appendix A). */
const struct program nsm_program = {
    .number = NSM_PROGRAM,
    .name = "NSM",
    .versions = nsm_versions,
    .version_count = sizeof nsm_versions / sizeof nsm_versions[0],
    .record_max = 16 * 1024,
    .reply_max = RPC_REPLY_HEADER_MAX + NSM_RESULT_MAX,
};

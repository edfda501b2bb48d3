/*
 * nsm_xdr.h -- NSM version 1 arguments and results (Open Group C702 chapter 11, program 100024).
 *
 * Each decoder takes the whole argument body and fails when it is cut short, too long or has bytes
 * left over; *ret is then untouched. Views point into the message. The content of names is not
 * judged here.
 */
#ifndef CODEC_NSM_XDR_H
#define CODEC_NSM_XDR_H

#include "base/programs.h"
#include "codec/xdr.h"

enum {
    NSM_VERSION = 1,
    NSM_NAME_MAX = 1024,
    NSM_PRIV_LEN = 16,
    NSM_STATUS_MAX = 4 + NSM_NAME_MAX + 4 + NSM_PRIV_LEN, /* longest arguments of a status call */
    NSM_RESULT_MAX = 8,                                   /* the longest result: sm_stat_res */
};

enum nsm_procedure {
    NSM_NULL = 0,
    NSM_STAT = 1,
    NSM_MON = 2,
    NSM_UNMON = 3,
    NSM_UNMON_ALL = 4,
    NSM_SIMU_CRASH = 5,
    NSM_NOTIFY = 6,
};

enum nsm_result { NSM_STAT_SUCC = 0, NSM_STAT_FAIL = 1 };

struct nsm_my_id {
    struct bytes my_name;
    uint32_t my_prog, my_vers, my_proc;
};

struct nsm_mon_id {
    struct bytes mon_name;
    struct nsm_my_id my_id;
};

struct nsm_mon {
    struct nsm_mon_id mon_id;
    struct bytes priv; /* NSM_PRIV_LEN bytes */
};

struct nsm_stat_chge {
    struct bytes mon_name;
    uint32_t state;
};

/* Arguments: sm_name (STAT), my_id (UNMON_ALL), mon_id (UNMON), mon (MON), stat_chge (NOTIFY). */
bool nsm_xdr_get_name(struct xdr_in *in, struct bytes *ret_mon_name);
bool nsm_xdr_get_my_id(struct xdr_in *in, struct nsm_my_id *ret);
bool nsm_xdr_get_mon_id(struct xdr_in *in, struct nsm_mon_id *ret);
bool nsm_xdr_get_mon(struct xdr_in *in, struct nsm_mon *ret);
bool nsm_xdr_get_stat_chge(struct xdr_in *in, struct nsm_stat_chge *ret);

/* Results: sm_stat_res (STAT, MON) and sm_stat (UNMON, UNMON_ALL), one word without a status. */
void nsm_xdr_put_stat_res(struct xdr_out *out, enum nsm_result result, uint32_t state);
void nsm_xdr_put_stat(struct xdr_out *out, uint32_t state);

/* Arguments of the call to a registrant: status{mon_name, state, priv}. */
void nsm_xdr_put_status(struct xdr_out *out, struct bytes mon_name, uint32_t state,
                        struct bytes priv);
/* Those of SM_NOTIFY to a status monitor: stat_chge{mon_name, state}. */
void nsm_xdr_put_stat_chge(struct xdr_out *out, struct bytes mon_name, uint32_t state);

#endif

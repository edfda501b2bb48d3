/*
 * peer_nsm.h -- NSM version 1 as a client speaks it (Open Group C702 chapter 11).
 *
 * Each peer_nsm_put_* writes one whole call into a cleared packet, AUTH_NONE, xid as given.
 */
#ifndef PEER_PEER_NSM_H
#define PEER_PEER_NSM_H

#include "peer/packet.h"

enum {
    PEER_NSM_PROGRAM = 100024,
    PEER_NSM_VERSION = 1,
    PEER_NSM_PRIV_LEN = 16,
    PEER_NSM_PROCEDURES = 7,
};

enum peer_nsm_procedure {
    PEER_NSM_NULL = 0,
    PEER_NSM_STAT = 1,
    PEER_NSM_MON = 2,
    PEER_NSM_UNMON = 3,
    PEER_NSM_UNMON_ALL = 4,
    PEER_NSM_SIMU_CRASH = 5,
    PEER_NSM_NOTIFY = 6,
};

enum { PEER_NSM_STAT_SUCC = 0, PEER_NSM_STAT_FAIL = 1 };

/* Who monitors whom: with the source address, the key of a registration (D1). */
struct peer_nsm_id {
    const char *mon_name, *my_name;
    uint32_t my_prog, my_vers, my_proc;
};

void peer_nsm_put_header(struct packet *call, uint32_t xid, enum peer_nsm_procedure procedure);
void peer_nsm_put_null(struct packet *call, uint32_t xid);
void peer_nsm_put_stat(struct packet *call, uint32_t xid, const char *mon_name);
void peer_nsm_put_mon(struct packet *call, uint32_t xid, const struct peer_nsm_id *id,
                      const uint8_t priv[static PEER_NSM_PRIV_LEN]);
void peer_nsm_put_unmon(struct packet *call, uint32_t xid, const struct peer_nsm_id *id);
/* id->mon_name is not used. */
void peer_nsm_put_unmon_all(struct packet *call, uint32_t xid, const struct peer_nsm_id *id);
void peer_nsm_put_simu_crash(struct packet *call, uint32_t xid);
void peer_nsm_put_notify(struct packet *call, uint32_t xid, const char *mon_name, uint32_t state);

/* sm_stat_res of STAT and MON. False: the reply is an error or has another shape. */
bool peer_nsm_get_stat_res(const struct packet_reply *reply, uint32_t *ret_res,
                           uint32_t *ret_state);
/* sm_stat of UNMON and UNMON_ALL: exactly four bytes. */
bool peer_nsm_get_stat(const struct packet_reply *reply, uint32_t *ret_state);
/* NULL, SIMU_CRASH, NOTIFY: success with an empty result. */
bool peer_nsm_is_void(const struct packet_reply *reply);

#endif

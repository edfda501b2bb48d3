/*
 * peer_nsm.c -- NSM version 1 as a client speaks it; see peer_nsm.h.
 */
#include "peer/peer_nsm.h"

static void put_my_id(struct packet *call, const struct peer_nsm_id *id)
{
    packet_put_text(call, id->my_name);
    packet_put_u32(call, id->my_prog);
    packet_put_u32(call, id->my_vers);
    packet_put_u32(call, id->my_proc);
}

void peer_nsm_put_header(struct packet *call, uint32_t xid, enum peer_nsm_procedure procedure)
{
    struct packet_call header = {.xid = xid,
                                 .prog = PEER_NSM_PROGRAM,
                                 .vers = PEER_NSM_VERSION,
                                 .proc = (uint32_t)procedure,
                                 .auth = PACKET_AUTH_NONE};
    packet_clear(call);
    packet_put_call(call, &header);
}

void peer_nsm_put_null(struct packet *call, uint32_t xid)
{
    peer_nsm_put_header(call, xid, PEER_NSM_NULL);
}

void peer_nsm_put_stat(struct packet *call, uint32_t xid, const char *mon_name)
{
    peer_nsm_put_header(call, xid, PEER_NSM_STAT);
    packet_put_text(call, mon_name);
}

void peer_nsm_put_mon(struct packet *call, uint32_t xid, const struct peer_nsm_id *id,
                      const uint8_t priv[static PEER_NSM_PRIV_LEN])
{
    peer_nsm_put_header(call, xid, PEER_NSM_MON);
    packet_put_text(call, id->mon_name);
    put_my_id(call, id);
    packet_put_bytes(call, priv, PEER_NSM_PRIV_LEN);
}

void peer_nsm_put_unmon(struct packet *call, uint32_t xid, const struct peer_nsm_id *id)
{
    peer_nsm_put_header(call, xid, PEER_NSM_UNMON);
    packet_put_text(call, id->mon_name);
    put_my_id(call, id);
}

void peer_nsm_put_unmon_all(struct packet *call, uint32_t xid, const struct peer_nsm_id *id)
{
    peer_nsm_put_header(call, xid, PEER_NSM_UNMON_ALL);
    put_my_id(call, id);
}

void peer_nsm_put_simu_crash(struct packet *call, uint32_t xid)
{
    peer_nsm_put_header(call, xid, PEER_NSM_SIMU_CRASH);
}

void peer_nsm_put_notify(struct packet *call, uint32_t xid, const char *mon_name, uint32_t state)
{
    peer_nsm_put_header(call, xid, PEER_NSM_NOTIFY);
    packet_put_text(call, mon_name);
    packet_put_u32(call, state);
}

static bool succeeded(const struct packet_reply *reply)
{
    return reply->accepted && reply->status == PACKET_SUCCESS;
}

bool peer_nsm_get_stat_res(const struct packet_reply *reply, uint32_t *ret_res, uint32_t *ret_state)
{
    struct packet_reader reader = {reply->body, reply->body_len, !succeeded(reply)};
    uint32_t res = packet_get_u32(&reader);
    uint32_t state = packet_get_u32(&reader);
    if (!packet_is_done(&reader) || res > PEER_NSM_STAT_FAIL)
        return false;
    *ret_res = res;
    *ret_state = state;
    return true;
}

bool peer_nsm_get_stat(const struct packet_reply *reply, uint32_t *ret_state)
{
    struct packet_reader reader = {reply->body, reply->body_len, !succeeded(reply)};
    uint32_t state = packet_get_u32(&reader);
    if (!packet_is_done(&reader))
        return false;
    *ret_state = state;
    return true;
}

bool peer_nsm_is_void(const struct packet_reply *reply)
{
    return succeeded(reply) && reply->body_len == 0;
}

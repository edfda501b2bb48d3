/*
 * lock_call.c -- NLM calls from a few numbers; see lock_call.h.
 */
#include "lock_call.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PATIENCE_MS 60000
#define FILLING     0x5a /* of a handle, behind the number */

void lock_call_fh(uint32_t file, uint8_t ret[static LOCK_CALL_FH_LEN])
{
    memset(ret, FILLING, LOCK_CALL_FH_LEN);
    for (uint32_t i = 0; i < 4; i++)
        ret[i] = (uint8_t)(file >> (24 - 8 * i));
}

uint32_t lock_call_file(const uint8_t *fh, uint32_t len)
{
    uint8_t expected[LOCK_CALL_FH_LEN];
    if (len != LOCK_CALL_FH_LEN)
        return UINT32_MAX;
    uint32_t file = (uint32_t)fh[0] << 24 | (uint32_t)fh[1] << 16 | (uint32_t)fh[2] << 8 | fh[3];
    lock_call_fh(file, expected);
    return memcmp(fh, expected, sizeof(expected)) == 0 ? file : UINT32_MAX;
}

const char *lock_call_oh(const struct lock_call *call)
{
    static char oh[PEER_NLM_NETOBJ_MAX];
    snprintf(oh, sizeof(oh), "%u@%s", call->svid, call->name);
    return oh;
}

static uint32_t version_of(const struct lock_call *call)
{
    return call->vers == 0 ? 4 : call->vers;
}

void lock_call_put(struct packet *packet, const struct lock_call *call)
{
    static struct peer_nlm_args args; /* large, and zero behind what is used */
    static uint32_t xid;
    uint8_t fh[LOCK_CALL_FH_LEN];
    lock_call_fh(call->file, fh);
    uint32_t cookie = call->cookie != 0 ? call->cookie : call->svid;
    args.cookie.len = 4;
    memcpy(args.cookie.at, &cookie, 4);
    args.block = call->block;
    args.exclusive = call->exclusive;
    args.reclaim = call->reclaim;
    args.state = call->state;
    args.mode = call->mode;
    args.access = call->access;
    args.lock.svid = call->svid;
    args.lock.offset = call->offset;
    args.lock.len = call->len;
    args.lock.caller_name.len = (uint32_t)strlen(call->name);
    memcpy(args.lock.caller_name.at, call->name, args.lock.caller_name.len);
    args.lock.fh.len = sizeof(fh);
    memcpy(args.lock.fh.at, fh, sizeof(fh));
    const char *oh = lock_call_oh(call);
    args.lock.oh.len = (uint32_t)strlen(oh);
    memcpy(args.lock.oh.at, oh, args.lock.oh.len);
    peer_nlm_put_call(packet, ++xid ^ (uint32_t)dial_now_ns(), version_of(call), call->procedure,
                      &args);
}

int lock_call_status(const struct lock_call *call, const struct packet_reply *reply,
                     struct peer_nlm_res *ret)
{
    static struct peer_nlm_res res;
    struct packet_reader body = {reply->body, reply->body_len, false};
    if (!reply->accepted || reply->status != PACKET_SUCCESS)
        return -EPROTO;
    if (!peer_nlm_get_res(&body, version_of(call), call->procedure, &res))
        return -EBADMSG;
    if (ret)
        *ret = res;
    return (int)res.status;
}

const char *lock_call_text(int status)
{
    return status < 0 ? strerror(-status) : peer_nlm_status_text((uint32_t)status);
}

int lock_call_once(const struct harness_server *server, uint32_t source, bool is_udp,
                   const struct lock_call *call, struct peer_nlm_res *ret)
{
    static struct packet packet, answer;
    struct packet_reply reply;
    struct dial_route route = harness_route(server, is_udp);
    if (source != 0)
        route.source = dial_endpoint_v4(source, 0);
    lock_call_put(&packet, call);
    int result = dial_call(&route, &packet, PATIENCE_MS, &answer, &reply);
    return result < 0 ? result : lock_call_status(call, &reply, ret);
}

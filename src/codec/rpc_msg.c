/*
 * rpc_msg.c -- RPC version 2 headers (RFC 5531 sections 9 and 8.2, appendix A for AUTH_SYS).
 *
 *   call:      xid  0  rpcvers  prog  vers  proc  cred{flavor, body<400>}  verf{...}  arguments
 *   accepted:  xid  1  0  verf{AUTH_NONE, empty}  accept_stat  [low high | result]
 *   denied:    xid  1  1  RPC_MISMATCH low high  |  AUTH_ERROR auth_stat
 *
 * What is wrong with a call is decided in this order, because each answer needs what comes before
 * it to be readable:
 *  (1) No xid, or not a CALL: nothing can be answered. A reply to a reply could also run forever
 *      between two servers.
 *  (2) Another RPC version: RPC_MISMATCH; nothing behind the version word is looked at, since only
 *      that version says what it would mean.
 *  (3) A header that ends early: not an RPC message, no answer. A credential or verifier longer
 *      than RFC 5531 allows: AUTH_BADCRED, AUTH_BADVERF; the length alone says so, and what follows
 *      is not looked at.
 *  (4) The credential: AUTH_NONE is taken whatever its body says; AUTH_SYS must decode, to its last
 *      byte; every other flavour is rejected.
 *
 * The verifier of a call is skipped: AUTH_NONE and AUTH_SYS have none that could be verified.
 */
#include "codec/rpc_msg.h"

#include "base/check.h"

enum { MSG_CALL = 0, MSG_REPLY = 1 };
enum { REPLY_ACCEPTED = 0, REPLY_DENIED = 1 };
enum { DENIED_RPC_MISMATCH = 0, DENIED_AUTH_ERROR = 1 };
enum { ACCEPTED_LEN = 24 };

static bool get_auth_sys(struct bytes body, struct rpc_credential *ret)
{
    struct xdr_in in = xdr_in_of(body);
    struct rpc_credential credential;
    credential.flavor = RPC_AUTH_SYS;
    xdr_get_u32(&in); /* stamp: the caller's own business */
    credential.machine = xdr_get_opaque(&in, RPC_AUTH_MACHINE_MAX);
    credential.uid = xdr_get_u32(&in);
    credential.gid = xdr_get_u32(&in);
    credential.group_count = xdr_get_u32(&in);
    if (credential.group_count > RPC_AUTH_GROUPS_MAX)
        return false;
    for (uint32_t i = 0; i < credential.group_count; i++)
        credential.groups[i] = xdr_get_u32(&in);
    if (!xdr_in_done(&in))
        return false;
    *ret = credential;
    return true;
}

static enum rpc_call_result get_credential(uint32_t flavor, struct bytes body,
                                           struct rpc_credential *ret)
{
    if (flavor == RPC_AUTH_NONE) {
        ret->flavor = RPC_AUTH_NONE;
        ret->machine = (struct bytes){0};
        ret->uid = ret->gid = ret->group_count = 0;
        return RPC_CALL_OK;
    }
    if (flavor == RPC_AUTH_SYS)
        return get_auth_sys(body, ret) ? RPC_CALL_OK : RPC_CALL_BAD_CRED;
    return RPC_CALL_REJECTED;
}

/* An authenticator. False: it is too long, and nothing behind its length was read. */
static bool get_authenticator(struct xdr_in *in, uint32_t *ret_flavor, struct bytes *ret_body)
{
    *ret_flavor = xdr_get_u32(in);
    uint32_t len = xdr_get_u32(in);
    if (len > RPC_AUTH_BODY_MAX)
        return false;
    *ret_body = xdr_get_fixed(in, len);
    return true;
}

enum rpc_call_result rpc_msg_get_call(struct bytes message, struct rpc_call *ret)
{
    struct xdr_in in = xdr_in_of(message);
    ret->xid = xdr_get_u32(&in);
    uint32_t type = xdr_get_u32(&in);
    uint32_t version = xdr_get_u32(&in);
    if (!xdr_in_ok(&in) || type != MSG_CALL)
        return RPC_CALL_DROP;
    if (version != RPC_VERSION)
        return RPC_CALL_RPC_MISMATCH;

    uint32_t cred_flavor, verf_flavor;
    struct bytes cred_body, verf_body;
    uint32_t prog = xdr_get_u32(&in), vers = xdr_get_u32(&in), proc = xdr_get_u32(&in);
    if (!get_authenticator(&in, &cred_flavor, &cred_body))
        return RPC_CALL_BAD_CRED;
    if (!get_authenticator(&in, &verf_flavor, &verf_body))
        return RPC_CALL_BAD_VERF;
    if (!xdr_in_ok(&in))
        return RPC_CALL_DROP;
    enum rpc_call_result result = get_credential(cred_flavor, cred_body, &ret->credential);
    if (result != RPC_CALL_OK)
        return result;
    ret->prog = prog;
    ret->vers = vers;
    ret->proc = proc;
    ret->args = xdr_in_rest(&in);
    return RPC_CALL_OK;
}

/* Every accepted reply carries an empty AUTH_NONE verifier. One item, not six: every reply begins
 * with it. */
static void put_accepted(struct xdr_out *out, uint32_t xid, enum rpc_accept_stat stat)
{
    uint8_t *at = xdr_put_room(out, ACCEPTED_LEN);
    if (at == NULL)
        return;
    store_be32(at, xid);
    store_be32(at + 4, MSG_REPLY);
    store_be32(at + 8, REPLY_ACCEPTED);
    store_be32(at + 12, RPC_AUTH_NONE);
    store_be32(at + 16, 0);
    store_be32(at + 20, (uint32_t)stat);
}

static void put_denied(struct xdr_out *out, uint32_t xid, uint32_t why)
{
    xdr_put_u32(out, xid);
    xdr_put_u32(out, MSG_REPLY);
    xdr_put_u32(out, REPLY_DENIED);
    xdr_put_u32(out, why);
}

void rpc_msg_put_accepted(struct xdr_out *out, uint32_t xid, enum rpc_accept_stat stat)
{
    CHECK(stat != RPC_PROG_MISMATCH);
    put_accepted(out, xid, stat);
}

void rpc_msg_put_prog_mismatch(struct xdr_out *out, uint32_t xid, uint32_t low, uint32_t high)
{
    put_accepted(out, xid, RPC_PROG_MISMATCH);
    xdr_put_u32(out, low);
    xdr_put_u32(out, high);
}

void rpc_msg_put_rpc_mismatch(struct xdr_out *out, uint32_t xid)
{
    put_denied(out, xid, DENIED_RPC_MISMATCH);
    xdr_put_u32(out, RPC_VERSION);
    xdr_put_u32(out, RPC_VERSION);
}

void rpc_msg_put_auth_error(struct xdr_out *out, uint32_t xid, enum rpc_auth_stat why)
{
    put_denied(out, xid, DENIED_AUTH_ERROR);
    xdr_put_u32(out, (uint32_t)why);
}

void rpc_msg_put_call(struct xdr_out *out, uint32_t xid, uint32_t prog, uint32_t vers,
                      uint32_t proc)
{
    xdr_put_u32(out, xid);
    xdr_put_u32(out, MSG_CALL);
    xdr_put_u32(out, RPC_VERSION);
    xdr_put_u32(out, prog);
    xdr_put_u32(out, vers);
    xdr_put_u32(out, proc);
    for (int i = 0; i < 2; i++) { /* credential and verifier: AUTH_NONE, empty */
        xdr_put_u32(out, RPC_AUTH_NONE);
        xdr_put_u32(out, 0);
    }
}

bool rpc_msg_is_reply(struct bytes message)
{
    struct xdr_in in = xdr_in_of(message);
    (void)xdr_get_u32(&in);
    return xdr_get_u32(&in) == MSG_REPLY && xdr_in_ok(&in);
}

bool rpc_msg_get_answer(struct bytes message, struct rpc_answer *ret)
{
    struct xdr_in in = xdr_in_of(message);
    struct rpc_answer answer = {.stat = RPC_ANSWER_ERROR};
    answer.xid = xdr_get_u32(&in);
    if (xdr_get_u32(&in) != MSG_REPLY)
        return false;
    uint32_t reply_stat = xdr_get_u32(&in);
    if (reply_stat > REPLY_DENIED)
        return false;
    if (reply_stat == REPLY_DENIED) {
        (void)xdr_get_u32(&in); /* why: RPC version or authentication, both final */
    } else {
        (void)xdr_get_u32(&in); /* verifier: there is nothing to verify */
        (void)xdr_get_opaque(&in, RPC_AUTH_BODY_MAX);
        uint32_t stat = xdr_get_u32(&in);
        if (stat == RPC_SUCCESS)
            answer.stat = RPC_ANSWER_SUCCESS;
        else if (stat == RPC_PROG_MISMATCH)
            answer.stat = RPC_ANSWER_PROG_MISMATCH;
    }
    if (!xdr_in_ok(&in))
        return false;
    answer.results = xdr_in_rest(&in);
    *ret = answer;
    return true;
}

/*
 * rpc_msg.h -- ONC RPC version 2 call and reply headers (RFC 5531), AUTH_NONE and AUTH_SYS.
 *
 * A call is read into views of the message; the arguments are left to the program that it names. A
 * reply is a header written in front of its result. What is wrong with a call is data, not an
 * error: each value of enum rpc_call_result says which answer it gets.
 */
#ifndef CODEC_RPC_MSG_H
#define CODEC_RPC_MSG_H

#include "codec/xdr.h"

enum {
    RPC_VERSION = 2,
    RPC_AUTH_BODY_MAX = 400,    /* RFC 5531: opaque body<400> */
    RPC_AUTH_MACHINE_MAX = 255, /* RFC 5531, AUTH_SYS machinename */
    RPC_AUTH_GROUPS_MAX = 16,   /* RFC 5531, AUTH_SYS gids */
    RPC_REPLY_HEADER_MAX = 32,  /* the longest reply header that we write */
    RPC_CALL_HEADER_LEN = 40,   /* of a call that we make */
};

enum rpc_auth_flavor { RPC_AUTH_NONE = 0, RPC_AUTH_SYS = 1 };

enum rpc_accept_stat {
    RPC_SUCCESS = 0,
    RPC_PROG_UNAVAIL = 1,
    RPC_PROG_MISMATCH = 2,
    RPC_PROC_UNAVAIL = 3,
    RPC_GARBAGE_ARGS = 4,
    RPC_SYSTEM_ERR = 5,
};

enum rpc_auth_stat {
    RPC_AUTH_BADCRED = 1,
    RPC_AUTH_REJECTEDCRED = 2,
    RPC_AUTH_BADVERF = 3,
    RPC_AUTH_TOOWEAK = 5,
};

/* Who says they call. Only AUTH_SYS fills the names; nothing here is proof of anything. */
struct rpc_credential {
    enum rpc_auth_flavor flavor;
    struct bytes machine;
    uint32_t uid, gid;
    uint32_t group_count;
    uint32_t groups[RPC_AUTH_GROUPS_MAX];
};

struct rpc_call {
    uint32_t xid, prog, vers, proc;
    struct rpc_credential credential;
    struct bytes args; /* the rest of the message, not yet decoded */
};

enum rpc_call_result {
    RPC_CALL_OK,
    RPC_CALL_DROP,         /* not a call, or no whole header: no answer can be made */
    RPC_CALL_RPC_MISMATCH, /* another RPC version; xid is valid */
    RPC_CALL_BAD_CRED,     /* AUTH_SYS that does not decode, or too long; xid is valid */
    RPC_CALL_BAD_VERF,     /* too long; xid is valid */
    RPC_CALL_REJECTED,     /* a flavour that we do not speak; xid is valid */
};

/*
 * Views in *ret point into the message. On RPC_CALL_DROP *ret means nothing; on the other results
 * but OK only ret->xid is set. Of the groups only as many are written as there are.
 */
enum rpc_call_result rpc_msg_get_call(struct bytes message, struct rpc_call *ret);

/*
 * Reply headers, at most RPC_REPLY_HEADER_MAX bytes. The result body follows an accepted SUCCESS.
 * PROG_MISMATCH has a range behind it, hence a function of its own.
 */
void rpc_msg_put_accepted(struct xdr_out *out, uint32_t xid, enum rpc_accept_stat stat);
void rpc_msg_put_prog_mismatch(struct xdr_out *out, uint32_t xid, uint32_t low, uint32_t high);
void rpc_msg_put_rpc_mismatch(struct xdr_out *out, uint32_t xid);
void rpc_msg_put_auth_error(struct xdr_out *out, uint32_t xid, enum rpc_auth_stat why);

/* The header of a call that we make, with AUTH_NONE; the arguments follow. */
void rpc_msg_put_call(struct xdr_out *out, uint32_t xid, uint32_t prog, uint32_t vers,
                      uint32_t proc);

/* What a reply to such a call says. */
enum rpc_answer_stat {
    RPC_ANSWER_SUCCESS,
    RPC_ANSWER_PROG_MISMATCH, /* the program is there in other versions */
    RPC_ANSWER_ERROR,         /* any other refusal, accepted or denied */
};

struct rpc_answer {
    uint32_t xid;
    enum rpc_answer_stat stat;
    struct bytes results; /* SUCCESS: the rest of the message, not yet decoded */
};

/* False: not a reply, or cut short. Views point into the message. */
bool rpc_msg_get_answer(struct bytes message, struct rpc_answer *ret);

/* True for what may be a reply: it is not a call, and nobody answers it. */
bool rpc_msg_is_reply(struct bytes message);

#endif

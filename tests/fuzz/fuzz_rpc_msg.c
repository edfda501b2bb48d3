/*
 * fuzz_rpc_msg.c -- any bytes as an RPC message: views stay inside it, a header is never accepted
 * shorter than it is, what is accepted does not depend on the arguments, and every answer fits.
 *
 * Input: the message.
 */
#include "codec/rpc_msg.h"
#include "fuzz.h"

enum { HEADER_LEN_MIN = 40, XID_LEN = 4 };

static enum rpc_call_result get(const uint8_t *data, size_t len, struct rpc_call *ret)
{
    return rpc_msg_get_call((struct bytes){data, (uint32_t)len}, ret);
}

/* The header alone is accepted with the same meaning, and no shorter one is. */
static void check_header(const uint8_t *message, const struct rpc_call *call, size_t header_len)
{
    CHECK(header_len >= HEADER_LEN_MIN);
    CHECK(header_len % 4 == 0);
    uint8_t *copy = fuzz_copy((struct bytes){message, (uint32_t)header_len});
    struct rpc_call again = {0};
    CHECK(get(copy, header_len, &again) == RPC_CALL_OK);
    CHECK(again.xid == call->xid && again.prog == call->prog);
    CHECK(again.vers == call->vers && again.proc == call->proc);
    CHECK(again.credential.flavor == call->credential.flavor);
    CHECK(bytes_equal(again.credential.machine, call->credential.machine));
    CHECK(again.credential.uid == call->credential.uid);
    CHECK(again.credential.gid == call->credential.gid);
    CHECK(again.args.len == 0);
    free(copy);
    for (size_t len = 0; len < header_len; len++) {
        copy = fuzz_copy((struct bytes){message, (uint32_t)len});
        CHECK(get(copy, len, &again) == RPC_CALL_DROP);
        free(copy);
    }
}

/* Every header that could answer it: the right length, and the caller's xid in front. */
static void check_replies(uint32_t xid)
{
    static const enum rpc_accept_stat stats[] = {RPC_SUCCESS, RPC_PROG_UNAVAIL, RPC_PROC_UNAVAIL,
                                                 RPC_GARBAGE_ARGS, RPC_SYSTEM_ERR};
    uint8_t buffer[RPC_REPLY_HEADER_MAX];
    for (size_t i = 0; i < sizeof stats / sizeof stats[0] + 3; i++) {
        struct xdr_out out = xdr_out_of(buffer, sizeof buffer);
        if (i == 0)
            rpc_msg_put_rpc_mismatch(&out, xid);
        else if (i == 1)
            rpc_msg_put_auth_error(&out, xid, RPC_AUTH_BADCRED);
        else if (i == 2)
            rpc_msg_put_prog_mismatch(&out, xid, 1, 1);
        else
            rpc_msg_put_accepted(&out, xid, stats[i - 3]);
        CHECK(!out.overflowed);
        CHECK(load_be32(buffer) == xid);
        /* Our own answer is never taken for a call. */
        struct rpc_call call;
        CHECK(get(buffer, xdr_out_len(&out), &call) == RPC_CALL_DROP);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > UINT16_MAX)
        return 0;
    uint8_t *message = fuzz_copy((struct bytes){data, (uint32_t)size});
    struct rpc_call call = {0};
    enum rpc_call_result result = get(message, size, &call);
    if (result == RPC_CALL_OK) {
        CHECK(fuzz_is_inside(call.credential.machine, message, size));
        CHECK(call.credential.machine.len <= RPC_AUTH_MACHINE_MAX);
        CHECK(call.args.len <= size);
        CHECK(call.args.len == 0 || call.args.at + call.args.len == message + size);
        check_header(message, &call, size - call.args.len);
    }
    if (result != RPC_CALL_DROP) {
        CHECK(size >= XID_LEN);
        CHECK(call.xid == load_be32(message));
        check_replies(call.xid);
    }
    free(message);
    return 0;
}

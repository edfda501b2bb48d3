/*
 * outcall.c -- see outcall.h.
 *
 * A call that the client cannot take now is not asked of the core: it stays there, with its time
 * come, until an attempt has ended.
 */
#include "rpc/outcall.h"

#include "base/check.h"
#include "codec/nsm_xdr.h"

static void begin(struct rpc_client *client, const struct core_call *call, uint64_t now_ns)
{
    uint8_t bytes[CORE_CALL_STATUS_MAX][NSM_STATUS_MAX];
    struct client_attempt attempt = {
        .id = call->id,
        .to = call->to,
        .local = call->local,
        .prog = call->prog,
        .vers = call->vers,
        .proc = call->proc,
        .port_hint = call->port_hint,
        .message_count = call->status_count,
        .deadline_ns = call->deadline_ns,
    };
    for (uint32_t i = 0; i < call->status_count; i++) {
        struct xdr_out out = xdr_out_of(bytes[i], sizeof bytes[i]);
        nsm_xdr_put_status(&out, call->status[i].mon_name, call->status[i].state, call->priv);
        CHECK(!out.overflowed);
        attempt.messages[i] = (struct bytes){bytes[i], xdr_out_len(&out)};
    }
    CHECK(rpc_client_start(client, &attempt, now_ns)); /* rpc_client_has_room was asked */
}

void outcall_turn(struct core *core, struct rpc_client *client, uint64_t now_ns, uint64_t wall_ns)
{
    struct client_result result;
    while (!core_is_full(core) && rpc_client_next_result(client, &result)) {
        struct core_input input = {
            .kind = CORE_CALL_DONE,
            .now_ns = now_ns,
            .wall_ns = wall_ns,
            .call = result.id,
            .is_answered = result.outcome == CLIENT_ANSWERED,
            .answered_count = result.answered_count,
        };
        core_step(core, &input, NULL);
    }
    struct core_call call;
    while (rpc_client_has_room(client) && core_next_call(core, now_ns, &call))
        begin(client, &call, now_ns);
}

uint64_t outcall_deadline_ns(const struct core *core, const struct rpc_client *client)
{
    return rpc_client_has_room(client) ? core_deadline_ns(core) : UINT64_MAX;
}

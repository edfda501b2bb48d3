/*
 * outcall.c -- see outcall.h.
 *
 * A call that the client cannot take now is not asked of the core: it stays there, with its time
 * come, until an attempt has ended.
 *
 * Which of its calls an ended one was is the core's to know. So every answer is read as the result
 * of GRANTED and as that of SM_STAT, the two calls whose answer says more than that they arrived;
 * the core looks at the one that it asked for.
 */
#include "rpc/outcall.h"

#include "base/check.h"
#include "codec/nlm_xdr.h"
#include "codec/nsm_xdr.h"

_Static_assert((int)NLM_GRANTED_MAX <= (int)CLIENT_ARGS_MAX, "every GRANTED can be sent");
_Static_assert((int)NLM_RESULT_MAX <= (int)CLIENT_ARGS_MAX, "and the result of every message");
_Static_assert((int)NSM_STATUS_MAX <= (int)CLIENT_ARGS_MAX, "and every status");
_Static_assert(CLIENT_MESSAGES_MAX - CORE_CALL_NAMES_MAX >= 0, "and SM_NOTIFY with every name");
_Static_assert((int)CORE_CALL_STATUS_MAX <= (int)CORE_CALL_NAMES_MAX, "no call has more messages");

/* Arguments under construction. */
struct arguments {
    uint8_t bytes[CORE_CALL_NAMES_MAX][CLIENT_ARGS_MAX];
};

static void call_nlm(struct client_attempt *attempt, uint32_t version, enum nlm_procedure procedure)
{
    attempt->prog = NLM_PROGRAM;
    attempt->vers = version;
    attempt->proc = procedure;
}

static void call_nsm(struct client_attempt *attempt, enum nsm_procedure procedure)
{
    attempt->prog = NSM_PROGRAM;
    attempt->vers = NSM_VERSION;
    attempt->proc = procedure;
}

static void put_statuses(const struct core_call *call, struct arguments *arguments,
                         struct client_attempt *attempt)
{
    attempt->prog = call->my_prog;
    attempt->vers = call->my_vers;
    attempt->proc = call->my_proc;
    attempt->message_count = call->status_count;
    attempt->is_upcall = attempt->is_privileged = call->is_upcall; /* the kernel heeds no other */
    for (uint32_t i = 0; i < call->status_count; i++) {
        struct xdr_out out = xdr_out_of(arguments->bytes[i], sizeof arguments->bytes[i]);
        nsm_xdr_put_status(&out, call->status[i].mon_name, call->status[i].state, call->priv);
        CHECK(!out.overflowed);
        attempt->messages[i] = (struct bytes){arguments->bytes[i], xdr_out_len(&out)};
    }
}

/* One SM_NOTIFY for each name, with the same state (R-NOTIFY-2); from a privileged port, because
 * some status monitors believe no other (R-NOTIFY-3). */
static void put_notify(const struct core_call *call, struct arguments *arguments,
                       struct client_attempt *attempt)
{
    call_nsm(attempt, NSM_NOTIFY);
    attempt->message_count = call->our_name_count;
    attempt->is_privileged = true;
    for (uint32_t i = 0; i < call->our_name_count; i++) {
        struct xdr_out out = xdr_out_of(arguments->bytes[i], sizeof arguments->bytes[i]);
        nsm_xdr_put_stat_chge(&out, call->our_names[i], call->our_state);
        CHECK(!out.overflowed);
        attempt->messages[i] = (struct bytes){arguments->bytes[i], xdr_out_len(&out)};
    }
}

/* The lock as it was asked for; over UDP from where we listen, because clients look (R-BLK-3). */
static void put_granted(const struct core_call *call, struct arguments *arguments,
                        struct client_attempt *attempt)
{
    uint8_t cookie[8];
    store_be64(cookie, call->cookie);
    const struct nlm_lock lock = {.caller_name = call->caller_name,
                                  .fh = call->fh,
                                  .oh = call->oh,
                                  .svid = call->svid,
                                  .offset = call->offset,
                                  .len = call->len};
    struct xdr_out out = xdr_out_of(arguments->bytes[0], sizeof arguments->bytes[0]);
    nlm_xdr_put_granted(&out, call->version, (struct bytes){cookie, sizeof cookie}, call->exclusive,
                        &lock);
    CHECK(!out.overflowed);
    call_nlm(attempt, call->version, call->kind == CALL_GRANTED ? NLM_GRANTED : NLM_GRANTED_MSG);
    attempt->message_count = 1;
    attempt->messages[0] = (struct bytes){arguments->bytes[0], xdr_out_len(&out)};
    attempt->from_listener = true;
}

/* SM_STAT: sm_name, any name will do; the state in the answer is the host's own. */
static void put_stat(const struct core_call *call, struct arguments *arguments,
                     struct client_attempt *attempt)
{
    struct xdr_out out = xdr_out_of(arguments->bytes[0], sizeof arguments->bytes[0]);
    xdr_put_opaque(&out, call->mon_name);
    CHECK(!out.overflowed);
    call_nsm(attempt, NSM_STAT);
    attempt->message_count = 1;
    attempt->messages[0] = (struct bytes){arguments->bytes[0], xdr_out_len(&out)};
}

static void begin(struct rpc_client *client, const struct core_call *call, uint64_t now_ns)
{
    struct arguments arguments;
    struct client_attempt attempt = {
        .id = call->id,
        .to = call->to,
        .local = call->local,
        .port_hint = call->port_hint,
        .way = call->transport == TRANSPORT_UDP ? CLIENT_UDP_FIRST : CLIENT_TCP_FIRST,
        .deadline_ns = call->deadline_ns,
    };
    switch (call->kind) {
    case CALL_STATUS:
        put_statuses(call, &arguments, &attempt);
        break;
    case CALL_GRANTED:
    case CALL_GRANTED_MSG:
        put_granted(call, &arguments, &attempt);
        break;
    case CALL_NULL:
        call_nlm(&attempt, call->version, NLM_NULL);
        attempt.message_count = 1;
        break;
    case CALL_STAT:
        put_stat(call, &arguments, &attempt);
        break;
    case CALL_NOTIFY:
        put_notify(call, &arguments, &attempt);
        break;
    }
    CHECK(rpc_client_start(client, &attempt, now_ns)); /* rpc_client_has_room was asked */
}

static enum core_call_outcome outcome_of(enum client_outcome outcome)
{
    switch (outcome) {
    case CLIENT_ANSWERED:
        return CALL_ANSWERED;
    case CLIENT_REFUSED:
        return CALL_REFUSED;
    case CLIENT_UNDELIVERED:
        return CALL_UNDELIVERED;
    case CLIENT_UNKNOWN:
        return CALL_UNKNOWN;
    }
    UNREACHABLE();
}

static uint32_t status_of(const struct client_result *result)
{
    struct xdr_in in = xdr_in_of(result->body);
    struct nlm_res res;
    if (result->outcome != CLIENT_ANSWERED || !nlm_xdr_get_res(&in, &res))
        return LOCK_STATUS_NONE;
    return res.stat;
}

/* sm_stat_res: whether it succeeded says nothing, the state is sent anyway (R-SEC-4). */
static uint32_t state_of(const struct client_result *result)
{
    struct xdr_in in = xdr_in_of(result->body);
    (void)xdr_get_u32(&in);
    uint32_t state = xdr_get_u32(&in);
    return result->outcome == CLIENT_ANSWERED && xdr_in_done(&in) ? state : 0;
}

/* Notifications and questions about state do not keep waiters waiting. */
static bool next_call(struct core *core, const struct rpc_client *client, uint64_t now_ns,
                      struct core_call *ret)
{
    return rpc_client_is_crowded(client) ? core_next_callback(core, now_ns, ret)
                                         : core_next_call(core, now_ns, ret);
}

void outcall_turn(struct core *core, struct rpc_client *client, struct rpc_server *server,
                  uint64_t now_ns, uint64_t wall_ns)
{
    struct client_result result;
    while (!core_is_full(core) && rpc_client_next_result(client, &result)) {
        struct core_input input = {
            .kind = CORE_CALL_DONE,
            .now_ns = now_ns,
            .wall_ns = wall_ns,
            .call = result.id,
            .outcome = outcome_of(result.outcome),
            .answered_count = result.answered_count,
            .status = status_of(&result),
            .state = state_of(&result),
            .is_repeated = result.is_repeated,
        };
        rpc_server_step(server, &input, NULL);
    }
    uint64_t ending, deadline_ns;
    while (core_next_ending_call(core, &ending, &deadline_ns))
        rpc_client_finish(client, ending, deadline_ns, now_ns);
    struct core_call call;
    while (rpc_client_has_room(client) && next_call(core, client, now_ns, &call))
        begin(client, &call, now_ns);
}

void outcall_ask(struct outcall_asks *asks, struct core *core, struct rpc_client *client,
                 bool may_send)
{
    bool is_stale = false;
    while (asks->at[0].txn != 0 && asks->at[0].txn <= core_durable_txn(core)) {
        is_stale = !may_send;
        if (!is_stale)
            rpc_client_release(client, asks->at[0].ticket);
        asks->at[0] = asks->at[1];
        asks->at[1].txn = 0;
    }
    if (!is_stale && !rpc_client_is_due(client))
        return;
    uint64_t txn = core_fence(core);
    bool is_first = asks->at[0].txn == 0 || asks->at[0].txn == txn;
    CHECK(is_first || asks->at[1].txn == 0 || asks->at[1].txn == txn);
    asks->at[is_first ? 0 : 1].txn = txn;
    asks->at[is_first ? 0 : 1].ticket = rpc_client_ask(client);
}

uint64_t outcall_deadline_ns(const struct core *core, const struct rpc_client *client)
{
    if (rpc_client_has_result(client) && !core_is_full(core))
        return 0;
    if (!rpc_client_has_room(client))
        return core_work_deadline_ns(core);
    return rpc_client_is_crowded(client) ? core_callback_deadline_ns(core) : core_deadline_ns(core);
}

/*
 * incoming.c -- one call: which procedure it means, how it is refused, and its reply as bytes; see
 * incoming.h.
 *
 * The checks of a header are made in the order of RFC 5531, and each before anything is indexed by
 * what it checks (R-NSM-5).
 */
#include "rpc/incoming.h"

#include "base/check.h"
#include "base/text.h"
#include "rpc/client.h"

void incoming_report(struct rpc_server *server, enum event_kind kind, const struct rpc_source *from,
                     uint64_t value)
{
    event_add(core_events(server->core), kind, &from->peer.address, (struct bytes){0}, value);
}

enum rpc_verdict incoming_refuse(struct rpc_server *server, enum rpc_call_result result,
                                 const struct rpc_source *from, uint32_t xid, struct xdr_out *reply)
{
    switch (result) {
    case RPC_CALL_OK:
        break;
    case RPC_CALL_DROP:
        incoming_report(server, EVENT_MALFORMED, from, 0);
        return RPC_NO_ANSWER;
    case RPC_CALL_RPC_MISMATCH:
        incoming_report(server, EVENT_RPC_VERSION, from, 0);
        rpc_msg_put_rpc_mismatch(reply, xid);
        return RPC_ANSWERED;
    case RPC_CALL_BAD_CRED:
        incoming_report(server, EVENT_BAD_CREDENTIAL, from, 0);
        rpc_msg_put_auth_error(reply, xid, RPC_AUTH_BADCRED);
        return RPC_ANSWERED;
    case RPC_CALL_BAD_VERF:
        incoming_report(server, EVENT_BAD_CREDENTIAL, from, 0);
        rpc_msg_put_auth_error(reply, xid, RPC_AUTH_BADVERF);
        return RPC_ANSWERED;
    case RPC_CALL_REJECTED:
        incoming_report(server, EVENT_BAD_CREDENTIAL, from, 0);
        rpc_msg_put_auth_error(reply, xid, RPC_AUTH_REJECTEDCRED);
        return RPC_ANSWERED;
    }
    UNREACHABLE();
}

/* Is it served where this call came in? */
static bool is_here(const struct program *program, const struct rpc_source *from)
{
    if (program->is_away && !from->has_files)
        return false;
    return !program->is_stream_only || from->peer.transport != TRANSPORT_UDP;
}

/* The index of the program that is called; the number of programs: there is none. */
static uint32_t find_program(const struct rpc_server *server, uint32_t number,
                             const struct rpc_source *from)
{
    uint32_t i = 0;
    while (i < server->program_count &&
           (server->programs[i]->number != number || !is_here(server->programs[i], from)))
        i++;
    return i;
}

static const struct program_version *find_version(const struct program *program, uint32_t number)
{
    for (uint32_t i = 0; i < program->version_count; i++)
        if (program->versions[i].number == number)
            return &program->versions[i];
    return NULL;
}

/* What was asked for, in words, because three numbers in a log line say nothing. */
static void report_unknown(struct rpc_server *server, const struct rpc_call *call,
                           const struct rpc_source *from)
{
    char buffer[EVENT_NAME_MAX];
    struct text text;
    text_init(&text, buffer, sizeof buffer);
    text_add(&text, "program ");
    text_add_u64(&text, call->prog);
    text_add(&text, " version ");
    text_add_u64(&text, call->vers);
    text_add(&text, " procedure ");
    text_add_u64(&text, call->proc);
    event_add(core_events(server->core), EVENT_UNKNOWN_CALL, &from->peer.address,
              bytes_of_text(buffer), 0);
}

const struct procedure *incoming_look(const struct rpc_server *server, const struct rpc_call *call,
                                      const struct rpc_source *from)
{
    uint32_t index = find_program(server, call->prog, from);
    const struct program_version *version =
        index < server->program_count ? find_version(server->programs[index], call->vers) : NULL;
    if (version == NULL || call->proc >= version->procedure_count)
        return NULL;
    return &version->procedures[call->proc];
}

bool incoming_find(struct rpc_server *server, struct incoming *in)
{
    const struct rpc_call *call = in->call;
    uint32_t index = find_program(server, call->prog, in->from);
    const struct program *program = index < server->program_count ? server->programs[index] : NULL;
    const struct program_version *version =
        program != NULL ? find_version(program, call->vers) : NULL;
    if (program == NULL) {
        rpc_msg_put_accepted(in->reply, call->xid, RPC_PROG_UNAVAIL);
    } else if (version == NULL) {
        rpc_msg_put_prog_mismatch(in->reply, call->xid, program->versions[0].number,
                                  program->versions[program->version_count - 1].number);
    } else if (call->proc >= version->procedure_count ||
               version->procedures[call->proc].name == NULL) {
        rpc_msg_put_accepted(in->reply, call->xid, RPC_PROC_UNAVAIL);
    } else {
        in->program = program;
        in->program_index = index;
        in->procedure = &version->procedures[call->proc];
        in->is_message = in->procedure->flags & PROCEDURE_MESSAGE;
        return true;
    }
    report_unknown(server, call, in->from);
    return false;
}

void incoming_acknowledge(const struct incoming *in)
{
    rpc_msg_put_accepted(in->reply, in->call->xid, RPC_SUCCESS);
}

void incoming_answer(const struct incoming *in, const struct response *response,
                     struct xdr_out *out)
{
    struct xdr_out before = *out;
    rpc_msg_put_accepted(out, in->call->xid, RPC_SUCCESS);
    if (in->procedure->encode != NULL)
        in->procedure->encode(out, in->call->vers, response);
    if (out->overflowed) {
        *out = before;
        rpc_msg_put_accepted(out, in->call->xid, RPC_SYSTEM_ERR);
    }
}

/* The call that carries the result of a message. */
static void put_result(struct rpc_server *server, const struct incoming *in,
                       const struct response *response, struct xdr_out *out)
{
    const struct rpc_call *call = in->call;
    uint32_t xid =
        server->client != NULL ? rpc_client_take_xid(server->client) : server->next_xid++;
    rpc_msg_put_call(out, xid, call->prog, call->vers, in->procedure->result_proc);
    if (in->procedure->encode != NULL)
        in->procedure->encode(out, call->vers, response);
    CHECK(!out->overflowed); /* every result fits its program's reply_max */
}

uint32_t incoming_encode(struct rpc_server *server, const struct incoming *in,
                         const struct response *response)
{
    struct xdr_out out = xdr_out_of(outbox_reserve(server->outbox), server->reply_max);
    if (in->is_message)
        put_result(server, in, response, &out);
    else
        incoming_answer(in, response, &out);
    return xdr_out_len(&out);
}

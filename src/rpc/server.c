/*
 * server.c -- from message to answer; see server.h.
 *
 * The life of a call:
 *
 *   header --> program --> version --> procedure --> arguments --> repeat? --> core --> outbox
 *      |          |           |            |             |            |                   |
 *   dropped or  PROG_      PROG_        PROC_        GARBAGE_     same answer       leaves when
 *   MSG_DENIED  UNAVAIL    MISMATCH     UNAVAIL      ARGS         again             its batch is
 *                                                                                   durable
 *
 * An answer that no cache keeps, and that says nothing that is not durable, passes an empty outbox
 * by.
 *
 * Whether its caller may lock that file is asked right before the core (permit.h).
 *
 * The checks stand in the order of RFC 5531, and each is made before anything is indexed by what it
 * checks (R-NSM-5). Everything left of the core answers at once.
 */
#include "rpc/server.h"

#include "base/check.h"
#include "rpc/away.h"
#include "rpc/incoming.h"
#include "rpc/permit.h"
#include "rpc/repeat.h"

#include <stdlib.h>

enum {
    PRIVILEGED_PORT_END = 1024,
    OUTBOX_BYTES_PER_ANSWER = 128, /* on average; what is longer takes the place of several */
    RATE_BUCKETS = 8192,
};

/* What is repeated must be kept, however long it is. */
static void check_program(const struct program *program)
{
    CHECK(program->version_count > 0);
    for (uint32_t i = 0; i < program->version_count; i++) {
        const struct program_version *version = &program->versions[i];
        for (uint32_t j = 0; j < version->procedure_count; j++)
            CHECK(!(version->procedures[j].flags & PROCEDURE_CACHED) ||
                  program->reply_max <= DRC_REPLY_MAX);
    }
}

/* Sizes for buffers. What is executed elsewhere has its own, but for the longest call. */
static void measure_programs(struct rpc_server *server)
{
    for (uint32_t i = 0; i < server->program_count; i++) {
        const struct program *program = server->programs[i];
        check_program(program);
        uint32_t *record_max = program->is_away ? &server->record_max_files : &server->record_max;
        if (program->record_max > *record_max)
            *record_max = program->record_max;
        if (!program->is_away && program->reply_max > server->reply_max)
            server->reply_max = program->reply_max;
    }
    if (server->record_max > server->record_max_files)
        server->record_max_files = server->record_max;
}

struct rpc_server *rpc_server_new(const struct rpc_server_limits *limits,
                                  const struct program *const *programs, uint32_t program_count,
                                  struct core *core, uint64_t seed)
{
    CHECK(limits->cache_max >
          limits->outbox_max); /* in progress <= waiting < what the cache holds */
    struct rpc_server *server = calloc(1, sizeof *server);
    if (server == NULL)
        return NULL;
    *server = (struct rpc_server){.limits = *limits,
                                  .programs = programs,
                                  .program_count = program_count,
                                  .core = core,
                                  .next_xid = (uint32_t)seed,
                                  .reply_max = RPC_REPLY_HEADER_MAX};
    measure_programs(server);
    uint64_t outbox_bytes = (uint64_t)limits->outbox_max * OUTBOX_BYTES_PER_ANSWER;
    server->cache = drc_new(limits->cache_max, seed);
    server->late = calloc(CORE_LATE_MAX, sizeof *server->late);
    server->late_bytes = calloc(CORE_LATE_MAX, server->reply_max);
    server->outbox = outbox_new(limits->outbox_max, server->reply_max,
                                outbox_bytes + 2 * (uint64_t)server->reply_max);
    const struct rate_limits rate = {.bucket_count = RATE_BUCKETS,
                                     .per_second = limits->messages_per_second,
                                     .burst = limits->messages_burst};
    bool is_limited = rate.per_second > 0;
    if (is_limited)
        server->rate = rate_new(&rate, seed);
    if (limits->is_metered)
        server->meter = meter_new(programs, program_count);
    if (limits->away_max > 0)
        server->away = away_new(limits->away_max, seed);
    if (server->cache == NULL || server->outbox == NULL || server->late == NULL ||
        server->late_bytes == NULL || (limits->away_max > 0 && server->away == NULL) ||
        (is_limited && server->rate == NULL) || (limits->is_metered && server->meter == NULL)) {
        rpc_server_free(server);
        return NULL;
    }
    return server;
}

void rpc_server_free(struct rpc_server *server)
{
    if (server == NULL)
        return;
    drc_free(server->cache);
    outbox_free(server->outbox);
    free(server->late);
    free(server->late_bytes);
    rate_free(server->rate);
    meter_free(server->meter);
    away_free(server->away);
    free(server);
}

void rpc_server_set_desk(struct rpc_server *server, const struct job_desk *desk)
{
    away_set_desk(server->away, desk);
}

void rpc_server_set_guard(struct rpc_server *server, const struct guard *guard)
{
    server->guard = guard;
}

void rpc_server_set_allowed(struct rpc_server *server, const struct network *networks,
                            uint32_t count)
{
    server->allowed = networks;
    server->allowed_count = count;
}

void rpc_server_set_client(struct rpc_server *server, struct rpc_client *client)
{
    server->client = client;
}

const struct meter *rpc_server_meter(const struct rpc_server *server)
{
    return server->meter;
}

const struct lease *rpc_server_lease(const struct rpc_server *server)
{
    return server->limits.lease;
}

uint32_t rpc_server_record_max(const struct rpc_server *server, bool has_files)
{
    return has_files ? server->record_max_files : server->record_max;
}

uint32_t rpc_server_reply_max(const struct rpc_server *server)
{
    return server->reply_max;
}

/* A call that was answered at once. */
static void count_now(struct rpc_server *server, const struct incoming *in, bool is_error)
{
    if (server->meter != NULL)
        meter_count(server->meter, meter_row(in->program_index, in->call->proc), is_error, 0);
}

/* A message that is no call of anything here. */
static void count_unknown(struct rpc_server *server)
{
    if (server->meter != NULL)
        server->meter->unknown++;
}

/* A procedure that needs no core. */
static enum rpc_verdict respond(struct rpc_server *server, const struct incoming *in)
{
    struct xdr_out before = *in->reply;
    struct xdr_in args = xdr_in_of(in->call->args);
    rpc_msg_put_accepted(in->reply, in->call->xid, RPC_SUCCESS);
    enum rpc_accept_stat stat =
        in->procedure->respond(in->program->context, &in->from->peer, &args, in->reply);
    if (stat == RPC_GARBAGE_ARGS)
        incoming_report(server, EVENT_BAD_ARGUMENTS, in->from, in->call->proc);
    if (in->reply->overflowed)
        stat = RPC_SYSTEM_ERR;
    if (stat != RPC_SUCCESS) {
        *in->reply = before;
        rpc_msg_put_accepted(in->reply, in->call->xid, stat);
    }
    return RPC_ANSWERED;
}

/* What is cached of hosts that restarted: answers, and where their programs are. */
static void forget_restarted(struct rpc_server *server)
{
    struct address host;
    while (core_next_restarted(server->core, &host)) {
        if (host.family == 0) {
            drc_forget_all(server->cache);
            if (server->away != NULL)
                away_forget(server->away, NULL);
            continue;
        }
        drc_forget(server->cache, &host);
        if (server->away != NULL)
            away_forget(server->away, &host);
        if (server->client != NULL)
            rpc_client_host_restarted(server->client, &host);
    }
}

void rpc_server_step(struct rpc_server *server, const struct core_input *input,
                     struct core_answer *ret)
{
    struct address host;
    struct bytes name;
    core_step(server->core, input, ret);
    forget_restarted(server);
    while (core_next_overridden(server->core, &host, &name))
        repeat_override_client(server, &host, name);
}

void rpc_server_work(struct rpc_server *server, uint64_t now_ns, uint64_t wall_ns)
{
    core_work(server->core, now_ns, wall_ns);
    forget_restarted(server);
}

/* The answer waits in the outbox, or for its time; the cache knows where. */
static void queue_answer(struct rpc_server *server, const struct incoming *in,
                         const struct core_answer *answer, uint64_t cache_entry)
{
    const struct response *response = &answer->response;
    uint32_t len = incoming_encode(server, in, response);
    struct outbox_entry entry = {.taken_by = in->from->route,
                                 .after_txn = answer->after_txn,
                                 .cache_entry = cache_entry,
                                 .is_call = in->is_message};
    if (server->meter != NULL) {
        entry.meter_row = meter_row(in->program_index, in->call->proc);
        entry.is_error = meter_is_error(response);
        entry.received_ns = in->now_ns;
    }
    uint64_t number = response->when == ANSWER_LATER
                          ? leaving_keep_late(server, response->ticket, &entry, in->from, len)
                          : outbox_add(server->outbox, &entry, in->from, len);
    if (cache_entry == DRC_NONE)
        return;
    if (in->request.kind == REQUEST_NLM_LOCK && response->status == LOCK_GRACE)
        drc_void(server->cache, cache_entry);
    drc_wait(server->cache, cache_entry, number, response->status == LOCK_BLOCKED);
}

/* Is all that it says durable already, and nobody in front of it? Then it needs no outbox: a caller
 * that looks at what does not change, by TEST or SM_STAT, waits for nothing. What is cached, or is
 * the result of a message, goes the one way that those have. */
static bool may_leave_now(const struct rpc_server *server, const struct incoming *in,
                          const struct core_answer *answer, uint64_t cache_entry)
{
    return answer->after_txn <= core_durable_txn(server->core) &&
           outbox_count(server->outbox) == 0 && answer->response.when == ANSWER_NOW &&
           cache_entry == DRC_NONE && !in->is_message;
}

/* One step of the core, and what becomes of its answer. RPC_NO_ANSWER: there is none, and the
 * caller must ask again. */
static enum rpc_verdict execute(struct rpc_server *server, const struct incoming *in,
                                uint64_t cache_entry)
{
    const struct request *request = &in->request;
    struct core_input input = {.kind = CORE_REQUEST,
                               .now_ns = in->now_ns,
                               .wall_ns = in->wall_ns,
                               .from = &in->from->peer,
                               .request = request};
    struct core_answer answer;
    rpc_server_step(server, &input, &answer);
    if (request->kind == REQUEST_NLM_FREE_ALL) /* also of one that has no record */
        repeat_forget_client(server, &in->from->peer.address, request->mon_name);
    if (answer.response.when == ANSWER_NEVER) {
        if (cache_entry != DRC_NONE)
            drc_abandon(server->cache, cache_entry);
        return RPC_NO_ANSWER;
    }
    if (may_leave_now(server, in, &answer, cache_entry)) {
        incoming_answer(in, &answer.response, in->reply);
        count_now(server, in, meter_is_error(&answer.response));
        return RPC_ANSWERED;
    }
    queue_answer(server, in, &answer, cache_entry);
    return RPC_WAITING;
}

/* More messages than one address may send over UDP, where addresses can be forged. */
static bool is_too_many(struct rpc_server *server, const struct rpc_source *from, uint64_t now_ns)
{
    if (server->rate == NULL || from->peer.transport != TRANSPORT_UDP ||
        rate_allow(server->rate, &from->peer.address, now_ns))
        return false;
    MARK("server_too_many_messages");
    incoming_report(server, EVENT_TOO_MANY_MESSAGES, from, 0);
    return true;
}

/* What can be said of a call before the core is asked: who may call, arguments, NULL. */
static bool answer_at_once(struct rpc_server *server, struct incoming *in)
{
    bool stateless = in->procedure->flags & PROCEDURE_STATELESS, is_error = true;
    uint16_t port = in->from->peer.port;
    struct xdr_in args = xdr_in_of(in->call->args);
    if (!stateless && server->limits.require_privileged_port && port >= PRIVILEGED_PORT_END) {
        incoming_report(server, EVENT_UNPRIVILEGED, in->from, port);
        rpc_msg_put_auth_error(in->reply, in->call->xid, RPC_AUTH_TOOWEAK);
    } else if (!in->procedure->decode(&args, in->call->vers, &in->request)) {
        incoming_report(server, EVENT_BAD_ARGUMENTS, in->from, in->call->proc);
        rpc_msg_put_accepted(in->reply, in->call->xid, RPC_GARBAGE_ARGS);
    } else if (stateless) {
        rpc_msg_put_accepted(in->reply, in->call->xid, RPC_SUCCESS);
        is_error = false;
    } else {
        return false;
    }
    count_now(server, in, is_error);
    return true;
}

/* On the loopback device nothing arrives late, and registering twice does no harm. nfs-ganesha
 * opens a connection for each call and counts its xids from the start: its SM_MON, SM_UNMON and
 * SM_MON of one host would be one call and a repeat, and the host would not be watched. */
static bool is_repeatable(const struct rpc_server *server, const struct incoming *in)
{
    enum request_kind kind = in->request.kind;
    bool is_registration =
        kind == REQUEST_NSM_MON || kind == REQUEST_NSM_UNMON || kind == REQUEST_NSM_UNMON_ALL;
    return (in->procedure->flags & PROCEDURE_CACHED) &&
           !(is_registration && server->limits.trusts_registrations);
}

/* A call whose row is found: repeats, the core. */
static enum rpc_verdict dispatch(struct rpc_server *server, struct incoming *in)
{
    if (in->is_message && is_too_many(server, in->from, in->now_ns))
        return RPC_NO_ANSWER;
    if (answer_at_once(server, in))
        return RPC_ANSWERED;
    core_ahead(server->core, &in->from->peer, &in->request);
    bool is_cached = is_repeatable(server, in);
    struct drc_key key;
    enum rpc_verdict seen;
    if (is_cached && repeat_find(server, in, &key, &seen)) {
        if (server->meter != NULL)
            server->meter->repeats++;
        return seen;
    }
    if (rpc_server_is_busy(server)) {
        MARK("server_busy");
        return RPC_BUSY;
    }
    core_ahead_next(server->core);
    if (!permit_judge(server, in))
        return RPC_BUSY;
    uint64_t cache_entry = is_cached ? repeat_begin(server, in, &key) : DRC_NONE;
    core_ahead_next(server->core);
    enum rpc_verdict verdict = execute(server, in, cache_entry);
    if (!in->is_message)
        return verdict;
    incoming_acknowledge(in);
    return verdict == RPC_WAITING ? RPC_ACKNOWLEDGED : RPC_ANSWERED;
}

enum rpc_verdict rpc_server_receive(struct rpc_server *server, const struct rpc_source *from,
                                    struct bytes message, uint64_t now_ns, uint64_t wall_ns,
                                    struct xdr_out *reply)
{
    if (server->away != NULL)
        away_listen(server->away);
    if (server->client != NULL && from->peer.transport == TRANSPORT_UDP &&
        rpc_msg_is_reply(message)) {
        rpc_client_datagram_at_listener(server->client, &from->peer.address, from->peer.port,
                                        message, now_ns);
        return RPC_NO_ANSWER;
    }
    struct rpc_call call;
    enum rpc_call_result result = rpc_msg_get_call(message, &call);
    if (result != RPC_CALL_OK) {
        count_unknown(server);
        return incoming_refuse(server, result, from, call.xid, reply);
    }
    struct incoming in; /* without the request, which its decoder fills: it is large */
    in.from = from;
    in.call = &call;
    in.now_ns = now_ns;
    in.wall_ns = wall_ns;
    in.reply = reply;
    if (!incoming_find(server, &in)) {
        count_unknown(server);
        return RPC_ANSWERED;
    }
    if (in.procedure->respond != NULL)
        return respond(server, &in);
    bool is_away = in.program->is_away && !(in.procedure->flags & PROCEDURE_STATELESS);
    return is_away ? away_take(server, &in) : dispatch(server, &in);
}

void rpc_server_stored(struct rpc_server *server, uint64_t txn, bool has_room, uint64_t now_ns,
                       uint64_t wall_ns)
{
    struct core_input input = {.kind = CORE_STORED,
                               .now_ns = now_ns,
                               .wall_ns = wall_ns,
                               .txn = txn,
                               .has_room = has_room};
    rpc_server_step(server, &input, NULL);
}

bool rpc_server_is_busy(const struct rpc_server *server)
{
    return !outbox_has_room(server->outbox) || core_is_full(server->core);
}

void rpc_server_report(struct rpc_server *server, enum event_kind kind, const struct address *from)
{
    event_add(core_events(server->core), kind, from, (struct bytes){0}, 0);
}

uint32_t rpc_server_waiting(const struct rpc_server *server)
{
    return outbox_count(server->outbox) + (server->away != NULL ? away_count(server->away) : 0);
}

void rpc_server_check(const struct rpc_server *server)
{
    core_check(server->core);
    (void)drc_check(server->cache);
    if (server->away != NULL)
        away_check(server->away);
}

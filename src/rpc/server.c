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
 * The checks stand in the order of RFC 5531, and each is made before anything is indexed by what it
 * checks (R-NSM-5). Everything left of the core answers at once.
 *
 * A message has the same life. Its answer is the void that acknowledges it; what waits in the
 * outbox and is kept for repeats is the call with its result. A repeat is acknowledged again, and a
 * result that had left leaves again, the same bytes with the same xid (R-DRC-4).
 */
#include "rpc/server.h"

#include "base/check.h"
#include "base/hash.h"
#include "base/text.h"
#include "codec/nlm_xdr.h"
#include "codec/rpc_msg.h"
#include "rpc/drc.h"
#include "rpc/meter.h"
#include "rpc/outbox.h"
#include "rpc/rate.h"

#include <stdlib.h>

enum {
    PRIVILEGED_PORT_END = 1024,
    OUTBOX_BYTES_PER_ANSWER = 128, /* on average; what is longer takes the place of several */
    RATE_BUCKETS = 8192,
};

/* Where an answer waits, as the cache knows it: in the outbox, or here, for its time to come. */
#define LATE_NUMBER (UINT64_C(1) << 63)

#define RESULT_PATIENCE_NS (UINT64_C(5) * 1000000000) /* with a call that carries a result (D4) */

struct rpc_server {
    struct rpc_server_limits limits;
    const struct program *const *programs;
    uint32_t program_count;
    struct core *core;
    struct rpc_client *client; /* NULL: nobody makes calls */
    struct drc *cache;
    struct outbox *outbox;
    struct outbox_entry *late; /* answers that core_next_answer will name, by ticket */
    uint8_t *late_bytes;       /* reply_max for each */
    struct rate *rate;         /* NULL: no limit */
    struct meter *meter;       /* NULL: nothing is measured */
    uint64_t durable_txn;
    uint32_t record_max, reply_max;
    uint32_t next_xid; /* of calls, when there is no client to number them */
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
    for (uint32_t i = 0; i < program_count; i++) {
        check_program(programs[i]);
        if (programs[i]->record_max > server->record_max)
            server->record_max = programs[i]->record_max;
        if (programs[i]->reply_max > server->reply_max)
            server->reply_max = programs[i]->reply_max;
    }
    struct core_status status;
    core_status(core, &status);
    server->durable_txn = status.durable_txn;
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
    if (server->cache == NULL || server->outbox == NULL || server->late == NULL ||
        server->late_bytes == NULL || (is_limited && server->rate == NULL) ||
        (limits->is_metered && server->meter == NULL)) {
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
    free(server);
}

void rpc_server_set_client(struct rpc_server *server, struct rpc_client *client)
{
    server->client = client;
}

const struct meter *rpc_server_meter(const struct rpc_server *server)
{
    return server->meter;
}

uint32_t rpc_server_record_max(const struct rpc_server *server)
{
    return server->record_max;
}

uint32_t rpc_server_reply_max(const struct rpc_server *server)
{
    return server->reply_max;
}

/* A call that was answered at once. */
static void count_now(struct rpc_server *server, const struct rpc_call *call, bool is_error)
{
    if (server->meter != NULL)
        meter_count(server->meter, meter_find(server->meter, call->prog, call->proc), is_error, 0);
}

/* A message that is no call of anything here. */
static void count_unknown(struct rpc_server *server)
{
    if (server->meter != NULL)
        server->meter->unknown++;
}

static void report(struct rpc_server *server, enum event_kind kind, const struct rpc_source *from,
                   uint64_t value)
{
    event_add(core_events(server->core), kind, &from->peer.address, (struct bytes){0}, value);
}

/* What is wrong with a header that is not RPC_CALL_OK. */
static enum rpc_verdict refuse_header(struct rpc_server *server, enum rpc_call_result result,
                                      const struct rpc_source *from, uint32_t xid,
                                      struct xdr_out *reply)
{
    switch (result) {
    case RPC_CALL_OK:
        break;
    case RPC_CALL_DROP:
        report(server, EVENT_MALFORMED, from, 0);
        return RPC_NO_ANSWER;
    case RPC_CALL_RPC_MISMATCH:
        report(server, EVENT_RPC_VERSION, from, 0);
        rpc_msg_put_rpc_mismatch(reply, xid);
        return RPC_ANSWERED;
    case RPC_CALL_BAD_CRED:
        report(server, EVENT_BAD_CREDENTIAL, from, 0);
        rpc_msg_put_auth_error(reply, xid, RPC_AUTH_BADCRED);
        return RPC_ANSWERED;
    case RPC_CALL_REJECTED:
        report(server, EVENT_BAD_CREDENTIAL, from, 0);
        rpc_msg_put_auth_error(reply, xid, RPC_AUTH_REJECTEDCRED);
        return RPC_ANSWERED;
    }
    UNREACHABLE();
}

static const struct program *find_program(const struct rpc_server *server, uint32_t number)
{
    for (uint32_t i = 0; i < server->program_count; i++)
        if (server->programs[i]->number == number)
            return server->programs[i];
    return NULL;
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

/* The row of a call, or NULL with the refusal already in *reply. */
static const struct procedure *find_procedure(struct rpc_server *server,
                                              const struct rpc_call *call,
                                              const struct rpc_source *from,
                                              const struct program **ret_program,
                                              struct xdr_out *reply)
{
    const struct program *program = find_program(server, call->prog);
    const struct program_version *version =
        program != NULL ? find_version(program, call->vers) : NULL;
    if (program == NULL) {
        rpc_msg_put_accepted(reply, call->xid, RPC_PROG_UNAVAIL);
    } else if (version == NULL) {
        rpc_msg_put_prog_mismatch(reply, call->xid, program->versions[0].number,
                                  program->versions[program->version_count - 1].number);
    } else if (call->proc >= version->procedure_count ||
               version->procedures[call->proc].name == NULL) {
        rpc_msg_put_accepted(reply, call->xid, RPC_PROC_UNAVAIL);
    } else {
        *ret_program = program;
        return &version->procedures[call->proc];
    }
    report_unknown(server, call, from);
    return NULL;
}

/* A procedure that needs no core. */
static enum rpc_verdict respond(struct rpc_server *server, const struct rpc_source *from,
                                const struct rpc_call *call, const struct program *program,
                                const struct procedure *procedure, struct xdr_out *reply)
{
    struct xdr_out before = *reply;
    struct xdr_in args = xdr_in_of(call->args);
    rpc_msg_put_accepted(reply, call->xid, RPC_SUCCESS);
    enum rpc_accept_stat stat = procedure->respond(program->context, &from->peer, &args, reply);
    if (stat == RPC_GARBAGE_ARGS)
        report(server, EVENT_BAD_ARGUMENTS, from, call->proc);
    if (reply->overflowed)
        stat = RPC_SYSTEM_ERR;
    if (stat != RPC_SUCCESS) {
        *reply = before;
        rpc_msg_put_accepted(reply, call->xid, stat);
    }
    return RPC_ANSWERED;
}

/* Names are compared without case (R-ID-1). */
static uint64_t name_hash(const struct rpc_server *server, struct bytes name)
{
    uint8_t folded[NLM_NOTIFY_NAME_MAX]; /* the longest of them */
    ;
    CHECK(name.len <= sizeof folded);
    for (uint32_t i = 0; i < name.len; i++)
        folded[i] = byte_fold(name.at[i]);
    return drc_args_hash(server->cache, (struct bytes){folded, name.len});
}

/* A client as a whole, whose FREE_ALL its processes make old: no process has this number. */
static uint32_t whole_client(const struct rpc_server *server, struct bytes name)
{
    return (uint32_t)hash_mix(name_hash(server, name), UINT64_C(1) << 32) | 1;
}

/* Whose calls may undo each other's effects: a process of a client, a registrant; 0: nobody's. */
static uint32_t owner_of(const struct rpc_server *server, const struct request *request)
{
    const struct lock_request *r = &request->lock;
    uint64_t hash = 0;
    switch (request->kind) {
    case REQUEST_NLM_LOCK:
    case REQUEST_NLM_CANCEL:
    case REQUEST_NLM_UNLOCK:
        hash = hash_mix(name_hash(server, r->caller_name), r->svid);
        break;
    case REQUEST_NLM_SHARE:
    case REQUEST_NLM_UNSHARE:
        hash = hash_mix(name_hash(server, r->caller_name), drc_args_hash(server->cache, r->oh));
        break;
    case REQUEST_NLM_FREE_ALL:
        return whole_client(server, request->mon_name);
    case REQUEST_NSM_MON:
    case REQUEST_NSM_UNMON:
    case REQUEST_NSM_UNMON_ALL:
        hash = name_hash(server, request->my_name);
        break;
    case REQUEST_NSM_NOTIFY:
    case REQUEST_NSM_STAT:
    case REQUEST_NSM_SIMU_CRASH:
    case REQUEST_NLM_TEST:
    case REQUEST_NLM_GRANTED:
    case REQUEST_NLM_GRANTED_RES:
        return 0;
    }
    return (uint32_t)hash | 1;
}

/* The client whose FREE_ALL makes the cache forget this call; 0: none. */
static uint32_t client_of(const struct rpc_server *server, const struct request *request)
{
    switch (request->kind) {
    case REQUEST_NLM_LOCK:
    case REQUEST_NLM_CANCEL:
    case REQUEST_NLM_UNLOCK:
    case REQUEST_NLM_SHARE:
    case REQUEST_NLM_UNSHARE:
        return whole_client(server, request->lock.caller_name);
    case REQUEST_NLM_FREE_ALL:
        return whole_client(server, request->mon_name);
    case REQUEST_NSM_MON:
    case REQUEST_NSM_UNMON:
    case REQUEST_NSM_UNMON_ALL:
    case REQUEST_NSM_NOTIFY:
    case REQUEST_NSM_STAT:
    case REQUEST_NSM_SIMU_CRASH:
    case REQUEST_NLM_TEST:
    case REQUEST_NLM_GRANTED:
    case REQUEST_NLM_GRANTED_RES:
        break;
    }
    return 0;
}

static struct drc_key cache_key(const struct rpc_server *server, const struct rpc_source *from,
                                const struct rpc_call *call, const struct request *request)
{
    return (struct drc_key){.address = from->peer.address,
                            .owner = owner_of(server, request),
                            .client = client_of(server, request),
                            .xid = call->xid,
                            .prog = call->prog,
                            .vers = call->vers,
                            .proc = call->proc,
                            .args_len = call->args.len,
                            .args_hash = drc_args_hash(server->cache, call->args)};
}

/* A message arrived, whatever comes of it. */
static void acknowledge(struct xdr_out *reply, uint32_t xid)
{
    rpc_msg_put_accepted(reply, xid, RPC_SUCCESS);
}

/*
 * What was sent before, once more, through the outbox: the result of a message; with a shared store
 * also an answer, for we may have been replaced since it was made. It waits behind what is there,
 * and for the fence if there is one.
 */
static enum rpc_verdict send_again(struct rpc_server *server, const struct rpc_source *from,
                                   uint32_t xid, bool is_message, struct bytes result,
                                   struct xdr_out *reply)
{
    if (!outbox_has_room(server->outbox))
        return RPC_BUSY;
    MARK("server_result_sent_again");
    memcpy(outbox_reserve(server->outbox), result.at, result.len);
    uint64_t after_txn =
        server->limits.shared_store ? core_fence(server->core) : outbox_txn_newest(server->outbox);
    struct outbox_entry entry = {.to = *from,
                                 .taken_by = from->route,
                                 .after_txn = after_txn,
                                 .cache_entry = DRC_NONE,
                                 .is_call = is_message};
    (void)outbox_add(server->outbox, &entry, result.len);
    if (!is_message)
        return RPC_WAITING;
    acknowledge(reply, xid);
    return RPC_ACKNOWLEDGED;
}

/* The answer of a call in progress, while it waits. */
static struct outbox_entry *find_pending(struct rpc_server *server, uint64_t waiting)
{
    if (waiting & LATE_NUMBER)
        return &server->late[waiting & ~LATE_NUMBER];
    struct outbox_entry *pending = outbox_find(server->outbox, waiting);
    CHECK(pending != NULL);
    return pending;
}

/* Is it answered with a status that can say "ask again"? */
static bool has_status(const struct request *request)
{
    return request->kind == REQUEST_NLM_LOCK || request->kind == REQUEST_NLM_CANCEL ||
           request->kind == REQUEST_NLM_UNLOCK || request->kind == REQUEST_NLM_SHARE ||
           request->kind == REQUEST_NLM_UNSHARE;
}

/* SM_UNMON and SM_NOTIFY are answered with nothing that could be untrue by now. */
static bool is_true_for_ever(const struct request *request)
{
    return request->kind == REQUEST_NSM_UNMON || request->kind == REQUEST_NSM_UNMON_ALL ||
           request->kind == REQUEST_NSM_NOTIFY;
}

static uint32_t encode(struct rpc_server *server, const struct rpc_call *call,
                       const struct procedure *procedure, const struct response *response);

/*
 * A copy of a call that its owner has gone on from: it is not executed, nor is it said that it was
 * (decision 020). Whoever has a new request asks again, under another xid.
 */
static enum rpc_verdict refuse_old(struct rpc_server *server, const struct rpc_source *from,
                                   const struct rpc_call *call, const struct procedure *procedure,
                                   const struct request *request, struct bytes cached,
                                   struct xdr_out *reply)
{
    bool is_message = procedure->flags & PROCEDURE_MESSAGE;
    if (is_true_for_ever(request)) {
        xdr_put_fixed(reply, cached);
        return RPC_ANSWERED;
    }
    if (is_message && !outbox_has_room(server->outbox))
        return RPC_BUSY;
    MARK("server_old_call");
    report(server, EVENT_OLD_CALL, from, call->proc);
    if (!has_status(request))
        return RPC_NO_ANSWER;
    const struct response again = {.status = LOCK_GRACE, .cookie = request->cookie};
    if (!is_message) {
        rpc_msg_put_accepted(reply, call->xid, RPC_SUCCESS);
        procedure->encode(reply, call->vers, &again);
        CHECK(!reply->overflowed);
        return RPC_ANSWERED;
    }
    struct outbox_entry entry = {.to = *from,
                                 .taken_by = from->route,
                                 .after_txn = outbox_txn_newest(server->outbox),
                                 .cache_entry = DRC_NONE,
                                 .is_call = true};
    (void)outbox_add(server->outbox, &entry, encode(server, call, procedure, &again));
    acknowledge(reply, call->xid);
    return RPC_ACKNOWLEDGED;
}

/*
 * Has this call been seen? If so, what becomes of it is in *ret. A repeat of a call in progress
 * gets the pending answer on the way it asks now; its first way may be gone (R-DRC-1).
 */
static bool look_for_repeat(struct rpc_server *server, const struct drc_key *key,
                            const struct rpc_call *call, const struct procedure *procedure,
                            const struct request *request, const struct rpc_source *from,
                            uint64_t now_ns, struct xdr_out *reply, enum rpc_verdict *ret)
{
    bool is_message = procedure->flags & PROCEDURE_MESSAGE;
    struct drc_found found;
    enum drc_verdict seen = drc_find(server->cache, key, from->peer.port, now_ns, &found);
    /* A kernel has SM_MON of several hosts under way at once, all under one name. */
    if (seen == DRC_OLD && request->kind == REQUEST_NSM_MON && !found.is_moved)
        seen = DRC_DONE;
    switch (seen) {
    case DRC_NEW:
    case DRC_FULL:
        return false;
    case DRC_IN_PROGRESS:
        find_pending(server, found.waiting)->to = *from;
        *ret = is_message ? RPC_ANSWERED : RPC_NO_ANSWER;
        if (is_message)
            acknowledge(reply, key->xid);
        return true;
    case DRC_OLD:
        *ret = refuse_old(server, from, call, procedure, request, found.reply, reply);
        return true;
    case DRC_DONE:
        if (is_message || server->limits.shared_store) {
            *ret = send_again(server, from, key->xid, is_message, found.reply, reply);
            return true;
        }
        xdr_put_fixed(reply, found.reply);
        CHECK(!reply->overflowed);
        *ret = RPC_ANSWERED;
        return true;
    }
    UNREACHABLE();
}

/* A new call: its entry in the cache, if that is not full. What takes something makes a FREE_ALL of
 * its client old. */
static uint64_t begin_call(struct rpc_server *server, const struct drc_key *key,
                           const struct rpc_source *from, const struct request *request,
                           uint64_t now_ns)
{
    struct drc_found begun = {.entry = DRC_NONE};
    (void)drc_begin(server->cache, key, from->peer.port, now_ns, &begun);
    if (request->kind == REQUEST_NLM_LOCK || request->kind == REQUEST_NLM_SHARE)
        drc_supersede(server->cache, &from->peer.address,
                      whole_client(server, request->lock.caller_name));
    return begun.entry;
}

/* What is cached of hosts that restarted: answers, and where their programs are. */
static void forget_restarted(struct rpc_server *server)
{
    struct address host;
    while (core_next_restarted(server->core, &host)) {
        if (host.family == 0) {
            drc_forget_all(server->cache);
            continue;
        }
        drc_forget(server->cache, &host);
        if (server->client != NULL)
            rpc_client_host_restarted(server->client, &host);
    }
}

void rpc_server_step(struct rpc_server *server, const struct core_input *input,
                     struct core_answer *ret)
{
    core_step(server->core, input, ret);
    forget_restarted(server);
}

void rpc_server_work(struct rpc_server *server, uint64_t now_ns, uint64_t wall_ns)
{
    core_work(server->core, now_ns, wall_ns);
    forget_restarted(server);
}

/* The answer to a call, or the call with the result of a message, as it will leave. */
static uint32_t encode(struct rpc_server *server, const struct rpc_call *call,
                       const struct procedure *procedure, const struct response *response)
{
    struct xdr_out out = xdr_out_of(outbox_reserve(server->outbox), server->reply_max);
    bool is_message = procedure->flags & PROCEDURE_MESSAGE;
    if (is_message) {
        uint32_t xid =
            server->client != NULL ? rpc_client_take_xid(server->client) : server->next_xid++;
        rpc_msg_put_call(&out, xid, call->prog, call->vers, procedure->result_proc);
    } else {
        rpc_msg_put_accepted(&out, call->xid, RPC_SUCCESS);
    }
    if (procedure->encode != NULL)
        procedure->encode(&out, call->vers, response);
    CHECK(!out.overflowed || !is_message); /* every result fits its program's reply_max */
    if (out.overflowed) {
        out = xdr_out_of(outbox_reserve(server->outbox), server->reply_max);
        rpc_msg_put_accepted(&out, call->xid, RPC_SYSTEM_ERR);
    }
    return xdr_out_len(&out);
}

/* An answer whose time has not come: as it will leave, but not yet in the queue. */
static uint64_t keep_late(struct rpc_server *server, uint32_t ticket,
                          const struct outbox_entry *entry, uint32_t len)
{
    CHECK(ticket < CORE_LATE_MAX);
    server->late[ticket] = *entry;
    server->late[ticket].len = len;
    memcpy(server->late_bytes + (size_t)ticket * server->reply_max, outbox_reserve(server->outbox),
           len);
    return LATE_NUMBER | ticket;
}

/* Those whose time has come join the queue. */
static void take_late(struct rpc_server *server)
{
    uint32_t ticket;
    uint64_t after_txn;
    while (outbox_has_room(server->outbox) && core_next_answer(server->core, &ticket, &after_txn)) {
        MARK("server_late_answer");
        struct outbox_entry entry = server->late[ticket];
        entry.after_txn = after_txn;
        memcpy(outbox_reserve(server->outbox),
               server->late_bytes + (size_t)ticket * server->reply_max, entry.len);
        uint64_t number = outbox_add(server->outbox, &entry, entry.len);
        if (entry.cache_entry != DRC_NONE)
            drc_move(server->cache, entry.cache_entry, number);
    }
}

/* One step of the core; its answer goes into the outbox, or waits for its time. False: there is
 * none, and the caller must ask again. */
static bool execute(struct rpc_server *server, const struct rpc_source *from,
                    const struct rpc_call *call, const struct procedure *procedure,
                    const struct request *request, uint64_t cache_entry, uint64_t now_ns,
                    uint64_t wall_ns)
{
    struct core_input input = {.kind = CORE_REQUEST,
                               .now_ns = now_ns,
                               .wall_ns = wall_ns,
                               .from = &from->peer,
                               .request = request};
    struct core_answer answer;
    rpc_server_step(server, &input, &answer);
    if (request->kind == REQUEST_NLM_FREE_ALL) /* also of one that has no record */
        drc_forget_client(server->cache, &from->peer.address,
                          whole_client(server, request->mon_name));

    if (answer.response.when == ANSWER_NEVER) {
        if (cache_entry != DRC_NONE)
            drc_abandon(server->cache, cache_entry);
        return false;
    }
    uint32_t len = encode(server, call, procedure, &answer.response);
    struct outbox_entry entry = {.to = *from,
                                 .taken_by = from->route,
                                 .after_txn = answer.after_txn,
                                 .cache_entry = cache_entry,
                                 .is_call = procedure->flags & PROCEDURE_MESSAGE};
    if (server->meter != NULL) {
        entry.meter_row = meter_find(server->meter, call->prog, call->proc);
        entry.is_error = meter_is_error(&answer.response);
        entry.received_ns = now_ns;
    }
    uint64_t number = answer.response.when == ANSWER_LATER
                          ? keep_late(server, answer.response.ticket, &entry, len)
                          : outbox_add(server->outbox, &entry, len);
    if (cache_entry != DRC_NONE)
        drc_wait(server->cache, cache_entry, number, answer.response.status == LOCK_BLOCKED);
    return true;
}

/* More messages than one address may send over UDP, where addresses can be forged. */
static bool is_too_many(struct rpc_server *server, const struct rpc_source *from, uint64_t now_ns)
{
    if (server->rate == NULL || from->peer.transport != RECORD_UDP ||
        rate_allow(server->rate, &from->peer.address, now_ns))
        return false;
    MARK("server_too_many_messages");
    report(server, EVENT_TOO_MANY_MESSAGES, from, 0);
    return true;
}

/* A call whose row is found: arguments, repeats, the core. */
static enum rpc_verdict dispatch(struct rpc_server *server, const struct rpc_source *from,
                                 const struct rpc_call *call, const struct procedure *procedure,
                                 uint64_t now_ns, uint64_t wall_ns, struct xdr_out *reply)
{
    bool stateless = procedure->flags & PROCEDURE_STATELESS;
    bool is_message = procedure->flags & PROCEDURE_MESSAGE;
    if (is_message && is_too_many(server, from, now_ns))
        return RPC_NO_ANSWER;
    if (!stateless && server->limits.require_privileged_port &&
        from->peer.port >= PRIVILEGED_PORT_END) {
        report(server, EVENT_UNPRIVILEGED, from, from->peer.port);
        rpc_msg_put_auth_error(reply, call->xid, RPC_AUTH_TOOWEAK);
        count_now(server, call, true);
        return RPC_ANSWERED;
    }
    struct request request = {0};
    struct xdr_in args = xdr_in_of(call->args);
    if (!procedure->decode(&args, call->vers, &request)) {
        report(server, EVENT_BAD_ARGUMENTS, from, call->proc);
        rpc_msg_put_accepted(reply, call->xid, RPC_GARBAGE_ARGS);
        count_now(server, call, true);
        return RPC_ANSWERED;
    }
    if (stateless) {
        rpc_msg_put_accepted(reply, call->xid, RPC_SUCCESS);
        count_now(server, call, false);
        return RPC_ANSWERED;
    }
    bool is_cached = procedure->flags & PROCEDURE_CACHED;
    struct drc_key key = {0};
    if (is_cached) {
        key = cache_key(server, from, call, &request);
        enum rpc_verdict seen;
        if (look_for_repeat(server, &key, call, procedure, &request, from, now_ns, reply, &seen)) {
            if (server->meter != NULL)
                server->meter->repeats++;
            return seen;
        }
    }
    if (rpc_server_is_busy(server)) {
        MARK("server_busy");
        return RPC_BUSY;
    }
    uint64_t entry = is_cached ? begin_call(server, &key, from, &request, now_ns) : DRC_NONE;
    bool is_answered = execute(server, from, call, procedure, &request, entry, now_ns, wall_ns);
    if (!is_message)
        return is_answered ? RPC_WAITING : RPC_NO_ANSWER;
    acknowledge(reply, call->xid);
    return is_answered ? RPC_ACKNOWLEDGED : RPC_ANSWERED;
}

enum rpc_verdict rpc_server_receive(struct rpc_server *server, const struct rpc_source *from,
                                    struct bytes message, uint64_t now_ns, uint64_t wall_ns,
                                    struct xdr_out *reply)
{
    if (server->client != NULL && from->peer.transport == RECORD_UDP && rpc_msg_is_reply(message)) {
        rpc_client_datagram(server->client, &from->peer.address, from->peer.port, message, now_ns);
        return RPC_NO_ANSWER;
    }
    struct rpc_call call = {0};
    enum rpc_call_result result = rpc_msg_get_call(message, &call);
    if (result != RPC_CALL_OK) {
        count_unknown(server);
        return refuse_header(server, result, from, call.xid, reply);
    }
    const struct program *program = NULL;
    const struct procedure *procedure = find_procedure(server, &call, from, &program, reply);
    if (procedure == NULL) {
        count_unknown(server);
        return RPC_ANSWERED;
    }
    if (procedure->respond != NULL)
        return respond(server, from, &call, program, procedure, reply);
    return dispatch(server, from, &call, procedure, now_ns, wall_ns, reply);
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
    server->durable_txn = txn;
}

/*
 * The client carries the result of a message to where the host's program is registered. When it has
 * no room, that copy is lost like a datagram: the caller repeats its message.
 */
static void carry(struct rpc_server *server, const struct rpc_source *to, struct bytes message,
                  uint64_t now_ns)
{
    struct rpc_call call;
    CHECK(rpc_msg_get_call(message, &call) == RPC_CALL_OK);
    bool is_udp = to->peer.transport == RECORD_UDP;
    struct client_attempt attempt = {
        .to = to->peer.address,
        .local = to->peer.local,
        .prog = call.prog,
        .vers = call.vers,
        .proc = call.proc,
        .way = is_udp ? CLIENT_UDP_ONLY : CLIENT_TCP_FIRST,
        .from_listener = true,
        .is_one_way = true,
        .sent_port = is_udp ? to->peer.port : 0,
        .message_count = 1,
        .messages = {call.args},
        .deadline_ns = now_ns + RESULT_PATIENCE_NS,
    };
    if (!rpc_client_start(server->client, &attempt, now_ns))
        MARK("server_result_not_carried");
}

bool rpc_server_next(struct rpc_server *server, uint64_t now_ns, struct rpc_reply *ret)
{
    take_late(server);
    const struct outbox_entry *head = outbox_head(server->outbox, server->durable_txn);
    if (head == NULL)
        return false;
    *ret = (struct rpc_reply){
        .to = head->to,
        .taken_by = head->taken_by,
        .message = outbox_message(server->outbox, head),
        .is_call = head->is_call,
    };
    if (head->cache_entry != DRC_NONE)
        drc_end(server->cache, head->cache_entry, ret->message, now_ns);
    if (server->meter != NULL)
        meter_count(server->meter, head->meter_row, head->is_error, now_ns - head->received_ns);
    if (head->is_call && server->client != NULL)
        carry(server, &ret->to, ret->message, now_ns);
    if (head->is_call && ret->to.peer.transport != RECORD_UDP)
        ret->message = (struct bytes){0};
    outbox_pop(server->outbox);
    return true;
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
    return outbox_count(server->outbox);
}

void rpc_server_check(const struct rpc_server *server)
{
    core_check(server->core);
    (void)drc_check(server->cache);
}

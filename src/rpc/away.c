/*
 * away.c -- calls that are executed elsewhere; see away.h.
 *
 *               submit: JOB_LATER                 desk's next
 *   away_take ---------------------> in flight ----------------+
 *       |                                                      v
 *       +---------------------------------------------> finished ---> rpc_server_next_job ---> gone
 *                    submit: JOB_DONE
 *
 * Always true, and asserted by away_check():
 *  (1) A slot is on the queue of finished calls exactly when it has a job.
 *  (2) Of two slots no two have the same entry of the cache; an entry in progress names its slot.
 */
#include "rpc/away.h"

#include "base/check.h"
#include "base/hash.h"
#include "base/list.h"
#include "base/table.h"

#include <stdlib.h>

enum { CACHE_PER_CALL = 2 }; /* entries: those in progress, and as many that are done */

struct away_call {
    struct rpc_source to;
    uint64_t taken_by;
    uint64_t cache_entry; /* or DRC_NONE */
    uint64_t received_ns;
    uint32_t xid, meter_row, weight;
    struct job *job; /* finished, and still to leave */
    struct list in_finished;
};

struct away {
    const struct job_desk *desk; /* NULL: not yet */
    struct table calls;
    struct list finished; /* at once, in this turn */
    struct drc *cache;
    uint32_t last_weight;
    struct job_memory *next_lent, *lent; /* of the next message, and of this one */
    uint64_t seed;
};

struct away *away_new(uint32_t calls_max, uint64_t seed)
{
    struct away *away = calloc(1, sizeof *away);
    if (away == NULL)
        return NULL;
    away->seed = seed;
    list_init(&away->finished);
    away->cache = drc_new(calls_max * CACHE_PER_CALL, seed);
    if (away->cache == NULL || table_init(&away->calls, calls_max, sizeof(struct away_call)) != 0) {
        away_free(away);
        return NULL;
    }
    return away;
}

void away_free(struct away *away)
{
    if (away == NULL)
        return;
    drc_free(away->cache);
    table_done(&away->calls);
    free(away);
}

void away_set_desk(struct away *away, const struct job_desk *desk)
{
    away->desk = desk;
}

static struct away_call *call_at(struct away *away, uint64_t token)
{
    uint32_t slot = table_find(&away->calls, token);
    CHECK(slot != SLOT_NONE); /* a job comes back once */
    return table_at(&away->calls, slot);
}

/* Who asks is part of what is asked. */
static uint64_t credential_hash(uint64_t seed, const struct rpc_credential *credential)
{
    uint64_t hash = hash_mix(seed, (uint64_t)credential->flavor);
    hash = hash_mix(hash, (uint64_t)credential->uid << 32 | credential->gid);
    for (uint32_t i = 0; i < credential->group_count; i++)
        hash = hash_mix(hash, credential->groups[i]);
    return hash;
}

static struct drc_key key_of(const struct away *away, const struct incoming *in)
{
    const struct rpc_call *call = in->call;
    uint32_t subject = (uint32_t)hash_bytes(away->seed, in->procedure->subject(call->args));
    return (struct drc_key){
        .address = in->from->peer.address,
        .owner = subject == 0 ? 1 : subject,
        .xid = call->xid,
        .prog = call->prog,
        .vers = call->vers,
        .proc = call->proc,
        .args_len = call->args.len,
        .args_hash = hash_mix(hash_bytes(away->seed, call->args),
                              credential_hash(away->seed, &call->credential)),
    };
}

/* True: it is a repeat, and *ret says what became of it. */
static bool find_repeat(struct away *away, const struct incoming *in, const struct drc_key *key,
                        enum rpc_verdict *ret)
{
    struct drc_found found;
    enum drc_verdict seen = drc_find(away->cache, key, in->from->peer.port, in->now_ns, &found);
    if (seen == DRC_OLD && !found.is_moved)
        seen = DRC_DONE; /* the connection numbers its calls on: this is no new one */
    switch (seen) {
    case DRC_NEW:
        return false;
    case DRC_OLD:
        drc_discard(away->cache, found.entry);
        return false;
    case DRC_IN_PROGRESS:
        call_at(away, found.waiting)->to = *in->from;
        *ret = RPC_NO_ANSWER;
        return true;
    case DRC_DONE:
        xdr_put_fixed(in->reply, found.reply);
        CHECK(!in->reply->overflowed);
        *ret = RPC_ANSWERED;
        return true;
    }
    UNREACHABLE();
}

static void drop(struct away *away, uint64_t token)
{
    struct away_call *call = call_at(away, token);
    list_remove(&call->in_finished);
    table_remove(&away->calls, table_find(&away->calls, token));
}

/* The desk says that the arguments mean nothing. */
static enum rpc_verdict refuse(struct rpc_server *server, const struct incoming *in, uint64_t token)
{
    struct away *away = server->away;
    const struct away_call *call = call_at(away, token);
    if (call->cache_entry != DRC_NONE)
        drc_abandon(away->cache, call->cache_entry);
    if (server->meter != NULL)
        meter_count(server->meter, call->meter_row, true, 0);
    drop(away, token);
    incoming_report(server, EVENT_BAD_ARGUMENTS, in->from, in->call->proc);
    rpc_msg_put_accepted(in->reply, in->call->xid, RPC_GARBAGE_ARGS);
    return RPC_ANSWERED;
}

/* A slot for a call that is about to be submitted; the cache knows it. */
static uint64_t begin(struct rpc_server *server, const struct incoming *in,
                      const struct drc_key *key)
{
    struct away *away = server->away;
    uint32_t slot = table_add(&away->calls);
    CHECK(slot != SLOT_NONE);
    uint64_t token = table_handle(&away->calls, slot);
    struct away_call *call = table_at(&away->calls, slot);
    away->last_weight = in->call->args.len;
    if (in->procedure->weigh != NULL)
        away->last_weight += in->procedure->weigh(in->call->args);
    *call = (struct away_call){
        .to = *in->from,
        .taken_by = in->from->route,
        .cache_entry = DRC_NONE,
        .received_ns = in->now_ns,
        .xid = in->call->xid,
        .weight = away->last_weight,
    };
    list_init(&call->in_finished);
    if (server->meter != NULL)
        call->meter_row = meter_row(in->program_index, in->call->proc);
    if (key == NULL)
        return token;
    call->cache_entry = drc_begin(away->cache, key, in->from->peer.port);
    if (call->cache_entry != DRC_NONE)
        drc_wait(away->cache, call->cache_entry, token, false);
    return token;
}

void away_lend(struct away *away, struct job_memory *memory)
{
    away->next_lent = memory;
}

void away_listen(struct away *away)
{
    away->last_weight = 0;
    away->lent = away->next_lent;
    away->next_lent = NULL;
}

enum rpc_verdict away_take(struct rpc_server *server, const struct incoming *in)
{
    struct away *away = server->away;
    bool is_cached = in->procedure->flags & PROCEDURE_CACHED;
    struct drc_key key;
    enum rpc_verdict seen;
    bool is_piped = away->lent != NULL && away->lent->inlet != NULL;
    CHECK(away->desk != NULL);
    CHECK(!is_piped || (in->procedure->data_at != NULL && !is_cached)); /* nobody looks at it */
    if (is_cached) {
        key = key_of(away, in);
        if (find_repeat(away, in, &key, &seen)) {
            if (server->meter != NULL)
                server->meter->repeats++;
            return seen;
        }
    }
    if (away->calls.count == away->calls.max)
        return RPC_BUSY;
    uint64_t token = begin(server, in, is_cached ? &key : NULL);
    const struct job_request request = {.program = in->call->prog,
                                        .procedure = in->call->proc,
                                        .xid = in->call->xid,
                                        .from = &in->from->peer,
                                        .credential = &in->call->credential,
                                        .args = in->call->args,
                                        .lent = away->lent,
                                        .token = token};
    struct job *job = NULL;
    switch (away->desk->submit(away->desk->context, &request, &job)) {
    case JOB_GARBAGE:
        return refuse(server, in, token);
    case JOB_DONE:
        call_at(away, token)->job = job;
        list_append(&away->finished, &call_at(away, token)->in_finished);
        return RPC_WAITING;
    case JOB_LATER:
        return RPC_WAITING;
    }
    UNREACHABLE();
}

struct job_inlet *rpc_server_open_inlet(struct rpc_server *server, const struct rpc_source *from,
                                        struct bytes start, uint32_t len, uint32_t *ret_data_at)
{
    const struct job_desk *desk = server->away != NULL ? server->away->desk : NULL;
    struct rpc_call call;
    if (desk == NULL || desk->open_inlet == NULL || rpc_msg_get_call(start, &call) != RPC_CALL_OK)
        return NULL;
    const struct procedure *procedure = incoming_look(server, &call, from);
    if (procedure == NULL || procedure->data_at == NULL)
        return NULL;
    uint32_t header_len = start.len - call.args.len;
    uint32_t data_at = procedure->data_at(call.args, len - header_len);
    struct job_inlet *inlet = data_at > 0 ? desk->open_inlet(desk->context) : NULL;
    if (inlet != NULL)
        *ret_data_at = header_len + data_at;
    return inlet;
}

void rpc_server_close_inlet(struct rpc_server *server, struct job_inlet *inlet)
{
    server->away->desk->close_inlet(server->away->desk->context, inlet);
}

void rpc_server_lend(struct rpc_server *server, struct job_memory *memory)
{
    if (server->away != NULL)
        away_lend(server->away, memory);
}

uint32_t rpc_server_weight(const struct rpc_server *server)
{
    return server->away != NULL ? server->away->last_weight : 0;
}

uint64_t rpc_server_room(const struct rpc_server *server)
{
    const struct job_desk *desk = server->away != NULL ? server->away->desk : NULL;
    return desk != NULL && desk->room != NULL ? desk->room(desk->context) : UINT64_MAX;
}

/* The next finished job, of this turn or of the desk. */
static struct job *next_job(struct away *away)
{
    if (!list_is_empty(&away->finished))
        return LIST_ELEMENT(away->finished.next, struct away_call, in_finished)->job;
    return away->desk->next(away->desk->context);
}

bool rpc_server_next_job(struct rpc_server *server, uint64_t now_ns, struct rpc_finished *ret)
{
    struct away *away = server->away;
    if (away == NULL || away->desk == NULL)
        return false;
    struct job *job = next_job(away);
    if (job == NULL)
        return false;
    struct away_call *call = call_at(away, job->token);
    uint8_t header[RPC_REPLY_HEADER_MAX];
    struct xdr_out out = xdr_out_of(header, sizeof header);
    rpc_msg_put_accepted(&out, call->xid, RPC_SUCCESS);
    uint32_t header_len = xdr_out_len(&out);
    memcpy(job->body - header_len, header, header_len);
    *ret = (struct rpc_finished){
        .to = call->to,
        .taken_by = call->taken_by,
        .message = job->body - header_len,
        .len = header_len + job->body_len,
        .before_pipe = header_len + job->pipe.at,
        .weight = call->weight,
        .job = job,
    };
    if (call->cache_entry != DRC_NONE) {
        CHECK(job->pipe.len == 0); /* what is answered twice lies in memory */
        drc_end(away->cache, call->cache_entry, (struct bytes){ret->message, ret->len}, now_ns);
    }
    if (server->meter != NULL) {
        meter_count(server->meter, call->meter_row, job->status != 0, now_ns - call->received_ns);
        meter_count_bytes(server->meter, call->meter_row, job->data_len);
    }
    drop(away, job->token);
    return true;
}

void rpc_server_release_job(struct rpc_server *server, struct job *job)
{
    server->away->desk->release(server->away->desk->context, job);
}

void away_forget(struct away *away, const struct address *host)
{
    if (host != NULL)
        drc_forget(away->cache, host);
    else
        drc_forget_all(away->cache);
}

uint32_t away_count(const struct away *away)
{
    return away->calls.count;
}

void away_check(const struct away *away)
{
    table_check(&away->calls);
    (void)drc_check(away->cache);
    uint32_t slot = table_next(&away->calls, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(&away->calls, slot)) {
        const struct away_call *call = table_at(&away->calls, slot);
        CHECK((call->job != NULL) == !list_is_empty(&call->in_finished));
    }
}

/*
 * repeat.c -- see repeat.h.
 *
 * A message has the same life as any call. Its answer is the void that acknowledges it; what waits
 * in the outbox and is kept for repeats is the call with its result. A repeat is acknowledged
 * again, and a result that had left leaves again, the same bytes with the same xid (R-DRC-4).
 */
#include "rpc/repeat.h"

#include "base/check.h"
#include "base/hash.h"
#include "codec/nlm_xdr.h"

/* Names are compared without case (R-ID-1). */
static uint64_t fold_and_hash(const struct rpc_server *server, struct bytes name)
{
    uint8_t folded[NLM_NOTIFY_NAME_MAX]; /* the longest of them */
    CHECK(name.len <= sizeof folded);
    for (uint32_t i = 0; i < name.len; i++)
        folded[i] = byte_fold(name.at[i]);
    return drc_args_hash(server->cache, (struct bytes){folded, name.len});
}

static uint64_t name_hash(struct rpc_server *server, struct bytes name)
{
    struct hashed_name *last = &server->last_name;
    if (name.len == 0 || name.len > sizeof last->name)
        return fold_and_hash(server, name);
    if (!bytes_equal((struct bytes){last->name, last->len}, name)) {
        memcpy(last->name, name.at, name.len);
        last->len = name.len;
        last->hash = fold_and_hash(server, name);
    }
    return last->hash;
}

/* A client as a whole, whose FREE_ALL its processes make old: no process has this number. */
static uint32_t whole_of(uint64_t name)
{
    return (uint32_t)hash_number(name, UINT64_C(1) << 32) | 1;
}

static uint32_t whole_client(struct rpc_server *server, struct bytes name)
{
    return whole_of(name_hash(server, name));
}

/*
 * Whose call it is: the process of a client, or the registrant, whose calls may undo each other's
 * effects, and the client whose FREE_ALL makes the cache forget it; 0: nobody's.
 */
static void set_owner(struct rpc_server *server, const struct request *request, struct drc_key *key)
{
    const struct lock_request *r = &request->lock;
    uint64_t name;
    switch (request->kind) {
    case REQUEST_NLM_LOCK:
    case REQUEST_NLM_CANCEL:
    case REQUEST_NLM_UNLOCK:
        name = name_hash(server, r->caller_name);
        key->owner = (uint32_t)hash_number(name, r->svid) | 1;
        key->client = whole_of(name);
        return;
    case REQUEST_NLM_SHARE:
    case REQUEST_NLM_UNSHARE:
        name = name_hash(server, r->caller_name);
        key->owner = (uint32_t)hash_number(name, drc_args_hash(server->cache, r->oh)) | 1;
        key->client = whole_of(name);
        return;
    case REQUEST_NLM_FREE_ALL:
        key->owner = whole_client(server, request->mon_name);
        key->client = key->owner;
        return;
    case REQUEST_NSM_MON:
    case REQUEST_NSM_UNMON:
    case REQUEST_NSM_UNMON_ALL:
        key->owner = (uint32_t)name_hash(server, request->my_name) | 1;
        return;
    case REQUEST_NSM_NOTIFY:
    case REQUEST_NSM_STAT:
    case REQUEST_NSM_SIMU_CRASH:
    case REQUEST_NLM_TEST:
    case REQUEST_NLM_GRANTED:
    case REQUEST_NLM_GRANTED_RES:
        return;
    }
}

static void set_key(struct rpc_server *server, const struct incoming *in, struct drc_key *key)
{
    const struct rpc_call *call = in->call;
    uint64_t args_hash = drc_args_hash(server->cache, call->args);
    *key = (struct drc_key){.address = in->from->peer.address,
                            .xid = call->xid,
                            .prog = call->prog,
                            .vers = call->vers,
                            .proc = call->proc,
                            .args_len = call->args.len,
                            .args_hash = args_hash};
    set_owner(server, &in->request, key);
}

/* The result of a message goes through the outbox; with a shared store an answer does, too, for we
 * may have been replaced. */
static bool is_queued(const struct rpc_server *server, const struct incoming *in)
{
    return in->is_message || lease_is_shared(server->limits.lease);
}

/* It waits behind what is there, and for the fence if there is one. */
static enum rpc_verdict enqueue(struct rpc_server *server, const struct incoming *in, uint32_t len)
{
    uint64_t after_txn = lease_is_shared(server->limits.lease) ? core_fence(server->core)
                                                               : outbox_txn_newest(server->outbox);
    struct outbox_entry entry = {.taken_by = in->from->route,
                                 .after_txn = after_txn,
                                 .cache_entry = DRC_NONE,
                                 .is_call = in->is_message,
                                 .meter_row = METER_NONE}; /* it is counted as a repeat */
    (void)outbox_add(server->outbox, &entry, in->from, len);
    if (!in->is_message)
        return RPC_WAITING;
    incoming_acknowledge(in);
    return RPC_ACKNOWLEDGED;
}

/* What was sent before, once more. */
static enum rpc_verdict send_again(struct rpc_server *server, const struct incoming *in,
                                   struct bytes result)
{
    if (!is_queued(server, in)) {
        xdr_put_fixed(in->reply, result);
        CHECK(!in->reply->overflowed);
        return RPC_ANSWERED;
    }
    if (!outbox_has_room(server->outbox))
        return RPC_BUSY;
    MARK("server_result_sent_again");
    memcpy(outbox_reserve(server->outbox), result.at, result.len);
    return enqueue(server, in, result.len);
}

/* The answer of a call in progress goes there, when it has waited. */
static void redirect(struct rpc_server *server, uint64_t waiting, const struct rpc_source *to)
{
    if (waiting & LATE_NUMBER) {
        server->late[waiting & ~LATE_NUMBER].to = *to;
        return;
    }
    struct outbox_entry *pending = outbox_find(server->outbox, waiting);
    CHECK(pending != NULL);
    outbox_redirect(server->outbox, pending, to);
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

/*
 * A copy of a call that its owner has gone on from: it is not executed, nor is it said that it was
 * (decision 020). A client with a new request asks again, under another xid.
 */
static enum rpc_verdict refuse_old(struct rpc_server *server, const struct incoming *in,
                                   struct bytes cached)
{
    const struct request *request = &in->request;
    if (is_true_for_ever(request))
        return send_again(server, in, cached);
    if (is_queued(server, in) && !outbox_has_room(server->outbox))
        return RPC_BUSY;
    MARK("server_old_call");
    incoming_report(server, EVENT_OLD_CALL, in->from, in->call->proc);
    if (!has_status(request))
        return RPC_NO_ANSWER;
    const struct response again = {.status = LOCK_GRACE, .cookie = request->cookie};
    if (is_queued(server, in))
        return enqueue(server, in, incoming_encode(server, in, &again));
    incoming_answer(in, &again, in->reply);
    return RPC_ANSWERED;
}

/* A repeat of a call in progress gets the pending answer on the way it asks now; its first way may
 * be gone (R-DRC-1). */
bool repeat_find(struct rpc_server *server, const struct incoming *in, struct drc_key *ret_key,
                 enum rpc_verdict *ret)
{
    const struct rpc_source *from = in->from;
    struct drc_found found;
    set_key(server, in, ret_key);
    enum drc_verdict seen = drc_find(server->cache, ret_key, from->peer.port, in->now_ns, &found);
    /* A kernel has SM_MON of several hosts in flight at once, all under one name. */
    if (seen == DRC_OLD && in->request.kind == REQUEST_NSM_MON && !found.is_moved)
        seen = DRC_DONE;
    switch (seen) {
    case DRC_NEW:
        return false;
    case DRC_IN_PROGRESS:
        redirect(server, found.waiting, from);
        *ret = in->is_message ? RPC_ANSWERED : RPC_NO_ANSWER;
        if (in->is_message)
            incoming_acknowledge(in);
        return true;
    case DRC_OLD:
        *ret = refuse_old(server, in, found.reply);
        return true;
    case DRC_DONE:
        *ret = send_again(server, in, found.reply);
        return true;
    }
    UNREACHABLE();
}

/* What takes something makes a FREE_ALL of its client old. */
uint64_t repeat_begin(struct rpc_server *server, const struct incoming *in,
                      const struct drc_key *key)
{
    const struct request *request = &in->request;
    uint64_t entry = drc_begin(server->cache, key, in->from->peer.port);
    if (request->kind == REQUEST_NLM_LOCK || request->kind == REQUEST_NLM_SHARE)
        drc_supersede_whole(server->cache, &in->from->peer.address, key->client);
    return entry;
}

void repeat_forget_client(struct rpc_server *server, const struct address *host, struct bytes name)
{
    drc_forget_client(server->cache, host, whole_client(server, name));
}

void repeat_override_client(struct rpc_server *server, const struct address *host,
                            struct bytes name)
{
    drc_supersede_client(server->cache, host, whole_client(server, name));
}

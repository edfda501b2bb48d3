/*
 * permit.c -- see permit.h.
 */
#include "rpc/permit.h"

#include "base/check.h"
#include "proto/guard.h"

enum { ACCESS_WRITE = 2 }; /* fsa_W: a bit, of fsa_RW as well */

static bool wants_something(enum request_kind kind)
{
    return kind == REQUEST_NLM_LOCK || kind == REQUEST_NLM_TEST || kind == REQUEST_NLM_SHARE;
}

static bool is_listed(const struct rpc_server *server, const struct address *from)
{
    for (uint32_t i = 0; i < server->allowed_count; i++)
        if (network_has(&server->allowed[i], from))
            return true;
    return server->allowed_count == 0;
}

static void refuse(struct rpc_server *server, struct incoming *in, enum lock_status status,
                   enum event_kind event)
{
    struct lock_request *r = &in->request.lock;
    r->refusal = status;
    event_add_of_file(core_events(server->core), event, &in->from->peer.address, r->caller_name, 0,
                      r->fh);
}

static bool wants_to_write(const struct request *request)
{
    return request->kind == REQUEST_NLM_SHARE ? (request->lock.access & ACCESS_WRITE) != 0
                                              : request->lock.exclusive;
}

bool permit_judge(struct rpc_server *server, struct incoming *in)
{
    struct lock_request *r = &in->request.lock;
    if (!wants_something(in->request.kind))
        return true;
    if (!is_listed(server, &in->from->peer.address)) {
        refuse(server, in, LOCK_DENIED, EVENT_LOCK_NOT_ALLOWED);
        return true;
    }
    if (server->guard == NULL || r->is_bad_handle)
        return true;
    const struct guard_question question = {
        .from = &in->from->peer,
        .credential = &in->call->credential,
        .fh = r->fh,
        .exclusive = wants_to_write(&in->request),
        .is_stored = r->reclaim && core_has(server->core, &in->from->peer, &in->request)};
    switch (server->guard->judge(server->guard->context, &question)) {
    case GUARD_ALLOWED:
        return true;
    case GUARD_LATER:
        return false;
    case GUARD_AGAIN:
        r->refusal = LOCK_GRACE;
        return true;
    case GUARD_STALE:
        r->refusal = LOCK_STALE_HANDLE; /* as ordinary as a file that somebody removed */
        return true;
    case GUARD_NOT_EXPORTED:
        refuse(server, in, LOCK_DENIED, EVENT_LOCK_NOT_EXPORTED);
        return true;
    case GUARD_READ_ONLY:
        refuse(server, in, LOCK_READ_ONLY, EVENT_LOCK_READ_ONLY);
        return true;
    case GUARD_NO_ACCESS:
        refuse(server, in, LOCK_DENIED, EVENT_LOCK_NO_ACCESS);
        return true;
    case GUARD_STUCK:
        refuse(server, in, LOCK_NO_RESOURCES, EVENT_LOCK_STUCK);
        return true;
    }
    UNREACHABLE();
}

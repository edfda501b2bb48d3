/*
 * toy.c -- a lock server of a few lines; see toy.h.
 */
#include "peer/toy.h"

#include <netinet/in.h>
#include <string.h>

#define TOY_ADDRESS UINT32_C(0x7f4d0001)

static bool is_same_owner(const struct toy_lock *lock, uint32_t address,
                          const struct peer_nlm_args *args)
{
    return lock->address == address && lock->args.lock.svid == args->lock.svid;
}

static uint64_t end_of(const struct peer_nlm_lock *lock)
{
    uint64_t end = lock->offset + lock->len - 1;
    return lock->len == 0 || end < lock->offset ? UINT64_MAX : end;
}

static struct toy_lock *conflict(struct toy *toy, uint32_t address,
                                 const struct peer_nlm_args *args)
{
    for (uint32_t i = 0; i < TOY_LOCKS_MAX; i++) {
        struct toy_lock *lock = &toy->locks[i];
        if ((lock->state == TOY_HELD || lock->state == TOY_OFFERED) &&
            !is_same_owner(lock, address, args) && (lock->args.exclusive || args->exclusive) &&
            lock->args.lock.offset <= end_of(&args->lock) &&
            args->lock.offset <= end_of(&lock->args.lock))
            return lock;
    }
    return NULL;
}

static struct toy_lock *lock_of(struct toy *toy, uint32_t address, const struct peer_nlm_args *args)
{
    struct toy_lock *unused = NULL;
    for (uint32_t i = 0; i < TOY_LOCKS_MAX; i++) {
        if (toy->locks[i].state == TOY_FREE)
            unused = &toy->locks[i];
        else if (is_same_owner(&toy->locks[i], address, args))
            return &toy->locks[i];
    }
    return unused;
}

static uint32_t take(struct toy *toy, uint32_t address, uint32_t vers,
                     const struct peer_nlm_args *args)
{
    struct toy_lock *lock = lock_of(toy, address, args);
    bool is_free = !conflict(toy, address, args);
    if (!is_free && !args->block)
        return PEER_NLM_IS_DENIED;
    if (lock->state == TOY_FREE)
        lock->queued = ++toy->clock;
    *lock = (struct toy_lock){.state = is_free ? TOY_HELD : TOY_WAITING,
                              .address = address,
                              .vers = vers,
                              .args = *args,
                              .queued = lock->queued};
    return is_free ? PEER_NLM_IS_GRANTED : PEER_NLM_IS_BLOCKED;
}

static void call_back(struct toy *toy, const struct toy_lock *lock)
{
    static struct packet call;
    for (uint32_t i = 0; i < TOY_CLIENTS_MAX && !toy->is_silent; i++) {
        const struct emu_host *host = toy->clients[i];
        if (!host || host->address != lock->address)
            continue;
        struct dial_endpoint to = dial_endpoint_v4(host->address, host->nlm_port[1]);
        peer_nlm_put_call(&call, (uint32_t)++toy->clock, lock->vers, toy->callback, &lock->args);
        (void)emu_net_send(toy->udp_socket, &to, &call);
        return;
    }
}

static void serve_waiters(struct toy *toy)
{
    struct toy_lock *next;
    do {
        next = NULL;
        for (uint32_t i = 0; i < TOY_LOCKS_MAX; i++) {
            struct toy_lock *lock = &toy->locks[i];
            if (lock->state == TOY_WAITING && !conflict(toy, lock->address, &lock->args) &&
                (!next || lock->queued < next->queued))
                next = lock;
        }
        if (next) {
            next->state = TOY_OFFERED;
            call_back(toy, next);
        }
    } while (next);
}

static uint32_t give_back(struct toy *toy, uint32_t address, const struct peer_nlm_args *args,
                          bool is_cancel)
{
    struct toy_lock *lock = lock_of(toy, address, args);
    if (is_cancel && lock->state == TOY_HELD)
        return PEER_NLM_IS_DENIED;
    lock->state = TOY_FREE;
    serve_waiters(toy);
    return PEER_NLM_IS_GRANTED;
}

/* What a procedure answers; *_MSG are looked at as what they ask for. */
static void work(struct toy *toy, uint32_t address, const struct packet_call *call,
                 const struct peer_nlm_args *args, struct peer_nlm_res *res)
{
    const struct toy_lock *holder;
    res->cookie = args->cookie;
    switch (call->proc) {
    case PEER_NLM_TEST:
    case PEER_NLM_TEST_MSG:
        holder = conflict(toy, address, args);
        if (holder) {
            res->status = PEER_NLM_IS_DENIED;
            res->exclusive = holder->args.exclusive;
            res->svid = holder->args.lock.svid;
            res->oh = holder->args.lock.oh;
            res->offset = holder->args.lock.offset;
            res->len = holder->args.lock.len;
        }
        break;
    case PEER_NLM_LOCK:
    case PEER_NLM_LOCK_MSG:
        res->status = take(toy, address, call->vers, args);
        break;
    case PEER_NLM_NM_LOCK: {
        struct peer_nlm_args now = *args;
        now.block = false;
        res->status = take(toy, address, call->vers, &now);
        break;
    }
    case PEER_NLM_CANCEL:
    case PEER_NLM_CANCEL_MSG:
        res->status = give_back(toy, address, args, true);
        break;
    case PEER_NLM_UNLOCK:
    case PEER_NLM_UNLOCK_MSG:
        res->status = give_back(toy, address, args, false);
        break;
    default:
        break;
    }
}

/* The answer to a callback, as a reply or as GRANTED_RES. */
static void take_answer(struct toy *toy, uint32_t address, const struct peer_nlm_res *res)
{
    for (uint32_t i = 0; i < TOY_LOCKS_MAX; i++) {
        struct toy_lock *lock = &toy->locks[i];
        if (lock->state == TOY_OFFERED && lock->address == address &&
            peer_nlm_bytes_equal(&lock->args.cookie, &res->cookie))
            lock->state = res->status == PEER_NLM_IS_GRANTED ? TOY_HELD : TOY_FREE;
    }
    serve_waiters(toy);
}

static void send_res(struct toy *toy, const struct emu_net_message *message, uint32_t address,
                     const struct packet_call *call, const struct peer_nlm_res *res)
{
    static struct packet answer;
    struct dial_endpoint to = message->from;
    peer_nlm_put_res_call(&answer, (uint32_t)++toy->clock, call->vers,
                          peer_nlm_answer_to(call->proc), res);
    for (uint32_t i = 0; i < TOY_CLIENTS_MAX && toy->is_res_to_port; i++)
        if (toy->clients[i] && toy->clients[i]->address == address)
            to = dial_endpoint_v4(address, toy->clients[i]->nlm_port[1]);
    (void)emu_net_send(message->is_udp || toy->is_res_to_port ? toy->udp_socket : message->socket,
                       &to, &answer);
}

static bool serve(const struct emu_net_message *message, struct packet *reply)
{
    static struct peer_nlm_args args;
    static struct peer_nlm_res res;
    struct toy *toy = message->host;
    struct packet_reader reader = {message->bytes, message->len, false};
    struct packet_call call;
    struct packet_reply answer;
    struct sockaddr_in from;
    memcpy(&from, &message->from.at, sizeof(from));
    uint32_t address = ntohl(from.sin_addr.s_addr);
    if (packet_get_reply(message->bytes, message->len, &answer)) {
        struct packet_reader body = {answer.body, answer.body_len, false};
        if (answer.accepted && answer.status == PACKET_SUCCESS &&
            peer_nlm_get_res(&body, 4, PEER_NLM_GRANTED, &res))
            take_answer(toy, address, &res);
        return false;
    }
    if (!packet_get_call(&reader, &call))
        return false;
    toy->calls++;
    toy->repeated_xids += call.xid == toy->last_xid;
    toy->last_xid = call.xid;
    packet_put_accepted(reply, call.xid, PACKET_SUCCESS);
    memset(&res, 0, sizeof(res));
    if (call.proc == PEER_NLM_GRANTED_RES && peer_nlm_get_res(&reader, call.vers, call.proc, &res))
        take_answer(toy, address, &res);
    if (call.proc == PEER_NLM_NULL || call.proc == PEER_NLM_GRANTED_RES)
        return true;
    bool is_message = peer_nlm_answer_to(call.proc) != PEER_NLM_NULL;
    if (!peer_nlm_get_args(&reader, call.vers, call.proc, &args) || (is_message && toy->is_deaf))
        return false;
    work(toy, address, &call, &args, &res);
    if (is_message)
        send_res(toy, message, address, &call, &res);
    peer_nlm_put_res(reply, call.vers, call.proc, &res);
    return true;
}

bool toy_open(struct toy *toy)
{
    struct emu_net_owner owner = {.host = toy, .serve = serve};
    struct dial_endpoint at = dial_endpoint_v4(TOY_ADDRESS, 0);
    toy->callback = PEER_NLM_GRANTED;
    int port = emu_net_listen(&owner, &at, true, &toy->udp_socket);
    if (port < 0)
        return false;
    toy->at = dial_endpoint_v4(TOY_ADDRESS, (uint16_t)port);
    return emu_net_listen(&owner, &toy->at, false, NULL) == port;
}

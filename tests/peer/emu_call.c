/*
 * emu_call.c -- one NLM call of an emulated host and its answer; see emu_call.h.
 *
 * Synchronous calls stay on one connection; when the server has closed it, another one is opened
 * and the call goes out again with the same xid, as a real client does.
 */
#include "peer/emu_call.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

struct peer_nlm_bytes emu_call_cookie(struct emu_host *host)
{
    uint8_t bytes[8] = {0};
    emu_net_lock();
    uint32_t number = ++host->cookie_count;
    emu_net_unlock();
    for (uint32_t i = 0; i < 4; i++) {
        bytes[i] = (uint8_t)(number >> (8 * (3 - i)));
        bytes[4 + i] = (uint8_t)(host->address >> (8 * i));
    }
    return peer_nlm_bytes_of(bytes, host->kind->cookie_len);
}

static bool has_status(uint32_t procedure)
{
    return (procedure >= PEER_NLM_TEST && procedure <= PEER_NLM_GRANTED) ||
           (procedure >= PEER_NLM_SHARE && procedure <= PEER_NLM_NM_LOCK);
}

/* ---- synchronous ---- */

static int exchange(struct emu_host *host, const struct packet *call, struct packet *answer,
                    struct packet_reply *reply)
{
    int result = -ECONNRESET;
    int *fd = &host->fd[host->is_udp];
    for (int tries = 0; tries < 2 && result == -ECONNRESET; tries++) {
        if (*fd < 0)
            *fd = emu_host_open(host, host->is_udp, host->address);
        if (*fd < 0)
            return *fd;
        result = dial_exchange(*fd, host->is_udp, call, host->timeout_ms, answer, reply);
        if (result < 0 && !host->is_udp) {
            close(*fd);
            *fd = -1;
        }
    }
    return result;
}

static int read_result(struct emu_host *host, const struct packet_reply *reply,
                       struct peer_nlm_res *ret)
{
    struct packet_reader reader = {reply->body, reply->body_len, false};
    struct peer_nlm_res res;
    if (!reply->accepted || reply->status != PACKET_SUCCESS)
        return -EPROTO;
    if (!peer_nlm_get_res(&reader, host->kind->vers, host->last_procedure, &res))
        return -EBADMSG;
    if (ret)
        *ret = res;
    return (int)res.status;
}

int emu_call_repeat(struct emu_host *host, struct peer_nlm_res *ret)
{
    static struct packet answer;
    struct packet_reply reply;
    int result = exchange(host, host->last_call, &answer, &reply);
    return result < 0 ? result : read_result(host, &reply, ret);
}

static int call_and_wait(struct emu_host *host, enum peer_nlm_procedure procedure,
                         const struct peer_nlm_args *args, struct peer_nlm_res *ret)
{
    struct peer_nlm_res res = {0};
    peer_nlm_put_call(host->last_call, emu_host_next_xid(host), host->kind->vers, procedure, args);
    host->last_procedure = procedure;
    int status = emu_call_repeat(host, &res);
    if (status >= 0 && has_status(procedure) && !peer_nlm_bytes_equal(&res.cookie, &args->cookie))
        return -EBADMSG;
    if (status >= 0 && ret)
        *ret = res;
    return status;
}

int emu_call_res(struct emu_host *host, enum peer_nlm_procedure procedure,
                 const struct peer_nlm_res *res)
{
    static struct packet call, answer;
    struct packet_reply reply;
    peer_nlm_put_res_call(&call, emu_host_next_xid(host), host->kind->vers, procedure, res);
    int result = exchange(host, &call, &answer, &reply);
    if (result < 0)
        return result;
    return reply.accepted && reply.status == PACKET_SUCCESS && reply.body_len == 0 ? 0 : -EPROTO;
}

int emu_call_raw(struct emu_host *host, uint32_t source_address, const struct packet *call,
                 struct packet *answer, struct packet_reply *ret)
{
    int fd = emu_host_open(host, host->is_udp, source_address);
    if (fd < 0)
        return fd;
    int result = dial_exchange(fd, host->is_udp, call, host->timeout_ms, answer, ret);
    close(fd);
    return result;
}

/* ---- asynchronous ---- */

static bool is_answered(void *context)
{
    const struct emu_ask *ask = context;
    return ask->is_answered;
}

static struct emu_ask *open_ask(struct emu_host *host, uint32_t procedure,
                                const struct peer_nlm_bytes *cookie)
{
    struct emu_ask *ask = NULL;
    emu_net_lock();
    for (uint32_t i = 0; i < EMU_HOST_ASKS_MAX && !ask; i++)
        if (!host->asks[i].is_open)
            ask = &host->asks[i];
    if (ask) {
        memset(ask, 0, sizeof(*ask));
        ask->is_open = true;
        ask->procedure = procedure;
        ask->cookie = *cookie;
    }
    emu_net_unlock();
    return ask;
}

static int ask_and_wait(struct emu_host *host, enum peer_nlm_procedure procedure,
                        const struct peer_nlm_args *args, struct peer_nlm_res *ret)
{
    static struct packet call;
    uint64_t deadline_ns = dial_now_ns() + (uint64_t)host->timeout_ms * 1000000;
    struct emu_ask *ask = open_ask(host, peer_nlm_answer_to(procedure), &args->cookie);
    int result = -ETIMEDOUT;
    if (!ask)
        return -ENOBUFS;
    for (uint32_t wait_ms = host->resend_ms; dial_now_ns() < deadline_ns; wait_ms *= 2) {
        peer_nlm_put_call(&call, emu_host_next_xid(host), host->kind->vers, procedure, args);
        if (!emu_host_send(host, host->is_udp, &call)) {
            result = -ECONNREFUSED;
            break;
        }
        if (emu_net_wait(is_answered, ask, wait_ms))
            break;
    }
    emu_net_lock();
    if (ask->is_answered) {
        result = (int)ask->res.status;
        host->was_at_own_socket = ask->is_at_own_socket;
        if (ret)
            *ret = ask->res;
    }
    ask->is_open = false;
    emu_net_unlock();
    return result;
}

bool emu_call_was_at_own_socket(const struct emu_host *host)
{
    return host->was_at_own_socket;
}

int emu_call(struct emu_host *host, enum peer_nlm_procedure procedure,
             const struct peer_nlm_args *args, struct peer_nlm_res *ret)
{
    bool has_message = procedure >= PEER_NLM_TEST && procedure <= PEER_NLM_UNLOCK;
    if (!host->kind->is_async || !has_message)
        return call_and_wait(host, procedure, args, ret);
    return ask_and_wait(
        host, (enum peer_nlm_procedure)(procedure + PEER_NLM_TEST_MSG - PEER_NLM_TEST), args, ret);
}

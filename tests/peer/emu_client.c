/*
 * emu_client.c -- what the programs on an emulated host do; see emu_client.h.
 *
 * A blocking request is on the list of waits before its LOCK leaves: the callback may overtake the
 * answer. Whoever hears GRANTED first, callback or poll, ends the wait.
 */
#include "peer/emu_client.h"

#include "peer/emu_call.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct peer_nlm_bytes emu_client_handle(uint32_t file)
{
    uint8_t bytes[32] = {0x01, 0x00, 0x07, 0x01};
    for (uint32_t i = 0; i < 4; i++)
        bytes[28 + i] = (uint8_t)(file >> (8 * (3 - i)));
    return peer_nlm_bytes_of(bytes, sizeof(bytes));
}

struct peer_nlm_bytes emu_client_oh(const struct emu_host *host, uint32_t svid)
{
    char text[EMU_HOST_NAME_MAX + 16];
    uint8_t bytes[16] = {0};
    for (uint32_t i = 0; i < 4; i++) {
        /* Solaris: its number for this client and server; macOS: a small pid, so mostly zeros. */
        bytes[i] = (uint8_t)(host->address >> (8 * i));
        bytes[8 + i] = (uint8_t)(host->lockd_start >> (8 * (3 - i)));
    }
    switch (host->kind->oh) {
    case EMU_OH_TEXT:
        snprintf(text, sizeof(text), "%u@%s", svid, host->name);
        return peer_nlm_text(text);
    case EMU_OH_SYSID:
        return peer_nlm_bytes_of(bytes, 8);
    case EMU_OH_LOCKD:
        memcpy(bytes, (const uint8_t[]){0, 0, 1, 0x2c, 0, 0, 0, 0}, 8);
        return peer_nlm_bytes_of(bytes, 16);
    }
    return peer_nlm_text("");
}

void emu_client_fill(struct emu_host *host, const struct emu_request *request,
                     struct peer_nlm_args *ret)
{
    uint64_t end = host->kind->is_eof_all_ones ? UINT64_MAX : 0;
    memset(ret, 0, sizeof(*ret));
    ret->cookie = emu_call_cookie(host);
    ret->exclusive = request->exclusive;
    ret->reclaim = request->reclaim;
    /* Linux, and so everybody here, leaves the state out of a reclaim. */
    ret->state = request->reclaim || host->kind->is_unmonitored ? 0 : host->state;
    ret->lock.caller_name = peer_nlm_text(host->name);
    ret->lock.fh = request->fh ? *request->fh : emu_client_handle(request->file);
    ret->lock.oh = emu_client_oh(host, request->svid);
    ret->lock.svid = request->svid;
    ret->lock.offset = request->offset;
    ret->lock.len = request->len == 0 ? end : request->len;
}

static enum peer_nlm_procedure lock_procedure(const struct emu_host *host)
{
    return host->kind->is_unmonitored ? PEER_NLM_NM_LOCK : PEER_NLM_LOCK;
}

static int call(struct emu_host *host, enum peer_nlm_procedure procedure,
                const struct emu_request *request, struct peer_nlm_res *ret)
{
    static struct peer_nlm_args args;
    emu_client_fill(host, request, &args);
    return emu_call(host, procedure, &args, ret);
}

int emu_client_lock(struct emu_host *host, const struct emu_request *request)
{
    return call(host, lock_procedure(host), request, NULL);
}

int emu_client_test(struct emu_host *host, const struct emu_request *request,
                    struct peer_nlm_res *ret_holder)
{
    return call(host, PEER_NLM_TEST, request, ret_holder);
}

int emu_client_unlock(struct emu_host *host, const struct emu_request *request)
{
    return call(host, PEER_NLM_UNLOCK, request, NULL);
}

int emu_client_cancel(struct emu_host *host, const struct emu_request *request)
{
    static struct peer_nlm_args args;
    emu_client_fill(host, request, &args);
    args.block = true;
    return emu_call(host, PEER_NLM_CANCEL, &args, NULL);
}

static int share(struct emu_host *host, enum peer_nlm_procedure procedure,
                 const struct emu_request *request, uint32_t mode, uint32_t access)
{
    static struct peer_nlm_args args;
    emu_client_fill(host, request, &args);
    args.mode = mode;
    args.access = access;
    return emu_call(host, procedure, &args, NULL);
}

int emu_client_share(struct emu_host *host, const struct emu_request *request, uint32_t mode,
                     uint32_t access)
{
    return share(host, PEER_NLM_SHARE, request, mode, access);
}

int emu_client_unshare(struct emu_host *host, const struct emu_request *request)
{
    return share(host, PEER_NLM_UNSHARE, request, 0, 0);
}

int emu_client_free_all(struct emu_host *host, const char *name)
{
    static struct peer_nlm_args args;
    memset(&args, 0, sizeof(args));
    args.lock.caller_name = peer_nlm_text(name);
    return emu_call(host, PEER_NLM_FREE_ALL, &args, NULL);
}

/* ---- waiting ---- */

static uint32_t open_wait(struct emu_host *host, const struct peer_nlm_args *args)
{
    uint32_t index = 0;
    emu_net_lock();
    while (index < EMU_HOST_WAITS_MAX && host->waits[index].state != EMU_WAIT_FREE)
        index++;
    if (index < EMU_HOST_WAITS_MAX) {
        memset(&host->waits[index], 0, sizeof(host->waits[index]));
        host->waits[index].state = EMU_WAIT_BLOCKED;
        host->waits[index].args = *args;
    }
    emu_net_unlock();
    return index;
}

static void set_state(struct emu_host *host, uint32_t wait, enum emu_wait_state state)
{
    emu_net_lock();
    host->waits[wait].state = state;
    emu_net_unlock();
}

/* What a host that polls may hear while it waits. */
static bool is_waiting_status(const struct emu_host *host, int status)
{
    return status == PEER_NLM_IS_BLOCKED || status == PEER_NLM_IS_GRACE ||
           (status == PEER_NLM_IS_DENIED && host->kind->is_unmonitored);
}

/* The answer to a LOCK that blocks, weighed against a callback that came meanwhile. */
static int settle(struct emu_host *host, uint32_t wait, int status)
{
    struct emu_wait *slot = &host->waits[wait];
    emu_net_lock();
    if (slot->state == EMU_WAIT_GRANTED && is_waiting_status(host, status))
        status = PEER_NLM_IS_GRANTED;
    else if (status == PEER_NLM_IS_GRANTED)
        slot->state = EMU_WAIT_GRANTED;
    else if (status >= 0 && !is_waiting_status(host, status))
        slot->state = EMU_WAIT_OVER;
    emu_net_unlock();
    return status;
}

int emu_client_block(struct emu_host *host, const struct emu_request *request, uint32_t *ret_wait)
{
    static struct peer_nlm_args args;
    emu_client_fill(host, request, &args);
    args.block = true;
    uint32_t wait = open_wait(host, &args);
    if (wait == EMU_HOST_WAITS_MAX)
        return -ENOBUFS;
    int status = emu_call(host, lock_procedure(host), &args, NULL);
    *ret_wait = wait;
    if (status == PEER_NLM_IS_GRANTED || (status >= 0 && !is_waiting_status(host, status))) {
        set_state(host, wait, EMU_WAIT_FREE);
        return status;
    }
    return status; /* a callback that came already is found by emu_client_wait */
}

static int relock(struct emu_host *host, uint32_t wait)
{
    struct emu_wait *slot = &host->waits[wait];
    struct peer_nlm_args args;
    emu_net_lock();
    bool is_waiting = slot->state == EMU_WAIT_BLOCKED;
    if (is_waiting)
        slot->state = EMU_WAIT_CANCELLING;
    args = slot->args;
    emu_net_unlock();
    if (!is_waiting)
        return PEER_NLM_IS_GRANTED;
    args.cookie = emu_call_cookie(host);
    int status = emu_call(host, PEER_NLM_CANCEL, &args, NULL);
    if (status < 0)
        return status;
    args.cookie = emu_call_cookie(host);
    emu_net_lock();
    slot->args = args;
    slot->state = EMU_WAIT_BLOCKED;
    emu_net_unlock();
    return settle(host, wait, emu_call(host, lock_procedure(host), &args, NULL));
}

int emu_client_poll(struct emu_host *host, uint32_t wait)
{
    if (host->kind->poll == EMU_POLL_RELOCK)
        return relock(host, wait);
    return settle(host, wait, emu_call(host, lock_procedure(host), &host->waits[wait].args, NULL));
}

bool emu_client_is_granted(const struct emu_host *host, uint32_t wait)
{
    emu_net_lock();
    bool is_granted = host->waits[wait].state == EMU_WAIT_GRANTED;
    emu_net_unlock();
    return is_granted;
}

struct outcome {
    const struct emu_host *host;
    uint32_t wait;
};

static bool is_granted(void *context)
{
    const struct outcome *outcome = context;
    return outcome->host->waits[outcome->wait].state == EMU_WAIT_GRANTED;
}

int emu_client_wait(struct emu_host *host, uint32_t wait, uint32_t timeout_ms)
{
    uint64_t deadline_ns = dial_now_ns() + (uint64_t)timeout_ms * 1000000;
    struct outcome outcome = {host, wait};
    for (;;) {
        uint64_t now_ns = dial_now_ns();
        uint64_t left_ms = now_ns < deadline_ns ? (deadline_ns - now_ns) / 1000000 : 0;
        if (emu_net_wait(is_granted, &outcome,
                         left_ms < host->poll_ms ? (uint32_t)left_ms : host->poll_ms)) {
            set_state(host, wait, EMU_WAIT_FREE);
            return PEER_NLM_IS_GRANTED;
        }
        if (left_ms == 0)
            return -ETIMEDOUT;
        int status = emu_client_poll(host, wait);
        if (!is_waiting_status(host, status) && status != PEER_NLM_IS_GRANTED)
            return status;
    }
}

int emu_client_give_up(struct emu_host *host, uint32_t wait, bool *ret_owned)
{
    struct emu_wait *slot = &host->waits[wait];
    struct peer_nlm_args args;
    emu_net_lock();
    bool is_owned = slot->state == EMU_WAIT_GRANTED;
    if (!is_owned)
        slot->state = EMU_WAIT_CANCELLING;
    args = slot->args;
    emu_net_unlock();
    args.cookie = emu_call_cookie(host);
    int status = emu_call(host, PEER_NLM_CANCEL, &args, NULL);
    if (status == PEER_NLM_IS_DENIED && host->kind->is_denied_cancel_owned)
        is_owned = true;
    if (status >= 0)
        set_state(host, wait, EMU_WAIT_FREE);
    *ret_owned = is_owned;
    return status;
}

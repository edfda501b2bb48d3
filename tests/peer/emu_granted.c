/*
 * emu_granted.c -- the NLM service of an emulated host; see emu_granted.h.
 *
 * GRANTED and GRANTED_MSG are for one of the requests that the host is blocked on, by the rule of
 * its kind. Only a request that still waits matches: the repeat of a callback that was accepted is
 * refused, as real clients do, and a request that is being cancelled as well.
 * A host accepts when it decides, also when its answer is kept back or lost: from then on it relies
 * on the lock.
 *
 * *_RES belong to what the host asked asynchronously. They are found by cookie and procedure.
 */
#include "peer/emu_granted.h"

#include <netinet/in.h>
#include <string.h>

/* ---- which request is meant ---- */

static bool is_same_file(const struct peer_nlm_args *a, const struct peer_nlm_args *b)
{
    return a->lock.svid == b->lock.svid && peer_nlm_bytes_equal(&a->lock.fh, &b->lock.fh);
}

static bool is_exact(const struct peer_nlm_args *a, const struct peer_nlm_args *b)
{
    return is_same_file(a, b) && a->lock.offset == b->lock.offset && a->lock.len == b->lock.len;
}

/* The bytes meant, however "to the end" is said. */
static bool is_same_bytes(const struct peer_nlm_args *a, const struct peer_nlm_args *b)
{
    bool a_to_end = a->lock.len == 0 || a->lock.len == UINT64_MAX;
    bool b_to_end = b->lock.len == 0 || b->lock.len == UINT64_MAX;
    return a->lock.offset == b->lock.offset &&
           (a_to_end || b_to_end ? a_to_end == b_to_end : a->lock.len == b->lock.len);
}

static bool is_from_server(const struct emu_host *host, const struct emu_net_message *message)
{
    struct sockaddr_in from, server;
    memcpy(&from, &message->from.at, sizeof(from));
    memcpy(&server, &host->server.at, sizeof(server));
    return from.sin_addr.s_addr == server.sin_addr.s_addr;
}

static bool is_for(const struct emu_host *host, const struct emu_net_message *message,
                   const struct emu_wait *wait, const struct peer_nlm_args *granted)
{
    switch (host->kind->match) {
    case EMU_MATCH_ADDRESS:
        return is_same_file(&wait->args, granted) && is_same_bytes(&wait->args, granted) &&
               is_from_server(host, message);
    case EMU_MATCH_EXACT:
    case EMU_MATCH_COOKIE:
        return is_exact(&wait->args, granted);
    case EMU_MATCH_OH:
        return peer_nlm_bytes_equal(&wait->args.lock.oh, &granted->lock.oh) &&
               is_exact(&wait->args, granted);
    }
    return false;
}

/* macOS looks for the cookie first; the others have one pass. */
static struct emu_wait *find_wait(struct emu_host *host, const struct emu_net_message *message,
                                  const struct peer_nlm_args *granted)
{
    struct emu_wait *found = NULL;
    for (uint32_t i = 0; i < EMU_HOST_WAITS_MAX; i++) {
        struct emu_wait *wait = &host->waits[i];
        if (wait->state != EMU_WAIT_BLOCKED || !is_for(host, message, wait, granted))
            continue;
        if (host->kind->match == EMU_MATCH_COOKIE &&
            peer_nlm_bytes_equal(&wait->args.cookie, &granted->cookie))
            return wait;
        if (!found)
            found = wait;
    }
    return found;
}

/* What the host says to a callback; it relies on the lock from here on. */
static uint32_t decide(struct emu_host *host, const struct emu_net_message *message,
                       const struct peer_nlm_args *granted)
{
    if (host->is_in_grace)
        return PEER_NLM_IS_GRACE;
    struct emu_wait *wait = find_wait(host, message, granted);
    if (!wait)
        return PEER_NLM_IS_DENIED;
    wait->state = EMU_WAIT_GRANTED;
    wait->granted_count++;
    return PEER_NLM_IS_GRANTED;
}

/* ---- callbacks ---- */

static bool answer_granted(struct emu_host *host, const struct emu_net_message *message,
                           const struct packet_call *call, struct emu_record *record,
                           struct packet *reply)
{
    static struct packet later;
    bool is_message = call->proc == PEER_NLM_GRANTED_MSG;
    struct peer_nlm_res res = {.cookie = record->args.cookie};
    if (host->answer == EMU_ANSWER_NEVER)
        return false;
    if (is_message && host->kind->is_granted_msg_broken) {
        packet_put_accepted(reply, call->xid, PACKET_SYSTEM_ERR);
        return true;
    }
    res.status = decide(host, message, &record->args);
    record->is_answered = true;
    record->status = res.status;
    packet_put_accepted(reply, call->xid, PACKET_SUCCESS);
    if (!is_message) {
        peer_nlm_put_res(reply, call->vers, PEER_NLM_GRANTED, &res);
        if (host->answer != EMU_ANSWER_LATE)
            return true;
        emu_host_keep(host, &(struct emu_held){.socket = message->socket, .to = message->from},
                      reply);
        return false;
    }
    peer_nlm_put_res_call(&later, emu_host_next_xid(host), call->vers, PEER_NLM_GRANTED_RES, &res);
    if (host->answer == EMU_ANSWER_LATE)
        emu_host_keep(host, &(struct emu_held){.is_call = true, .is_udp = message->is_udp}, &later);
    else
        (void)emu_host_send(host, message->is_udp,
                            &later); /* the server asks again if it is lost */
    return true;
}

/* ---- answers to what was asked asynchronously ---- */

static void take_res(struct emu_host *host, const struct emu_net_message *message,
                     struct emu_record *record)
{
    /* macOS does not eat other cookies. */
    if (record->res.cookie.len != host->kind->cookie_len)
        return;
    for (uint32_t i = 0; i < EMU_HOST_ASKS_MAX && !record->is_accepted; i++) {
        struct emu_ask *ask = &host->asks[i];
        if (!ask->is_open || ask->is_answered || ask->procedure != record->call.proc ||
            !peer_nlm_bytes_equal(&ask->cookie, &record->res.cookie))
            continue;
        ask->is_answered = true;
        ask->is_at_own_socket = message->service == EMU_SERVICE_OWN;
        ask->res = record->res;
        record->is_accepted = true;
    }
}

bool emu_granted_serve(struct emu_host *host, const struct emu_net_message *message,
                       const struct packet_call *call, struct packet_reader *reader,
                       struct packet *reply)
{
    struct emu_record *record = emu_host_record(host, message, call);
    bool is_callback = call->proc == PEER_NLM_GRANTED || call->proc == PEER_NLM_GRANTED_MSG;
    bool is_res = call->proc >= PEER_NLM_TEST_RES && call->proc <= PEER_NLM_GRANTED_RES;
    if (call->prog != PEER_NLM_PROGRAM) {
        packet_put_accepted(reply, call->xid, PACKET_PROG_UNAVAIL);
        return true;
    }
    if (call->vers != 1 && call->vers != 3 && call->vers != 4) {
        packet_put_accepted(reply, call->xid, PACKET_PROG_MISMATCH);
        packet_put_u32(reply, 1);
        packet_put_u32(reply, 4);
        return true;
    }
    if (is_callback)
        record->is_readable = peer_nlm_get_args(reader, call->vers, call->proc, &record->args);
    else if (is_res)
        record->is_readable = peer_nlm_get_res(reader, call->vers, call->proc, &record->res);
    else
        record->is_readable = call->proc == PEER_NLM_NULL && packet_is_done(reader);
    if (!record->is_readable) {
        packet_put_accepted(reply, call->xid,
                            is_callback || is_res ? PACKET_GARBAGE_ARGS : PACKET_PROC_UNAVAIL);
        return true;
    }
    if (is_callback)
        return answer_granted(host, message, call, record, reply);
    if (is_res)
        take_res(host, message, record);
    packet_put_accepted(reply, call->xid, PACKET_SUCCESS);
    return true;
}

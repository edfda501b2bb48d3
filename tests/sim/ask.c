/*
 * ask.c -- calls are made, repeated with the same xid, and answered; see ask.h.
 *
 * Kinds with messages send the *_MSG of a procedure and repeat it under a new xid with the same
 * cookie; their answer is the *_RES that carries it. The others repeat with the same xid.
 *
 * The cookie of synchronous kinds is the count of their xids: a program that starts anew says
 * exactly the same again, from another port or from the same (R-DRC-1).
 */
#include "ask.h"

#include "claim.h"
#include "era.h"
#include "mail.h"

#include <stdio.h>
#include <stdlib.h>

static uint32_t next_xid(struct locker *locker)
{
    return ((locker->xid_base + 1) << 22 | ++locker->xid_count) * UINT32_C(0x9e3779b1);
}

static void fill_cookie(struct ask *ask)
{
    struct locker *locker = ask->process->locker;
    if (ask->is_message) {
        ask->cookie_len = 8;
        store_be32(ask->cookie, 0xc00c1e00U + locker->xid_base);
        store_be32(ask->cookie + 4, ++locker->cookie_count);
    } else {
        ask->cookie_len = 4;
        store_be32(ask->cookie, locker->xid_count);
    }
}

static bool sends_messages(const struct locker *locker, enum peer_nlm_procedure procedure)
{
    return locker->kind == LOCKER_MACOS && procedure >= PEER_NLM_TEST &&
           procedure <= PEER_NLM_UNLOCK;
}

static void encode(struct ask *ask)
{
    static struct packet packet;
    static struct peer_nlm_args args;
    const struct process *process = ask->process;
    const struct locker *locker = process->locker;
    bool is_unmonitored = locker->kind == LOCKER_PCNFS;
    memset(&args, 0, sizeof args);
    args.cookie = peer_nlm_bytes_of(ask->cookie, ask->cookie_len);
    args.block = ask->block;
    args.exclusive = ask->extent.exclusive;
    args.reclaim = ask->reclaim;
    /* Linux reclaims with state 0. */
    bool is_stateless = is_unmonitored || (ask->reclaim && !locker->says_state);
    args.state = is_stateless ? 0 : locker->state;
    args.lock.caller_name = peer_nlm_text(locker->name);
    args.lock.fh = locker_handle(ask->extent.file);
    args.lock.oh = locker_oh(process);
    args.lock.svid = process->svid;
    args.lock.offset = ask->extent.offset;
    args.lock.len = ask->extent.len;
    args.mode = ask->reservation.mode;
    args.access = ask->reservation.access;
    packet_clear(&packet);
    peer_nlm_put_call(&packet, ask->xid, ask->version, ask->procedure, &args);
    free(ask->bytes);
    ask->len = packet.len;
    ask->bytes = malloc(packet.len);
    if (ask->bytes == NULL)
        abort();
    memcpy(ask->bytes, packet.bytes, packet.len);
}

static struct ask *new_ask(struct world *world)
{
    struct lockers *all = world->lockers;
    if (all->ask_count == all->ask_max) {
        all->ask_max = all->ask_max ? 2 * all->ask_max : 256;
        all->asks = realloc(all->asks, all->ask_max * sizeof(struct ask *));
        if (all->asks == NULL)
            abort();
    }
    struct ask *ask = calloc(1, sizeof *ask);
    if (ask == NULL)
        abort();
    all->asks[all->ask_count++] = ask;
    return ask;
}

struct ask *ask_begin(struct world *world, struct process *process, const struct ask_what *what)
{
    struct locker *locker = process->locker;
    struct ask *ask = new_ask(world);
    *ask =
        (struct ask){.process = process,
                     .number = ++process->number,
                     .program = locker->program,
                     .xid = next_xid(locker),
                     .procedure = what->procedure,
                     .plain = what->procedure == PEER_NLM_NM_LOCK ? PEER_NLM_LOCK : what->procedure,
                     .version = locker->version,
                     .extent = what->extent,
                     .block = what->block,
                     .reclaim = what->reclaim,
                     .heard_count = locker->heard_count,
                     .reservation = what->reservation,
                     .is_message = sends_messages(locker, what->procedure)};
    if (ask->is_message)
        ask->procedure += PEER_NLM_TEST_MSG - PEER_NLM_TEST;
    fill_cookie(ask);
    encode(ask);
    process->ask = ask;
    process->tries = 0;
    process->tries_max = 1 + (uint32_t)world_random(world, 5);
    process->timeout_ns =
        300 * MILLISECOND + world_random(world, locker->is_tcp ? 8 * SECOND : 2 * SECOND);
    if (world->is_calm)
        process->timeout_ns = 2 * SECOND;
    claim_asked(world, ask);
    ask_send(world, process);
    return ask;
}

static const char *range_text(const struct ask *ask)
{
    static char text[64];
    (void)snprintf(text, sizeof text, "file %u %llu+%llu %s%s", ask->extent.file,
                   (unsigned long long)ask->extent.offset, (unsigned long long)ask->extent.len,
                   ask->extent.exclusive ? "exclusive" : "shared",
                   ask->reclaim ? " reclaim"
                   : ask->block ? " block"
                                : "");
    return text;
}

void ask_send(struct world *world, struct process *process)
{
    struct locker *locker = process->locker;
    struct ask *ask = process->ask;
    if (ask->is_message && process->tries > 0) {
        ask->xid = next_xid(locker);
        encode(ask);
    }
    if (!mail_is_connected(world, locker, process->tries > 0)) {
        locker_set_timer(world, process, 100 * MILLISECOND + world_random(world, SECOND));
        return;
    }
    world_trace(world, "%s/%u sends %s #%u %s, try %u", locker->label, process->svid,
                peer_nlm_procedure_text(ask->procedure), ask->number, range_text(ask),
                process->tries + 1);
    mail_send_call(world, ask);
    process->tries++;
    locker_set_timer(world, process, process->timeout_ns);
    if (process->timeout_ns < (process->must_reclaim ? 2 : 20) * SECOND && !world->is_calm)
        process->timeout_ns *= 2;
}

void ask_drop(struct process *process)
{
    if (process->ask != NULL)
        process->ask->is_done = true;
    process->ask = NULL;
}

/* ---- whose answer it is ---- */

bool ask_reads(const struct ask *ask, struct bytes message, struct peer_nlm_res *ret)
{
    struct packet_reply reply;
    if (!packet_get_reply(message.at, message.len, &reply) || !reply.accepted ||
        reply.status != PACKET_SUCCESS)
        return false;
    struct packet_reader reader = {reply.body, reply.body_len, false};
    memset(ret, 0, sizeof *ret);
    if (ask->is_message || ask->procedure == PEER_NLM_FREE_ALL)
        return reply.body_len == 0;
    return peer_nlm_get_res(&reader, ask->version, ask->procedure, ret) &&
           ret->cookie.len == ask->cookie_len &&
           memcmp(ret->cookie.at, ask->cookie, ask->cookie_len) == 0;
}

struct ask *ask_of_answer(struct world *world, const struct locker *locker, uint16_t port,
                          struct bytes message, struct peer_nlm_res *ret)
{
    const struct lockers *all = world->lockers;
    uint32_t xid = packet_xid(message.at, message.len);
    bool is_known = false, is_earlier = false;
    for (uint32_t i = all->ask_count; i > 0; i--) {
        struct ask *ask = all->asks[i - 1];
        if (ask->xid != xid || ask->process->locker != locker)
            continue;
        bool is_answered = ask_reads(ask, message, ret);
        bool is_asked = ask->taken_port == port || ask->before_port == port;
        if (is_answered && is_asked)
            return ask;
        is_known |= is_asked;
        is_earlier |= is_answered; /* and was taken from another port since */
    }
    if (is_known && !is_earlier)
        world_fail(world, "L1", "an answer to %s cannot be read, or is to another call",
                   locker->label);
    return NULL;
}

struct ask *ask_of_cookie(struct world *world, const struct locker *locker, uint32_t procedure,
                          const struct peer_nlm_res *res)
{
    const struct lockers *all = world->lockers;
    for (uint32_t i = all->ask_count; i > 0; i--) {
        struct ask *ask = all->asks[i - 1];
        if (ask->process->locker == locker && ask->is_message &&
            (uint32_t)peer_nlm_answer_to(ask->procedure) == procedure && res->cookie.len == 8 &&
            memcmp(res->cookie.at, ask->cookie, 8) == 0)
            return ask;
    }
    return NULL;
}

/* ---- arrival ---- */

static void take(struct world *world, struct ask *ask, const struct peer_nlm_res *res)
{
    struct process *process = ask->process;
    if (process->ask != ask)
        return; /* late, or a second copy */
    world_trace(world, "%s/%u has the answer to %s #%u: %s", process->locker->label, process->svid,
                peer_nlm_procedure_text(ask->procedure), ask->number,
                peer_nlm_status_text(res->status));
    ask_drop(process);
    locker_answered(world, ask, res);
}

void ask_result(struct world *world, struct locker *locker, uint32_t procedure,
                const struct peer_nlm_res *res)
{
    struct ask *ask = ask_of_cookie(world, locker, procedure, res);
    if (ask != NULL)
        take(world, ask, res);
}

void ask_receive(struct world *world, struct locker *locker, uint16_t port, struct bytes message)
{
    static struct peer_nlm_res res;
    struct packet_reader reader = {message.at, message.len, false};
    struct packet_call call;
    if (packet_get_call(&reader, &call)) {
        if (call.prog != PEER_NLM_PROGRAM || call.proc < PEER_NLM_TEST_RES ||
            call.proc > PEER_NLM_UNLOCK_RES || call.vers != locker->version ||
            !peer_nlm_get_res(&reader, call.vers, call.proc, &res))
            world_fail(world, "L1", "what %s is sent is no result", locker->label);
        ask_result(world, locker, call.proc, &res);
        if (world_chance(world, 50))
            mail_send_void(world, locker, call.xid);
        return;
    }
    struct ask *ask = ask_of_answer(world, locker, port, message, &res);
    if (ask != NULL && !ask->is_message)
        take(world, ask, &res);
}

/*
 * called.c -- GRANTED, GRANTED_MSG and *_RES at a host of lockers; see called.h.
 *
 * A callback is for the process whose wish it names: svid, file and range as they were asked for
 * (and oh, where the kind wants it). Neither mode nor cookie are looked at, because real clients do
 * not. A process that takes it relies on the lock at once, whether its answer arrives or not. Who
 * waits for nothing like it says DENIED, also to the repeat of a callback that it took (R-DRC-3).
 */
#include "called.h"

#include "ask.h"
#include "claim.h"
#include "era.h"
#include "machine.h"
#include "mail.h"
#include "statd.h"

#include <stdlib.h>

enum { STATUS_MONITOR = 100024, SM_STAT = 1, SM_NOTIFY = 6 };

bool called_is_for_locker(const struct world *world, const struct host *host, struct bytes message)
{
    struct packet_reader reader = {message.at, message.len, false};
    struct packet_call call;
    const struct lockers *all = world->lockers;
    bool is_locker = false;
    for (uint32_t i = 0; all != NULL && i < all->count; i++)
        is_locker |= all->at[i].host == host;
    return is_locker && packet_get_call(&reader, &call);
}

static bool is_callback(const struct packet_call *call)
{
    return call->prog == PEER_NLM_PROGRAM &&
           (call->proc == PEER_NLM_GRANTED || call->proc == PEER_NLM_GRANTED_MSG);
}

static bool is_result(const struct packet_call *call)
{
    return call->prog == PEER_NLM_PROGRAM && call->proc >= PEER_NLM_TEST_RES &&
           call->proc <= PEER_NLM_UNLOCK_RES;
}

void called_sent(struct world *world, const struct host *host, const struct address *local,
                 struct bytes message)
{
    static struct peer_nlm_args args;
    static struct peer_nlm_res res;
    struct packet_reader reader = {message.at, message.len, false};
    struct packet_call call;
    struct lockers *all = world->lockers;
    world->calls_out++;
    if (!packet_get_call(&reader, &call))
        world_fail(world, "L8", "what leaves for a locker is no call");
    if (is_callback(&call)) {
        if (!peer_nlm_get_args(&reader, call.vers, call.proc, &args))
            world_fail(world, "L8", "a callback that leaves cannot be read");
        claim_callback(world, host, local, &call, &args);
        machine_overtake(world);
    } else if (call.prog == STATUS_MONITOR && call.proc == SM_NOTIFY) {
        statd_sent(world, host, local, &reader);
    } else if (is_result(&call)) {
        if (!peer_nlm_get_res(&reader, call.vers, call.proc, &res))
            world_fail(world, "L1", "a result that leaves cannot be read");
        for (uint32_t i = 0; i < all->count; i++) {
            struct ask *ask =
                all->at[i].host == host ? ask_of_cookie(world, &all->at[i], call.proc, &res) : NULL;
            if (ask == NULL || ask->plain == PEER_NLM_TEST)
                continue; /* what it observed may have changed since */
            ask->process->left_ns = world->now_ns;
            claim_leaves(world, ask, &res);
        }
    }
}

/* ---- GRANTED ---- */

static bool is_wish(const struct process *process, const struct peer_nlm_args *args)
{
    const struct extent *wish = &process->wish;
    struct peer_nlm_bytes fh = locker_handle(wish->file), oh = locker_oh(process);
    return process->is_waiting && process->svid == args->lock.svid &&
           wish->offset == args->lock.offset && wish->len == args->lock.len &&
           peer_nlm_bytes_equal(&fh, &args->lock.fh) &&
           (process->locker->kind != LOCKER_SOLARIS || peer_nlm_bytes_equal(&oh, &args->lock.oh));
}

static struct process *find_process(struct world *world, const struct host *host,
                                    const struct peer_nlm_args *args, bool is_waiting)
{
    struct lockers *all = world->lockers;
    for (uint32_t i = 0; i < all->count; i++) {
        struct locker *locker = &all->at[i];
        struct peer_nlm_bytes name = peer_nlm_text(locker->name);
        if (locker->host != host || !peer_nlm_bytes_equal(&name, &args->lock.caller_name))
            continue;
        for (uint32_t p = 0; p < locker->process_count; p++) {
            struct process *process = &locker->processes[p];
            if (is_waiting ? is_wish(process, args) : process->svid == args->lock.svid)
                return process;
        }
    }
    return NULL;
}

static uint32_t decide(struct world *world, struct process *process, uint64_t sent_ns)
{
    if (process == NULL)
        return PEER_NLM_IS_DENIED;
    const struct locker *locker = process->locker;
    if (locker->kind == LOCKER_SOLARIS && !world->is_calm && world_chance(world, 15))
        return PEER_NLM_IS_GRACE;
    if (process->is_cancelling) /* macOS refuses; the others take it and give it back */
        return locker->kind == LOCKER_MACOS ? PEER_NLM_IS_DENIED : PEER_NLM_IS_GRANTED;
    struct extent wish = process->wish;
    ask_drop(process); /* a poll under way */
    locker_has(world, process, &wish, sent_ns >= world->lockers->era.start_ns);
    if (sent_ns < locker->heard_ns)
        statd_reclaim_also(world, process, &wish);
    return PEER_NLM_IS_GRANTED;
}

/* (5): it left before an answer to that process did, or is another copy of one that was executed
 * before the last call of that process. */
static bool is_late(const struct world *world, const struct process *process,
                    const struct letter *letter, uint32_t xid)
{
    if (letter->line != NULL || world_allows(world, WORLD_LATE))
        return false; /* over TCP the server must see to that (decision 020) */
    if (letter->sent_ns < world->lockers->era.start_ns)
        return true; /* nor one from before a restart */
    return letter->sent_ns < process->left_ns ||
           (xid == process->called_xid && process->called_number != process->number);
}

/* (5): the server repeats a callback that the process took, as it has not heard of that, while a
 * request for the same bytes exclusively is on its way. No client could tell. From the moment on in
 * which that request is executed no such callback leaves. */
static bool is_mistaken(const struct world *world, const struct process *process,
                        const struct letter *letter, const struct peer_nlm_args *args)
{
    if (process == NULL || world_allows(world, WORLD_LATE))
        return false;
    const struct extent *wish = &process->wish, *last = &process->last;
    uint16_t cells = locker_cells(wish->offset, wish->len);
    bool is_executed = last->exclusive && last->file == wish->file &&
                       last->offset == wish->offset && last->len == wish->len;
    return wish->exclusive && !args->exclusive && (cells & ~process->held[wish->file].any) == 0 &&
           (!is_executed || letter->sent_ns <= process->last_ns);
}

/* Clients finish their LOCK before they act on a callback. What is left of that where the server
 * before has sent it and its successor is in grace: decision 025. */
static bool is_early(const struct process *process, const struct letter *letter)
{
    bool is_of_replaced = letter->line != NULL && letter->line->kept.until_ns != 0;
    return is_of_replaced && process != NULL && !process->is_blocked;
}

static void hold_result(struct world *world, struct process *process, const struct packet *result)
{
    struct lockers *all = world->lockers;
    if (all->kept_count == LOCKER_KEPT_MAX)
        return;
    struct packet *copy = malloc(sizeof *copy);
    if (copy == NULL)
        abort();
    memcpy(copy, result, sizeof *copy);
    all->kept_for[all->kept_count] = process;
    all->kept[all->kept_count++] = copy;
}

void called_release(struct world *world, uint32_t index)
{
    const struct packet *result = world->lockers->kept[index];
    mail_send_result(world, world->lockers->kept_for[index],
                     (struct bytes){result->bytes, result->len}, 0);
}

static bool granted(struct world *world, const struct letter *letter,
                    const struct packet_call *call, const struct peer_nlm_args *args,
                    struct packet *reply)
{
    static struct packet later;
    bool is_message = call->proc == PEER_NLM_GRANTED_MSG;
    struct process *process = find_process(world, letter->host, args, true);
    struct process *named = find_process(world, letter->host, args, false);
    static struct peer_nlm_res res;
    if (named == NULL || is_late(world, named, letter, call->xid) ||
        is_mistaken(world, process, letter, args) || is_early(process, letter)) {
        world->excluded++;
        return false;
    }
    named->called_xid = call->xid;
    named->called_number = named->number;
    if (is_message && named->locker->kind == LOCKER_LINUX_2026) {
        packet_put_accepted(reply, call->xid, PACKET_SYSTEM_ERR);
        return true;
    }
    memset(&res, 0, sizeof res);
    res.cookie = args->cookie;
    res.status = decide(world, process, letter->sent_ns);
    world_trace(world, "%s/%u answers the callback: %s", named->locker->label, named->svid,
                peer_nlm_status_text(res.status));
    world->lockers->denials += res.status == PEER_NLM_IS_DENIED;
    bool is_mute = world->lockers->is_mute ||
                   (!world->is_calm && world_chance(world, world->lockers->plan.mute));
    packet_put_accepted(reply, call->xid, PACKET_SUCCESS);
    if (!is_message) {
        peer_nlm_put_res(reply, call->vers, PEER_NLM_GRANTED, &res);
        return !is_mute;
    }
    packet_clear(&later);
    peer_nlm_put_res_call(&later, 77, call->vers, PEER_NLM_GRANTED_RES, &res);
    if (world->lockers->holds_results) {
        hold_result(world, named, &later);
        return !is_mute;
    }
    uint64_t after_ns = 0;
    if (!world->is_calm && world_chance(world, 20))
        after_ns = world_random(world, 40 * SECOND);
    if (!is_mute)
        mail_send_result(world, named, (struct bytes){later.bytes, later.len}, after_ns);
    return true;
}

bool called_execute(struct world *world, const struct letter *letter, struct bytes message,
                    struct packet *reply)
{
    static struct peer_nlm_args args;
    static struct peer_nlm_res res;
    struct packet_reader reader = {message.at, message.len, false};
    struct packet_call call;
    struct lockers *all = world->lockers;
    packet_clear(reply);
    if (!packet_get_call(&reader, &call))
        world_fail(world, "L8", "what arrives at a locker is no call");
    era_called_back(world, letter->host, letter->sent_ns);
    if (is_callback(&call) && peer_nlm_get_args(&reader, call.vers, call.proc, &args))
        return granted(world, letter, &call, &args, reply);
    packet_put_accepted(reply, call.xid, PACKET_SUCCESS);
    if (is_result(&call) && peer_nlm_get_res(&reader, call.vers, call.proc, &res)) {
        for (uint32_t i = 0; i < all->count; i++)
            if (all->at[i].host == letter->host)
                ask_result(world, &all->at[i], call.proc, &res);
        return true;
    }
    if (call.prog == STATUS_MONITOR && call.proc == SM_STAT) {
        packet_put_u32(reply, 0);
        packet_put_u32(reply, statd_state(world, letter->host));
        return true;
    }
    if (call.prog == STATUS_MONITOR && call.proc == SM_NOTIFY)
        return statd_notified(world, letter->host, &reader);
    if (call.proc != 0)
        world_fail(world, "L8", "a locker is sent procedure %u of %u", call.proc, call.prog);
    return true;
}

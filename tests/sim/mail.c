/*
 * mail.c -- messages between locking clients and the server; see mail.h.
 */
#include "mail.h"

#include "ask.h"
#include "base/hash.h"
#include "claim.h"
#include "era.h"
#include "kernel.h"
#include "machine.h"
#include "rpc/drc.h"
#include "still.h"

#include <stdlib.h>

/* So many calls later the duplicate cache still knows one: of all, and of one host. */
enum { CACHED_MAX = 3500, CACHED_HOST_MAX = 800 };

#define ROUTE_BASE (UINT64_C(1) << 40) /* connections of watchers have small numbers */

struct mail {
    bool to_server;
    struct locker *locker;
    struct ask *ask; /* to the server; NULL: none of its calls */
    uint32_t number; /* of the call of the process that it must not arrive after; 0: any */
    struct pipe *pipe;
    uint32_t order; /* in the pipe */
    uint32_t life;  /* of the locker */
    uint64_t sent_ns;
    uint16_t port;
    uint32_t len;
    uint8_t bytes[];
};

/* ---- connections ---- */

static void connect(struct world *world, struct locker *locker)
{
    struct lockers *all = world->lockers;
    if (all->pipe_count == all->pipe_max) {
        all->pipe_max = all->pipe_max ? 2 * all->pipe_max : 64;
        all->pipes = realloc(all->pipes, all->pipe_max * sizeof(struct pipe *));
        if (all->pipes == NULL)
            abort();
    }
    struct pipe *pipe = calloc(1, sizeof *pipe);
    if (pipe == NULL)
        abort();
    if (!locker->keeps_port)
        locker->port = (uint16_t)(20000 + all->pipe_count % 40000);
    *pipe = (struct pipe){.locker = locker,
                          .route = ROUTE_BASE + all->pipe_count,
                          .port = locker->port,
                          .is_open = true};
    if (locker->keeps_port)
        mail_reset(world, locker); /* the same two ports: what was there is no more */
    all->pipes[all->pipe_count++] = pipe;
    locker->pipe = pipe;
}

void mail_close(struct locker *locker)
{
    if (locker->pipe != NULL)
        locker->pipe->is_open = false;
    locker->pipe = locker->other;
    locker->other = NULL;
}

void mail_close_all(struct locker *locker)
{
    mail_close(locker);
    mail_close(locker);
}

/* Of two connections each call takes one; the second is opened when it is first wanted. */
static void choose_pipe(struct world *world, struct locker *locker)
{
    if (!locker->has_two || locker->pipe == NULL || !prng_chance(&world->tcp, 40))
        return;
    struct pipe *used = locker->pipe;
    locker->pipe = locker->other;
    locker->other = used;
}

void mail_reset(struct world *world, struct locker *locker)
{
    struct lockers *all = world->lockers;
    mail_close_all(locker);
    for (uint32_t i = 0; i < all->pipe_count; i++)
        all->pipes[i]->is_dead |= all->pipes[i]->locker == locker;
}

bool mail_is_connected(struct world *world, struct locker *locker, bool anew)
{
    if (!locker->is_tcp)
        return true;
    if (anew)
        mail_close(locker);
    choose_pipe(world, locker);
    if (locker->pipe != NULL && locker->pipe->is_dead)
        mail_close(locker); /* its address is the successor's, which knows of no such connection */
    if (locker->pipe != NULL && locker->pipe->is_open)
        return true;
    if (!world->machine.is_up)
        return false;
    connect(world, locker);
    return true;
}

/* Who has a call under way makes it anew. */
static void hang_up(struct world *world, struct locker *locker)
{
    mail_close_all(locker);
    for (uint32_t p = 0; p < locker->process_count; p++)
        if (locker->processes[p].ask != NULL)
            locker_set_timer(world, &locker->processes[p], 1 + world_random(world, SECOND));
}

void mail_break_all(struct world *world, bool is_replaced)
{
    struct lockers *all = world->lockers;
    for (uint32_t i = 0; all != NULL && i < all->pipe_count; i++) {
        struct pipe *pipe = all->pipes[i];
        if (is_replaced && !pipe->is_dead)
            pipe->kept = kernel_keep(world);
        pipe->is_dead = true;
    }
    for (uint32_t i = 0; all != NULL && i < all->count && !is_replaced; i++)
        if (all->at[i].pipe != NULL || all->at[i].other != NULL)
            hang_up(world, &all->at[i]);
}

void mail_end(struct world *world, uint32_t run)
{
    struct lockers *all = world->lockers;
    for (uint32_t i = 0; all != NULL && i < all->count; i++) {
        struct locker *locker = &all->at[i];
        struct pipe *pipes[] = {locker->pipe, locker->other};
        for (uint32_t p = 0; p < 2; p++)
            if (pipes[p] != NULL && pipes[p]->kept.run == run) {
                hang_up(world, locker);
                break;
            }
    }
}

void mail_done(struct world *world)
{
    struct lockers *all = world->lockers;
    for (uint32_t i = 0; i < all->pipe_count; i++)
        free(all->pipes[i]);
    free(all->pipes);
}

/* ---- sending ---- */

static struct mail *new_mail(const struct mail *like, struct bytes message)
{
    struct mail *mail = malloc(sizeof *mail + message.len);
    if (mail == NULL)
        abort();
    *mail = *like;
    mail->len = message.len;
    memcpy(mail->bytes, message.at, message.len);
    return mail;
}

static uint64_t delay_ns(struct world *world)
{
    return 1 + world_random(world, world->is_calm ? MILLISECOND : world->plan.delay_max_ns);
}

static bool happens(struct world *world, uint32_t percent)
{
    return !world->is_calm && !era_is_pressing(world) && world_chance(world, percent);
}

static void send_datagram(struct world *world, const struct mail *like, struct bytes message,
                          uint64_t after_ns)
{
    const struct plan *plan = &world->plan;
    uint32_t copies = happens(world, plan->loss) ? 0 : 1;
    while (copies < 4 && happens(world, plan->duplication))
        copies++;
    for (uint32_t i = 0; i < copies; i++) {
        uint64_t at_ns = world->now_ns + after_ns + delay_ns(world);
        if (happens(world, plan->late))
            at_ns += world_random(world, world_chance(world, 50) ? 10 * SECOND : 200 * SECOND);
        queue_add(&world->queue, at_ns, QUEUE_MAIL, new_mail(like, message), 0);
    }
}

/* Bytes of a connection arrive in order. */
static void send_stream(struct world *world, const struct mail *like, struct bytes message)
{
    struct pipe *pipe = like->pipe;
    uint64_t *last_ns = like->to_server ? &pipe->to_server_ns : &pipe->to_locker_ns;
    uint64_t at_ns = world->now_ns + delay_ns(world) + world_resend_ns(world);
    if (at_ns <= *last_ns)
        at_ns = *last_ns + 1;
    *last_ns = at_ns;
    struct mail *mail = new_mail(like, message);
    mail->order = like->to_server ? pipe->sent++ : 0;
    queue_add(&world->queue, at_ns, QUEUE_MAIL, mail, 0);
}

void mail_send_call(struct world *world, struct ask *ask)
{
    struct locker *locker = ask->process->locker;
    struct bytes message = {ask->bytes, ask->len};
    struct mail like = {.to_server = true,
                        .locker = locker,
                        .ask = ask,
                        .number = ask->number,
                        .pipe = locker->is_tcp ? locker->pipe : NULL,
                        .port = locker->is_tcp ? locker->pipe->port : locker->port};
    if (like.pipe != NULL)
        send_stream(world, &like, message);
    else
        send_datagram(world, &like, message, 0);
}

void mail_send_result(struct world *world, struct process *process, struct bytes message,
                      uint64_t after_ns)
{
    struct locker *locker = process->locker;
    struct mail like = {.to_server = true, .locker = locker, .port = locker->port};
    if (!locker->is_tcp) {
        send_datagram(world, &like, message, after_ns);
        return;
    }
    if (!mail_is_connected(world, locker, false))
        return; /* the server asks again */
    like.pipe = locker->pipe;
    like.port = locker->pipe->port;
    send_stream(world, &like, message);
}

void mail_send_void(struct world *world, struct locker *locker, uint32_t xid)
{
    static struct packet packet;
    packet_clear(&packet);
    packet_put_accepted(&packet, xid, PACKET_SUCCESS);
    struct mail like = {.to_server = true, .locker = locker, .port = locker->port};
    send_datagram(world, &like, (struct bytes){packet.bytes, packet.len}, 0);
}

static void send_back(struct world *world, struct locker *locker, struct pipe *pipe, uint16_t port,
                      struct bytes message)
{
    struct mail like = {.locker = locker,
                        .pipe = pipe,
                        .port = port,
                        .life = locker->life,
                        .sent_ns = world->now_ns};
    if (pipe == NULL)
        send_datagram(world, &like, message, 0);
    else if (pipe->is_open)
        send_stream(world, &like, message);
}

/* ---- what the cache protects, what the network does not do ---- */

bool mail_is_cached(const struct world *world, const struct ask *ask)
{
    if (ask->procedure == PEER_NLM_TEST || ask->is_message || world->plan.small_cache ||
        ask->taken_run != world->machine.run)
        return false;
    if (ask->ended_run != world->machine.run)
        return true; /* in progress */
    const struct lockers *all = world->lockers;
    if (all->taken - ask->taken_order > CACHED_MAX ||
        all->taken_of[ask->process->locker->host->index] - ask->taken_order_host > CACHED_HOST_MAX)
        return false;
    return ask->taken_forgets == ask->process->locker->forgets &&
           world->now_ns < ask->ended_ns + DRC_LIFE_NS;
}

/* Of a call that was given up only what the cache knows arrives after a later call of its process
 * over another connection, whether the first is still in use or not: nobody can tell how old the
 * only copy of a call is. */
static bool is_excluded(const struct world *world, const struct mail *mail)
{
    const struct ask *ask = mail->ask;
    if (ask == NULL || world_allows(world, WORLD_LATE))
        return false;
    /* A program that starts again on its port would take the answer for one to itself. */
    if (ask->program != mail->locker->program)
        return true;
    if (mail_is_cached(world, ask))
        return false;
    /* What FREE_ALL frees is all processes': none of them goes on before it is answered. */
    if (ask->procedure == PEER_NLM_FREE_ALL && ask->process->ask != ask)
        return true;
    /* Executed now, a shared LOCK would weaken the exclusive one that its process kept. */
    return ask->is_refused || ask->number < ask->process->taken ||
           ask->number < ask->process->void_before;
}

/* ---- at the server ---- */

/* FREE_ALL makes the cache forget the address (R-DRC-1), and so does a LOCK of a new life, which
 * may be the first that the server hears of it. */
static void note_forgetting(struct world *world, const struct ask *ask)
{
    struct lockers *all = world->lockers;
    struct locker *locker = ask->process->locker;
    bool is_lock = ask->plain == PEER_NLM_LOCK && !ask->reclaim;
    bool is_news = ask->procedure == PEER_NLM_FREE_ALL ||
                   (is_lock && (locker->state_taken != locker->state ||
                                locker->run_taken != world->machine.run));
    for (uint32_t i = 0; i < all->count; i++)
        if (is_news && all->at[i].host == locker->host)
            all->at[i].forgets++;
    if (!is_lock)
        return;
    locker->state_taken = locker->state;
    locker->run_taken = world->machine.run;
}

static void note_taken(struct world *world, struct ask *ask, uint16_t port)
{
    struct process *process = ask->process;
    note_forgetting(world, ask);
    if (ask->taken_run != world->machine.run)
        ask->taken_era = world->lockers->era.number;
    ask->taken_run = world->machine.run;
    ask->taken_ns = still_lived_ns(world);
    era_called(world, ask);
    ask->taken_port = port;
    ask->taken_forgets = process->locker->forgets;
    ask->ended_run = 0;
    ask->taken_order = ++world->lockers->taken;
    ask->taken_order_host = ++world->lockers->taken_of[process->locker->host->index];
    if (ask->number > process->taken)
        process->taken = ask->number;
    const struct extent *asked = &ask->extent, *last = &process->last;
    if (ask->plain == PEER_NLM_LOCK &&
        (asked->file != last->file || asked->offset != last->offset || asked->len != last->len ||
         asked->exclusive != last->exclusive)) {
        process->last = *asked;
        process->last_ns = world->now_ns;
    }
}

/* The answer to a call that leaves now; a repeat of one that left is the same (L7). */
static void leaves(struct world *world, struct ask *ask, struct bytes message, bool is_repeat,
                   const struct peer_nlm_res *res)
{
    if (is_repeat && ask->answer_len > 0 &&
        (ask->answer_len != message.len || memcmp(ask->answer, message.at, message.len) != 0))
        world_fail(world, "L7", "a repeat of %s got another answer",
                   peer_nlm_procedure_text(ask->procedure));
    ask->answer_len = message.len <= LOCKER_ANSWER_MAX ? message.len : 0;
    if (ask->answer_len > 0)
        memcpy(ask->answer, message.at, message.len);
    if (!is_repeat) {
        ask->ended_run = world->machine.run;
        ask->ended_ns = world->now_ns;
    }
    ask->process->left_ns = world->now_ns;
    claim_leaves(world, ask, res);
}

/* Where the answer goes now. A program that started anew may repeat, in a call of its own, what
 * its first run was answered. */
static void note_repeat(const struct world *world, const struct mail *mail,
                        enum rpc_verdict verdict)
{
    struct ask *ask = mail->ask;
    bool is_heard = mail->pipe == NULL || mail->pipe->is_open;
    if (verdict == RPC_NO_ANSWER || is_heard) {
        ask->before_port = ask->taken_port;
        ask->taken_port = mail->port;
    }
    if (ask->taken_run == 0) {
        ask->taken_era = world->lockers->era.number;
        ask->may_be_denied = true; /* as that was, for a reason that may be gone */
    }
}

/* It was executed before an operator released its client. */
static bool is_overridden(const struct ask *ask)
{
    return ask->taken_run != 0 && ask->taken_order <= ask->process->locker->overridden;
}

/* Decision 020: a repeat is told to ask again when its process has called since, or, from another
 * port, if it had only been told to wait. */
static bool is_put_off(struct world *world, const struct mail *mail, const struct peer_nlm_res *res)
{
    const struct ask *ask = mail->ask;
    if (ask->procedure == PEER_NLM_FREE_ALL || res->status != PEER_NLM_IS_GRACE)
        return false;
    static struct peer_nlm_res before;
    bool is_same = ask->answer_len > 0 &&
                   ask_reads(ask, (struct bytes){ask->answer, ask->answer_len}, &before) &&
                   before.status == PEER_NLM_IS_GRACE;
    if (is_same)
        return false; /* what it was answered before */
    bool was_passing = ask->answer_len > 0 && before.status == PEER_NLM_IS_BLOCKED;
    bool is_first_run = ask->taken_run == 0; /* of its program: those were other calls */
    if (!was_passing && !is_first_run && !is_overridden(ask) && ask->number >= ask->process->taken)
        world_fail(world, "L7", "a repeat of %s is told to ask again without a reason",
                   peer_nlm_procedure_text(ask->procedure));
    world_trace(world, "%s/%u: old, it is told to ask again", mail->locker->label,
                ask->process->svid);
    world->lockers->put_off++;
    return true;
}

/* What an operator has taken away is not said to be granted any more. */
static void check_not_overridden(struct world *world, const struct ask *ask,
                                 const struct peer_nlm_res *res)
{
    bool takes = ask->plain == PEER_NLM_LOCK || ask->plain == PEER_NLM_SHARE;
    if (takes && res->status == PEER_NLM_IS_GRANTED && is_overridden(ask))
        world_fail(world, "L7", "a repeat of a LOCK is granted, and an operator released it");
}

static bool receive(struct world *world, const struct mail *mail)
{
    static struct peer_nlm_res res;
    struct locker *locker = mail->locker;
    struct rpc_source from = {
        .peer = {.address = locker->host->address,
                 .local = locker->host->local,
                 .port = mail->port,
                 .transport = mail->pipe != NULL ? TRANSPORT_TCP : TRANSPORT_UDP},
        .route = mail->pipe != NULL ? mail->pipe->route : 0,
    };
    struct bytes reply, message = {mail->bytes, mail->len};
    struct ask *ask = mail->ask;
    bool is_repeat = ask != NULL && mail_is_cached(world, ask);
    if (ask != NULL && !is_repeat)
        claim_executing(world, ask);
    enum rpc_verdict verdict = machine_receive_raw(world, &from, message, &reply);
    if (verdict == RPC_BUSY)
        return false;
    if (ask != NULL) {
        world_trace(world, "%s/%u: server takes %s #%u%s", locker->label, ask->process->svid,
                    peer_nlm_procedure_text(ask->procedure), ask->number,
                    is_repeat ? " (repeat)" : "");
        /* What the cache may have forgotten but had not is a repeat too. TEST is never cached: it
         * is answered at once when all that it says is durable. */
        is_repeat |= verdict == RPC_NO_ANSWER || (verdict == RPC_ANSWERED && !ask->is_message &&
                                                  ask->procedure != PEER_NLM_TEST);
        if (is_repeat && verdict == RPC_WAITING)
            world_fail(world, "L7", "a repeat of %s is executed again",
                       peer_nlm_procedure_text(ask->procedure));
        if (!is_repeat)
            note_taken(world, ask, mail->port);
        else
            note_repeat(world, mail, verdict);
        if (verdict == RPC_ANSWERED && !ask->is_message && ask_reads(ask, reply, &res) &&
            !(is_repeat && is_put_off(world, mail, &res))) {
            check_not_overridden(world, ask, &res);
            leaves(world, ask, reply, is_repeat, &res);
        }
    }
    if (reply.len > 0)
        send_back(world, locker, mail->pipe, mail->port, reply);
    machine_received(world);
    return true;
}

static bool arrive_at_server(struct world *world, struct mail *mail)
{
    struct pipe *pipe = mail->pipe;
    if (!world->machine.is_up || (pipe != NULL && pipe->is_dead))
        return true;
    bool in_turn = pipe == NULL || mail->order == pipe->delivered;
    if (in_turn && is_excluded(world, mail)) {
        world->excluded++;
        if (pipe != NULL)
            pipe->delivered++;
        return true;
    }
    if (in_turn && receive(world, mail)) {
        if (pipe != NULL)
            pipe->delivered++;
        return true;
    }
    if (pipe == NULL)
        return true; /* a datagram that nobody takes is gone */
    queue_add(&world->queue, world->now_ns + 1 + world_random(world, 5 * MILLISECOND), QUEUE_MAIL,
              mail, 0);
    return false;
}

bool mail_is_to_server(const struct mail *mail)
{
    return mail->to_server;
}

bool mail_is_datagram(const struct mail *mail)
{
    return mail->pipe == NULL;
}

void mail_arrive(struct world *world, struct mail *mail)
{
    struct locker *locker = mail->locker;
    if (mail->to_server) {
        if (arrive_at_server(world, mail))
            free(mail);
        return;
    }
    /* (5): no datagram from before a restart. */
    if (mail->pipe != NULL && mail->pipe->is_open &&
        kernel_holds(world, &mail->pipe->kept, QUEUE_MAIL, mail))
        return;
    if (mail->pipe != NULL && kernel_has_dropped(world, &mail->pipe->kept)) {
        world->kernel_dropped++;
        free(mail);
        return;
    }
    bool is_old = mail->pipe == NULL && mail->sent_ns < world->lockers->era.start_ns &&
                  !world_allows(world, WORLD_LATE);
    world->excluded += is_old;
    if (!is_old && mail->life == locker->life &&
        (mail->pipe != NULL ? mail->pipe->is_open : mail->port == locker->port))
        ask_receive(world, locker, mail->port, (struct bytes){mail->bytes, mail->len});
    free(mail);
}

void mail_arrive_late(struct world *world, struct ask *ask, uint16_t port)
{
    struct mail like = {.to_server = true,
                        .locker = ask->process->locker,
                        .ask = ask,
                        .number = ask->number,
                        .port = port};
    world_trace(world, "an old copy of %s #%u arrives", peer_nlm_procedure_text(ask->procedure),
                ask->number);
    mail_arrive(world, new_mail(&like, (struct bytes){ask->bytes, ask->len}));
}

/* ---- answers ---- */

static struct locker *locker_of(struct world *world, const struct rpc_reply *reply,
                                struct pipe **ret_pipe)
{
    struct lockers *all = world->lockers;
    const struct peer *to = reply->peer;
    *ret_pipe = NULL;
    if (reply->route >= ROUTE_BASE && reply->route - ROUTE_BASE < all->pipe_count) {
        *ret_pipe = all->pipes[reply->route - ROUTE_BASE];
        return (*ret_pipe)->locker;
    }
    if (to == NULL)
        return NULL; /* a connection of somebody else */
    for (uint32_t i = 0; i < all->count; i++)
        if (address_equal(&all->at[i].host->address, &to->address) && all->at[i].port == to->port)
            return &all->at[i];
    for (uint32_t i = all->ask_count; i > 0; i--) { /* its program has another port by now */
        const struct ask *ask = all->asks[i - 1];
        if (ask->taken_port == to->port &&
            address_equal(&ask->process->locker->host->address, &to->address))
            return ask->process->locker;
    }
    return NULL;
}

static void release_result(struct world *world, struct locker *locker, struct bytes message)
{
    static struct peer_nlm_res res;
    struct packet_reader reader = {message.at, message.len, false};
    struct packet_call call;
    if (!packet_get_call(&reader, &call) || !peer_nlm_get_res(&reader, call.vers, call.proc, &res))
        world_fail(world, "L1", "a result that leaves cannot be read");
    struct ask *ask = ask_of_cookie(world, locker, call.proc, &res);
    if (ask != NULL)
        leaves(world, ask, message, false, &res);
}

bool mail_release(struct world *world, const struct rpc_reply *reply)
{
    static struct peer_nlm_res res;
    struct pipe *pipe;
    struct locker *locker = world->lockers != NULL ? locker_of(world, reply, &pipe) : NULL;
    if (locker == NULL)
        return false;
    if (reply->message.len == 0)
        return true; /* the client carries it: see line.c */
    uint16_t port = pipe != NULL ? pipe->port : reply->peer->port;
    if (reply->is_call) {
        release_result(world, locker, reply->message);
    } else {
        struct ask *ask = ask_of_answer(world, locker, port, reply->message, &res);
        if (ask != NULL)
            leaves(world, ask, reply->message, false, &res);
    }
    send_back(world, locker, pipe, port, reply->message);
    return true;
}

struct locker *mail_find(struct world *world, const struct address *address, const char *name)
{
    struct lockers *all = world->lockers;
    for (uint32_t i = 0; all != NULL && i < all->count; i++)
        if (address_equal(&all->at[i].host->address, address) && strcmp(all->at[i].name, name) == 0)
            return &all->at[i];
    return NULL;
}

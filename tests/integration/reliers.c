/*
 * reliers.c -- see reliers.h.
 *
 * One thread. A process relies on a range from the moment at which the answer or callback that
 * gives it is read, until the moment before its UNLOCK is sent; so of two that rely on the same
 * here, both do in truth.
 */
#include "reliers.h"

#include "callees.h"
#include "reliance.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MS            UINT64_C(1000000)
#define RESEND_NS     (400 * MS)
#define SILENCE_NS    (1500 * MS) /* after which a connection is given up */
#define CALL_MAX      512
#define INPUT_MAX     8192
#define HISTORY_LINES 3000
#define HISTORY_SHOWN 600
#define NSM_STATE     3

enum step { IDLE, ASKS, WAITS, HOLDS, CANCELS, UNLOCKS };

/* One call in flight; procedure NULL: none. */
struct call {
    enum peer_nlm_procedure procedure;
    struct reliance_range range;
    bool reclaim;
    uint32_t xid, len;
    uint64_t sent_ns; /* last; 0: not on this connection */
    uint8_t bytes[CALL_MAX];
};

struct process {
    enum step step;
    struct reliance_range wanted;
    struct call call;
    uint64_t due_ns;
    bool is_granted_early; /* by a callback, while its LOCK is in flight */
    bool is_blocking, asks_the_same;
};

struct host {
    bool is_udp;
    int fd; /* -1: none */
    uint64_t heard_ns, open_ns;
    uint32_t told, reclaim_told;
    uint32_t reclaimer;
    struct call reclaim;
    uint32_t input_len;
    uint8_t input[INPUT_MAX];
};

struct reliers {
    uint64_t seed, began_ns;
    uint32_t next_xid;
    struct reliance *reliance;
    struct callees *callees;
    struct host hosts[RELIERS_HOSTS];
    struct process processes[RELIERS_PROCESSES];
    bool is_leaving;
    uint32_t failures;
    struct reliers_counts counts;
    uint32_t history_count;
    char history[HISTORY_LINES][160];
};

static const char *const step_names[] = {"idle", "asks", "waits", "holds", "cancels", "unlocks"};

/* ---- history and verdicts ---- */

void reliers_note(struct reliers *reliers, const char *format, ...)
{
    char *line = reliers->history[reliers->history_count++ % HISTORY_LINES];
    uint64_t now_us = (dial_now_ns() - reliers->began_ns) / 1000;
    int len = snprintf(line, sizeof(reliers->history[0]), "%6" PRIu64 ".%06" PRIu64 " ",
                       now_us / 1000000, now_us % 1000000);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line + len, sizeof(reliers->history[0]) - (size_t)len, format, arguments);
    va_end(arguments);
}

void reliers_print_history(const struct reliers *reliers)
{
    uint32_t count = reliers->history_count;
    uint32_t first = count > HISTORY_SHOWN ? count - HISTORY_SHOWN : 0;
    for (uint32_t i = first; i < count; i++)
        printf("    %s\n", reliers->history[i % HISTORY_LINES]);
    for (uint32_t i = 0; i < RELIERS_PROCESSES; i++) {
        const struct process *process = &reliers->processes[i];
        printf("    host %u svid %u %s, wants file %u %u-%u, %s in flight\n", i / RELIERS_PER_HOST,
               i % RELIERS_PER_HOST + 1, step_names[process->step], process->wanted.file,
               process->wanted.first, process->wanted.last,
               peer_nlm_procedure_text(process->call.procedure));
    }
}

static void note(struct reliers *reliers, uint32_t index, const char *what,
                 const struct reliance_range *range, const char *more)
{
    reliers_note(reliers, "host %u svid %u %s file %u %u-%u %s %s", index / RELIERS_PER_HOST,
                 index % RELIERS_PER_HOST + 1, what, range->file, range->first, range->last,
                 range->exclusive ? "exclusive" : "shared", more);
}

static void accuse(struct reliers *reliers, uint32_t index, const char *what,
                   const struct reliance_range *range, uint32_t other)
{
    char more[64] = "";
    if (other != RELIANCE_NOBODY)
        snprintf(more, sizeof(more), "while host %u svid %u does", other / RELIERS_PER_HOST,
                 other % RELIERS_PER_HOST + 1);
    note(reliers, index, what, range, more);
    printf("FAILED: host %u svid %u %s file %u bytes %u-%u %s\n", index / RELIERS_PER_HOST,
           index % RELIERS_PER_HOST + 1, what, range->file, range->first, range->last, more);
    if (reliers->failures++ == 0)
        reliers_print_history(reliers);
}

/* ---- calls ---- */

static uint64_t random_below(struct reliers *reliers, uint64_t max)
{
    return (harness_random(&reliers->seed) >> 11) % max;
}

static bool has_call(const struct call *call)
{
    return call->procedure != PEER_NLM_NULL;
}

static struct lock_call call_of(uint32_t index, enum peer_nlm_procedure procedure,
                                const struct reliance_range *range)
{
    static char name[32];
    snprintf(name, sizeof(name), "relier%u", index / RELIERS_PER_HOST);
    return (struct lock_call){.procedure = procedure,
                              .name = name,
                              .svid = index % RELIERS_PER_HOST + 1,
                              .file = range->file,
                              .offset = range->first,
                              .len = range->last - range->first + 1,
                              .exclusive = range->exclusive,
                              .state = NSM_STATE};
}

static void disconnect(struct reliers *reliers, uint32_t number)
{
    struct host *host = &reliers->hosts[number];
    const struct linger reset = {.l_onoff = 1, .l_linger = 0}; /* nothing arrives later */
    if (host->fd >= 0 && !host->is_udp)
        (void)setsockopt(host->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    if (host->fd >= 0)
        close(host->fd);
    host->fd = -1;
    host->input_len = 0;
    host->reclaim.sent_ns = 0;
    for (uint32_t i = 0; i < RELIERS_PER_HOST; i++)
        reliers->processes[number * RELIERS_PER_HOST + i].call.sent_ns = 0;
}

static void connect_host(struct reliers *reliers, uint32_t number)
{
    struct host *host = &reliers->hosts[number];
    struct dial_route route = {.is_udp = host->is_udp,
                               .server = dial_endpoint_v4(NODES_SERVICE, RELIERS_PORT),
                               .source = dial_endpoint_v4(NODES_CLIENT + number, 0)};
    int fd = dial_start(&route);
    host->fd = fd >= 0 ? fd : -1;
    host->heard_ns = host->open_ns = dial_now_ns();
}

/* Sends a call that is not under way on this connection, or again. */
static void send_call(struct reliers *reliers, uint32_t number, struct call *call)
{
    struct host *host = &reliers->hosts[number];
    uint64_t now_ns = dial_now_ns();
    bool is_due = call->sent_ns == 0 || (host->is_udp && now_ns - call->sent_ns > RESEND_NS);
    if (!has_call(call) || !is_due || host->fd < 0)
        return;
    uint8_t record[CALL_MAX + 4];
    uint32_t mark = UINT32_C(0x80000000) | call->len, skip = host->is_udp ? 0 : 4;
    for (uint32_t i = 0; i < skip; i++)
        record[i] = (uint8_t)(mark >> (24 - 8 * i));
    memcpy(record + skip, call->bytes, call->len);
    ssize_t sent = send(host->fd, record, skip + call->len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent == (ssize_t)(skip + call->len))
        call->sent_ns = now_ns;
    else if (sent >= 0 || (errno != EAGAIN && errno != EINPROGRESS && errno != ENOTCONN))
        disconnect(reliers, number);
}

static void post(struct reliers *reliers, uint32_t index, struct call *call,
                 enum peer_nlm_procedure procedure, const struct reliance_range *range,
                 bool is_blocking, bool is_reclaim)
{
    static struct packet packet;
    struct lock_call args = call_of(index, procedure, range);
    args.block = is_blocking;
    args.reclaim = is_reclaim;
    lock_call_put(&packet, &args);
    packet_set_xid(&packet, reliers->next_xid);
    if (packet.len > CALL_MAX)
        abort();
    *call = (struct call){.procedure = procedure,
                          .range = *range,
                          .reclaim = is_reclaim,
                          .xid = reliers->next_xid++,
                          .len = packet.len};
    memcpy(call->bytes, packet.bytes, packet.len);
    note(reliers, index, peer_nlm_procedure_text(procedure), range, is_reclaim ? "reclaim" : "");
    send_call(reliers, index / RELIERS_PER_HOST, call);
}

/* ---- what processes do ---- */

static bool is_reclaiming(const struct reliers *reliers, uint32_t number)
{
    if (has_call(&reliers->hosts[number].reclaim))
        return true;
    for (uint32_t i = 0; i < RELIERS_PER_HOST; i++)
        if (reliance_has(reliers->reliance, number * RELIERS_PER_HOST + i, RELIANCE_MUST_RECLAIM))
            return true;
    return false;
}

static void want(struct reliers *reliers, struct process *process)
{
    struct reliance_range *range = &process->wanted;
    if (!process->asks_the_same) {
        uint32_t len = 1 + (uint32_t)random_below(reliers, 3);
        range->file = (uint32_t)random_below(reliers, RELIERS_FILES);
        range->first = (uint32_t)random_below(reliers, RELIERS_CELLS - len + 1);
        range->last = range->first + len - 1;
        range->exclusive = random_below(reliers, 4) != 0;
        process->is_blocking = random_below(reliers, 8) != 0;
    }
    process->asks_the_same = false;
    process->is_granted_early = false;
    process->step = ASKS;
}

static void give_back(struct reliers *reliers, uint32_t index)
{
    struct process *process = &reliers->processes[index];
    reliance_drop(reliers->reliance, index, &process->wanted);
    process->step = UNLOCKS;
    reliers->counts.unlocks++;
    post(reliers, index, &process->call, PEER_NLM_UNLOCK, &process->wanted, false, false);
}

static void act(struct reliers *reliers, uint32_t index)
{
    struct process *process = &reliers->processes[index];
    if (is_reclaiming(reliers, index / RELIERS_PER_HOST))
        return;
    switch (process->step) {
    case IDLE:
        if (reliers->is_leaving)
            return;
        want(reliers, process);
        break;
    case HOLDS:
        give_back(reliers, index);
        return;
    case WAITS:
        if (reliers->is_leaving || random_below(reliers, 5) < 2) {
            process->step = CANCELS;
            reliers->counts.cancels++;
        }
        break;
    case ASKS:
    case CANCELS:
    case UNLOCKS: /* refused for now: again */
        break;
    }
    enum peer_nlm_procedure procedure = process->step == CANCELS   ? PEER_NLM_CANCEL
                                        : process->step == UNLOCKS ? PEER_NLM_UNLOCK
                                                                   : PEER_NLM_LOCK;
    post(reliers, index, &process->call, procedure, &process->wanted, process->is_blocking, false);
}

/* ---- what they hear ---- */

static void pause_for(struct reliers *reliers, uint32_t index, uint64_t min_ns, uint64_t max_ns)
{
    reliers->processes[index].due_ns = dial_now_ns() + min_ns + random_below(reliers, max_ns);
}

static void now_relies(struct reliers *reliers, uint32_t index, const char *how)
{
    struct process *process = &reliers->processes[index];
    note(reliers, index, "relies on", &process->wanted, how);
    uint32_t other = reliance_take(reliers->reliance, index, &process->wanted);
    if (other != RELIANCE_NOBODY)
        accuse(reliers, index, "relies on", &process->wanted, other);
    process->step = HOLDS;
    process->is_granted_early = false;
    reliers->counts.grants++;
    if (random_below(reliers, 25) == 0)
        pause_for(reliers, index, 1000 * MS, 4000 * MS);
    else
        pause_for(reliers, index, MS, 60 * MS);
}

static void is_over(struct reliers *reliers, uint32_t index, bool is_same)
{
    struct process *process = &reliers->processes[index];
    process->step = IDLE;
    process->asks_the_same = is_same;
    pause_for(reliers, index, 0, is_same ? MS : 30 * MS);
}

static void lock_answered(struct reliers *reliers, uint32_t index, int status)
{
    struct process *process = &reliers->processes[index];
    if (status == PEER_NLM_IS_GRANTED) {
        now_relies(reliers, index, "by an answer");
    } else if (status == PEER_NLM_IS_BLOCKED && process->is_granted_early) {
        now_relies(reliers, index, "by a callback that came before the answer");
    } else if (status == PEER_NLM_IS_BLOCKED) {
        process->step = WAITS;
        pause_for(reliers, index, 100 * MS, 1200 * MS);
    } else if (status == PEER_NLM_IS_GRACE || status == PEER_NLM_IS_NOLOCKS) {
        process->step = ASKS;
        pause_for(reliers, index, 20 * MS, 100 * MS);
    } else {
        is_over(reliers, index, false);
    }
}

static void process_answered(struct reliers *reliers, uint32_t index,
                             const struct packet_reply *reply)
{
    struct process *process = &reliers->processes[index];
    enum peer_nlm_procedure was = process->call.procedure;
    struct lock_call call = call_of(index, was, &process->call.range);
    int status = lock_call_status(&call, reply, NULL);
    note(reliers, index, lock_call_text(status), &process->call.range,
         peer_nlm_procedure_text(was));
    process->call.procedure = PEER_NLM_NULL;
    if (was == PEER_NLM_LOCK) {
        lock_answered(reliers, index, status);
    } else if (status == PEER_NLM_IS_GRACE) {
        pause_for(reliers, index, 20 * MS, 100 * MS);
    } else if (was == PEER_NLM_CANCEL && status != PEER_NLM_IS_GRANTED) {
        process->step = UNLOCKS;
        pause_for(reliers, index, 0, MS);
    } else {
        is_over(reliers, index, was == PEER_NLM_CANCEL && random_below(reliers, 10) < 7);
    }
}

static void reclaim_answered(struct reliers *reliers, uint32_t number,
                             const struct packet_reply *reply)
{
    struct host *host = &reliers->hosts[number];
    struct reliance_range range = host->reclaim.range;
    struct lock_call call = call_of(host->reclaimer, PEER_NLM_LOCK, &range);
    int status = lock_call_status(&call, reply, NULL);
    host->reclaim.procedure = PEER_NLM_NULL;
    note(reliers, host->reclaimer, lock_call_text(status), &range, "reclaim");
    if (host->told != host->reclaim_told) { /* the next server wants to hear it, too */
        reliance_restart(reliers->reliance, host->reclaimer, true);
    } else if (status == PEER_NLM_IS_GRANTED) {
        reliance_reclaimed(reliers->reliance, host->reclaimer, &range);
        reliers->counts.reclaims++;
    } else {
        accuse(reliers, host->reclaimer, "is refused the reclaim of", &range, RELIANCE_NOBODY);
        reliance_reclaimed(reliers->reliance, host->reclaimer, &range);
    }
}

static void message_arrived(struct reliers *reliers, uint32_t number, const uint8_t *bytes,
                            uint32_t len)
{
    struct packet_reply reply;
    reliers->hosts[number].heard_ns = dial_now_ns();
    if (!packet_get_reply(bytes, len, &reply))
        return;
    struct host *host = &reliers->hosts[number];
    if (has_call(&host->reclaim) && host->reclaim.xid == reply.xid) {
        reclaim_answered(reliers, number, &reply);
        return;
    }
    for (uint32_t i = 0; i < RELIERS_PER_HOST; i++) {
        uint32_t index = number * RELIERS_PER_HOST + i;
        const struct call *call = &reliers->processes[index].call;
        if (has_call(call) && call->xid == reply.xid) {
            process_answered(reliers, index, &reply);
            return;
        }
    }
}

static uint32_t on_granted(void *context, uint32_t number, const struct peer_nlm_args *args,
                           uint64_t *ret_delay_ns)
{
    struct reliers *reliers = context;
    uint32_t index = number * RELIERS_PER_HOST + args->lock.svid - 1;
    if (args->lock.svid == 0 || args->lock.svid > RELIERS_PER_HOST)
        return PEER_NLM_IS_DENIED;
    struct process *process = &reliers->processes[index];
    const struct reliance_range *wanted = &process->wanted;
    uint32_t file = lock_call_file(args->lock.fh.at, args->lock.fh.len);
    bool is_wanted = file == wanted->file && args->lock.offset == wanted->first &&
                     args->lock.len == wanted->last - wanted->first + 1;
    if (random_below(reliers, 3) == 0)
        *ret_delay_ns = random_below(reliers, 1500 * MS);
    reliers_note(reliers, "host %u svid %u is called: GRANTED file %u %u+%u %s", number,
                 args->lock.svid, file, (unsigned)args->lock.offset, (unsigned)args->lock.len,
                 step_names[process->step]);
    if (!is_wanted || (process->step != WAITS && process->step != ASKS))
        return PEER_NLM_IS_DENIED;
    reliers->counts.callbacks++;
    if (has_call(&process->call))
        process->is_granted_early = true;
    else
        now_relies(reliers, index, "by a callback");
    return PEER_NLM_IS_GRANTED;
}

static void on_notified(void *context, uint32_t number, uint32_t state)
{
    struct reliers *reliers = context;
    struct host *host = &reliers->hosts[number];
    if (state <= host->told)
        return; /* another name */
    host->told = state;
    reliers->counts.told++;
    reliers_note(reliers, "host %u is told of state %u", number, state);
    for (uint32_t i = 0; i < RELIERS_PER_HOST; i++) {
        struct process *process = &reliers->processes[number * RELIERS_PER_HOST + i];
        reliance_restart(reliers->reliance, number * RELIERS_PER_HOST + i, true);
        process->is_granted_early = false; /* what a server that is gone said */
        if (process->step == WAITS)
            process->due_ns = dial_now_ns();
    }
}

/* ---- turns ---- */

static void take_records(struct reliers *reliers, uint32_t number)
{
    struct host *host = &reliers->hosts[number];
    while (host->input_len >= 4) {
        uint32_t len = ((uint32_t)(host->input[0] & 0x7f) << 24) | (uint32_t)host->input[1] << 16 |
                       (uint32_t)host->input[2] << 8 | host->input[3];
        if (len > INPUT_MAX - 4) {
            disconnect(reliers, number);
            return;
        }
        if (host->input_len < 4 + len)
            return;
        uint8_t record[INPUT_MAX];
        memcpy(record, host->input + 4, len);
        host->input_len -= 4 + len;
        memmove(host->input, host->input + 4 + len, host->input_len);
        message_arrived(reliers, number, record, len);
    }
}

static void read_host(struct reliers *reliers, uint32_t number)
{
    struct host *host = &reliers->hosts[number];
    uint8_t datagram[INPUT_MAX];
    while (host->fd >= 0) {
        uint8_t *into = host->is_udp ? datagram : host->input + host->input_len;
        size_t room = host->is_udp ? sizeof(datagram) : INPUT_MAX - host->input_len;
        ssize_t len = recv(host->fd, into, room, MSG_DONTWAIT);
        if (len < 0 && (errno == EAGAIN || errno == ENOTCONN))
            return;
        if (len <= 0 && host->is_udp)
            return; /* nobody listens there now */
        if (len <= 0) {
            disconnect(reliers, number);
            return;
        }
        if (host->is_udp) {
            message_arrived(reliers, number, datagram, (uint32_t)len);
        } else {
            host->input_len += (uint32_t)len;
            take_records(reliers, number);
        }
    }
}

/* A connection on which a call waits in vain is given up. */
static void tend_connection(struct reliers *reliers, uint32_t number)
{
    struct host *host = &reliers->hosts[number];
    uint64_t now_ns = dial_now_ns();
    bool is_silent = false;
    for (uint32_t i = 0; i < RELIERS_PER_HOST; i++) {
        const struct call *call = &reliers->processes[number * RELIERS_PER_HOST + i].call;
        uint64_t since_ns = call->sent_ns > host->heard_ns ? call->sent_ns : host->heard_ns;
        is_silent = is_silent || (has_call(call) && now_ns - since_ns > SILENCE_NS);
    }
    if (is_silent && !host->is_udp)
        disconnect(reliers, number);
    if (host->fd < 0 && now_ns - host->open_ns > 50 * MS)
        connect_host(reliers, number);
}

static void begin_reclaim(struct reliers *reliers, uint32_t number)
{
    struct host *host = &reliers->hosts[number];
    struct reliance_range range;
    for (uint32_t i = 0; i < RELIERS_PER_HOST && !has_call(&host->reclaim); i++) {
        uint32_t index = number * RELIERS_PER_HOST + i;
        if (!reliance_ask(reliers->reliance, index, &range))
            continue;
        host->reclaimer = index;
        host->reclaim_told = host->told;
        post(reliers, index, &host->reclaim, PEER_NLM_LOCK, &range, false, true);
    }
}

void reliers_turn(struct reliers *reliers, uint32_t timeout_ms)
{
    struct pollfd ready[RELIERS_HOSTS];
    uint64_t now_ns = dial_now_ns();
    for (uint32_t i = 0; i < RELIERS_PROCESSES; i++)
        if (!has_call(&reliers->processes[i].call) && now_ns >= reliers->processes[i].due_ns)
            act(reliers, i);
    for (uint32_t i = 0; i < RELIERS_HOSTS; i++) {
        tend_connection(reliers, i);
        begin_reclaim(reliers, i);
        send_call(reliers, i, &reliers->hosts[i].reclaim);
        for (uint32_t j = 0; j < RELIERS_PER_HOST; j++)
            send_call(reliers, i, &reliers->processes[i * RELIERS_PER_HOST + j].call);
        ready[i] = (struct pollfd){.fd = reliers->hosts[i].fd, .events = POLLIN};
    }
    (void)poll(ready, RELIERS_HOSTS, (int)timeout_ms);
    for (uint32_t i = 0; i < RELIERS_HOSTS; i++)
        if (ready[i].revents != 0)
            read_host(reliers, i);
    (void)callees_turn(reliers->callees);
}

/* ---- what the tests do ---- */

struct reliers *reliers_new(uint64_t seed)
{
    struct reliers *reliers = calloc(1, sizeof(*reliers));
    if (!reliers)
        return NULL;
    const struct callees_config config = {.first_address = NODES_CLIENT,
                                          .count = RELIERS_HOSTS,
                                          .nsm_state = NSM_STATE,
                                          .user = {reliers, on_granted, on_notified}};
    reliers->seed = seed;
    reliers->began_ns = dial_now_ns();
    reliers->next_xid = (uint32_t)harness_random(&reliers->seed);
    reliers->reliance = reliance_new(RELIERS_PROCESSES, RELIERS_FILES);
    reliers->callees = callees_new(&config);
    for (uint32_t i = 0; i < RELIERS_HOSTS; i++) {
        reliers->hosts[i].is_udp = i % 2 == 1;
        reliers->hosts[i].fd = -1;
    }
    if (reliers->reliance && reliers->callees)
        return reliers;
    reliers_free(reliers);
    return NULL;
}

void reliers_free(struct reliers *reliers)
{
    if (!reliers)
        return;
    for (uint32_t i = 0; i < RELIERS_HOSTS; i++)
        disconnect(reliers, i);
    callees_free(reliers->callees);
    reliance_free(reliers->reliance);
    free(reliers);
}

void reliers_leave(struct reliers *reliers)
{
    reliers->is_leaving = true;
    reliers_note(reliers, "everybody gives back what he has");
}

bool reliers_are_idle(const struct reliers *reliers)
{
    for (uint32_t i = 0; i < RELIERS_PROCESSES; i++)
        if (reliers->processes[i].step != IDLE)
            return false;
    return true;
}

bool reliers_take_all(struct reliers *reliers, uint32_t file, uint64_t patience_ns)
{
    struct process *process = &reliers->processes[0];
    uint64_t deadline_ns = dial_now_ns() + patience_ns;
    bool has_relied = false;
    process->wanted = (struct reliance_range){file, 0, RELIERS_CELLS - 1, true};
    process->is_blocking = true;
    process->step = ASKS;
    while (process->step != IDLE && dial_now_ns() < deadline_ns) {
        bool gives_up = process->step == WAITS && reliers->is_leaving;
        if (gives_up) /* act() would: it waits here */
            process->due_ns = UINT64_MAX;
        reliers_turn(reliers, 5);
        has_relied = has_relied || process->step == HOLDS;
    }
    return has_relied && process->step == IDLE;
}

uint32_t reliers_failures(const struct reliers *reliers)
{
    return reliers->failures;
}

struct reliers_counts reliers_counts(const struct reliers *reliers)
{
    return reliers->counts;
}

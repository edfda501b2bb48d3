/*
 * recovery_hosts.c -- the hosts of lock clients; see recovery_hosts.h.
 *
 * One epoll in one thread. The lock is held while events are served and while a test looks. What an
 * event points to is freed by the thread itself, or when it has ended.
 *
 * A cut is a socket filter that accepts no packet: the kernel drops even the SYN of a connection,
 * without a word to the sender, as a dead cable does.
 */
#include "recovery_hosts.h"

#include "peer/dial.h"
#include "peer/peer_nlm.h"
#include "peer/peer_nsm.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define PORT            111
#define PORTMAP_PROGRAM 100000
#define PORTMAP_VERSION 2
#define PORTMAP_GETPORT 3
#define INPUT_MAX       4096
#define BATCH           64
#define WAKE_MS         10
#define SEND_MS         1000
#define MARK_LAST       UINT32_C(0x80000000)

enum source_kind { SOURCE_UDP, SOURCE_LISTENER, SOURCE_CONNECTION };

struct source {
    struct source *next, **link;
    enum source_kind kind;
    int fd;
    uint32_t host;
    uint32_t in_len;
    uint8_t in[INPUT_MAX];
};

struct place {
    struct recovery_host host;
    int fds[2]; /* UDP, the listener */
};

static struct {
    pthread_t thread;
    pthread_mutex_t lock;
    bool is_over;
    int epoll_fd;
    struct source *sources;
    struct place *places;
    uint32_t count, places_max;
    uint32_t *told; /* a ring of hosts; each is in it at most once */
    bool *is_told;
    uint32_t told_first, told_count;
    struct packet reply;
} hosts = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- what they answer ---- */

static void answer_portmap(const struct recovery_host *host, const struct packet_call *call,
                           struct packet_reader *arguments)
{
    if (call->vers != PORTMAP_VERSION) {
        packet_put_accepted(&hosts.reply, call->xid, PACKET_PROG_MISMATCH);
        packet_put_u32(&hosts.reply, PORTMAP_VERSION);
        packet_put_u32(&hosts.reply, PORTMAP_VERSION);
        return;
    }
    packet_put_accepted(&hosts.reply, call->xid, PACKET_SUCCESS);
    if (call->proc != PORTMAP_GETPORT)
        return;
    uint32_t prog = packet_get_u32(arguments);
    (void)packet_get_u32(arguments);
    bool is_tcp = packet_get_u32(arguments) == IPPROTO_TCP;
    bool is_here = prog == PEER_NLM_PROGRAM || prog == PEER_NSM_PROGRAM;
    packet_put_u32(&hosts.reply, is_here && !(is_tcp && host->is_udp_only) ? PORT : 0);
}

/* We restarted, says somebody: a state that it knows already is no news. */
static void hear_notice(uint32_t index, uint32_t state)
{
    struct recovery_host *host = &hosts.places[index].host;
    host->notices++;
    if (state == host->told_state)
        return;
    host->told_state = state;
    host->told_count++;
    host->told_ns = dial_now_ns();
    if (hosts.is_told[index])
        return;
    hosts.is_told[index] = true;
    hosts.told[(hosts.told_first + hosts.told_count++) % hosts.places_max] = index;
}

static void answer_statd(uint32_t index, const struct packet_call *call,
                         struct packet_reader *arguments)
{
    struct recovery_host *host = &hosts.places[index].host;
    uint32_t len;
    (void)packet_get_opaque(arguments, PEER_NLM_NETOBJ_MAX, &len);
    if (call->proc == PEER_NSM_STAT && packet_is_done(arguments)) {
        host->stats++;
        packet_put_accepted(&hosts.reply, call->xid, PACKET_SUCCESS);
        packet_put_u32(&hosts.reply, PEER_NSM_STAT_SUCC);
        packet_put_u32(&hosts.reply, host->state);
        return;
    }
    uint32_t state = packet_get_u32(arguments);
    bool is_notice = call->proc == PEER_NSM_NOTIFY && packet_is_done(arguments);
    packet_put_accepted(&hosts.reply, call->xid, is_notice ? PACKET_SUCCESS : PACKET_PROC_UNAVAIL);
    if (is_notice)
        hear_notice(index, state);
    else
        host->strange_calls++;
}

/* It waits for every lock that is offered, and takes it. GRANTED_MSG is not known here, so that
 * GRANTED is tried then (R-BLK-2). */
static void answer_nlm(uint32_t index, const struct packet_call *call,
                       struct packet_reader *arguments)
{
    static struct peer_nlm_args args;
    static struct peer_nlm_res res;
    struct recovery_host *host = &hosts.places[index].host;
    if (call->proc == PEER_NLM_NULL) {
        packet_put_accepted(&hosts.reply, call->xid, PACKET_SUCCESS);
        return;
    }
    if (call->proc != PEER_NLM_GRANTED ||
        !peer_nlm_get_args(arguments, call->vers, call->proc, &args)) {
        host->strange_calls += call->proc != PEER_NLM_GRANTED_MSG;
        packet_put_accepted(&hosts.reply, call->xid, PACKET_PROC_UNAVAIL);
        return;
    }
    host->grants++;
    host->granted_svid = args.lock.svid;
    host->granted_ns = dial_now_ns();
    res.cookie = args.cookie;
    res.status = PEER_NLM_IS_GRANTED;
    packet_put_accepted(&hosts.reply, call->xid, PACKET_SUCCESS);
    peer_nlm_put_res(&hosts.reply, call->vers, call->proc, &res);
}

/* Puts the answer into hosts.reply. False: there is none. */
static bool answer(uint32_t index, const uint8_t *bytes, uint32_t len)
{
    struct packet_reader reader = {bytes, len, false};
    struct packet_call call;
    packet_clear(&hosts.reply);
    if (!packet_get_call(&reader, &call))
        return false;
    if (call.prog == PORTMAP_PROGRAM) {
        answer_portmap(&hosts.places[index].host, &call, &reader);
    } else if (call.prog == PEER_NSM_PROGRAM) {
        answer_statd(index, &call, &reader);
    } else if (call.prog == PEER_NLM_PROGRAM) {
        answer_nlm(index, &call, &reader);
    } else {
        hosts.places[index].host.strange_calls++;
        packet_put_accepted(&hosts.reply, call.xid, PACKET_PROG_UNAVAIL);
    }
    return true;
}

/* ---- sockets ---- */

static bool watch(enum source_kind kind, int fd, uint32_t host)
{
    struct source *source = calloc(1, sizeof(*source));
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};
    if (!source || epoll_ctl(hosts.epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
        free(source);
        close(fd);
        return false;
    }
    source->kind = kind;
    source->fd = fd;
    source->host = host;
    source->next = hosts.sources;
    source->link = &hosts.sources;
    if (source->next)
        source->next->link = &source->next;
    hosts.sources = source;
    return true;
}

/* A server that is about to be started has copies of our sockets for a moment: closing ours would
   not end its events, which would then be about freed memory. */
static void forget(struct source *source)
{
    (void)epoll_ctl(hosts.epoll_fd, EPOLL_CTL_DEL, source->fd, NULL); /* it is there */
    close(source->fd);
    *source->link = source->next;
    if (source->next)
        source->next->link = source->link;
    free(source);
}

static void serve_datagrams(const struct source *source)
{
    uint8_t in[INPUT_MAX];
    for (;;) {
        struct sockaddr_in from;
        socklen_t from_len = sizeof(from);
        ssize_t got = recvfrom(source->fd, in, sizeof(in), 0, (struct sockaddr *)&from, &from_len);
        if (got < 0)
            return;
        if (answer(source->host, in, (uint32_t)got))
            (void)sendto(source->fd, hosts.reply.bytes, hosts.reply.len, MSG_NOSIGNAL,
                         (struct sockaddr *)&from, from_len); /* lost as any datagram may be */
    }
}

static void accept_all(const struct source *listener)
{
    int fd;
    while ((fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
        (void)watch(SOURCE_CONNECTION, fd, listener->host);
}

/* False: the connection is over. */
static bool serve_connection(struct source *source)
{
    uint32_t at = 0;
    ssize_t got =
        recv(source->fd, source->in + source->in_len, sizeof(source->in) - source->in_len, 0);
    if (got <= 0)
        return got < 0 && errno == EAGAIN;
    source->in_len += (uint32_t)got;
    while (source->in_len - at >= 4) {
        uint32_t mark = packet_xid(source->in + at, 4), len = mark & ~MARK_LAST;
        if ((mark & MARK_LAST) == 0 || len > INPUT_MAX - 4)
            return false;
        if (source->in_len - at - 4 < len)
            break;
        if (!answer(source->host, source->in + at + 4, len) ||
            dial_send_record(source->fd, hosts.reply.bytes, hosts.reply.len, SEND_MS) < 0)
            return false;
        at += 4 + len;
    }
    memmove(source->in, source->in + at, source->in_len - at);
    source->in_len -= at;
    return true;
}

static void *serve(void *unused)
{
    struct epoll_event events[BATCH];
    bool is_over = false;
    while (!is_over) {
        int count = epoll_wait(hosts.epoll_fd, events, BATCH, WAKE_MS);
        pthread_mutex_lock(&hosts.lock);
        for (int i = 0; i < count; i++) {
            struct source *source = events[i].data.ptr;
            if (source->kind == SOURCE_UDP)
                serve_datagrams(source);
            else if (source->kind == SOURCE_LISTENER)
                accept_all(source);
            else if (!serve_connection(source))
                forget(source);
        }
        is_over = hosts.is_over;
        pthread_mutex_unlock(&hosts.lock);
    }
    return unused;
}

/* ---- what the tests do ---- */

bool recovery_hosts_start(uint32_t hosts_max)
{
    hosts.places_max = hosts_max;
    hosts.places = calloc(hosts_max, sizeof(*hosts.places));
    hosts.told = calloc(hosts_max, sizeof(*hosts.told));
    hosts.is_told = calloc(hosts_max, sizeof(*hosts.is_told));
    hosts.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    return hosts.places && hosts.told && hosts.is_told && hosts.epoll_fd >= 0 &&
           pthread_create(&hosts.thread, NULL, serve, NULL) == 0;
}

void recovery_hosts_stop(void)
{
    pthread_mutex_lock(&hosts.lock);
    hosts.is_over = true;
    pthread_mutex_unlock(&hosts.lock);
    pthread_join(hosts.thread, NULL);
    while (hosts.sources)
        forget(hosts.sources);
    close(hosts.epoll_fd);
    free(hosts.places);
    free(hosts.told);
    free(hosts.is_told);
}

static int listen_at(uint32_t address, bool is_udp)
{
    struct dial_endpoint at = dial_endpoint_v4(address, PORT);
    int on = 1;
    int fd = socket(AF_INET, (is_udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, (struct sockaddr *)&at.at, at.len) == 0 && (is_udp || listen(fd, 64) == 0))
        return fd;
    close(fd);
    return -1;
}

uint32_t recovery_hosts_add(uint32_t address, const char *name, bool is_udp_only)
{
    pthread_mutex_lock(&hosts.lock);
    uint32_t index = hosts.count;
    struct place *place = &hosts.places[index];
    bool has_place = index < hosts.places_max, is_there = has_place;
    for (int i = 0; i < 2 && is_there; i++) {
        place->fds[i] = listen_at(address, i == 0);
        is_there = place->fds[i] >= 0 &&
                   watch(i == 0 ? SOURCE_UDP : SOURCE_LISTENER, place->fds[i], index);
    }
    if (!is_there) {
        fprintf(stderr, "recovery_hosts: %s: %s\n", name,
                has_place ? strerror(errno) : "more than were announced");
        exit(1);
    }
    place->host =
        (struct recovery_host){.address = address, .state = 3, .is_udp_only = is_udp_only};
    snprintf(place->host.name, sizeof(place->host.name), "%s", name);
    hosts.count++;
    pthread_mutex_unlock(&hosts.lock);
    return index;
}

struct recovery_host recovery_hosts_look(uint32_t host)
{
    pthread_mutex_lock(&hosts.lock);
    struct recovery_host copy = hosts.places[host].host;
    pthread_mutex_unlock(&hosts.lock);
    return copy;
}

void recovery_hosts_set_state(uint32_t host, uint32_t state)
{
    pthread_mutex_lock(&hosts.lock);
    hosts.places[host].host.state = state;
    pthread_mutex_unlock(&hosts.lock);
}

void recovery_hosts_cut(uint32_t host, bool is_cut)
{
    struct sock_filter nothing[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
    const struct sock_fprog filter = {.len = 1, .filter = nothing};
    int unused = 0;
    for (int i = 0; i < 2; i++) {
        int fd = hosts.places[host].fds[i]; /* never changes */
        int result = is_cut ? setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter))
                            : setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof(unused));
        if (result < 0 && (is_cut || errno != ENOENT)) {
            perror("recovery_hosts_cut");
            exit(1);
        }
    }
}

bool recovery_hosts_take_told(uint32_t *ret_host)
{
    pthread_mutex_lock(&hosts.lock);
    bool is_there = hosts.told_count > 0;
    if (is_there) {
        uint32_t host = hosts.told[hosts.told_first];
        hosts.told_first = (hosts.told_first + 1) % hosts.places_max;
        hosts.told_count--;
        hosts.is_told[host] = false;
        *ret_host = host;
    }
    pthread_mutex_unlock(&hosts.lock);
    return is_there;
}

void recovery_hosts_forget_told(void)
{
    uint32_t host;
    while (recovery_hosts_take_told(&host))
        continue;
}

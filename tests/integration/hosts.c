/*
 * hosts.c -- hosts that the server calls; see hosts.h.
 *
 * One epoll in one thread. The lock is held while events are served and while a test looks, so
 * what a test sees is consistent. Sources are in a list, so that everything can be freed at the
 * end.
 */
#include "hosts.h"

#include "peer/dial.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define HOSTS_MAX       2048
#define CALLS_MAX       65536 /* between two hosts_forget_calls */
#define INPUT_MAX       2048
#define BATCH           64
#define WAKE_MS         10
#define SETTLE_NS       UINT64_C(60000000000)
#define PORTMAP_PROGRAM 100000
#define PORTMAP_VERSION 2
#define PORTMAP_GETPORT 3
#define MARK_LAST       UINT32_C(0x80000000)

enum source_kind { SOURCE_UDP, SOURCE_LISTENER, SOURCE_CONNECTION };

struct source {
    struct source *next, **link;
    enum source_kind kind;
    int fd;
    uint32_t host, from;
    bool is_portmapper;
    uint32_t in_len;
    uint8_t in[INPUT_MAX];
};

static struct {
    pthread_t thread;
    pthread_mutex_t lock;
    bool is_over;
    uint64_t idle_count; /* times that nothing at all was to be served */
    int epoll_fd;
    struct source *sources;
    struct hosts_host hosts[HOSTS_MAX];
    uint32_t count;
    struct hosts_call *calls;
    uint32_t call_count;
    struct packet reply;
} hosts = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool hosts_enter_network(void)
{
    if (unshare(CLONE_NEWNET) != 0)
        return false;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    bool is_up = fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &request) == 0;
    close(fd);
    return is_up;
}

/* ---- what they answer ---- */

static void put_accepted(uint32_t xid, enum packet_accept status)
{
    const uint32_t words[] = {xid, 1 /* REPLY */, 0 /* accepted */, PACKET_AUTH_NONE, 0, status};
    packet_clear(&hosts.reply);
    for (uint32_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        packet_put_u32(&hosts.reply, words[i]);
}

static void answer_portmap(const struct hosts_host *host, const struct hosts_call *call,
                           struct packet_reader *arguments)
{
    uint32_t prog = packet_get_u32(arguments), vers = packet_get_u32(arguments);
    uint32_t prot = packet_get_u32(arguments), port = 0;
    if (call->vers != PORTMAP_VERSION) {
        put_accepted(call->xid, PACKET_PROG_MISMATCH);
        packet_put_u32(&hosts.reply, PORTMAP_VERSION);
        packet_put_u32(&hosts.reply, PORTMAP_VERSION);
        return;
    }
    if (call->proc != PORTMAP_GETPORT) {
        put_accepted(call->xid, call->proc == 0 ? PACKET_SUCCESS : PACKET_PROC_UNAVAIL);
        return;
    }
    if (prog == HOSTS_PROG && vers == HOSTS_VERS && !arguments->failed)
        port = prot == IPPROTO_TCP ? host->tcp_port : prot == IPPROTO_UDP ? host->udp_port : 0;
    put_accepted(call->xid, PACKET_SUCCESS);
    packet_put_u32(&hosts.reply, port);
}

/* The call as it was remembered when its datagram came for the first time, or NULL. */
static const struct hosts_call *earlier(const struct hosts_call *call)
{
    for (uint32_t i = hosts.call_count; call->is_udp && i > 0; i--) {
        const struct hosts_call *other = &hosts.calls[i - 1];
        if (other->is_udp && other->host == call->host && other->xid == call->xid)
            return other;
    }
    return NULL;
}

static void answer_service(struct hosts_host *host, struct hosts_call *call,
                           struct packet_reader *arguments)
{
    uint32_t len;
    const struct hosts_call *known = earlier(call);
    if (known) {
        put_accepted(call->xid, known->is_refused ? host->refusal : PACKET_SUCCESS);
        return;
    }
    const uint8_t *name = packet_get_opaque(arguments, sizeof(call->name) - 1, &len);
    if (name)
        memcpy(call->name, name, len);
    call->state = packet_get_u32(arguments);
    const uint8_t *priv = packet_get_fixed(arguments, PEER_NSM_PRIV_LEN);
    if (priv)
        memcpy(call->priv, priv, PEER_NSM_PRIV_LEN);
    call->is_readable = packet_is_done(arguments);
    call->at_ns = dial_now_ns();
    call->is_refused = host->refusals > 0;
    host->refusals -= call->is_refused;
    put_accepted(call->xid, call->is_refused ? host->refusal : PACKET_SUCCESS);
    if (hosts.call_count == CALLS_MAX) {
        fprintf(stderr, "hosts: more than %d calls\n", CALLS_MAX);
        abort();
    }
    hosts.calls[hosts.call_count++] = *call;
}

/* Puts the answer into hosts.reply. False: there is none. */
static bool answer(const struct source *source, uint32_t from, const uint8_t *bytes, uint32_t len)
{
    struct packet_reader reader = {bytes, len, false};
    struct hosts_host *host = &hosts.hosts[source->host];
    struct hosts_call call = {
        .host = source->host, .from = from, .is_udp = source->kind == SOURCE_UDP};
    uint32_t ignored;
    call.xid = packet_get_u32(&reader);
    uint32_t type = packet_get_u32(&reader), rpc_vers = packet_get_u32(&reader);
    call.prog = packet_get_u32(&reader);
    call.vers = packet_get_u32(&reader);
    call.proc = packet_get_u32(&reader);
    for (int i = 0; i < 2; i++) { /* credential and verifier */
        packet_get_u32(&reader);
        packet_get_opaque(&reader, 400, &ignored);
    }
    if (reader.failed || type != 0 || rpc_vers != 2)
        return false;
    if (!source->is_portmapper)
        answer_service(host, &call, &reader);
    else if (call.prog != PORTMAP_PROGRAM)
        put_accepted(call.xid, PACKET_PROG_UNAVAIL);
    else if (call.is_udp && host->is_silent)
        return false;
    else
        answer_portmap(host, &call, &reader);
    return true;
}

/* ---- sockets ---- */

static bool watch(const struct source *content)
{
    struct source *source = calloc(1, sizeof(*source));
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};
    if (!source || epoll_ctl(hosts.epoll_fd, EPOLL_CTL_ADD, content->fd, &event) < 0) {
        free(source);
        close(content->fd);
        return false;
    }
    *source = *content;
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
        if (answer(source, ntohl(from.sin_addr.s_addr), in, (uint32_t)got))
            (void)sendto(source->fd, hosts.reply.bytes, hosts.reply.len, 0,
                         (struct sockaddr *)&from, from_len); /* lost as any datagram may be */
    }
}

static void accept_all(const struct source *listener)
{
    for (;;) {
        struct sockaddr_in from;
        socklen_t len = sizeof(from);
        int fd =
            accept4(listener->fd, (struct sockaddr *)&from, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0)
            return;
        (void)watch(&(struct source){.kind = SOURCE_CONNECTION,
                                     .fd = fd,
                                     .host = listener->host,
                                     .from = ntohl(from.sin_addr.s_addr),
                                     .is_portmapper = listener->is_portmapper});
    }
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
        if (!answer(source, source->from, source->in + at + 4, len) ||
            dial_send_record(source->fd, hosts.reply.bytes, hosts.reply.len, 100) < 0)
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
        hosts.idle_count += count == 0;
        is_over = hosts.is_over;
        pthread_mutex_unlock(&hosts.lock);
    }
    return unused;
}

/* ---- what the tests do ---- */

bool hosts_start(void)
{
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files); /* what fails shows as a host without a socket */
    hosts.calls = calloc(CALLS_MAX, sizeof(*hosts.calls));
    hosts.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    return hosts.calls && hosts.epoll_fd >= 0 &&
           pthread_create(&hosts.thread, NULL, serve, NULL) == 0;
}

void hosts_stop(void)
{
    pthread_mutex_lock(&hosts.lock);
    hosts.is_over = true;
    pthread_mutex_unlock(&hosts.lock);
    pthread_join(hosts.thread, NULL);
    while (hosts.sources)
        forget(hosts.sources);
    close(hosts.epoll_fd);
    free(hosts.calls);
}

int hosts_add(const struct hosts_host *host)
{
    int index = -1;
    pthread_mutex_lock(&hosts.lock);
    if (hosts.count < HOSTS_MAX) {
        index = (int)hosts.count++;
        hosts.hosts[index] = *host;
    }
    pthread_mutex_unlock(&hosts.lock);
    return index;
}

bool hosts_listen(uint32_t host, uint16_t port, bool is_udp)
{
    struct dial_endpoint at = dial_endpoint_v4(hosts.hosts[host].address, port);
    int on = 1;
    int fd = socket(AF_INET, (is_udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (fd < 0 || bind(fd, (struct sockaddr *)&at.at, at.len) < 0 ||
        (!is_udp && listen(fd, 64) < 0)) {
        fprintf(stderr, "hosts: cannot listen at %s: %s\n", dial_endpoint_text(&at),
                strerror(errno));
        return false;
    }
    pthread_mutex_lock(&hosts.lock);
    bool is_watched = watch(&(struct source){.kind = is_udp ? SOURCE_UDP : SOURCE_LISTENER,
                                             .fd = fd,
                                             .host = host,
                                             .is_portmapper = port == HOSTS_PORTMAP});
    pthread_mutex_unlock(&hosts.lock);
    return is_watched;
}

static uint64_t idle_count(void)
{
    pthread_mutex_lock(&hosts.lock);
    uint64_t count = hosts.idle_count;
    pthread_mutex_unlock(&hosts.lock);
    return count;
}

bool hosts_settle(void)
{
    /* The first idle moment may have begun before the last bytes came. */
    uint64_t wanted = idle_count() + 2, deadline_ns = dial_now_ns() + SETTLE_NS;
    const struct timespec pause = {.tv_nsec = 2000000};
    while (idle_count() < wanted && dial_now_ns() < deadline_ns)
        nanosleep(&pause, NULL);
    return idle_count() >= wanted;
}

void hosts_forget_calls(void)
{
    pthread_mutex_lock(&hosts.lock);
    hosts.call_count = 0;
    pthread_mutex_unlock(&hosts.lock);
}

void hosts_each_call(hosts_call_fn visit, void *context)
{
    pthread_mutex_lock(&hosts.lock);
    for (uint32_t i = 0; i < hosts.call_count; i++)
        visit(context, &hosts.calls[i]);
    pthread_mutex_unlock(&hosts.lock);
}

/*
 * callees.c -- lock clients' hosts as the server sees them; see callees.h.
 *
 * One epoll. A source is a socket; connections come and go, the others stay. An answer that is kept
 * back remembers its source: when that goes, the answer goes with it.
 */
#include "callees.h"

#include "peer/dial.h"
#include "peer/peer_nsm.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define PORT            111
#define PORTMAP_PROGRAM 100000
#define PORTMAP_VERSION 2
#define PORTMAP_GETPORT 3
#define INPUT_MAX       4096
#define ANSWER_MAX      512 /* of GRANTED: a cookie and a status */
#define HELD_MAX        4096
#define BATCH           64
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

/* An answer that is kept back. */
struct held {
    uint64_t due_ns;
    struct source *source;
    struct dial_endpoint to;
    bool is_granted;
    uint32_t len;
    uint8_t bytes[ANSWER_MAX];
};

struct callees {
    struct callees_config config;
    int epoll_fd;
    struct source *sources;
    struct held *held;
    uint32_t held_count, granted_count, stats, strange, served;
    uint64_t delay_ns; /* of the answer in `reply` */
    bool is_granted;   /* the same */
    struct packet reply;
};

/* ---- what they answer ---- */

static bool has_tcp(uint32_t host)
{
    return host % 2 == 0;
}

static void answer_portmap(struct callees *callees, uint32_t host, const struct packet_call *call,
                           struct packet_reader *arguments)
{
    struct packet *reply = &callees->reply;
    if (call->vers != PORTMAP_VERSION) {
        packet_put_accepted(reply, call->xid, PACKET_PROG_MISMATCH);
        packet_put_u32(reply, PORTMAP_VERSION);
        packet_put_u32(reply, PORTMAP_VERSION);
        return;
    }
    packet_put_accepted(reply, call->xid, PACKET_SUCCESS);
    if (call->proc != PORTMAP_GETPORT)
        return;
    uint32_t prog = packet_get_u32(arguments);
    (void)packet_get_u32(arguments); /* any version */
    bool is_tcp = packet_get_u32(arguments) == IPPROTO_TCP;
    bool is_here = prog == PEER_NLM_PROGRAM || prog == PEER_NSM_PROGRAM;
    packet_put_u32(reply, is_here && (!is_tcp || has_tcp(host)) ? PORT : 0);
}

static void answer_statd(struct callees *callees, uint32_t host, const struct packet_call *call,
                         struct packet_reader *arguments)
{
    struct packet *reply = &callees->reply;
    uint32_t len;
    (void)packet_get_opaque(arguments, PEER_NLM_NETOBJ_MAX, &len);
    if (call->proc == PEER_NSM_STAT && packet_is_done(arguments)) {
        callees->stats++;
        packet_put_accepted(reply, call->xid, PACKET_SUCCESS);
        packet_put_u32(reply, PEER_NSM_STAT_SUCC);
        packet_put_u32(reply, callees->config.nsm_state);
        return;
    }
    uint32_t state = packet_get_u32(arguments);
    bool is_notice = call->proc == PEER_NSM_NOTIFY && packet_is_done(arguments);
    packet_put_accepted(reply, call->xid, is_notice ? PACKET_SUCCESS : PACKET_PROC_UNAVAIL);
    callees->strange += !is_notice;
    if (is_notice)
        callees->config.user.notified(callees->config.user.context, host, state);
}

/* GRANTED_MSG is not known here, so that GRANTED is tried then (R-BLK-2). */
static void answer_nlm(struct callees *callees, uint32_t host, const struct packet_call *call,
                       struct packet_reader *arguments)
{
    static struct peer_nlm_args args; /* large */
    static struct peer_nlm_res res;
    struct packet *reply = &callees->reply;
    if (call->proc != PEER_NLM_GRANTED ||
        !peer_nlm_get_args(arguments, call->vers, call->proc, &args)) {
        callees->strange += call->proc != PEER_NLM_GRANTED_MSG;
        packet_put_accepted(reply, call->xid, PACKET_PROC_UNAVAIL);
        return;
    }
    res.cookie = args.cookie;
    res.status =
        callees->config.user.granted(callees->config.user.context, host, &args, &callees->delay_ns);
    callees->is_granted = res.status == PEER_NLM_IS_GRANTED;
    packet_put_accepted(reply, call->xid, PACKET_SUCCESS);
    peer_nlm_put_res(reply, call->vers, call->proc, &res);
}

/* Puts the answer into callees->reply. False: it was no call. */
static bool answer(struct callees *callees, uint32_t host, const uint8_t *bytes, uint32_t len)
{
    struct packet_reader reader = {bytes, len, false};
    struct packet_call call;
    packet_clear(&callees->reply);
    callees->delay_ns = 0;
    callees->is_granted = false;
    if (!packet_get_call(&reader, &call)) {
        callees->strange++;
        return false;
    }
    callees->served++;
    if (call.prog == PORTMAP_PROGRAM) {
        answer_portmap(callees, host, &call, &reader);
    } else if (call.prog == PEER_NSM_PROGRAM) {
        answer_statd(callees, host, &call, &reader);
    } else if (call.prog == PEER_NLM_PROGRAM) {
        answer_nlm(callees, host, &call, &reader);
    } else {
        callees->strange++;
        packet_put_accepted(&callees->reply, call.xid, PACKET_PROG_UNAVAIL);
    }
    return true;
}

/* ---- answers on their way ---- */

/* What cannot be sent is lost, as on any network; the server asks again. */
static void send_answer(const struct source *source, const struct dial_endpoint *to,
                        const uint8_t *bytes, uint32_t len)
{
    if (source->kind == SOURCE_UDP)
        (void)sendto(source->fd, bytes, len, MSG_NOSIGNAL, (const struct sockaddr *)&to->at,
                     to->len);
    else
        (void)dial_send_record(source->fd, bytes, len, SEND_MS);
}

/* Sends callees->reply, now or later. */
static void send_or_keep(struct callees *callees, struct source *source,
                         const struct dial_endpoint *to)
{
    const struct packet *reply = &callees->reply;
    if (callees->delay_ns == 0 || callees->held_count == HELD_MAX || reply->len > ANSWER_MAX) {
        send_answer(source, to, reply->bytes, reply->len);
        return;
    }
    struct held *held = &callees->held[callees->held_count++];
    *held = (struct held){.due_ns = dial_now_ns() + callees->delay_ns,
                          .source = source,
                          .to = *to,
                          .is_granted = callees->is_granted,
                          .len = reply->len};
    memcpy(held->bytes, reply->bytes, reply->len);
    callees->granted_count += held->is_granted;
}

static void drop_held(struct callees *callees, uint32_t index)
{
    callees->granted_count -= callees->held[index].is_granted;
    callees->held[index] = callees->held[--callees->held_count];
}

static void send_due(struct callees *callees)
{
    uint64_t now_ns = dial_now_ns();
    for (uint32_t i = 0; i < callees->held_count;) {
        const struct held *held = &callees->held[i];
        if (held->due_ns > now_ns) {
            i++;
            continue;
        }
        send_answer(held->source, &held->to, held->bytes, held->len);
        drop_held(callees, i);
    }
}

/* ---- sockets ---- */

static bool watch(struct callees *callees, enum source_kind kind, int fd, uint32_t host)
{
    struct source *source = calloc(1, sizeof(*source));
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};
    if (!source || epoll_ctl(callees->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
        free(source);
        close(fd);
        return false;
    }
    source->kind = kind;
    source->fd = fd;
    source->host = host;
    source->next = callees->sources;
    source->link = &callees->sources;
    if (source->next)
        source->next->link = &source->next;
    callees->sources = source;
    return true;
}

/* A server that is about to be started has copies of our sockets for a moment: closing ours would
   not end its events, which would then be about freed memory. */
static void forget(struct callees *callees, struct source *source)
{
    for (uint32_t i = callees->held_count; i > 0; i--)
        if (callees->held[i - 1].source == source)
            drop_held(callees, i - 1);
    (void)epoll_ctl(callees->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL); /* it is there */
    close(source->fd);
    *source->link = source->next;
    if (source->next)
        source->next->link = source->link;
    free(source);
}

static void serve_datagrams(struct callees *callees, struct source *source)
{
    for (;;) {
        struct dial_endpoint from = {.len = sizeof(from.at)};
        ssize_t got = recvfrom(source->fd, source->in, sizeof(source->in), 0,
                               (struct sockaddr *)&from.at, &from.len);
        if (got < 0)
            return;
        if (answer(callees, source->host, source->in, (uint32_t)got))
            send_or_keep(callees, source, &from);
    }
}

static void accept_all(struct callees *callees, const struct source *listener)
{
    int fd;
    while ((fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
        (void)watch(callees, SOURCE_CONNECTION, fd, listener->host);
}

/* False: the connection is over. */
static bool serve_connection(struct callees *callees, struct source *source)
{
    const struct dial_endpoint nobody = {.len = 0};
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
        if (!answer(callees, source->host, source->in + at + 4, len))
            return false;
        send_or_keep(callees, source, &nobody);
        at += 4 + len;
    }
    memmove(source->in, source->in + at, source->in_len - at);
    source->in_len -= at;
    return true;
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

static bool add_socket(struct callees *callees, uint32_t host, bool is_udp)
{
    int fd = listen_at(callees->config.first_address + host, is_udp);
    return fd >= 0 && watch(callees, is_udp ? SOURCE_UDP : SOURCE_LISTENER, fd, host);
}

/* ---- what the tests do ---- */

struct callees *callees_new(const struct callees_config *config)
{
    struct callees *callees = calloc(1, sizeof(*callees));
    if (!callees)
        return NULL;
    callees->config = *config;
    callees->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    callees->held = calloc(HELD_MAX, sizeof(*callees->held));
    bool is_good = callees->epoll_fd >= 0 && callees->held;
    for (uint32_t i = 0; i < config->count && is_good; i++)
        is_good = add_socket(callees, i, true) && (!has_tcp(i) || add_socket(callees, i, false));
    if (is_good)
        return callees;
    int error = errno;
    callees_free(callees);
    errno = error;
    return NULL;
}

void callees_free(struct callees *callees)
{
    if (!callees)
        return;
    while (callees->sources)
        forget(callees, callees->sources);
    if (callees->epoll_fd >= 0)
        close(callees->epoll_fd);
    free(callees->held);
    free(callees);
}

uint32_t callees_turn(struct callees *callees)
{
    struct epoll_event events[BATCH];
    callees->served = 0;
    send_due(callees);
    int count = epoll_wait(callees->epoll_fd, events, BATCH, 0);
    for (int i = 0; i < count; i++) {
        struct source *source = events[i].data.ptr;
        if (source->kind == SOURCE_UDP)
            serve_datagrams(callees, source);
        else if (source->kind == SOURCE_LISTENER)
            accept_all(callees, source);
        else if (!serve_connection(callees, source))
            forget(callees, source);
    }
    return callees->served;
}

void callees_forget_server(struct callees *callees)
{
    for (struct source *next, *source = callees->sources; source; source = next) {
        next = source->next;
        if (source->kind == SOURCE_CONNECTION)
            forget(callees, source);
    }
    callees->held_count = callees->granted_count = 0;
}

uint32_t callees_held(const struct callees *callees)
{
    return callees->granted_count;
}

uint32_t callees_stats(const struct callees *callees)
{
    return callees->stats;
}

uint32_t callees_strange(const struct callees *callees)
{
    return callees->strange;
}

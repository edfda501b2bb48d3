/*
 * hosts_net.c -- the sockets of hosts that the server calls; see hosts_net.h.
 *
 * One epoll. Sockets are in a list, so that everything can be closed in the end; an event points to
 * its socket, and only who serves the event, or nobody, frees it.
 */
#include "hosts_net.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define PORTMAP_VERSION 2
#define PORTMAP_GETPORT 3
#define INPUT_MAX       4096
#define BATCH           64
#define BACKLOG         64
#define WAKE_MS         10
#define SEND_MS         1000
#define MARK_LAST       UINT32_C(0x80000000)

enum socket_kind { SOCKET_UDP, SOCKET_LISTENER, SOCKET_CONNECTION };

struct hosts_net_socket {
    struct hosts_net_socket *next, **link;
    enum socket_kind kind;
    int fd;
    uint32_t host;
    uint16_t port;
    struct dial_endpoint from; /* connections: the other end */
    uint32_t in_len;
    uint8_t in[INPUT_MAX];
};

struct hosts_net {
    struct hosts_net_user user;
    pthread_t thread;
    pthread_mutex_t lock;
    bool has_thread, is_over;
    uint64_t idle_count;
    int epoll_fd;
    struct hosts_net_socket *sockets;
};

/* ---- sockets ---- */

/* Takes the descriptor of *content over; it is closed when that fails. */
static bool watch(struct hosts_net *net, const struct hosts_net_socket *content)
{
    struct hosts_net_socket *socket = calloc(1, sizeof(*socket));
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = socket};
    if (!socket || epoll_ctl(net->epoll_fd, EPOLL_CTL_ADD, content->fd, &event) < 0) {
        int error = errno;
        free(socket);
        close(content->fd);
        errno = error;
        return false;
    }
    *socket = *content;
    socket->next = net->sockets;
    socket->link = &net->sockets;
    if (socket->next)
        socket->next->link = &socket->next;
    net->sockets = socket;
    return true;
}

/* A server that is about to be started has copies of our sockets for a moment: closing ours would
   not end its events, which would then be about freed memory. */
static void forget(struct hosts_net *net, struct hosts_net_socket *socket)
{
    if (net->user.gone)
        net->user.gone(net->user.context, socket);
    (void)epoll_ctl(net->epoll_fd, EPOLL_CTL_DEL, socket->fd, NULL); /* it is there */
    close(socket->fd);
    *socket->link = socket->next;
    if (socket->next)
        socket->next->link = socket->link;
    free(socket);
}

int hosts_net_listen(struct hosts_net *net, uint32_t host, const struct dial_endpoint *at,
                     bool is_udp)
{
    int on = 1;
    int fd = socket(at->at.ss_family,
                    (is_udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, (const struct sockaddr *)&at->at, at->len) < 0 ||
        (!is_udp && listen(fd, BACKLOG) < 0)) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    const struct hosts_net_socket content = {.kind = is_udp ? SOCKET_UDP : SOCKET_LISTENER,
                                             .fd = fd,
                                             .host = host,
                                             .port = dial_endpoint_port(at)};
    return watch(net, &content) ? fd : -1;
}

bool hosts_net_send(const struct hosts_net_socket *socket, const struct dial_endpoint *to,
                    const void *bytes, uint32_t len)
{
    if (socket->kind == SOCKET_UDP)
        return sendto(socket->fd, bytes, len, MSG_NOSIGNAL, (const struct sockaddr *)&to->at,
                      to->len) >= 0;
    return dial_send_record(socket->fd, bytes, len, SEND_MS) == 0;
}

void hosts_net_hang_up(struct hosts_net *net)
{
    for (struct hosts_net_socket *next, *socket = net->sockets; socket; socket = next) {
        next = socket->next;
        if (socket->kind == SOCKET_CONNECTION)
            forget(net, socket);
    }
}

/* ---- serving ---- */

static bool serve_message(struct hosts_net *net, struct hosts_net_socket *socket,
                          const struct dial_endpoint *from, const uint8_t *bytes, uint32_t len)
{
    const struct hosts_net_message message = {.socket = socket,
                                              .from = *from,
                                              .host = socket->host,
                                              .port = socket->port,
                                              .is_udp = socket->kind == SOCKET_UDP,
                                              .bytes = bytes,
                                              .len = len};
    return net->user.served(net->user.context, &message);
}

static void serve_datagrams(struct hosts_net *net, struct hosts_net_socket *socket)
{
    for (;;) {
        struct dial_endpoint from = {.len = sizeof(from.at)};
        ssize_t got = recvfrom(socket->fd, socket->in, sizeof(socket->in), 0,
                               (struct sockaddr *)&from.at, &from.len);
        if (got < 0)
            return;
        (void)serve_message(net, socket, &from, socket->in, (uint32_t)got); /* nothing to end */
    }
}

static void accept_all(struct hosts_net *net, const struct hosts_net_socket *listener)
{
    for (;;) {
        struct hosts_net_socket content = {.kind = SOCKET_CONNECTION,
                                           .host = listener->host,
                                           .port = listener->port,
                                           .from.len = sizeof(content.from.at)};
        content.fd = accept4(listener->fd, (struct sockaddr *)&content.from.at, &content.from.len,
                             SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (content.fd < 0)
            return;
        (void)watch(net, &content); /* else it is closed, as by a host that has had enough */
    }
}

/* False: the connection is over. */
static bool serve_connection(struct hosts_net *net, struct hosts_net_socket *socket)
{
    uint32_t at = 0;
    ssize_t got =
        recv(socket->fd, socket->in + socket->in_len, sizeof(socket->in) - socket->in_len, 0);
    if (got <= 0)
        return got < 0 && errno == EAGAIN;
    socket->in_len += (uint32_t)got;
    while (socket->in_len - at >= 4) {
        uint32_t mark = packet_xid(socket->in + at, 4), len = mark & ~MARK_LAST;
        if ((mark & MARK_LAST) == 0 || len > INPUT_MAX - 4)
            return false;
        if (socket->in_len - at - 4 < len)
            break;
        if (!serve_message(net, socket, &socket->from, socket->in + at + 4, len))
            return false;
        at += 4 + len;
    }
    memmove(socket->in, socket->in + at, socket->in_len - at);
    socket->in_len -= at;
    return true;
}

static void serve_events(struct hosts_net *net, const struct epoll_event *events, int count)
{
    for (int i = 0; i < count; i++) {
        struct hosts_net_socket *socket = events[i].data.ptr;
        if (socket->kind == SOCKET_UDP)
            serve_datagrams(net, socket);
        else if (socket->kind == SOCKET_LISTENER)
            accept_all(net, socket);
        else if (!serve_connection(net, socket))
            forget(net, socket);
    }
}

void hosts_net_turn(struct hosts_net *net)
{
    struct epoll_event events[BATCH];
    serve_events(net, events, epoll_wait(net->epoll_fd, events, BATCH, 0));
}

/* ---- the thread ---- */

static void *serve(void *context)
{
    struct hosts_net *net = context;
    struct epoll_event events[BATCH];
    bool is_over = false;
    while (!is_over) {
        int count = epoll_wait(net->epoll_fd, events, BATCH, WAKE_MS);
        hosts_net_lock(net);
        serve_events(net, events, count);
        net->idle_count += count == 0;
        is_over = net->is_over;
        hosts_net_unlock(net);
    }
    return NULL;
}

bool hosts_net_start(struct hosts_net *net)
{
    net->has_thread = pthread_create(&net->thread, NULL, serve, net) == 0;
    return net->has_thread;
}

void hosts_net_lock(struct hosts_net *net)
{
    pthread_mutex_lock(&net->lock);
}

void hosts_net_unlock(struct hosts_net *net)
{
    pthread_mutex_unlock(&net->lock);
}

uint64_t hosts_net_idle_count(const struct hosts_net *net)
{
    return net->idle_count;
}

/* ---- all of it ---- */

struct hosts_net *hosts_net_new(const struct hosts_net_user *user)
{
    struct hosts_net *net = calloc(1, sizeof(*net));
    if (!net)
        return NULL;
    net->user = *user;
    net->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (net->epoll_fd < 0) {
        free(net);
        return NULL;
    }
    pthread_mutex_init(&net->lock, NULL);
    return net;
}

void hosts_net_free(struct hosts_net *net)
{
    if (!net)
        return;
    if (net->has_thread) {
        hosts_net_lock(net);
        net->is_over = true;
        hosts_net_unlock(net);
        pthread_join(net->thread, NULL);
    }
    while (net->sockets)
        forget(net, net->sockets);
    close(net->epoll_fd);
    pthread_mutex_destroy(&net->lock);
    free(net);
}

/* ---- the portmapper ---- */

void hosts_net_portmap(const struct packet_call *call, struct packet_reader *arguments,
                       hosts_net_port_fn find, const void *host, struct packet *reply)
{
    if (call->vers != PORTMAP_VERSION) {
        packet_put_accepted(reply, call->xid, PACKET_PROG_MISMATCH);
        packet_put_u32(reply, PORTMAP_VERSION);
        packet_put_u32(reply, PORTMAP_VERSION);
        return;
    }
    if (call->proc != PORTMAP_GETPORT) {
        packet_put_accepted(reply, call->xid,
                            call->proc == 0 ? PACKET_SUCCESS : PACKET_PROC_UNAVAIL);
        return;
    }
    uint32_t prog = packet_get_u32(arguments), vers = packet_get_u32(arguments);
    uint32_t prot = packet_get_u32(arguments);
    (void)packet_get_u32(arguments); /* a port, which means nothing here */
    if (!packet_is_done(arguments)) {
        packet_put_accepted(reply, call->xid, PACKET_GARBAGE_ARGS);
        return;
    }
    packet_put_accepted(reply, call->xid, PACKET_SUCCESS);
    packet_put_u32(reply, find(host, prog, vers, prot));
}

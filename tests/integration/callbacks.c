/*
 * callbacks.c -- hosts that are called back with GRANTED; see callbacks.h.
 */
#include "callbacks.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define PORTMAP_PORT    111
#define PORTMAP_PROGRAM 100000
#define PORTMAP_VERSION 2
#define PORTMAP_GETPORT 3
#define EVENTS_MAX      64

struct host {
    int fd;
    uint32_t address;
};

struct callbacks {
    int epoll_fd;
    callbacks_granted_fn granted;
    void *context;
    uint32_t host_count, hosts_max;
    struct host *hosts;
    struct packet in, reply;
};

bool callbacks_enter_network(void)
{
    if (unshare(CLONE_NEWNET) != 0)
        return false;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    bool is_up = fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &request) == 0;
    close(fd);
    return is_up;
}

struct callbacks *callbacks_new(uint32_t hosts_max, callbacks_granted_fn granted, void *context)
{
    struct callbacks *callbacks = calloc(1, sizeof(*callbacks));
    if (!callbacks)
        return NULL;
    callbacks->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    callbacks->hosts = calloc(hosts_max, sizeof(*callbacks->hosts));
    callbacks->hosts_max = hosts_max;
    callbacks->granted = granted;
    callbacks->context = context;
    if (callbacks->epoll_fd < 0 || !callbacks->hosts) {
        callbacks_free(callbacks);
        return NULL;
    }
    return callbacks;
}

void callbacks_free(struct callbacks *callbacks)
{
    if (!callbacks)
        return;
    for (uint32_t i = 0; i < callbacks->host_count; i++)
        close(callbacks->hosts[i].fd);
    if (callbacks->epoll_fd >= 0)
        close(callbacks->epoll_fd);
    free(callbacks->hosts);
    free(callbacks);
}

int callbacks_add(struct callbacks *callbacks, uint32_t address)
{
    struct dial_endpoint at = dial_endpoint_v4(address, PORTMAP_PORT);
    if (callbacks->host_count == callbacks->hosts_max)
        return -ENOSPC;
    int fd = dial_open_unconnected(&at);
    if (fd < 0)
        return fd;
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = callbacks->host_count};
    if (epoll_ctl(callbacks->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
        close(fd);
        return -ENOMEM;
    }
    callbacks->hosts[callbacks->host_count++] = (struct host){fd, address};
    return 0;
}

static void answer_portmap(struct packet *reply, const struct packet_call *call,
                           struct packet_reader *reader)
{
    if (call->vers != PORTMAP_VERSION) {
        packet_put_accepted(reply, call->xid, PACKET_PROG_MISMATCH);
        packet_put_u32(reply, PORTMAP_VERSION);
        packet_put_u32(reply, PORTMAP_VERSION);
        return;
    }
    packet_put_accepted(reply, call->xid, PACKET_SUCCESS);
    if (call->proc != PORTMAP_GETPORT)
        return;
    uint32_t prog = packet_get_u32(reader);
    (void)packet_get_u32(reader);
    bool is_here = prog == PEER_NLM_PROGRAM && packet_get_u32(reader) == IPPROTO_UDP;
    packet_put_u32(reply, is_here ? PORTMAP_PORT : 0);
}

static void answer_nlm(struct callbacks *callbacks, const struct host *host,
                       const struct packet_call *call, struct packet_reader *reader)
{
    static struct peer_nlm_args args;
    static struct peer_nlm_res res;
    struct packet *reply = &callbacks->reply;
    if (call->proc != PEER_NLM_GRANTED) { /* GRANTED_MSG as well: GRANTED is tried then (R-BLK-2) */
        packet_put_accepted(reply, call->xid, PACKET_PROC_UNAVAIL);
        return;
    }
    if (!peer_nlm_get_args(reader, call->vers, call->proc, &args)) {
        packet_put_accepted(reply, call->xid, PACKET_GARBAGE_ARGS);
        return;
    }
    res.cookie = args.cookie;
    res.status = callbacks->granted(callbacks->context, host->address, &args);
    packet_put_accepted(reply, call->xid, PACKET_SUCCESS);
    peer_nlm_put_res(reply, call->vers, call->proc, &res);
}

/* True: it was a call of NLM. */
static bool serve(struct callbacks *callbacks, const struct host *host, uint32_t len,
                  const struct dial_endpoint *from)
{
    struct packet_call call;
    struct packet_reader reader = {callbacks->in.bytes, len, false};
    if (!packet_get_call(&reader, &call))
        return false;
    packet_clear(&callbacks->reply);
    if (call.prog == PORTMAP_PROGRAM)
        answer_portmap(&callbacks->reply, &call, &reader);
    else if (call.prog == PEER_NLM_PROGRAM)
        answer_nlm(callbacks, host, &call, &reader);
    else
        packet_put_accepted(&callbacks->reply, call.xid, PACKET_PROG_UNAVAIL);
    (void)sendto(host->fd, callbacks->reply.bytes, callbacks->reply.len, MSG_NOSIGNAL,
                 (const struct sockaddr *)&from->at, from->len);
    return call.prog == PEER_NLM_PROGRAM;
}

uint32_t callbacks_turn(struct callbacks *callbacks)
{
    struct epoll_event events[EVENTS_MAX];
    uint32_t served = 0;
    int count = epoll_wait(callbacks->epoll_fd, events, EVENTS_MAX, 0);
    for (int i = 0; i < count; i++) {
        const struct host *host = &callbacks->hosts[events[i].data.u32];
        struct dial_endpoint from = {.len = sizeof(from.at)};
        ssize_t got;
        while ((got = recvfrom(host->fd, callbacks->in.bytes, sizeof(callbacks->in.bytes),
                               MSG_DONTWAIT, (struct sockaddr *)&from.at, &from.len)) > 0) {
            served += serve(callbacks, host, (uint32_t)got, &from);
            from.len = sizeof(from.at);
        }
    }
    return served;
}

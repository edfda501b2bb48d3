/*
 * listen.c -- binds the addresses of listen.h.
 *
 * IPv6 sockets are IPv6 only, so that an IPv4 caller always arrives on an IPv4 socket and one
 * client has one address (R-ID-2). With port 0 the kernel picks a port for the first socket; the
 * others must get the same one, and if it is taken for one of them the whole set starts over.
 */
#include "wire/listen.h"

#include "wire/sockaddr.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <unistd.h>

enum { PORT_TRIES = 32, UDP_RECEIVE_BUFFER = 4 * 1024 * 1024 };

static int fail(struct listen_failure *failure, const char *protocol, const struct address *address,
                uint16_t port)
{
    failure->error = errno;
    char text[ADDRESS_TEXT_MAX];
    address_text(address, text);
    const char *advice = "";
    if (failure->error == EADDRINUSE)
        advice = "; stop what uses it, or choose another --port";
    if (failure->error == EADDRNOTAVAIL)
        advice = "; this machine has no such address, see --listen";
    if (failure->error == EACCES)
        advice = "; ports below 1024 need root";
    (void)snprintf(failure->text, sizeof failure->text, "cannot bind %s port %u on %s: %s%s",
                   protocol, port, text, strerror(failure->error), advice);
    return -1;
}

static int set_option(int fd, int level, int name, int value)
{
    return setsockopt(fd, level, name, &value, sizeof value);
}

/* A bound socket, or -1 with errno set. */
static int bind_one(const struct address *address, uint16_t port, int type)
{
    struct sockaddr_storage at;
    socklen_t at_len = sockaddr_of(address, port, &at);
    int fd = socket(at.ss_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    bool v6 = at.ss_family == AF_INET6;
    if ((v6 && set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1) != 0) ||
        (type == SOCK_STREAM && set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1) != 0) ||
        (type == SOCK_DGRAM && set_option(fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP,
                                          v6 ? IPV6_RECVPKTINFO : IP_PKTINFO, 1) != 0) ||
        bind(fd, (const struct sockaddr *)&at, at_len) != 0) {
        int error = errno;
        (void)close(fd);
        errno = error;
        return -1;
    }
    /* Bursts of datagrams should queue, not be lost. Without privilege the kernel grants what it
     * allows.
     * */
    if (type == SOCK_DGRAM && set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, UDP_RECEIVE_BUFFER) != 0)
        (void)set_option(fd, SOL_SOCKET, SO_RCVBUF, UDP_RECEIVE_BUFFER);
    return fd;
}

static uint16_t bound_port(int fd)
{
    struct sockaddr_storage at = {0};
    socklen_t at_len = sizeof at;
    uint16_t port = 0;
    if (getsockname(fd, (struct sockaddr *)&at, &at_len) == 0)
        (void)sockaddr_address((const struct sockaddr *)&at, &port);
    return port;
}

/* Both sockets of one address. A port of 0 becomes the set's port with the first socket. */
static int bind_pair(struct listen_set *set, const struct address *address,
                     struct listen_failure *failure)
{
    int tcp_fd = bind_one(address, set->port, SOCK_STREAM);
    if (tcp_fd < 0)
        return fail(failure, "TCP", address, set->port);
    if (set->port == 0)
        set->port = bound_port(tcp_fd);
    int udp_fd = bind_one(address, set->port, SOCK_DGRAM);
    if (udp_fd < 0) {
        int result = fail(failure, "UDP", address, set->port);
        (void)close(tcp_fd);
        return result;
    }
    set->at[set->count++] =
        (struct listen_pair){.address = *address, .tcp_fd = tcp_fd, .udp_fd = udp_fd};
    return 0;
}

/* IPv6 may be missing from the kernel or switched off; then "all addresses" are those of IPv4. */
static bool is_no_ipv6(int error)
{
    return error == EAFNOSUPPORT || error == EADDRNOTAVAIL;
}

static int bind_all(const struct address *addresses, uint32_t count, struct listen_set *set,
                    struct listen_failure *failure)
{
    static const struct address everywhere[2] = {{.family = 4}, {.family = 6}};
    bool chosen = count > 0;
    if (!chosen) {
        addresses = everywhere;
        count = 2;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (bind_pair(set, &addresses[i], failure) == 0)
            continue;
        if (!chosen && addresses[i].family == 6 && is_no_ipv6(failure->error))
            continue;
        return -1;
    }
    return 0;
}

int listen_open(const struct address *addresses, uint32_t count, uint16_t port,
                struct listen_set *ret, struct listen_failure *ret_failure)
{
    for (uint32_t try = 0; try < PORT_TRIES; try++) {
        struct listen_set set = {.port = port};
        if (bind_all(addresses, count, &set, ret_failure) == 0) {
            *ret = set;
            return 0;
        }
        listen_close(&set);
        if (port != 0 || ret_failure->error != EADDRINUSE)
            return -1;
    }
    return -1;
}

void listen_close(struct listen_set *set)
{
    for (uint32_t i = 0; i < set->count; i++) {
        (void)close(set->at[i].tcp_fd);
        (void)close(set->at[i].udp_fd);
    }
    set->count = 0;
}

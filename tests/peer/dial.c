/*
 * dial.c -- sockets of a fake client with deadlines; see dial.h.
 */
#include "peer/dial.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RESEND_MS 500

uint64_t dial_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

bool dial_endpoint_parse(const char *address, uint16_t port, struct dial_endpoint *ret)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct dial_endpoint endpoint = {0};
    char bare[INET6_ADDRSTRLEN];
    const char *zone = strchr(address, '%'); /* the link of a link-local address */
    if (zone) {
        snprintf(bare, sizeof(bare), "%.*s", (int)(zone - address), address);
        v6.sin6_scope_id = if_nametoindex(zone + 1);
        if (v6.sin6_scope_id == 0)
            return false;
        address = bare;
    }
    if (!zone && inet_pton(AF_INET, address, &v4.sin_addr) == 1) {
        memcpy(&endpoint.at, &v4, sizeof(v4));
        endpoint.len = sizeof(v4);
    } else if (inet_pton(AF_INET6, address, &v6.sin6_addr) == 1) {
        memcpy(&endpoint.at, &v6, sizeof(v6));
        endpoint.len = sizeof(v6);
    } else {
        return false;
    }
    *ret = endpoint;
    return true;
}

bool dial_endpoint_read(const char *text, struct dial_endpoint *ret)
{
    char address[INET_ADDRSTRLEN] = "127.0.0.1";
    const char *colon = strchr(text, ':');
    unsigned long port = strtoul(colon ? colon + 1 : text, NULL, 10);
    if (colon)
        snprintf(address, sizeof(address), "%.*s", (int)(colon - text), text);
    return port > 0 && port <= UINT16_MAX && dial_endpoint_parse(address, (uint16_t)port, ret);
}

struct dial_endpoint dial_endpoint_v4(uint32_t address, uint16_t port)
{
    struct sockaddr_in v4 = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(address)};
    struct dial_endpoint endpoint = {.len = sizeof(v4)};
    memcpy(&endpoint.at, &v4, sizeof(v4));
    return endpoint;
}

uint16_t dial_endpoint_port(const struct dial_endpoint *endpoint)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    memcpy(&v4, &endpoint->at, sizeof(v4));
    memcpy(&v6, &endpoint->at, sizeof(v6));
    return ntohs(endpoint->at.ss_family == AF_INET ? v4.sin_port : v6.sin6_port);
}

const char *dial_endpoint_text(const struct dial_endpoint *endpoint)
{
    static char text[INET6_ADDRSTRLEN + 16];
    char address[INET6_ADDRSTRLEN] = "?";
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    memcpy(&v4, &endpoint->at, sizeof(v4));
    memcpy(&v6, &endpoint->at, sizeof(v6));
    bool is_v4 = endpoint->at.ss_family == AF_INET;
    if (is_v4)
        inet_ntop(AF_INET, &v4.sin_addr, address, sizeof(address));
    else
        inet_ntop(AF_INET6, &v6.sin6_addr, address, sizeof(address));
    snprintf(text, sizeof(text), is_v4 ? "%s:%u" : "[%s]:%u", address,
             dial_endpoint_port(endpoint));
    return text;
}

bool dial_endpoint_equal(const struct dial_endpoint *a, const struct dial_endpoint *b)
{
    struct sockaddr_in v4_a, v4_b;
    struct sockaddr_in6 v6_a, v6_b;
    if (a->at.ss_family != b->at.ss_family || dial_endpoint_port(a) != dial_endpoint_port(b))
        return false;
    memcpy(&v4_a, &a->at, sizeof(v4_a));
    memcpy(&v4_b, &b->at, sizeof(v4_b));
    memcpy(&v6_a, &a->at, sizeof(v6_a));
    memcpy(&v6_b, &b->at, sizeof(v6_b));
    if (a->at.ss_family == AF_INET)
        return v4_a.sin_addr.s_addr == v4_b.sin_addr.s_addr;
    return memcmp(&v6_a.sin6_addr, &v6_b.sin6_addr, sizeof(v6_a.sin6_addr)) == 0;
}

/* Waits until fd is ready for `events`, or the deadline. 0 or -ETIMEDOUT. */
static int wait_ready(int fd, short events, uint64_t deadline_ns)
{
    for (;;) {
        uint64_t now_ns = dial_now_ns();
        if (now_ns >= deadline_ns)
            return -ETIMEDOUT;
        struct pollfd poll_fd = {.fd = fd, .events = events};
        int ready = poll(&poll_fd, 1, (int)((deadline_ns - now_ns) / 1000000) + 1);
        if (ready > 0)
            return 0;
        if (ready < 0 && errno != EINTR)
            return -errno;
    }
}

static uint64_t deadline_of(uint32_t timeout_ms)
{
    return dial_now_ns() + (uint64_t)timeout_ms * 1000000;
}

static int open_socket(int family, int type, const struct dial_endpoint *source)
{
    int fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int on = 1;
    if (type == SOCK_STREAM)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (source->len > 0) {
        if (dial_endpoint_port(source) != 0)
            setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        else if (type == SOCK_STREAM) /* many connections may share a port number */
            setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
        if (bind(fd, (const struct sockaddr *)&source->at, source->len) < 0) {
            int error = -errno;
            close(fd);
            return error;
        }
    }
    return fd;
}

int dial_open_unconnected(const struct dial_endpoint *source)
{
    return open_socket(source->at.ss_family, SOCK_DGRAM, source);
}

int dial_start(const struct dial_route *route)
{
    int fd = open_socket(route->server.at.ss_family, route->is_udp ? SOCK_DGRAM : SOCK_STREAM,
                         &route->source);
    if (fd < 0)
        return fd;
    if (connect(fd, (const struct sockaddr *)&route->server.at, route->server.len) < 0 &&
        errno != EINPROGRESS) {
        int error = -errno;
        close(fd);
        return error;
    }
    return fd;
}

int dial_open(const struct dial_route *route, uint32_t timeout_ms)
{
    int fd = dial_start(route);
    if (fd < 0 || route->is_udp)
        return fd;
    int result = wait_ready(fd, POLLOUT, deadline_of(timeout_ms));
    if (result == 0) {
        int error = 0;
        socklen_t len = sizeof(error);
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
        result = -error;
    }
    if (result < 0) {
        close(fd);
        return result;
    }
    return fd;
}

int dial_send(int fd, const void *bytes, size_t len, uint32_t timeout_ms)
{
    uint64_t deadline_ns = deadline_of(timeout_ms);
    const uint8_t *at = bytes;
    do {
        ssize_t sent = send(fd, at, len, MSG_NOSIGNAL);
        if (sent >= 0) {
            at += sent;
            len -= (size_t)sent;
            continue;
        }
        if (errno == EPIPE)
            return -ECONNRESET;
        if (errno != EAGAIN && errno != EINTR)
            return -errno;
        int result = wait_ready(fd, POLLOUT, deadline_ns);
        if (result < 0)
            return result;
    } while (len > 0);
    return 0;
}

int dial_send_record(int fd, const void *bytes, uint32_t len, uint32_t timeout_ms)
{
    struct packet record;
    packet_clear(&record);
    packet_put_u32(&record, UINT32_C(0x80000000) | len);
    packet_put_bytes(&record, bytes, len);
    if (record.overflowed)
        return -EMSGSIZE;
    return dial_send(fd, record.bytes, record.len, timeout_ms);
}

static int receive_until(int fd, void *buffer, size_t size, uint64_t deadline_ns,
                         struct dial_endpoint *ret_from)
{
    for (;;) {
        struct dial_endpoint from = {.len = sizeof(from.at)};
        ssize_t got = recvfrom(fd, buffer, size, 0, (struct sockaddr *)&from.at, &from.len);
        if (got >= 0) {
            if (ret_from)
                *ret_from = from;
            return (int)got;
        }
        if (errno != EAGAIN && errno != EINTR)
            return -errno;
        int result = wait_ready(fd, POLLIN, deadline_ns);
        if (result < 0)
            return result;
    }
}

int dial_receive(int fd, void *buffer, size_t size, uint32_t timeout_ms)
{
    return receive_until(fd, buffer, size, deadline_of(timeout_ms), NULL);
}

int dial_receive_from(int fd, void *buffer, size_t size, uint32_t timeout_ms,
                      struct dial_endpoint *ret_from)
{
    return receive_until(fd, buffer, size, deadline_of(timeout_ms), ret_from);
}

/* Exactly `len` bytes of a stream. */
static int receive_exactly(int fd, uint8_t *buffer, uint32_t len, uint64_t deadline_ns)
{
    while (len > 0) {
        int got = receive_until(fd, buffer, len, deadline_ns, NULL);
        if (got <= 0)
            return got == 0 ? -ECONNRESET : got;
        buffer += got;
        len -= (uint32_t)got;
    }
    return 0;
}

int dial_receive_record(int fd, struct packet *ret, uint32_t timeout_ms)
{
    uint64_t deadline_ns = deadline_of(timeout_ms);
    bool last = false;
    ret->len = 0;
    ret->overflowed = false;
    while (!last) {
        uint8_t mark[4];
        int result = receive_exactly(fd, mark, sizeof(mark), deadline_ns);
        if (result < 0)
            return result;
        uint32_t word = packet_xid(mark, sizeof(mark)), len = word & UINT32_C(0x7fffffff);
        last = (word & UINT32_C(0x80000000)) != 0;
        if (len > PACKET_MAX - ret->len)
            return -EBADMSG;
        result = receive_exactly(fd, ret->bytes + ret->len, len, deadline_ns);
        if (result < 0)
            return result;
        ret->len += len;
    }
    return (int)ret->len;
}

/* Milliseconds until the deadline, at most RESEND_MS when calls are repeated. */
static uint32_t patience_ms(uint64_t deadline_ns, bool is_udp)
{
    uint64_t now_ns = dial_now_ns();
    uint64_t left_ms = now_ns >= deadline_ns ? 0 : (deadline_ns - now_ns) / 1000000 + 1;
    return (uint32_t)(is_udp && left_ms > RESEND_MS ? RESEND_MS : left_ms);
}

int dial_exchange(int fd, bool is_udp, const struct packet *call, uint32_t timeout_ms,
                  struct packet *answer, struct packet_reply *ret)
{
    uint64_t deadline_ns = deadline_of(timeout_ms);
    uint32_t xid = packet_xid(call->bytes, call->len);
    bool must_send = true;
    for (;;) {
        uint32_t wait_ms = patience_ms(deadline_ns, is_udp);
        if (wait_ms == 0)
            return -ETIMEDOUT;
        int result = 0;
        if (must_send)
            result = is_udp ? dial_send(fd, call->bytes, call->len, wait_ms)
                            : dial_send_record(fd, call->bytes, call->len, wait_ms);
        if (result < 0)
            return result;
        must_send = false;
        result = is_udp ? dial_receive(fd, answer->bytes, sizeof(answer->bytes), wait_ms)
                        : dial_receive_record(fd, answer, wait_ms);
        if (result == -ETIMEDOUT && is_udp)
            must_send = true;
        else if (result < 0)
            return result;
        else if (packet_xid(answer->bytes, (uint32_t)result) == xid) {
            answer->len = (uint32_t)result;
            return packet_get_reply(answer->bytes, answer->len, ret) ? 0 : -EBADMSG;
        }
    }
}

int dial_call(const struct dial_route *route, const struct packet *call, uint32_t timeout_ms,
              struct packet *answer, struct packet_reply *ret)
{
    int fd = dial_open(route, timeout_ms);
    if (fd < 0)
        return fd;
    int result = dial_exchange(fd, route->is_udp, call, timeout_ms, answer, ret);
    close(fd);
    return result;
}

/*
 * caller_udp.c -- sendmmsg, recvmmsg and the error queue behind uv_poll; see caller_udp.h.
 *
 * Ten thousand lookups are answered in one burst, so the receive buffer is large and every wake-up
 * reads all there is, up to READ_ROUNDS batches; the rest makes the socket readable again.
 *
 * Unreachable ports: with IP_RECVERR the kernel queues ICMP errors with the address and port the
 * datagram went to. It also reports the newest one as the error of the next system call on the
 * socket, whichever datagram that is about. So a failed system call says nothing about its own
 * datagram: it is repeated, and only a second failure in a row drops the datagram, which the client
 * will retransmit. libuv stops watching a socket with an error; it is restarted after the queue was
 * read.
 */
#include "wire/caller_udp.h"

#include "base/check.h"
#include "wire/datagram.h"
#include "wire/sockaddr.h"
#include "wire/source_port.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    BATCH = 64,
    READ_ROUNDS = 16,
    ANSWER_MAX = 4096, /* the longest that is of interest */
    CALL_MAX = CLIENT_ARGS_MAX + 128,
    RECEIVE_BUFFER = 16 * 1024 * 1024,
    SEND_BUFFER = 1024 * 1024,
    /* Sockets: IPv4 and IPv6 from ordinary ports, then both from privileged ones. */
    END_COUNT = 4,
};

struct udp_end {
    uv_poll_t poll;
    struct caller_udp *udp;
    int fd; /* -1: not open */
};

struct caller_udp {
    uv_loop_t *loop;
    struct rpc_client *client;
    struct clock *clock;
    struct udp_end ends[END_COUNT];
    struct source_ports ports, privileged_ports;
    int privileged_fd; /* IPv4, bound before privileges were dropped; 0: none, or in use */
    bool has_upcalls;  /* there was one: for the lock manager of this machine */

    struct mmsghdr in[BATCH], out[BATCH];
    struct datagram in_data[BATCH], out_data[BATCH];
    uint8_t *in_bytes, *out_bytes;
    struct udp_end *out_end; /* that the gathered datagrams leave through */
    uint32_t out_count, out_sent;
    bool is_blocked;
};

struct caller_udp *caller_udp_new(uv_loop_t *loop, struct rpc_client *client, struct clock *clock,
                                  const struct caller_options *options)
{
    struct caller_udp *udp = calloc(1, sizeof *udp);
    if (udp == NULL)
        return NULL;
    udp->loop = loop;
    udp->client = client;
    udp->clock = clock;
    udp->ports =
        (struct source_ports){.low = options->source_port_low, .high = options->source_port_high};
    udp->privileged_ports = source_ports_privileged();
    udp->privileged_fd = options->privileged_fd;
    udp->has_upcalls = options->privileged_fd != 0;
    for (uint32_t i = 0; i < END_COUNT; i++)
        udp->ends[i] = (struct udp_end){.udp = udp, .fd = -1};
    udp->in_bytes = calloc(BATCH, ANSWER_MAX);
    udp->out_bytes = calloc(BATCH, CALL_MAX);
    if (udp->in_bytes == NULL || udp->out_bytes == NULL) {
        caller_udp_free(udp);
        return NULL;
    }
    return udp;
}

void caller_udp_free(struct caller_udp *udp)
{
    if (udp == NULL)
        return;
    free(udp->in_bytes);
    free(udp->out_bytes);
    free(udp);
}

/* ---- in ---- */

/* Up to BATCH messages into udp->in, or a negative errno. */
static int receive(struct udp_end *end, int flags)
{
    struct caller_udp *udp = end->udp;
    for (uint32_t i = 0; i < BATCH; i++)
        datagram_prepare(&udp->in[i], &udp->in_data[i], udp->in_bytes + (size_t)i * ANSWER_MAX,
                         ANSWER_MAX);
    int n = recvmmsg(end->fd, udp->in, BATCH, MSG_DONTWAIT | flags, NULL);
    return n < 0 ? -errno : n;
}

/* True for an error about the destination; not for a datagram that was merely too long. */
static bool is_about_destination(struct msghdr *message)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c)) {
        if (!(c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) &&
            !(c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR))
            continue;
        struct sock_extended_err error;
        memcpy(&error, CMSG_DATA(c), sizeof error);
        return error.ee_errno != EMSGSIZE;
    }
    return false;
}

static void read_errors(struct udp_end *end)
{
    struct caller_udp *udp = end->udp;
    for (uint32_t round = 0; round < READ_ROUNDS; round++) {
        int n = receive(end, MSG_ERRQUEUE);
        for (int i = 0; i < n; i++) {
            uint16_t port;
            struct address to =
                sockaddr_address((const struct sockaddr *)&udp->in_data[i].peer, &port);
            if (to.family != 0 && is_about_destination(&udp->in[i].msg_hdr))
                rpc_client_unreachable(udp->client, &to, port, clock_now_ns(udp->clock));
        }
        if (n < BATCH)
            return;
    }
}

static void read_answers(struct udp_end *end)
{
    struct caller_udp *udp = end->udp;
    for (uint32_t round = 0; round < READ_ROUNDS; round++) {
        int n = receive(end, 0);
        if (n > 0)
            clock_heard(udp->clock);
        for (int i = 0; i < n; i++) {
            const struct datagram *data = &udp->in_data[i];
            uint16_t port;
            struct address from = sockaddr_address((const struct sockaddr *)&data->peer, &port);
            struct bytes answer = {data->content.iov_base, udp->in[i].msg_len};
            if (from.family != 0 && !(udp->in[i].msg_hdr.msg_flags & MSG_TRUNC))
                rpc_client_datagram(udp->client, &from, port, answer, clock_now_ns(udp->clock));
        }
        if (n == -EAGAIN || (n >= 0 && n < BATCH))
            return;
    }
}

static void watch(struct udp_end *end);

static void on_event(uv_poll_t *poll, int status, int events)
{
    struct udp_end *end = poll->data;
    struct caller_udp *udp = end->udp;
    if (status < 0)
        read_errors(end);
    read_answers(end);
    if (udp->is_blocked && udp->out_end == end && (status < 0 || (events & UV_WRITABLE)))
        caller_udp_flush(udp);
    if (status < 0)
        watch(end);
}

static void watch(struct udp_end *end)
{
    bool is_blocked = end->udp->is_blocked && end->udp->out_end == end;
    (void)uv_poll_start(&end->poll, is_blocked ? UV_READABLE | UV_WRITABLE : UV_READABLE, on_event);
}

/* ---- opening ---- */

static void set_option(int fd, int level, int name, int value)
{
    (void)setsockopt(fd, level, name, &value, sizeof value); /* optional: a refusal is ignored */
}

static int open_socket(struct source_ports *ports, uint32_t family)
{
    bool v6 = family == 6;
    int fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (v6)
        set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    struct address any = {.family = family};
    if (source_ports_bind(ports, fd, &any) != 0) {
        (void)close(fd);
        return -1;
    }
    set_option(fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_RECVERR : IP_RECVERR, 1);
    set_option(fd, SOL_SOCKET, SO_RCVBUF, RECEIVE_BUFFER);
    set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER); /* with privilege: the full size */
    set_option(fd, SOL_SOCKET, SO_SNDBUF, SEND_BUFFER);
    set_option(fd, SOL_SOCKET, SO_SNDBUFFORCE, SEND_BUFFER);
    return fd;
}

int caller_udp_bind_privileged(void)
{
    struct source_ports ports = source_ports_privileged();
    return open_socket(&ports, 4);
}

/* One of the sockets, opened on first use; NULL: none available now. */
static struct udp_end *open_end(struct caller_udp *udp, uint32_t family, bool is_privileged)
{
    struct udp_end *end = &udp->ends[(is_privileged ? 2 : 0) + (family == 6 ? 1 : 0)];
    if (end->fd >= 0)
        return end;
    int fd = is_privileged && family == 4 ? udp->privileged_fd : 0;
    if (fd == 0)
        fd = open_socket(is_privileged ? &udp->privileged_ports : &udp->ports, family);
    if (fd < 0)
        return NULL;
    if (fd == udp->privileged_fd)
        udp->privileged_fd = 0; /* the end's from here on */
    if (uv_poll_init(udp->loop, &end->poll, fd) != 0) {
        (void)close(fd);
        return NULL;
    }
    end->poll.data = end;
    end->fd = fd;
    watch(end);
    return end;
}

/* The socket for a datagram; NULL: none available now. --source-ports is for calls that leave the
 * machine. */
static struct udp_end *end_of(struct caller_udp *udp, const struct client_action *action)
{
    struct udp_end *end = NULL;
    if (action->is_privileged &&
        (udp->ports.low == 0 || (udp->has_upcalls && address_is_loopback(&action->to))))
        end = open_end(udp, action->to.family, true);
    return end != NULL ? end : open_end(udp, action->to.family, false);
}

/* ---- out ---- */

void caller_udp_flush(struct caller_udp *udp)
{
    bool was_blocked = udp->is_blocked, has_failed = false;
    if (!lease_may_send(rpc_client_lease(udp->client), clock_boot_ns()))
        udp->out_sent = udp->out_count; /* lost, like any datagram */
    udp->is_blocked = false;
    while (udp->out_sent < udp->out_count && !udp->is_blocked) {
        int n = sendmmsg(udp->out_end->fd, udp->out + udp->out_sent, udp->out_count - udp->out_sent,
                         MSG_DONTWAIT);
        if (n > 0) {
            udp->out_sent += (uint32_t)n;
            has_failed = false;
        } else if (errno == EAGAIN) {
            udp->is_blocked = true;
        } else if (errno != EINTR) {
            udp->out_sent += has_failed;
            has_failed = !has_failed;
        }
    }
    if (!udp->is_blocked)
        udp->out_count = udp->out_sent = 0;
    if (udp->is_blocked != was_blocked)
        watch(udp->out_end);
}

bool caller_udp_is_blocked(const struct caller_udp *udp)
{
    return udp->is_blocked;
}

void caller_udp_send(struct caller_udp *udp, const struct client_action *action)
{
    CHECK(!udp->is_blocked);
    CHECK(action->bytes.len <= CALL_MAX);
    struct udp_end *end = end_of(udp, action);
    if (end == NULL || (action->local.family != 0 && action->local.family != action->to.family))
        return;
    if (udp->out_count == BATCH || (udp->out_count > 0 && udp->out_end != end))
        caller_udp_flush(udp);
    if (udp->is_blocked)
        return; /* lost, like any datagram; the client sends it again */
    udp->out_end = end;
    struct mmsghdr *message = &udp->out[udp->out_count];
    struct datagram *data = &udp->out_data[udp->out_count];
    uint8_t *bytes = udp->out_bytes + (size_t)udp->out_count * CALL_MAX;
    memcpy(bytes, action->bytes.at, action->bytes.len);
    datagram_prepare(message, data, bytes, action->bytes.len);
    datagram_send_to(message, data, &action->to, action->port, &action->local);
    udp->out_count++;
}

void caller_udp_close(struct caller_udp *udp)
{
    for (uint32_t i = 0; i < END_COUNT; i++) {
        struct udp_end *end = &udp->ends[i];
        if (end->fd < 0)
            continue;
        uv_close((uv_handle_t *)&end->poll, NULL);
        (void)close(end->fd);
        end->fd = -1;
    }
}

/*
 * udp.c -- recvmmsg and sendmmsg behind uv_poll; see udp.h.
 *
 * One set of buffers serves all sockets: datagrams are handled before the next are read, and
 * replies are collected for one socket at a time. A turn reads at most READ_ROUNDS batches per
 * socket, so that a flood of datagrams cannot starve the connections; the rest makes the socket
 * readable again at once.
 *
 * While the server is busy for everybody and as many datagrams are held as can be, the sockets are
 * not read: a thousand clients that call at once wait in the kernel's buffer for a commit, not for
 * the second after which they call again. When it is not, but one caller has filled the place,
 * reading continues, and what finds no room is lost: nobody else waits for that caller.
 */
#include "wire/udp.h"

#include "base/check.h"
#include "base/minmax.h"
#include "wire/datagram.h"
#include "wire/held.h"
#include "wire/listen.h"
#include "wire/sockaddr.h"

#include <stdlib.h>
#include <unistd.h>

enum {
    BATCH = 64,
    READ_ROUNDS = 8,
    DATAGRAM_MAX = 9000, /* R-DRC-5; one more byte is read, to detect longer ones */
};

struct udp_socket {
    uv_poll_t poll;
    struct udp *udp;
    struct address address; /* bound to */
    int fd;
    bool has_files;
};

struct udp {
    uv_loop_t *loop;
    struct rpc_server *server;
    struct clock *clock;
    struct udp_socket sockets[LISTEN_SOCKETS_MAX];
    uint32_t socket_count;

    struct mmsghdr in[BATCH], out[BATCH];
    struct datagram in_data[BATCH], out_data[BATCH];
    uint8_t *in_bytes, *out_bytes;
    uint32_t reply_max; /* of outgoing data: a reply or a call */
    uint32_t out_count;
    uint64_t out_route; /* the socket of the collected replies */
    bool is_out_gated;  /* they waited for a commit, and may be too late */
    struct held held;   /* datagrams that the server did not take yet */
    bool is_paused;     /* the sockets are not read */
    bool is_quiet;      /* nothing more is taken */
};

struct udp *udp_new(uv_loop_t *loop, struct rpc_server *server, struct clock *clock)
{
    struct udp *udp = calloc(1, sizeof *udp);
    if (udp == NULL)
        return NULL;
    udp->loop = loop;
    udp->server = server;
    udp->clock = clock;
    udp->reply_max = max_u32(rpc_server_reply_max(server), max_u32(UDP_CALL_MAX, DATAGRAM_MAX));
    udp->in_bytes = calloc(BATCH, DATAGRAM_MAX + 1);
    udp->out_bytes = calloc(BATCH, udp->reply_max);
    if (udp->in_bytes == NULL || udp->out_bytes == NULL) {
        udp_free(udp);
        return NULL;
    }
    return udp;
}

void udp_free(struct udp *udp)
{
    if (udp == NULL)
        return;
    held_done(&udp->held);
    free(udp->in_bytes);
    free(udp->out_bytes);
    free(udp);
}

void udp_flush(struct udp *udp)
{
    uint32_t sent = 0;
    if (udp->is_out_gated && !lease_may_send(rpc_server_lease(udp->server), clock_boot_ns()))
        udp->out_count = 0;
    while (sent < udp->out_count) {
        int fd = udp->sockets[udp->out_route].fd;
        int n = sendmmsg(fd, udp->out + sent, udp->out_count - sent, MSG_DONTWAIT);
        /* The first cannot be sent now, or ever: the caller retransmits if it cares. */
        sent += n > 0 ? (uint32_t)n : 1;
    }
    udp->out_count = 0;
}

/* Memory for one reply of at most reply_max bytes through this socket. */
static uint8_t *reserve(struct udp *udp, uint64_t route, bool is_gated)
{
    bool is_other = udp->out_route != route || udp->is_out_gated != is_gated;
    if (udp->out_count == BATCH || (udp->out_count > 0 && is_other))
        udp_flush(udp);
    udp->out_route = route;
    udp->is_out_gated = is_gated;
    return udp->out_bytes + (size_t)udp->out_count * udp->reply_max;
}

static void commit(struct udp *udp, const struct peer *to, uint32_t len)
{
    struct mmsghdr *message = &udp->out[udp->out_count];
    struct datagram *data = &udp->out_data[udp->out_count];
    datagram_prepare(message, data, udp->out_bytes + (size_t)udp->out_count * udp->reply_max, len);
    datagram_send_to(message, data, &to->address, to->port, &to->local);
    udp->out_count++;
}

void udp_send(struct udp *udp, uint64_t route, const struct peer *to, struct bytes message)
{
    CHECK(route < udp->socket_count);
    struct xdr_out out = xdr_out_of(reserve(udp, route, true), udp->reply_max);
    if (message.len <= udp->reply_max)
        xdr_put_fixed(&out, message);
    else
        rpc_msg_put_accepted(&out, load_be32(message.at), RPC_SYSTEM_ERR);
    commit(udp, to, xdr_out_len(&out));
}

/* The socket bound to this address, or to all of its family; NULL: none. */
static const struct udp_socket *find_socket(const struct udp *udp, const struct address *local)
{
    const struct address all = {.family = local->family};
    for (uint32_t i = 0; i < udp->socket_count; i++) {
        const struct address *bound = &udp->sockets[i].address;
        if (address_equal(bound, local) || address_equal(bound, &all))
            return &udp->sockets[i];
    }
    return NULL;
}

void udp_call(struct udp *udp, const struct address *local, const struct address *to, uint16_t port,
              struct bytes message)
{
    CHECK(message.len <= UDP_CALL_MAX);
    const struct udp_socket *socket = find_socket(udp, local);
    if (socket == NULL || local->family != to->family)
        return;
    struct peer peer = {.address = *to, .local = *local, .port = port, .transport = TRANSPORT_UDP};
    udp_send(udp, (uint64_t)(socket - udp->sockets), &peer, message);
}

/* One datagram to the server. False: it cannot be taken now. */
static bool deliver(void *context, const struct rpc_source *from, struct bytes call)
{
    struct udp *udp = context;
    struct xdr_out reply = xdr_out_of(reserve(udp, from->route, false), udp->reply_max);
    enum rpc_verdict verdict = rpc_server_receive(udp->server, from, call, clock_now_ns(udp->clock),
                                                  clock_wall_ns(udp->clock), &reply);
    if (verdict == RPC_ANSWERED || verdict == RPC_ACKNOWLEDGED)
        commit(udp, &from->peer, xdr_out_len(&reply));
    return verdict != RPC_BUSY;
}

static void on_readable(uv_poll_t *poll, int status, int events);

/* Lets in what is held. False: another datagram would be lost, and soon would not be. */
static bool make_room(struct udp *udp)
{
    if (!rpc_server_is_busy(udp->server))
        held_offer(&udp->held, clock_now_ns(udp->clock), deliver, udp);
    return udp->held.count < HELD_MAX || !rpc_server_is_busy(udp->server);
}

static void pause_reading(struct udp *udp)
{
    udp->is_paused = true;
    for (uint32_t i = 0; i < udp->socket_count; i++)
        (void)uv_poll_stop(&udp->sockets[i].poll);
}

void udp_resume(struct udp *udp)
{
    if (udp->is_quiet || !make_room(udp) || !udp->is_paused)
        return;
    udp->is_paused = false;
    for (uint32_t i = 0; i < udp->socket_count; i++)
        CHECK(uv_poll_start(&udp->sockets[i].poll, UV_READABLE, on_readable) == 0);
}

bool udp_is_holding_back(const struct udp *udp)
{
    return udp->held.count > 0;
}

static void handle(struct udp_socket *socket, struct mmsghdr *message, struct datagram *data)
{
    struct udp *udp = socket->udp;
    struct rpc_source from = {.route = (uint64_t)(socket - udp->sockets),
                              .has_files = socket->has_files};
    from.peer.address = sockaddr_address((const struct sockaddr *)&data->peer, &from.peer.port);
    from.peer.local = datagram_asked(message);
    if (from.peer.local.family == 0)
        from.peer.local = socket->address; /* the kernel does not say */
    from.peer.transport = TRANSPORT_UDP;
    if (from.peer.address.family == 0) {
        struct address bare = sockaddr_bare((const struct sockaddr *)&data->peer);
        rpc_server_report(udp->server, EVENT_NO_INTERFACE, &bare);
        return;
    }
    if (from.peer.port == 0)
        return;
    if (message->msg_len > DATAGRAM_MAX || (message->msg_hdr.msg_flags & MSG_TRUNC)) {
        rpc_server_report(udp->server, EVENT_TOO_LONG, &from.peer.address);
        return;
    }
    struct bytes call = {data->content.iov_base, message->msg_len};
    bool is_behind = !rpc_msg_is_reply(call) && held_has(&udp->held, &from.peer.address);
    if (is_behind || !deliver(udp, &from, call))
        held_add(&udp->held, &from, call, clock_now_ns(udp->clock));
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)events;
    struct udp_socket *socket = poll->data;
    struct udp *udp = socket->udp;
    if (status != 0) {
        /* libuv stops polling a socket with an error. Clear the error and restart it. */
        int error;
        socklen_t error_len = sizeof error;
        (void)getsockopt(socket->fd, SOL_SOCKET, SO_ERROR, &error, &error_len);
        CHECK(uv_poll_start(poll, UV_READABLE, on_readable) == 0);
    }
    for (uint32_t round = 0; round < READ_ROUNDS; round++) {
        if (udp->held.count == HELD_MAX && !make_room(udp)) {
            pause_reading(udp);
            break;
        }
        uint32_t max = min_u32(BATCH, max_u32(HELD_MAX - udp->held.count, 1));
        for (uint32_t i = 0; i < max; i++)
            datagram_prepare(&udp->in[i], &udp->in_data[i],
                             udp->in_bytes + (size_t)i * (DATAGRAM_MAX + 1), DATAGRAM_MAX + 1);
        int n = recvmmsg(socket->fd, udp->in, max, MSG_DONTWAIT, NULL);
        if (n > 0)
            clock_heard(udp->clock);
        for (int i = 0; i < n; i++)
            handle(socket, &udp->in[i], &udp->in_data[i]);
        if (n < (int)max)
            break;
    }
    udp_flush(udp);
}

int udp_add(struct udp *udp, int fd, const struct address *address, bool has_files)
{
    CHECK(udp->socket_count < LISTEN_SOCKETS_MAX);
    struct udp_socket *socket = &udp->sockets[udp->socket_count];
    *socket =
        (struct udp_socket){.udp = udp, .address = *address, .fd = fd, .has_files = has_files};
    int err = uv_poll_init(udp->loop, &socket->poll, fd);
    if (err != 0) {
        (void)close(fd);
        return err;
    }
    socket->poll.data = socket;
    udp->socket_count++;
    return uv_poll_start(&socket->poll, UV_READABLE, on_readable);
}

void udp_quiesce(struct udp *udp)
{
    udp->is_quiet = true;
    for (uint32_t i = 0; i < udp->socket_count; i++)
        (void)uv_poll_stop(&udp->sockets[i].poll);
}

void udp_close(struct udp *udp)
{
    for (uint32_t i = 0; i < udp->socket_count; i++) {
        uv_close((uv_handle_t *)&udp->sockets[i].poll, NULL);
        (void)close(udp->sockets[i].fd);
    }
}

/*
 * fake_hosts.c -- see fake_hosts.h.
 *
 * The sockets are bound to the wildcard. Which host was asked is the connection's own address, or
 * for a datagram what IP_PKTINFO says; the answer leaves from there.
 */
#include "fake_hosts.h"

#include "peer/packet.h"
#include "wire/sockaddr.h"

#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { PORTMAPPER = 111, LISTENERS = 3, DATAGRAM_SOCKETS = 2, CONNECTION_BUFFER = 4096 };

struct hosts {
    struct fake_hosts seen; /* first: what the tests see */
    uv_loop_t *loop;
    uv_tcp_t listeners[LISTENERS];
    uv_poll_t datagrams[DATAGRAM_SOCKETS];
    int fds[DATAGRAM_SOCKETS];
    uint32_t hang_ups; /* of FAKE_HANGS_UP */
    uint32_t udp_calls;
};

struct connection {
    uv_tcp_t handle;
    uv_write_t write;
    struct hosts *hosts;
    struct address host, peer;
    uint16_t peer_port;
    bool is_portmapper;
    uint8_t in[CONNECTION_BUFFER];
    uint32_t in_len;
    uint8_t *out; /* being written */
    uint32_t out_len, out_at;
    uv_timer_t dribble;
    bool is_closed;
    uint32_t handles; /* that libuv still has */
};

struct address fake_host(enum fake_kind kind, uint32_t number)
{
    const uint8_t bytes[] = {127, (uint8_t)kind, (uint8_t)(number >> 8), (uint8_t)number};
    return address_v4(bytes);
}

static enum fake_kind kind_of(const struct address *host)
{
    return host->family == 4 ? (enum fake_kind)host->bytes[1] : FAKE_TCP;
}

uint32_t fake_hosts_calls(const struct fake_hosts *hosts, const struct address *host)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < hosts->call_count; i++)
        count += address_equal(&hosts->calls[i].host, host);
    return count;
}

bool fake_hosts_enter_network(void)
{
    if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
        return false;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    bool is_up = fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &request) == 0;
    (void)close(fd);
    return is_up;
}

/* ---- what they answer ---- */

/* The port of the service on this transport, as the host's portmapper has it. */
static uint32_t registered_port(enum fake_kind kind, uint32_t prot)
{
    switch (kind) {
    case FAKE_UDP:
    case FAKE_TOO_LATE:
        return prot == 17 ? FAKE_UDP_PORT : 0;
    case FAKE_NOT_REGISTERED:
        return 0;
    case FAKE_REFUSES:
        return prot == 6 ? FAKE_DEAD_PORT : 0;
    case FAKE_REFUSES_UDP:
        return prot == 17 ? FAKE_DEAD_PORT : 0;
    case FAKE_TCP:
    case FAKE_LOOKUP_TCP:
    case FAKE_SILENT:
    case FAKE_HANGS_UP:
    case FAKE_NEVER_ANSWERS:
    case FAKE_DRIBBLES:
    case FAKE_FLOODS:
    case FAKE_ENDS:
    case FAKE_CUTS:
    case FAKE_KINDS:
        break;
    }
    return prot == 6 ? FAKE_TCP_PORT : 0;
}

static void put_accepted(struct packet *reply, uint32_t xid)
{
    packet_clear(reply);
    const uint32_t words[] = {xid, 1, 0, 0, 0, 0};
    for (uint32_t i = 0; i < 6; i++)
        packet_put_u32(reply, words[i]);
}

/* Reads a call header; the arguments are left. Anything odd fails the test. */
static uint32_t read_call(struct packet_reader *reader, uint32_t prog, uint32_t vers, uint32_t proc)
{
    uint32_t xid = packet_get_u32(reader);
    const uint32_t expected[] = {0, 2, prog, vers, proc, 0, 0, 0, 0};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        assert_int_equal(packet_get_u32(reader), expected[i]);
    assert_false(reader->failed);
    return xid;
}

static void answer_question(enum fake_kind kind, const uint8_t *bytes, uint32_t len,
                            struct packet *reply)
{
    struct packet_reader reader = {bytes, len, false};
    uint32_t xid = read_call(&reader, 100000, 2, 3);
    assert_int_equal(packet_get_u32(&reader), FAKE_PROG);
    assert_int_equal(packet_get_u32(&reader), FAKE_VERS);
    uint32_t prot = packet_get_u32(&reader);
    assert_int_equal(packet_get_u32(&reader), 0);
    assert_true(packet_is_done(&reader));
    put_accepted(reply, xid);
    packet_put_u32(reply, registered_port(kind, prot));
}

static void take_call(struct hosts *hosts, struct fake_call *call, const uint8_t *bytes,
                      uint32_t len, struct packet *reply)
{
    struct packet_reader reader = {bytes, len, false};
    uint32_t xid = read_call(&reader, FAKE_PROG, FAKE_VERS, FAKE_PROC);
    call->args_len = reader.left;
    call->argument = packet_get_u32(&reader);
    assert_in_range(hosts->seen.call_count, 0, FAKE_SEEN_MAX - 1);
    hosts->seen.calls[hosts->seen.call_count++] = *call;
    put_accepted(reply, xid);
}

/* ---- UDP ---- */

static void answer_datagram(struct hosts *hosts, int fd, struct msghdr *message, uint32_t len)
{
    static struct packet reply;
    struct fake_call call = {.is_udp = true};
    call.from = sockaddr_address(message->msg_name, &call.from_port);
    struct cmsghdr *c = CMSG_FIRSTHDR(message);
    assert_non_null(c);
    assert_int_equal(c->cmsg_type, IP_PKTINFO);
    struct in_pktinfo info;
    memcpy(&info, CMSG_DATA(c), sizeof info);
    uint8_t host_bytes[4];
    memcpy(host_bytes, &info.ipi_spec_dst, 4);
    call.host = address_v4(host_bytes);
    enum fake_kind kind = kind_of(&call.host);
    const uint8_t *bytes = message->msg_iov->iov_base;
    if (fd == hosts->fds[0]) {
        hosts->seen.question_count++;
        hosts->seen.last_asker = call.from;
        hosts->seen.last_asker_port = call.from_port;
        if (kind == FAKE_LOOKUP_TCP || kind == FAKE_SILENT)
            return;
        answer_question(kind, bytes, len, &reply);
    } else {
        take_call(hosts, &call, bytes, len, &reply);
        if (kind == FAKE_TOO_LATE && ++hosts->udp_calls < 3)
            return;
    }
    struct iovec content = {reply.bytes, reply.len};
    struct msghdr out = *message; /* back to where it came from, from where it went */
    out.msg_iov = &content;
    (void)sendmsg(fd, &out, MSG_DONTWAIT);
}

static void on_datagrams(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    struct hosts *hosts = poll->data;
    int fd = hosts->fds[poll - hosts->datagrams];
    for (;;) {
        static uint8_t bytes[4096];
        _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(struct in_pktinfo))] = {0};
        struct sockaddr_storage peer;
        struct iovec content = {bytes, sizeof bytes};
        struct msghdr message = {.msg_name = &peer,
                                 .msg_namelen = sizeof peer,
                                 .msg_iov = &content,
                                 .msg_iovlen = 1,
                                 .msg_control = control,
                                 .msg_controllen = sizeof control};
        ssize_t n = recvmsg(fd, &message, MSG_DONTWAIT);
        if (n < 0)
            return;
        answer_datagram(hosts, fd, &message, (uint32_t)n);
    }
}

static void open_datagrams(struct hosts *hosts, uint32_t i, uint16_t port)
{
    struct address any = {.family = 4};
    struct sockaddr_storage at;
    socklen_t at_len = sockaddr_of(&any, port, &at);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1, size = 8 << 20;
    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof on), 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
    assert_int_equal(bind(fd, (const struct sockaddr *)&at, at_len), 0);
    hosts->fds[i] = fd;
    assert_int_equal(uv_poll_init(hosts->loop, &hosts->datagrams[i], fd), 0);
    hosts->datagrams[i].data = hosts;
    assert_int_equal(uv_poll_start(&hosts->datagrams[i], UV_READABLE, on_datagrams), 0);
}

/* ---- TCP ---- */

static void on_closed(uv_handle_t *handle)
{
    struct connection *connection = handle->data;
    if (--connection->handles > 0)
        return;
    free(connection->out);
    free(connection);
}

static void close_connection(struct connection *connection)
{
    if (connection->is_closed)
        return;
    connection->is_closed = true;
    connection->hosts->seen.open_count--;
    uv_close((uv_handle_t *)&connection->handle, on_closed);
    uv_close((uv_handle_t *)&connection->dribble, on_closed);
}

static void on_written(uv_write_t *write, int status)
{
    (void)write;
    (void)status;
}

static void on_dribble(uv_timer_t *timer)
{
    struct connection *connection = timer->data;
    if (connection->out_at == connection->out_len) {
        (void)uv_timer_stop(timer);
        return;
    }
    uv_buf_t one = uv_buf_init((char *)connection->out + connection->out_at++, 1);
    (void)uv_try_write((uv_stream_t *)&connection->handle, &one, 1);
}

static uint8_t *put_mark(uint8_t *at, uint32_t mark)
{
    for (uint32_t i = 0; i < 4; i++)
        at[i] = (uint8_t)(mark >> (24 - 8 * i));
    return at + 4;
}

static int fd_of(const struct connection *connection)
{
    uv_os_fd_t fd = -1;
    assert_int_equal(uv_fileno((const uv_handle_t *)&connection->handle, &fd), 0);
    return fd;
}

/* A reply as one record; or in two fragments, one byte at a time; or far too much. */
static void send_reply(struct connection *connection, const struct packet *reply)
{
    enum fake_kind kind = kind_of(&connection->host);
    free(connection->out);
    connection->out_len = reply->len + 4;
    connection->out_at = 0;
    if (kind == FAKE_FLOODS && !connection->is_portmapper)
        connection->out_len = 1 << 20;
    connection->out = calloc(1, connection->out_len + 4);
    assert_non_null(connection->out);
    uint8_t *at = connection->out;
    if (kind == FAKE_DRIBBLES && !connection->is_portmapper) {
        connection->out_len += 4;
        at = put_mark(at, 8);
        memcpy(at, reply->bytes, 8);
        at = put_mark(at + 8, 0x80000000 | (reply->len - 8));
        memcpy(at, reply->bytes + 8, reply->len - 8);
        assert_int_equal(uv_timer_start(&connection->dribble, on_dribble, 0, 1), 0);
        return;
    }
    at = put_mark(at, 0x80000000 | (connection->out_len - 4));
    memcpy(at, reply->bytes, reply->len);
    bool ends = kind == FAKE_ENDS || kind == FAKE_CUTS;
    if (kind == FAKE_CUTS)
        connection->out_len /= 2;
    uv_buf_t buffer = uv_buf_init((char *)connection->out, connection->out_len);
    if (ends) {
        (void)uv_try_write((uv_stream_t *)&connection->handle, &buffer, 1);
        (void)shutdown(fd_of(connection), SHUT_WR); /* it still hears how we end ours */
        return;
    }
    (void)uv_write(&connection->write, (uv_stream_t *)&connection->handle, &buffer, 1, on_written);
}

static void take_record(struct connection *connection, const uint8_t *bytes, uint32_t len)
{
    static struct packet reply;
    struct hosts *hosts = connection->hosts;
    enum fake_kind kind = kind_of(&connection->host);
    if (connection->is_portmapper) {
        if (kind == FAKE_SILENT)
            return;
        answer_question(kind, bytes, len, &reply);
    } else {
        struct fake_call call = {
            .host = connection->host, .from = connection->peer, .from_port = connection->peer_port};
        take_call(hosts, &call, bytes, len, &reply);
        if (kind == FAKE_NEVER_ANSWERS)
            return;
        if (kind == FAKE_HANGS_UP && (hosts->hang_ups++ == 0 || connection->host.bytes[3] != 1)) {
            close_connection(connection);
            return;
        }
    }
    send_reply(connection, &reply);
}

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *ret)
{
    (void)size;
    struct connection *connection = handle->data;
    *ret = uv_buf_init((char *)connection->in + connection->in_len,
                       CONNECTION_BUFFER - connection->in_len);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer)
{
    (void)buffer;
    struct connection *connection = stream->data;
    if (n < 0) {
        connection->hosts->seen.reset_count += n == UV_ECONNRESET;
        close_connection(connection);
        return;
    }
    connection->in_len += (uint32_t)n;
    while (connection->in_len >= 4 && !connection->is_closed) {
        const uint8_t *in = connection->in;
        uint32_t mark = packet_xid(in, 4);
        assert_true(mark & 0x80000000); /* calls come in one fragment */
        uint32_t len = mark & 0x7fffffff;
        if (connection->in_len < len + 4)
            return;
        take_record(connection, in + 4, len);
        connection->in_len -= len + 4;
        memmove(connection->in, connection->in + len + 4, connection->in_len);
    }
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct hosts *hosts = listener->data;
    assert_int_equal(status, 0);
    struct connection *connection = calloc(1, sizeof *connection);
    assert_non_null(connection);
    connection->hosts = hosts;
    connection->is_portmapper = listener == (uv_stream_t *)&hosts->listeners[0];
    connection->handles = 2;
    assert_int_equal(uv_tcp_init(hosts->loop, &connection->handle), 0);
    assert_int_equal(uv_timer_init(hosts->loop, &connection->dribble), 0);
    connection->handle.data = connection->dribble.data = connection;
    hosts->seen.open_count++;
    struct sockaddr_storage at = {0};
    int at_len = sizeof at;
    uint16_t port;
    if (uv_accept(listener, (uv_stream_t *)&connection->handle) != 0 ||
        uv_tcp_getpeername(&connection->handle, (struct sockaddr *)&at, &at_len) != 0) {
        close_connection(connection); /* gone before it was accepted */
        return;
    }
    connection->peer = sockaddr_address((struct sockaddr *)&at, &connection->peer_port);
    at_len = sizeof at;
    assert_int_equal(uv_tcp_getsockname(&connection->handle, (struct sockaddr *)&at, &at_len), 0);
    connection->host = sockaddr_address((struct sockaddr *)&at, &port);
    char first;
    hosts->seen.laden_count += recv(fd_of(connection), &first, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
    assert_int_equal(uv_read_start((uv_stream_t *)&connection->handle, on_alloc, on_read), 0);
}

static void open_listener(struct hosts *hosts, uint32_t i, uint32_t family, uint16_t port)
{
    struct address any = {.family = family};
    struct sockaddr_storage at;
    (void)sockaddr_of(&any, port, &at);
    assert_int_equal(uv_tcp_init(hosts->loop, &hosts->listeners[i]), 0);
    hosts->listeners[i].data = hosts;
    unsigned flags = family == 6 ? UV_TCP_IPV6ONLY : 0;
    assert_int_equal(uv_tcp_bind(&hosts->listeners[i], (const struct sockaddr *)&at, flags), 0);
    assert_int_equal(uv_listen((uv_stream_t *)&hosts->listeners[i], 4096, on_connection), 0);
}

struct fake_hosts *fake_hosts_new(uv_loop_t *loop)
{
    struct hosts *hosts = calloc(1, sizeof *hosts);
    assert_non_null(hosts);
    hosts->loop = loop;
    open_datagrams(hosts, 0, PORTMAPPER);
    open_datagrams(hosts, 1, FAKE_UDP_PORT);
    open_listener(hosts, 0, 4, PORTMAPPER);
    open_listener(hosts, 1, 4, FAKE_TCP_PORT);
    open_listener(hosts, 2, 6, FAKE_HINT_V6);
    return &hosts->seen;
}

void fake_hosts_close(struct fake_hosts *seen)
{
    struct hosts *hosts = (struct hosts *)(void *)seen;
    for (uint32_t i = 0; i < LISTENERS; i++)
        uv_close((uv_handle_t *)&hosts->listeners[i], NULL);
    for (uint32_t i = 0; i < DATAGRAM_SOCKETS; i++) {
        uv_close((uv_handle_t *)&hosts->datagrams[i], NULL);
        (void)close(hosts->fds[i]);
    }
}

void fake_hosts_free(struct fake_hosts *hosts)
{
    free(hosts);
}

/*
 * caller_tcp.c -- non-blocking sockets that live for one call; see caller_tcp.h.
 *
 *   connect ---> CONNECTING ---> OPEN ---> (closed: told to, lost, or at the peer's end)
 *                    |
 *                    v refused: (closed)
 *
 * Plain sockets rather than uv_tcp: several local ports may have to be tried before the kernel
 * takes a connection from one, and after a restart ten thousand hosts are told at once, so that the
 * system calls and packets of a connection are what that takes. They are watched by one set
 * (readiness.h). The acknowledgement of the other side's SYN leaves with the call, so that it wakes
 * up once for a connection that has something to read; that of the reply with our FIN, if we close
 * within the 40 ms that the kernel keeps it back (TCP_QUICKACK off).
 *
 * Local ports: a socket bound only to an address gets its port from the kernel when it connects
 * (IP_BIND_ADDRESS_NO_PORT), and must then differ only from connections to the same host. With
 * --source-ports the ports of the range are taken in turn, and so are the privileged ones for calls
 * that ask for one; SO_REUSEADDR lets many connections to different hosts share a port.
 *
 * After the reply we close first, and gracefully: waiting for the peer to close would hold a
 * descriptor for as long as it likes. So the kernel keeps our end in TIME_WAIT for a minute: a few
 * hundred bytes and one pair of ports with one host. A reset would avoid that, but the other end
 * would see a failure.
 *
 * Every other close is a reset, with SO_LINGER 0 from the start, so that even a killed process ends
 * like that: after a plain close() the kernel would keep delivering what was written for many
 * minutes, and a GRANTED that arrives then is taken for the reply to another request (decision
 * 020).
 */
#include "wire/caller_tcp.h"

#include "base/check.h"
#include "base/list.h"
#include "codec/record_mark.h"
#include "wire/readiness.h"
#include "wire/sockaddr.h"
#include "wire/source_port.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    RECORD_MAX = 4096, /* replies are short */
    READ_MAX = 8192,
    PORT_TRIES = 512, /* per connection; the next one continues from there */
};

struct link {
    struct caller_tcp *tcp;
    struct list by_id; /* tcp->links */
    uint64_t id;
    int fd;
    bool is_open;
    bool may_meet_itself; /* it connects from the address that it connects to */
    struct record_reader reader;
    uint8_t *unsent; /* what the kernel did not take yet */
    size_t unsent_len;
};

struct caller_tcp {
    uv_loop_t *loop;
    struct rpc_client *client;
    struct clock *clock;
    struct source_ports ports, privileged_ports;
    struct readiness readiness; /* of all links */
    struct list *links;         /* chains by id */
    uint32_t links_mask;
    uint8_t read_buffer[READ_MAX]; /* shared: input is handled before the next read */
};

static void on_ready(void *context, uint64_t id, struct readiness_events events);

struct caller_tcp *caller_tcp_new(uv_loop_t *loop, struct rpc_client *client, struct clock *clock,
                                  const struct caller_options *options)
{
    struct caller_tcp *tcp = calloc(1, sizeof *tcp);
    if (tcp == NULL)
        return NULL;
    tcp->loop = loop;
    tcp->client = client;
    tcp->clock = clock;
    tcp->ports =
        (struct source_ports){.low = options->source_port_low, .high = options->source_port_high};
    tcp->privileged_ports = source_ports_privileged();
    readiness_init(&tcp->readiness, on_ready, tcp);
    uint32_t chain_count = 16;
    while (chain_count < rpc_client_connections_max(client) && chain_count < UINT32_C(1) << 20)
        chain_count *= 2;
    tcp->links_mask = chain_count - 1;
    tcp->links = calloc(chain_count, sizeof *tcp->links);
    if (tcp->links == NULL) {
        caller_tcp_free(tcp);
        return NULL;
    }
    for (uint32_t i = 0; i < chain_count; i++)
        list_init(&tcp->links[i]);
    return tcp;
}

void caller_tcp_free(struct caller_tcp *tcp)
{
    if (tcp == NULL)
        return;
    free(tcp->links);
    free(tcp);
}

static struct link *find(const struct caller_tcp *tcp, uint64_t id)
{
    struct list *chain = &tcp->links[(uint32_t)id & tcp->links_mask];
    for (struct list *at = chain->next; at != chain; at = at->next) {
        struct link *link = LIST_ELEMENT(at, struct link, by_id);
        if (link->id == id)
            return link;
    }
    return NULL;
}

/* ---- closing ---- */

static bool set_linger(int fd, bool is_abort)
{
    const struct linger linger = {.l_onoff = is_abort, .l_linger = 0};
    return setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger) == 0;
}

static void close_link(struct link *link, bool is_abort)
{
    if (!is_abort)
        (void)set_linger(link->fd, false); /* if refused, the close is a reset, which is safe */
    list_remove(&link->by_id);
    (void)close(link->fd);
    free(link->unsent);
    free(link->reader.buffer);
    free(link);
}

/* False, for those who say so themselves: the link is gone. */
static bool lose(struct link *link)
{
    struct caller_tcp *tcp = link->tcp;
    uint64_t id = link->id;
    close_link(link, true);
    rpc_client_lost(tcp->client, id, clock_now_ns(tcp->clock));
    return false;
}

void caller_tcp_disconnect(struct caller_tcp *tcp, const struct client_action *action)
{
    struct link *link = find(tcp, action->connection);
    if (link != NULL)
        close_link(link, action->is_abort);
}

void caller_tcp_close(struct caller_tcp *tcp)
{
    for (uint32_t i = 0; i <= tcp->links_mask; i++)
        for (struct list *at = tcp->links[i].next; at != &tcp->links[i];) {
            struct link *link = LIST_ELEMENT(at, struct link, by_id);
            at = at->next;
            close_link(link, true);
        }
    readiness_close(&tcp->readiness);
}

/* ---- reading and writing ---- */

/* False: the link is gone. */
static bool take(struct link *link, struct bytes input)
{
    struct caller_tcp *tcp = link->tcp;
    struct bytes record;
    clock_heard(tcp->clock);
    for (;;) {
        switch (record_reader_next(&link->reader, &input, &record)) {
        case RECORD_READ_WHOLE:
            rpc_client_record(tcp->client, link->id, record, clock_now_ns(tcp->clock));
            break;
        case RECORD_READ_NEED_BUFFER:
            link->reader.buffer = malloc(RECORD_MAX);
            link->reader.buffer_len = RECORD_MAX;
            if (link->reader.buffer == NULL)
                return lose(link);
            break;
        case RECORD_READ_TOO_LONG:
            return lose(link);
        case RECORD_READ_MORE:
            return true;
        }
    }
}

/*
 * All there is: it is told once. What does not fill the buffer was the last of it. The end that
 * follows is looked at in another turn: by then what was read may have ended the call, whose
 * connection is closed gracefully. False: the link is gone.
 */
static bool read_all(struct link *link, bool is_ended)
{
    uint8_t *buffer = link->tcp->read_buffer;
    for (;;) {
        ssize_t n = recv(link->fd, buffer, READ_MAX, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return true;
        if (n <= 0)
            return lose(link);
        if (!take(link, (struct bytes){buffer, (uint32_t)n}))
            return false;
        if (n < READ_MAX && is_ended)
            return readiness_again(&link->tcp->readiness, link->fd, link->id) == 0 || lose(link);
        if (n < READ_MAX)
            return true;
    }
}

/* False: the connection failed. */
static bool write_bytes(struct link *link, const uint8_t *at, size_t len, size_t *ret_left)
{
    if (!lease_may_send(rpc_client_lease(link->tcp->client), clock_boot_ns()))
        return false;
    while (len > 0) {
        ssize_t n = send(link->fd, at, len, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN)
            return false;
        if (n < 0)
            break;
        at += n;
        len -= (size_t)n;
    }
    *ret_left = len;
    return true;
}

/* False: the link is gone. */
static bool write_unsent(struct link *link)
{
    size_t left;
    if (!write_bytes(link, link->unsent, link->unsent_len, &left))
        return lose(link);
    memmove(link->unsent, link->unsent + link->unsent_len - left, left);
    link->unsent_len = left;
    return true;
}

void caller_tcp_write(struct caller_tcp *tcp, const struct client_action *action)
{
    struct link *link = find(tcp, action->connection);
    if (link == NULL)
        return;
    size_t left = action->bytes.len;
    if (link->unsent_len == 0 && !write_bytes(link, action->bytes.at, left, &left)) {
        (void)lose(link);
        return;
    }
    if (left == 0)
        return;
    uint8_t *unsent = realloc(link->unsent, link->unsent_len + left);
    if (unsent == NULL) {
        (void)lose(link);
        return;
    }
    memcpy(unsent + link->unsent_len, action->bytes.at + action->bytes.len - left, left);
    link->unsent = unsent;
    link->unsent_len += left;
}

/* ---- connecting ---- */

static bool set_option(int fd, int level, int name, int value)
{
    return setsockopt(fd, level, name, &value, sizeof value) == 0;
}

/*
 * True when a socket is connected to itself: the kernel gave it the port it connects to, on one of
 * our own addresses, where nobody listens.
 */
static bool is_own_peer(int fd)
{
    struct sockaddr_storage self, peer;
    socklen_t self_len = sizeof self, peer_len = sizeof peer;
    return getsockname(fd, (struct sockaddr *)&self, &self_len) == 0 &&
           getpeername(fd, (struct sockaddr *)&peer, &peer_len) == 0 && self_len == peer_len &&
           memcmp(&self, &peer, self_len) == 0;
}

/* False: the link is gone. */
static bool end_connecting(struct link *link, struct readiness_events events)
{
    struct caller_tcp *tcp = link->tcp;
    uint64_t id = link->id;
    bool is_open = link->is_open =
        !events.has_failed && !(link->may_meet_itself && is_own_peer(link->fd));
    if (!is_open)
        close_link(link, true);
    rpc_client_connected(tcp->client, id, is_open, clock_now_ns(tcp->clock));
    return is_open;
}

static void on_ready(void *context, uint64_t id, struct readiness_events events)
{
    struct link *link = find(context, id);
    if (link == NULL)
        return;
    if (!link->is_open && !(events.is_writable || events.has_failed))
        return;
    if (!link->is_open && !end_connecting(link, events))
        return;
    if (link->unsent_len > 0 && events.is_writable && !write_unsent(link))
        return;
    bool is_ended = events.is_ended && !events.has_failed;
    if ((events.is_readable || events.has_failed) && !read_all(link, is_ended))
        return;
    if (events.has_failed)
        (void)lose(link); /* all its input was read */
}

/* Gives the socket its local address and port. 0 or a negative errno. */
static int bind_local(int fd, const struct address *local, uint32_t family, uint16_t port)
{
    struct address any = {.family = family};
    struct sockaddr_storage at;
    socklen_t at_len = sockaddr_of(local->family != 0 ? local : &any, port, &at);
    if (port != 0) {
        if (!set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1))
            return -errno;
    } else if (local->family == 0) {
        return 0;
    } else {
        (void)set_option(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT,
                         1); /* without, ports are scarcer */
    }
    return bind(fd, (const struct sockaddr *)&at, at_len) == 0 ? 0 : -errno;
}

/* A socket that connects from this local port, or a negative errno. */
static int connect_from(const struct client_action *action, uint16_t local_port, bool is_shared)
{
    struct sockaddr_storage to;
    socklen_t to_len = sockaddr_of(&action->to, action->port, &to);
    int fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    /* Nothing of ours waits for an acknowledgement: a call is one write, and follows the reply to
     * the one before. */
    (void)set_option(fd, IPPROTO_TCP, TCP_QUICKACK, 0);
    if (!set_linger(fd, true)) {
        int err = -errno;
        (void)close(fd);
        return err;
    }
    /* Even after a close or the end of the process: with a shared store an unacknowledged GRANTED
     * must not reach its host once another server has taken over (clock.h). */
    if (is_shared)
        (void)set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, (int)lease_kept_ms());
    int err = bind_local(fd, &action->local, action->to.family, local_port);
    if (err == 0 && connect(fd, (const struct sockaddr *)&to, to_len) != 0 && errno != EINPROGRESS)
        err = errno == EADDRNOTAVAIL ? -EADDRINUSE : -errno; /* that pair of ports is in use */
    if (err == 0)
        return fd;
    (void)close(fd);
    return err;
}

/* The same from the next ports of a range, until one works. */
static int connect_from_one_of(const struct client_action *action, struct source_ports *ports,
                               bool is_shared)
{
    uint32_t count = source_ports_count(ports);
    int result = -EADDRINUSE;
    for (uint32_t i = 0; i < count && i < PORT_TRIES && result == -EADDRINUSE; i++)
        result = connect_from(action, source_ports_next(ports), is_shared);
    return result;
}

static int open_socket(struct caller_tcp *tcp, const struct client_action *action)
{
    bool is_shared = lease_is_shared(rpc_client_lease(tcp->client));
    if (action->local.family != 0 && action->local.family != action->to.family)
        return -EAFNOSUPPORT;
    if (action->is_privileged && tcp->ports.low == 0) {
        int result = connect_from_one_of(action, &tcp->privileged_ports, is_shared);
        if (result != -EACCES && result != -EADDRINUSE)
            return result;
    }
    return connect_from_one_of(action, &tcp->ports, is_shared);
}

void caller_tcp_connect(struct caller_tcp *tcp, const struct client_action *action)
{
    uint64_t id = action->connection;
    struct link *link = NULL;
    int fd = open_socket(tcp, action);
    if (fd >= 0)
        link = calloc(1, sizeof *link);
    if (link == NULL || readiness_add(&tcp->readiness, tcp->loop, fd, id) != 0) {
        free(link);
        if (fd >= 0)
            (void)close(fd);
        rpc_client_connected(tcp->client, id, false, clock_now_ns(tcp->clock));
        return;
    }
    link->tcp = tcp;
    link->id = id;
    link->fd = fd;
    link->may_meet_itself = action->local.family == 0 || address_equal(&action->local, &action->to);
    record_reader_init(&link->reader, RECORD_MAX);
    list_append(&tcp->links[(uint32_t)id & tcp->links_mask], &link->by_id);
}

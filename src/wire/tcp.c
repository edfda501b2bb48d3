/*
 * tcp.c -- listeners, the limit on connections, and idle ones; see tcp.h.
 *
 * Locks and registrations belong to clients, not connections (clients close idle ones all the
 * time), so a connection may be closed whenever nothing is in flight on it:
 *
 *  - when the limit is reached, the longest idle one makes room for the new one: neither a crowd of
 *    idle connections nor some whose calls take long can lock honest callers out;
 *  - after IDLE_NS without a word;
 *  - after PEER_WAIT_NS inside one record, or without reading its answers: a caller that sends one
 *    byte a second, or never reads, does not keep its buffers for long; where memory for calls is
 *    short (ROOM_LOW), after SHORT_WAIT_NS: others wait for it. A pipe it has for that time only.
 */
#include "wire/tcp.h"

#include "base/check.h"
#include "base/units.h"
#include "wire/sockaddr.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define IDLE_NS       (600 * SECOND_NS)
#define PEER_WAIT_NS  (60 * SECOND_NS)
#define SHORT_WAIT_NS (5 * SECOND_NS)
#define ROOM_LOW      (UINT64_C(4) * CONNECTION_WEIGHT_MAX)

enum {
    BACKLOG = 1024,
    SWEEP_MS = 5000,
    KEEPALIVE_SECONDS = 60,
};

struct tcp *tcp_new(uv_loop_t *loop, struct rpc_server *server, struct clock *clock,
                    uint32_t connections_max)
{
    struct tcp *tcp = calloc(1, sizeof *tcp);
    if (tcp == NULL)
        return NULL;
    *tcp = (struct tcp){
        .loop = loop, .server = server, .clock = clock, .connections_max = connections_max};
    list_init(&tcp->by_activity);
    list_init(&tcp->idle);
    list_init(&tcp->waiting_for_peer);
    list_init(&tcp->unflushed);
    list_init(&tcp->paused);
    buffers_init(&tcp->buffers, rpc_server_record_max(server, true));
    tcp->read_buffer = malloc(CONNECTION_READ_MAX_FILES); /* the larger one */
    tcp->spare = calloc(1, sizeof *tcp->spare);
    if (tcp->read_buffer == NULL || tcp->spare == NULL ||
        table_init(&tcp->connections, connections_max, sizeof(struct connection *)) != 0) {
        tcp_free(tcp);
        return NULL;
    }
    CHECK(uv_timer_init(loop, &tcp->sweep) == 0);
    tcp->sweep.data = tcp;
    return tcp;
}

void tcp_free(struct tcp *tcp)
{
    if (tcp == NULL)
        return;
    free(tcp->read_buffer);
    buffers_done(&tcp->buffers);
    free(tcp->spare);
    table_done(&tcp->connections);
    free(tcp);
}

static struct connection *connection_of(const struct tcp *tcp, uint64_t route)
{
    uint32_t slot = table_find(&tcp->connections, route);
    return slot == SLOT_NONE ? NULL : *(struct connection **)table_at(&tcp->connections, slot);
}

/* Makes room for a new connection if possible. */
static bool evict_one(struct tcp *tcp)
{
    if (list_is_empty(&tcp->idle))
        return false;
    struct connection *c = LIST_ELEMENT(tcp->idle.next, struct connection, by_idle);
    rpc_server_report(tcp->server, EVENT_EVICTED, &c->source.peer.address);
    connection_close(c);
    return true;
}

/* Family 0: already gone, or unidentified; *ret_bare has what is known. */
static struct peer peer_of(const uv_tcp_t *handle, struct address *ret_bare)
{
    struct sockaddr_storage remote = {0}, local = {0};
    int remote_len = sizeof remote, local_len = sizeof local;
    struct peer peer = {.transport = TRANSPORT_TCP};
    uint16_t local_port;
    *ret_bare = (struct address){0};
    if (uv_tcp_getpeername(handle, (struct sockaddr *)&remote, &remote_len) != 0 ||
        uv_tcp_getsockname(handle, (struct sockaddr *)&local, &local_len) != 0)
        return peer;
    peer.address = sockaddr_address((const struct sockaddr *)&remote, &peer.port);
    peer.local = sockaddr_address((const struct sockaddr *)&local, &local_port);
    *ret_bare = sockaddr_bare((const struct sockaddr *)&remote);
    return peer;
}

/* Its memory is the next spare, if there is none. */
static void free_handle(uv_handle_t *handle)
{
    struct connection *c = handle->data;
    struct tcp *tcp = c->tcp;
    if (tcp->spare != NULL) {
        free(c);
        return;
    }
    *c = (struct connection){0};
    tcp->spare = c;
}

/* Accepted only to be closed: there is no other way to take a connection out of the queue. */
static void turn_away(struct connection *c, enum event_kind why, const struct address *who)
{
    rpc_server_report(c->tcp->server, why, who);
    c->handle.data = c;
    uv_close((uv_handle_t *)&c->handle, free_handle);
}

/*
 * Data in the kernel for a peer that does not acknowledge is dropped with the connection: with a
 * shared store nothing leaves long after its commit (base/lease.h). And nothing outlives the
 * process: a connection that ends while the kernel has replies to deliver is reset, even if we are
 * killed.
 */
static void limit_waiting(const struct connection *c)
{
    uv_os_fd_t fd = -1;
    const unsigned wait_ms = lease_kept_ms();
    const struct linger reset = {.l_onoff = 1, .l_linger = 0};
    if (!lease_is_shared(rpc_server_lease(c->tcp->server)) ||
        uv_fileno((const uv_handle_t *)&c->handle, &fd) != 0)
        return;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &wait_ms, sizeof wait_ms);
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
}

void tcp_part(const struct connection *c)
{
    uv_os_fd_t fd = -1;
    int undelivered = 1;
    const struct linger orderly = {0};
    if (lease_is_shared(rpc_server_lease(c->tcp->server)) &&
        uv_fileno((const uv_handle_t *)&c->handle, &fd) == 0 &&
        ioctl(fd, SIOCOUTQ, &undelivered) == 0 && undelivered == 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &orderly, sizeof orderly);
}

/*
 * Inside this machine there is no network to be spared. bbr holds long replies back even there,
 * with a timer for each piece: half their speed, and more work for them. Reno does not, and every
 * kernel has it and lets everybody choose it.
 */
static void free_from_pacing(const struct connection *c)
{
    static const char algorithm[] = "reno";
    const struct peer *peer = &c->source.peer;
    uv_os_fd_t fd = -1;
    if ((address_is_loopback(&peer->address) || address_equal(&peer->address, &peer->local)) &&
        uv_fileno((const uv_handle_t *)&c->handle, &fd) == 0)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, algorithm, sizeof algorithm - 1);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct tcp *tcp = listener->data;
    if (status != 0)
        return;
    clock_heard(tcp->clock);
    struct connection *c = tcp->spare; /* not accepting at all would stop the listener forever */
    if (c == NULL)
        return;
    tcp->spare = calloc(1, sizeof *tcp->spare);
    bool is_last = tcp->spare == NULL; /* without memory for another, this one is rejected */
    c->tcp = tcp;
    CHECK(uv_tcp_init(tcp->loop, &c->handle) == 0);
    struct address bare = {0};
    if (uv_accept(listener, (uv_stream_t *)&c->handle) != 0) {
        turn_away(c, EVENT_TURNED_AWAY, &bare);
        return;
    }
    c->source.peer = peer_of(&c->handle, &bare);
    c->source.has_files = tcp->listener_has_files[(uv_tcp_t *)listener - tcp->listeners];
    if (is_last || c->source.peer.address.family == 0 ||
        (tcp->connections.count == tcp->connections_max && !evict_one(tcp))) {
        bool is_nobody = c->source.peer.address.family == 0;
        turn_away(c, is_nobody && bare.family != 0 ? EVENT_NO_INTERFACE : EVENT_TURNED_AWAY,
                  is_nobody ? &bare : &c->source.peer.address);
        return;
    }
    (void)uv_tcp_nodelay(&c->handle, 1);
    limit_waiting(c);
    free_from_pacing(c);
    (void)uv_tcp_keepalive(&c->handle, 1, KEEPALIVE_SECONDS);
    uint32_t slot = table_add(&tcp->connections);
    CHECK(slot != SLOT_NONE);
    *(struct connection **)table_at(&tcp->connections, slot) = c;
    c->source.route = table_handle(&tcp->connections, slot);
    c->heard_ns = clock_now_ns(tcp->clock);
    list_append(&tcp->by_activity, &c->by_activity);
    list_append(&tcp->idle, &c->by_idle);
    connection_start(c);
}

/* Pipes are few: a peer that is slow with its call must do without. */
static void free_inlets(struct tcp *tcp, uint64_t now_ns)
{
    struct list *next;
    for (struct list *at = tcp->waiting_for_peer.next; at != &tcp->waiting_for_peer; at = next) {
        next = at->next;
        struct connection *c = LIST_ELEMENT(at, struct connection, by_wait);
        if (now_ns - c->waiting_since_ns < SHORT_WAIT_NS)
            return;
        connection_leave_inlet(c);
    }
}

static void on_sweep(uv_timer_t *timer)
{
    struct tcp *tcp = timer->data;
    uint64_t now_ns = clock_now_ns(tcp->clock);
    free_inlets(tcp, now_ns);
    uint64_t patience_ns = rpc_server_room(tcp->server) < ROOM_LOW ? SHORT_WAIT_NS : PEER_WAIT_NS;
    struct list *next;
    for (struct list *at = tcp->by_activity.next; at != &tcp->by_activity; at = next) {
        next = at->next;
        struct connection *c = LIST_ELEMENT(at, struct connection, by_activity);
        if (now_ns - c->heard_ns < IDLE_NS)
            break;
        if (c->in_flight == 0)
            connection_close(c);
    }
    while (!list_is_empty(&tcp->waiting_for_peer)) {
        struct connection *c = LIST_ELEMENT(tcp->waiting_for_peer.next, struct connection, by_wait);
        if (now_ns - c->waiting_since_ns < patience_ns)
            break;
        if (connection_is_being_read(c)) { /* slowly */
            c->waiting_since_ns = now_ns;
            list_remove(&c->by_wait);
            list_append(&tcp->waiting_for_peer, &c->by_wait);
            continue;
        }
        rpc_server_report(tcp->server, EVENT_SLOW_PEER, &c->source.peer.address);
        connection_close(c);
    }
}

int tcp_add(struct tcp *tcp, int fd, bool has_files)
{
    CHECK(tcp->listener_count < LISTEN_SOCKETS_MAX);
    tcp->listener_has_files[tcp->listener_count] = has_files;
    uv_tcp_t *listener = &tcp->listeners[tcp->listener_count];
    int err = uv_tcp_init(tcp->loop, listener);
    if (err != 0) {
        (void)close(fd);
        return err;
    }
    tcp->listener_count++;
    listener->data = tcp;
    err = uv_tcp_open(listener, fd);
    if (err != 0) {
        (void)close(fd);
        return err;
    }
    err = uv_listen((uv_stream_t *)listener, BACKLOG, on_connection);
    if (err == 0 && !uv_is_active((uv_handle_t *)&tcp->sweep))
        err = uv_timer_start(&tcp->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
    return err;
}

void tcp_send(struct tcp *tcp, uint64_t route, struct bytes message)
{
    struct connection *c = connection_of(tcp, route);
    if (c != NULL)
        connection_send(c, message);
}

void tcp_send_job(struct tcp *tcp, const struct rpc_finished *finished)
{
    struct connection *c = connection_of(tcp, finished->to.route);
    if (c != NULL)
        connection_send_job(c, finished);
    else
        rpc_server_release_job(tcp->server, finished->job);
}

void tcp_call_ended(struct tcp *tcp, uint64_t route, uint32_t weight)
{
    struct connection *c = connection_of(tcp, route);
    if (c != NULL)
        connection_call_ended(c, weight);
}

void tcp_resume(struct tcp *tcp)
{
    tcp->turn++;
    if (tcp->is_quiet || rpc_server_is_busy(tcp->server))
        return;
    /* Each once, in the order they were paused; one paused again goes to the end. */
    struct list *last = tcp->paused.prev;
    while (!list_is_empty(&tcp->paused)) {
        struct list *at = tcp->paused.next;
        bool was_last = at == last;
        struct connection *c = LIST_ELEMENT(at, struct connection, by_pause);
        list_remove(at);
        list_append(&tcp->paused, at);
        connection_resume(c);
        if (was_last)
            return;
    }
}

void tcp_flush(struct tcp *tcp)
{
    while (!list_is_empty(&tcp->unflushed))
        connection_flush(LIST_ELEMENT(tcp->unflushed.next, struct connection, by_flush));
}

void tcp_quiesce(struct tcp *tcp)
{
    if (tcp->is_quiet)
        return;
    tcp->is_quiet = true;
    for (uint32_t i = 0; i < tcp->listener_count; i++)
        uv_close((uv_handle_t *)&tcp->listeners[i], NULL);
    for (struct list *at = tcp->by_activity.next; at != &tcp->by_activity; at = at->next)
        connection_quiesce(LIST_ELEMENT(at, struct connection, by_activity));
}

void tcp_close(struct tcp *tcp)
{
    tcp_quiesce(tcp);
    uv_close((uv_handle_t *)&tcp->sweep, NULL);
    while (!list_is_empty(&tcp->by_activity))
        connection_close(LIST_ELEMENT(tcp->by_activity.next, struct connection, by_activity));
}

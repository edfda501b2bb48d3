/*
 * http.c -- libmicrohttpd inside the libuv loop; see http.h.
 *
 * libmicrohttpd runs without a thread of its own: it keeps an epoll descriptor of its sockets,
 * which the loop polls like any other, and a runner (runner.h) lets it do what is ready. So
 * handlers run in the server's thread and may read its state.
 *
 * A peer cannot cost much: CONNECTIONS_MAX connections of CONNECTION_BYTES each, closed after
 * IDLE_S of silence; a request body is read only where a route takes one, and is short (body.h).
 * Nor can it lock others out by holding all connections, silent or a byte at a time: a
 * connection that takes the last place evicts the oldest. A limit per address would not do,
 * because all local peers share one.
 *
 * Always true:
 *  (1) A suspended connection is on `parked`, in the order of after_txn, which never decreases, on
 *      `pending` or on `asleep`; http_stored, http_turn, http_wake or http_free resumes it.
 *  (2) After http_free no callback of libmicrohttpd runs; the struct lives until all handles of
 *      the loop are closed.
 */
#include "admin/http.h"

#include "admin/caller.h"
#include "admin/host.h"
#include "admin/route.h"
#include "admin/runner.h"
#include "base/check.h"
#include "base/list.h"
#include "wire/sockaddr.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CONNECTIONS_MAX = 128,
    BACKLOG = 1024,               /* a crowd is accepted and evicted: faster than a repeated SYN */
    CONNECTION_BYTES = 16 * 1024, /* headers of a request and its response */
    IDLE_S = 3,
    NAME_MAX_LEN = 256,
};

/* A connection of libmicrohttpd. */
struct visitor {
    struct list node; /* of http->by_age while it may be evicted, of http->spare while unused */
    int fd;
    struct exchange exchange; /* its request; one at a time */
    struct list parked;       /* while there is no response, it waits for the store, or sleeps */
    bool is_asleep, is_evicted, is_ending;
};

struct http {
    struct MHD_Daemon *daemon;
    struct visitor visitors[CONNECTIONS_MAX];
    struct list by_age, spare; /* oldest first */
    uint32_t visitor_count;
    uint32_t ending_count; /* of them, streams that were woken to end */
    bool has_left;         /* a visitor, since libmicrohttpd looked at its sockets */
    struct runner runner;
    struct address address;
    uint16_t port;
    const struct admin *admin;
    bool is_control;
    struct list parked;  /* visitors, oldest first */
    struct list pending; /* the same, without a response yet */
    struct list asleep;  /* streams */
    uint32_t parked_count;
    char own_name[NAME_MAX_LEN]; /* of this machine; "" when it is not to be accepted */
};

/* Sends the response. Without one, memory ran out, and the connection is closed. */
static enum MHD_Result leave(struct exchange *exchange)
{
    if (exchange->response == NULL)
        return MHD_NO;
    return MHD_queue_response(exchange->connection, exchange->status, exchange->response);
}

/* False: refused, with a response. */
static bool may_ask(struct http *http, struct exchange *exchange)
{
    if (http->is_control) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(exchange->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        enum caller_may may = caller_identify(info->connect_fd, http->admin, &exchange->who);
        exchange->is_tracker = may == CALLER_MAY_TRACK;
        if (may == CALLER_MAY_NOTHING)
            exchange_error(exchange, MHD_HTTP_FORBIDDEN,
                           "only root and the server's user may connect", (struct bytes){0},
                           "use sudo, or the read-only API at --http; --tracker-group lets others "
                           "track clients");
        return may != CALLER_MAY_NOTHING;
    }
    /* No Host at all is HTTP/1.0: a probe, never a browser. */
    const char *host =
        MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
    if (host == NULL || host_is_ours(host, &http->address, http->own_name))
        return true;
    exchange_error(exchange, MHD_HTTP_FORBIDDEN, "this server is not known by the name ",
                   bytes_of_text(host), "use the --http address or localhost");
    return false;
}

/* The headers have arrived. A refusal comes before the body is read. */
static enum MHD_Result begin(struct http *http, struct visitor *visitor,
                             struct MHD_Connection *connection, const char *path,
                             const char *method)
{
    struct exchange *exchange = &visitor->exchange;
    exchange_reset(exchange); /* of the connection's last request */
    exchange->http = http;
    exchange->admin = http->admin;
    exchange->connection = connection;
    exchange->path = path;
    exchange->is_head = strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
    exchange->is_control = http->is_control;
    if (may_ask(http, exchange) && route_find(exchange, method))
        return MHD_YES;
    return leave(exchange);
}

/* It says what a crash could still take back (P1). */
static bool is_early(const struct http *http, const struct exchange *exchange)
{
    return exchange->after_txn > 0 && exchange->after_txn > core_durable_txn(http->admin->core);
}

/* True: there is no response yet, or it is not durable. */
static bool must_wait(struct http *http, struct visitor *visitor)
{
    const struct exchange *exchange = &visitor->exchange;
    bool is_gated = exchange->response != NULL && is_early(http, exchange);
    if (exchange->is_pending)
        list_append(&http->pending, &visitor->parked);
    else if (is_gated)
        list_append(&http->parked, &visitor->parked);
    http->parked_count += is_gated;
    return exchange->is_pending || is_gated;
}

/*
 * libmicrohttpd calls once when the headers are there, again for each piece of a body, and again
 * when that is over; after a suspension once more. Responding in the last keeps the connection
 * usable.
 */
static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_len, void **state)
{
    struct http *http = context;
    (void)version;
    struct visitor *visitor = *state;
    if (visitor == NULL) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
        CHECK(info != NULL);
        *state = visitor = info->socket_context;
        return begin(http, visitor, connection, path, method);
    }
    struct exchange *exchange = &visitor->exchange;
    if (*upload_len > 0) {
        if (!route_takes_body(exchange) || !body_add(&exchange->body, upload, *upload_len))
            return MHD_NO; /* an unexpected body: close the connection */
        *upload_len = 0;
        return MHD_YES;
    }
    if (exchange->response == NULL) {
        exchange->answer(exchange);
        if (must_wait(http, visitor)) {
            MHD_suspend_connection(connection);
            return MHD_YES;
        }
    }
    return leave(exchange);
}

static struct visitor *visitor_of(struct exchange *exchange)
{
    return LIST_ELEMENT(exchange, struct visitor, exchange);
}

ssize_t http_sleep(struct exchange *exchange)
{
    struct visitor *visitor = visitor_of(exchange);
    if (visitor->is_evicted)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    CHECK(list_is_empty(&visitor->parked));
    visitor->is_asleep = true;
    list_append(&exchange->http->asleep, &visitor->parked);
    MHD_suspend_connection(exchange->connection);
    return 0;
}

static void resume(struct visitor *visitor)
{
    visitor->is_asleep = false;
    list_remove(&visitor->parked);
    MHD_resume_connection(visitor->exchange.connection);
    /* libmicrohttpd handles it the next time it runs. */
    runner_soon(&visitor->exchange.http->runner);
}

void http_wake(struct exchange *exchange)
{
    struct visitor *visitor = visitor_of(exchange);
    if (!list_is_empty(&visitor->parked)) /* else it does not sleep */
        resume(visitor);
}

void http_wake_all(struct http *http)
{
    while (http != NULL && !list_is_empty(&http->asleep))
        resume(LIST_ELEMENT(http->asleep.next, struct visitor, parked));
}

/* libmicrohttpd reads the end of its socket and closes it. It does not look at one that sleeps:
 * that is woken, and ends. */
static void evict(struct visitor *visitor)
{
    list_remove(&visitor->node);
    visitor->is_evicted = true;
    (void)shutdown(visitor->fd, SHUT_RDWR);
    if (!visitor->is_asleep)
        return;
    visitor->is_ending = true;
    visitor->exchange.http->ending_count++;
    resume(visitor);
}

/* Keeps connections in order of arrival; taking the last place evicts the oldest. */
static void on_connection(void *context, struct MHD_Connection *connection, void **state,
                          enum MHD_ConnectionNotificationCode what)
{
    struct http *http = context;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        struct visitor *gone = *state;
        exchange_reset(&gone->exchange);
        list_remove(&gone->node);
        list_append(&http->spare, &gone->node);
        http->visitor_count--;
        http->ending_count -= gone->is_ending;
        http->has_left = true;
        return;
    }
    CHECK(!list_is_empty(&http->spare)); /* as many as libmicrohttpd takes */
    struct visitor *visitor = LIST_ELEMENT(http->spare.next, struct visitor, node);
    list_remove(&visitor->node);
    list_append(&http->by_age, &visitor->node);
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    CHECK(info != NULL);
    visitor->fd = info->connect_fd;
    visitor->is_evicted = visitor->is_ending = false;
    *state = visitor;
    if (++http->visitor_count == CONNECTIONS_MAX)
        evict(LIST_ELEMENT(http->by_age.next, struct visitor, node));
}

static bool run(void *context, uint64_t *ret_ms)
{
    struct http *http = context;
    MHD_UNSIGNED_LONG_LONG timeout_ms = 0;
    http->has_left = false;
    (void)MHD_run(http->daemon); /* fails only for a daemon with threads */
    bool has_timeout = MHD_get_timeout(http->daemon, &timeout_ms) == MHD_YES;
    /* With all places taken it stops accepting, and checks for a free one only when it runs; and
     * what it has ended in one run it lets go in the next. */
    bool must_run = http->has_left || http->ending_count > 0;
    *ret_ms = must_run ? 0 : timeout_ms;
    return must_run || has_timeout;
}

static bool is_in_use(void *context)
{
    const struct http *http = context;
    return admin_is_in_use(http->admin);
}

static int fail(int error, const struct address *address, uint16_t port, struct text *ret_why)
{
    text_add(ret_why, "--http: cannot listen on ");
    text_add_address(ret_why, address);
    text_add(ret_why, " port ");
    text_add_u64(ret_why, port);
    text_add(ret_why, ": ");
    text_add(ret_why, strerror(error));
    text_add(ret_why, error == EADDRINUSE      ? "; stop what uses it, or choose another port"
                      : error == EADDRNOTAVAIL ? "; this machine has no such address"
                      : error == EACCES        ? "; ports below 1024 need root"
                                               : "");
    return error == EADDRNOTAVAIL || error == EACCES ? HTTP_EXIT_USAGE : HTTP_EXIT_IN_USE;
}

/* A listening socket, or a negative errno. Only "::" is for IPv4 as well. */
static int listen_on(const struct address *address, uint16_t port, uint16_t *ret_port)
{
    struct sockaddr_storage name;
    socklen_t len = sockaddr_of(address, port, &name);
    int fd = socket(name.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    const int on = 1, is_v6_only = !host_is_any(address);
    /* Lingering connections of the last run must not prevent this one. */
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        (address->family == 6 &&
         setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &is_v6_only, sizeof is_v6_only) != 0) ||
        bind(fd, (const struct sockaddr *)&name, len) != 0 || listen(fd, BACKLOG) != 0 ||
        getsockname(fd, (struct sockaddr *)&name, &len) != 0) {
        int error = errno;
        (void)close(fd);
        return -error;
    }
    (void)sockaddr_address((struct sockaddr *)&name, ret_port);
    return fd;
}

/*
 * The epoll descriptor of a running daemon, or -1. Then the socket is left alone: libmicrohttpd
 * closes it in some failures and not in others, and the process is about to exit anyway.
 */
static int start_daemon(struct http *http, int fd)
{
    list_init(&http->by_age);
    list_init(&http->spare);
    list_init(&http->parked);
    list_init(&http->pending);
    list_init(&http->asleep);
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++) {
        list_init(&http->visitors[i].parked);
        list_append(&http->spare, &http->visitors[i].node);
    }
    http->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handle, http,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)IDLE_S, MHD_OPTION_NOTIFY_CONNECTION, on_connection, http,
        MHD_OPTION_UNESCAPE_CALLBACK, route_unescape, NULL, MHD_OPTION_END);
    if (http->daemon == NULL)
        return -1;
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    CHECK(info != NULL);
    return info->epoll_fd;
}

/* Creates an endpoint on a listening socket, which it takes over. NULL: no memory. */
static struct http *serve(uv_loop_t *loop, int fd, const struct admin *admin)
{
    struct http *http = calloc(1, sizeof *http);
    int epoll_fd = -1;
    if (http == NULL)
        (void)close(fd);
    else
        epoll_fd = start_daemon(http, fd);
    if (epoll_fd >= 0 && runner_init(&http->runner, loop, epoll_fd, run, is_in_use, http) != 0) {
        MHD_stop_daemon(http->daemon);
        epoll_fd = -1;
    }
    if (epoll_fd < 0) {
        free(http);
        return NULL;
    }
    http->admin = admin;
    return http;
}

struct http *http_new(uv_loop_t *loop, const struct address *address, uint16_t port,
                      const struct admin *admin, int *ret_exit_code, struct text *ret_why)
{
    uint16_t port_bound = 0;
    int fd = listen_on(address, port, &port_bound);
    struct http *http = fd < 0 ? NULL : serve(loop, fd, admin);
    if (http == NULL) {
        *ret_exit_code = fail(fd < 0 ? -fd : ENOMEM, address, port, ret_why);
        return NULL;
    }
    http->address = *address;
    http->port = port_bound;
    /* On the network, scrapers for example use the machine's name. */
    if (!address_is_loopback(address) &&
        gethostname(http->own_name, sizeof http->own_name - 1) != 0)
        http->own_name[0] = '\0';
    return http;
}

struct http *http_new_control(uv_loop_t *loop, int fd, const struct admin *admin)
{
    struct http *http = serve(loop, fd, admin);
    if (http != NULL)
        http->is_control = true;
    return http;
}

uint16_t http_port(const struct http *http)
{
    return http->port;
}

void http_add_url(const struct http *http, struct text *text)
{
    bool is_v6 = http->address.family == 6;
    text_add(text, is_v6 && !host_is_any(&http->address) ? "http://[" : "http://");
    if (host_is_any(&http->address))
        text_add(text, "localhost");
    else
        text_add_address(text, &http->address);
    text_add(text, is_v6 && !host_is_any(&http->address) ? "]:" : ":");
    text_add_u64(text, http->port);
    text_add(text, "/");
}

void http_stored(struct http *http)
{
    if (http == NULL)
        return;
    while (!list_is_empty(&http->parked)) {
        struct visitor *first = LIST_ELEMENT(http->parked.next, struct visitor, parked);
        if (is_early(http, &first->exchange))
            break;
        http->parked_count--;
        resume(first);
    }
}

void http_turn(struct http *http)
{
    struct list looked_at;
    if (http == NULL || list_is_empty(&http->pending))
        return;
    list_init(&looked_at);
    while (!list_is_empty(&http->pending)) {
        struct list *node = http->pending.next;
        list_remove(node);
        list_append(&looked_at, node);
    }
    while (!list_is_empty(&looked_at)) {
        struct visitor *visitor = LIST_ELEMENT(looked_at.next, struct visitor, parked);
        list_remove(&visitor->parked);
        visitor->exchange.is_pending = false;
        visitor->exchange.answer(&visitor->exchange);
        if (!must_wait(http, visitor))
            resume(visitor);
    }
}

uint32_t http_waiting(const struct http *http)
{
    return http == NULL ? 0 : http->parked_count;
}

void http_free(struct http *http)
{
    if (http == NULL)
        return;
    /* What they wait for will never come: libmicrohttpd closes them with the others. */
    struct list *const waiting[] = {&http->parked, &http->pending, &http->asleep};
    for (size_t i = 0; i < sizeof waiting / sizeof waiting[0]; i++)
        while (!list_is_empty(waiting[i]))
            resume(LIST_ELEMENT(waiting[i]->next, struct visitor, parked));
    /* The loop must forget the descriptor before libmicrohttpd closes it. */
    runner_close(&http->runner, free);
    MHD_stop_daemon(http->daemon);
    http->daemon = NULL;
}

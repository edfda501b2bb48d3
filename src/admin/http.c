/*
 * http.c -- routes, and libmicrohttpd inside the libuv loop; see http.h.
 *
 * libmicrohttpd runs without a thread of its own: it keeps an epoll descriptor of its sockets,
 * which the loop polls like any other; http_run lets it do what is ready, and its next timeout
 * becomes a timer. Handlers therefore run in the server's thread and may read its state.
 *
 * A peer cannot make it cost much: CONNECTIONS_MAX connections of CONNECTION_BYTES each, closed
 * after IDLE_S of silence; request bodies are never read. Nor can it keep others out by holding all
 * connections, silent or a byte at a time: the one that takes the last place costs the oldest its
 * own. A limit per address would not do, because all local peers have the same.
 *
 * Always true:
 *  (1) Neither the request path nor the Host reaches an answer unescaped.
 *  (2) After http_free no callback of libmicrohttpd runs; the struct lives until both handles of
 *      the loop are closed.
 */
#include "admin/http.h"

#include "base/check.h"
#include "base/list.h"
#include "wire/sockaddr.h"

#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CONNECTIONS_MAX = 64,
    BACKLOG = 1024,               /* a crowd is let in and sent away: quicker than a repeated SYN */
    CONNECTION_BYTES = 16 * 1024, /* headers of a request, and of its answer */
    IDLE_S = 3,
    DEAF_MS = 1000, /* until a poll that failed is tried again */
    BODY_MAX = 2048,
    SHOWN_MAX = 200, /* bytes of a path, a Host or a reason that an error repeats */
    NAME_MAX_LEN = 256,
};

/* A connection of libmicrohttpd. */
struct visitor {
    struct list node; /* of http->by_age while it may be sent away, of http->spare while unused */
    int fd;
};

struct http {
    struct MHD_Daemon *daemon;
    struct visitor visitors[CONNECTIONS_MAX];
    struct list by_age, spare; /* oldest first */
    uint32_t visitor_count;
    bool has_left; /* a visitor, since libmicrohttpd looked at its sockets */
    uv_poll_t poll;
    uv_timer_t timer;
    int handles_open;
    struct address address;
    uint16_t port;
    struct http_hooks hooks;
    char own_name[NAME_MAX_LEN]; /* of this machine; "" when it is not to be accepted */
};

/* An answer before it is queued. `error` and `hint` make a JSON body, `text` a plain one. */
struct answer {
    unsigned status;
    const char *text;
    const char *error, *hint;
    struct bytes shown; /* what the error repeats of the request, may be empty */
};

typedef void (*route_fn)(struct http *http, struct text *ret_text, struct answer *ret);

static void answer_health(struct http *http, struct text *ret_text, struct answer *ret)
{
    (void)http;
    (void)ret_text;
    *ret = (struct answer){.status = MHD_HTTP_OK, .text = "ok\n"};
}

static void answer_ready(struct http *http, struct text *ret_text, struct answer *ret)
{
    if (http->hooks.is_ready(http->hooks.context, ret_text)) {
        *ret = (struct answer){.status = MHD_HTTP_OK, .text = "ready\n"};
        return;
    }
    *ret = (struct answer){
        .status = MHD_HTTP_SERVICE_UNAVAILABLE,
        .error = "not ready: ",
        .shown = {(const uint8_t *)ret_text->start, ret_text->len},
        .hint = "clients are not served now; /healthz says whether the process is alive"};
}

static const struct {
    const char *path;
    route_fn answer;
} routes[] = {
    {"/healthz", answer_health},
    {"/readyz", answer_ready},
};

static route_fn find_route(const char *path)
{
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++)
        if (strcmp(path, routes[i].path) == 0)
            return routes[i].answer;
    return NULL;
}

/* The host part of "name", "name:port", "1.2.3.4:port" or "[v6]:port"; the port may be any. */
static struct bytes host_of(const char *header)
{
    size_t len;
    if (header[0] == '[') {
        header++;
        len = strcspn(header, "]");
    } else {
        len = strcspn(header, ":");
    }
    return (struct bytes){(const uint8_t *)header, (uint32_t)len};
}

static bool is_any(const struct address *address)
{
    static const uint8_t zeros[16];
    return memcmp(address->bytes, zeros, sizeof zeros) == 0;
}

/*
 * Names are what rebinding needs, so only names that nobody else can own are accepted. An address
 * cannot be rebound; it must still be one of ours, as far as we know which ones those are.
 */
static bool is_our_host(const struct http *http, const char *header)
{
    struct bytes host = host_of(header);
    struct address address;
    if (address_parse(host, &address))
        return address_is_loopback(&address) || address_equal(&address, &http->address) ||
               is_any(&http->address);
    return bytes_equal_fold(host, bytes_of_text("localhost")) ||
           (http->own_name[0] != '\0' && bytes_equal_fold(host, bytes_of_text(http->own_name)));
}

static enum MHD_Result queue(struct MHD_Connection *connection, const struct answer *answer)
{
    char buffer[BODY_MAX];
    struct text body;
    text_init(&body, buffer, sizeof buffer);
    if (answer->error == NULL) {
        text_add(&body, answer->text);
    } else {
        text_add(&body, "{\"error\": \"");
        text_add(&body, answer->error);
        struct bytes shown = answer->shown;
        bool is_cut = shown.len > SHOWN_MAX;
        text_add_json(&body, (struct bytes){shown.at, is_cut ? SHOWN_MAX : shown.len});
        text_add(&body, is_cut ? "...\", \"hint\": \"" : "\", \"hint\": \"");
        text_add(&body, answer->hint);
        text_add(&body, "\"}\n");
    }
    CHECK(body.len < body.max); /* nothing was cut: the JSON is whole */
    struct MHD_Response *response =
        MHD_create_response_from_buffer(body.len, buffer, MHD_RESPMEM_MUST_COPY);
    if (response == NULL)
        return MHD_NO;
    const char *type = answer->error == NULL ? "text/plain; charset=utf-8" : "application/json";
    enum MHD_Result result = MHD_NO;
    if (MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type) == MHD_YES &&
        MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store") == MHD_YES &&
        MHD_add_response_header(response, "X-Content-Type-Options", "nosniff") == MHD_YES &&
        (answer->status != MHD_HTTP_METHOD_NOT_ALLOWED ||
         MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD") == MHD_YES))
        result = MHD_queue_response(connection, answer->status, response);
    MHD_destroy_response(response); /* drops our reference; the connection has its own */
    return result;
}

/* Decides everything that needs the request's headers only. */
static enum MHD_Result answer_request(struct http *http, struct MHD_Connection *connection,
                                      const char *path, bool is_read)
{
    const char *host =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
    route_fn route = find_route(path);
    char reason[BODY_MAX / 2];
    struct text text;
    text_init(&text, reason, sizeof reason);
    struct answer answer;
    /* No Host at all is HTTP/1.0: a probe, never a browser. */
    if (host != NULL && !is_our_host(http, host))
        answer = (struct answer){.status = MHD_HTTP_FORBIDDEN,
                                 .error = "this server does not go by the name ",
                                 .shown = bytes_of_text(host),
                                 .hint = "ask by the address of --http or as localhost"};
    else if (route == NULL)
        answer = (struct answer){.status = MHD_HTTP_NOT_FOUND,
                                 .error = "there is nothing at ",
                                 .shown = bytes_of_text(path),
                                 .hint = "try /healthz or /readyz"};
    else if (!is_read)
        answer = (struct answer){.status = MHD_HTTP_METHOD_NOT_ALLOWED,
                                 .error = "this can only be read: ",
                                 .shown = bytes_of_text(path),
                                 .hint = "use GET or HEAD"};
    else
        route(http, &text, &answer);
    return queue(connection, &answer);
}

/*
 * libmicrohttpd calls once when the headers are there and again for the body. Answering GET in the
 * second call keeps the connection usable; answering anything else in the first refuses its body.
 */
static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_len, void **state)
{
    static char headers_seen;
    (void)version;
    (void)upload;
    bool is_read =
        strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
    if (*state == NULL && is_read) {
        *state = &headers_seen;
        return MHD_YES;
    }
    if (*upload_len > 0)
        return MHD_NO; /* a body where there can be none: close the connection */
    return answer_request(context, connection, path, is_read);
}

/* Keeps the order in which connections came; the last place costs the oldest its own. */
static void on_connection(void *context, struct MHD_Connection *connection, void **state,
                          enum MHD_ConnectionNotificationCode what)
{
    struct http *http = context;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        struct visitor *gone = *state;
        list_remove(&gone->node);
        list_append(&http->spare, &gone->node);
        http->visitor_count--;
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
    *state = visitor;
    if (++http->visitor_count < CONNECTIONS_MAX)
        return;
    struct visitor *oldest = LIST_ELEMENT(http->by_age.next, struct visitor, node);
    list_remove(&oldest->node);
    (void)shutdown(oldest->fd, SHUT_RDWR); /* libmicrohttpd reads the end, and closes it */
}

static void on_timer(uv_timer_t *timer);

static void run(struct http *http)
{
    http->has_left = false;
    (void)MHD_run(http->daemon); /* its only failure is to be called for a daemon with threads */
    MHD_UNSIGNED_LONG_LONG timeout_ms;
    bool has_timeout = MHD_get_timeout(http->daemon, &timeout_ms) == MHD_YES;
    if (!uv_is_active((uv_handle_t *)&http->poll) && (!has_timeout || timeout_ms > DEAF_MS)) {
        timeout_ms = DEAF_MS;
        has_timeout = true;
    }
    /* With all places taken it stops to accept, and looks whether one is free only when it runs. */
    if (http->has_left) {
        timeout_ms = 0;
        has_timeout = true;
    }
    if (has_timeout)
        CHECK(uv_timer_start(&http->timer, on_timer, timeout_ms, 0) == 0);
    else
        CHECK(uv_timer_stop(&http->timer) == 0);
}

/* Whatever the descriptor has, libmicrohttpd finds out itself. libuv stops to poll one that has an
 * error: the timer begins again. */
static void on_poll(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    run(poll->data);
}

static void on_timer(uv_timer_t *timer)
{
    struct http *http = timer->data;
    if (!uv_is_active((uv_handle_t *)&http->poll))
        CHECK(uv_poll_start(&http->poll, UV_READABLE, on_poll) == 0);
    run(http);
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
    const int on = 1, is_v6_only = !is_any(address);
    /* Connections of the last run that are not quite gone must not stop this one. */
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
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++)
        list_append(&http->spare, &http->visitors[i].node);
    http->daemon = MHD_start_daemon(
        MHD_USE_EPOLL, 0, NULL, NULL, handle, http, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_BYTES, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, http, MHD_OPTION_END);
    if (http->daemon == NULL)
        return -1;
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    CHECK(info != NULL);
    return info->epoll_fd;
}

struct http *http_new(uv_loop_t *loop, const struct address *address, uint16_t port,
                      const struct http_hooks *hooks, int *ret_exit_code, struct text *ret_why)
{
    uint16_t port_bound = 0;
    int fd = listen_on(address, port, &port_bound);
    if (fd < 0) {
        *ret_exit_code = fail(-fd, address, port, ret_why);
        return NULL;
    }
    struct http *http = calloc(1, sizeof *http);
    int epoll_fd = -1;
    if (http == NULL)
        (void)close(fd);
    else
        epoll_fd = start_daemon(http, fd);
    if (epoll_fd >= 0 && uv_poll_init(loop, &http->poll, epoll_fd) != 0) {
        MHD_stop_daemon(http->daemon);
        epoll_fd = -1;
    }
    if (epoll_fd < 0) {
        free(http);
        *ret_exit_code = fail(ENOMEM, address, port, ret_why);
        return NULL;
    }
    http->address = *address;
    http->port = port_bound;
    http->hooks = *hooks;
    /* Who listens on the network is asked by the name of the machine, by scrapers for instance. */
    if (!address_is_loopback(address) &&
        gethostname(http->own_name, sizeof http->own_name - 1) != 0)
        http->own_name[0] = '\0';
    CHECK(uv_timer_init(loop, &http->timer) == 0); /* it only fills the struct */
    http->timer.data = http;
    http->poll.data = http;
    http->handles_open = 2;
    CHECK(uv_poll_start(&http->poll, UV_READABLE, on_poll) == 0);
    return http;
}

uint16_t http_port(const struct http *http)
{
    return http->port;
}

static void on_close(uv_handle_t *handle)
{
    struct http *http = handle->data;
    if (--http->handles_open == 0)
        free(http);
}

void http_free(struct http *http)
{
    if (http == NULL)
        return;
    /* The loop must forget the descriptor before libmicrohttpd closes it. */
    uv_close((uv_handle_t *)&http->poll, on_close);
    uv_close((uv_handle_t *)&http->timer, on_close);
    MHD_stop_daemon(http->daemon);
    http->daemon = NULL;
}

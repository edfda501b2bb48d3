/*
 * test_http.c -- shows what the HTTP endpoint answers, byte for byte over a real socket on
 * 127.0.0.1 and a free port, and that it can be closed in the middle of anything.
 *
 * The loop runs in a thread of its own and is told to stop through a uv_async_t; the tests are the
 * client. uv_loop_close at the end proves that no handle was left behind.
 */
#include "admin/http.h"
#include "unit/test.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#define READY_REASON "the store has not committed for \"7\" s"

struct server {
    uv_loop_t loop;
    uv_async_t stop;
    struct admin admin; /* no core: as while the store is loaded */
    struct http *http;
    pthread_t thread;
    atomic_bool is_ready;
};

static bool is_ready(void *context, struct text *ret_reason)
{
    struct server *server = context;
    if (atomic_load(&server->is_ready))
        return true;
    text_add(ret_reason, READY_REASON);
    return false;
}

static void on_stop(uv_async_t *stop)
{
    struct server *server = stop->data;
    http_free(server->http);
    uv_close((uv_handle_t *)stop, NULL);
}

static void *run(void *context)
{
    struct server *server = context;
    (void)uv_run(&server->loop, UV_RUN_DEFAULT);
    return NULL;
}

static struct http *listen_on(struct server *server, const char *address, uint16_t port,
                              int *ret_exit_code, char *ret_why, uint32_t size)
{
    struct address parsed;
    struct text why;
    assert_true(address_parse(bytes_of_text(address), &parsed));
    text_init(&why, ret_why, size);
    server->admin = (struct admin){.context = server, .is_ready = is_ready};
    return http_new(&server->loop, &parsed, port, &server->admin, ret_exit_code, &why);
}

static void start_on(struct server *server, const char *address)
{
    int exit_code;
    char why[256];
    atomic_init(&server->is_ready, true);
    assert_int_equal(uv_loop_init(&server->loop), 0);
    assert_int_equal(uv_async_init(&server->loop, &server->stop, on_stop), 0);
    server->stop.data = server;
    server->http = listen_on(server, address, 0, &exit_code, why, sizeof why);
    if (server->http == NULL)
        fail_msg("%s", why);
    assert_int_equal(pthread_create(&server->thread, NULL, run, server), 0);
}

static void stop(struct server *server)
{
    assert_int_equal(uv_async_send(&server->stop), 0);
    assert_int_equal(pthread_join(server->thread, NULL), 0);
    assert_int_equal(uv_loop_close(&server->loop), 0); /* UV_EBUSY: a handle is still open */
}

static int connect_to(const struct server *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(http_port(server->http)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    /* Only so that a broken server fails the test instead of hanging it. */
    const struct timeval patience = {.tv_sec = 60};
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void send_all(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Reads until the server closes the connection, or until `end` was read. */
static void receive(int fd, const char *end, char *ret, size_t size)
{
    size_t len = 0;
    for (;;) {
        ssize_t got = recv(fd, ret + len, size - 1 - len, 0);
        assert_true(got >= 0);
        len += (size_t)got;
        ret[len] = '\0';
        if (got == 0 || (end != NULL && strstr(ret, end) != NULL))
            return;
        assert_true(len < size - 1);
    }
}

/* One request on a connection of its own. */
static const char *ask(const struct server *server, const char *request)
{
    static char answer[8192];
    int fd = connect_to(server);
    send_all(fd, request);
    receive(fd, NULL, answer, sizeof answer);
    assert_int_equal(close(fd), 0);
    return answer;
}

static void assert_answer(const char *answer, int status, const char *body)
{
    char start[32];
    (void)snprintf(start, sizeof start, "HTTP/1.1 %d ", status);
    const char *split = strstr(answer, "\r\n\r\n");
    if (strncmp(answer, start, strlen(start)) != 0 || split == NULL)
        fail_msg("not a %d: %s", status, answer);
    assert_string_equal(split + 4, body);
}

static void assert_contains(const char *text, const char *part)
{
    if (strcasestr(text, part) == NULL)
        fail_msg("\"%s\" does not contain \"%s\"", text, part);
}

#define END "Connection: close\r\n\r\n"

TEST_OF(test_http__health_and_readiness, struct server *server)
{
    assert_answer(ask(server, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n" END), 200, "ok\n");
    assert_answer(ask(server, "GET /readyz HTTP/1.1\r\nHost: localhost\r\n" END), 200, "ready\n");
    atomic_store(&server->is_ready, false);
    const char *answer = ask(server, "GET /readyz HTTP/1.1\r\nHost: localhost\r\n" END);
    assert_answer(answer, 503,
                  "{\"error\": \"not ready: the store has not committed for \\\"7\\\" s\", "
                  "\"hint\": \"clients are not being served; /healthz shows whether the process is "
                  "alive\"}\n");
    assert_contains(answer, "content-type: application/json");
    assert_answer(ask(server, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n" END), 200, "ok\n");
    atomic_store(&server->is_ready, true);
}

TEST(test_http__head_has_no_body)
{
    const char *answer = ask(*state, "HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n" END);
    assert_answer(answer, 200, "");
    assert_contains(answer, "content-length: 3\r\n");
}

TEST_OF(test_http__connections_are_kept, struct server *server)
{
    char answer[2048];
    int fd = connect_to(server);
    for (int i = 0; i < 3; i++) {
        send_all(fd, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
        receive(fd, "\r\n\r\nok\n", answer, sizeof answer);
        assert_answer(answer, 200, "ok\n");
    }
    assert_int_equal(close(fd), 0);
}

/* It is there while the store is still loaded, and its policy is its own and the only one. */
TEST_OF(test_http__the_page_runs_its_own_script_only, struct server *server)
{
    const char *answer = ask(server, "HEAD / HTTP/1.1\r\nHost: localhost\r\n" END);
    assert_contains(answer, "HTTP/1.1 200 ");
    assert_contains(answer, "Content-Type: text/html; charset=utf-8\r\n");
    assert_contains(answer, "X-Frame-Options: DENY\r\n");
    static const char name[] = "Content-Security-Policy: ";
    const char *policy = strstr(answer, name);
    assert_non_null(policy);
    assert_null(strstr(policy + strlen(name), name));
    assert_contains(policy, "default-src 'none'; script-src 'self'; style-src 'self'; ");
    assert_contains(policy, "frame-ancestors 'none'");
    assert_null(strstr(policy, "unsafe"));
    assert_contains(ask(server, "POST / HTTP/1.1\r\nHost: localhost\r\n"
                                "Content-Length: 0\r\n" END),
                    "HTTP/1.1 405 ");
    static const char *const parts[][2] = {{"page.js", "text/javascript"},
                                           {"page.css", "text/css"}};
    for (size_t i = 0; i < 2; i++) {
        char line[128];
        (void)snprintf(line, sizeof line, "HEAD /%s HTTP/1.1\r\nHost: localhost\r\n" END,
                       parts[i][0]);
        answer = ask(server, line);
        (void)snprintf(line, sizeof line, "Content-Type: %s; charset=utf-8\r\n", parts[i][1]);
        assert_contains(answer, "HTTP/1.1 200 ");
        assert_contains(answer, line);
        assert_contains(answer,
                        "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'");
    }
}

TEST_OF(test_http__unknown_paths_are_404_in_json, struct server *server)
{
    assert_answer(ask(server, "GET // HTTP/1.1\r\nHost: localhost\r\n" END), 404,
                  "{\"error\": \"nothing found at //\", \"hint\": \"try /api/v1/status, "
                  "/metrics, /healthz "
                  "or /readyz\"}\n");
    assert_answer(ask(server, "GET /a%22%0a%ff HTTP/1.1\r\nHost: localhost\r\n" END), 404,
                  "{\"error\": \"nothing found at /a\\\"\\u000a\\u00ff\", "
                  "\"hint\": \"try /api/v1/status, /metrics, /healthz or /readyz\"}\n");
    assert_answer(ask(server, "POST /nowhere HTTP/1.1\r\nHost: localhost\r\n"
                              "Content-Length: 0\r\n" END),
                  404,
                  "{\"error\": \"nothing found at /nowhere\", "
                  "\"hint\": \"try /api/v1/status, /metrics, /healthz or /readyz\"}\n");
    /* The longest path that fits is repeated in part only. */
    char request[4096] = "GET /";
    memset(request + 5, '"', 3000);
    (void)snprintf(request + 3005, sizeof request - 3005, " HTTP/1.1\r\nHost: localhost\r\n" END);
    const char *answer = ask(server, request);
    assert_contains(answer, "HTTP/1.1 404 ");
    assert_contains(answer, "\\\"...\", \"hint\": ");
}

#define CLIENT_PARAMETERS                                                                          \
    "\"hint\": \"allowed: match, words, client, state, protocol, name, mon_name, only, sort, "     \
    "limit, cursor\"}\n"

TEST_OF(test_http__unknown_parameters_are_400_and_say_what_is_known, struct server *server)
{
    assert_answer(ask(server, "GET /api/v1/clients?stat=x HTTP/1.1\r\nHost: localhost\r\n" END),
                  400, "{\"error\": \"unknown parameter stat\", " CLIENT_PARAMETERS);
    assert_answer(
        ask(server, "GET /api/v1/clients?cursor=0&lim=1 HTTP/1.1\r\nHost: localhost\r\n" END), 400,
        "{\"error\": \"unknown parameter lim\", " CLIENT_PARAMETERS);
    assert_answer(ask(server, "GET /api/v1/clients/c1?file=00 HTTP/1.1\r\nHost: localhost\r\n" END),
                  400,
                  "{\"error\": \"unknown parameter file\", "
                  "\"hint\": \"none is allowed here\"}\n");
}

/* Left out, it would be as if nothing had been asked for in particular. */
TEST_OF(test_http__parameters_have_one_value_each, struct server *server)
{
    assert_answer(ask(server, "GET /api/v1/locks?client HTTP/1.1\r\nHost: localhost\r\n" END), 400,
                  "{\"error\": \"parameter without a value: client\", "
                  "\"hint\": \"allowed: match, client, file, share, export, limit, cursor\"}\n");
    assert_answer(ask(server, "GET /api/v1/locks?limit=1&file HTTP/1.1\r\nHost: localhost\r\n" END),
                  400,
                  "{\"error\": \"parameter without a value: file\", "
                  "\"hint\": \"allowed: match, client, file, share, export, limit, cursor\"}\n");
    assert_answer(
        ask(server, "GET /api/v1/clients?limit=1&limit=2 HTTP/1.1\r\nHost: localhost\r\n" END), 400,
        "{\"error\": \"parameter given twice: limit\", " CLIENT_PARAMETERS);
    assert_contains(ask(server, "GET /api/v1/clients?limit=1&cursor=0&state=active HTTP/1.1\r\n"
                                "Host: localhost\r\n" END),
                    "HTTP/1.1 503 "); /* nothing is wrong with it, but there is no core here */
}

TEST_OF(test_http__other_methods_are_405_and_their_bodies_stay_unread, struct server *server)
{
    static const char *const methods[] = {"POST", "PUT", "DELETE", "OPTIONS", "BREW"};
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        char request[256];
        (void)snprintf(request, sizeof request,
                       "%s /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n"
                       "\r\nxxxx",
                       methods[i]);
        const char *answer = ask(server, request);
        assert_answer(answer, 405,
                      "{\"error\": \"read-only: /healthz\", "
                      "\"hint\": \"use GET or HEAD\"}\n");
        assert_contains(answer, "\r\nAllow: GET, HEAD\r\n");
    }
}

TEST_OF(test_http__a_body_with_get_ends_the_connection, struct server *server)
{
    const char *answer = ask(server, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
                                     "Content-Length: 5\r\n\r\nhello");
    assert_null(strstr(answer, " 200 "));
}

TEST_OF(test_http__only_our_names_are_answered, struct server *server)
{
    static const char *const ours[] = {"localhost",     "LocalHost:99", "127.0.0.1", "127.0.0.1:80",
                                       "127.1.2.3:800", "[::1]",        "[::1]:80"};
    static const char *const others[] = {"evil.example",
                                         "evil.example:12080",
                                         "localhost.evil",
                                         "192.0.2.1",
                                         "[2001:db8::1]:80",
                                         "127.0.0.1.evil",
                                         "",
                                         "[",
                                         "x\"y"};
    char request[256];
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++) {
        (void)snprintf(request, sizeof request, "GET /healthz HTTP/1.1\r\nHost: %s\r\n" END,
                       ours[i]);
        assert_answer(ask(server, request), 200, "ok\n");
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        (void)snprintf(request, sizeof request, "GET /healthz HTTP/1.1\r\nHost: %s\r\n" END,
                       others[i]);
        const char *answer = ask(server, request);
        assert_contains(answer, "HTTP/1.1 403 ");
        assert_contains(answer, "{\"error\": \"this server is not known by the name ");
    }
    /* A probe that speaks HTTP/1.0 names nobody. */
    assert_answer(ask(server, "GET /healthz HTTP/1.0\r\n\r\n"), 200, "ok\n");
}

TEST_OF(test_http__bad_input_does_not_hurt, struct server *server)
{
    int fd = connect_to(server);
    send_all(fd, "\x16\x03\x01\x02 nonsense\r\n\r\n");
    assert_int_equal(close(fd), 0);
    /* Headers without end: more than a connection's memory. */
    static char flood[64 * 1024];
    memset(flood, 'x', sizeof flood - 1);
    memcpy(flood, "GET /healthz HTTP/1.1\r\nX: ", 26);
    fd = connect_to(server);
    (void)send(fd, flood, sizeof flood - 1, MSG_NOSIGNAL); /* the server may hang up meanwhile */
    assert_int_equal(close(fd), 0);
    assert_answer(ask(server, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n" END), 200, "ok\n");
}

/* More slow peers than there are places. They are never idle, so only being sent away frees one. */
TEST_OF(test_http__slow_peers_do_not_keep_others_out, struct server *server)
{
    enum { SLOW = 200, ROUNDS_MAX = 2000 };
    static int slow[SLOW];
    char answer[2048] = "";
    for (size_t i = 0; i < SLOW; i++) {
        slow[i] = connect_to(server);
        send_all(slow[i], "GET /healthz HTTP/1.1\r\nX-Slow: ");
    }
    int fd = connect_to(server);
    send_all(fd, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n" END);
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    for (int round = 0; round < ROUNDS_MAX && poll(&wait, 1, 10) == 0; round++)
        for (size_t i = 0; i < SLOW; i++)
            (void)send(slow[i], "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    assert_int_equal(wait.revents & POLLIN, POLLIN);
    receive(fd, NULL, answer, sizeof answer);
    assert_answer(answer, 200, "ok\n");
    assert_int_equal(close(fd), 0);
    assert_true(recv(slow[0], answer, 1, 0) <= 0); /* the oldest was sent away */
    for (size_t i = 0; i < SLOW; i++)
        assert_int_equal(close(slow[i]), 0);
}

/* Closed while connections are idle, half-way through a request, and kept alive. */
TEST(test_http__closes_in_the_middle_of_anything)
{
    struct server server;
    start_on(&server, "127.0.0.1");
    char answer[2048];
    int idle = connect_to(&server), half = connect_to(&server), kept = connect_to(&server);
    send_all(half, "GET /heal");
    send_all(kept, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    receive(kept, "\r\n\r\nok\n", answer, sizeof answer);
    stop(&server);
    assert_int_equal(recv(kept, answer, 1, 0), 0); /* closed for the peers too */
    assert_int_equal(close(idle), 0);
    assert_int_equal(close(half), 0);
    assert_int_equal(close(kept), 0);
}

TEST(test_http__an_address_in_use_is_69)
{
    struct server *server = *state, second;
    int exit_code = 0;
    char why[256];
    assert_int_equal(uv_loop_init(&second.loop), 0);
    assert_null(
        listen_on(&second, "127.0.0.1", http_port(server->http), &exit_code, why, sizeof why));
    assert_int_equal(exit_code, 69);
    assert_contains(why, "--http: cannot listen on 127.0.0.1 port ");
    assert_contains(why, "in use; stop what uses it, or choose another port");
    assert_null(listen_on(&second, "192.0.2.77", 0, &exit_code, why, sizeof why));
    assert_int_equal(exit_code, 2);
    assert_contains(why, "this machine has no such address");
    assert_int_equal(uv_loop_close(&second.loop), 0);
}

TEST(test_http__wildcard_is_asked_by_address_or_own_name)
{
    struct server server;
    start_on(&server, "0.0.0.0");
    assert_answer(ask(&server, "GET /healthz HTTP/1.1\r\nHost: 192.0.2.1:1\r\n" END), 200, "ok\n");
    char name[128], request[256];
    assert_int_equal(gethostname(name, sizeof name), 0);
    (void)snprintf(request, sizeof request, "GET /healthz HTTP/1.1\r\nHost: %s:80\r\n" END, name);
    assert_answer(ask(&server, request), 200, "ok\n");
    assert_contains(ask(&server, "GET /healthz HTTP/1.1\r\nHost: evil.example\r\n" END), " 403 ");
    stop(&server);
}

static int set_up(void **state)
{
    static struct server server;
    start_on(&server, "127.0.0.1");
    *state = &server;
    return 0;
}

static int tear_down(void **state)
{
    stop(*state);
    return 0;
}

TEST_MAIN(NULL, NULL, set_up, tear_down)

/*
 * test_tracked.c -- requests about tracked clients, byte for byte over a unix socket, against a
 * real core whose store the test is: a response comes when the test has stored what it depends on,
 * and not before; bodies come whole, in pieces and in chunks, and wrong ones change nothing; a
 * request that finds the batch full waits.
 *
 * The loop runs in the test's own thread, a turn at a time.
 */
#include "admin/tracked.h"

#include "../core/fixture.h"
#include "admin/http.h"
#include "unit/test.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { REPLY_MAX = 16384, TURNS = 50 };

static uv_loop_t loop;
static struct core *core;
static struct admin admin;
static struct http *http;
static struct sockaddr_un place;
static bool is_full;
static uint32_t asked;
static char reply[REPLY_MAX + 1];
static size_t reply_len;
static int fd;

static bool is_ready(void *context, struct text *ret_reason)
{
    (void)context;
    (void)ret_reason;
    return true;
}

static void facts(void *context, struct admin_facts *ret)
{
    (void)context;
    *ret = (struct admin_facts){.store = "memory:", .rpcbind = "off"};
}

static void track(void *context, const struct tracking *tracking, struct core_answer *ret)
{
    (void)context;
    struct core_input input = {.kind = CORE_TRACKING,
                               .now_ns = fixture_now_ns(),
                               .wall_ns = fixture_now_ns(),
                               .tracking = tracking};
    asked++;
    *ret = (struct core_answer){.tracking.result = TRACKING_LATER};
    if (!is_full)
        core_step(core, &input, ret);
}

TEST_FIXTURE(set_up)
{
    struct core_limits limits = fixture_limits;
    limits.clients_max = 5;
    limits.window_ns = 90 * FIXTURE_SECOND;
    core = fixture_new(&limits);
    fixture_ready(core);
    (void)fixture_store(core);
    is_full = false;
    asked = 0;
    admin = (struct admin){.core = core, .is_ready = is_ready, .facts = facts, .track = track};
    assert_int_equal(uv_loop_init(&loop), 0);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(listener >= 0);
    /* A name that is no file: nothing is left behind. */
    place = (struct sockaddr_un){.sun_family = AF_UNIX};
    (void)snprintf(place.sun_path + 1, sizeof place.sun_path - 1, "holdfast-test-tracked-%d",
                   (int)getpid());
    assert_int_equal(bind(listener, (struct sockaddr *)&place, sizeof place), 0);
    assert_int_equal(listen(listener, 8), 0);
    http = http_new_control(&loop, listener, &admin);
    assert_non_null(http);
    fd = -1;
}

TEST_FIXTURE(tear_down)
{
    if (fd >= 0)
        assert_int_equal(close(fd), 0);
    http_free(http);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    core_free(core);
}

static void turn(void)
{
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    http_turn(http);
}

static void say(const char *text, size_t len)
{
    while (len > 0) {
        ssize_t sent = send(fd, text, len, MSG_NOSIGNAL);
        if (sent > 0) {
            text += sent;
            len -= (size_t)sent;
        } else {
            assert_true(errno == EAGAIN);
        }
        turn();
    }
}

/* Everything that has come so far. */
static void hear(void)
{
    for (int i = 0; i < TURNS; i++) {
        turn();
        ssize_t got = recv(fd, reply + reply_len, REPLY_MAX - reply_len, 0);
        reply_len += got > 0 ? (size_t)got : 0;
        reply[reply_len] = '\0';
    }
}

static void begin(const char *request)
{
    if (fd >= 0)
        assert_int_equal(close(fd), 0);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&place, sizeof place), 0);
    reply_len = 0;
    reply[0] = '\0';
    say(request, strlen(request));
}

static void ask(const char *method, const char *path, const char *body)
{
    char request[REPLY_MAX];
    (void)snprintf(request, sizeof request,
                   "%s /api/v1/tracked%s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n%s",
                   method, path, strlen(body), body);
    begin(request);
    hear();
}

static void store(void)
{
    (void)fixture_store(core);
    http_stored(http);
    hear();
}

static unsigned status(void)
{
    unsigned number = 0;
    (void)sscanf(reply, "HTTP/1.1 %3u", &number);
    return number;
}

static void expect(unsigned wanted, const char *part)
{
    if (status() != wanted || strstr(reply, part) == NULL)
        fail_msg("not %u with %s: %s", wanted, part, reply);
}

/* The whole way, with a store that takes everything. */
static void gives(unsigned wanted, const char *method, const char *path, const char *body)
{
    ask(method, path, body);
    store();
    expect(wanted, "");
}

TEST(test_tracked__a_response_waits_for_the_store)
{
    static const struct {
        const char *method, *path, *body;
        unsigned status;
    } steps[] = {
        {"PUT", "/smb/a", "{\"bytes\": \"00\"}", 201},
        {"PATCH", "/smb/a", "{\"bytes\": \"01\"}", 200},
        {"POST", "/smb/a/disconnect", "", 200},
        {"POST", "/smb/a/reconnect", "", 200},
        {"DELETE", "/smb/a", "", 200},
    };
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        ask(steps[i].method, steps[i].path, steps[i].body);
        if (reply_len != 0)
            fail_msg("%s is answered before it is stored: %s", steps[i].method, reply);
        store();
        expect(steps[i].status, "\"result\":");
    }
    /* "No such client" is as much an answer: the removal before it must be durable. */
    gives(201, "PUT", "/smb/b", "");
    ask("DELETE", "/smb/b", "");
    ask("GET", "/smb/b", "");
    assert_int_equal(reply_len, 0);
    store();
    expect(404, "no such tracked client: b");
    /* And so is "none is expired". */
    gives(201, "PUT", "/smb/c", "");
    ask("DELETE", "/smb/c", "");
    ask("POST", "/smb/expired", "");
    assert_int_equal(reply_len, 0);
    store();
    expect(204, "");
}

TEST(test_tracked__a_full_batch_is_waited_for)
{
    is_full = true;
    ask("PUT", "/smb/a", "{\"name\": \"laptop\"}");
    store();
    assert_int_equal(reply_len, 0);
    assert_true(asked > 1);
    is_full = false;
    hear();
    assert_int_equal(reply_len, 0); /* now it waits for the store */
    store();
    expect(201, "\"name\":\"laptop\"");
}

TEST(test_tracked__bodies_in_pieces)
{
    begin("PUT /api/v1/tracked/smb/a HTTP/1.1\r\nHost: x\r\nContent-Length: 18\r\n\r\n{\"byt");
    hear();
    assert_int_equal(asked, 0);
    say("es\": ", 5);
    hear();
    assert_int_equal(asked, 0);
    say("\"0a0b\"}", 7);
    hear();
    assert_int_equal(asked, 0); /* one byte is missing */
    say(" ", 1);
    hear();
    store();
    expect(201, "\"bytes\":\"0a0b\"");
    begin("PUT /api/v1/tracked/smb/a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
          "9\r\n{\"bytes\":\r\n5\r\n\"0c\"}\r\n0\r\n\r\n");
    hear();
    store();
    expect(200, "\"bytes\":\"0c\"");
    /* Who goes away in the middle of it has said nothing. */
    begin("PUT /api/v1/tracked/smb/b HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{\"bytes");
    hear();
    gives(404, "GET", "/smb/b", "");
}

TEST(test_tracked__long_bodies_are_not_kept)
{
    static char body[20000];
    memset(body, ' ', 8193);
    ask("PUT", "/smb/a", body);
    expect(413, "at most 8,192 bytes");
    memset(body, ' ', 8190);
    memcpy(body + 8190, "{}", 3);
    gives(201, "PUT", "/smb/a", body);
    /* One that does not say how long it is. */
    begin("PUT /api/v1/tracked/smb/b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
          "4000\r\n");
    memset(body, 'x', 0x4000);
    (void)send(fd, body, 0x4000, MSG_NOSIGNAL);
    hear();
    assert_int_not_equal(status(), 201);
    gives(404, "GET", "/smb/b", "");
    ask("POST", "/smb/a", "{}"); /* where none is taken */
    expect(405, "Allow: GET, HEAD, DELETE, PUT, PATCH");
}

TEST(test_tracked__wrong_bodies_change_nothing)
{
    static const char *const bad[] = {
        "{",
        "[]",
        "null",
        "{} {}",
        "{\"window_s\": 1.5}",
        "{\"window_s\": 86401}",
        "{\"window_s\": 99999999999999999999}",
        "{\"name\": 1}",
        "{\"name\": \"\\u0000\"}",
        "{\"name\": \"\\ud800\"}",
        "{\"name\": \"\x80\"}",
        "{\"name\": \"a\\nb\"}",
        "{\"address\": \"1.2.3\"}",
        "{\"address\": true}",
        "{\"bytes\": \"0\"}",
        "{\"bytes\": \"0g\"}",
        "{\"bytes\": []}",
        "{\"timeout_s\": 1}",
        "{\"id\": \"c1\"}",
    };
    gives(201, "PUT", "/smb/a", "{\"name\": \"as it was\", \"bytes\": \"07\"}");
    uint32_t before = asked;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ask("PUT", "/smb/a", bad[i]);
        expect(400, "{\"error\": \"");
    }
    static const char *const paths[] = {"/nlm/a",    "/s_b/a",     "/seventeen-letters/a",
                                        "/smb/hex:", "/smb/hex:0", "/smb/hex:zz",
                                        "/smb/a%00", "/smb/%2561", "/smb/a%2Fb%00"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        ask("PUT", paths[i], "");
        assert_true(status() == 400 || status() == 404);
    }
    assert_int_equal(asked, before);
    gives(200, "GET", "/smb/a", "");
    expect(200, "\"name\":\"as it was\"");
    expect(200, "\"connection\":1,\"window_s\":90");
}

TEST(test_tracked__every_result_has_its_status)
{
    gives(201, "PUT", "/smb/a", "{\"window_s\": 5}");
    gives(200, "PUT", "/smb/a", "{\"window_s\": 5}");
    gives(409, "POST", "/smb/a/disconnect?connection=1", "");
    gives(404, "POST", "/smb/a/disconnect?id=c77", "");
    gives(200, "POST", "/smb/a/disconnect?id=c1&connection=2", "{\"timeout_s\": 5}");
    fixture_wait(5 * FIXTURE_SECOND);
    gives(410, "POST", "/smb/a/reconnect", "");
    gives(410, "PUT", "/smb/a", "");
    gives(200, "POST", "/smb/expired", "");
    expect(200, "\"result\":\"expired\",\"id\":\"c1\"");
    gives(204, "POST", "/smb/expired", "");
    gives(200, "DELETE", "/smb/a?id=c1", "");
    expect(200, "{\"result\":\"removed\"}");
    gives(404, "DELETE", "/smb/a?id=c1", "");
    for (char path[] = "/smb/1"; path[5] < '6'; path[5]++)
        gives(201, "PUT", path, "");
    gives(507, "PUT", "/smb/6", "");
    /* What a path names, whatever its bytes are, is shown as a path can name it. */
    gives(200, "DELETE", "/smb/1", "");
    gives(201, "PUT", "/smb/hex:2f00ff", "");
    expect(201, "\"key\":\"hex:2f00ff\",\"name\":\"hex:2f00ff\"");
    gives(200, "GET", "?state=connected&protocol=smb", "");
    expect(200, "\"key\":\"hex:2f00ff\"");
}

TEST_MAIN(set_up, tear_down, NULL, NULL)

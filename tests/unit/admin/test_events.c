/*
 * test_events.c -- what a reader of the events gets that comes back: everything since the id it
 * names as far as it is kept, and how much it lost of what is not.
 *
 * The loop runs in the test's own thread, a turn at a time, until the reader has what it waits for.
 * The clock is the test's: a second passes when it says so.
 */
#include "admin/events.h"

#include "../core/fixture.h"
#include "admin/http.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define KEPT       512 /* as docs/http.md promises */
#define PER_SECOND 100

struct world {
    uv_loop_t loop;
    struct core *core;
    struct admin admin;
    struct events *events;
    struct http *http;
    uint64_t wall_ns;
    uint32_t happened;
};

static bool is_ready(void *context, struct text *ret_reason)
{
    (void)context;
    (void)ret_reason;
    return true;
}

static void facts(void *context, struct admin_facts *ret)
{
    const struct world *world = context;
    *ret = (struct admin_facts){.wall_ns = world->wall_ns, .store = "memory:", .rpcbind = "off"};
}

static int start(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    struct address local = fixture_address("127.0.0.1");
    char buffer[256];
    struct text why;
    int code;
    text_init(&why, buffer, sizeof buffer);
    assert_non_null(world);
    assert_int_equal(uv_loop_init(&world->loop), 0);
    world->core = fixture_new(&fixture_limits);
    world->wall_ns = FIXTURE_SECOND;
    world->admin =
        (struct admin){.core = world->core, .context = world, .is_ready = is_ready, .facts = facts};
    world->events = events_new(&world->loop, &world->admin);
    assert_non_null(world->events);
    world->admin.events = world->events;
    world->http = http_new(&world->loop, &local, 0, &world->admin, &code, &why);
    if (world->http == NULL)
        fail_msg("%s", buffer);
    *state = world;
    return 0;
}

static int stop(void **state)
{
    struct world *world = *state;
    http_free(world->http);
    events_free(world->events);
    (void)uv_run(&world->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&world->loop), 0);
    core_free(world->core);
    free(world);
    return 0;
}

/* So many things happen in this second. */
static void happen(struct world *world, uint32_t count)
{
    static struct event_ring none;
    for (uint32_t i = 0; i < count; i++) {
        static struct event_ring feed;
        event_add(&feed, EVENT_BLOCKED, NULL, bytes_of_text("web1"), world->happened++);
        events_turn(world->events, &none, &feed);
        assert_int_equal(feed.count, 0);
    }
}

/* A reader that got as far as `last_id`; what it reads until it has seen `end`. */
static const char *read_from(struct world *world, const char *last_id, const char *end)
{
    static char text[512 * 1024];
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(http_port(world->http)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char request[256];
    size_t len = 0;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    (void)snprintf(request, sizeof request,
                   "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: %s\r\n\r\n",
                   last_id);
    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    text[0] = '\0';
    while (strstr(text, end) == NULL) {
        (void)uv_run(&world->loop, UV_RUN_ONCE);
        ssize_t got = recv(fd, text + len, sizeof text - 1 - len, MSG_DONTWAIT);
        len += got > 0 ? (size_t)got : 0;
        text[len] = '\0';
    }
    assert_int_equal(close(fd), 0);
    return text;
}

static void test_events__who_comes_back_misses_nothing(void **state)
{
    struct world *world = *state;
    happen(world, 3); /* ids 1 to 3, and nobody listens */
    const char *text = read_from(world, "1", "\"value\":2");
    assert_non_null(strstr(text, "id: 2\nevent: blocked\n"));
    assert_non_null(strstr(text, "\"value\":1"));
    assert_null(strstr(text, "\"value\":0"));
    assert_null(strstr(text, "event: lost"));
}

static void test_events__who_comes_late_is_told_how_much_is_lost(void **state)
{
    struct world *world = *state;
    for (uint32_t second = 0; second < 6; second++) {
        happen(world, PER_SECOND);
        world->wall_ns += FIXTURE_SECOND;
    }
    const char *text = read_from(world, "10", "\"value\":599");
    char lost[64], first[64];
    (void)snprintf(lost, sizeof lost, "event: lost\ndata: {\"count\":%d}", 600 - KEPT - 10);
    (void)snprintf(first, sizeof first, "id: %d\n", 600 - KEPT + 1);
    assert_non_null(strstr(text, lost));
    assert_non_null(strstr(text, first));
}

static void test_events__more_than_fits_a_second_is_counted(void **state)
{
    struct world *world = *state;
    happen(world, PER_SECOND + 7);
    world->wall_ns += FIXTURE_SECOND;
    happen(world, 1);
    const char *text = read_from(world, "0", "\"value\":107");
    assert_non_null(strstr(text, "event: more\ndata: {\"count\":7}"));
    assert_null(strstr(text, "\"value\":100}"));
}

static void test_events__an_id_of_another_run_is_none(void **state)
{
    struct world *world = *state;
    happen(world, 3);
    const char *text = read_from(world, "4", "event: status");
    assert_null(strstr(text, "event: blocked"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_events__who_comes_back_misses_nothing, start, stop),
        cmocka_unit_test_setup_teardown(test_events__who_comes_late_is_told_how_much_is_lost, start,
                                        stop),
        cmocka_unit_test_setup_teardown(test_events__more_than_fits_a_second_is_counted, start,
                                        stop),
        cmocka_unit_test_setup_teardown(test_events__an_id_of_another_run_is_none, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

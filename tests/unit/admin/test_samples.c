/*
 * test_samples.c -- samples of the last hour: each has the counts of its own time, the newest 360
 * are kept, and who has some already gets the rest.
 *
 * The clock, the calls and the commits are the test's.
 */
#include "admin/samples.h"

#include "../core/fixture.h"
#include "admin/http.h"
#include "base/programs.h"
#include "proto/nlm.h"
#include "unit/test.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATIENCE_TURNS 100000

static const struct program *const programs[] = {&nlm_program};

struct world {
    uv_loop_t loop;
    struct admin admin;
    struct meter *meter;
    struct histogram commits;
    struct http *http;
    uint64_t now_ns;
};

static void facts(void *context, struct admin_facts *ret)
{
    const struct world *world = context;
    *ret = (struct admin_facts){.now_ns = world->now_ns,
                                .wall_ns = world->now_ns,
                                .store = "memory:",
                                .rpcbind = "off",
                                .commit_durations = &world->commits};
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
    world->now_ns = FIXTURE_SECOND;
    histogram_init(&world->commits, &histogram_durations);
    world->meter = meter_new(programs, 1);
    assert_non_null(world->meter);
    world->admin = (struct admin){.core = fixture_new(&fixture_limits),
                                  .meter = world->meter,
                                  .context = world,
                                  .facts = facts};
    world->admin.samples = samples_new(&world->loop, &world->admin);
    assert_non_null(world->admin.samples);
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
    samples_free(world->admin.samples);
    (void)uv_run(&world->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&world->loop), 0);
    meter_free(world->meter);
    core_free(world->admin.core);
    free(world);
    return 0;
}

/* Ten seconds pass with so many calls and commits. */
static void pass(struct world *world, uint32_t calls, uint32_t commits, uint64_t commit_ns)
{
    for (uint32_t i = 0; i < calls; i++)
        meter_count(world->meter, meter_find(world->meter, NLM_PROGRAM, 2), false, 1);
    for (uint32_t i = 0; i < commits; i++)
        histogram_add(&world->commits, commit_ns);
    world->now_ns += SAMPLES_SECONDS * FIXTURE_SECOND;
    samples_take(world->admin.samples);
}

static const char *get(struct world *world, const char *query)
{
    static char text[256 * 1024];
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(http_port(world->http)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char request[256];
    size_t len = 0;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    (void)snprintf(request, sizeof request,
                   "GET /api/v1/samples%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
                   query);
    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    for (uint32_t turn = 0;; turn++) {
        assert_true(turn < PATIENCE_TURNS);
        (void)uv_run(&world->loop, UV_RUN_NOWAIT);
        ssize_t got = recv(fd, text + len, sizeof text - 1 - len, MSG_DONTWAIT);
        if (got == 0)
            break;
        if (got > 0)
            len += (size_t)got;
        else
            (void)usleep(100);
    }
    text[len] = '\0';
    (void)close(fd);
    return text;
}

static uint32_t count_of(const char *text, const char *word)
{
    uint32_t count = 0;
    for (; (text = strstr(text, word)) != NULL; text += strlen(word))
        count++;
    return count;
}

TEST_OF(test_samples__each_is_of_its_own_time, struct world *world)
{
    assert_non_null(strstr(get(world, ""), "\"samples\":[]"));
    pass(world, 30, 0, 0);
    pass(world, 5, 100, 2 * FIXTURE_SECOND / 1000);
    const char *text = get(world, "");
    const char *first = strstr(text, "\"seconds\":10.000000000,\"nlm_requests\":30,");
    assert_non_null(first);
    assert_non_null(strstr(first, "\"commits\":0,\"commit_median_seconds\":null,"));
    const char *second = strstr(text, "\"nlm_requests\":5,");
    assert_non_null(second);
    /* All lie between 1 and 2.5 ms. */
    assert_non_null(strstr(second, "\"commits\":100,\"commit_median_seconds\":0.001750000,"
                                   "\"commit_p99_seconds\":0.002485000,"));
    assert_non_null(strstr(text, "\"last\":2}"));
}

TEST_OF(test_samples__the_rest_for_who_has_some, struct world *world)
{
    for (uint32_t i = 1; i <= 3; i++)
        pass(world, i, 0, 0);
    const char *text = get(world, "?after=2");
    assert_int_equal(count_of(text, "\"time\""), 1);
    assert_non_null(strstr(text, "\"nlm_requests\":3,"));
    assert_int_equal(count_of(get(world, "?after=3"), "\"time\""), 0);
    /* Of a run before this one. */
    assert_int_equal(count_of(get(world, "?after=4"), "\"time\""), 3);
    for (const char *const *wrong = (const char *const[]){"", "x", "-1", "1x", NULL}; *wrong;
         wrong++) {
        char query[64];
        (void)snprintf(query, sizeof query, "?after=%s", *wrong);
        assert_non_null(strstr(get(world, query), "HTTP/1.1 400 "));
    }
}

TEST_OF(test_samples__an_hour_is_kept, struct world *world)
{
    for (uint32_t i = 1; i <= SAMPLES_MAX + 7; i++)
        pass(world, i, 0, 0);
    const char *text = get(world, "");
    assert_int_equal(count_of(text, "\"time\""), SAMPLES_MAX);
    assert_int_equal(SAMPLES_MAX * SAMPLES_SECONDS, 3600);
    assert_null(strstr(text, "\"nlm_requests\":7,"));
    assert_non_null(strstr(text, "\"nlm_requests\":8,"));
    assert_non_null(strstr(text, "\"nlm_requests\":367,"));
}

/* A standby that takes over: the first one begins then, not when the standby started. */
TEST_OF(test_samples__time_without_a_core_belongs_to_none, struct world *world)
{
    struct core *core = world->admin.core;
    world->admin.core = NULL;
    for (uint32_t i = 0; i < 5; i++)
        pass(world, 0, 0, 0);
    world->admin.core = core;
    pass(world, 3, 0, 0);
    const char *text = get(world, "");
    assert_int_equal(count_of(text, "\"time\""), 1);
    assert_non_null(strstr(text, "\"seconds\":10.000000000,\"nlm_requests\":3,"));
}

TEST_OF(test_samples__nothing_is_taken_without_metrics, struct world *world)
{
    world->admin.meter = NULL;
    samples_take(world->admin.samples);
    assert_non_null(strstr(get(world, ""), "metrics are off"));
}

TEST_MAIN(start, stop, NULL, NULL)

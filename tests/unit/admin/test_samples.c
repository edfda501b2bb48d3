/*
 * test_samples.c -- samples of the last hour: each has the counts of its own time, the newest 360
 * are kept, and who has some already gets the rest; and what was done in the last seconds.
 *
 * The clock, the calls and the commits are the test's.
 */
#include "admin/samples.h"

#include "../core/fixture.h"
#include "base/units.h"
#include "proto/nlm.h"
#include "site.h"
#include "unit/test.h"

#include <time.h>
#include <unistd.h>

#define PATIENCE_S 60 /* only so that a broken answer fails the test instead of hanging it */

static const struct program *const programs[] = {&nlm_program};

struct world {
    struct site site;
    struct meter *meter;
    struct histogram commits;
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
    assert_non_null(world);
    world->now_ns = FIXTURE_SECOND;
    histogram_init(&world->commits, &histogram_durations);
    world->meter = meter_new(programs, 1);
    assert_non_null(world->meter);
    world->site.admin = (struct admin){.meter = world->meter, .context = world, .facts = facts};
    site_init(&world->site);
    world->site.admin.samples = samples_new(&world->site.loop, &world->site.admin);
    assert_non_null(world->site.admin.samples);
    site_serve(&world->site);
    *state = world;
    return 0;
}

static int stop(void **state)
{
    struct world *world = *state;
    site_stop(&world->site);
    samples_free(world->site.admin.samples);
    site_done(&world->site);
    meter_free(world->meter);
    free(world);
    return 0;
}

static void work(struct world *world, uint32_t calls, uint32_t commits, uint64_t commit_ns)
{
    for (uint32_t i = 0; i < calls; i++)
        meter_count(world->meter, meter_row(0, 2), false, 1);
    for (uint32_t i = 0; i < commits; i++)
        histogram_add(&world->commits, commit_ns);
}

static void pass_seconds(struct world *world, uint32_t seconds)
{
    for (uint32_t i = 0; i < seconds; i++) {
        world->now_ns += FIXTURE_SECOND;
        samples_tick(world->site.admin.samples);
    }
}

/* Ten seconds pass with so many calls and commits. */
static void pass(struct world *world, uint32_t calls, uint32_t commits, uint64_t commit_ns)
{
    work(world, calls, commits, commit_ns);
    pass_seconds(world, SAMPLES_SECONDS);
}

static struct samples_recent recent(struct world *world)
{
    struct samples_recent ret;
    struct admin_facts now;
    facts(world, &now);
    samples_recent(world->site.admin.samples, &now, &ret);
    return ret;
}

static const char *get(struct world *world, const char *query)
{
    static char text[256 * 1024];
    char path[128];
    size_t len = 0;
    (void)snprintf(path, sizeof path, "/api/v1/samples%s", query);
    int fd = site_ask(&world->site, path, "Connection: close\r\n");
    time_t deadline = time(NULL) + PATIENCE_S;
    while (site_read(&world->site, fd, text, sizeof text, &len))
        assert_true(time(NULL) <= deadline);
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
    struct admin *admin = &world->site.admin;
    struct core *core = admin->core;
    admin->core = NULL;
    admin->meter = NULL; /* the daemon sets both at once */
    for (uint32_t i = 0; i < 5; i++)
        pass(world, 0, 0, 0);
    assert_int_equal(recent(world).window_ns, 0);
    admin->core = core;
    admin->meter = world->meter;
    pass(world, 3, 0, 0);
    const char *text = get(world, "");
    assert_int_equal(count_of(text, "\"time\""), 1);
    assert_non_null(strstr(text, "\"seconds\":10.000000000,\"nlm_requests\":3,"));
}

TEST_OF(test_samples__nothing_is_taken_without_metrics, struct world *world)
{
    world->site.admin.meter = NULL;
    pass(world, 0, 0, 0);
    assert_non_null(strstr(get(world, ""), "metrics are off"));
    assert_int_equal(recent(world).window_ns, 0);
}

/* ---- the last seconds ---- */

TEST_OF(test_samples__the_first_seconds_are_all_since_the_start, struct world *world)
{
    work(world, 1000, 1000, 2 * MS_NS);
    pass_seconds(world, 1);
    work(world, 5, 1, 2 * MS_NS);
    pass_seconds(world, 2);
    world->now_ns += FIXTURE_SECOND / 2;
    work(world, 7, 1, 2 * MS_NS);
    assert_int_equal(recent(world).window_ns, 7 * FIXTURE_SECOND / 2);
    assert_int_equal(recent(world).requests, 1012);
    assert_int_equal(recent(world).commits, 1002);
    assert_int_equal(recent(world).commit_ns, 2004 * MS_NS);
}

TEST_OF(test_samples__of_the_last_seconds_what_is_older_is_forgotten, struct world *world)
{
    for (uint32_t second = 1; second < 60; second++) {
        work(world, second < 40 ? 100 : 1, second < 40, MS_NS);
        pass_seconds(world, 1);
    }
    world->now_ns += FIXTURE_SECOND; /* in which nothing was done */
    assert_int_equal(recent(world).window_ns, SAMPLES_SECONDS * FIXTURE_SECOND);
    assert_int_equal(recent(world).requests, SAMPLES_SECONDS - 1);
    assert_int_equal(recent(world).commits, 0);
    assert_int_equal(recent(world).commit_ns, 0);
}

TEST_MAIN(start, stop, NULL, NULL)

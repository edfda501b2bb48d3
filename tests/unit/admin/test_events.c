/*
 * test_events.c -- what a reader of the events gets that comes back: everything since the id it
 * names as far as it is kept, and how much it lost of what is not; and that the page has words for
 * all of them.
 *
 * The loop runs in the test's own thread, a turn at a time, until the reader has what it waits for.
 * The clock is the test's: a second passes when it says so.
 */
#include "admin/events.h"

#include "../core/fixture.h"
#include "admin/web_page.h"
#include "site.h"
#include "unit/test.h"

#include <time.h>
#include <unistd.h>

#define KEPT       512 /* as docs/http.md promises */
#define PER_SECOND 100
#define RUN        7
#define RUN_TEXT   "7"
#define PATIENCE_S 60 /* only so that a broken stream fails the test instead of hanging it */

struct world {
    struct site site;
    struct events *events;
    uint64_t wall_ns;
    uint32_t happened;
    uint32_t happens_later; /* so many, as soon as a reader has got the first status */
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
    assert_non_null(world);
    world->wall_ns = FIXTURE_SECOND;
    world->site.admin = (struct admin){.context = world, .is_ready = is_ready, .facts = facts};
    site_init(&world->site);
    world->events = events_new(&world->site.loop, &world->site.admin, RUN);
    assert_non_null(world->events);
    world->site.admin.events = world->events;
    site_serve(&world->site);
    *state = world;
    return 0;
}

static int stop(void **state)
{
    struct world *world = *state;
    site_stop(&world->site);
    events_free(world->events);
    site_done(&world->site);
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
    char header[64];
    size_t len = 0;
    (void)snprintf(header, sizeof header, "Last-Event-ID: %s\r\n", last_id);
    int fd = site_ask(&world->site, "/api/v1/events", header);
    text[0] = '\0';
    time_t deadline = time(NULL) + PATIENCE_S;
    while (strstr(text, end) == NULL) {
        if (!site_read(&world->site, fd, text, sizeof text, &len) || time(NULL) > deadline)
            fail_msg("the stream ended, or said no \"%s\" in time: %s", end, text);
        if (world->happens_later > 0 && strstr(text, "event: status") != NULL) {
            happen(world, world->happens_later);
            world->happens_later = 0;
        }
    }
    assert_int_equal(close(fd), 0);
    return text;
}

TEST_OF(test_events__who_comes_back_misses_nothing, struct world *world)
{
    happen(world, 3); /* ids 1 to 3, and nobody listens */
    const char *text = read_from(world, RUN_TEXT "-1", "\"value\":2");
    assert_non_null(strstr(text, "id: " RUN_TEXT "-2\nevent: blocked\n"));
    assert_non_null(strstr(text, "\"value\":1"));
    assert_null(strstr(text, "\"value\":0"));
    assert_null(strstr(text, "event: lost"));
}

TEST_OF(test_events__who_comes_late_is_told_how_much_is_lost, struct world *world)
{
    for (uint32_t second = 0; second < 6; second++) {
        happen(world, PER_SECOND);
        world->wall_ns += FIXTURE_SECOND;
    }
    const char *text = read_from(world, RUN_TEXT "-10", "\"value\":599");
    char lost[64], first[64];
    (void)snprintf(lost, sizeof lost, "event: lost\ndata: {\"count\":%d}", 600 - KEPT - 10);
    (void)snprintf(first, sizeof first, "id: " RUN_TEXT "-%d\n", 600 - KEPT + 1);
    assert_non_null(strstr(text, lost));
    assert_non_null(strstr(text, first));
    assert_true(strstr(text, "event: status") <
                strstr(text, lost)); /* the status is first of all */
}

TEST_OF(test_events__more_than_fits_a_second_is_counted, struct world *world)
{
    happen(world, PER_SECOND + 7);
    world->wall_ns += FIXTURE_SECOND;
    happen(world, 1);
    const char *text = read_from(world, RUN_TEXT "-0", "\"value\":107");
    assert_non_null(strstr(text, ",\"count\":7}"));
    assert_null(strstr(text, "\"value\":100}"));
}

/* The server was started anew while the reader was away, and more has happened since than it had
 * seen of the run before, or less. */
TEST_OF(test_events__who_read_another_run_gets_all_of_this_one, struct world *world)
{
    static const char *const ids[] = {"6-1", "6-2", "6-3", "6-999", "18446744073709551615-0",
                                      /* of a program that did not tell runs apart */
                                      "1", "999"};
    happen(world, 3);
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        const char *text = read_from(world, ids[i], "\"value\":2");
        assert_non_null(strstr(text, "\"value\":0"));
        assert_non_null(strstr(text, "\"value\":1"));
        assert_null(strstr(text, "event: lost"));
    }
}

/* Streams that have nothing to say take all places, and more: the oldest ones make room at once,
 * and not when the next event wakes them. No second passes here, so nothing else does. */
TEST_OF(test_events__sleeping_streams_do_not_keep_others_out, struct world *world)
{
    enum { STREAMS = 300 };
    static int streams[STREAMS];
    static char text[64 * 1024];
    size_t len = 0;
    for (size_t i = 0; i < STREAMS; i++)
        streams[i] = site_ask(&world->site, "/api/v1/events", "");
    int fd = site_ask(&world->site, "/healthz", "");
    time_t deadline = time(NULL) + PATIENCE_S;
    text[0] = '\0';
    while (strstr(text, "ok\n") == NULL && time(NULL) <= deadline)
        if (!site_read(&world->site, fd, text, sizeof text, &len))
            break;
    assert_non_null(strstr(text, "ok\n"));
    assert_int_equal(close(fd), 0);
    for (size_t i = 0; i < STREAMS; i++)
        assert_int_equal(close(streams[i]), 0);
}

TEST_OF(test_events__what_is_no_id_is_none, struct world *world)
{
    static const char *const ids[] = {RUN_TEXT "-4", /* never given */
                                      RUN_TEXT "-",
                                      "-1",
                                      "-",
                                      "x",
                                      RUN_TEXT "-1x",
                                      "1;2",
                                      " ",
                                      RUN_TEXT "-99999999999999999999999",
                                      "99999999999999999999999"};
    happen(world, 3);
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        char next[32];
        (void)snprintf(next, sizeof next, "\"value\":%u}", world->happened);
        world->happens_later = 1;
        const char *text = read_from(world, ids[i], next);
        const char *first = strstr(text, "event: blocked");
        assert_non_null(first);
        assert_null(strstr(first + 1, "event: blocked")); /* only what happened since */
    }
}

/* One that it does not know is never written into its log, and nobody would notice. */
TEST_WITH(test_events__the_page_has_words_for_every_kind, NULL, NULL)
{
    char *page = calloc(1, page_js_len + 1);
    assert_non_null(page);
    memcpy(page, page_js, page_js_len);
    char *kinds = strstr(page, "const kinds = {");
    assert_non_null(kinds);
    char *end = strstr(kinds, "\n};");
    assert_non_null(end);
    *end = '\0';
    uint32_t count = 0;
    for (enum event_kind kind = 0; kind < EVENT_KIND_END; kind++) {
        char word[64];
        if (events_name(kind) == NULL)
            continue;
        (void)snprintf(word, sizeof word, "\n    %s: [", events_name(kind));
        if (strstr(kinds, word) == NULL)
            fail_msg("the page does not know %s", events_name(kind));
        count++;
    }
    assert_true(count > 20);
    free(page);
}

TEST_MAIN(start, stop, NULL, NULL)

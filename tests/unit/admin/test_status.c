/*
 * test_status.c -- who blocks most, in order, and what needs attention, on a real core.
 */
#include "admin/status.h"

#include "../core/locker.h"
#include "admin/samples.h"
#include "base/units.h"
#include "core/view.h"
#include "proto/nlm.h"
#include "unit/test.h"

#include <stdlib.h>

static struct admin_facts told;
static struct admin_limit limits[2];
static char *json;
static struct admin admin;

static void facts(void *context, struct admin_facts *ret)
{
    (void)context;
    *ret = told;
    ret->wall_ns = ret->now_ns = fixture_now_ns();
}

static bool limit(void *context, uint32_t index, struct admin_limit *ret)
{
    (void)context;
    if (index >= 2)
        return false;
    *ret = limits[index];
    return true;
}

/* The status, as it is now. */
static const char *status(void)
{
    struct writer out = {0};
    size_t len;
    admin.core = the_core;
    status_write(&out, &admin);
    free(json);
    json = writer_take(&out, &len);
    assert_non_null(json);
    return json;
}

static void assert_says(const char *text)
{
    if (strstr(status(), text) == NULL)
        fail_msg("no %s in %s", text, json);
}

static void assert_attention(const char *sentences)
{
    char list[512];
    (void)snprintf(list, sizeof list, "\"attention\":[%s]", sentences);
    assert_says(list);
}

static int set_up(void **state)
{
    admin = (struct admin){.facts = facts, .limit = limit};
    told = (struct admin_facts){.store = "memory:", .rpcbind = "off", .is_found = true};
    limits[0] = (struct admin_limit){"connections", "--max-connections", 10, 8, false};
    limits[1] = (struct admin_limit){"open_files", "LimitNOFILE=", 10, 10, true};
    return locker_set_up(state);
}

static int tear_down(void **state)
{
    free(json);
    json = NULL;
    return locker_tear_down(state);
}

/* A blocks one, for longer; B blocks two, one of them behind the other. */
TEST(test_status__worst_blockers_come_first)
{
    tell("A lock 0 10 X -> granted; B lock 50 10 X -> granted; C lock 0 1 X wait -> blocked; "
         "60 s pass; D lock 50 1 X wait -> blocked; A2 lock 50 1 X wait -> blocked");
    const char *blockers = strstr(status(), "\"blockers\":[");
    assert_non_null(blockers);
    const char *a = strstr(blockers, "\"name\":\"a\""), *b = strstr(blockers, "\"name\":\"b\"");
    assert_non_null(a);
    assert_non_null(b);
    assert_true(b < a);
    assert_says("\"waiters\":2,\"oldest_wait_seconds\":0");
    assert_says("\"waiters\":1,\"oldest_wait_seconds\":60");
    assert_says("\"blockers_more\":false");
    assert_attention("");
}

/* In one queue everybody waits for the one who holds what all of them want. */
TEST(test_status__a_long_queue_is_counted_whole)
{
    enum { QUEUED = 5000 };
    struct core_limits ample = fixture_limits;
    ample.waiters_max = QUEUED;
    locker_done();
    locker_new(&ample);
    assert_int_equal(lock(A, 0, 1, X), LOCK_GRANTED);
    for (uint32_t i = 0; i < QUEUED; i++) {
        struct locker other = B;
        other.svid = 100 + i;
        assert_int_equal(lock(other, 0, 1, X | BLOCK), LOCK_BLOCKED);
    }
    assert_says("\"waiters\":5000,\"oldest_wait_seconds\":0");
    assert_says("\"blockers_more\":false");
}

TEST(test_status__no_more_than_ten_blockers_are_named)
{
    for (uint64_t i = 0; i < 12; i++) {
        struct locker holder = A, other = B;
        char name[16];
        (void)snprintf(name, sizeof name, "holder%u", (unsigned)i);
        holder.name = name;
        assert_int_equal(lock(holder, i * 10, 1, X), LOCK_GRANTED);
        other.svid = 100 + (uint32_t)i;
        assert_int_equal(lock(other, i * 10, 1, X | BLOCK), LOCK_BLOCKED);
    }
    const char *at = strstr(status(), "\"blockers\":[");
    const char *end = strstr(at, "\"blockers_more\":true");
    assert_non_null(end);
    uint32_t count = 0;
    while ((at = strstr(at + 1, "\"waiters\":1,")) != NULL && at < end)
        count++;
    assert_int_equal(count, 10);
}

TEST(test_status__a_limit_needs_attention_above_four_fifths)
{
    assert_attention(""); /* 8 of 10 are not, and those that may be full never */
    limits[0].used = 9;
    assert_attention("\"9 of 10 connections are used; raise --max-connections\"");
    limits[0] = (struct admin_limit){"outgoing_calls", NULL, 1000, 999, false};
    assert_attention("\"999 of 1,000 outgoing calls are used\"");
    limits[0].may_be_full = true; /* the server is busy */
    assert_attention("");
}

TEST(test_status__the_store_and_rpcbind_need_attention)
{
    told.commit_age_ns = 5 * FIXTURE_SECOND - 1;
    assert_attention("");
    assert_says("\"stalled\":false");
    told.commit_age_ns++;
    assert_says("\"stalled\":true");
    assert_attention("\"the store does not commit: every reply waits for it\"");
    told.commit_age_ns = 0;
    told.is_found = false;
    assert_attention("\"clients cannot find this server through rpcbind\"");
    told.is_found = true;
    told.files.sync_errors = 1;
    told.files.sync_error_age_ns = 3600 * FIXTURE_SECOND - 1;
    assert_attention("\"a disk failed to write in the last hour: see the log\"");
    told.files.sync_error_age_ns++; /* the counter stays */
    assert_attention("");
    told.files = (struct admin_files){.local_conflicts = 1};
    assert_attention("\"programs on this machine are not kept from locks of clients\"");
}

TEST(test_status__rates_are_of_the_last_seconds)
{
    static const struct program *const programs[] = {&nlm_program};
    struct histogram commits;
    uv_loop_t loop;
    assert_says("\"requests_per_second\":null,\"commit_seconds\":null");
    histogram_init(&commits, &histogram_durations);
    told.commit_durations = &commits;
    struct meter *meter = meter_new(programs, 1);
    assert_non_null(meter);
    admin.meter = meter;
    assert_int_equal(uv_loop_init(&loop), 0);
    admin.samples = samples_new(&loop, &admin);
    assert_non_null(admin.samples);
    for (uint32_t i = 0; i < 1204; i++)
        meter_count(meter, meter_row(0, 2), false, 1);
    for (uint64_t i = 0; i < 4; i++)
        histogram_add(&commits, (i % 2 + 1) * MS_NS);
    fixture_wait(10 * FIXTURE_SECOND);
    assert_says("\"requests_per_second\":120,\"commit_seconds\":0.001500000");
    samples_free(admin.samples);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    meter_free(meter);
}

TEST(test_status__says_where_the_server_is)
{
    struct address at[] = {fixture_address("192.0.2.1"), fixture_address("2001:db8::1")};
    told.places = (struct admin_places){.host = "filer", .port = 12049};
    assert_says("\"host\":\"filer\",\"listen\":[\"*:12049\"],\"page\":null");
    told.places.listen = at;
    told.places.listen_count = 2;
    (void)snprintf(told.places.page, sizeof told.places.page, "http://[::1]:1/");
    assert_says("\"listen\":[\"192.0.2.1:12049\",\"[2001:db8::1]:12049\"],"
                "\"page\":\"http://[::1]:1/\"");
}

TEST_MAIN(set_up, tear_down, NULL, NULL)

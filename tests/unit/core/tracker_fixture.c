/*
 * tracker_fixture.c -- what the tests of the tracker share; see tracker_fixture.h.
 */
#include "tracker_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

struct core *core;
struct core_limits limits;

struct core_limits small_limits(void)
{
    struct core_limits small = lock_fixture_limits;
    small.locks_max = 100;
    small.waiters_max = 10;
    small.batch_puts_max = 200;
    small.bytes_max = 256 * 1024;
    return small;
}

int set_up(void **state)
{
    (void)state;
    limits = small_limits();
    core = lock_fixture_new(&limits);
    core_step(core, &(struct core_input){.kind = CORE_READY, .wall_ns = LOCK_FIXTURE_WALL_NS},
              NULL);
    return 0;
}

int tear_down(void **state)
{
    (void)state;
    lock_fixture_free(core);
    return 0;
}

void begin_with(const struct core_limits *other)
{
    lock_fixture_free(core);
    limits = *other;
    core = lock_fixture_new(&limits);
    core_step(core, &(struct core_input){.kind = CORE_READY, .wall_ns = LOCK_FIXTURE_WALL_NS},
              NULL);
}

void store(void)
{
    (void)lock_fixture_store(core, NULL);
}

void restart_after(int64_t away_s)
{
    uint64_t wall_ns = core->wall_ns + (uint64_t)(away_s * (int64_t)SECOND);
    core = lock_fixture_restart(core, &limits, 5 * SECOND);
    core_step(core,
              &(struct core_input){.kind = CORE_READY, .now_ns = 7 * SECOND, .wall_ns = wall_ns},
              NULL);
    core_check(core);
}

void wait_s(uint64_t seconds)
{
    lock_fixture_wait(core, seconds);
    core_work(core, core->now_ns, core->wall_ns);
    core_check(core);
}

struct tracker_client client_of(const char *protocol, const char *key, const char *bytes)
{
    return (struct tracker_client){.protocol = bytes_of_text(protocol),
                                   .key = bytes_of_text(key),
                                   .bytes = bytes_of_text(bytes),
                                   .address = fixture_address("192.0.2.7")};
}

struct tracker_view add(const char *protocol, const char *key, const char *bytes)
{
    struct tracker_client client = client_of(protocol, key, bytes);
    struct tracker_view view;
    assert_int_equal(tracker_register(core, &client, &view), TRACKER_ADDED);
    core_check(core);
    return view;
}

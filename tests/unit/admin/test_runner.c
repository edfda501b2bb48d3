/*
 * test_runner.c -- while clients call, a run is followed by a rest, RUNNER_REST times as long,
 * whatever asks for the next one; while nobody calls the next one follows in the next turn.
 *
 * The clock is real: a busy machine makes rests longer, never shorter. The loop sees the end of a
 * rest in the turn after the run at the earliest, however long the test was away.
 */
#include "admin/runner.h"

#include "base/minmax.h"
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { RUNS = 50 };

#define RUN_NS (1 * MS_NS)

static struct world {
    uv_loop_t loop;
    struct runner runner;
    int fd;
    bool is_in_use, must_run; /* what it is told */
    uint64_t wait_ms;
    uint32_t runs, closed; /* how often */
    uint64_t began_ns, ended_ns;
} world;

/* The rest before this run was as long as the last one deserved. */
static void expect_rest(uint64_t now_ns)
{
    uint64_t ran_ns = world.ended_ns - world.began_ns;
    uint64_t rest_ns = min_u64(RUNNER_REST * ran_ns, RUNNER_REST_MAX_NS);
    assert_true(now_ns - world.ended_ns >= rest_ns);
}

static bool run(void *context, uint64_t *ret_ms)
{
    assert_ptr_equal(context, &world);
    uint64_t now_ns = uv_hrtime();
    if (world.is_in_use && world.runs > 0)
        expect_rest(now_ns);
    world.began_ns = now_ns;
    do
        world.ended_ns = uv_hrtime();
    while (world.ended_ns - world.began_ns < RUN_NS);
    world.runs++;
    *ret_ms = world.wait_ms;
    return world.must_run;
}

static bool is_in_use(void *context)
{
    assert_ptr_equal(context, &world);
    return world.is_in_use;
}

static void on_closed(void *context)
{
    assert_ptr_equal(context, &world);
    world.closed++;
}

TEST_FIXTURE(start)
{
    world = (struct world){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .is_in_use = true};
    assert_true(world.fd >= 0);
    assert_int_equal(uv_loop_init(&world.loop), 0);
    assert_int_equal(runner_init(&world.runner, &world.loop, world.fd, run, is_in_use, &world), 0);
}

static void close_runner(void)
{
    runner_close(&world.runner, on_closed);
    uint32_t runs = world.runs;
    assert_int_equal(uv_run(&world.loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(world.closed, 1);
    assert_int_equal(world.runs, runs);
    assert_int_equal(fcntl(world.runner.rest_fd, F_GETFD), -1);
    assert_int_equal(errno, EBADF);
}

TEST_FIXTURE(stop)
{
    if (world.closed == 0)
        close_runner();
    assert_int_equal(uv_loop_close(&world.loop), 0);
    assert_int_equal(close(world.fd), 0);
}

static void make_ready(void)
{
    assert_int_equal(eventfd_write(world.fd, 1), 0);
}

static void run_until(uint32_t runs)
{
    while (world.runs < runs)
        (void)uv_run(&world.loop, UV_RUN_ONCE);
    assert_int_equal(world.runs, runs); /* one in a turn */
}

/* One run, and its rest has begun. */
static void run_first(void)
{
    eventfd_t count;
    make_ready();
    run_until(1);
    assert_int_equal(eventfd_read(world.fd, &count), 0);
}

TEST(test_runner__what_is_ready_waits_for_the_rest)
{
    make_ready();
    run_until(RUNS);
}

TEST(test_runner__what_runs_again_waits_for_the_rest)
{
    world.must_run = true;
    runner_soon(&world.runner);
    run_until(RUNS);
}

/* Its time comes while it rests. */
TEST(test_runner__what_is_due_waits_for_the_rest)
{
    world.must_run = true;
    world.wait_ms = 1;
    runner_soon(&world.runner);
    run_until(RUNS);
}

TEST(test_runner__there_is_no_rest_while_nobody_calls)
{
    world.is_in_use = false;
    make_ready();
    for (uint32_t turn = 1; turn <= RUNS; turn++) {
        (void)uv_run(&world.loop, UV_RUN_NOWAIT);
        assert_int_equal(world.runs, turn);
    }
}

TEST(test_runner__it_runs_again_in_the_next_turn_while_nobody_calls)
{
    world.is_in_use = false;
    world.must_run = true;
    runner_soon(&world.runner);
    for (uint32_t turn = 1; turn <= RUNS; turn++) {
        (void)uv_run(&world.loop, UV_RUN_NOWAIT);
        assert_int_equal(world.runs, turn);
    }
}

TEST(test_runner__what_is_wanted_in_a_rest_runs_after_it)
{
    run_first();
    runner_soon(&world.runner);
    run_until(2);
    /* And only once: the next one is of the descriptor. */
    make_ready();
    run_until(3);
}

TEST(test_runner__what_becomes_ready_in_a_rest_runs_after_it)
{
    run_first();
    make_ready();
    run_until(2);
}

/* Clients have called until the rest began; it ends all the same, and is the last one. */
TEST(test_runner__a_rest_ends_when_nobody_calls_any_more)
{
    run_first();
    world.is_in_use = false;
    make_ready();
    run_until(2);
    (void)uv_run(&world.loop, UV_RUN_NOWAIT);
    assert_int_equal(world.runs, 3);
}

TEST(test_runner__may_be_closed_in_a_rest)
{
    run_first();
    close_runner();
}

TEST(test_runner__may_be_closed_in_a_rest_with_something_to_do)
{
    world.must_run = true;
    world.wait_ms = 1;
    run_first();
    make_ready();
    runner_soon(&world.runner);
    close_runner();
}

TEST_MAIN(start, stop, NULL, NULL)

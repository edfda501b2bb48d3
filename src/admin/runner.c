/*
 * runner.c -- see runner.h.
 *
 * What must run again at once does so in the next turn, after everyone else: a timer of 0 ms would
 * not do, because libuv runs it repeatedly within one turn.
 *
 * Always true:
 *  (1) During a rest neither the descriptor is polled nor `again` active. What becomes ready, or is
 *      asked for, meanwhile runs when the rest is over.
 */
#include "admin/runner.h"

#include "base/check.h"
#include "base/minmax.h"
#include "base/units.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { DEAF_MS = 1000 }; /* until a failed poll is retried */

static void on_poll(uv_poll_t *poll, int status, int events);
static void on_timer(uv_timer_t *timer);
static void on_again(uv_idle_t *idle);

static void listen_again(struct runner *runner)
{
    CHECK(uv_poll_start(&runner->poll, UV_READABLE, on_poll) == 0);
}

static void rest(struct runner *runner, uint64_t ran_ns)
{
    uint64_t rest_ns = min_u64(RUNNER_REST * ran_ns, RUNNER_REST_MAX_NS);
    struct itimerspec end = {.it_value.tv_nsec = (long)max_u64(rest_ns, 1)}; /* 0: never */
    runner->is_resting = true;
    runner->is_deaf = !uv_is_active((uv_handle_t *)&runner->poll);
    CHECK(uv_poll_stop(&runner->poll) == 0);
    CHECK(timerfd_settime(runner->rest_fd, 0, &end, NULL) == 0);
}

static void run(struct runner *runner)
{
    uint64_t wait_ms = 0, began_ns = uv_hrtime();
    CHECK(uv_timer_stop(&runner->timer) == 0);
    CHECK(uv_idle_stop(&runner->again) == 0);
    bool must_run = runner->run(runner->context, &wait_ms);
    if (uv_is_active((uv_handle_t *)&runner->again)) { /* what ran has asked for it */
        CHECK(uv_idle_stop(&runner->again) == 0);
        wait_ms = 0;
        must_run = true;
    }
    if (!uv_is_active((uv_handle_t *)&runner->poll) && (!must_run || wait_ms > DEAF_MS)) {
        wait_ms = DEAF_MS;
        must_run = true;
    }
    if (must_run && wait_ms > 0)
        CHECK(uv_timer_start(&runner->timer, on_timer, wait_ms, 0) == 0);
    if (runner->is_in_use(runner->context))
        rest(runner, uv_hrtime() - began_ns);
    if (must_run && wait_ms == 0)
        runner_soon(runner);
}

/* libmicrohttpd finds out itself what is ready. libuv stops polling a descriptor with an error: the
 * timer restarts it. */
static void on_poll(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    run(poll->data);
}

static void on_timer(uv_timer_t *timer)
{
    struct runner *runner = timer->data;
    if (runner->is_resting) {
        runner->is_wanted = true;
        runner->is_deaf = false;
        return;
    }
    if (!uv_is_active((uv_handle_t *)&runner->poll))
        listen_again(runner);
    run(runner);
}

static void on_again(uv_idle_t *idle)
{
    run(idle->data);
}

static void on_rest_end(uv_poll_t *poll, int status, int events)
{
    struct runner *runner = poll->data;
    uint64_t count;
    (void)status;
    (void)events;
    bool must_run = runner->is_wanted;
    (void)!read(runner->rest_fd, &count, sizeof count);
    runner->is_resting = runner->is_wanted = false;
    if (!runner->is_deaf)
        listen_again(runner);
    if (must_run)
        run(runner);
}

void runner_soon(struct runner *runner)
{
    if (runner->is_resting)
        runner->is_wanted = true;
    else
        CHECK(uv_idle_start(&runner->again, on_again) == 0);
}

int runner_init(struct runner *runner, uv_loop_t *loop, int fd, runner_fn run_ready,
                runner_in_use_fn is_in_use, void *context)
{
    int rest_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (rest_fd < 0)
        return -errno;
    *runner = (struct runner){.rest_fd = rest_fd,
                              .handles_open = 4,
                              .run = run_ready,
                              .is_in_use = is_in_use,
                              .context = context};
    int code = uv_poll_init(loop, &runner->poll, fd);
    if (code != 0) {
        (void)close(rest_fd);
        return code;
    }
    CHECK(uv_poll_init(loop, &runner->rest_end, rest_fd) == 0); /* as good as the other one */
    CHECK(uv_timer_init(loop, &runner->timer) == 0);            /* these only fill the structs */
    CHECK(uv_idle_init(loop, &runner->again) == 0);
    runner->poll.data = runner->rest_end.data = runner;
    runner->timer.data = runner->again.data = runner;
    CHECK(uv_poll_start(&runner->rest_end, UV_READABLE, on_rest_end) == 0);
    listen_again(runner);
    return 0;
}

static void on_close(uv_handle_t *handle)
{
    struct runner *runner = handle->data;
    if (--runner->handles_open > 0)
        return;
    (void)close(runner->rest_fd);
    runner->on_closed(runner->context);
}

void runner_close(struct runner *runner, runner_closed_fn on_closed)
{
    runner->on_closed = on_closed;
    uv_close((uv_handle_t *)&runner->poll, on_close);
    uv_close((uv_handle_t *)&runner->rest_end, on_close);
    uv_close((uv_handle_t *)&runner->timer, on_close);
    uv_close((uv_handle_t *)&runner->again, on_close);
}

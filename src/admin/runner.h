/*
 * runner.h -- when libmicrohttpd runs: when a socket of its is ready, when its time has come, and
 * after a rest.
 *
 * While clients call, each run is followed by a rest, RUNNER_REST times as long as it took: who
 * reads lists takes a part of the loop's time at most, and of the machine's with who makes the list
 * and who takes it. So a call waits for the rest of one run, rarely for more. A run is long where
 * others had the processor meanwhile, too: no rest is longer than RUNNER_REST_MAX_NS. While nobody
 * calls there is none. Each listener (HTTP, the control socket) has a runner, and rests for itself.
 */
#ifndef ADMIN_RUNNER_H
#define ADMIN_RUNNER_H

#include "base/units.h"

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#define RUNNER_REST        2
#define RUNNER_REST_MAX_NS (50 * MS_NS)

/* Does what is ready. True: it runs again after *ret_ms, even if no socket is ready; 0: in the next
 * turn. */
typedef bool (*runner_fn)(void *context, uint64_t *ret_ms);
/* Do clients call? */
typedef bool (*runner_in_use_fn)(void *context);
typedef void (*runner_closed_fn)(void *context);

/* Its own; in the memory of who runs. */
struct runner {
    uv_poll_t poll;
    uv_timer_t timer;
    uv_idle_t again;    /* in the next turn */
    uv_poll_t rest_end; /* of rest_fd: timers of libuv count milliseconds */
    int rest_fd;
    bool is_resting;
    bool is_wanted; /* after the rest, whatever is ready */
    bool is_deaf;   /* the poll had failed when the rest began */
    int handles_open;
    runner_fn run;
    runner_in_use_fn is_in_use;
    runner_closed_fn on_closed;
    void *context;
};

/* Runs whenever `fd`, an epoll descriptor, is ready. 0, or a negative errno, and nothing is open.
 */
__attribute__((warn_unused_result)) int runner_init(struct runner *runner, uv_loop_t *loop, int fd,
                                                    runner_fn run, runner_in_use_fn is_in_use,
                                                    void *context);
/* Runs in the next turn, or when the rest is over. */
void runner_soon(struct runner *runner);
/* Forgets the descriptor at once, and says when the loop has closed everything. */
void runner_close(struct runner *runner, runner_closed_fn on_closed);

#endif

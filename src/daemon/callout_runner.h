/*
 * callout_runner.h -- --callout: runs a program for every host that is watched, not watched any
 * more, or has rebooted, as rpc.statd does with -H; but nobody waits for it.
 *
 *   PROG add-client MON_NAME MY_NAME
 *   PROG del-client MON_NAME MY_NAME
 *   PROG sm-notify MON_NAME ADDRESS STATE
 */
#ifndef DAEMON_CALLOUT_RUNNER_H
#define DAEMON_CALLOUT_RUNNER_H

#include "core/core.h"
#include "daemon/log.h"
#include "wire/clock.h"

#include <uv.h>

enum {
    CALLOUT_RUNNER_RUNS_MAX = 8,        /* at a time */
    CALLOUT_RUNNER_WAITING_MAX = 10000, /* behind them; more are lost, and that is logged */
};

struct callout_runner;

/* NULL: no memory. All borrowed. */
struct callout_runner *callout_runner_new(uv_loop_t *loop, struct core *core, struct log *log,
                                          struct clock *clock, const char *program);

/* Takes what the core has to tell, and runs the program as far as it may. Once per turn; NULL:
 * nothing. */
void callout_runner_turn(struct callout_runner *runner);

/* What runs is told to end, what waits is dropped. Free it when the loop has closed all handles. */
void callout_runner_close(struct callout_runner *runner);
void callout_runner_free(struct callout_runner *runner);

#endif

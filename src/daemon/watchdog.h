/*
 * watchdog.h -- tells the service manager again and again that the server is responsive.
 *
 * With WatchdogSec= in its unit, systemd ends and restarts a service that has been silent for so
 * long. The timer is one of the event loop, so a loop that stands still is silent. A start that
 * loads a large store has no loop yet: its steps say themselves that they get on.
 */
#ifndef DAEMON_WATCHDOG_H
#define DAEMON_WATCHDOG_H

#include <stdbool.h>
#include <uv.h>

struct watchdog {
    uv_timer_t timer;
    bool is_open;
};

/* Reads what systemd asked for from the environment; does nothing if it asked for nothing. */
void watchdog_start(struct watchdog *watchdog, uv_loop_t *loop);

/* A step of the start has got on. */
void watchdog_feed(const struct watchdog *watchdog);

/* The loop must run once more to let go of the timer. */
void watchdog_close(struct watchdog *watchdog);

#endif

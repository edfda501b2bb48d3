/*
 * watchdog.c -- see watchdog.h.
 */
#include "daemon/watchdog.h"

#include "base/check.h"
#include "daemon/sd_notify.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PER_PERIOD = 4, /* systemd advises half the period; a busy machine may delay one or two */
    DIGITS_MAX = 18,
};

/* False: not set, or not a number. */
static bool read_number(const char *name, uint64_t *ret)
{
    const char *text = getenv(name);
    uint64_t number = 0;
    if (text == NULL || text[0] == '\0' || strlen(text) > DIGITS_MAX)
        return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return false;
        number = number * 10 + (uint64_t)(*text - '0');
    }
    *ret = number;
    return true;
}

/* A manager that does not read has its own troubles; it is told again soon. */
static void on_timer(uv_timer_t *timer)
{
    (void)timer;
    (void)sd_notify_alive();
}

void watchdog_start(struct watchdog *watchdog, uv_loop_t *loop)
{
    uint64_t period_us, pid;
    if (!read_number("WATCHDOG_USEC", &period_us) || period_us == 0)
        return;
    if (read_number("WATCHDOG_PID", &pid) && pid != (uint64_t)getpid())
        return; /* inherited from the service that it was meant for */
    uint64_t every_ms = period_us / 1000 / PER_PERIOD;
    every_ms = every_ms == 0 ? 1 : every_ms;
    CHECK(uv_timer_init(loop, &watchdog->timer) == 0);
    CHECK(uv_timer_start(&watchdog->timer, on_timer, every_ms, every_ms) == 0);
    uv_unref((uv_handle_t *)&watchdog->timer); /* it is no reason to go on */
    watchdog->is_open = true;
}

void watchdog_feed(const struct watchdog *watchdog)
{
    if (watchdog->is_open)
        (void)sd_notify_alive();
}

void watchdog_close(struct watchdog *watchdog)
{
    if (!watchdog->is_open)
        return;
    watchdog->is_open = false;
    uv_close((uv_handle_t *)&watchdog->timer, NULL);
}

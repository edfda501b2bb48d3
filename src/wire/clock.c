/*
 * clock.c -- reads the two clocks at most once per turn; see clock.h.
 */
#include "wire/clock.h"

#include "base/units.h"

#include <time.h>

#define LATELY_NS (100 * MS_NS)

static uint64_t read_ns(clockid_t id)
{
    struct timespec t;
    (void)clock_gettime(id, &t); /* cannot fail: both clocks exist on every Linux */
    return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

void clock_set(struct clock *clock)
{
    clock->raw_ns = read_ns(CLOCK_MONOTONIC);
    clock->now_ns = pace_now_ns(&clock->pace, clock->raw_ns);
    clock->wall_ns = read_ns(CLOCK_REALTIME);
    clock->is_set = true;
}

uint64_t clock_stood_still_ns(const struct clock *clock)
{
    return clock->pace.stood_ns;
}

uint64_t clock_boot_ns(void)
{
    return read_ns(CLOCK_BOOTTIME);
}

void clock_heard(struct clock *clock)
{
    clock->has_heard = true;
    clock->heard_ns = clock_raw_ns(clock);
}

bool clock_has_heard(const struct clock *clock)
{
    return clock->has_heard;
}

bool clock_heard_lately(struct clock *clock)
{
    return clock->heard_ns != 0 && clock_raw_ns(clock) - clock->heard_ns < LATELY_NS;
}

void clock_turn_over(struct clock *clock)
{
    clock->is_set = false;
    clock->has_heard = false;
}

void clock_sleep(struct clock *clock, uint64_t longest_ns)
{
    pace_sleep(&clock->pace, clock_raw_ns(clock) + longest_ns);
    clock_turn_over(clock);
}

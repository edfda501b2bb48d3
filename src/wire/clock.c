/*
 * clock.c -- reads the two clocks at most once per turn; see clock.h.
 */
#include "wire/clock.h"

#include <time.h>

static uint64_t read_ns(clockid_t id)
{
    struct timespec t;
    (void)clock_gettime(id, &t); /* cannot fail: both clocks exist on every Linux */
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void set(struct clock *clock)
{
    if (clock->is_set)
        return;
    clock->now_ns = read_ns(CLOCK_MONOTONIC);
    clock->wall_ns = read_ns(CLOCK_REALTIME);
    clock->is_set = true;
}

uint64_t clock_now_ns(struct clock *clock)
{
    set(clock);
    return clock->now_ns;
}

uint64_t clock_wall_ns(struct clock *clock)
{
    set(clock);
    return clock->wall_ns;
}

void clock_turn_over(struct clock *clock)
{
    clock->is_set = false;
}

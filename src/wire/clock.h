/*
 * clock.h -- one "now" per turn of the loop.
 *
 * Everything that happens in one turn happens at the same time: a deadline cannot pass between two
 * lines. The clocks are read when a turn first asks, and again in the next turn.
 *
 * This time does not advance while the process is not scheduled (base/pace.h), so that no client
 * loses its locks for calls we could not receive. Code that must not forgive a standstill uses
 * clock_raw_ns. A sleeping machine stops CLOCK_MONOTONIC, which has the same effect.
 */
#ifndef WIRE_CLOCK_H
#define WIRE_CLOCK_H

#include "base/pace.h"

#include <stdbool.h>
#include <stdint.h>

struct clock {
    uint64_t now_ns; /* monotonic, without standstills */
    uint64_t raw_ns; /* as the clock says */
    struct pace pace;
    uint64_t wall_ns;  /* since 1970; may jump, so it is only stored and shown */
    uint64_t heard_ns; /* when something was read, as the clock says; 0: never */
    bool is_set;
    bool has_heard;
};

/* Reads the clocks: for the three below, which every call asks. */
void clock_set(struct clock *clock);

static inline uint64_t clock_now_ns(struct clock *clock)
{
    if (!clock->is_set)
        clock_set(clock);
    return clock->now_ns;
}

static inline uint64_t clock_wall_ns(struct clock *clock)
{
    if (!clock->is_set)
        clock_set(clock);
    return clock->wall_ns;
}

static inline uint64_t clock_raw_ns(struct clock *clock)
{
    if (!clock->is_set)
        clock_set(clock);
    return clock->raw_ns;
}

void clock_turn_over(struct clock *clock);
/* CLOCK_BOOTTIME, read each time: for a lease (base/lease.h). */
uint64_t clock_boot_ns(void);
/* Something was accepted or read in this turn; was it? */
void clock_heard(struct clock *clock);
bool clock_has_heard(const struct clock *clock);
/* Or not long ago, so that more is to be expected? */
bool clock_heard_lately(struct clock *clock);
/* The turn is over, and the next one begins within this time unless the process is stopped. */
void clock_sleep(struct clock *clock, uint64_t longest_ns);
/* Total time of standstills since the start, those longer than a second. */
uint64_t clock_stood_still_ns(const struct clock *clock);

#endif

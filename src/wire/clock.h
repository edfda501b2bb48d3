/*
 * clock.h -- one "now" per turn of the loop.
 *
 * Everything that happens in one turn happens at the same time: a deadline cannot pass between two
 * lines. The clocks are read when a turn first asks, and again in the next turn.
 */
#ifndef WIRE_CLOCK_H
#define WIRE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct clock {
    uint64_t now_ns;  /* monotonic */
    uint64_t wall_ns; /* since 1970; may jump, so it is only stored and shown */
    bool is_set;
};

uint64_t clock_now_ns(struct clock *clock);
uint64_t clock_wall_ns(struct clock *clock);
void clock_turn_over(struct clock *clock);

#endif

/*
 * clock.h -- one "now" per turn of the loop.
 *
 * Everything that happens in one turn happens at the same time: a deadline cannot pass between two
 * lines. The clocks are read when a turn first asks, and again in the next turn.
 *
 * That time is lived time (base/pace.h): it does not go on while this process stands still, so that
 * nobody is given up for what he could not say meanwhile. What must not forgive a standstill asks
 * clock_raw_ns. A machine that sleeps stops CLOCK_MONOTONIC, which is the same.
 *
 * With a shared store it also says for how long what depends on a commit may still leave
 * (docs/high-availability.md): a server that stood still for longer may have been replaced
 * meanwhile. That question reads the clock anew each time, and the one that goes on while the
 * machine sleeps.
 */
#ifndef WIRE_CLOCK_H
#define WIRE_CLOCK_H

#include "base/pace.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * How long after a commit what depends on it may leave; and for how much longer the kernel may keep
 * it for a peer that does not acknowledge it (TCP_USER_TIMEOUT). A successor tells nobody to
 * reclaim before the first is over, and keeps what it was offering from others until both are
 * (docs/decisions/025).
 */
enum { CLOCK_SEND_MS = 2000, CLOCK_KEPT_MS = 10000 };

struct clock {
    uint64_t now_ns; /* monotonic, as it was lived */
    uint64_t raw_ns; /* as the clock says */
    struct pace pace;
    uint64_t wall_ns; /* since 1970; may jump, so it is only stored and shown */
    bool is_set;
    bool has_heard;
    bool is_fenced; /* the store is shared */
    uint64_t send_until_ns;
};

uint64_t clock_now_ns(struct clock *clock);
uint64_t clock_wall_ns(struct clock *clock);
void clock_turn_over(struct clock *clock);
/* CLOCK_BOOTTIME, read anew. */
uint64_t clock_boot_ns(void);
/* Something was accepted or read in this turn; was there? */
void clock_heard(struct clock *clock);
bool clock_has_heard(const struct clock *clock);
/* The turn is over, and the next one begins within so long unless the process is stopped. */
void clock_sleep(struct clock *clock, uint64_t longest_ns);
uint64_t clock_raw_ns(struct clock *clock);
/* For how long it stood still since it started, standstills of more than a second. */
uint64_t clock_stood_still_ns(const struct clock *clock);

/* A commit found this server in office at that time, by CLOCK_BOOTTIME; from the first one on,
 * sends are bound to it. */
void clock_allow_sends(struct clock *clock, uint64_t checked_ns);
/* True: an answer or a call whose commit is done may leave now. */
bool clock_may_send(const struct clock *clock);

#endif

/*
 * pace.h -- time without standstills.
 *
 * A process that is not scheduled (SIGSTOP, a paused container, a busy hypervisor) receives nothing
 * meanwhile. Calls that would have been in time wait in its sockets when it continues. So
 * standstills do not count as time: every deadline is that much later.
 *
 * It detects a standstill because it had announced when it would be awake again, and was late by
 * more than a second. Shorter delays are normal scheduling, and count.
 *
 *   clock   ----|-----------|===================|------->
 *            asleep   should be awake         is awake
 *   lived   ----|-----------|------->                       and continues from there
 */
#ifndef BASE_PACE_H
#define BASE_PACE_H

#include <stdint.h>

struct pace {
    uint64_t clock_ns; /* when it was last read; 0: not yet */
    uint64_t awake_ns; /* latest time at which the process would be awake; 0: not announced */
    uint64_t stood_ns; /* total length of standstills */
};

/* The clock reads this, never less than before: returns the time without standstills. */
uint64_t pace_now_ns(struct pace *pace, uint64_t clock_ns);
/* The process reads the clock again by then; UINT64_MAX: unknown. */
void pace_sleep(struct pace *pace, uint64_t until_ns);

#endif

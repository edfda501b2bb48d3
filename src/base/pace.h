/*
 * pace.h -- time as this process has lived it.
 *
 * A process that is stopped (SIGSTOP, a paused container, a hypervisor that has other things to do)
 * cannot hear anybody meanwhile. Whoever would have been in time is waiting in its sockets when it
 * goes on. So time in which it stood still is not time: every deadline is that much later.
 *
 * It knows that it stood still because it had said when it would be awake again, and was not, by
 * more than a second. Shorter delays are the daily business of a scheduler, and count.
 *
 *   clock   ----|-----------|===================|------->
 *            asleep   should be awake         is awake
 *   lived   ----|-----------|------->                       and goes on from there
 */
#ifndef BASE_PACE_H
#define BASE_PACE_H

#include <stdint.h>

struct pace {
    uint64_t clock_ns; /* when it was last looked at; 0: not yet */
    uint64_t awake_ns; /* when the process would be awake at the latest; 0: it did not say */
    uint64_t stood_ns; /* for how long it stood still, in all */
};

/* The clock says this, and never less than before: the time as it was lived. */
uint64_t pace_now_ns(struct pace *pace, uint64_t clock_ns);
/* The process looks at the clock again by then; UINT64_MAX: it does not know. */
void pace_sleep(struct pace *pace, uint64_t until_ns);

#endif

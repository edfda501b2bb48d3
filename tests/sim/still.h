/*
 * still.h -- the process of the server is not scheduled for a while: SIGSTOP, a paused container, a
 * hypervisor with other things to do (decision 022).
 *
 * Everybody else goes on. What arrives waits in sockets, of datagrams only as many as fit; timers
 * that come due and the end of a commit wait as well. It may stand between two turns of its loop or
 * in the middle of one, whose rest then happens with the time at which that turn began. When it
 * goes on it does what the loop of the daemon does: timers first, then the sockets.
 */
#ifndef SIM_STILL_H
#define SIM_STILL_H

#include "world.h"

/* How often, and what the first time is. Nothing unless the plan says so. */
void still_init(struct world *world);
/* It stands still from now on; between two turns, or before this step of the turn. */
void still_begin(struct world *world, uint64_t for_ns, uint32_t step);
/* An event of its own: QUEUE_STAND; the ticket is 0 for the one that comes again and again. */
void still_stand(struct world *world, uint64_t ticket);
/* QUEUE_WAKE: it goes on. */
void still_wake(struct world *world, uint64_t ticket);
/* The same before its time, or nothing if it does not stand. */
void still_wake_now(struct world *world);
/* At this step of a turn, sometimes. True: it stands. */
bool still_here(struct world *world, uint32_t step);
/* Grace begins: it may stand still in the middle of it, and when it would end. */
void still_grace(struct world *world);
/* It was killed. What waited for it goes to nobody. */
void still_end(struct world *world);
void still_done(struct world *world);

bool still_is(const struct world *world);
/* It stands, and this is for it: kept until it goes on. */
bool still_holds(struct world *world, const struct queue_event *event);

/*
 * The time as the server has lived it, as seen from outside, over all runs: what it leaves out is
 * what it stood still beyond the moment at which it meant to look again, if that is more than a
 * second. And what had to be due by now to be given up: while it reads what has waited for it,
 * that is earlier, by at most half a grace, or 30 s.
 */
uint64_t still_lived_ns(const struct world *world);
uint64_t still_due_ns(const struct world *world);
/* Grace may end that much later than its length, because it had to listen first. */
uint64_t still_listens_ns(const struct world *world);

#endif

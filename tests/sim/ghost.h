/*
 * ghost.h -- what leaves a server that was replaced, and by when (decision 025).
 *
 * With a shared disk a server that is replaced may only stand still. Its kernel goes on: what it
 * had written is delivered for up to 10 s, calls and answers alike, and who is connected to it
 * stays so. When it goes on, it has everything that came due meanwhile, answers too, and no commit:
 * it sends nothing but what its last commit still allows, which must have begun at most 2 s ago.
 * Then it finds out, and ends; its connections are reset.
 */
#ifndef SIM_GHOST_H
#define SIM_GHOST_H

#include "world.h"

/* The process is being replaced. True: it only stands still. */
bool ghost_leave(struct world *world);
/* Its successor has started: it goes on some time after that. */
void ghost_meet(struct world *world);
/* It does; QUEUE_THAW. */
void ghost_thaw(struct world *world, uint64_t run);
void ghost_done(struct world *world);

/* May what depends on the last commit leave now? Always, where the disk is not shared. */
bool ghost_may_send(const struct world *world);
/* Is this run, other than the current one, that of a process that only stands still? */
bool ghost_is(const struct world *world, uint32_t run);
/* Would its kernel, at the latest now, still deliver what it was given then? */
bool ghost_delivers(const struct world *world, uint32_t run, uint64_t sent_ns);

#endif

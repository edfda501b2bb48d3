/*
 * callee.h -- the hosts of the registrants, as they are called back: a portmapper and a service.
 *
 * What a host offers when it is well is its kind; how it is at the moment is its mood. Moods change
 * while the world is not calm. Hosts read and write with the tests' own XDR.
 */
#ifndef SIM_CALLEE_H
#define SIM_CALLEE_H

#include "line.h"

void callee_init(struct world *world);

/* Another mood, and the next change of it. */
void callee_change_mood(struct world *world, struct host *host);
/* From now on every host is well. */
void callee_be_well(struct world *world);
/* Its services start anew, at other ports. */
void callee_restart(struct world *world, struct host *host);

/* A letter arrived at its host. */
void callee_receive(struct world *world, const struct letter *letter);

#endif

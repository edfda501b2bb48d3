/*
 * configure.h -- what an operator may say otherwise at a start: limits and modes.
 */
#ifndef SIM_CONFIGURE_H
#define SIM_CONFIGURE_H

#include "world.h"

/* Before the server of the next run is made; the first run is configured as the plan says. */
void configure_run(struct world *world);

#endif

/*
 * spoofer.h -- a stranger who speaks for lockers, from an address that is not theirs (P5).
 */
#ifndef SIM_SPOOFER_H
#define SIM_SPOOFER_H

#include "world.h"

/* One well-formed order that is not his to give. Whether it changed anything is for claim.h. */
void spoofer_strike(struct world *world);

#endif

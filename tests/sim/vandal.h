/*
 * vandal.h -- a stranger who sends what no honest client sends (P5, P6).
 */
#ifndef SIM_VANDAL_H
#define SIM_VANDAL_H

#include "world.h"

/* One message, chosen by the seed, from an address that has registered nothing. */
void vandal_strike(struct world *world);

#endif

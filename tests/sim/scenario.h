/*
 * scenario.h -- stories worth a name, told step by step instead of by a seed.
 */
#ifndef SIM_SCENARIO_H
#define SIM_SCENARIO_H

#include "world.h"

struct scenario {
    const char *name, *about;
    void (*play)(struct world *world);
    bool late_datagrams; /* with exclusion (5) of P2 switched off */
};

extern const struct scenario scenario_all[];
extern const uint32_t scenario_count;

/* Ends the process when something else happens than the story tells. */
void scenario_run(const struct scenario *scenario, bool verbose);

#endif

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

/* The stories of watchers, and those of lockers. */
extern const struct scenario scenario_all[];
extern const uint32_t scenario_count;
extern const struct scenario scenario_lock_all[];
extern const uint32_t scenario_lock_count;

/* Ends the process when something else happens than the story tells. */
void scenario_run(const struct scenario *scenario, bool verbose);
void scenario_lock_run(const struct scenario *scenario, bool verbose);

/* The story must go on like this. */
#define SCENARIO_EXPECT(condition)                                                                 \
    do {                                                                                           \
        if (!(condition))                                                                          \
            world_fail(world, "its story", "expected: %s", #condition);                            \
    } while (0)

#endif

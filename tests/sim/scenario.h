/*
 * scenario.h -- stories worth a name, told step by step instead of by a seed.
 */
#ifndef SIM_SCENARIO_H
#define SIM_SCENARIO_H

#include "world.h"

struct scenario {
    char name[64];
    const char *about;
    void (*run)(const struct scenario *scenario, bool verbose); /* ends the process when something
                                                                   else happens than it tells */
    void (*play)(struct world *world);
    uint32_t allows; /* exclusions of P2 that are switched on: of enum world_exclusion */
};

/* All that were told of with SCENARIO, or STORY of story.h, in the order of the object files. */
const struct scenario *scenario_at(uint32_t index); /* NULL: no more */

/* SCENARIO(this_one, "what it shows", 0) { ... } is the scenario "this-one", of watchers. */
#define SCENARIO(name, about, allows) SCENARIO_RUN(name, about, allows, scenario_run)
#define SCENARIO_RUN(name, about, allows, run)                                                     \
    static void play_##name(struct world *world);                                                  \
    __attribute__((constructor)) static void name##_is_listed(void)                                \
    {                                                                                              \
        scenario_add(#name, about, allows, run, play_##name);                                      \
    }                                                                                              \
    static void play_##name(struct world *world)

void scenario_add(const char *name, const char *about, uint32_t allows,
                  void (*run)(const struct scenario *scenario, bool verbose),
                  void (*play)(struct world *world));
void scenario_run(const struct scenario *scenario, bool verbose);

/* The story must go on like this. */
#define SCENARIO_EXPECT(condition)                                                                 \
    do {                                                                                           \
        if (!(condition))                                                                          \
            world_fail(world, "its story", "expected: %s", #condition);                            \
    } while (0)

#endif

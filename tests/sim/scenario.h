/*
 * scenario.h -- stories worth a name, told step by step instead of by a seed.
 */
#ifndef SIM_SCENARIO_H
#define SIM_SCENARIO_H

#include "world.h"

struct scenario {
    const char *name, *about;
    void (*play)(struct world *world);
    uint32_t allows; /* exclusions of P2 that are switched on: of enum world_exclusion */
};

/* The stories of watchers; of lockers; of our restarts; of clients' restarts and of resumes; of
 * whose word counts; of what is rare; of what P2 excludes. */
extern const struct scenario scenario_all[];
extern const uint32_t scenario_count;
extern const struct scenario scenario_lock_all[];
extern const uint32_t scenario_lock_count;
extern const struct scenario scenario_recovery_all[];
extern const uint32_t scenario_recovery_count;
extern const struct scenario scenario_echo_all[];
extern const uint32_t scenario_echo_count;
extern const struct scenario scenario_shares_all[];
extern const uint32_t scenario_shares_count;
extern const struct scenario scenario_reboot_all[];
extern const uint32_t scenario_reboot_count;
extern const struct scenario scenario_rare_all[];
extern const uint32_t scenario_rare_count;
extern const struct scenario scenario_word_all[];
extern const uint32_t scenario_word_count;
extern const struct scenario scenario_exclusion_all[];
extern const uint32_t scenario_exclusion_count;

/* Plays one of watchers. Ends the process when something else happens than the story tells. */
void scenario_run(const struct scenario *scenario, bool verbose);

/* The story must go on like this. */
#define SCENARIO_EXPECT(condition)                                                                 \
    do {                                                                                           \
        if (!(condition))                                                                          \
            world_fail(world, "its story", "expected: %s", #condition);                            \
    } while (0)

#endif

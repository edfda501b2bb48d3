/*
 * sim.h -- the stories of this directory, in the simulated world.
 */
#ifndef STORIES_SIM_H
#define STORIES_SIM_H

#include <stdbool.h>

struct script_driver;
extern const struct script_driver sim_driver;

/* The story that comes now. */
typedef void (*sim_name_fn)(const char *slug);

/* All stories that can be told here, or the one of this slug, in this process: what goes wrong ends
 * it. False: there is none. */
bool sim_tell(const char *directory, const char *only, bool verbose, sim_name_fn name);

#endif

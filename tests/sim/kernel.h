/*
 * kernel.h -- the kernel of a server that was replaced while its process stood still.
 *
 * It knows nothing of that. What the process had written it sends again until it is acknowledged,
 * answers and callbacks alike, as long as TCP_USER_TIMEOUT lets it (lease_kept_ms): counted from
 * the last moment at which the process might have written it. When the process runs again it finds
 * that it was replaced and ends (exit 76), and what is left goes with it: SO_LINGER 0.
 */
#ifndef SIM_KERNEL_H
#define SIM_KERNEL_H

#include "world.h"

/* One of its connections goes on without its process. */
struct kept kernel_keep(struct world *world);

/* What was written to this connection is not delivered yet: the event comes again. */
bool kernel_holds(struct world *world, const struct kept *kept, enum event_name name,
                  void *subject);
/* Nor will it be any more. */
bool kernel_has_dropped(const struct world *world, const struct kept *kept);

#endif

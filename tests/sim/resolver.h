/*
 * resolver.h -- the resolver of the server machine: which names have which addresses (D7).
 *
 * A name that is no address belongs to no host, to one, or to two; some are looked up for many
 * seconds. Spellings of one name are one. The server looks up as many at once as the daemon does.
 */
#ifndef SIM_RESOLVER_H
#define SIM_RESOLVER_H

#include "world.h"

void resolver_init(struct world *world);
/* A new run: what the last one looked up is answered to nobody. */
void resolver_boot(struct world *world);

/* What the server wants to know is looked up. */
void resolver_turn(struct world *world);
/* The answer is there. */
void resolver_answer(struct world *world, uint64_t ticket);

/* May this host speak for this name: by its address, or by what the resolver knows? */
bool resolver_is_host_of(const struct world *world, const struct host *host, uint32_t name);

#endif

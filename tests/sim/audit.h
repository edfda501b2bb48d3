/*
 * audit.h -- the disk, a new run and the empty tables, held against the promises of oracle.h.
 */
#ifndef SIM_AUDIT_H
#define SIM_AUDIT_H

#include "world.h"

/* O1, O2, O8: the disk holds what was promised. */
void audit_disk(struct world *world);

/* The same after power was lost under --sync process, which may undo removals and updates but no
 * registration; from here on, what is there counts. */
void audit_accept_loss(struct world *world);

/* O3: a run begins; `stored_state` is what the disk held, 0 when nothing. */
void audit_boot(struct world *world, uint32_t stored_state);

/* O5: a batch has reached a disk that held `clients` and `registrants` before. */
void audit_growth(struct world *world, uint32_t clients, uint32_t registrants);

/* O4: everything is unregistered. */
void audit_empty(struct world *world);

#endif

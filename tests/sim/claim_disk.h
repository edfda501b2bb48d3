/*
 * claim_disk.h -- what lockers rely on, held against the disk; see claim.h.
 */
#ifndef SIM_CLAIM_DISK_H
#define SIM_CLAIM_DISK_H

#include "locker.h"

/* L3, L4: at every commit and every start. */
void claim_disk_audit(struct world *world);
/* Power was lost, and with it what was not synced (D16): what is left counts. Who relied on more
 * believes in it in vain, unless it is reclaimed (P2 (3)). */
void claim_disk_accept_loss(struct world *world);
/* The same for what it was granted before, over a connection, and hears of only now. */
void claim_disk_accept_late(struct world *world, struct process *process, uint32_t file);
/* L6: everything was given back. */
void claim_disk_empty(struct world *world);

/* The locks on the disk, for whoever reads the trace. */
void claim_disk_trace(const struct world *world);

/* What the disk holds for this process in this file; offers count unless `held_only`. */
struct cells claim_disk_cells(const struct world *world, const struct process *process,
                              uint32_t file, bool held_only);
/* What stands in the way of others although this process cannot have it: offers of an earlier life
 * whose callback lingers (decision 020), and echoes (025). They may at a lived time of this run: an
 * answer that leaves now says what was true when its call was executed. */
struct cells claim_disk_lingering(const struct world *world, const struct process *process,
                                  uint32_t file, uint64_t lived_ns);
/* The reservation on the disk; zero when there is none. */
struct reservation claim_disk_reservation(const struct world *world, const struct process *process,
                                          uint32_t file, bool *ret_found);

#endif

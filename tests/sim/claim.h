/*
 * claim.h -- the oracle of locking: what every process relies on, what the server may hold for it.
 *
 * Written from the clients' side. A process relies on a lock from the moment GRANTED reaches it,
 * in a reply, a *_RES or a callback that it accepted, until it sends UNLOCK or its host reboots.
 * When it asks for bytes that it holds in the other mode it relies on the weaker one meanwhile.
 *
 *  L1  Answers can be read, echo the cookie, and say what the procedure can say (R-NLM-7).
 *  L2  No two processes rely on locks, or reservations, that conflict (P2).
 *  L3  What is relied on is on the disk, always (P1); what an answer or a callback says is there
 *      when it leaves.
 *  L4  Nothing is on the disk that nobody can have: no lock after its UNLOCK was answered, none
 *      that was not asked for, no two that conflict (P1, P5).
 *  L5  Nobody is denied without a reason: a conflict that can have been, or a limit.
 *  L6  With faults off whoever waits gets his lock, by a callback if he can be called (P4); when
 *      all is given back, nothing is left.
 *  L7  A repeat of an answered call gets the same answer (R-DRC-1, R-DRC-4).
 *  L8  Callbacks say exactly what was asked for, to the client's address, from the address that it
 *      knows, in its version (R-BLK-1, R-BLK-3, R-SEC-2).
 *
 * Over restarts: era.h. There what was relied on before may stop to be.
 *
 * What the rules leave behind: the locks of a rebooted client whose SM_NOTIFY and FREE_ALL are lost
 * stay until it locks again, or its processes, which have the same numbers as before, unlock them;
 * client records stay.
 */
#ifndef SIM_CLAIM_H
#define SIM_CLAIM_H

#include "locker.h"

/* The call is made: UNLOCK ends reliance, LOCK begins to be possible. */
void claim_asked(struct world *world, struct ask *ask);
/* The server takes the call, first or again. */
void claim_executing(struct world *world, struct ask *ask);
/* Its answer leaves the server. */
void claim_leaves(struct world *world, struct ask *ask, const struct peer_nlm_res *res);
/* It was refused: what was held before goes on. */
void claim_refused(struct world *world, struct ask *ask);

/* From here on the process relies on this; `is_confirmed`: granted in this era. */
void claim_begins(struct world *world, struct process *process, const struct extent *extent,
                  bool is_confirmed);
void claim_reserves(struct world *world, struct process *process, uint32_t file,
                    struct reservation reservation, bool is_confirmed);
/* A reclaim was refused: it does not rely on that any more. */
void claim_lost(struct world *world, struct process *process, const struct ask *ask);
/* An operator has released what this locker has, in this file or everywhere: it believes in vain
 * that it has it (P2 (4)). */
void claim_overridden(struct locker *locker, const struct extent *extent);
/* The server has freed everything that this locker had before its last reboot. */
void claim_frees(struct world *world, struct locker *locker);
/* Everything of this process is gone. */
void claim_vanishes(struct process *process);

/* A GRANTED or GRANTED_MSG leaves for this host. */
void claim_callback(struct world *world, const struct host *host, const struct address *local,
                    const struct packet_call *call, const struct peer_nlm_args *args);

/* Can anybody but this process have something in the way? */
bool claim_is_conflict(const struct world *world, const struct process *process,
                       const struct extent *extent);

#endif

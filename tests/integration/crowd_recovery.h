/*
 * crowd_recovery.h -- a crowd (crowd.h) lives through the death and the restart of its server.
 *
 * What must hold, and is judged here:
 *  (1) Every host that relied on a lock is told, with a state that is odd and larger than every one
 *      before, or nobody is, where the server resumes (P3, D12).
 *  (2) Every reclaim is granted (P2).
 *  (3) Nobody gets a new lock before everything that is relied on was reclaimed, and from the first
 *      one on nobody hears "in grace" again (R-GRACE-3). Where the server resumes, nobody does.
 *  (4) Nothing is stored that its owner gave back and knows that it did.
 */
#ifndef INTEGRATION_CROWD_RECOVERY_H
#define INTEGRATION_CROWD_RECOVERY_H

#include "crowd.h"
#include "lock_dump.h"

/* The server is dead and everything that it sent has been read. */
void crowd_recovery_crash(struct crowd *crowd, bool must_reclaim);
/*
 * Reads its store. *ret_unknown: those who have a lock stored and do not know of it: the answer or
 * the callback died. `is_settled`: they give up what they asked for, which settles it; otherwise
 * grace has to wait for them. False: the store cannot be read.
 */
bool crowd_recovery_look(struct crowd *crowd, const char *store, bool is_settled,
                         struct lock_dump *ret, uint32_t *ret_unknown);
/* It is ready again. */
void crowd_recovery_restart(struct crowd *crowd, const struct harness_server *server);

/* Hosts that relied on something: how many, and how many of them know of the restart. */
uint32_t crowd_recovery_concerned(const struct crowd *crowd, uint32_t *ret_told);
/* Everybody concerned was told, has reclaimed, and new locks are granted. */
bool crowd_recovery_is_over(const struct crowd *crowd);

/* Hosts that were told send their next reclaim. */
void crowd_recovery_turn(struct crowd *crowd);
/* What arrives; for crowd.c. */
void crowd_recovery_notified(void *context, uint32_t host, uint32_t state);
void crowd_recovery_answered(struct crowd *crowd, uint32_t host, const struct packet_reply *reply);
/* A LOCK that is no reclaim was answered. */
void crowd_recovery_lock_answered(struct crowd *crowd, uint32_t process, bool is_grace);

#endif

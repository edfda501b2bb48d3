/*
 * era.h -- restarts as those see them who lock: what they rely on, and until when (P2, P3, P4).
 *
 * An era begins with every start that is no resume, and with SM_SIMU_CRASH. What was relied on
 * before is still relied on, and must be there, until the server may give it up; that moment is
 * computed here from outside, from readiness, the length of grace, and what the client did:
 *
 *   ready, state durable, + grace ................... the end of grace
 *   heard of late: L after that ..................... D5 (5); L = 30 s, or half the grace
 *   reclaiming: 5 s after its last reclaim .......... R-GRACE-10, at most one more grace length
 *   `hold`, not told, does not reclaim: until it is given up ... R-GRACE-5
 *   `hold`, told, or reclaiming: as if it had been reached then
 *
 * What is not confirmed by then (reclaimed, or granted in this era) is what exclusion (2) of P2
 * excludes: from then on the client only believes in it. In a strict world that never happens, and
 * is a broken promise.
 *
 *  P2  As L2 and L3 (claim.h), over all restarts; and a reclaim of what is relied on is granted.
 *  P3  Whoever relied on something at the beginning of an era is told of it, with a larger odd
 *      state than any that it was told before, or its mark stays on the disk. When it is calm, all
 *      who can be told are. Behind a translator, the status monitor of the address counts.
 *  P4  While something relied on is not confirmed, grace stands, and everything else is told so;
 *      nobody is told so with nothing stored, nor after the length of grace.
 */
#ifndef SIM_ERA_H
#define SIM_ERA_H

#include "locker.h"

/* The server has started, and did not resume; or SM_SIMU_CRASH was executed. `has_stored`: there
 * may be something to reclaim. */
void era_begin(struct world *world, uint32_t state, bool has_stored);
/* The server has died: nothing is given up until it starts. */
void era_crash(struct world *world);
/* It goes on with the era of this state (D12); also as if an SM_SIMU_CRASH that was not
 * durable had not been. */
void era_resume(struct world *world, uint32_t state);
/* And does, with nothing left to be confirmed: whatever was settled stays, answered or not. */
void era_goes_on(struct world *world);
/* An operator ends grace: nothing stays for anybody (P2 (4)). */
void era_end(struct world *world);
/* The server is ready, or has stored something: after its state the clock of grace begins. */
void era_ready(struct world *world);
/* May the last run have ended with nothing open, so that it can be resumed (D12)? */
bool era_is_settled(struct world *world);

/* The server took a call of this locker. */
void era_called(struct world *world, const struct ask *ask);
/* The server granted a reclaim of this locker, which it had taken then. */
void era_reclaimed(struct locker *locker, uint64_t taken_ns);
/* It said that it rebooted, and may have been believed. */
void era_noticed(struct world *world, struct locker *locker);
/* Something that the server sent in this run was executed at this host. */
void era_called_back(struct world *world, const struct host *host, uint64_t sent_ns);
/* The locker's status monitor has told it of this state of ours. */
void era_told(struct world *world, struct locker *locker, uint32_t state);

/* Moves what is not relied on any more, as time goes by. */
void era_expire(struct world *world);

/* May the server have something for this locker that it is still to reclaim? */
bool era_may_be_provisional(const struct world *world, const struct locker *locker);

/* Must, and may, grace stand now? */
bool era_must_be_grace(struct world *world);
bool era_may_be_grace(const struct world *world);

/* P3: at every commit. */
void era_audit(struct world *world);
/* Everybody who can be told is. */
bool era_all_told(const struct world *world);
/* How many clients are stored that are to be told and cannot be. */
uint32_t era_untellable_count(const struct world *world);

/* The client record of this locker on the disk. */
bool era_find_record(const struct world *world, const struct locker *locker,
                     struct record_client *ret);

/* A strict world has to be kind now, or somebody cannot reclaim in time. */
bool era_is_pressing(const struct world *world);

#endif

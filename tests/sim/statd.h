/*
 * statd.h -- the status monitors of lockers: told of our restarts, and telling of their own.
 *
 * SM_NOTIFY from the server is matched as the kind does it (protocol.md 2.4): Linux by the address
 * it comes from, if the state is another than the last one, macOS by that address's name; FreeBSD
 * and Solaris by the name that they mounted by, whatever the state. Who takes it for a restart
 * reclaims everything that it holds, one lock after another, sometimes in pieces, with its own
 * state or with 0. What is refused is lost.
 *
 * A locker that reboots sends SM_NOTIFY under its full name and its short one, again and again
 * until it is answered or gives up; some never do, and some send it from another address.
 */
#ifndef SIM_STATD_H
#define SIM_STATD_H

#include "locker.h"

/* What a locker may have mounted us by. */
void statd_names(const struct host *host, char ret[STATD_NAMES][STATD_NAME_MAX]);

/* SM_NOTIFY leaves for this host. */
void statd_sent(struct world *world, const struct host *host, const struct address *local,
                struct packet_reader *body);
/* SM_NOTIFY is executed there. False: it cannot be read. */
bool statd_notified(struct world *world, struct host *host, struct packet_reader *body);

/* Reclaims what is left of what this process must reclaim. False: nothing. */
bool statd_reclaims(struct world *world, struct process *process);
/* The answer to a reclaim. */
void statd_reclaimed(struct world *world, struct ask *ask, uint32_t status);
/* It was granted something by a call or callback from before it heard of the last restart. */
void statd_reclaim_also(struct world *world, struct process *process, const struct extent *extent);
void statd_reclaim_share_also(struct world *world, struct process *process, uint32_t file);

/* Its host has booted: it says so, from now on. */
void statd_announce(struct world *world, struct locker *locker);
/* Its time has come to say so again. */
void statd_act(struct world *world, struct locker *locker);
/* A notice reaches the server. */
void statd_arrive(struct world *world, struct locker *locker, uint64_t ticket);
/* An answer leaves the server, over a connection if `to` is NULL. False: not to a notice. */
bool statd_release(struct world *world, const struct peer *to, struct bytes message);

/* What SM_STAT is answered at this host. */
uint32_t statd_state(struct world *world, struct host *host);

#endif

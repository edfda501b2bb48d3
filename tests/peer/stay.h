/*
 * stay.h -- the commands of `peer` that stay while something may happen: wait, keep.
 *
 * Both are an emulated Linux host with a portmapper, a lock manager and a status monitor at their
 * address, if its port 111 can be had. If not, nobody can call them, and they ask every second.
 *
 *   wait   the lock is asked for until it is granted; ends then
 *   keep   the lock is taken, and reclaimed whenever the server has restarted; ends with a signal,
 *          which is this host's crash, or when the server refuses
 */
#ifndef PEER_STAY_H
#define PEER_STAY_H

#include "peer/locks.h"

/* The exit status, as of locks_run. */
int stay_wait(const struct locks_options *options, const struct peer_nlm_args *args);
int stay_keep(const struct locks_options *options, const struct peer_nlm_args *args);

#endif

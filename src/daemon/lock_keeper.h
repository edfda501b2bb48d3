/*
 * lock_keeper.h -- the process that keeps locks for programs on this machine while no server runs
 * (file/keeper.h), and how a server finds it or starts it.
 *
 * It is this program under another verb, in a session of its own, with a socket in the directory of
 * the store. It holds descriptors and does nothing else.
 *
 *             server connects                    server is gone
 *   started ------------------> serving <-----------------------------> alone
 *                                              another one connects       |
 *                                                                         v
 *                     nothing is kept, LINGER_S are over, or its socket was removed: exit
 */
#ifndef DAEMON_LOCK_KEEPER_H
#define DAEMON_LOCK_KEEPER_H

#include <stdbool.h>

/* The first word of its command line, which nobody else uses. */
#define LOCK_KEEPER_VERB "keep-locks"

/* Connects to the keeper of this store, which is started if there is none and it may be. A socket,
 * or -errno; -ENOTDIR: such a store outlives nothing. */
int lock_keeper_connect(const char *store_url, bool may_start);

/* The keeper itself; its exit code. */
int lock_keeper_run(void);

#endif

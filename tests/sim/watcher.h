/*
 * watcher.h -- the hosts and their owners: they register, repeat, give up, reboot.
 */
#ifndef SIM_WATCHER_H
#define SIM_WATCHER_H

#include "world.h"

/* Hosts, names, owners and their keys, as the plan says. */
void watcher_init(struct world *world);
void watcher_done(struct world *world);

/* The owner's timer fires: send, repeat, or give up. */
void watcher_act(struct world *world, struct owner *owner);
void watcher_receive(struct world *world, struct call *call, struct bytes message);
void watcher_connection_lost(struct world *world, struct owner *owner);
/* Everything on that host starts anew. */
void watcher_reboot(struct world *world, struct host *host);

/* A call that the owner makes now; NULL for the key of calls that have none. */
struct call *watcher_call(struct world *world, struct owner *owner, uint32_t procedure,
                          struct key *key);
/* Sends the owner's outstanding call now. */
void watcher_send(struct world *world, struct owner *owner);

/* No call of an owner is outstanding. */
bool watcher_all_answered(const struct world *world);
/* Every owner has unregistered everything. */
bool watcher_all_finished(const struct world *world);

#endif

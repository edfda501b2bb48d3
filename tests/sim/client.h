/*
 * client.h -- the hosts and their owners: they register, repeat, give up, reboot.
 */
#ifndef SIM_CLIENT_H
#define SIM_CLIENT_H

#include "world.h"

/* Hosts, names, owners and their keys, as the plan says. */
void client_init(struct world *world);
void client_done(struct world *world);

/* The owner's timer fires: send, repeat, or give up. */
void client_act(struct world *world, struct owner *owner);
void client_receive(struct world *world, struct call *call, struct bytes message);
void client_connection_lost(struct world *world, struct owner *owner);
/* Everything on that host starts anew. */
void client_reboot(struct world *world, struct host *host);

/* A call that the owner makes now; NULL for the key of calls that have none. */
struct call *client_call(struct world *world, struct owner *owner, uint32_t procedure,
                         struct key *key);
/* Sends the owner's outstanding call now. */
void client_send(struct world *world, struct owner *owner);

/* No call of an owner is outstanding. */
bool client_all_answered(const struct world *world);
/* Every owner has unregistered everything. */
bool client_all_finished(const struct world *world);

#endif

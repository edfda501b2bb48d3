/*
 * callbacks.h -- hosts that are called back with GRANTED: a portmapper and NLM on one UDP socket.
 *
 * Every host listens on port 111 of its own address, and its portmapper says that NLM is right
 * there, over UDP only. No thread: the test turns it. What a host answers to GRANTED is the test's
 * decision; to everything else it answers as a client that has nothing to do with it.
 *
 * They need a network namespace of their own: port 111 of this machine may be taken.
 */
#ifndef INTEGRATION_CALLBACKS_H
#define INTEGRATION_CALLBACKS_H

#include "peer/dial.h"
#include "peer/peer_nlm.h"

struct callbacks;

/* A GRANTED arrived at this address; the status to answer. */
typedef uint32_t (*callbacks_granted_fn)(void *context, uint32_t address,
                                         const struct peer_nlm_args *args);

/* Enters a new network namespace with a loopback. False: that is not allowed here. */
bool callbacks_enter_network(void);

/* NULL: no memory or no epoll. */
struct callbacks *callbacks_new(uint32_t hosts_max, callbacks_granted_fn granted, void *context);
void callbacks_free(struct callbacks *callbacks);
/* An address in host byte order. 0 or negative errno. */
int callbacks_add(struct callbacks *callbacks, uint32_t address);
/* Answers what has arrived, without waiting. How many calls of NLM. */
uint32_t callbacks_turn(struct callbacks *callbacks);

#endif

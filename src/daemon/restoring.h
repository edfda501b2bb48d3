/*
 * restoring.h -- from the store to a core that may answer: opened, ours, loaded, and its new state
 * durable.
 */
#ifndef DAEMON_RESTORING_H
#define DAEMON_RESTORING_H

#include "daemon/daemon.h"

/* A store of our own opens at once; a shared one may have to be waited for. */
int restoring_open(struct daemon *daemon);
/* The store is ours: nobody else can commit any more. Runs the hook. */
int restoring_take_over(struct daemon *daemon);
/* Reads the store into a new core. */
int restoring_load(struct daemon *daemon);
/* The first batch: the new state and epoch, durable before anybody is answered. */
int restoring_boot(struct daemon *daemon);

#endif

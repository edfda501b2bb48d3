/*
 * start_store.h -- the steps of the start that lead from the store to a core that may answer: it is
 * opened, ours, loaded, and its new state durable.
 */
#ifndef DAEMON_START_STORE_H
#define DAEMON_START_STORE_H

#include "daemon/daemon.h"

/* A store of our own opens at once; a shared one may have to be waited for. */
int start_store_open(struct daemon *daemon);
/* The store is ours: nobody else can commit any more. Runs the hook. */
int start_store_take_over(struct daemon *daemon);
/* Reads the store into a new core. */
int start_store_load(struct daemon *daemon);
/* The first batch: the new state and epoch, durable before anybody is answered. */
int start_store_boot(struct daemon *daemon);

#endif

/*
 * store_clear.h -- `holdfast store clear`: removes every record except the server's own.
 */
#ifndef DAEMON_STORE_CLEAR_H
#define DAEMON_STORE_CLEAR_H

#include "daemon/config.h"

/* Asks first, unless it `is_confirmed`; waits for a store that is away or in use for
 * --store-timeout. Prints what it did, and returns the exit code. */
int store_clear_run(const struct config *config, bool is_confirmed);

#endif

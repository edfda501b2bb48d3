/*
 * store_clear.h -- `holdfast store clear`: every record goes, but for who the server is.
 */
#ifndef DAEMON_STORE_CLEAR_H
#define DAEMON_STORE_CLEAR_H

#include <stdbool.h>
#include <stdint.h>

/* Asks first, unless it `is_confirmed`; patience with a store that is away or in use as
 * --store-timeout has it. Says what it did, and returns the exit code. */
int store_clear_run(const char *url, uint64_t timeout_ns, bool is_confirmed);

#endif

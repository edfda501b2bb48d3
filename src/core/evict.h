/*
 * evict.h -- who is forgotten when a table is full (R-SEC-12).
 *
 * A full table forgets its longest idle or given-up element for a new one, if there is one that
 * holds nothing:
 *
 *   lock client   it has no lock, share or wait, nothing of it is being freed, and it is told of
 *                 our last restart or the notifier gave up on it
 *   registrant    the notifier gave up on it: until then it may be owed something at any time
 *
 * A client that holds something, or is owed something and is still tried, stays. An address that
 * has used up its share of the clients makes room for itself in the same way, among its own.
 *
 * One goes for each that comes, also where more is stored than a limit that was lowered since: the
 * table does not grow, and nothing is forgotten in vain.
 */
#ifndef CORE_EVICT_H
#define CORE_EVICT_H

#include "base/address.h"

#include <stdint.h>

struct core;

/* This client may have become one that may be forgotten, or was heard from just now: its place is
 * the last one. */
void evict_rank(struct core *core, uint32_t client);
/* One less; false: nobody may be forgotten. */
bool evict_client(struct core *core);
/* The same among the clients of one address. */
bool evict_client_of(struct core *core, const struct address *address);
bool evict_registrant(struct core *core);

void evict_check(const struct core *core, uint32_t client);

#endif

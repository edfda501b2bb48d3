/*
 * ahead.h -- what a request will look at, on its way into the cache before the core is asked.
 *
 * An element is found through a chain, and a chain by a hash. Where there are many, each of these
 * steps waits for memory. The hashes follow from the request alone, and when it is decoded the
 * server first looks for a repeat of the call: meanwhile the chains are fetched (core_ahead), and
 * then the first slot of each (core_ahead_more). Neither changes anything that can be seen, and
 * nobody need call them.
 */
#ifndef CORE_AHEAD_H
#define CORE_AHEAD_H

#include "core/message.h"

struct core;

/* Of the request that core_ahead saw last. */
struct ahead {
    enum { AHEAD_NOTHING, AHEAD_REGISTRANT, AHEAD_NEW_REGISTRANT, AHEAD_FILE } what;
    uint64_t registrant, name, fold, file; /* hashes */
};

void core_ahead(struct core *core, const struct peer *from, const struct request *request);
void core_ahead_more(const struct core *core);

#endif

/*
 * ahead.h -- what a request will look at, on its way into the cache before the core is asked.
 *
 * An element is found through a chain, and a chain by a hash. Where there are many, each of these
 * steps waits for memory. But when a request is decoded the server still has to look for a repeat
 * of the call, and to begin a new one in its cache. Meanwhile
 *
 *   core_ahead        has the chains fetched that its hashes name,
 *   core_ahead_next   the first slot of each, which mostly is the one; and then what these lead to.
 *
 * All of that are guesses. They change nothing that can be seen, and nobody need call these.
 */
#ifndef CORE_AHEAD_H
#define CORE_AHEAD_H

#include "core/message.h"

struct core;

/* Of the request that core_ahead saw last. */
struct ahead {
    enum {
        AHEAD_NOTHING,
        AHEAD_REGISTRANT,
        AHEAD_NEW_REGISTRANT,
        AHEAD_LOCK,   /* the chains of its owner and its file are fetched, */
        AHEAD_HOLDING /* and so is the first slot of each */
    } what;
    uint64_t registrant, name, fold, file, owner; /* hashes */
    uint32_t client; /* that locked last: the next one mostly is the same */
    uint32_t file_slot, owner_slot;
};

void core_ahead(struct core *core, const struct peer *from, const struct request *request);
void core_ahead_next(struct core *core);

#endif

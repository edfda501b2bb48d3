/*
 * owner.h -- who locks: a process of a client, known by (client, svid) (R-OWN-1).
 *
 * An owner lives while it holds a lock, is offered one or waits for one. `oh` is not part of who it
 * is: macOS changes it when its lock daemon restarts.
 */
#ifndef CORE_OWNER_H
#define CORE_OWNER_H

#include "base/chains.h"
#include "base/table.h"

struct core;

struct owner {
    uint64_t hash;
    uint32_t client; /* slot */
    uint32_t svid;
    uint32_t lock_count;   /* held and offered */
    uint32_t waiter_count; /* queued, offered or keeping a place */
    uint64_t visit;        /* stamp of the last search for a deadlock that came by */
};

struct owners {
    struct table table;
    struct chains by_key;
    uint64_t visit_last;
};

__attribute__((warn_unused_result)) int owner_init(struct core *core, uint32_t slots_max);
void owner_done(struct core *core);

/* SLOT_NONE: there is none. */
uint32_t owner_find(const struct core *core, uint32_t client, uint32_t svid);
/* The one there is, or a new one. The table holds one for every lock and waiter there can be. */
uint32_t owner_add(struct core *core, uint32_t client, uint32_t svid);
struct owner *owner_at(const struct core *core, uint32_t slot);
/* Removes it if nothing of it is left. */
void owner_release(struct core *core, uint32_t slot);

void owner_check(const struct core *core);

#endif

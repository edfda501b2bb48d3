/*
 * owner.h -- who locks: a process of a client, known by (client, svid) (R-OWN-1).
 *
 * An owner lives while it holds a lock, is offered one or waits for one. `oh` is not part of who it
 * is: macOS changes it when its lock daemon restarts.
 */
#ifndef CORE_OWNER_H
#define CORE_OWNER_H

#include "base/hash_index.h"
#include "base/list.h"
#include "base/table.h"
#include "base/tree.h"

struct core;

struct owner {
    uint32_t client; /* slot */
    uint32_t svid;
    uint32_t lock_count;   /* held and offered */
    uint32_t waiter_count; /* queued, offered or keeping a place */
    uint32_t queued_count; /* of them, queued */
    uint32_t near;         /* a holding of it (lock.h), its slot + 1; 0: none, or they are far */
    tree_root waiters;     /* all of them, by file and range (waiter_own.h) */
    tree_root left_over;   /* offers of a run before (leftover.h) */
    struct list waiting;   /* while it holds something and waits: only such close a circle */
    struct list leaving;   /* while those of its waiters must look again that wait on waiters */
    uint64_t visit;        /* stamp of the last search for a deadlock that came by */
};

struct owners {
    struct table table;
    struct hash_index by_key;
    struct list waiting, leaving;
    uint32_t waiting_count;
    uint64_t visit_last;
};

__attribute__((warn_unused_result)) int owner_init(struct core *core, const uint32_t slots[]);
void owner_done(struct core *core);

/* Of its key. */
uint64_t owner_hash(const struct core *core, uint32_t client, uint32_t svid);
/* SLOT_NONE: there is none. */
uint32_t owner_find(const struct core *core, uint32_t client, uint32_t svid);
/* The one there is, or a new one. The table holds one for every lock and waiter there can be. */
uint32_t owner_add(struct core *core, uint32_t client, uint32_t svid);
struct owner *owner_at(const struct core *core, uint32_t slot);
/* Whether it holds something, or waits, may have changed. */
void owner_note(struct core *core, uint32_t slot);
/* Removes it if nothing of it is left. */
void owner_release(struct core *core, uint32_t slot);

void owner_check(const struct core *core);

#endif

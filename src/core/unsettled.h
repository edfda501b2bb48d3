/*
 * unsettled.h -- bytes that the store says somebody holds, and that nobody has confirmed yet.
 *
 * After a start in reclaim mode every stored lock is in force, and its owner may come to reclaim
 * it, in pieces and in any order (R-GRACE-3). What is unsettled is therefore kept apart from the
 * locks themselves: a reclaim takes bytes out of this set and writes nothing (R-GRACE-9), and when
 * grace ends, what is left here is what is released.
 *
 * Always true: every unsettled byte is held by its owner, in the lock table and in the store. So
 * whatever takes bytes from an owner or gives them to it again settles them (lock.c does).
 *
 * Most locks are unsettled as a whole until they are settled as a whole: that is a bit of theirs.
 * Only when a lock is settled in part, or becomes part of another one, its bytes are a range of
 * their own. So a start with a million locks takes no memory here.
 *
 * Nothing here is stored: the next start finds everything unsettled again (R-GRACE-6).
 */
#ifndef CORE_UNSETTLED_H
#define CORE_UNSETTLED_H

#include "base/chains.h"
#include "base/table.h"
#include "base/tree.h"
#include "core/claim.h"

struct core;
struct lock;

struct unsettled {
    uint32_t whole_count;    /* locks that are unsettled as a whole: struct lock.is_unsettled */
    struct table table;      /* the other ranges, of struct claim; the mode is not looked at */
    struct tree by_start;    /* roots: struct holding.unsettled */
    struct chains by_client; /* chain = client slot */
};

__attribute__((warn_unused_result)) int unsettled_init(struct core *core, const uint32_t slots[]);
void unsettled_done(struct core *core);

/* The owner holds this, and is yet to say so. */
void unsettled_add(struct core *core, const struct claim *claim);
/* The same of all of a held lock, of which nothing is unsettled yet. */
void unsettled_add_lock(struct core *core, uint32_t slot);
/* The lock is about to have other bytes, or to go: what is unsettled of it stays. */
void unsettled_detach(struct core *core, uint32_t slot);

/* Is there room for so many more? For a range of every lock at once there always is. */
bool unsettled_has_room(const struct core *core, uint32_t count);
/* Nothing is unsettled any more. */
void unsettled_clear(struct core *core);

/* These bytes are settled, whatever of them was not. False: a rest would need a slot that there is
 * not; the set is as it was. */
__attribute__((warn_unused_result)) bool unsettled_settle(struct core *core,
                                                          const struct claim *claim);

/* Is anything of this unsettled? */
bool unsettled_meets(const struct core *core, const struct claim *claim);
/* The same of a held lock, without looking for its holding. */
bool unsettled_meets_lock(const struct core *core, const struct lock *lock);

/* One of the client's ranges. False: it has none, or `budget` locks have been looked at. */
bool unsettled_of_client(struct core *core, uint32_t client, uint32_t *budget, struct claim *ret);
struct claim *unsettled_at(const struct core *core, uint32_t slot);
/* Ranges, whole locks included. */
uint32_t unsettled_count(const struct core *core);

void unsettled_check(const struct core *core);

#endif

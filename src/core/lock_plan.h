/*
 * lock_plan.h -- how an owner's locks make room for a fresh one; for the files of core/lock only.
 */
#ifndef CORE_LOCK_PLAN_H
#define CORE_LOCK_PLAN_H

#include "core/lock.h"

/* How the locks that an owner holds make room for a fresh one. */
struct lock_plan {
    struct claim reach;  /* of the fresh lock, and what touches it */
    struct claim merged; /* of the fresh lock and all that it is merged with */
    uint64_t asked;      /* the latest of the same */
    uint32_t first;      /* of its locks that overlap `reach`; SLOT_NONE: none */
    uint32_t kept;       /* the one that becomes the fresh lock; SLOT_NONE: a new slot does */
    uint32_t slots;      /* that it takes from the table at most while it is carried out */
    bool is_alone;       /* nothing is alike and touches it, nothing overlaps it */
};

/* The element that is wanted, with a reference to oh that stays the caller's. False: no bytes. */
__attribute__((warn_unused_result)) bool
lock_plan_shape(struct core *core, const struct lock_want *want, struct lock *ret);

struct lock_plan lock_plan_make(const struct core *core, const struct lock *fresh);
/* Nothing may have changed since it was made, and there must be so many slots. */
void lock_plan_carry_out(struct core *core, const struct lock *fresh, const struct lock_plan *plan);

/* Does taking this range out of the lock leave two rests of it? */
bool lock_plan_is_split(const struct core *core, const struct lock *lock,
                        const struct claim *range);
/* Takes it out, from a lock that overlaps it. */
void lock_plan_cut(struct core *core, uint32_t slot, const struct claim *range);
/* All of an element that goes is settled: never a part of an unsettled range, so this needs no
 * slot. */
void lock_plan_settle(struct core *core, const struct lock *lock);

#endif

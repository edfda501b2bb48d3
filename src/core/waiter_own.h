/*
 * waiter_own.h -- what one owner waits for, by file and range.
 *
 * UNLOCK and reclaims concern the waits of an owner in a range. An owner may have a hundred
 * thousand others, which must cost nothing (P7): they are in a tree in the order of file and first
 * byte, with sums that lead to those that are meant.
 */
#ifndef CORE_WAITER_OWN_H
#define CORE_WAITER_OWN_H

#include "base/tree.h"
#include "core/claim.h"

struct core;

/* What is known of a subtree of an owner's waiters. */
struct waiter_span {
    uint64_t first_end;  /* the nearest end */
    uint64_t called_end; /* the furthest end of those that were called; 0 while there are none, */
    bool has_called;     /* which this says */
};

__attribute__((warn_unused_result)) int waiter_own_init(struct core *core, uint32_t slots_max);
void waiter_own_done(struct core *core);

void waiter_own_add(struct core *core, uint32_t waiter);
void waiter_own_remove(struct core *core, uint32_t waiter);
/* It was called for the first time, or is offered no more. */
void waiter_own_touch(struct core *core, uint32_t waiter);

/* A waiter of the claim's owner that lies inside the claim, in whatever phase and mode; SLOT_NONE:
 * none. */
uint32_t waiter_own_inside(const struct core *core, const struct claim *claim);
/* One that is offered and was called, and overlaps the claim. */
uint32_t waiter_own_called(const struct core *core, const struct claim *claim);

void waiter_own_check(const struct core *core, uint32_t waiter);

#endif

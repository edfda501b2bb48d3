/*
 * waiter_queue.h -- the queued waiters of a file, and which of them is ahead of whom (R-BLK-15).
 */
#ifndef CORE_WAITER_QUEUE_H
#define CORE_WAITER_QUEUE_H

#include "core/claim.h"

struct core;

/* What is known of a subtree of queued waiters. */
struct waiter_reach {
    uint64_t end;         /* the furthest; meaningless when it is empty */
    uint64_t first_order; /* the earliest place in the queue; UINT64_MAX: empty */
};

__attribute__((warn_unused_result)) int waiter_queue_init(struct core *core, uint32_t slots_max);
void waiter_queue_done(struct core *core);

/* Its owner counts it. */
void waiter_queue_add(struct core *core, uint32_t waiter);
void waiter_queue_remove(struct core *core, uint32_t waiter);

/* The latest queued waiter that conflicts with a claim which has this place in the queue;
 * UINT64_MAX: its end. SLOT_NONE: there is none. */
uint32_t waiter_queue_earlier(const struct core *core, const struct claim *claim, uint64_t order);

#endif

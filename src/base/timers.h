/*
 * timers.h -- one deadline per table slot, earliest first.
 *
 * A binary heap over slots. Two deadlines at the same instant come in the order in which they were
 * set, so that the same inputs give the same outputs. Setting, moving and clearing cost O(log n).
 */
#ifndef BASE_TIMERS_H
#define BASE_TIMERS_H

#include <stdbool.h>
#include <stdint.h>

struct timers {
    struct timers_item {
        uint64_t deadline_ns, order;
        uint32_t slot;
    } * heap;
    uint32_t *place; /* of a slot in the heap, plus one; 0: not set */
    uint64_t order_next;
    uint32_t count, slot_max;
};

/* 0, or -ENOMEM with nothing allocated. */
__attribute__((warn_unused_result)) int timers_init(struct timers *timers, uint32_t slot_max);
void timers_done(struct timers *timers);

/* Sets or moves the deadline of a slot. */
void timers_set(struct timers *timers, uint32_t slot, uint64_t deadline_ns);
/* Nothing happens when it is not set. */
void timers_clear(struct timers *timers, uint32_t slot);
bool timers_is_set(const struct timers *timers, uint32_t slot);
/* Of a slot that is set. */
uint64_t timers_deadline_ns(const struct timers *timers, uint32_t slot);

/* The earliest deadline, UINT64_MAX when none is set. */
uint64_t timers_next_ns(const struct timers *timers);
/* Takes the slot whose deadline came first if it is not after now; SLOT_NONE: none is due. */
uint32_t timers_take(struct timers *timers, uint64_t now_ns);

void timers_check(const struct timers *timers);

#endif

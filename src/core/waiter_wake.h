/*
 * waiter_wake.h -- what each queued waiter is attached to, and which to examine when that changes.
 *
 * A queued waiter is attached to one blocker: a lock or offer, an earlier waiter, or a program on
 * this machine, which is looked at again and again (mirror.h). When the blocker changes, and only
 * then, the waiter is woken: waiter_work takes woken waiters in queue order within a file.
 * Addresses take turns: a file counts for the address of its first. So one client's hundred
 * thousand delay nobody in another file.
 */
#ifndef CORE_WAITER_WAKE_H
#define CORE_WAITER_WAKE_H

#include <stdbool.h>
#include <stdint.h>

struct core;

__attribute__((warn_unused_result)) int waiter_wake_init(struct core *core, uint32_t slots_max,
                                                         uint32_t lock_slots_max);
void waiter_wake_done(struct core *core);

/* Attaches a taken waiter to this lock or waiter. */
void waiter_wake_hang(struct core *core, uint32_t waiter, bool on_waiter, uint32_t thing);
/* Attaches it to the programs on this machine: it looks again in a moment. */
void waiter_wake_hang_on_program(struct core *core, uint32_t waiter);
/* It is to look again. */
void waiter_wake_up(struct core *core, uint32_t waiter);
/* It is neither attached nor woken. */
void waiter_wake_forget(struct core *core, uint32_t waiter);

/* This lock or offer is gone, or is less than it was. */
void waiter_wake_lock_changed(struct core *core, uint32_t lock);
/* This waiter no longer blocks anybody. */
void waiter_wake_behind(struct core *core, uint32_t waiter);
/* This owner holds its first lock: it no longer waits behind waiters (R-BLK-15). */
void waiter_wake_owner_holds(struct core *core, uint32_t owner);
/* A bounded number of those whose owners do so. */
void waiter_wake_leavers(struct core *core);
/* This client counts at another address since now. */
void waiter_wake_moved(struct core *core, uint32_t client);

/* The next one that is to look again, and waits on nothing now; SLOT_NONE: none. */
uint32_t waiter_wake_take(struct core *core);

void waiter_wake_check(const struct core *core, uint32_t waiter);

#endif

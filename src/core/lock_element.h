/*
 * lock_element.h -- single elements of the lock table and everything that counts or lists them; for
 * the files of core/lock only.
 *
 * lock.c decides what becomes of an owner's locks; here one element comes, changes or goes, and all
 * indexes, sums, counts, references, dirty marks and waiters follow.
 */
#ifndef CORE_LOCK_ELEMENT_H
#define CORE_LOCK_ELEMENT_H

#include "core/lock.h"

/* Same mode and same stamp: held locks of one owner that touch and are alike are one (R-RNG-3). */
bool lock_element_is_alike(const struct lock *a, const struct lock *b);

/* It is to be freed: its client rebooted, and lock_drain has not come by yet (R-SEC-3). What a
 * lingering callback keeps is not among that: it goes by itself. */
bool lock_element_is_doomed(const struct core *core, const struct lock *lock);

/* The holding of an owner in a file; SLOT_NONE: it holds nothing there. */
uint32_t lock_element_holding(const struct core *core, uint32_t owner, uint32_t file);

/* More slots than this cannot be added. */
uint32_t lock_element_free_count(const struct core *core);

/* A new element with this content, whose `link` is looked at only if it is an offer. Takes
 * references of its own to the file and to oh. There must be a free slot. */
uint32_t lock_element_add(struct core *core, const struct lock *content);
/* The same in a slot that is live already, from the store: nothing is to be written, and it is in
 * no set yet. `link` must be SLOT_NONE. */
void lock_element_load(struct core *core, uint32_t slot, const struct lock *content);
/* Such an element goes into its sets. */
void lock_element_index(struct core *core, uint32_t slot);
/* Or it does not: all is as if it had never come. */
void lock_element_unload(struct core *core, uint32_t slot);
/* Its holding, where it is counted now, but not in its set; and is not any more. */
struct holding *lock_element_enter_holding(struct core *core, uint32_t slot);
void lock_element_leave_holding(struct core *core, uint32_t slot);
/* The element gets this range, mode, stamp, len, oh and time; owner, file and being held or offered
 * stay. */
void lock_element_change(struct core *core, uint32_t slot, const struct lock *content);
/* It is of this incarnation, which is over like the one that it was of. */
void lock_element_restamp(struct core *core, uint32_t slot, uint32_t incarnation);
/* An offer becomes held, as it is: nothing that its owner holds may overlap or be alike and touch
 * it. */
void lock_element_hold(struct core *core, uint32_t slot);
/* The same without writing it: the store's record says as much. */
void lock_element_restore(struct core *core, uint32_t slot);
/* It is one that outlived its run without its waiter (leftover.h). */
void lock_element_leave_over(struct core *core, uint32_t slot);
/* It is not, any more, if it was. */
void lock_element_unleave(struct core *core, uint32_t slot);
/* Its owner stays also when that was all it had: see lock_element_finish. */
void lock_element_remove(struct core *core, uint32_t slot);

/* After a change, once: the owner goes if nothing of it is left, and the client's time begins. */
void lock_element_finish(struct core *core, uint32_t owner);

#endif

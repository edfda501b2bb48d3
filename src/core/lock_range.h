/*
 * lock_range.h -- the order of locks, what is known of many of them, and searches; for the files of
 * core/lock only.
 */
#ifndef CORE_LOCK_RANGE_H
#define CORE_LOCK_RANGE_H

#include "core/lock.h"

/* The order of both trees: by first byte. `context` is the core. */
bool lock_range_before(const void *context, uint32_t a, uint32_t b);
/* The sums of a file's tree. */
bool lock_range_sum(void *context, uint32_t slot, uint32_t left, uint32_t right);

/* The same of elements that are gone through in order of their first bytes. */
struct lock_range_seen {
    struct lock_reach any, exclusives;
};
void lock_range_see_none(struct lock_range_seen *ret);
/* One more. True: it conflicts with one of those before. */
bool lock_range_see(struct lock_range_seen *seen, const struct claim *claim);

/* The first lock that the claim's owner holds in its file and that does not end before the claim
 * begins; SLOT_NONE: there is none. Its later ones follow by tree_next in core->locks.own. */
uint32_t lock_range_first_own(const struct core *core, const struct claim *claim);

#endif

/*
 * lock_range.h -- the order of locks, and searches; for the files of
 * core/lock only.
 */
#ifndef CORE_LOCK_RANGE_H
#define CORE_LOCK_RANGE_H

#include "core/lock.h"

/* The order of an owner's locks in a file: by first byte. `context` is the core. */
bool lock_range_before(const void *context, uint32_t a, uint32_t b);
/* What a file's set knows of an element. */
const struct claim *lock_range_claim(const void *context, uint32_t slot);

/* The first lock that the claim's owner holds in its file and that does not end before the claim
 * begins; SLOT_NONE: there is none. Its later ones follow by tree_next in core->locks.own. */
uint32_t lock_range_first_own(const struct core *core, const struct claim *claim);

#endif

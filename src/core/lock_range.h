/*
 * lock_range.h -- searches; for the files of
 * core/lock only.
 */
#ifndef CORE_LOCK_RANGE_H
#define CORE_LOCK_RANGE_H

#include "core/lock.h"

/* What sets know of an element. `context` is the core. */
const struct claim *lock_range_claim(const void *context, uint32_t slot);

/* The first lock that the claim's owner holds in its file and that does not end before the claim
 * begins; SLOT_NONE: there is none. */
uint32_t lock_range_first_own(const struct core *core, const struct claim *claim);
/* The next one of its owner in its file. */
uint32_t lock_range_next_own(const struct core *core, uint32_t slot);

#endif

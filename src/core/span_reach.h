/*
 * span_reach.h -- how far many elements reach, for any asker; for the files of core/span and
 * core/lock only.
 *
 * "How far" must leave out the asker's own elements, or an owner with many locks would search
 * through all of them. It is enough to know two ends: the furthest, and the furthest of all owners
 * but the one that has the furthest. For any owner one of the two is the answer, and the pair of a
 * whole follows from those of its parts: exactly, not as a guess. A shared request looks at
 * exclusive elements only, so there is a second pair for these.
 */
#ifndef CORE_SPAN_REACH_H
#define CORE_SPAN_REACH_H

#include "core/claim.h"

/* `end` of any owner, which is `owner`; `other_end` of another. */
struct span_reach {
    uint64_t end, other_end;
    uint32_t owner; /* SLOT_NONE: nothing there; other_owner likewise */
    uint32_t other_owner;
};

/* Of any elements, and of the exclusive ones among them. */
struct span_sum {
    struct span_reach any, exclusives;
};

void span_reach_clear(struct span_sum *ret);
/* One more element. */
void span_reach_add(struct span_sum *sum, const struct claim *claim);
/* As many more as another sum says. */
void span_reach_join(struct span_sum *sum, const struct span_sum *from);
/* Does the sum depend on this element, which is in it? */
bool span_reach_needs(const struct span_sum *sum, const struct claim *claim);

/* The first of these, from one on, in which something of another owner, in a mode that matters,
 * reaches the claim's first byte or goes beyond it; `count`: none. */
uint32_t span_reach_first(const struct span_reach any[], const struct span_reach exclusives[],
                          uint32_t from, uint32_t count, const struct claim *claim);

#endif

/*
 * span_reach.c -- see span_reach.h.
 */
#include "core/span_reach.h"

#include "base/table.h"

static const struct span_reach nothing = {.owner = SLOT_NONE, .other_owner = SLOT_NONE};

void span_reach_clear(struct span_sum *ret)
{
    *ret = (struct span_sum){nothing, nothing};
}

/* One more end of one owner. */
static void extend(struct span_reach *reach, uint64_t end, uint32_t owner)
{
    if (owner == SLOT_NONE)
        return;
    if (reach->owner == SLOT_NONE || owner == reach->owner) {
        if (reach->owner == SLOT_NONE || end > reach->end)
            reach->end = end;
        reach->owner = owner;
    } else if (end > reach->end) {
        reach->other_end = reach->end;
        reach->other_owner = reach->owner;
        reach->end = end;
        reach->owner = owner;
    } else if (reach->other_owner == SLOT_NONE || end > reach->other_end) {
        reach->other_end = end;
        reach->other_owner = owner;
    }
}

void span_reach_add(struct span_sum *sum, const struct claim *claim)
{
    extend(&sum->any, claim->end, claim->owner);
    if (claim->exclusive)
        extend(&sum->exclusives, claim->end, claim->owner);
}

/*
 * Two pairs into one. Whatever owner O is left out, the furthest end of the rest in `from` is one
 * of the two ends it has, and belongs to another owner than O: so adding both ends loses nothing.
 */
static void join(struct span_reach *reach, const struct span_reach *from)
{
    extend(reach, from->end, from->owner);
    extend(reach, from->other_end, from->other_owner);
}

void span_reach_join(struct span_sum *sum, const struct span_sum *from)
{
    join(&sum->any, &from->any);
    join(&sum->exclusives, &from->exclusives);
}

/* It is one of the two ends, or may be. */
static bool needs(const struct span_reach *reach, const struct claim *claim)
{
    return claim->end == (claim->owner == reach->owner ? reach->end : reach->other_end);
}

bool span_reach_needs(const struct span_sum *sum, const struct claim *claim)
{
    return needs(&sum->any, claim) || (claim->exclusive && needs(&sum->exclusives, claim));
}

/* Does another owner than this one reach the byte or go beyond it? */
static bool reaches(const struct span_reach *reach, uint64_t byte, uint32_t but_for)
{
    if (reach->end < byte)
        return false; /* the other end is no further */
    if (reach->owner != but_for)
        return reach->owner != SLOT_NONE;
    return reach->other_owner != SLOT_NONE && reach->other_end >= byte;
}

uint32_t span_reach_first(const struct span_reach any[], const struct span_reach exclusives[],
                          uint32_t from, uint32_t count, const struct claim *claim)
{
    const struct span_reach *at = claim->exclusive ? any : exclusives;
    while (from < count && !reaches(&at[from], claim->start, claim->owner))
        from++;
    return from;
}

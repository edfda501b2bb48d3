/*
 * claim.c -- see claim.h.
 */
#include "core/claim.h"

struct claim claim_widened(const struct claim *claim)
{
    struct claim wide = *claim;
    wide.start -= claim->start > 0 ? 1 : 0;
    wide.end += claim->end < UINT64_MAX ? 1 : 0;
    return wide;
}

struct claim_rests claim_rests(const struct claim *of, const struct claim *cut)
{
    struct claim_rests rests = {
        .has_left = of->start<cut->start, .has_right = of->end> cut->end,
        .left = *of,
        .right = *of,
    };
    rests.left.end = cut->start - 1;
    rests.right.start = cut->end + 1;
    return rests;
}

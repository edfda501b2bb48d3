/*
 * descriptors.c -- RLIMIT_NOFILE; see descriptors.h.
 */
#include "daemon/descriptors.h"

#include <sys/resource.h>

uint64_t descriptors_reserve(uint64_t needed)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 0; /* a system call filter may forbid it */
    if (limit.rlim_cur >= needed)
        return limit.rlim_cur;
    struct rlimit wanted = {.rlim_cur = needed, .rlim_max = limit.rlim_max};
    if (needed > limit.rlim_max)
        wanted.rlim_max = needed;
    if (setrlimit(RLIMIT_NOFILE, &wanted) == 0)
        return needed;
    /* Not permitted, or more than the kernel grants anybody: take what there is. */
    wanted = (struct rlimit){.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
    return setrlimit(RLIMIT_NOFILE, &wanted) == 0 ? wanted.rlim_cur : limit.rlim_cur;
}

struct descriptors_shares descriptors_divide(uint64_t limit,
                                             const struct descriptors_shares *wanted)
{
    if (limit == 0) /* not known: what was asked for, and few calls */
        return (struct descriptors_shares){wanted->callers, DESCRIPTORS_SPARE / 4};
    uint64_t spare = limit < 2 * (uint64_t)DESCRIPTORS_SPARE ? limit / 2 : DESCRIPTORS_SPARE;
    uint64_t left = limit - spare;
    struct descriptors_shares shares = *wanted;
    if (shares.callers > left)
        shares.callers = left > 0 ? (uint32_t)left : 1;
    left -= shares.callers < left ? shares.callers : left;
    if (shares.calls > left)
        shares.calls = left > spare / 4 ? (uint32_t)left : (uint32_t)(spare / 4 + 1);
    return shares;
}

uint32_t descriptors_for_mirror(uint64_t limit, uint64_t needed, uint32_t wanted)
{
    uint64_t left = limit > needed ? limit - needed : 0;
    uint64_t least = limit == 0 ? DESCRIPTORS_SPARE : limit / 16;
    uint64_t count = (left / 2 > least ? left / 2 : least) / 2; /* two for each */
    return count < wanted ? (uint32_t)count : wanted;
}

uint32_t descriptors_for_pipes(uint64_t limit, uint64_t needed, uint32_t wanted)
{
    if (limit >= needed)
        return wanted;
    uint64_t few = (limit == 0 ? DESCRIPTORS_SPARE : limit) / 64; /* two for each */
    return few < wanted ? (uint32_t)few : wanted;
}

uint32_t descriptors_for_files(uint64_t limit, uint64_t needed, uint32_t wanted)
{
    if (limit >= needed)
        return wanted;
    uint64_t quarter = limit == 0 ? DESCRIPTORS_SPARE : limit / 4;
    return quarter < wanted ? (uint32_t)quarter : wanted;
}

/*
 * pace.c -- see pace.h.
 */
#include "base/pace.h"

#include "base/units.h"

#define STANDSTILL_NS SECOND_NS

uint64_t pace_now_ns(struct pace *pace, uint64_t clock_ns)
{
    uint64_t awake_ns = pace->awake_ns > pace->clock_ns ? pace->awake_ns : pace->clock_ns;
    if (pace->awake_ns != 0 && clock_ns > awake_ns && clock_ns - awake_ns > STANDSTILL_NS)
        pace->stood_ns += clock_ns - awake_ns;
    pace->clock_ns = clock_ns;
    return clock_ns - pace->stood_ns;
}

void pace_sleep(struct pace *pace, uint64_t until_ns)
{
    pace->awake_ns = until_ns;
}

/*
 * reliance.c -- who relies on which bytes; see reliance.h.
 *
 * Always true:
 *  (1) The ranges of one owner do not overlap.
 *  (2) A cell counts the ranges that hold it, exclusive and shared ones apart, and knows the owner
 *      that came last in each way, which is who a conflict is reported with.
 */
#include "reliance.h"

#include <stdlib.h>

struct cell {
    uint16_t exclusive_count, shared_count;
    uint32_t exclusive_owner, shared_owner;
};

struct owner {
    uint32_t count;
    struct reliance_held held[RELIANCE_RANGES_MAX];
};

struct reliance {
    struct owner *owners;
    struct cell *cells;
};

struct reliance *reliance_new(uint32_t owners, uint32_t files)
{
    struct reliance *reliance = calloc(1, sizeof(*reliance));
    if (!reliance)
        return NULL;
    reliance->owners = calloc(owners, sizeof(*reliance->owners));
    reliance->cells = calloc((size_t)files * RELIANCE_CELLS, sizeof(*reliance->cells));
    if (reliance->owners && reliance->cells)
        return reliance;
    reliance_free(reliance);
    return NULL;
}

void reliance_free(struct reliance *reliance)
{
    if (!reliance)
        return;
    free(reliance->owners);
    free(reliance->cells);
    free(reliance);
}

static struct cell *cell_at(const struct reliance *reliance, uint32_t file, uint32_t at)
{
    return &reliance->cells[(size_t)file * RELIANCE_CELLS + at];
}

/* Adds the range to the counts, or takes it away. */
static void count(struct reliance *reliance, uint32_t owner, const struct reliance_range *range,
                  bool is_added)
{
    for (uint32_t at = range->first; at <= range->last; at++) {
        struct cell *cell = cell_at(reliance, range->file, at);
        uint16_t *held = range->exclusive ? &cell->exclusive_count : &cell->shared_count;
        *held = (uint16_t)(is_added ? *held + 1 : *held - 1);
        if (is_added && range->exclusive)
            cell->exclusive_owner = owner;
        else if (is_added)
            cell->shared_owner = owner;
    }
}

uint32_t reliance_take(struct reliance *reliance, uint32_t owner,
                       const struct reliance_range *range)
{
    struct owner *of = &reliance->owners[owner];
    uint32_t other = RELIANCE_NOBODY;
    if (of->count == RELIANCE_RANGES_MAX)
        abort(); /* the test asked for too much */
    for (uint32_t at = range->first; at <= range->last; at++) {
        const struct cell *cell = cell_at(reliance, range->file, at);
        if (cell->exclusive_count > 0)
            other = cell->exclusive_owner;
        else if (range->exclusive && cell->shared_count > 0)
            other = cell->shared_owner;
    }
    of->held[of->count++] = (struct reliance_held){.range = *range};
    count(reliance, owner, range, true);
    return other;
}

static bool is_meeting(const struct reliance_range *a, const struct reliance_range *b)
{
    return a->file == b->file && a->first <= b->last && b->first <= a->last;
}

/* Cuts what lies in [first, last] out of the held range at `index`. True: it is gone, and another
   one has its place. */
static bool cut(struct reliance *reliance, uint32_t owner, uint32_t index, uint32_t first,
                uint32_t last)
{
    struct owner *of = &reliance->owners[owner];
    struct reliance_held *held = &of->held[index], rest = *held;
    struct reliance_range gone = held->range;
    gone.first = first > gone.first ? first : gone.first;
    gone.last = last < gone.last ? last : gone.last;
    count(reliance, owner, &gone, false);
    bool has_left = held->range.first<gone.first, has_right = held->range.last> gone.last;
    rest.range.first = gone.last + 1;
    if (has_left)
        held->range.last = gone.first - 1;
    else if (has_right)
        *held = rest;
    else
        *held = of->held[--of->count];
    if (has_left && has_right) {
        if (of->count == RELIANCE_RANGES_MAX)
            abort(); /* the test asked for too much */
        of->held[of->count++] = rest;
    }
    return !has_left && !has_right;
}

void reliance_drop(struct reliance *reliance, uint32_t owner, const struct reliance_range *range)
{
    struct owner *of = &reliance->owners[owner];
    for (uint32_t i = 0; i < of->count;) {
        bool is_gone = is_meeting(&of->held[i].range, range) &&
                       cut(reliance, owner, i, range->first, range->last);
        i += !is_gone;
    }
}

uint32_t reliance_count(const struct reliance *reliance, uint32_t owner)
{
    return reliance->owners[owner].count;
}

const struct reliance_held *reliance_at(const struct reliance *reliance, uint32_t owner,
                                        uint32_t index)
{
    return &reliance->owners[owner].held[index];
}

bool reliance_meets(const struct reliance *reliance, uint32_t owner,
                    const struct reliance_range *range)
{
    const struct owner *of = &reliance->owners[owner];
    for (uint32_t i = 0; i < of->count; i++)
        if (is_meeting(&of->held[i].range, range))
            return true;
    return false;
}

bool reliance_covers(const struct reliance *reliance, uint32_t owner,
                     const struct reliance_range *range)
{
    struct reliance_range byte = *range;
    for (uint32_t at = range->first; at <= range->last; at++) {
        byte.first = byte.last = at;
        if (!reliance_meets(reliance, owner, &byte))
            return false;
    }
    return true;
}

void reliance_restart(struct reliance *reliance, uint32_t owner, bool is_needed)
{
    struct owner *of = &reliance->owners[owner];
    for (uint32_t i = 0; i < of->count; i++)
        of->held[i].reclaim = is_needed ? RELIANCE_MUST_RECLAIM : RELIANCE_IS_RECLAIMED;
}

bool reliance_ask(struct reliance *reliance, uint32_t owner, struct reliance_range *ret)
{
    struct owner *of = &reliance->owners[owner];
    for (uint32_t i = 0; i < of->count; i++)
        if (of->held[i].reclaim == RELIANCE_MUST_RECLAIM) {
            of->held[i].reclaim = RELIANCE_IS_ASKED;
            *ret = of->held[i].range;
            return true;
        }
    return false;
}

void reliance_reclaimed(struct reliance *reliance, uint32_t owner,
                        const struct reliance_range *range)
{
    struct owner *of = &reliance->owners[owner];
    for (uint32_t i = 0; i < of->count; i++)
        if (is_meeting(&of->held[i].range, range))
            of->held[i].reclaim = RELIANCE_IS_RECLAIMED;
}

bool reliance_has(const struct reliance *reliance, uint32_t owner, enum reliance_reclaim reclaim)
{
    const struct owner *of = &reliance->owners[owner];
    for (uint32_t i = 0; i < of->count; i++)
        if (of->held[i].reclaim == reclaim)
            return true;
    return false;
}

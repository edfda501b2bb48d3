/*
 * dirty.c -- marks of changed slots; see dirty.h.
 *
 * Invariant: is_marked[slot] is 1 exactly for the slots in the list, each once.
 */
#include "core/dirty.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>

int dirty_init(struct dirty *dirty, const uint32_t slots_max[RECORD_KIND_END])
{
    *dirty = (struct dirty){0};
    for (uint32_t kind = 0; kind < RECORD_KIND_END; kind++) {
        struct dirty_slots *of = &dirty->of[kind];
        if (slots_max[kind] == 0)
            continue;
        of->max = slots_max[kind];
        of->slots = calloc(of->max, sizeof *of->slots);
        of->is_marked = calloc(of->max, sizeof *of->is_marked);
        if (of->slots == NULL || of->is_marked == NULL) {
            dirty_done(dirty);
            return -ENOMEM;
        }
    }
    return 0;
}

void dirty_done(struct dirty *dirty)
{
    for (uint32_t kind = 0; kind < RECORD_KIND_END; kind++) {
        free(dirty->of[kind].slots);
        free(dirty->of[kind].is_marked);
    }
    *dirty = (struct dirty){0};
}

static void mark(struct dirty *dirty, enum record_kind kind, uint32_t slot)
{
    struct dirty_slots *of = &dirty->of[kind];
    CHECK(slot < of->max);
    of->change_count++;
    if (of->is_marked[slot])
        return;
    of->is_marked[slot] = 1;
    of->slots[of->count++] = slot;
}

void dirty_put(struct dirty *dirty, enum record_kind kind, uint32_t slot)
{
    mark(dirty, kind, slot);
    dirty->put_count++;
}

void dirty_delete(struct dirty *dirty, enum record_kind kind, uint32_t slot)
{
    mark(dirty, kind, slot);
}

bool dirty_is_empty(const struct dirty *dirty)
{
    for (uint32_t kind = 0; kind < RECORD_KIND_END; kind++)
        if (dirty->of[kind].count > 0)
            return false;
    return true;
}

void dirty_clear(struct dirty *dirty)
{
    for (uint32_t kind = 0; kind < RECORD_KIND_END; kind++) {
        struct dirty_slots *of = &dirty->of[kind];
        for (uint32_t i = 0; i < of->count; i++)
            of->is_marked[of->slots[i]] = 0;
        of->count = 0;
        of->change_count = 0;
    }
    dirty->put_count = 0;
}

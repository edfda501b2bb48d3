/*
 * lock_ledger.c -- what an owner that locks and unlocks bytes may rely on; see lock_ledger.h.
 */
#include "lock_ledger.h"

#include <string.h>

static void apply(struct lock_ledger_cells *cells, const struct lock_ledger_operation *operation)
{
    for (uint32_t i = operation->first; i <= operation->last && i < LOCK_LEDGER_CELLS; i++)
        cells->mode[i] = (uint8_t)operation->mode;
}

void lock_ledger_begin(struct lock_ledger *ledger, const struct lock_ledger_operation *operation)
{
    ledger->is_pending = true;
    ledger->pending = *operation;
}

void lock_ledger_acknowledge(struct lock_ledger *ledger)
{
    apply(&ledger->known, &ledger->pending);
    ledger->is_pending = false;
}

void lock_ledger_find(struct lock_ledger_found *found, const struct lock_ledger_operation *lock)
{
    for (uint32_t i = lock->first; i <= lock->last && i < LOCK_LEDGER_CELLS; i++)
        found->is_overlapping |= found->cells.mode[i] != LOCK_LEDGER_FREE;
    apply(&found->cells, lock);
    found->record_count++;
}

static uint32_t count_runs(const struct lock_ledger_cells *cells)
{
    uint32_t count = 0, before = LOCK_LEDGER_FREE;
    for (uint32_t i = 0; i < LOCK_LEDGER_CELLS; i++) {
        count += cells->mode[i] != LOCK_LEDGER_FREE && cells->mode[i] != before;
        before = cells->mode[i];
    }
    return count;
}

static bool is_equal(const struct lock_ledger_cells *a, const struct lock_ledger_cells *b)
{
    return memcmp(a->mode, b->mode, sizeof(a->mode)) == 0;
}

const char *lock_ledger_judge(const struct lock_ledger *ledger,
                              const struct lock_ledger_found *found)
{
    struct lock_ledger_cells after = ledger->known;
    if (ledger->is_pending)
        apply(&after, &ledger->pending);
    if (found->is_overlapping)
        return "two stored locks overlap";
    if (found->record_count != count_runs(&found->cells))
        return "neighbours of one mode are not one record";
    if (is_equal(&found->cells, &ledger->known) || is_equal(&found->cells, &after))
        return NULL;
    for (uint32_t i = 0; i < LOCK_LEDGER_CELLS; i++) {
        uint8_t mode = found->cells.mode[i], known = ledger->known.mode[i];
        if (mode == known || mode == after.mode[i])
            continue;
        if (mode == LOCK_LEDGER_FREE)
            return "an acknowledged lock is lost";
        if (known == LOCK_LEDGER_FREE)
            return "a lock is stored that was unlocked, or never asked for";
        return "a lock is stored in another mode than acknowledged";
    }
    return "the operation in flight was applied in part";
}

void lock_ledger_adopt(struct lock_ledger *ledger, const struct lock_ledger_found *found)
{
    ledger->known = found->cells;
    ledger->is_pending = false;
}

bool lock_ledger_first(const struct lock_ledger_cells *cells, struct lock_ledger_operation *ret)
{
    uint32_t first = 0, last;
    while (first < LOCK_LEDGER_CELLS && cells->mode[first] == LOCK_LEDGER_FREE)
        first++;
    if (first == LOCK_LEDGER_CELLS)
        return false;
    for (last = first; last + 1 < LOCK_LEDGER_CELLS && cells->mode[last + 1] == cells->mode[first];)
        last++;
    *ret = (struct lock_ledger_operation){(enum lock_ledger_mode)cells->mode[first], first, last};
    return true;
}

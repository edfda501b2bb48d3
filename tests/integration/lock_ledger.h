/*
 * lock_ledger.h -- what an owner that locks and unlocks bytes may rely on.
 *
 * An owner has a few cells that nobody else touches, each free, locked shared or locked
 * exclusively, and one operation in flight at a time. What was acknowledged is certain; for the
 * operation in flight when the server dies both outcomes are right, whole, and nothing else is.
 */
#ifndef INTEGRATION_LOCK_LEDGER_H
#define INTEGRATION_LOCK_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#define LOCK_LEDGER_CELLS 32

enum lock_ledger_mode { LOCK_LEDGER_FREE, LOCK_LEDGER_SHARED, LOCK_LEDGER_EXCLUSIVE };

struct lock_ledger_cells {
    uint8_t mode[LOCK_LEDGER_CELLS];
};

/* Cells first to last, inclusive, are to have this mode. */
struct lock_ledger_operation {
    enum lock_ledger_mode mode; /* FREE: an UNLOCK */
    uint32_t first, last;
};

struct lock_ledger {
    struct lock_ledger_cells known;
    bool is_pending;
    struct lock_ledger_operation pending;
};

/* What a store holds of an owner. */
struct lock_ledger_found {
    struct lock_ledger_cells cells;
    uint32_t record_count;
    bool is_overlapping;
};

void lock_ledger_begin(struct lock_ledger *ledger, const struct lock_ledger_operation *operation);
void lock_ledger_acknowledge(struct lock_ledger *ledger);

/* One stored lock. */
void lock_ledger_find(struct lock_ledger_found *found, const struct lock_ledger_operation *lock);
/* NULL when that is right, or what is wrong. Neighbours of one mode are one record (R-RNG-3). */
const char *lock_ledger_judge(const struct lock_ledger *ledger,
                              const struct lock_ledger_found *found);
/* From here on *found is what the owner knows; nothing is in flight. */
void lock_ledger_adopt(struct lock_ledger *ledger, const struct lock_ledger_found *found);

/* The first run of cells of one mode that is not free; false: all are. */
bool lock_ledger_first(const struct lock_ledger_cells *cells, struct lock_ledger_operation *ret);

#endif

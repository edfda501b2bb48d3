/*
 * snapshot.c -- see snapshot.h.
 *
 *   kind, slot    0 ............. place ............................ end
 *                 | handed over    | to be read; but for `ahead`, where a batch came first
 *
 * Always true:
 *  (1) A slot before `place`, or in `ahead`, was handed over as it was at the beginning, or
 *      was empty then. Every other slot is still as it was, so that it does not matter which of
 *      the later commits a walk has seen.
 */
#include "store/snapshot.h"

#include "store/backend.h"
#include "store/slot_set.h"

#include <errno.h>
#include <stdlib.h>

struct snapshot {
    enum record_kind kind; /* the place: RECORD_KIND_END when everything was read */
    uint32_t slot;
    struct slot_set ahead; /* where a batch came first */
};

struct snapshot *snapshot_new(struct store *store, struct store_failure *ret_failure)
{
    if (store_fold(store, ret_failure) != 0)
        return NULL;
    struct snapshot *snapshot = calloc(1, sizeof *snapshot);
    if (snapshot == NULL)
        store_fail(ret_failure, STORE_EXIT_STORE, "out of memory");
    else
        snapshot->kind = RECORD_SERVER;
    return snapshot;
}

void snapshot_free(struct snapshot *snapshot)
{
    if (snapshot != NULL)
        slot_set_free(&snapshot->ahead);
    free(snapshot);
}

bool snapshot_is_over(const struct snapshot *snapshot)
{
    return snapshot->kind == RECORD_KIND_END;
}

static bool is_read(const struct snapshot *snapshot, enum record_kind kind, uint32_t slot)
{
    return kind < snapshot->kind || (kind == snapshot->kind && slot < snapshot->slot) ||
           slot_set_has(&snapshot->ahead, kind, slot);
}

/* ---- before a commit ---- */

int snapshot_keep(struct snapshot *snapshot, struct store *store, const struct store_batch *batch,
                  store_visit_fn visit, void *context, struct store_failure *ret_failure)
{
    struct record_change change;
    uint64_t at = 0;
    while (store_batch_next(batch, &at, &change)) {
        if (is_read(snapshot, change.kind, change.slot))
            continue;
        if (!slot_set_add(&snapshot->ahead, change.kind, change.slot)) {
            store_fail(ret_failure, STORE_EXIT_STORE, "out of memory");
            return -EIO;
        }
        struct store_slots slot = {change.kind, change.slot, change.slot + 1};
        int result = store_walk(store, slot, visit, context, ret_failure);
        if (result != 0)
            return result;
    }
    return 0;
}

/* ---- between commits ---- */

enum { ENOUGH = 1 }; /* ends a walk */

struct reading {
    struct snapshot *snapshot;
    uint32_t left;
    int result; /* of the visitor */
    store_visit_fn visit;
    void *context;
};

static int visit_next(void *context, enum record_kind kind, uint32_t slot, struct bytes value)
{
    struct reading *reading = context;
    struct snapshot *snapshot = reading->snapshot;
    snapshot->slot = slot;
    if (!is_read(snapshot, kind, slot))
        reading->result = reading->visit(reading->context, kind, slot, value);
    snapshot->slot = slot + 1;
    return --reading->left == 0 || reading->result != 0 ? ENOUGH : 0;
}

int snapshot_read(struct snapshot *snapshot, struct store *store, uint32_t count,
                  store_visit_fn visit, void *context, struct store_failure *ret_failure)
{
    struct reading reading = {snapshot, count, 0, visit, context};
    while (!snapshot_is_over(snapshot)) {
        struct store_slots rest = {snapshot->kind, snapshot->slot, UINT32_MAX};
        int result = store_walk(store, rest, visit_next, &reading, ret_failure);
        if (result != 0)
            return result < 0 ? result : reading.result;
        slot_set_drop(&snapshot->ahead, snapshot->kind);
        snapshot->kind++;
        snapshot->slot = 0;
    }
    return 0;
}

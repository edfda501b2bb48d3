/*
 * snapshot.c -- see snapshot.h.
 *
 *   kind, slot    0 ............. place ............................ end
 *                 | handed over    | to be read; a bit is set where a batch came first
 *
 * Always true:
 *  (1) A slot before `place`, or with its bit set, was handed over as it was at the beginning, or
 *      was empty then. Every other slot is still as it was.
 */
#include "store/snapshot.h"

#include "store/backend.h"

#include <errno.h>
#include <stdlib.h>

struct bits {
    uint64_t *words;
    uint32_t word_count;
};

struct snapshot {
    enum record_kind kind; /* the place: RECORD_KIND_END when everything was read */
    uint32_t slot;
    struct bits ahead[RECORD_KIND_END]; /* set where a batch came first */
};

struct snapshot *snapshot_new(void)
{
    struct snapshot *snapshot = calloc(1, sizeof *snapshot);
    if (snapshot != NULL)
        snapshot->kind = RECORD_SERVER;
    return snapshot;
}

void snapshot_free(struct snapshot *snapshot)
{
    for (int kind = 0; snapshot != NULL && kind < RECORD_KIND_END; kind++)
        free(snapshot->ahead[kind].words);
    free(snapshot);
}

bool snapshot_is_over(const struct snapshot *snapshot)
{
    return snapshot->kind == RECORD_KIND_END;
}

/* ---- bits ---- */

static bool has_bit(const struct bits *bits, uint32_t slot)
{
    return slot / 64 < bits->word_count && (bits->words[slot / 64] >> slot % 64 & 1) != 0;
}

static bool set_bit(struct bits *bits, uint32_t slot)
{
    if (slot / 64 >= bits->word_count) {
        uint32_t count = slot / 64 + 1 + bits->word_count; /* at least doubled */
        uint64_t *words = realloc(bits->words, count * sizeof *words);
        if (words == NULL)
            return false;
        memset(words + bits->word_count, 0, (count - bits->word_count) * sizeof *words);
        bits->words = words;
        bits->word_count = count;
    }
    bits->words[slot / 64] |= UINT64_C(1) << slot % 64;
    return true;
}

static bool is_read(const struct snapshot *snapshot, enum record_kind kind, uint32_t slot)
{
    return kind < snapshot->kind || (kind == snapshot->kind && slot < snapshot->slot) ||
           has_bit(&snapshot->ahead[kind], slot);
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
        if (!set_bit(&snapshot->ahead[change.kind], change.slot)) {
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
        free(snapshot->ahead[snapshot->kind].words);
        snapshot->ahead[snapshot->kind] = (struct bits){0};
        snapshot->kind++;
        snapshot->slot = 0;
    }
    return 0;
}

/*
 * fold.c -- see fold.h.
 *
 * Changes are read from the last to the first. One counts if its record is still in the set, and
 * takes it out: older ones of the same record are passed over.
 */
#include "store/fold.h"

#include "base/check.h"
#include "base/minmax.h"

#include <stdlib.h>

bool fold_add(struct fold *fold, const struct store_batch *batch)
{
    struct record_change change;
    uint64_t at = 0;
    while (store_batch_next(batch, &at, &change)) {
        if (!slot_set_add(&fold->changed, change.kind, change.slot))
            return false;
        fold->put_count += !change.deleted;
        fold->value_len_max = max_u32(fold->value_len_max, change.value.len);
    }
    return true;
}

uint32_t fold_puts_max(const struct fold *fold)
{
    return (uint32_t)min_u64(fold->put_count, fold->changed.count);
}

/* `places` has room for all of them: a batch can only be walked forward. */
static void take_batch(struct fold *fold, const struct store_batch *batch, uint64_t *places,
                       struct fold_list *list)
{
    struct record_change change;
    uint32_t count = 0;
    for (uint64_t at = 0; places[count] = at, store_batch_next(batch, &at, &change);)
        count++;
    while (count-- > 0) {
        CHECK(store_batch_next(batch, &places[count], &change));
        if (slot_set_take(&fold->changed, change.kind, change.slot))
            list->changes[list->count++] = change;
    }
}

static uint32_t longest(const struct journal *journal, const struct store_batch *last)
{
    uint32_t count = last != NULL ? last->count : 0;
    for (uint32_t i = 0; i < journal->frame_count; i++)
        count = max_u32(count, journal_get(journal, i).count);
    return count;
}

static int compare(const void *left, const void *right)
{
    const struct record_change *a = left, *b = right;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return a->slot < b->slot ? -1 : a->slot > b->slot;
}

bool fold_take(struct fold *fold, const struct journal *journal, const struct store_batch *last,
               struct fold_list *ret)
{
    struct fold_list list = {0};
    uint64_t *places = calloc((size_t)longest(journal, last) + 1, sizeof *places);
    list.changes = calloc((size_t)fold->changed.count + 1, sizeof *list.changes);
    if (places == NULL || list.changes == NULL) {
        free(places);
        free(list.changes);
        return false;
    }
    if (last != NULL)
        take_batch(fold, last, places, &list);
    for (uint32_t i = journal->frame_count; i-- > 0;) {
        struct store_batch batch = journal_get(journal, i);
        take_batch(fold, &batch, places, &list);
    }
    free(places);
    CHECK(fold->changed.count == 0);
    fold->put_count = 0;
    fold->value_len_max = 0;
    qsort(list.changes, list.count, sizeof *list.changes, compare);
    *ret = list;
    return true;
}

void fold_list_free(struct fold_list *list)
{
    free(list->changes);
    *list = (struct fold_list){0};
}

void fold_free(struct fold *fold)
{
    slot_set_free(&fold->changed);
}

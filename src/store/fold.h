/*
 * fold.h -- what the batches of a journal come to: of each record they change, the last change.
 *
 * A lock that was taken and given up a hundred times since the tables had it is one change, or
 * none that matters; so bringing the tables up to date costs as much as what is different in the
 * end, and happens once for many batches.
 */
#ifndef STORE_FOLD_H
#define STORE_FOLD_H

#include "store/journal.h"
#include "store/slot_set.h"

/* Zeroed: nothing is different. */
struct fold {
    struct slot_set changed; /* which records may be other than in the tables */
    uint64_t put_count;      /* changes that were not removals, the same record's counted again */
    uint32_t value_len_max;  /* the longest of their values */
};

/* Adds the records of a batch. False: no memory. */
__attribute__((warn_unused_result)) bool fold_add(struct fold *fold,
                                                  const struct store_batch *batch);
/* The most records that the tables may have to put. */
uint32_t fold_puts_max(const struct fold *fold);

/* Changes by kind and slot, each record once. */
struct fold_list {
    struct record_change *changes; /* owned; the values are the journal's, or the batch's */
    uint32_t count;
};

/* The last changes of everything that was added, which were those of the journal and then of
 * `last`, if that is not NULL. Nothing is different then. False: no memory, and nothing changed. */
__attribute__((warn_unused_result)) bool fold_take(struct fold *fold, const struct journal *journal,
                                                   const struct store_batch *last,
                                                   struct fold_list *ret);
void fold_list_free(struct fold_list *list);
void fold_free(struct fold *fold);

#endif

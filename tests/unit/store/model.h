/*
 * model.h -- what a store must contain, kept beside it, and the batches that bring it there.
 *
 * A record is reduced to its version: the number of the batch that wrote it, from which every byte
 * of it follows. So a whole store is a few arrays of numbers, and two histories with the same batch
 * numbers are the same history, in another process too.
 */
#ifndef TESTS_STORE_MODEL_H
#define TESTS_STORE_MODEL_H

#include "store/store.h"

struct model {
    uint64_t txn;                        /* of the last batch */
    uint32_t slot_max;                   /* slots per kind */
    uint64_t *versions[RECORD_KIND_END]; /* by slot; 0: no record */
    struct store_batch batch;            /* the last one made */
    struct batch_writer writer;
};

void model_init(struct model *model, uint32_t slot_max);
void model_done(struct model *model);

/* A batch by hand: begin, any changes, end. The server record is added by model_end. */
void model_begin(struct model *model);
void model_put(struct model *model, enum record_kind kind, uint32_t slot);
void model_delete(struct model *model, enum record_kind kind, uint32_t slot);
const struct store_batch *model_end(struct model *model, bool must_sync);

/* The next batch of the one history that everybody knows: puts and deletes, 1 to 400 of them. */
const struct store_batch *model_next(struct model *model);

/* Commits a batch and fails the test if that fails. */
void model_commit(const struct store_batch *batch, struct store *store);

/*
 * Loads the store and compares: exactly these records, each byte as written, the server first,
 * kinds and slots ascending. NULL, or what is wrong.
 */
const char *model_compare(const struct model *model, struct store *store);

/* The number in the store's server record, 0 when there is none. */
uint64_t model_stored_txn(struct store *store);

#endif

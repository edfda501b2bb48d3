/*
 * lmdb_place.h -- up to where the tables of a data file have what the journal has (journal.h).
 *
 * It is in a table of its own, and changes in the same commit as the records that it speaks of. A
 * version that knows no journal does not know this table either, and refuses the store.
 */
#ifndef STORE_LMDB_PLACE_H
#define STORE_LMDB_PLACE_H

#include "store/lmdb_env.h"

/* Zeroed: of a data file that never had a journal. */
struct lmdb_place {
    uint64_t id;          /* of the run: frames with another one are older */
    uint64_t number;      /* the tables have this frame, and all before it */
    uint64_t journal_len; /* of the file; 0: no frame is needed, because the store was closed */
};

/* LMDB's code; MDB_VERSION_MISMATCH: a newer holdfast wrote it. */
__attribute__((warn_unused_result)) int lmdb_place_get(const struct lmdb_env *env,
                                                       struct lmdb_place *ret);
__attribute__((warn_unused_result)) int lmdb_place_put(const struct lmdb_env *env, MDB_txn *txn,
                                                       const struct lmdb_place *place);

#endif

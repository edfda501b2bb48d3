/*
 * snapshot.h -- every record of a store as of one batch, read in pieces while others are committed.
 *
 * It begins between two commits, and is the state there. Who commits tells it first: what a
 * batch is about to change, and was not read yet, is handed over before it changes. So the store
 * keeps nothing for it: no old pages, no space on the disk, and one bit for each slot in memory.
 *
 * The thread that commits does all of this. Only for a store that store_can_walk.
 */
#ifndef STORE_SNAPSHOT_H
#define STORE_SNAPSHOT_H

#include "store/store.h"

struct snapshot;

/* The state after the last commit. NULL with *ret_failure filled: none can be made. */
struct snapshot *snapshot_new(struct store *store, struct store_failure *ret_failure);
/* NULL is legal. */
void snapshot_free(struct snapshot *snapshot);

/* Before a batch is committed: visits what must be read before. 0, or -EIO with *ret_failure
 * filled: the snapshot is worth nothing any more. So it is when the visitor returns anything but 0,
 * which must be positive, ends this, and is returned. */
__attribute__((warn_unused_result)) int
snapshot_keep(struct snapshot *snapshot, struct store *store, const struct store_batch *batch,
              store_visit_fn visit, void *context, struct store_failure *ret_failure);

/* Looks at about `count` more records, the server record first, and visits those that were not
 * handed over before. 0, or -EIO or what the visitor returned likewise. */
__attribute__((warn_unused_result)) int snapshot_read(struct snapshot *snapshot,
                                                      struct store *store, uint32_t count,
                                                      store_visit_fn visit, void *context,
                                                      struct store_failure *ret_failure);

/* Every record of it was handed over. */
bool snapshot_is_over(const struct snapshot *snapshot);

#endif

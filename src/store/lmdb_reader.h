/*
 * lmdb_reader.h -- an embedded store opened read-only.
 *
 * Nothing in the directory changes: no file, owner, mode or time of change, also when the machine
 * has stopped in an unsynced run and a server would have to replace data.mdb before it can use it.
 */
#ifndef STORE_LMDB_READER_H
#define STORE_LMDB_READER_H

#include "store/lmdb_env.h"

/* 0 with *ret open, its tables found and the summary's note and loss said; or -EIO with
 * *ret_failure filled. */
__attribute__((warn_unused_result)) int lmdb_reader_open(struct lmdb_env *ret,
                                                         const struct directory *directory,
                                                         struct store_summary *summary,
                                                         struct store_failure *ret_failure);

#endif

/*
 * salvage.h -- reading a data file that may be torn, without being taken down by it.
 *
 * LMDB trusts its file. After a power loss in an unsynced run a page may be an older version of
 * itself, or zeros: reading it may crash the process, and writing to such a store may overwrite
 * pages that are in use. So the whole store is read by a child process, which copies every record
 * into a new file; the old one is never written again.
 */
#ifndef STORE_SALVAGE_H
#define STORE_SALVAGE_H

#include "store/lmdb_env.h"

enum salvage_result {
    SALVAGE_COPIED,  /* all of it could be read: data.mdb now is the copy */
    SALVAGE_DAMAGED, /* it could not be read; data.mdb is as it was */
    SALVAGE_FOREIGN, /* it has tables that this version does not know; data.mdb is as it was */
    SALVAGE_FAILED,  /* no copy could be made, which says nothing about data.mdb */
};

/* Blocks until done. With SALVAGE_FAILED *ret_failure is filled. */
enum salvage_result salvage_run(const struct directory *directory,
                                struct store_failure *ret_failure);

/*
 * For a reader: copies likewise, but to a file without a name in $TMPDIR, /var/tmp or /tmp, and
 * opens that in *ret with SALVAGE_COPIED. The store's directory is left as it is.
 */
enum salvage_result salvage_look(const struct directory *directory, struct lmdb_env *ret,
                                 struct store_failure *ret_failure);

/* Moves data.mdb to data.mdb.damaged-N, the first N that is free. 0 with the name, or negative
 * errno. */
__attribute__((warn_unused_result)) int salvage_set_aside(const struct directory *directory,
                                                          char ret_name[static 32]);

#endif

/*
 * directory.h -- the directory of an embedded store: made if missing, and owned by one process.
 *
 * The `lock` file in it keeps a second process out (R-PER-7) and carries the pid of the owner for
 * the message that the second one prints. The lock is tied to the open file, so it ends with the
 * process however that ends, and a second open by the same process is refused as well. data.mdb is
 * locked itself, too, for the day on which somebody removes `lock` (lmdb_env.c).
 *
 * A reader changes nothing: it makes no directory and no file, and shares the lock with other
 * readers. Where there is no lock file (a copy of data.mdb alone) it has none, and looks afterwards
 * whether one has appeared.
 *
 * The directory says whose store it is: what root makes in another user's directory is that user's,
 * or a server with --user could not open it afterwards.
 */
#ifndef STORE_DIRECTORY_H
#define STORE_DIRECTORY_H

#include "store/store.h"

struct directory {
    char *path;  /* as the operator wrote it; owned */
    int fd;      /* -1 when not open */
    int lock_fd; /* -1 when not locked */
    bool is_reader;
};

/* 0, or -EIO with *ret_failure filled and nothing held. The parent directory must exist. */
__attribute__((warn_unused_result)) int
directory_open(struct directory *directory, const char *path, struct store_failure *ret_failure);
/* The same for a reader. The directory must exist. */
__attribute__((warn_unused_result)) int directory_open_reader(struct directory *directory,
                                                              const char *path,
                                                              struct store_failure *ret_failure);
/* For a reader: could another process have written since it was opened? */
bool directory_is_shared(const struct directory *directory);
/* Also of a directory whose opening failed. */
void directory_close(struct directory *directory);

/* Makes the names in it durable. 0 or negative errno. */
__attribute__((warn_unused_result)) int directory_sync(const struct directory *directory);

/* A file that we have just made becomes the directory owner's, if we are root and may do that. */
void directory_adopt(const struct directory *directory, const char *name);

/* Renames durably, replacing `to`. 0 or negative errno. */
__attribute__((warn_unused_result)) int directory_rename(const struct directory *directory,
                                                         const char *from, const char *to);

/* "store lmdb:DIR: WHAT: CAUSE; NEXT STEP", where `code` is an errno or an LMDB code. */
void directory_fail(const struct directory *directory, const char *what, int code,
                    struct store_failure *ret_failure);

#endif

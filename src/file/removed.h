/*
 * removed.h -- files that were found to be gone, for those who have locks on them (F-LOCK).
 *
 * Who finds an open file without a name, or takes the last one away, says so here, on any thread.
 * A handle that only leads nowhere proves nothing: its file system may not be mounted. What does
 * not fit is forgotten: the next call about that file finds it gone once more.
 */
#ifndef FILE_REMOVED_H
#define FILE_REMOVED_H

#include "codec/nfs_xdr.h"

#include <pthread.h>
#include <stdbool.h>

enum { REMOVED_MAX = 4096 };

struct removed {
    pthread_mutex_t mutex;
    struct nfs_fh at[REMOVED_MAX]; /* a ring, oldest first */
    uint32_t first, count;
};

void removed_init(struct removed *removed);
void removed_done(struct removed *removed);

/* False: it is there already, or there is no room. */
bool removed_add(struct removed *removed, const struct nfs_fh *fh);
/* The oldest, which goes; false: none. */
bool removed_take(struct removed *removed, struct nfs_fh *ret);

#endif

/*
 * local.h -- how the core reaches the locks of programs on this machine.
 *
 * Where the server serves the files as well, programs on its machine lock them too, with fcntl. The
 * core knows no files, so somebody who does keeps, for each file that has something on it, the
 * bytes that NFS clients hold as locks of the kernel's own: there the two kinds meet (mirror.h).
 *
 * None of these functions waits for a disk or for anybody, but `open` before anybody is served.
 */
#ifndef CORE_LOCAL_H
#define CORE_LOCAL_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stdint.h>

enum local_mode { LOCAL_NONE, LOCAL_SHARED, LOCAL_EXCLUSIVE };

struct local_range {
    uint64_t start, end; /* inclusive; end UINT64_MAX: to the end of the file */
    enum local_mode mode;
};

/* A program in the way: one of its locks. */
struct local_holder {
    struct local_range range;
    uint32_t pid; /* 0: not known */
};

#define LOCAL_NO_FILE UINT32_MAX       /* no program can lock it, as far as we can see */
#define LOCAL_NO_ROOM (UINT32_MAX - 1) /* as many files as there may be have locks on them */
#define LOCAL_NOT_NOW (UINT32_MAX - 2) /* it cannot be opened now: ask again */

struct local_locks {
    /* The file of this handle, until it is closed; one of the three: not that. */
    uint32_t (*open)(void *context, struct bytes fh);
    /* Nothing of it is held any more. */
    void (*close)(void *context, uint32_t file);
    /* From now on these bytes are held in this mode, or in a stronger one. False: a program is in
     * the way, and nothing changed. */
    bool (*raise)(void *context, uint32_t file, const struct local_range *range);
    /* From now on these bytes are held in this mode, or in a weaker one. False: the file is held as
     * a whole, because its pieces are too many, and stays so. */
    bool (*lower)(void *context, uint32_t file, const struct local_range *range);
    /* If it is held as a whole: its pieces are few again, and all of it is lowered after this. */
    void (*refine)(void *context, uint32_t file);
    /* A program that is in the way of these bytes; false: none is. */
    bool (*find)(void *context, struct bytes fh, const struct local_range *range,
                 struct local_holder *ret);
    void *context;
};

#endif

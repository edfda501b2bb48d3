/*
 * descriptor.h -- open files, by handle: a bounded cache.
 *
 * An entry stands for one file. It has a descriptor that only names the file (O_PATH) and, once
 * data was read or written, one for that. Entries that nobody uses stay until others need their
 * place, least recently used first, so that most calls open nothing; but only for seconds, because
 * other programs notice them: a file that is open for writing cannot be executed, and one that was
 * removed keeps its space.
 *
 * Everything here may be called from any thread; nothing here waits for a disk but
 * descriptor_sweep, _trim, _close_over and _make_room, which close.
 */
#ifndef FILE_DESCRIPTOR_H
#define FILE_DESCRIPTOR_H

#include "base/list.h"
#include "file/export_table.h"
#include "file/handle.h"
#include "file/keeper.h"
#include "file/lane.h"
#include "file/system.h"

#include <pthread.h>

struct descriptor_cache;

/* What the kernel said about a caller and a file, and when that is no longer true. */
struct descriptor_access {
    uint64_t mark; /* of the identity */
    struct timespec ctime;
    uint32_t known, granted; /* bits of R_OK, W_OK, X_OK */
};

struct descriptor {
    uint32_t export_id;
    dev_t device; /* another file system may be mounted there at a reload: its files are others */
    struct lane *lane; /* kept */
    struct handle_object object;
    int path_fd;          /* as long as the entry lives */
    atomic_int read_fd;   /* -1, or open for reading; once open it stays */
    atomic_int write_fd;  /* -1, or open for both */
    atomic_int lock_fd;   /* -1, or open for nothing but its locks (ofd.h) */
    bool had_locks;       /* the same: of an earlier server, with what that had locked */
    uint64_t kept_id;     /* of lock_fd, at the keeper; 0: it has none */
    atomic_bool is_dirty; /* written since the last sync began */
    atomic_uint written;  /* when write_fd was last asked for */

    pthread_mutex_t mutex; /* one change of this file at a time: attributes before and after */

    pthread_mutex_t access_mutex; /* never held over a system call */
    struct descriptor_access access;

    /* The syncer's, under its mutex. */
    struct list sync_link, sync_waiters;
    bool is_sync_queued, is_sync_running, needs_metadata;
    int sync_root_fd;

    /* The cache's, under its mutex. */
    struct list link;        /* unused ones by age; or those to be closed */
    struct list writer_link; /* those that are cached and have a write_fd */
    struct descriptor *next;
    uint32_t pins;            /* of its users: those who have locks on it */
    uint32_t users, released; /* the second: when it had its last user */
    bool is_cached;
};

/* What the cache has done for it. */
struct descriptor_owner {
    /* What was written cannot be synced: on a thread that closes. */
    void (*failed)(void *context);
    /* A lane has files to close: its `closing` is to be queued, and descriptor_close_lane follows.
     * Under the cache's mutex. */
    void (*close)(void *context, struct lane *lane);
    void *context;
};

struct descriptor_cache *descriptor_cache_new(uint32_t files_max, uint64_t seed,
                                              const struct file_system *system,
                                              const struct descriptor_owner *owner);
/* Everything is released already. Syncs what is dirty. */
void descriptor_cache_free(struct descriptor_cache *cache);

/* The entry of a file, with one more user; NULL: not there. */
struct descriptor *descriptor_find(struct descriptor_cache *cache, const struct export *export,
                                   const struct handle_object *object);
/* Takes over path_fd, or closes it if the file is there already. NULL: out of memory. */
struct descriptor *descriptor_add(struct descriptor_cache *cache, const struct export *export,
                                  const struct handle_object *object, int path_fd);
void descriptor_keep(struct descriptor_cache *cache, struct descriptor *descriptor);
void descriptor_release(struct descriptor_cache *cache, struct descriptor *descriptor);

/* Not found any more: the file is gone, or its descriptors are not to be trusted. */
void descriptor_forget(struct descriptor_cache *cache, struct descriptor *descriptor);
/* The same for every file of exports that a table does not have, or has on another device. */
void descriptor_forget_others(struct descriptor_cache *cache, const struct export_table *table);

/* A descriptor for data; opened as the thread's own identity, which the caller has assumed. A
 * directory or a regular file only: nothing else is ever opened. -errno. */
int descriptor_for_reading(struct descriptor_cache *cache, struct descriptor *descriptor);
int descriptor_for_writing(struct descriptor_cache *cache, struct descriptor *descriptor);
/* The one that there is already, or -1. */
int descriptor_open_for_reading(const struct descriptor *descriptor);

/* The same for locks; a regular file only, for both if that is possible. */
int descriptor_for_locks(struct descriptor_cache *cache, struct descriptor *descriptor);
/* Is it what descriptor_find finds? */
bool descriptor_is_cached(struct descriptor_cache *cache, const struct descriptor *descriptor);
/* Locks outlive this process there; NULL: nowhere. */
void descriptor_cache_set_keeper(struct descriptor_cache *cache, struct keeper *keeper);
/* It has locks on it, as long as it is used for them: it does not count as one too many. */
void descriptor_pin(struct descriptor_cache *cache, struct descriptor *descriptor);
void descriptor_unpin(struct descriptor_cache *cache, struct descriptor *descriptor);

/* What is known of this caller's access: known bits of `asked`, those granted in *ret_granted. */
uint32_t descriptor_get_access(struct descriptor *descriptor, uint64_t mark,
                               const struct timespec *ctime, uint32_t *ret_granted);
void descriptor_set_access(struct descriptor *descriptor, uint64_t mark,
                           const struct timespec *ctime, uint32_t known, uint32_t granted);

/* Closes what is over in a lane. What is over in others is theirs: closing may mean waiting. */
void descriptor_sweep(struct descriptor_cache *cache, struct lane *lane);
/* The same, after the oldest are over if there are too many: for threads of the pool. */
void descriptor_trim(struct descriptor_cache *cache, struct lane *lane);
/* The same for who may not wait: the least recently used of too many are over only then, and
 * closed by the next sweep. */
void descriptor_close_over(struct descriptor_cache *cache, struct lane *lane);
/* If the process can open nothing more: closes files that nobody uses. True: some were closed. */
bool descriptor_make_room(struct descriptor_cache *cache, struct lane *lane);

/* One more tick of its clock: what was not used for so many is over, and what was not written, if
 * it is open for writing. */
struct descriptor_ages {
    uint32_t unused, unwritten;
};
void descriptor_tick(struct descriptor_cache *cache, const struct descriptor_ages *max);
/* The closing of a lane has been taken from its queue. */
void descriptor_close_lane(struct descriptor_cache *cache, struct lane *lane);

/* Descriptors that are open now. */
uint32_t descriptor_count(const struct descriptor_cache *cache);
/* Files of one export. */
uint32_t descriptor_count_of(struct descriptor_cache *cache, uint32_t export_id);

#endif

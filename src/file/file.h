/*
 * file.h -- the file service: NFS version 3 and MOUNT over a pool of threads.
 *
 * It executes calls that the RPC server hands over a desk (proto/job.h), on exported directories
 * of this machine. What cannot block is done at once; the rest goes to threads of its own, and
 * comes back through the desk. Nothing here knows a socket, the core or the store.
 *
 * All functions but file_prepare belong to the server's thread.
 */
#ifndef FILE_FILE_H
#define FILE_FILE_H

#include "base/mac.h"
#include "core/local.h"
#include "file/export_line.h"
#include "file/paths.h"
#include "proto/guard.h"
#include "proto/job.h"

struct export_table;
struct keeper;
struct file_service;
struct file_system;
struct intent_ring;

struct file_limits {
    uint32_t threads;      /* of the pool */
    uint32_t files_max;    /* descriptors that are kept open */
    uint32_t pipes_max;    /* two descriptors each; 0: all data is copied */
    uint32_t calls_max;    /* in flight in all; more are answered JUKEBOX */
    uint64_t bytes_max;    /* the same of their memory */
    uint32_t mirrored_max; /* files with locks that programs see; 0: they see none */
    uint32_t tick_ms;      /* 0: as usual. How often it looks for idle files: for tests */
};

struct file_options {
    struct file_limits limits;
    struct mac_key key;          /* of handles: the same at every start */
    uint64_t epoch;              /* one more at every start, unless the store went back */
    uint32_t chance;             /* another one at every start, most likely */
    uint64_t seed;               /* of hash tables */
    bool groups_of_server;       /* groups are looked up here by uid, and the wire's are ignored */
    struct intent_ring *intents; /* borrowed; NULL: what is repeated after a restart is executed */
    struct keeper *keeper;       /* where locks outlive this process; borrowed; NULL: nowhere */
    const struct file_system *system; /* NULL: the kernel's */
    void (*wake)(void *context);      /* runs on other threads: there is something to collect */
    void *context;
};

/* NULL with a sentence in *ret_why: an export that cannot be served, no memory, no threads. */
struct file_service *file_new(const struct file_options *options, const struct export_line *lines,
                              uint32_t count, struct text *ret_why);
/* Every job that next returned was released; waits for those in flight. */
void file_free(struct file_service *service);

const struct job_desk *file_desk(struct file_service *service);

/*
 * Other exports, in two parts. The first opens directories and resolves names, which may take long:
 * it may run on any thread, and NULL says why it cannot be done. The second has them served from
 * now on; or they are dropped.
 */
struct export_table *file_prepare(const struct file_service *service,
                                  const struct export_line *lines, uint32_t count,
                                  struct text *ret_why);
void file_take(struct file_service *service, struct export_table *exports);
void file_drop(struct export_table *exports);
/* Those that are served. */
const struct export_table *file_exports(const struct file_service *service);

/* May this caller lock this file? GUARD_LATER: `wake` follows, and after LOCK_GUARD_PATIENCE_S it
 * is GUARD_STUCK. */
enum guard_verdict file_judge_lock(struct file_service *service,
                                   const struct guard_question *question);

/* The locks of programs on this machine; NULL: they are not looked at. While the server starts,
 * files are opened on the spot, until file_serve_locks. */
const struct local_locks *file_local_locks(struct file_service *service);
void file_serve_locks(struct file_service *service);
/* Files are opened on the spot once more, until the next file_serve_locks. */
void file_open_locks(struct file_service *service);
/* A file that was found to be gone; false: none was. `wake` comes before each. */
bool file_next_removed(struct file_service *service, struct nfs_fh *ret);

/* For operators. */
struct file_status {
    uint32_t exports, open_files, mounts;
    uint32_t mirrored;            /* files with locks that programs see */
    uint32_t calls, queued;       /* in flight, and of these without a thread yet */
    uint64_t bytes;               /* of memory for calls in flight */
    uint32_t open_max, calls_max; /* as in the limits */
    uint64_t bytes_max;
    uint64_t refused;           /* calls answered JUKEBOX */
    uint64_t sync_errors;       /* each changed the verifier */
    uint64_t sync_error_age_ns; /* since the last of them; 0: there was none */
    uint64_t repeats;           /* of what an earlier run had executed, answered without that */
};
void file_get_status(struct file_service *service, struct file_status *ret);

struct file_export_view {
    const char *directory;
    uint32_t fsid, open_files, mounts;
    uint32_t client_count;
    bool is_stuck; /* its file system does not answer */
};
/* The exports in their order; false: there are no more. */
bool file_get_export(struct file_service *service, uint32_t index, struct file_export_view *ret);
/* One client of it, as it was written, and its rights. */
bool file_get_client(struct file_service *service, uint32_t index, uint32_t client,
                     const char **ret_name, const struct export_rights **ret_rights);

/* The fsid of the export that a handle of ours is of; false: not one of ours. */
bool file_get_export_id(const struct file_service *service, struct bytes fh, uint32_t *ret);

/* What the file of a handle is called now; see paths.h. PATH_LATER: `wake` follows, or nothing does
 * for a second, and then it is PATH_UNKNOWN. The name lives until the next call. */
enum path_state file_get_path(struct file_service *service, struct bytes fh, struct bytes *ret);

#endif

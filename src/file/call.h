/*
 * call.h -- one call on its way through the file service, and the insides of the service that its
 * parts share. For src/file only.
 *
 *   submitted -> (groups) -> queued -> executed -> (syncs) -> finished -> released
 *
 * A call belongs to one thread at a time: to the server's until it is queued, to a thread of the
 * pool while it is executed, to the syncer's while it waits, and to the server's again.
 */
#ifndef FILE_CALL_H
#define FILE_CALL_H

#include "codec/mount_xdr.h"
#include "codec/nfs_args.h"
#include "codec/nfs_results.h"
#include "file/descriptor.h"
#include "file/file.h"
#include "file/identity.h"
#include "file/intent.h"
#include "file/pipes.h"
#include "file/system.h"
#include "proto/job.h"

#include <sys/stat.h>

enum { CALL_SYNCS_MAX = 3, CALL_OBJECTS_MAX = 4, CALL_NAME_MAX = 255 };

struct call {
    struct job job; /* first: what the RPC server sees of it */
    struct file_service *service;
    struct list link; /* in a queue, or among the finished */
    uint32_t program, procedure, xid;
    struct address from;
    uint16_t port;
    struct rpc_credential credential; /* without the machine's name */

    struct nfs_args args; /* views into `memory` or `record` once the call is queued */
    struct bytes path;    /* of MOUNT */
    struct bytes body;    /* all of its arguments, as they came */
    struct nfs_result result;

    struct export_table *exports; /* kept */
    struct lane *lane;            /* NULL: it was never queued */
    const struct export *export;  /* of the first handle */
    const struct export_rights *rights;
    struct identity identity;
    bool has_identity;

    struct descriptor *objects[CALL_OBJECTS_MAX]; /* used until the call is finished */
    uint32_t object_count;

    /* What must be on disk before the answer leaves. */
    struct call_sync {
        struct call *call;
        struct list link;
        struct descriptor *descriptor;
        bool with_metadata;
    } syncs[CALL_SYNCS_MAX];
    uint32_t errors_before;          /* of syncs, when its data was written */
    uint32_t sync_count, syncs_left; /* the second under the syncer's mutex */
    int sync_error;                  /* the same */

    /* once.c's. */
    struct call_once {
        bool is_looked_for;
        const struct intent *before; /* of an earlier run: this is a repeat */
        struct intent intent;        /* its own, once it was looked for */
        uint64_t number;             /* of that; 0: none is begun */
    } once;

    uint8_t *memory;   /* reply first: headroom, head, payload; then a copy of the arguments */
    struct pipe *pipe; /* what the first job.pipe.len bytes of the payload lie in, or the last bytes
                          of the arguments (inlet.h); NULL: none */
    struct job_memory record; /* which the arguments lie in instead; at NULL: they do not */
    uint32_t memory_len;      /* of both */
    uint32_t payload_max, size_class;
};

/* Where the payload of a reply stands, or what of it is in no pipe. */
static inline uint8_t *call_payload(const struct call *call)
{
    return call->memory + JOB_HEADROOM + NFS_HEAD_MAX;
}

static inline struct nfs_result *call_fail(struct call *call, enum nfs_stat stat)
{
    call->result.stat = stat;
    return &call->result;
}

/* The status that says what an errno says. */
enum nfs_stat call_stat_of(int err);

/* Adds something to be synced before the answer leaves; only on exports with `sync` unless the
 * caller asked for it itself. */
void call_must_sync(struct call *call, struct descriptor *descriptor, bool with_metadata);

/* ---- resolve.c ---- */

/* Which export, may this client use it, and as whom. Nothing here blocks. */
enum nfs_stat resolve_export(struct call *call, struct bytes fh, struct handle_object *ret);
/* The object of a handle, used until the call ends. NULL: the result has the status. Leaves the
 * thread as the caller's identity. */
struct descriptor *resolve_first(struct call *call, struct bytes fh);
/* The same of the second handle of a call: of the same export, or XDEV. */
struct descriptor *resolve_other(struct call *call, struct bytes fh);
/* Its attributes as of now. False: it is gone, and the result says so. */
bool resolve_look(struct call *call, struct descriptor *descriptor, struct stat *ret);
/* The first of these, and its attributes. */
struct descriptor *resolve_handle(struct call *call, struct bytes fh, struct stat *ret);
/* The same, if it is open already. NULL: somebody else must do it; the result has no status. */
struct descriptor *resolve_cached(struct call *call, struct bytes fh, struct stat *ret);
/* The object of a handle, open for locks of anybody; NULL: it cannot be had. */
struct descriptor *resolve_for_locks(struct call *call, struct bytes fh);
/* A name that may be looked up. */
enum nfs_stat resolve_name(struct bytes name, char ret[CALL_NAME_MAX + 1]);
/* The object of a descriptor that was just opened, which this takes over, with its handle. */
struct descriptor *resolve_new(struct call *call, int path_fd, struct nfs_fh *ret_fh,
                               struct stat *ret);
/* An object by the kernel's handle, of the call's export. NULL: the result has the status. */
struct descriptor *resolve_object(struct call *call, const struct handle_object *object);
/* An object that is open already, and its handle. NULL: it is not; the result has no status. */
struct descriptor *resolve_open(struct call *call, const struct handle_object *object,
                                struct nfs_fh *ret_fh);
/* Opens a name in a directory without following it anywhere. A descriptor, or -errno. */
int resolve_open_at(int directory_fd, const char *name, uint64_t flags);
/* Opens the directory above; at the root of the export it is the root. A descriptor, or -errno;
 * -ESTALE: this directory does not lie below the root (any more). */
int resolve_parent(const struct call *call, int directory_fd);
/* May the caller do all of this (R_OK, W_OK, X_OK)? The kernel says so, or said so before. */
bool resolve_may(struct call *call, struct descriptor *descriptor, const struct stat *st,
                 uint32_t mask);
/* The same from what is known. False also: not known. */
bool resolve_may_cached(struct call *call, struct descriptor *descriptor, const struct stat *st,
                        uint32_t mask);
uint32_t resolve_access(struct call *call, struct descriptor *descriptor, const struct stat *st,
                        uint32_t asked);

/* ---- the procedures ---- */

typedef void (*call_execute_fn)(struct call *call);
/* On the server's thread: true when the result is there, false when it would have to wait. */
typedef bool (*call_try_fn)(struct call *call);

void op_getattr(struct call *call);
bool op_try_getattr(struct call *call);
void op_setattr(struct call *call);
void op_lookup(struct call *call);
bool op_try_lookup(struct call *call);
void op_access(struct call *call);
bool op_try_access(struct call *call);
void op_readlink(struct call *call);
void op_read(struct call *call);
bool op_try_read(struct call *call);
void op_write(struct call *call);
void op_create(struct call *call);
void op_mkdir(struct call *call);
void op_symlink(struct call *call);
void op_mknod(struct call *call);
void op_remove(struct call *call);
void op_rmdir(struct call *call);
void op_rename(struct call *call);
void op_link(struct call *call);
void op_readdir(struct call *call);
void op_fsstat(struct call *call);
void op_fsinfo(struct call *call);
void op_pathconf(struct call *call);
void op_commit(struct call *call);

/* MOUNT writes its body itself. */
void op_mount(struct call *call);
/* The same of one that is not executed. */
void op_mount_refuse(struct call *call);
/* Whose file system it may have to wait for; NULL: none. */
const struct export *op_mount_export(const struct call *call);

/* ---- what the parts need of the service ---- */

const struct file_system *call_system(const struct call *call);
/* As whom this call touches files of its export. False: it is not known yet. */
bool call_take_identity(struct call *call);
struct descriptor_cache *call_cache(const struct call *call);
/* May so many bytes be read on the server's thread, too? Others wait for it meanwhile. */
bool call_may_read(const struct call *call, uint32_t len);
/* It has an empty pipe. False: there is none. */
bool call_take_pipe(struct call *call);
/* It has none any more, if it had one. */
void call_drop_pipe(struct call *call);
const struct mac_key *call_key(const struct call *call);
/* WRITE and COMMIT carry it. Taken before data is written, and after it was synced. */
void call_get_verifier(const struct call *call, uint8_t ret[NFS_VERF_LEN], uint32_t *ret_errors);
/* Its groups are those that this machine knows, and may have to be asked for. */
bool call_has_own_groups(const struct call *call);
/* The result as the body of a reply. */
void call_encode(struct call *call);
/* This file is gone: those who have locks on it learn that. */
void call_found_removed(const struct call *call, uint32_t export_id,
                        const struct handle_object *object);
/* It uses no object any more. */
void call_release_objects(struct call *call);
/* Executed and synced: encodes, and hands it back. */
void call_finish(struct call *call);
/* Its reply is there, and it uses nothing: to the server's thread. */
void call_hand_back(struct call *call);

#endif

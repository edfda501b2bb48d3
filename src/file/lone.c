/*
 * lone.c -- see lone.h.
 */
#include "file/lone.h"

#include "file/once.h"
#include "file/service.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { DATA_MAX = 65536 }; /* of a WRITE, or in a file that goes */

/* What is removed is given back page by page. */
static bool is_victim_short(struct call *call)
{
    struct stat directory, victim;
    char name[CALL_NAME_MAX + 1];
    struct descriptor *descriptor = resolve_cached(call, call->args.fh, &directory);
    bool is_short =
        descriptor != NULL && resolve_name(call->args.name, name) == NFS_OK &&
        fstatat(descriptor->path_fd, name, &victim, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) == 0 &&
        victim.st_size <= DATA_MAX;
    call_release_objects(call);
    return is_short;
}

static bool is_short(struct call *call)
{
    const struct nfs_args *args = &call->args;
    switch (call->procedure) {
    case NFS_WRITE:
        return args->data.len <= DATA_MAX;
    case NFS_CREATE:
    case NFS_MKDIR:
    case NFS_SETATTR:
        return !args->sattr.set_size;
    case NFS_REMOVE:
        return is_victim_short(call);
    default:
        return false;
    }
}

/* Files that are to be closed may be long: the next call goes to the pool, which does it. */
static bool is_alone(const struct call *call, struct lane *lane)
{
    return call->service->memory.calls == 1 && atomic_load(&lane->over_count) == 0 &&
           call->export != NULL && call->export->is_memory && !call_has_own_groups(call);
}

static void forget_result(struct call *call)
{
    call->result = (struct nfs_result){0};
    call->sync_count = 0;
    call->has_identity = false;
}

bool lone_execute(struct call *call, struct lane *lane, call_execute_fn execute)
{
    if (!is_alone(call, lane) || !is_short(call) || !identity_enter())
        return false;
    execute(call);
    once_finish(call);
    identity_leave();
    descriptor_close_over(call_cache(call), lane);
    /* For want of a descriptor or of memory, it has changed nothing. */
    if (call->result.stat != NFS_JUKEBOX)
        return true;
    call_release_objects(call);
    forget_result(call);
    return false;
}

enum job_verdict lone_finish(struct call *call)
{
    if (call->sync_count > 0 && call->result.stat == NFS_OK) {
        syncer_add(call->service->syncer, call);
        return JOB_LATER;
    }
    call_encode(call);
    call_release_objects(call);
    return JOB_DONE;
}

/*
 * op_attributes.c -- GETATTR, SETATTR, ACCESS, READLINK, FSSTAT, FSINFO, PATHCONF.
 *
 * ACCESS and every other permission is the kernel's answer to the caller itself, access control
 * lists included. Beyond that, the owner of a file may read and write its data whatever its mode
 * says: NFS has no open, and a program that opened a file before it took its own right away goes
 * on to use it.
 */
#include "base/check.h"
#include "file/attributes.h"
#include "file/once.h"
#include "file/op_data.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

static void lock(struct descriptor *descriptor)
{
    CHECK(pthread_mutex_lock(&descriptor->mutex) == 0);
}

static void unlock(struct descriptor *descriptor)
{
    CHECK(pthread_mutex_unlock(&descriptor->mutex) == 0);
}

static void put_attr(struct call *call, const struct stat *st)
{
    call->result.attr.is_there = true;
    attributes_of(call, st, &call->result.attr.attr);
}

void op_getattr(struct call *call)
{
    struct stat st;
    if (resolve_handle(call, call->args.fh, &st) != NULL)
        put_attr(call, &st);
}

bool op_try_getattr(struct call *call)
{
    struct stat st;
    if (resolve_cached(call, call->args.fh, &st) == NULL)
        return false;
    put_attr(call, &st);
    return true;
}

/* ---- SETATTR ---- */

static int set_size(struct call *call, struct descriptor *descriptor, const struct stat *st)
{
    uint64_t size = call->args.sattr.size;
    if (S_ISDIR(st->st_mode))
        return -EISDIR;
    if (!S_ISREG(st->st_mode))
        return -EINVAL;
    if (size > INT64_MAX)
        return -EFBIG;
    int fd = op_data_open_for_writing(call, descriptor, st);
    if (fd < 0)
        return fd;
    return ftruncate(fd, (off_t)size) == 0 ? 0 : -errno;
}

/* The client has its answer: the same verifier from now on is another CREATE. */
static void forget_verifier(const struct call *call, const struct descriptor *descriptor)
{
    char path[32];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor->path_fd);
    identity_own();
    (void)removexattr(path, ATTRIBUTES_VERIFIER);
    identity_assume(&call->identity);
}

static int set_attributes(struct call *call, struct descriptor *descriptor, const struct stat *st)
{
    struct nfs_sattr rest = call->args.sattr;
    int code = rest.set_size ? set_size(call, descriptor, st) : 0;
    if (code != 0)
        return code;
    /* It came with the size. Alone, it would be the owner's to set: not so for who may write. */
    if (rest.set_size && rest.mtime_how == NFS_TIME_SERVER && rest.atime_how == NFS_TIME_KEEP)
        rest.mtime_how = NFS_TIME_KEEP;
    code = attributes_set(call, descriptor->path_fd, S_ISLNK(st->st_mode), &rest);
    if (code == 0 && (rest.atime_how != NFS_TIME_KEEP || rest.mtime_how != NFS_TIME_KEEP) &&
        S_ISREG(st->st_mode) && attributes_are_coarse(st))
        forget_verifier(call, descriptor);
    return code;
}

/* An owner that squashing makes another one: nobody is told that a file has it. */
static bool is_squashed(const struct call *call)
{
    const struct nfs_sattr *sattr = &call->args.sattr;
    return (sattr->set_uid && identity_squash_uid(call->rights, sattr->uid) != sattr->uid) ||
           (sattr->set_gid && identity_squash_gid(call->rights, sattr->gid) != sattr->gid);
}

/* The guard is the ctime that the client knows. */
static bool is_guarded(const struct nfs_args *args, const struct nfs_pre_attr *before)
{
    return args->has_guard && (args->guard.seconds != before->ctime.seconds ||
                               args->guard.nseconds != before->ctime.nseconds);
}

static bool is_as_it_was(const struct descriptor *descriptor, const struct stat *before)
{
    struct stat st;
    return fstat(descriptor->path_fd, &st) == 0 && st.st_ctim.tv_sec == before->st_ctim.tv_sec &&
           st.st_ctim.tv_nsec == before->st_ctim.tv_nsec;
}

static void set_once(struct call *call, struct descriptor *descriptor, const struct stat *st)
{
    enum once_verdict verdict = once_judge_set(call, st);
    if (verdict == ONCE_DONE)
        return;
    if (verdict != ONCE_HALF && is_guarded(&call->args, &call->result.wcc.before)) {
        (void)call_fail(call, NFS_NOT_SYNC);
        return;
    }
    if (is_squashed(call)) {
        (void)call_fail(call, NFS_PERM);
        return;
    }
    once_begin(call, NULL, NULL);
    call->result.stat = call_stat_of(set_attributes(call, descriptor, st));
    if (call->result.stat == NFS_OK || is_as_it_was(descriptor, st))
        once_end(call);
    else
        once_stay_begun(call); /* one of several attributes is set */
}

void op_setattr(struct call *call)
{
    struct stat st;
    struct descriptor *descriptor = resolve_handle(call, call->args.fh, &st);
    if (descriptor == NULL)
        return;
    struct nfs_wcc *wcc = &call->result.wcc;
    lock(descriptor);
    if (fstat(descriptor->path_fd, &st) == 0)
        attributes_before(&st, &wcc->before);
    const struct nfs_args *args = &call->args;
    if (!call->rights->is_writable)
        (void)call_fail(call, NFS_ROFS);
    else if (!attributes_are_valid(&args->sattr))
        (void)call_fail(call, NFS_INVAL);
    else
        set_once(call, descriptor, &st);
    attributes_after(call, descriptor->path_fd, &wcc->after);
    unlock(descriptor);
    if (call->result.stat == NFS_OK && !call->rights->is_async)
        call_must_sync(call, descriptor, true);
}

/* ---- ACCESS ---- */

/* What the bits of ACCESS ask of the kernel. */
static uint32_t mask_of(const struct stat *st, uint32_t access)
{
    bool is_directory = S_ISDIR(st->st_mode);
    uint32_t mask = 0;
    if (access & NFS_ACCESS_READ)
        mask |= R_OK;
    if (access & (NFS_ACCESS_MODIFY | NFS_ACCESS_EXTEND))
        mask |= W_OK | (is_directory ? X_OK : 0);
    if (is_directory && (access & NFS_ACCESS_DELETE))
        mask |= W_OK | X_OK;
    if (access & (is_directory ? NFS_ACCESS_LOOKUP : NFS_ACCESS_EXECUTE))
        mask |= X_OK;
    return mask;
}

static void grant(struct call *call, const struct stat *st, uint32_t granted)
{
    if (!call->rights->is_writable)
        granted &= ~(uint32_t)W_OK;
    for (uint32_t bit = 1; bit <= NFS_ACCESS_EXECUTE; bit <<= 1) {
        uint32_t mask = mask_of(st, bit);
        if ((call->args.access & bit) != 0 && mask != 0 && (granted & mask) == mask)
            call->result.access |= bit;
    }
    put_attr(call, st);
}

void op_access(struct call *call)
{
    struct stat st;
    struct descriptor *descriptor = resolve_handle(call, call->args.fh, &st);
    if (descriptor != NULL)
        grant(call, &st, resolve_access(call, descriptor, &st, mask_of(&st, call->args.access)));
}

bool op_try_access(struct call *call)
{
    struct stat st;
    struct descriptor *descriptor = resolve_cached(call, call->args.fh, &st);
    if (descriptor == NULL)
        return false;
    uint32_t mask = mask_of(&st, call->args.access), granted = 0;
    uint32_t known = descriptor_get_access(descriptor, call->identity.mark, &st.st_ctim, &granted);
    if ((mask & ~known) != 0)
        return false;
    grant(call, &st, granted);
    return true;
}

/* ---- READLINK ---- */

void op_readlink(struct call *call)
{
    struct stat st;
    struct descriptor *descriptor = resolve_handle(call, call->args.fh, &st);
    if (descriptor == NULL)
        return;
    put_attr(call, &st);
    if (!S_ISLNK(st.st_mode)) {
        (void)call_fail(call, NFS_INVAL);
        return;
    }
    ssize_t len =
        readlinkat(descriptor->path_fd, "", (char *)call_payload(call), call->payload_max);
    if (len < 0)
        (void)call_fail(call, call_stat_of(errno));
    else
        call->result.payload_len = (uint32_t)len;
}

/* ---- the file system ---- */

void op_fsstat(struct call *call)
{
    struct stat st;
    struct statvfs fs;
    struct descriptor *descriptor = resolve_handle(call, call->args.fh, &st);
    if (descriptor == NULL)
        return;
    put_attr(call, &st);
    if (fstatvfs(descriptor->path_fd, &fs) != 0) {
        (void)call_fail(call, call_stat_of(errno));
        return;
    }
    call->result.fsstat = (struct nfs_fsstat){
        .tbytes = fs.f_blocks * fs.f_frsize,
        .fbytes = fs.f_bfree * fs.f_frsize,
        .abytes = fs.f_bavail * fs.f_frsize,
        .tfiles = fs.f_files,
        .ffiles = fs.f_ffree,
        .afiles = fs.f_favail,
    };
}

/* The largest file that the file system can have, as far as the library knows it: of those that it
 * has not heard of it says 32 bits, and a client would believe that. */
static uint64_t size_max_of(const struct call *call)
{
    long bits = fpathconf(call->export->root_fd, _PC_FILESIZEBITS);
    return bits > 32 && bits < 64 ? (UINT64_C(1) << (bits - 1)) - 1 : INT64_MAX;
}

void op_fsinfo(struct call *call)
{
    struct stat st;
    if (resolve_handle(call, call->args.fh, &st) == NULL)
        return;
    put_attr(call, &st);
    call->result.fsinfo = (struct nfs_fsinfo){
        .rtmax = NFS_DATA_MAX,
        .rtpref = NFS_DATA_MAX,
        .rtmult = 4096,
        .wtmax = NFS_DATA_MAX,
        .wtpref = NFS_DATA_MAX,
        .wtmult = 4096,
        .dtpref = 65536,
        .maxfilesize = size_max_of(call),
        .time_delta = {0, 1},
        .properties = NFS_FSF_LINK | NFS_FSF_SYMLINK | NFS_FSF_HOMOGENEOUS | NFS_FSF_CANSETTIME,
    };
}

void op_pathconf(struct call *call)
{
    struct stat st;
    struct descriptor *descriptor = resolve_handle(call, call->args.fh, &st);
    if (descriptor == NULL)
        return;
    put_attr(call, &st);
    long link_max = fpathconf(call->export->root_fd, _PC_LINK_MAX);
    struct statvfs fs;
    bool is_known = fstatvfs(descriptor->path_fd, &fs) == 0;
    call->result.pathconf = (struct nfs_pathconf){
        .linkmax = link_max > 0 && link_max <= UINT32_MAX ? (uint32_t)link_max : 1,
        .name_max =
            is_known && fs.f_namemax < CALL_NAME_MAX ? (uint32_t)fs.f_namemax : CALL_NAME_MAX,
        .no_trunc = true,
        .chown_restricted = true,
        .case_preserving = true,
    };
}

/*
 * attributes.c -- see attributes.h.
 *
 * Owner first, then mode: a change of owner takes setuid bits away, and the mode that a client
 * asks for in the same call is to stay. Times are last, because the others change them.
 */
#include "file/attributes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define NANOSECONDS 1000000000u

static enum nfs_type type_of(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFDIR:
        return NFS_TYPE_DIR;
    case S_IFBLK:
        return NFS_TYPE_BLK;
    case S_IFCHR:
        return NFS_TYPE_CHR;
    case S_IFLNK:
        return NFS_TYPE_LNK;
    case S_IFSOCK:
        return NFS_TYPE_SOCK;
    case S_IFIFO:
        return NFS_TYPE_FIFO;
    default:
        return NFS_TYPE_REG;
    }
}

/* Unsigned 32 bits: what is before 1970 or after 2106 is shown as the nearest that there is. */
static struct nfs_time time_of(const struct timespec *time)
{
    if (time->tv_sec < 0)
        return (struct nfs_time){0, 0};
    if (time->tv_sec > UINT32_MAX)
        return (struct nfs_time){UINT32_MAX, NANOSECONDS - 1};
    return (struct nfs_time){(uint32_t)time->tv_sec, (uint32_t)time->tv_nsec};
}

void attributes_of(const struct call *call, const struct stat *st, struct nfs_attr *ret)
{
    *ret = (struct nfs_attr){
        .type = type_of(st->st_mode),
        .mode = st->st_mode & 07777,
        .nlink = (uint32_t)st->st_nlink,
        .uid = st->st_uid,
        .gid = st->st_gid,
        .size = (uint64_t)st->st_size,
        .used = (uint64_t)st->st_blocks * 512,
        .rdev_major = major(st->st_rdev),
        .rdev_minor = minor(st->st_rdev),
        .fsid = call->export->id,
        .fileid = st->st_ino,
        .atime = time_of(&st->st_atim),
        .mtime = time_of(&st->st_mtim),
        .ctime = time_of(&st->st_ctim),
    };
}

void attributes_after(const struct call *call, int fd, struct nfs_post_attr *ret)
{
    struct stat st;
    ret->is_there = fstat(fd, &st) == 0;
    if (ret->is_there)
        attributes_of(call, &st, &ret->attr);
}

void attributes_before(const struct stat *st, struct nfs_pre_attr *ret)
{
    *ret = (struct nfs_pre_attr){
        .is_there = true,
        .size = (uint64_t)st->st_size,
        .mtime = time_of(&st->st_mtim),
        .ctime = time_of(&st->st_ctim),
    };
}

void attributes_unchanged(const struct call *call, const struct stat *st, struct nfs_wcc *ret)
{
    attributes_before(st, &ret->before);
    ret->after.is_there = true;
    attributes_of(call, st, &ret->after.attr);
}

bool attributes_are_valid(const struct nfs_sattr *sattr)
{
    return sattr->atime.nseconds < NANOSECONDS && sattr->mtime.nseconds < NANOSECONDS;
}

bool attributes_are_coarse(const struct stat *st)
{
    return st->st_atim.tv_nsec % 100 == 0 && st->st_mtim.tv_nsec % 100 == 0;
}

static struct timespec timespec_of(enum nfs_time_how how, struct nfs_time time)
{
    switch (how) {
    case NFS_TIME_KEEP:
        return (struct timespec){.tv_nsec = UTIME_OMIT};
    case NFS_TIME_SERVER:
        return (struct timespec){.tv_nsec = UTIME_NOW};
    case NFS_TIME_CLIENT:
        return (struct timespec){.tv_sec = time.seconds, .tv_nsec = time.nseconds};
    }
    return (struct timespec){.tv_nsec = UTIME_OMIT};
}

static int set_owner(const struct call *call, int fd, const struct nfs_sattr *sattr)
{
    uid_t uid = sattr->set_uid ? identity_squash_uid(call->rights, sattr->uid) : (uid_t)-1;
    gid_t gid = sattr->set_gid ? identity_squash_gid(call->rights, sattr->gid) : (gid_t)-1;
    if (uid == (uid_t)-1 && gid == (gid_t)-1)
        return 0;
    return fchownat(fd, "", uid, gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) == 0 ? 0 : -errno;
}

/* Since Linux 6.6; before that, and where a filter does not know it, by a path. */
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

static int set_mode(int fd, mode_t mode)
{
    char path[32];
    if (syscall(SYS_fchmodat2, fd, "", mode & 07777, AT_EMPTY_PATH) == 0)
        return 0;
    if (errno != ENOSYS && errno != EPERM)
        return -errno;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return chmod(path, mode & 07777) == 0 ? 0 : -errno;
}

static bool is_other(enum nfs_time_how how, struct nfs_time wanted, const struct timespec *is)
{
    return how == NFS_TIME_CLIENT && wanted.seconds > INT32_MAX && is->tv_sec != wanted.seconds;
}

/* Where seconds have 31 bits the kernel takes the nearest that there is. That is another time than
 * the client's: it is refused, and nothing of it stays. */
static int set_times(int fd, const struct nfs_sattr *sattr)
{
    struct stat before, after;
    struct timespec times[2] = {timespec_of(sattr->atime_how, sattr->atime),
                                timespec_of(sattr->mtime_how, sattr->mtime)};
    enum { FLAGS = AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW };
    if (fstat(fd, &before) != 0 || utimensat(fd, "", times, FLAGS) != 0)
        return -errno;
    if (fstat(fd, &after) != 0 || (!is_other(sattr->atime_how, sattr->atime, &after.st_atim) &&
                                   !is_other(sattr->mtime_how, sattr->mtime, &after.st_mtim)))
        return 0;
    times[0] = before.st_atim;
    times[1] = before.st_mtim;
    (void)utimensat(fd, "", times, FLAGS);
    return -EINVAL;
}

int attributes_set(const struct call *call, int fd, bool is_link, const struct nfs_sattr *sattr)
{
    int code = set_owner(call, fd, sattr);
    if (code == 0 && sattr->set_mode && !is_link)
        code = set_mode(fd, sattr->mode);
    if (code != 0 || (sattr->atime_how == NFS_TIME_KEEP && sattr->mtime_how == NFS_TIME_KEEP))
        return code;
    return set_times(fd, sattr);
}

bool attributes_need_setting(const struct call *call, const struct nfs_sattr *sattr)
{
    if (sattr->set_uid && identity_squash_uid(call->rights, sattr->uid) != call->identity.uid)
        return true;
    /* The group of a new file may be its directory's: what was asked for is set. */
    return sattr->set_gid || sattr->atime_how != NFS_TIME_KEEP ||
           sattr->mtime_how != NFS_TIME_KEEP || (sattr->set_size && sattr->size != 0);
}

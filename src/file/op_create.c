/*
 * op_create.c -- CREATE, MKDIR, SYMLINK, MKNOD.
 *
 * A file whose attributes are more than a mode is made without a name (O_TMPFILE), given its
 * attributes, and then linked: nobody sees it half made, and a crash leaves all of it or nothing.
 * File systems without O_TMPFILE get the name first, and lose it again when an attribute is
 * refused.
 *
 * CREATE with EXCLUSIVE: the verifier of the client is kept in the times of the new file, which
 * the client sets anyway when it has its answer. Two times of 31 bits of seconds hold 62 of its 64
 * bits, the nanoseconds the other two and a mark, so that no ordinary file is taken for one that
 * was made so. Where times are coarser than that, it is an extended attribute, until the client
 * sets them.
 */
#include "base/check.h"
#include "file/attributes.h"
#include "file/once.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Nanoseconds that say "this time is half of a verifier". */
enum { ATIME_MARK = 814725364, MTIME_MARK = 136904258 };

enum { MAJOR_MAX = 4095, MINOR_MAX = 0xfffff }; /* what the kernel has room for */

/* ---- the verifier of EXCLUSIVE ---- */

static void times_of_verifier(struct bytes verifier, struct timespec ret[2])
{
    uint32_t high = load_be32(verifier.at), low = load_be32(verifier.at + 4);
    ret[0] = (struct timespec){.tv_sec = high & INT32_MAX,
                               .tv_nsec = ATIME_MARK + (long)(high >> 31 | low >> 31 << 1)};
    ret[1] = (struct timespec){.tv_sec = low & INT32_MAX, .tv_nsec = MTIME_MARK};
}

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static void path_of(int fd, char ret[32])
{
    (void)snprintf(ret, 32, "/proc/self/fd/%d", fd);
}

/* The file may have no mode yet: its maker could not read it. */
static bool has_verifier(struct call *call, int fd, const struct stat *st, struct bytes verifier)
{
    struct timespec times[2];
    times_of_verifier(verifier, times);
    if (is_same_time(&st->st_atim, &times[0]) && is_same_time(&st->st_mtim, &times[1]))
        return true;
    if (!attributes_are_coarse(st))
        return false;
    char path[32];
    uint8_t kept[NFS_VERF_LEN];
    path_of(fd, path);
    identity_own();
    ssize_t len = getxattr(path, ATTRIBUTES_VERIFIER, kept, sizeof kept);
    identity_assume(&call->identity);
    return len == NFS_VERF_LEN && memcmp(kept, verifier.at, NFS_VERF_LEN) == 0;
}

/* 0 or -errno. */
static int set_verifier(struct call *call, int fd, struct bytes verifier)
{
    struct timespec times[2];
    struct stat st;
    times_of_verifier(verifier, times);
    if (utimensat(fd, "", times, AT_EMPTY_PATH) != 0 || fstat(fd, &st) != 0)
        return -errno;
    if (has_verifier(call, fd, &st, verifier))
        return 0;
    char path[32];
    path_of(fd, path);
    identity_own(); /* as above */
    int code = setxattr(path, ATTRIBUTES_VERIFIER, verifier.at, NFS_VERF_LEN, 0) == 0 ? 0 : -errno;
    identity_assume(&call->identity);
    return code;
}

/* ---- a new file ---- */

/* What was made and cannot be completed; flags of unlinkat. */
static void unmake(const struct directory *directory, int flags)
{
    (void)unlinkat(directory->descriptor->path_fd, directory->name, flags);
}

static int set_all(struct call *call, int fd)
{
    const struct nfs_args *args = &call->args;
    if (args->create == NFS_EXCLUSIVE)
        return set_verifier(call, fd, args->verf);
    if (args->sattr.set_size && args->sattr.size != 0) {
        if (args->sattr.size > INT64_MAX)
            return -EFBIG;
        if (ftruncate(fd, (off_t)args->sattr.size) != 0)
            return -errno;
    }
    return attributes_set(call, fd, false, &args->sattr);
}

/* Made whole, then named. A descriptor, or -errno; -EOPNOTSUPP: not on this file system. */
static int make_unnamed(struct call *call, const struct directory *directory, mode_t mode)
{
    char path[32], own[32];
    path_of(directory->descriptor->path_fd, path);
    int fd = open(path, O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
    if (fd < 0)
        return errno == EISDIR || errno == ENOENT ? -EOPNOTSUPP : -errno;
    int code = set_all(call, fd);
    path_of(fd, own);
    if (code == 0 && linkat(AT_FDCWD, own, directory->descriptor->path_fd, directory->name,
                            AT_SYMLINK_FOLLOW) != 0)
        code = -errno;
    if (code == 0)
        return fd;
    (void)close(fd);
    return code;
}

/* A mode is all it needs: made by name, and never opened for data. */
static int make_plain(const struct directory *directory, mode_t mode)
{
    int directory_fd = directory->descriptor->path_fd;
    if (mknodat(directory_fd, directory->name, S_IFREG | mode, 0) != 0)
        return -errno;
    int fd = resolve_open_at(directory_fd, directory->name, O_PATH);
    if (fd < 0)
        unmake(directory, 0);
    return fd;
}

static int make_named(struct call *call, const struct directory *directory, mode_t mode)
{
    int fd = openat(directory->descriptor->path_fd, directory->name,
                    O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, mode);
    if (fd < 0)
        return -errno;
    int code = set_all(call, fd);
    if (code == 0)
        return fd;
    unmake(directory, 0);
    (void)close(fd);
    return code;
}

/* The descriptor that names it, in place of the one that made it. */
static int without_data(int fd)
{
    char path[32];
    path_of(fd, path);
    int path_fd = open(path, O_PATH | O_CLOEXEC);
    int code = path_fd < 0 ? -errno : path_fd;
    (void)close(fd);
    return code;
}

static bool is_plain(const struct call *call)
{
    return call->args.create != NFS_EXCLUSIVE && !attributes_need_setting(call, &call->args.sattr);
}

/* What an earlier run had just made. Without O_TMPFILE its attributes may be missing, and among
 * them the right to open it. */
static int make_whole(struct call *call, const struct directory *directory)
{
    int directory_fd = directory->descriptor->path_fd;
    if (is_plain(call))
        return resolve_open_at(directory_fd, directory->name, O_PATH);
    identity_own();
    int fd = resolve_open_at(directory_fd, directory->name, O_RDWR | O_NONBLOCK);
    identity_assume(&call->identity);
    if (fd < 0)
        return fd;
    int code = set_all(call, fd);
    if (code == 0)
        return without_data(fd);
    (void)close(fd);
    return code;
}

static int make_file(struct call *call, const struct directory *directory)
{
    const struct nfs_args *args = &call->args;
    mode_t mode = args->sattr.set_mode ? args->sattr.mode & 07777 : 0;
    if (is_plain(call))
        return make_plain(directory, mode);
    int there = resolve_open_at(directory->descriptor->path_fd, directory->name, O_PATH);
    if (there >= 0) {
        (void)close(there);
        return -EEXIST;
    }
    int fd = make_unnamed(call, directory, mode);
    if (fd == -EOPNOTSUPP)
        fd = make_named(call, directory, mode);
    if (fd >= 0 && (fd = without_data(fd)) < 0)
        unmake(directory, 0);
    return fd;
}

/* ---- a file that is there already ---- */

/* UNCHECKED sets the size, and nothing else. */
static int set_existing_size(struct call *call, struct descriptor *descriptor,
                             const struct stat *st)
{
    const struct nfs_sattr *sattr = &call->args.sattr;
    if (!sattr->set_size)
        return 0;
    if (sattr->size > INT64_MAX)
        return -EFBIG;
    if (st->st_uid != call->identity.uid && !resolve_may(call, descriptor, st, W_OK))
        return -EACCES;
    identity_own();
    int fd = descriptor_for_writing(call_cache(call), descriptor);
    identity_assume(&call->identity);
    if (fd < 0)
        return fd;
    CHECK(pthread_mutex_lock(&descriptor->mutex) == 0);
    int code = ftruncate(fd, (off_t)sattr->size) == 0 ? 0 : -errno;
    CHECK(pthread_mutex_unlock(&descriptor->mutex) == 0);
    if (code != 0)
        return code;
    if (!call->rights->is_async)
        call_must_sync(call, descriptor, true);
    return 0;
}

static int take_existing(struct call *call, struct descriptor *descriptor, const struct stat *st)
{
    if (!S_ISREG(st->st_mode))
        return -EEXIST;
    switch (call->args.create) {
    case NFS_UNCHECKED:
        return set_existing_size(call, descriptor, st);
    case NFS_GUARDED:
        return -EEXIST;
    case NFS_EXCLUSIVE:
        return has_verifier(call, descriptor->path_fd, st, call->args.verf) ? 0 : -EEXIST;
    }
    UNREACHABLE();
}

/* The answer to what was made, or found; the descriptor goes over to the cache. */
static struct descriptor *put_object(struct call *call, int path_fd, bool is_found,
                                     struct stat *ret)
{
    struct descriptor *descriptor = resolve_new(call, path_fd, &call->result.fh, ret);
    if (descriptor == NULL)
        return NULL;
    once_note_object(call, &descriptor->object, is_found);
    call->result.has_fh = true;
    call->result.attr.is_there = true;
    attributes_of(call, ret, &call->result.attr.attr);
    return descriptor;
}

/* The sync of its directory has it too, if there is a journal, and nothing came behind the name. */
static void sync_object(struct call *call, struct descriptor *descriptor, bool is_behind)
{
    if (descriptor != NULL && call->result.stat == NFS_OK && !call->rights->is_async &&
        (is_behind || !call->export->is_journaled))
        call_must_sync(call, descriptor, true);
}

static void finish_file(struct call *call, const struct directory *directory, int path_fd)
{
    struct stat st;
    struct descriptor *descriptor = put_object(call, path_fd, false, &st);
    if (descriptor == NULL)
        unmake(directory, 0);
    sync_object(call, descriptor, false);
}

static void create_existing(struct call *call, const struct directory *directory)
{
    struct stat st;
    int fd = resolve_open_at(directory->descriptor->path_fd, directory->name, O_PATH);
    if (fd < 0) {
        (void)call_fail(call, fd == -ENOENT ? NFS_JUKEBOX : NFS_EXIST);
        return;
    }
    struct descriptor *descriptor = put_object(call, fd, true, &st);
    if (descriptor == NULL)
        return;
    call->result.stat = call_stat_of(take_existing(call, descriptor, &st));
    attributes_after(call, descriptor->path_fd, &call->result.attr);
}

/* True: it is to be made, or to be completed. Else it was, before the server was killed. */
static bool begin_make(struct call *call, const struct directory *directory, mode_t type,
                       bool *ret_is_half)
{
    struct descriptor *made = NULL;
    enum once_verdict verdict = once_judge_make(call, directory, type, &made);
    *ret_is_half = verdict == ONCE_HALF;
    if (verdict == ONCE_DONE)
        sync_object(call, made, true);
    else
        once_begin(call, NULL, NULL);
    return verdict != ONCE_DONE;
}

static void make_or_take(struct call *call, const struct directory *directory, bool is_half)
{
    int fd = is_half ? make_whole(call, directory) : make_file(call, directory);
    if (fd == -EEXIST)
        create_existing(call, directory);
    else if (fd < 0)
        (void)call_fail(call, call_stat_of(fd));
    else
        finish_file(call, directory, fd);
}

void op_create(struct call *call)
{
    struct directory directory;
    bool is_half;
    if (!directory_begin(call, NFS_EXIST, &directory))
        return;
    if (!attributes_are_valid(&call->args.sattr)) {
        (void)call_fail(call, NFS_INVAL);
    } else if (begin_make(call, &directory, S_IFREG, &is_half)) {
        make_or_take(call, &directory, is_half);
        once_end(call);
    }
    directory_end(call, &directory);
}

/* ---- everything else that has a name ---- */

/* Made with a mode; the rest of its attributes, and its handle. */
static void complete(struct call *call, struct directory *directory, bool needs_more, int flags)
{
    struct stat st;
    int fd = resolve_open_at(directory->descriptor->path_fd, directory->name, O_PATH);
    if (fd == -ENOENT)
        return; /* somebody else on this machine was faster: made, and gone again */
    if (fd < 0)
        (void)call_fail(call, NFS_JUKEBOX);
    struct descriptor *descriptor = fd < 0 ? NULL : put_object(call, fd, false, &st);
    if (descriptor == NULL) {
        unmake(directory, flags);
        return;
    }
    struct nfs_sattr sattr = call->args.sattr;
    if (S_ISDIR(st.st_mode) && (sattr.mode & (S_ISUID | S_ISGID)) == 0)
        sattr.set_mode = false; /* made with it; now it has the setgid bit of its parent, too */
    int code =
        needs_more ? attributes_set(call, descriptor->path_fd, S_ISLNK(st.st_mode), &sattr) : 0;
    if (code != 0) {
        unmake(directory, flags);
        (void)call_fail(call, call_stat_of(code));
        return;
    }
    attributes_after(call, descriptor->path_fd, &call->result.attr);
    sync_object(call, descriptor, needs_more);
}

void op_mkdir(struct call *call)
{
    struct directory directory;
    const struct nfs_sattr *sattr = &call->args.sattr;
    bool is_half;
    if (!directory_begin(call, NFS_EXIST, &directory))
        return;
    mode_t mode = sattr->set_mode ? sattr->mode & 07777 : 0;
    bool needs_more = (mode & (S_ISUID | S_ISGID)) != 0 || attributes_need_setting(call, sattr);
    if (!attributes_are_valid(sattr)) {
        (void)call_fail(call, NFS_INVAL);
    } else if (begin_make(call, &directory, S_IFDIR, &is_half)) {
        if (!is_half && mkdirat(directory.descriptor->path_fd, directory.name, mode) != 0)
            (void)call_fail(call, call_stat_of(errno));
        else
            complete(call, &directory, needs_more, AT_REMOVEDIR);
        once_end(call);
    }
    directory_end(call, &directory);
}

void op_symlink(struct call *call)
{
    struct directory directory;
    struct bytes target = call->args.path;
    char path[4096];
    bool is_half;
    if (!directory_begin(call, NFS_EXIST, &directory))
        return;
    if (target.len == 0 || memchr(target.at, 0, target.len) != NULL ||
        !attributes_are_valid(&call->args.sattr)) {
        (void)call_fail(call, NFS_INVAL);
    } else if (target.len >= sizeof path) {
        (void)call_fail(call, NFS_NAMETOOLONG);
    } else if (begin_make(call, &directory, S_IFLNK, &is_half)) {
        memcpy(path, target.at, target.len);
        path[target.len] = 0;
        if (!is_half && symlinkat(path, directory.descriptor->path_fd, directory.name) != 0)
            (void)call_fail(call, call_stat_of(errno));
        else
            complete(call, &directory, attributes_need_setting(call, &call->args.sattr), 0);
        once_end(call);
    }
    directory_end(call, &directory);
}

/* 0: not of this procedure. */
static mode_t node_type(const struct nfs_args *args)
{
    switch (args->type) {
    case NFS_TYPE_BLK:
        return S_IFBLK;
    case NFS_TYPE_CHR:
        return S_IFCHR;
    case NFS_TYPE_SOCK:
        return S_IFSOCK;
    case NFS_TYPE_FIFO:
        return S_IFIFO;
    case NFS_TYPE_REG:
    case NFS_TYPE_DIR:
    case NFS_TYPE_LNK:
        return 0;
    }
    return 0;
}

void op_mknod(struct call *call)
{
    struct directory directory;
    const struct nfs_args *args = &call->args;
    bool is_half;
    if (!directory_begin(call, NFS_EXIST, &directory))
        return;
    mode_t type = node_type(args), mode = args->sattr.set_mode ? args->sattr.mode & 07777 : 0;
    dev_t device =
        type == S_IFBLK || type == S_IFCHR ? makedev(args->rdev_major, args->rdev_minor) : 0;
    if (type == 0) {
        (void)call_fail(call, NFS_BADTYPE);
    } else if (!attributes_are_valid(&args->sattr) || args->rdev_major > MAJOR_MAX ||
               args->rdev_minor > MINOR_MAX) {
        (void)call_fail(call, NFS_INVAL);
    } else if (begin_make(call, &directory, type, &is_half)) {
        if (!is_half &&
            mknodat(directory.descriptor->path_fd, directory.name, type | mode, device) != 0)
            (void)call_fail(call, call_stat_of(errno));
        else
            complete(call, &directory, attributes_need_setting(call, &args->sattr), 0);
        once_end(call);
    }
    directory_end(call, &directory);
}

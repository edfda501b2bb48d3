/*
 * directory.c -- makes, locks and syncs the directory of an embedded store; see directory.h.
 *
 * A file is durable only when its name is: after the directory is created its parent is synced, and
 * code that creates or renames a file in it calls directory_sync before the file counts.
 *
 * The lock file is never removed: removing it would let one process lock the old file and another
 * one a new file of the same name. A clean close empties it, so that a stale pid is rare.
 *
 * The cause in a failure's sentence is in LMDB's words (mdb_strerror), which for an errno are the
 * system's: operators can search for either. The next step is ours.
 */
#include "store/directory.h"

#include "store/backend.h"

#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_FILE "lock"

static const char *next_step(int code)
{
    switch (code) {
    case EACCES:
    case EPERM:
        return "make it readable and writable by the server's user, mode 0700";
    case EROFS:
        return "remount that file system writable or choose another --store";
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return "free space there (or raise the quota) and start again";
    case EIO: /* also LMDB's word for a write that was cut short */
        return "check for a full disk, a file size limit (ulimit -f) or a failing disk (system "
               "log), then start again";
    case ENOMEM:
        return "raise the address space limit (ulimit -v); the store maps 64 GiB, mostly unused";
    case EBUSY:
        return "another process has it, whose file \"lock\" was removed: stop that server first";
    case EMFILE:
    case ENFILE:
        return "raise the open file limit (ulimit -n)";
    case ENOENT:
        return "create its parent directory (mkdir -p) or choose another --store";
    case ENOTDIR:
    case EISDIR:
        return "choose another --store";
    case MDB_INVALID:
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_INCOMPATIBLE:
        return "restore data.mdb from a backup, or move it away and start with --assume-lost";
    case MDB_VERSION_MISMATCH:
        return "start the holdfast that wrote it, or move data.mdb away and start with "
               "--assume-lost";
    case MDB_MAP_FULL:
        return "the store reached its maximum size; release clients that are gone";
    default:
        return "check that disk and the system log, then start again";
    }
}

void directory_fail(const struct directory *directory, const char *what, int code,
                    struct store_failure *ret_failure)
{
    store_fail(ret_failure, STORE_EXIT_STORE, "store lmdb:%.200s: %s: %s; %s", directory->path,
               what, mdb_strerror(code), next_step(code));
}

int directory_sync(const struct directory *directory)
{
    return fsync(directory->fd) == 0 ? 0 : -errno;
}

int directory_rename(const struct directory *directory, const char *from, const char *to)
{
    if (renameat(directory->fd, from, directory->fd, to) != 0)
        return -errno;
    return directory_sync(directory);
}

/* A directory that was just made is durable when its parent is. */
static int sync_parent(const struct directory *directory)
{
    int parent = openat(directory->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0)
        return -errno;
    int code = fsync(parent) == 0 ? 0 : -errno;
    (void)close(parent); /* nothing was written through it */
    return code;
}

void directory_adopt(const struct directory *directory, const char *name)
{
    struct stat owner;
    if (geteuid() != 0 || fstat(directory->fd, &owner) != 0 || owner.st_uid == 0)
        return;
    /* Where it may not be done (a user namespace, a file system without owners) nothing is lost. */
    (void)!fchownat(directory->fd, name, owner.st_uid, owner.st_gid, AT_SYMLINK_NOFOLLOW);
}

static void fail_busy(const struct directory *directory, struct store_failure *ret_failure)
{
    char text[16] = "";
    ssize_t len = pread(directory->lock_fd, text, sizeof text - 1, 0);
    long pid = len > 0 ? strtol(text, NULL, 10) : 0;
    /* A killed server's pid stays in the file; a reader, which may have the lock now, leaves it. */
    if (pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH)
        pid = 0;
    if (pid > 0)
        store_fail(ret_failure, STORE_EXIT_STORE,
                   "store lmdb:%.200s: in use by process %ld; stop that server first, or give this "
                   "one a --store of its own",
                   directory->path, pid);
    else
        store_fail(ret_failure, STORE_EXIT_STORE,
                   "store lmdb:%.200s: in use by another process; stop that server or \"holdfast "
                   "store\" first, or give this one a --store of its own",
                   directory->path);
    ret_failure->is_in_use = true;
}

/* Never waited for: its holder keeps it for as long as it runs. */
static int lock_file(struct directory *directory, int operation, struct store_failure *ret_failure)
{
    if (flock(directory->lock_fd, operation | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK)
            fail_busy(directory, ret_failure);
        else
            directory_fail(directory, "cannot lock its file \"lock\"", errno, ret_failure);
        (void)close(directory->lock_fd);
        directory->lock_fd = -1; /* so that closing does not touch the owner's pid */
        return -EIO;
    }
    return 0;
}

/* Anyone who can open the file can lock it and keep us from starting, so only its owner can. */
static int take_lock(struct directory *directory, struct store_failure *ret_failure)
{
    struct stat status;
    directory->lock_fd = openat(directory->fd, LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (directory->lock_fd < 0) {
        directory_fail(directory, "cannot open its file \"lock\"", errno, ret_failure);
        return -EIO;
    }
    if (fstat(directory->lock_fd, &status) == 0) {
        if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
            (void)!fchmod(directory->lock_fd,
                          0600); /* another user's file: its owner must keep it private */
        if (status.st_uid == 0)
            directory_adopt(directory, LOCK_FILE);
    }
    if (lock_file(directory, LOCK_EX, ret_failure) != 0)
        return -EIO;
    char text[16];
    int len = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    /* The pid is for a message only, and a full disk must not keep the server from starting. */
    if (ftruncate(directory->lock_fd, 0) == 0)
        (void)!pwrite(directory->lock_fd, text, (size_t)len, 0);
    return 0;
}

/* A reader leaves the pid in it alone, and makes no file where there is none. */
static int share_lock(struct directory *directory, struct store_failure *ret_failure)
{
    directory->lock_fd = openat(directory->fd, LOCK_FILE, O_RDONLY | O_CLOEXEC);
    if (directory->lock_fd >= 0)
        return lock_file(directory, LOCK_SH, ret_failure);
    if (errno == ENOENT)
        return 0;
    directory_fail(directory, "cannot open its file \"lock\"", errno, ret_failure);
    return -EIO;
}

static int open_path(struct directory *directory, const char *path,
                     struct store_failure *ret_failure)
{
    *directory = (struct directory){.fd = -1, .lock_fd = -1};
    directory->path = strdup(path);
    if (directory->path != NULL)
        return 0;
    store_fail(ret_failure, STORE_EXIT_STORE, "store lmdb:%.200s: out of memory", path);
    return -EIO;
}

int directory_open_reader(struct directory *directory, const char *path,
                          struct store_failure *ret_failure)
{
    if (open_path(directory, path, ret_failure) != 0)
        return -EIO;
    directory->is_reader = true;
    directory->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory->fd < 0 && errno == ENOENT)
        store_fail(ret_failure, STORE_EXIT_STORE,
                   "store lmdb:%.200s: no such directory; name the server's store with --store",
                   path);
    else if (directory->fd < 0)
        directory_fail(directory, "cannot open the directory", errno, ret_failure);
    else if (share_lock(directory, ret_failure) == 0)
        return 0;
    directory_close(directory);
    return -EIO;
}

bool directory_is_shared(const struct directory *directory)
{
    return directory->lock_fd < 0 && faccessat(directory->fd, LOCK_FILE, F_OK, 0) == 0;
}

int directory_open(struct directory *directory, const char *path, struct store_failure *ret_failure)
{
    if (open_path(directory, path, ret_failure) != 0)
        return -EIO;
    bool is_made = mkdir(path, 0700) == 0;
    if (!is_made && errno != EEXIST) {
        directory_fail(directory, "cannot create the directory", errno, ret_failure);
        goto fail;
    }
    directory->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory->fd < 0) {
        directory_fail(directory, "cannot open the directory", errno, ret_failure);
        goto fail;
    }
    int code = sync_parent(directory);
    if (code != 0 && is_made) { /* one that existed before was somebody else's to sync */
        directory_fail(directory, "cannot sync its parent directory", -code, ret_failure);
        goto fail;
    }
    if (take_lock(directory, ret_failure) != 0)
        goto fail;
    return 0;

fail:
    directory_close(directory);
    return -EIO;
}

void directory_close(struct directory *directory)
{
    if (directory->lock_fd >= 0) {
        if (!directory->is_reader)
            (void)!ftruncate(directory->lock_fd, 0); /* the pid in it is for a message only */
        (void)close(directory->lock_fd);
    }
    if (directory->fd >= 0)
        (void)close(directory->fd);
    free(directory->path);
    *directory = (struct directory){.fd = -1, .lock_fd = -1};
}

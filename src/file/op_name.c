/*
 * op_name.c -- LOOKUP, REMOVE, RMDIR, RENAME, LINK.
 *
 * `.` and `..` mean something to LOOKUP only; what the others answer is what RFC 1813 says of
 * each.
 */
#include "base/check.h"
#include "file/attributes.h"
#include "file/once.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- LOOKUP ---- */

static void put_dir(struct call *call, const struct stat *st)
{
    call->result.dir_attr.is_there = true;
    attributes_of(call, st, &call->result.dir_attr.attr);
}

static void put_object(struct call *call, const struct stat *st)
{
    call->result.has_fh = true;
    call->result.attr.is_there = true;
    attributes_of(call, st, &call->result.attr.attr);
}

static void put_found(struct call *call, int fd)
{
    struct stat st;
    if (fd < 0)
        (void)call_fail(call, fd == -EXDEV ? NFS_ACCES : call_stat_of(fd));
    else if (resolve_new(call, fd, &call->result.fh, &st) != NULL)
        put_object(call, &st);
}

void op_lookup(struct call *call)
{
    struct stat st;
    char name[CALL_NAME_MAX + 1];
    struct descriptor *directory = resolve_handle(call, call->args.fh, &st);
    if (directory == NULL)
        return;
    put_dir(call, &st);
    if (!S_ISDIR(st.st_mode)) {
        (void)call_fail(call, NFS_NOTDIR);
        return;
    }
    if (call_fail(call, resolve_name(call->args.name, name))->stat != NFS_OK)
        return;
    /* So that the next one need not come here. */
    (void)resolve_may(call, directory, &st, X_OK);
    put_found(call, strcmp(name, "..") == 0 ? resolve_parent(call, directory->path_fd)
                                            : resolve_open_at(directory->path_fd, name, O_PATH));
}

/* On a file system in memory a name is found without opening it, if its file is open already. */
static struct descriptor *find_open(struct call *call, struct descriptor *directory,
                                    const char *name, struct stat *ret)
{
    struct handle_object object;
    int mount_id;
    if (!call->export->is_memory ||
        handle_object_at(directory->path_fd, name, &object, &mount_id) != 0 ||
        mount_id != call->export->mount_id)
        return NULL;
    struct descriptor *found = resolve_open(call, &object, &call->result.fh);
    return found != NULL && fstat(found->path_fd, ret) == 0 && ret->st_nlink != 0 ? found : NULL;
}

/* Only what the kernel has in memory, for a caller that may search the directory. */
bool op_try_lookup(struct call *call)
{
    struct stat st, found;
    char name[CALL_NAME_MAX + 1];
    struct descriptor *directory = resolve_cached(call, call->args.fh, &st);
    if (directory == NULL || !S_ISDIR(st.st_mode) ||
        resolve_name(call->args.name, name) != NFS_OK || strcmp(name, "..") == 0 ||
        !resolve_may_cached(call, directory, &st, X_OK))
        return false;
    if (find_open(call, directory, name, &found) != NULL) {
        put_dir(call, &st);
        put_object(call, &found);
        return true;
    }
    struct open_how how = {
        .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
        .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV | RESOLVE_BENEATH | RESOLVE_CACHED,
    };
    long fd = syscall(SYS_openat2, directory->path_fd, name, &how, sizeof how);
    if (fd < 0 && errno != ENOENT)
        return false;
    put_dir(call, &st);
    put_found(call, fd < 0 ? -ENOENT : (int)fd);
    return true;
}

/* ---- REMOVE, RMDIR ---- */

static void remove_name(struct call *call, int flags, enum nfs_stat dots)
{
    struct directory directory;
    if (!directory_begin(call, dots, &directory))
        return;
    struct handle_object object;
    struct descriptor *victim = directory_find_victim(call, &directory, &object);
    enum once_verdict verdict = once_judge_remove(call, &object);
    if (verdict == ONCE_NEW) {
        once_begin(call, &object, NULL);
        if (unlinkat(directory.descriptor->path_fd, directory.name, flags) != 0)
            (void)call_fail(call, call_stat_of(errno));
        once_end(call);
    } else if (verdict == ONCE_GONE) {
        (void)call_fail(call, NFS_NOENT);
    }
    directory_lose_victim(call, victim);
    directory_end(call, &directory);
}

void op_remove(struct call *call)
{
    remove_name(call, 0, NFS_INVAL);
}

void op_rmdir(struct call *call)
{
    /* RFC 1813: `.` is INVAL, `..` is EXIST. */
    bool is_parent = call->args.name.len == 2;
    remove_name(call, AT_REMOVEDIR, is_parent ? NFS_EXIST : NFS_INVAL);
}

/* ---- RENAME ---- */

void op_rename(struct call *call)
{
    struct directory from, to;
    struct handle_object source, target;
    if (!directory_begin_both(call, NFS_INVAL, &from, &to))
        return;
    directory_look(&from, &source);
    struct descriptor *victim = directory_find_victim(call, &to, &target);
    enum once_verdict verdict = once_judge_rename(call, &source, &target);
    if (verdict == ONCE_NEW) {
        once_begin(call, &source, &target);
        if (renameat(from.descriptor->path_fd, from.name, to.descriptor->path_fd, to.name) != 0)
            (void)call_fail(call, call_stat_of(errno));
        once_end(call);
    } else if (verdict == ONCE_GONE) {
        (void)call_fail(call, NFS_NOENT);
    }
    directory_lose_victim(call, victim);
    directory_end_both(call, &from, &to);
}

/* ---- LINK ---- */

static void link_name(struct call *call, const struct descriptor *object,
                      const struct directory *to)
{
    char path[32];
    struct handle_object now;
    directory_look(to, &now);
    if (once_judge_link(call, &object->object, &now) != ONCE_NEW)
        return;
    once_begin(call, &now, NULL);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", object->path_fd);
    if (linkat(AT_FDCWD, path, to->descriptor->path_fd, to->name, AT_SYMLINK_FOLLOW) != 0)
        (void)call_fail(call, call_stat_of(errno));
    once_end(call);
}

void op_link(struct call *call)
{
    struct stat st;
    struct directory to;
    struct descriptor *object = resolve_handle(call, call->args.fh, &st);
    if (object == NULL)
        return;
    if (!directory_begin_other(call, NFS_EXIST, &to)) {
        attributes_after(call, object->path_fd, &call->result.attr);
        return;
    }
    if (S_ISDIR(st.st_mode))
        (void)call_fail(call, NFS_ISDIR);
    else
        link_name(call, object, &to);
    attributes_after(call, object->path_fd, &call->result.attr);
    directory_end(call, &to);
    if (call->result.stat == NFS_OK && !call->rights->is_async && !call->export->is_journaled)
        call_must_sync(call, object, true);
}

/*
 * resolve.c -- from the handles and names of a call to open objects, and what the caller may do.
 *
 * A handle is checked at three doors: is it ours (the MAC), may this client use its export, and is
 * the file still there. Only then does the thread become the caller.
 *
 * A name is one component, looked up in an open directory by openat2, which follows no symbolic
 * link and leaves neither the directory nor the file system. `..` is looked up on its own: it
 * stays at the root of the export, leads nowhere from a directory that does not lie below it, and
 * not to what was mounted on a directory meanwhile.
 */
#include "base/check.h"
#include "file/attributes.h"
#include "file/call.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

enum nfs_stat resolve_export(struct call *call, struct bytes fh, struct handle_object *ret)
{
    uint32_t id;
    if (!handle_read(call_key(call), fh, &id, ret))
        return NFS_BADHANDLE;
    const struct export *export = export_table_find(call->exports, id);
    const struct export_rights *rights =
        export == NULL ? NULL : export_rights_of(export, &call->from, call->port);
    if (rights == NULL)
        return NFS_ACCES;
    if (call->export != NULL && call->export != export)
        return NFS_XDEV;
    call->export = export;
    call->rights = rights;
    return NFS_OK;
}

/* The call uses it until it is finished. */
static struct descriptor *hold(struct call *call, struct descriptor *descriptor)
{
    CHECK(call->object_count < CALL_OBJECTS_MAX);
    return call->objects[call->object_count++] = descriptor;
}

/* A name that was removed keeps its inode while we have it open. */
bool resolve_look(struct call *call, struct descriptor *descriptor, struct stat *ret)
{
    bool is_known = fstat(descriptor->path_fd, ret) == 0;
    if (is_known && ret->st_nlink != 0)
        return true;
    if (is_known) {
        atomic_store(&descriptor->is_dirty, false);
        descriptor_forget(call_cache(call), descriptor);
        call_found_removed(call, descriptor->export_id, &descriptor->object);
    }
    (void)call_fail(call, NFS_STALE);
    return false;
}

static bool is_root(const struct export *export, const struct stat *st)
{
    return st->st_ino == export->root_inode && st->st_dev == export->device;
}

/* A handle of a file system that was mounted here once may fit an object of the one below it: its
 * root has the same in all of a kind. What a mount begins with is in no export but its own. */
static bool is_outside(const struct export *export, int fd)
{
    struct statx stx;
    return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &stx) != 0 ||
           ((stx.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0 && stx.stx_ino != export->root_inode);
}

/* Leaves the thread as itself, if it has to open it. */
static struct descriptor *open_object(struct call *call, const struct handle_object *object)
{
    struct descriptor *found = descriptor_find(call_cache(call), call->export, object);
    if (found != NULL)
        return hold(call, found);
    identity_own();
    int fd = handle_open(call->export->root_fd, object);
    if (fd < 0) {
        (void)call_fail(call, fd == -ENOENT ? NFS_STALE : call_stat_of(fd));
        return NULL;
    }
    if (is_outside(call->export, fd)) {
        (void)close(fd);
        (void)call_fail(call, NFS_STALE);
        return NULL;
    }
    found = descriptor_add(call_cache(call), call->export, object, fd);
    if (found == NULL)
        (void)call_fail(call, NFS_JUKEBOX);
    return found == NULL ? NULL : hold(call, found);
}

struct descriptor *resolve_object(struct call *call, const struct handle_object *object)
{
    struct descriptor *found = open_object(call, object);
    identity_assume(&call->identity);
    return found;
}

struct descriptor *resolve_other(struct call *call, struct bytes fh)
{
    struct handle_object object;
    enum nfs_stat stat = resolve_export(call, fh, &object);
    if (stat != NFS_OK) {
        (void)call_fail(call, stat);
        return NULL;
    }
    if (!call_take_identity(call)) {
        (void)call_fail(call, NFS_JUKEBOX);
        return NULL;
    }
    struct descriptor *found = open_object(call, &object);
    if (found != NULL)
        identity_assume(&call->identity);
    return found;
}

struct descriptor *resolve_first(struct call *call, struct bytes fh)
{
    call->export = NULL;
    return resolve_other(call, fh);
}

struct descriptor *resolve_handle(struct call *call, struct bytes fh, struct stat *ret)
{
    struct descriptor *found = resolve_first(call, fh);
    return found != NULL && resolve_look(call, found, ret) ? found : NULL;
}

struct descriptor *resolve_for_locks(struct call *call, struct bytes fh)
{
    uint32_t id;
    struct stat st;
    struct handle_object object;
    if (!handle_read(call_key(call), fh, &id, &object))
        return NULL;
    call->export = export_table_find(call->exports, id);
    if (call->export == NULL || call->export->is_elsewhere)
        return NULL;
    struct descriptor *found = open_object(call, &object);
    return found != NULL && resolve_look(call, found, &st) &&
                   descriptor_for_locks(call_cache(call), found) >= 0
               ? found
               : NULL;
}

struct descriptor *resolve_cached(struct call *call, struct bytes fh, struct stat *ret)
{
    struct handle_object object;
    call->export = NULL;
    if (resolve_export(call, fh, &object) != NFS_OK || call->export->is_elsewhere)
        return NULL;
    struct descriptor *found = descriptor_find(call_cache(call), call->export, &object);
    if (found == NULL)
        return NULL;
    (void)hold(call, found);
    if (fstat(found->path_fd, ret) != 0 || ret->st_nlink == 0)
        return NULL;
    return call_take_identity(call) ? found : NULL;
}

enum nfs_stat resolve_name(struct bytes name, char ret[CALL_NAME_MAX + 1])
{
    if (name.len == 0)
        return NFS_ACCES;
    if (name.len > CALL_NAME_MAX)
        return NFS_NAMETOOLONG;
    if (memchr(name.at, 0, name.len) != NULL || memchr(name.at, '/', name.len) != NULL)
        return NFS_ACCES;
    memcpy(ret, name.at, name.len);
    ret[name.len] = 0;
    return NFS_OK;
}

static int open_how(int directory_fd, const char *name, uint64_t flags, uint64_t resolve)
{
    struct open_how how = {.flags = flags | O_NOFOLLOW | O_CLOEXEC,
                           .resolve = resolve | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV};
    for (int tries = 0;; tries++) {
        long fd = syscall(SYS_openat2, directory_fd, name, &how, sizeof how);
        if (fd >= 0)
            return (int)fd;
        if (errno != EAGAIN || tries == 16) /* a rename ran at the same time */
            return -errno;
    }
}

int resolve_open_at(int directory_fd, const char *name, uint64_t flags)
{
    return open_how(directory_fd, name, flags, RESOLVE_BENEATH);
}

/* `.` or `..`. Not to what is mounted on the directory above, nor out of the mount. */
static int open_dots(int directory_fd, const char *name)
{
    return open_how(directory_fd, name, O_PATH | O_DIRECTORY, 0);
}

/* Up to the root of the export: 0. What was moved out of it, or was its root before a reload, meets
 * the root of the file system or of the mount instead: -ESTALE. */
static int climb(const struct export *export, int directory_fd)
{
    struct stat st;
    ino_t below = 0;
    int fd = open_dots(directory_fd, ".");
    while (fd >= 0) {
        int code = fstat(fd, &st) != 0                                 ? -errno
                   : is_root(export, &st)                              ? 0
                   : st.st_dev != export->device || st.st_ino == below ? -ESTALE
                                                                       : 1;
        int above = code > 0 ? open_dots(fd, "..") : -1;
        if (above < 0 && code > 0)
            code = above == -EXDEV ? -ESTALE : above;
        (void)close(fd);
        if (code <= 0)
            return code;
        below = st.st_ino;
        fd = above;
    }
    return fd;
}

int resolve_parent(const struct call *call, int directory_fd)
{
    struct stat st;
    if (fstat(directory_fd, &st) != 0)
        return -errno;
    const char *name = is_root(call->export, &st) ? "." : "..";
    int fd = open_dots(directory_fd, name);
    if (fd < 0)
        return fd;
    identity_own(); /* the caller need not be able to search what lies between */
    int code = climb(call->export, fd);
    identity_assume(&call->identity);
    if (code == 0)
        return fd;
    (void)close(fd);
    return code;
}

struct descriptor *resolve_open(struct call *call, const struct handle_object *object,
                                struct nfs_fh *ret_fh)
{
    struct descriptor *found = descriptor_find(call_cache(call), call->export, object);
    if (found == NULL)
        return NULL;
    handle_make(call_key(call), call->export->id, object, ret_fh);
    return hold(call, found);
}

struct descriptor *resolve_new(struct call *call, int path_fd, struct nfs_fh *ret_fh,
                               struct stat *ret)
{
    struct handle_object object;
    int code = fstat(path_fd, ret) != 0 ? -errno : handle_object_of(path_fd, &object);
    if (code != 0) {
        (void)close(path_fd);
        (void)call_fail(call, code == -EOVERFLOW ? NFS_SERVERFAULT : call_stat_of(code));
        return NULL;
    }
    handle_make(call_key(call), call->export->id, &object, ret_fh);
    struct descriptor *found = descriptor_add(call_cache(call), call->export, &object, path_fd);
    if (found == NULL) {
        (void)call_fail(call, NFS_JUKEBOX);
        return NULL;
    }
    return hold(call, found);
}

/* ---- permissions ---- */

static uint32_t ask_kernel(const struct descriptor *descriptor, uint32_t asked)
{
    static const uint32_t bits[] = {R_OK, W_OK, X_OK};
    uint32_t granted = 0;
    for (int i = 0; i < 3; i++)
        if ((asked & bits[i]) != 0 &&
            faccessat(descriptor->path_fd, "", (int)bits[i], AT_EACCESS | AT_EMPTY_PATH) == 0)
            granted |= bits[i];
    return granted;
}

uint32_t resolve_access(struct call *call, struct descriptor *descriptor, const struct stat *st,
                        uint32_t asked)
{
    uint32_t granted = 0;
    uint32_t known = descriptor_get_access(descriptor, call->identity.mark, &st->st_ctim, &granted);
    uint32_t missing = asked & ~known;
    if (missing != 0) {
        uint32_t found = ask_kernel(descriptor, missing);
        descriptor_set_access(descriptor, call->identity.mark, &st->st_ctim, missing, found);
        granted = (granted & known) | found;
    }
    return granted & asked;
}

bool resolve_may(struct call *call, struct descriptor *descriptor, const struct stat *st,
                 uint32_t mask)
{
    return resolve_access(call, descriptor, st, mask) == mask;
}

bool resolve_may_cached(struct call *call, struct descriptor *descriptor, const struct stat *st,
                        uint32_t mask)
{
    uint32_t granted = 0;
    uint32_t known = descriptor_get_access(descriptor, call->identity.mark, &st->st_ctim, &granted);
    return (known & granted & mask) == mask;
}

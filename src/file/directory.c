/*
 * directory.c -- see directory.h.
 *
 * Always true:
 *  (1) The attributes before and after are taken under the lock that every change through us
 *      takes, so that nothing of ours lies between them but the change itself (weak cache
 *  consistency). (2) Two directories are locked in the order of their addresses.
 */
#include "file/directory.h"

#include "base/check.h"
#include "file/attributes.h"

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static bool take(struct call *call, const struct stat *st, struct bytes name, enum nfs_stat dots,
                 struct directory *directory)
{
    enum nfs_stat stat = resolve_name(name, directory->name);
    if (!S_ISDIR(st->st_mode))
        stat = NFS_NOTDIR;
    else if (!call->rights->is_writable)
        stat = NFS_ROFS;
    else if (stat == NFS_OK && is_dots(directory->name))
        stat = dots;
    if (stat == NFS_OK)
        return true;
    attributes_unchanged(call, st, directory->wcc);
    (void)call_fail(call, stat);
    return false;
}

bool directory_begin(struct call *call, enum nfs_stat dots, struct directory *ret)
{
    struct stat st;
    ret->wcc = &call->result.wcc;
    ret->descriptor = resolve_handle(call, call->args.fh, &st);
    return ret->descriptor != NULL && take(call, &st, call->args.name, dots, ret);
}

bool directory_open_other(struct call *call, struct nfs_wcc *wcc, enum nfs_stat dots,
                          struct directory *ret)
{
    struct stat st;
    ret->wcc = wcc;
    ret->descriptor = resolve_other(call, call->args.to_fh, &st);
    return ret->descriptor != NULL && take(call, &st, call->args.to_name, dots, ret);
}

static void lock(struct descriptor *descriptor)
{
    CHECK(pthread_mutex_lock(&descriptor->mutex) == 0);
}

static void unlock(struct descriptor *descriptor)
{
    CHECK(pthread_mutex_unlock(&descriptor->mutex) == 0);
}

static void look_before(struct directory *directory)
{
    struct stat st;
    if (fstat(directory->descriptor->path_fd, &st) == 0)
        attributes_before(&st, &directory->wcc->before);
}

void directory_lock(struct directory *directory)
{
    lock(directory->descriptor);
    look_before(directory);
}

void directory_lock_both(struct directory *a, struct directory *b)
{
    struct descriptor *first = a->descriptor, *second = b->descriptor;
    if (first > second) {
        first = b->descriptor;
        second = a->descriptor;
    }
    lock(first);
    if (first != second)
        lock(second);
    look_before(a);
    look_before(b);
}

static void look_after(struct call *call, struct directory *directory)
{
    attributes_after(call, directory->descriptor->path_fd, &directory->wcc->after);
    if (call->result.stat == NFS_OK && !call->rights->is_async)
        call_must_sync(call, directory->descriptor, true);
}

void directory_unlock(struct call *call, struct directory *directory)
{
    look_after(call, directory);
    unlock(directory->descriptor);
}

void directory_unlock_both(struct call *call, struct directory *a, struct directory *b)
{
    look_after(call, a);
    look_after(call, b);
    unlock(a->descriptor);
    if (a->descriptor != b->descriptor)
        unlock(b->descriptor);
}

struct descriptor *directory_find_victim(struct call *call, const struct directory *directory)
{
    struct handle_object object;
    if (handle_object_at(directory->descriptor->path_fd, directory->name, &object) != 0)
        return NULL;
    return descriptor_find(call_cache(call), call->export, &object);
}

void directory_lose_victim(struct call *call, struct descriptor *victim)
{
    struct stat st;
    if (victim == NULL)
        return;
    if (fstat(victim->path_fd, &st) == 0 && st.st_nlink == 0) {
        atomic_store(&victim->is_dirty, false);
        descriptor_forget(call_cache(call), victim);
    }
    descriptor_release(call_cache(call), victim);
}

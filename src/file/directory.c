/*
 * directory.c -- see directory.h.
 *
 * Always true:
 *  (1) The attributes before and after are taken under the lock that every change through us
 *      takes, so that nothing of ours lies between them but the change itself (weak cache
 *      consistency).
 *  (2) Two directories are locked in the order of their addresses.
 */
#include "file/directory.h"

#include "base/check.h"
#include "file/attributes.h"

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static void lock(struct descriptor *descriptor)
{
    CHECK(pthread_mutex_lock(&descriptor->mutex) == 0);
}

static void unlock(struct descriptor *descriptor)
{
    CHECK(pthread_mutex_unlock(&descriptor->mutex) == 0);
}

static enum nfs_stat check(const struct call *call, const struct stat *st, struct bytes name,
                           enum nfs_stat dots, struct directory *directory)
{
    enum nfs_stat stat = resolve_name(name, directory->name);
    if (!S_ISDIR(st->st_mode))
        return NFS_NOTDIR;
    if (!call->rights->is_writable)
        return NFS_ROFS;
    return stat == NFS_OK && is_dots(directory->name) ? dots : stat;
}

/* It is locked. False: it is not to be changed. */
static bool take(struct call *call, const struct stat *st, struct bytes name, enum nfs_stat dots,
                 struct directory *directory)
{
    attributes_before(st, &directory->wcc->before);
    if (call_fail(call, check(call, st, name, dots, directory))->stat == NFS_OK)
        return true;
    attributes_unchanged(call, st, directory->wcc);
    return false;
}

static bool begin(struct call *call, struct bytes name, enum nfs_stat dots, struct directory *ret)
{
    struct stat st;
    if (ret->descriptor == NULL)
        return false;
    lock(ret->descriptor);
    if (resolve_look(call, ret->descriptor, &st) && take(call, &st, name, dots, ret))
        return true;
    unlock(ret->descriptor);
    return false;
}

bool directory_begin(struct call *call, enum nfs_stat dots, struct directory *ret)
{
    ret->wcc = &call->result.wcc;
    ret->descriptor = resolve_first(call, call->args.fh);
    return begin(call, call->args.name, dots, ret);
}

bool directory_begin_other(struct call *call, enum nfs_stat dots, struct directory *ret)
{
    ret->wcc = &call->result.wcc;
    ret->descriptor = resolve_other(call, call->args.to_fh);
    return begin(call, call->args.to_name, dots, ret);
}

static void lock_both(struct descriptor *a, struct descriptor *b)
{
    lock(a < b ? a : b);
    if (a != b)
        lock(a < b ? b : a);
}

static void unlock_both(struct descriptor *a, struct descriptor *b)
{
    unlock(a);
    if (a != b)
        unlock(b);
}

/* Both are locked. */
static bool take_both(struct call *call, enum nfs_stat dots, struct directory *from,
                      struct directory *to)
{
    struct stat from_st, to_st;
    if (!resolve_look(call, from->descriptor, &from_st) ||
        !take(call, &from_st, call->args.name, dots, from))
        return false;
    if (to->descriptor == from->descriptor)
        to_st = from_st;
    if ((to->descriptor == from->descriptor || resolve_look(call, to->descriptor, &to_st)) &&
        take(call, &to_st, call->args.to_name, dots, to))
        return true;
    attributes_unchanged(call, &from_st, from->wcc);
    return false;
}

bool directory_begin_both(struct call *call, enum nfs_stat dots, struct directory *from,
                          struct directory *to)
{
    from->wcc = &call->result.wcc;
    to->wcc = &call->result.to_wcc;
    from->descriptor = resolve_first(call, call->args.fh);
    if (from->descriptor == NULL)
        return false;
    to->descriptor = resolve_other(call, call->args.to_fh);
    if (to->descriptor == NULL) {
        attributes_after(call, from->descriptor->path_fd, &from->wcc->after);
        return false;
    }
    lock_both(from->descriptor, to->descriptor);
    if (take_both(call, dots, from, to))
        return true;
    unlock_both(from->descriptor, to->descriptor);
    return false;
}

static void look_after(struct call *call, struct directory *directory)
{
    attributes_after(call, directory->descriptor->path_fd, &directory->wcc->after);
    if (call->result.stat == NFS_OK && !call->rights->is_async)
        call_must_sync(call, directory->descriptor, true);
}

void directory_end(struct call *call, struct directory *directory)
{
    look_after(call, directory);
    unlock(directory->descriptor);
}

void directory_end_both(struct call *call, struct directory *a, struct directory *b)
{
    look_after(call, a);
    if (b->descriptor == a->descriptor)
        b->wcc->after = a->wcc->after;
    else
        look_after(call, b);
    unlock_both(a->descriptor, b->descriptor);
}

void directory_look(const struct directory *directory, struct handle_object *ret)
{
    int ignored; /* on what is mounted there the kernel refuses the change */
    if (handle_object_at(directory->descriptor->path_fd, directory->name, ret, &ignored) != 0)
        *ret = (struct handle_object){0};
}

struct descriptor *directory_find_victim(struct call *call, const struct directory *directory,
                                         struct handle_object *ret)
{
    directory_look(directory, ret);
    return ret->len == 0 ? NULL : descriptor_find(call_cache(call), call->export, ret);
}

void directory_lose_victim(struct call *call, struct descriptor *victim)
{
    struct stat st;
    if (victim == NULL)
        return;
    if (fstat(victim->path_fd, &st) == 0 && st.st_nlink == 0) {
        atomic_store(&victim->is_dirty, false);
        descriptor_forget(call_cache(call), victim);
        call_found_removed(call, victim->export_id, &victim->object);
    }
    descriptor_release(call_cache(call), victim);
}

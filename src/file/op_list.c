/*
 * op_list.c -- READDIR and READDIRPLUS.
 *
 * A cookie is the file system's own position behind an entry, so a listing continues wherever it
 * was, also after a restart, and needs no memory of ours. The verifier is constant: positions stay
 * valid while entries come and go, and clients restart a listing whose verifier changes.
 *
 * Each call opens the directory for itself, because a position belongs to an open file. Entries
 * are taken until the reply is full; the kernel's buffer may hold more, which the next call reads
 * again.
 *
 * Handle and attributes that READDIRPLUS gives are those of one object. They are looked up by name,
 * one after the other; where the object changed at about that time, another one may have had its
 * name, and it is opened for both. An entry that is gone meanwhile, or that the caller may not
 * look up, or on which something is mounted, has neither.
 */
#include "base/check.h"
#include "base/minmax.h"
#include "file/attributes.h"
#include "file/call.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { KERNEL_BUFFER = 32768, KERNEL_BUFFER_MIN = 1024 };

struct listing {
    struct call *call;
    int fd;
    bool is_root, is_plus;
    uint64_t parent_inode;   /* of `..` when is_root: the root itself */
    uint32_t room, dir_room; /* bytes that are left of count or maxcount, and of dircount */
    uint32_t entry_count;
    struct timespec begin;
    struct xdr_out out;
};

/* As the kernel writes it. */
struct kernel_entry {
    uint64_t inode;
    int64_t next;
    uint16_t len;
    uint8_t type;
    char name[];
};

/* Its object had this name when the listing began, and was not renamed, linked or removed since:
 * that would have changed its ctime. Times of many file systems advance by this much at a time. */
static bool is_old(const struct listing *listing, const struct stat *st)
{
    const int64_t second = 1000000000, step = 20000000;
    int64_t seconds = listing->begin.tv_sec - st->st_ctim.tv_sec;
    if (seconds < 0 || seconds > 1)
        return seconds > 1;
    return seconds * second + listing->begin.tv_nsec - st->st_ctim.tv_nsec > step;
}

/* By name, without opening it. False: it may be somebody else's, or is not ours to show. */
static bool look_at_name(const struct listing *listing, const struct kernel_entry *entry,
                         struct stat *ret_st, struct handle_object *ret_object)
{
    const struct export *export = listing->call->export;
    int mount_id;
    return handle_object_at(listing->fd, entry->name, ret_object, &mount_id) == 0 &&
           mount_id == export->mount_id &&
           fstatat(listing->fd, entry->name, ret_st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) == 0 &&
           ret_st->st_dev == export->device && ret_st->st_ino == entry->inode &&
           is_old(listing, ret_st);
}

static bool look_at_object(const struct listing *listing, const char *name, struct stat *ret_st,
                           struct handle_object *ret_object)
{
    const struct call *call = listing->call;
    int fd = strcmp(name, "..") == 0 ? resolve_parent(call, listing->fd)
                                     : resolve_open_at(listing->fd, name, O_PATH);
    if (fd < 0)
        return false;
    bool is_known = fstat(fd, ret_st) == 0 && ret_st->st_dev == call->export->device &&
                    handle_object_of(fd, ret_object) == 0;
    (void)close(fd);
    return is_known;
}

/* What READDIRPLUS says of an entry beyond its name. */
static bool look_at(const struct listing *listing, const struct kernel_entry *entry,
                    struct nfs_attr *ret_attr, struct nfs_fh *ret_fh)
{
    const struct call *call = listing->call;
    struct handle_object object;
    struct stat st;
    bool is_parent = strcmp(entry->name, "..") == 0;
    if ((is_parent || !look_at_name(listing, entry, &st, &object)) &&
        !look_at_object(listing, entry->name, &st, &object))
        return false;
    attributes_of(call, &st, ret_attr);
    handle_make(call_key(call), call->export->id, &object, ret_fh);
    return true;
}

/* False: it does not fit any more. */
static bool put_entry(struct listing *listing, const struct kernel_entry *from)
{
    enum nfs_procedure procedure = (enum nfs_procedure)listing->call->procedure;
    struct nfs_attr attr;
    struct nfs_fh fh;
    struct nfs_entry entry = {
        .fileid = from->inode, .cookie = (uint64_t)from->next, .name = bytes_of_text(from->name)};
    if (listing->is_root && strcmp(from->name, "..") == 0)
        entry.fileid = listing->parent_inode;
    uint32_t dir_len = nfs_results_dircount_len(&entry);
    if (listing->is_plus && dir_len > listing->dir_room && listing->entry_count > 0)
        return false;
    if (listing->is_plus && look_at(listing, from, &attr, &fh)) {
        entry.fileid = attr.fileid;
        entry.attr = &attr;
        entry.fh = &fh;
    }
    uint32_t len = nfs_results_entry_len(procedure, &entry);
    if (len > listing->room)
        return false;
    nfs_results_put_entry(&listing->out, procedure, &entry);
    listing->room -= len;
    listing->dir_room -= min_u32(dir_len, listing->dir_room);
    listing->entry_count++;
    return true;
}

/* What the kernel is asked for: no more than fits about into what is left of the reply, where an
 * entry with a handle and attributes takes some four times as much. */
static uint32_t buffer_size(const struct listing *listing)
{
    uint32_t size =
        listing->is_plus ? min_u32(listing->room / 4, listing->dir_room) : listing->room;
    size = min_u32(size, KERNEL_BUFFER);
    return size < KERNEL_BUFFER_MIN ? (uint32_t)KERNEL_BUFFER_MIN : size;
}

/* 1: the end was reached; 0: the reply is full; or -errno. */
static int put_entries(struct listing *listing)
{
    _Alignas(struct kernel_entry) static _Thread_local char buffer[KERNEL_BUFFER];
    for (;;) {
        long len = syscall(SYS_getdents64, listing->fd, buffer, buffer_size(listing));
        if (len <= 0)
            return len == 0 ? 1 : -errno;
        for (long at = 0; at < len;) {
            const struct kernel_entry *entry = (const void *)(buffer + at);
            if (!put_entry(listing, entry))
                return 0;
            at += entry->len;
        }
    }
}

static enum nfs_stat list(struct listing *listing)
{
    struct call *call = listing->call;
    if (call->args.cookie > INT64_MAX ||
        (call->args.cookie != 0 && lseek(listing->fd, (off_t)call->args.cookie, SEEK_SET) < 0))
        return NFS_BAD_COOKIE;
    int code = put_entries(listing);
    if (code < 0)
        return call_stat_of(code);
    if (code == 0 && listing->entry_count == 0)
        return NFS_TOOSMALL;
    nfs_results_put_entries_end(&listing->out, code == 1);
    CHECK(!listing->out.overflowed);
    call->result.payload_len = xdr_out_len(&listing->out);
    return NFS_OK;
}

void op_readdir(struct call *call)
{
    struct stat st;
    struct descriptor *directory = resolve_handle(call, call->args.fh, &st);
    if (directory == NULL)
        return;
    attributes_after(call, directory->path_fd, &call->result.attr);
    if (!S_ISDIR(st.st_mode)) {
        (void)call_fail(call, NFS_NOTDIR);
        return;
    }
    uint32_t count = min_u32(call->args.count, call->payload_max);
    if (count < NFS_DIR_HEAD_MAX + NFS_ENTRIES_END_LEN) {
        (void)call_fail(call, NFS_TOOSMALL);
        return;
    }
    bool is_plus = call->procedure == NFS_READDIRPLUS;
    /* Not by its name `.`: that would need the right to search it, too. */
    char path[32];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", directory->path_fd);
    struct listing listing = {
        .call = call,
        .fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
        .is_root = st.st_ino == call->export->root_inode && st.st_dev == call->export->device,
        .is_plus = is_plus,
        .parent_inode = st.st_ino,
        .room = count - NFS_DIR_HEAD_MAX - NFS_ENTRIES_END_LEN,
        .dir_room = is_plus ? call->args.dircount : UINT32_MAX,
        .out = xdr_out_of(call_payload(call), call->payload_max),
    };
    if (listing.fd < 0) {
        (void)call_fail(call, call_stat_of(errno));
        return;
    }
    CHECK(clock_gettime(CLOCK_REALTIME, &listing.begin) == 0);
    call->result.stat = list(&listing);
    (void)close(listing.fd);
    /* Reading it may have changed the time of access. */
    attributes_after(call, directory->path_fd, &call->result.attr);
}

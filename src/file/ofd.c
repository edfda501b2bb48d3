/*
 * ofd.c -- see ofd.h.
 *
 * Always true: the kernel holds for a file's descriptor what `pieces` says. It is changed first,
 * and what it refuses is not written down.
 *
 * The kernel counts bytes to 2^63 - 1. Locks that begin behind that are nobody's but a client's,
 * and are not mirrored.
 */
#include "file/ofd.h"

#include "base/check.h"
#include "base/hash.h"
#include "base/hash_index.h"
#include "base/list.h"
#include "base/minmax.h"
#include "base/table.h"
#include "base/units.h"
#include "file/lock_guard.h"
#include "file/pieces.h"
#include "file/service.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>

enum { UNUSED_MS = 500 };

struct ofd_file {
    uint32_t fh_len;
    uint8_t fh[HANDLE_MAX];
    struct descriptor *descriptor; /* pinned */
    int fd;                        /* of its */
    bool is_writable;
    bool is_whole;  /* held as one piece, whatever is asked for */
    bool had_locks; /* of an earlier server: the kernel may hold more than is known here */
    bool is_unused;
    uint64_t unused_ms; /* since when */
    struct list unused;
    struct pieces pieces;
};

struct ofd {
    struct file_service *service;
    struct local_locks local;
    struct table files;
    struct hash_index by_handle;
    struct list unused; /* files that the core has closed, oldest first */
    bool is_started;
};

#define WHOLE(of_mode) (&(struct local_range){.start = 0, .end = UINT64_MAX, .mode = (of_mode)})

static struct ofd_file *file_at(struct ofd *ofd, uint32_t file)
{
    CHECK(table_is_live(&ofd->files, file));
    return table_at(&ofd->files, file);
}

/* ---- the kernel ---- */

/* False: there is nothing of it that the kernel knows. */
static bool shape(const struct local_range *range, struct flock *ret)
{
    if (range->start > INT64_MAX)
        return false;
    *ret = (struct flock){
        .l_type = range->mode == LOCAL_NONE     ? F_UNLCK
                  : range->mode == LOCAL_SHARED ? F_RDLCK
                                                : F_WRLCK,
        .l_whence = SEEK_SET,
        .l_start = (off_t)range->start,
        .l_len = range->end >= INT64_MAX ? 0 : (off_t)(range->end - range->start + 1),
    };
    return true;
}

static bool set_kernel(const struct ofd_file *file, const struct local_range *range)
{
    struct flock flock;
    if (!shape(range, &flock))
        return true;
    if (flock.l_type == F_WRLCK && !file->is_writable)
        flock.l_type = F_RDLCK;
    return fcntl(file->fd, F_OFD_SETLK, &flock) == 0;
}

static bool set_both(struct ofd_file *file, const struct local_range *range)
{
    if (!pieces_reserve(&file->pieces) || !set_kernel(file, range))
        return false;
    pieces_set(&file->pieces, range);
    return true;
}

/* ---- open and close ---- */

/* While nobody is served yet, a file may be waited for. */
static struct descriptor *open_now(struct file_service *service, struct bytes fh)
{
    const struct peer nobody = {0};
    const struct rpc_credential none = {0};
    const struct job_request request = {
        .program = LOCK_GUARD_PROGRAM, .from = &nobody, .credential = &none, .args = fh};
    struct call *call = file_take_call(service, &request, 0);
    if (call == NULL)
        return NULL;
    struct descriptor *found = resolve_for_locks(call, fh);
    if (found != NULL)
        descriptor_pin(service->descriptors, found);
    call_release_objects(call);
    file_give_back(service, call);
    return found;
}

static struct descriptor *find_open(struct file_service *service, struct bytes fh)
{
    uint32_t id;
    struct handle_object object;
    const struct export *export = NULL;
    if (handle_read(&service->options.key, fh, &id, &object))
        export = export_table_find(service->exports, id);
    if (export == NULL || export->is_elsewhere)
        return NULL;
    struct descriptor *found = descriptor_find(service->descriptors, export, &object);
    if (found == NULL)
        return NULL;
    descriptor_pin(service->descriptors, found);
    descriptor_release(service->descriptors, found);
    return found;
}

static void unpin(struct ofd *ofd, struct descriptor *descriptor)
{
    descriptor_unpin(ofd->service->descriptors, descriptor);
}

/* Programs could lock it, if it were open: it is not known to be something else than a file. */
static bool may_be_locked(const struct file_service *service, struct bytes fh,
                          const struct descriptor *descriptor)
{
    uint32_t id;
    struct stat st;
    struct handle_object object;
    const struct export *export = NULL;
    if (handle_read(&service->options.key, fh, &id, &object))
        export = export_table_find(service->exports, id);
    return export != NULL && !export->is_elsewhere &&
           (descriptor == NULL || fstat(descriptor->path_fd, &st) != 0 || S_ISREG(st.st_mode));
}

/* This file, used or not. */
static uint32_t find_file(struct ofd *ofd, struct bytes fh, uint64_t hash)
{
    uint32_t slot = hash_index_first(&ofd->by_handle, hash);
    for (; slot != SLOT_NONE; slot = hash_index_next(&ofd->by_handle, slot)) {
        const struct ofd_file *file = file_at(ofd, slot);
        if (file->fh_len == fh.len && memcmp(file->fh, fh.at, fh.len) == 0)
            return slot;
    }
    return SLOT_NONE;
}

static void forget(struct ofd *ofd, uint32_t slot)
{
    struct ofd_file *file = file_at(ofd, slot);
    list_remove(&file->unused);
    hash_index_remove(&ofd->by_handle, slot);
    pieces_done(&file->pieces);
    unpin(ofd, file->descriptor);
    table_remove(&ofd->files, slot);
}

static uint32_t add(struct ofd *ofd, struct bytes fh, uint64_t hash)
{
    if (ofd->files.count == ofd->files.max && !list_is_empty(&ofd->unused)) {
        const struct ofd_file *oldest = LIST_ELEMENT(ofd->unused.next, struct ofd_file, unused);
        forget(ofd, table_slot(&ofd->files, oldest));
    }
    if (ofd->files.count == ofd->files.max)
        return LOCAL_NO_ROOM;
    struct descriptor *found =
        ofd->is_started ? find_open(ofd->service, fh) : open_now(ofd->service, fh);
    int fd = found == NULL ? -1 : atomic_load(&found->lock_fd);
    if (fd < 0) {
        bool is_lockable = may_be_locked(ofd->service, fh, found);
        if (found != NULL)
            unpin(ofd, found);
        return is_lockable ? LOCAL_NOT_NOW : LOCAL_NO_FILE;
    }
    uint32_t slot = table_add(&ofd->files);
    struct ofd_file *file = file_at(ofd, slot);
    *file = (struct ofd_file){.fh_len = fh.len,
                              .descriptor = found,
                              .fd = fd,
                              .had_locks = found->had_locks,
                              .is_writable = (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR};
    memcpy(file->fh, fh.at, fh.len);
    list_init(&file->unused);
    hash_index_add(&ofd->by_handle, hash, slot);
    return slot;
}

static uint32_t open_file(void *context, struct bytes fh)
{
    struct ofd *ofd = context;
    if (fh.len > HANDLE_MAX)
        return LOCAL_NO_FILE;
    uint64_t hash = hash_bytes(ofd->service->options.seed, fh);
    uint32_t slot = find_file(ofd, fh, hash);
    CHECK(slot == SLOT_NONE || file_at(ofd, slot)->is_unused);
    if (slot != SLOT_NONE &&
        !descriptor_is_cached(ofd->service->descriptors, file_at(ofd, slot)->descriptor)) {
        forget(ofd, slot); /* removed, or of an export that is another one now */
        slot = SLOT_NONE;
    }
    if (slot == SLOT_NONE)
        return add(ofd, fh, hash);
    file_at(ofd, slot)->is_unused = false;
    list_remove(&file_at(ofd, slot)->unused);
    return slot;
}

static uint64_t now_ms(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC_COARSE, &now) == 0);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / MS_NS;
}

/* Nothing is left of it. The kernel gives back a whole file at the least cost. */
static bool give_back_all(struct ofd_file *file)
{
    if (!set_kernel(file, WHOLE(LOCAL_NONE)))
        return false;
    file->pieces.count = 0;
    return true;
}

/* It stays for a moment: what was locked is often locked again. */
static void close_file(void *context, uint32_t slot)
{
    struct ofd *ofd = context;
    struct ofd_file *file = file_at(ofd, slot);
    bool is_free = (file->pieces.count == 0 && !file->had_locks) || give_back_all(file);
    file->pieces.count = 0;
    file->is_whole = false;
    /* Without memory the kernel keeps it until the descriptor is closed, soon, or lowered. */
    file->had_locks = file->descriptor->had_locks = !is_free;
    file->is_unused = true;
    file->unused_ms = now_ms();
    list_append(&ofd->unused, &file->unused);
}

void ofd_tick(struct ofd *ofd)
{
    if (list_is_empty(&ofd->unused))
        return;
    for (uint64_t now = now_ms(); !list_is_empty(&ofd->unused);) {
        const struct ofd_file *oldest = LIST_ELEMENT(ofd->unused.next, struct ofd_file, unused);
        if (now - oldest->unused_ms < UNUSED_MS)
            return;
        forget(ofd, table_slot(&ofd->files, oldest));
    }
}

/* ---- more and less ---- */

/* Too many pieces: all of it becomes one. */
static bool take_whole(struct ofd_file *file)
{
    if (!set_both(file, WHOLE(LOCAL_EXCLUSIVE)))
        return false;
    file->is_whole = true;
    return true;
}

/* What is weaker inside the range is raised, piece by piece; what is stronger stays. False: one was
 * refused, at this byte. */
static bool raise_pieces(struct ofd_file *file, const struct local_range *range,
                         struct pieces *before, uint64_t *ret_at)
{
    uint64_t at = range->start;
    for (;; at++) {
        struct local_range piece = pieces_at(before, at, range->end);
        enum local_mode mode = piece.mode;
        piece.mode = range->mode;
        *ret_at = at;
        if (mode < range->mode && !set_both(file, &piece))
            return false;
        at = piece.end;
        if (at == range->end)
            return true;
    }
}

/* As it was before, in front of this byte. */
static void take_back(struct ofd_file *file, const struct local_range *range,
                      const struct pieces *before, uint64_t end)
{
    for (uint64_t at = range->start; at < end; at++) {
        const struct local_range piece = pieces_at(before, at, end - 1);
        if (piece.mode < range->mode)
            (void)set_both(file, &piece);
        at = piece.end;
    }
}

/* Is anything in the range weaker, or stronger, than this mode? */
static void compare(const struct pieces *pieces, const struct local_range *range,
                    bool *ret_is_weaker, bool *ret_is_stronger)
{
    uint64_t at = range->start;
    *ret_is_weaker = *ret_is_stronger = false;
    for (;; at++) {
        const struct local_range piece = pieces_at(pieces, at, range->end);
        *ret_is_weaker |= piece.mode < range->mode;
        *ret_is_stronger |= piece.mode > range->mode;
        at = piece.end;
        if (at == range->end)
            return;
    }
}

static bool raise_file(void *context, uint32_t slot, const struct local_range *range)
{
    struct ofd_file *file = file_at(context, slot);
    bool is_weaker, is_stronger;
    if (file->is_whole)
        return true;
    compare(&file->pieces, range, &is_weaker, &is_stronger);
    if (!is_weaker)
        return true;
    if (file->pieces.count >= OFD_PIECES_MAX)
        return take_whole(file);
    if (!is_stronger)
        return set_both(file, range);
    struct pieces before = {.count = file->pieces.count, .room = file->pieces.count};
    before.at = malloc(before.count * sizeof *before.at);
    if (before.at == NULL)
        return false;
    memcpy(before.at, file->pieces.at, before.count * sizeof *before.at);
    uint64_t refused_at;
    bool is_raised = raise_pieces(file, range, &before, &refused_at);
    if (!is_raised)
        take_back(file, range, &before, refused_at);
    pieces_done(&before);
    return is_raised;
}

static bool covers_all(const struct local_range *range, const struct pieces *pieces)
{
    return pieces->count > 0 && range->start <= pieces->at[0].start &&
           range->end >= pieces->at[pieces->count - 1].end;
}

static bool lower_file(void *context, uint32_t slot, const struct local_range *range)
{
    struct ofd_file *file = file_at(context, slot);
    if (file->is_whole)
        return false;
    if (range->mode == LOCAL_NONE && !file->had_locks && covers_all(range, &file->pieces) &&
        give_back_all(file))
        return true;
    if (file->had_locks && range->mode == LOCAL_NONE)
        (void)set_kernel(file, range);
    for (uint64_t at = range->start;; at++) {
        struct local_range piece = pieces_at(&file->pieces, at, range->end);
        at = piece.end;
        bool is_last = at == range->end;
        if (piece.mode > range->mode) {
            piece.mode = range->mode;
            (void)set_both(file, &piece); /* out of memory: more is held than need be */
        }
        if (is_last)
            return true;
    }
}

static void refine_file(void *context, uint32_t slot)
{
    file_at(context, slot)->is_whole = false;
}

static bool find_holder(void *context, struct bytes fh, const struct local_range *range,
                        struct local_holder *ret)
{
    struct ofd *ofd = context;
    struct flock flock;
    if (fh.len > HANDLE_MAX || !shape(range, &flock))
        return false;
    /* By the descriptor that has our own locks: to another one they are somebody else's. */
    uint32_t slot = find_file(ofd, fh, hash_bytes(ofd->service->options.seed, fh));
    struct descriptor *found = slot == SLOT_NONE ? find_open(ofd->service, fh) : NULL;
    int fd = slot != SLOT_NONE ? file_at(ofd, slot)->fd
             : found != NULL   ? atomic_load(&found->lock_fd)
                               : -1;
    bool is_found = fd >= 0 && fcntl(fd, F_OFD_GETLK, &flock) == 0 && flock.l_type != F_UNLCK;
    if (found != NULL)
        unpin(ofd, found);
    if (!is_found)
        return false;
    uint64_t start = (uint64_t)flock.l_start, len = (uint64_t)flock.l_len;
    *ret = (struct local_holder){
        .range = {start, len == 0 ? UINT64_MAX : start + len - 1,
                  flock.l_type == F_WRLCK ? LOCAL_EXCLUSIVE : LOCAL_SHARED},
        .pid = flock.l_pid > 0 ? (uint32_t)flock.l_pid : 0,
    };
    return true;
}

/* ---- life ---- */

struct ofd *ofd_new(struct file_service *service, uint32_t files_max)
{
    struct ofd *ofd = calloc(1, sizeof *ofd);
    if (ofd == NULL)
        return NULL;
    list_init(&ofd->unused);
    if (table_init(&ofd->files, files_max, sizeof(struct ofd_file)) != 0 ||
        hash_index_init(&ofd->by_handle, files_max) != 0) {
        table_done(&ofd->files);
        free(ofd);
        return NULL;
    }
    ofd->service = service;
    ofd->local = (struct local_locks){.open = open_file,
                                      .close = close_file,
                                      .raise = raise_file,
                                      .lower = lower_file,
                                      .refine = refine_file,
                                      .find = find_holder,
                                      .context = ofd};
    return ofd;
}

void ofd_free(struct ofd *ofd)
{
    if (ofd == NULL)
        return;
    for (uint32_t slot = table_next(&ofd->files, SLOT_NONE); slot != SLOT_NONE;
         slot = table_next(&ofd->files, slot)) {
        pieces_done(&file_at(ofd, slot)->pieces);
        unpin(ofd, file_at(ofd, slot)->descriptor);
    }
    table_done(&ofd->files);
    hash_index_done(&ofd->by_handle);
    free(ofd);
}

const struct local_locks *ofd_local(struct ofd *ofd)
{
    return &ofd->local;
}

void ofd_end_start(struct ofd *ofd)
{
    ofd->is_started = true;
}

void ofd_begin_start(struct ofd *ofd)
{
    ofd->is_started = false;
}

uint32_t ofd_count(const struct ofd *ofd)
{
    uint32_t count = ofd->files.count;
    for (const struct list *at = ofd->unused.next; at != &ofd->unused; at = at->next)
        count--;
    return count;
}

/*
 * descriptor.c -- see descriptor.h.
 *
 *            find, add                        release by the last user
 *   (none) -----------> IN USE <--------------------------------------+
 *                        |  ^  find                                   |
 *                        |  +--------- UNUSED <-----------------------+ cached
 *                        |               | too many, too long, forgotten
 *                        +---------------+----> OVER ---> closed by a sweep of its lane
 *                          not cached
 *
 * Always true:
 *  (1) A file has one cached entry: its mutex is the file's.
 *  (2) A descriptor of an entry that has a user is not closed.
 *  (3) What was written through an entry is synced before it is closed: the kernel may forget that
 *      writing back failed once nobody has the file open, and a later COMMIT would not hear of it.
 */
#include "base/hash.h"
#include "file/descriptor_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Timestamps of many file systems advance by this much at a time, those of some by seconds. */
#define CTIME_STEP_NS   INT64_C(20000000)
#define CTIME_COARSE_NS INT64_C(3000000000)

struct descriptor_cache *descriptor_cache_new(uint32_t files_max, uint64_t seed,
                                              const struct file_system *system,
                                              const struct descriptor_owner *owner)
{
    struct descriptor_cache *cache = calloc(1, sizeof *cache);
    if (cache == NULL)
        return NULL;
    cache->files_max = files_max;
    cache->seed = seed;
    cache->system = system;
    cache->owner = *owner;
    for (cache->bucket_count = 64; cache->bucket_count < files_max;)
        cache->bucket_count *= 2;
    cache->buckets = calloc(cache->bucket_count, sizeof(struct descriptor *));
    if (cache->buckets == NULL) {
        free(cache);
        return NULL;
    }
    list_init(&cache->unused);
    list_init(&cache->writers);
    list_init(&cache->over);
    CHECK(pthread_mutex_init(&cache->mutex, NULL) == 0);
    return cache;
}

static struct descriptor **bucket_of(struct descriptor_cache *cache, uint32_t export_id,
                                     const struct handle_object *object)
{
    uint64_t hash = hash_bytes(cache->seed ^ export_id, (struct bytes){object->bytes, object->len});
    return &cache->buckets[hash & (cache->bucket_count - 1)];
}

static struct descriptor *find(struct descriptor_cache *cache, const struct export *export,
                               const struct handle_object *object)
{
    struct descriptor *at = *bucket_of(cache, export->id, object);
    while (at != NULL && (at->export_id != export->id || at->device != export->device ||
                          at->object.type != object->type || at->object.len != object->len ||
                          memcmp(at->object.bytes, object->bytes, object->len) != 0))
        at = at->next;
    return at;
}

static void use(struct descriptor *descriptor)
{
    if (descriptor->users++ == 0)
        list_remove(&descriptor->link);
}

void descriptor_uncache(struct descriptor_cache *cache, struct descriptor *descriptor)
{
    struct descriptor **at = bucket_of(cache, descriptor->export_id, &descriptor->object);
    while (*at != descriptor)
        at = &(*at)->next;
    *at = descriptor->next;
    descriptor->next = NULL;
    descriptor->is_cached = false;
    list_remove(&descriptor->writer_link);
}

struct descriptor *descriptor_find(struct descriptor_cache *cache, const struct export *export,
                                   const struct handle_object *object)
{
    descriptor_lock(cache);
    struct descriptor *found = find(cache, export, object);
    if (found != NULL)
        use(found);
    descriptor_unlock(cache);
    return found;
}

static struct descriptor *make(const struct export *export, const struct handle_object *object,
                               int path_fd)
{
    struct descriptor *descriptor = calloc(1, sizeof *descriptor);
    if (descriptor == NULL)
        return NULL;
    descriptor->export_id = export->id;
    descriptor->device = export->device;
    descriptor->lane = lane_keep(export->lane);
    descriptor->object = *object;
    descriptor->path_fd = path_fd;
    atomic_init(&descriptor->read_fd, -1);
    atomic_init(&descriptor->write_fd, -1);
    atomic_init(&descriptor->lock_fd, -1);
    list_init(&descriptor->link);
    list_init(&descriptor->writer_link);
    list_init(&descriptor->sync_link);
    list_init(&descriptor->sync_waiters);
    CHECK(pthread_mutex_init(&descriptor->mutex, NULL) == 0);
    CHECK(pthread_mutex_init(&descriptor->access_mutex, NULL) == 0);
    return descriptor;
}

struct descriptor *descriptor_add(struct descriptor_cache *cache, const struct export *export,
                                  const struct handle_object *object, int path_fd)
{
    struct descriptor *fresh = make(export, object, path_fd);
    if (fresh == NULL) {
        (void)close(path_fd);
        return NULL;
    }
    descriptor_lock(cache);
    struct descriptor *found = find(cache, export, object);
    if (found != NULL) {
        use(found);
    } else {
        struct descriptor **bucket = bucket_of(cache, export->id, object);
        fresh->users = 1;
        fresh->is_cached = true;
        fresh->next = *bucket;
        *bucket = fresh;
    }
    descriptor_unlock(cache);
    if (found == NULL) {
        atomic_fetch_add(&cache->open_count, 1);
        return fresh;
    }
    (void)close(path_fd);
    lane_drop(fresh->lane);
    free(fresh);
    return found;
}

void descriptor_keep(struct descriptor_cache *cache, struct descriptor *descriptor)
{
    descriptor_lock(cache);
    use(descriptor);
    descriptor_unlock(cache);
}

void descriptor_release(struct descriptor_cache *cache, struct descriptor *descriptor)
{
    if (descriptor == NULL)
        return;
    descriptor_lock(cache);
    CHECK(descriptor->users > 0);
    if (--descriptor->users == 0) {
        descriptor->released = atomic_load(&cache->now);
        if (descriptor->is_cached)
            list_append(&cache->unused, &descriptor->link);
        else
            descriptor_set_over(cache, descriptor);
    }
    descriptor_unlock(cache);
}

void descriptor_forget(struct descriptor_cache *cache, struct descriptor *descriptor)
{
    descriptor_lock(cache);
    if (descriptor->is_cached)
        descriptor_retire(cache, descriptor);
    descriptor_unlock(cache);
}

void descriptor_forget_others(struct descriptor_cache *cache, const struct export_table *table)
{
    descriptor_lock(cache);
    for (uint32_t i = 0; i < cache->bucket_count; i++)
        for (struct descriptor *at = cache->buckets[i], *next; at != NULL; at = next) {
            next = at->next;
            const struct export *export = export_table_find(table, at->export_id);
            if (export == NULL || export->device != at->device)
                descriptor_retire(cache, at);
        }
    descriptor_unlock(cache);
}

/* ---- data ---- */

static int open_data(struct descriptor_cache *cache, const struct descriptor *descriptor, int flags)
{
    struct stat st;
    if (fstat(descriptor->path_fd, &st) != 0)
        return -errno;
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return -EINVAL;
    char path[32];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor->path_fd);
    int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -errno;
    atomic_fetch_add(&cache->open_count, 1);
    return fd;
}

/* The first of two threads wins; the other one's descriptor goes. */
static int keep_data(struct descriptor_cache *cache, atomic_int *place, int fd)
{
    int none = -1;
    if (atomic_compare_exchange_strong(place, &none, fd))
        return fd;
    (void)close(fd);
    atomic_fetch_sub(&cache->open_count, 1);
    return none;
}

int descriptor_open_for_reading(const struct descriptor *descriptor)
{
    int fd = atomic_load(&descriptor->read_fd);
    return fd >= 0 ? fd : atomic_load(&descriptor->write_fd);
}

int descriptor_for_reading(struct descriptor_cache *cache, struct descriptor *descriptor)
{
    int fd = descriptor_open_for_reading(descriptor);
    if (fd >= 0)
        return fd;
    fd = open_data(cache, descriptor, O_RDONLY);
    return fd < 0 ? fd : keep_data(cache, &descriptor->read_fd, fd);
}

int descriptor_for_writing(struct descriptor_cache *cache, struct descriptor *descriptor)
{
    atomic_store(&descriptor->written, atomic_load(&cache->now));
    int fd = atomic_load(&descriptor->write_fd);
    if (fd >= 0)
        return fd;
    fd = open_data(cache, descriptor, O_RDWR);
    if (fd < 0)
        return fd;
    fd = keep_data(cache, &descriptor->write_fd, fd);
    descriptor_lock(cache);
    if (descriptor->is_cached && list_is_empty(&descriptor->writer_link))
        list_append(&cache->writers, &descriptor->writer_link);
    descriptor_unlock(cache);
    return fd;
}

static bool meets_locks(int fd)
{
    struct flock flock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_GETLK, &flock) == 0 && flock.l_type != F_UNLCK;
}

/* Who sees the descriptor, and takes the mutex after that, sees the rest, too. */
static int keep_for_locks(struct descriptor_cache *cache, struct descriptor *descriptor, int fd,
                          uint64_t id, bool had_locks)
{
    descriptor_lock(cache);
    int kept = keep_data(cache, &descriptor->lock_fd, fd);
    if (kept == fd) {
        descriptor->had_locks = had_locks;
        descriptor->kept_id = id;
    }
    descriptor_unlock(cache);
    if (kept != fd)
        keeper_drop(cache->keeper, id);
    return kept;
}

/* The one that an earlier server had locks on, if it is of this very file: while the server starts,
 * or when a reload brings its export back. */
static int take_kept(struct descriptor_cache *cache, struct descriptor *descriptor,
                     const struct stat *st)
{
    uint64_t id = 0, other_id;
    struct stat kept;
    int fd = keeper_take(cache->keeper, descriptor->export_id, &descriptor->object, &id);
    if (fd < 0)
        return -1;
    /* There may be two of one file: the one with the locks is the one that meets none. */
    for (int other; (other = keeper_take(cache->keeper, descriptor->export_id, &descriptor->object,
                                         &other_id)) >= 0;) {
        bool is_better = meets_locks(fd) && !meets_locks(other);
        (void)close(is_better ? fd : other);
        keeper_drop(cache->keeper, is_better ? id : other_id);
        fd = is_better ? other : fd;
        id = is_better ? other_id : id;
    }
    if (fstat(fd, &kept) != 0 || kept.st_ino != st->st_ino || kept.st_dev != st->st_dev) {
        (void)close(fd);
        keeper_drop(cache->keeper, id);
        return -1;
    }
    atomic_fetch_add(&cache->open_count, 1);
    return keep_for_locks(cache, descriptor, fd, id, true);
}

/* What is being executed, or may not be changed, can be locked all the same. */
int descriptor_for_locks(struct descriptor_cache *cache, struct descriptor *descriptor)
{
    struct stat st;
    int fd = atomic_load(&descriptor->lock_fd);
    if (fd >= 0)
        return fd;
    if (fstat(descriptor->path_fd, &st) != 0 || !S_ISREG(st.st_mode))
        return -EINVAL;
    fd = take_kept(cache, descriptor, &st);
    if (fd >= 0)
        return fd;
    fd = open_data(cache, descriptor, O_RDWR);
    if (fd == -ETXTBSY || fd == -EROFS || fd == -EPERM || fd == -EACCES)
        fd = open_data(cache, descriptor, O_RDONLY);
    if (fd < 0)
        return fd;
    /* Before anybody can lock it. */
    uint64_t id = keeper_keep(cache->keeper, fd, descriptor->export_id, &descriptor->object);
    return keep_for_locks(cache, descriptor, fd, id, false);
}

bool descriptor_is_cached(struct descriptor_cache *cache, const struct descriptor *descriptor)
{
    descriptor_lock(cache);
    bool is_cached = descriptor->is_cached;
    descriptor_unlock(cache);
    return is_cached;
}

void descriptor_cache_set_keeper(struct descriptor_cache *cache, struct keeper *keeper)
{
    cache->keeper = keeper;
}

enum { PINNED_FILES = 2 }; /* descriptors of one that is pinned: its path, and for locks */

void descriptor_pin(struct descriptor_cache *cache, struct descriptor *descriptor)
{
    descriptor_lock(cache);
    use(descriptor);
    descriptor->pins++;
    descriptor_unlock(cache);
    atomic_fetch_add(&cache->pinned_count, PINNED_FILES);
}

void descriptor_unpin(struct descriptor_cache *cache, struct descriptor *descriptor)
{
    descriptor_lock(cache);
    CHECK(descriptor->pins > 0);
    descriptor->pins--;
    descriptor_unlock(cache);
    atomic_fetch_sub(&cache->pinned_count, PINNED_FILES);
    descriptor_release(cache, descriptor);
}

/* ---- access ---- */

uint32_t descriptor_get_access(struct descriptor *descriptor, uint64_t mark,
                               const struct timespec *ctime, uint32_t *ret_granted)
{
    uint32_t known = 0;
    CHECK(pthread_mutex_lock(&descriptor->access_mutex) == 0);
    const struct descriptor_access *access = &descriptor->access;
    if (access->mark == mark && access->ctime.tv_sec == ctime->tv_sec &&
        access->ctime.tv_nsec == ctime->tv_nsec) {
        known = access->known;
        *ret_granted = access->granted;
    }
    CHECK(pthread_mutex_unlock(&descriptor->access_mutex) == 0);
    return known;
}

/* A file that was changed just now may change once more under the same time. */
static bool is_settled(const struct timespec *ctime)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_REALTIME, &now) == 0);
    int64_t seconds = now.tv_sec - ctime->tv_sec;
    if (seconds < 0 || seconds > 5)
        return seconds > 5;
    return seconds * 1000000000 + now.tv_nsec - ctime->tv_nsec >
           (ctime->tv_nsec == 0 ? CTIME_COARSE_NS : CTIME_STEP_NS);
}

void descriptor_set_access(struct descriptor *descriptor, uint64_t mark,
                           const struct timespec *ctime, uint32_t known, uint32_t granted)
{
    if (!is_settled(ctime))
        return;
    CHECK(pthread_mutex_lock(&descriptor->access_mutex) == 0);
    struct descriptor_access *access = &descriptor->access;
    if (access->mark != mark || access->ctime.tv_sec != ctime->tv_sec ||
        access->ctime.tv_nsec != ctime->tv_nsec)
        *access = (struct descriptor_access){.mark = mark, .ctime = *ctime};
    access->known |= known;
    access->granted = (access->granted & ~known) | granted;
    CHECK(pthread_mutex_unlock(&descriptor->access_mutex) == 0);
}

uint32_t descriptor_count(const struct descriptor_cache *cache)
{
    return atomic_load(&cache->open_count);
}

uint32_t descriptor_count_of(struct descriptor_cache *cache, uint32_t export_id)
{
    uint32_t count = 0;
    descriptor_lock(cache);
    for (uint32_t i = 0; i < cache->bucket_count; i++)
        for (const struct descriptor *at = cache->buckets[i]; at != NULL; at = at->next)
            count += at->export_id == export_id;
    descriptor_unlock(cache);
    return count;
}

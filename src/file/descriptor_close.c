/*
 * descriptor_close.c -- how open files are closed: too many, too long unused, gone.
 *
 * Closing may mean waiting for a disk, because what was written is synced before. Each lane closes
 * its own, on threads that work for it.
 */
#include "file/descriptor_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { SWEEP_MAX = 32 };

uint32_t descriptor_count_in(const struct descriptor *descriptor)
{
    return 1u + (atomic_load(&descriptor->read_fd) >= 0) +
           (atomic_load(&descriptor->write_fd) >= 0) + (atomic_load(&descriptor->lock_fd) >= 0);
}

void descriptor_set_over(struct descriptor_cache *cache, struct descriptor *descriptor)
{
    struct lane *lane = descriptor->lane;
    list_remove(&descriptor->link);
    list_append(&lane->over, &descriptor->link);
    if (atomic_fetch_add(&lane->over_count, 1) == 0)
        list_append(&cache->over, &lane->over_link);
    atomic_fetch_add(&cache->over_count, descriptor_count_in(descriptor));
}

void descriptor_retire(struct descriptor_cache *cache, struct descriptor *descriptor)
{
    descriptor_uncache(cache, descriptor);
    if (descriptor->users == 0)
        descriptor_set_over(cache, descriptor);
}

/* What was written to a file that nobody can reach any more need not be on disk. */
static bool must_sync(const struct descriptor *descriptor)
{
    struct stat st;
    return atomic_load(&descriptor->write_fd) >= 0 && atomic_load(&descriptor->is_dirty) &&
           (fstat(descriptor->path_fd, &st) != 0 || st.st_nlink != 0);
}

static void close_all(struct descriptor_cache *cache, struct descriptor *descriptor)
{
    int read_fd = atomic_load(&descriptor->read_fd), write_fd = atomic_load(&descriptor->write_fd);
    int lock_fd = atomic_load(&descriptor->lock_fd);
    if (must_sync(descriptor) && cache->system->fdatasync(write_fd) != 0)
        cache->owner.failed(cache->owner.context);
    uint32_t count = descriptor_count_in(descriptor);
    keeper_drop(cache->keeper, descriptor->kept_id);
    (void)close(descriptor->path_fd);
    if (read_fd >= 0)
        (void)close(read_fd);
    if (write_fd >= 0)
        (void)close(write_fd);
    if (lock_fd >= 0)
        (void)close(lock_fd);
    atomic_fetch_sub(&cache->open_count, count);
    atomic_fetch_sub(&cache->over_count, count);
    CHECK(pthread_mutex_destroy(&descriptor->mutex) == 0);
    CHECK(pthread_mutex_destroy(&descriptor->access_mutex) == 0);
    lane_drop(descriptor->lane);
    free(descriptor);
}

/* How many descriptors are too many, beside those that are being closed. */
static uint32_t surplus_of(const struct descriptor_cache *cache)
{
    uint32_t count = atomic_load(&cache->open_count);
    uint32_t rest = atomic_load(&cache->over_count) + atomic_load(&cache->pinned_count);
    return count > rest && count - rest > cache->files_max ? count - rest - cache->files_max : 0;
}

/* Closes some of what is over in a lane: how many. */
static uint32_t close_some(struct descriptor_cache *cache, struct lane *lane)
{
    struct descriptor *taken[SWEEP_MAX];
    uint32_t count = 0;
    descriptor_lock(cache);
    while (count < SWEEP_MAX && !list_is_empty(&lane->over)) {
        taken[count] = LIST_ELEMENT(lane->over.next, struct descriptor, link);
        list_remove(&taken[count++]->link);
        if (atomic_fetch_sub(&lane->over_count, 1) == 1)
            list_remove(&lane->over_link);
    }
    descriptor_unlock(cache);
    for (uint32_t i = 0; i < count; i++)
        close_all(cache, taken[i]);
    return count;
}

/* Lanes that have files to close, and nobody on the way to it. The mutex is held. */
static void queue_closings(struct descriptor_cache *cache, const struct lane *except)
{
    for (struct list *at = cache->over.next; at != &cache->over; at = at->next) {
        struct lane *lane = LIST_ELEMENT(at, struct lane, over_link);
        if ((except != NULL && lane == except) || lane->is_closing_queued)
            continue;
        lane->is_closing_queued = true;
        cache->owner.close(cache->owner.context, lane);
    }
}

/* What is too many is over, least recently used first. Other lanes than this are told to close. */
static void retire_surplus(struct descriptor_cache *cache, const struct lane *lane)
{
    if (surplus_of(cache) == 0)
        return;
    descriptor_lock(cache);
    for (uint32_t left = surplus_of(cache); left > 0 && !list_is_empty(&cache->unused); left--)
        descriptor_retire(cache, LIST_ELEMENT(cache->unused.next, struct descriptor, link));
    queue_closings(cache, lane);
    descriptor_unlock(cache);
}

void descriptor_sweep(struct descriptor_cache *cache, struct lane *lane)
{
    if (atomic_load(&lane->over_count) > 0)
        (void)close_some(cache, lane);
}

void descriptor_trim(struct descriptor_cache *cache, struct lane *lane)
{
    retire_surplus(cache, lane);
    descriptor_sweep(cache, lane);
}

void descriptor_close_over(struct descriptor_cache *cache, struct lane *lane)
{
    descriptor_sweep(cache, lane);
    retire_surplus(cache, lane);
}

/* Unused files of this lane, whatever they are, and of others if closing them cannot wait. */
static bool may_close(const struct descriptor *descriptor, const struct lane *lane)
{
    return descriptor->lane == lane ||
           (atomic_load(&descriptor->write_fd) < 0 && !atomic_load(&descriptor->lane->is_stuck));
}

bool descriptor_make_room(struct descriptor_cache *cache, struct lane *lane)
{
    struct descriptor *taken[SWEEP_MAX];
    uint32_t count = 0;
    int fd = open("/", O_PATH | O_CLOEXEC);
    if (fd >= 0)
        (void)close(fd);
    if (fd >= 0 || (errno != EMFILE && errno != ENFILE))
        return false;
    descriptor_lock(cache);
    for (struct list *at = cache->unused.next, *next; at != &cache->unused && count < SWEEP_MAX;
         at = next) {
        struct descriptor *descriptor = LIST_ELEMENT(at, struct descriptor, link);
        next = at->next;
        if (!may_close(descriptor, lane))
            continue;
        descriptor_uncache(cache, descriptor);
        list_remove(&descriptor->link);
        atomic_fetch_add(&cache->over_count, descriptor_count_in(descriptor));
        taken[count++] = descriptor;
    }
    descriptor_unlock(cache);
    for (uint32_t i = 0; i < count; i++)
        close_all(cache, taken[i]);
    return count > 0;
}

/* ---- time ---- */

/* It is used all the time, and changes hands between two ticks: the next finds another entry. */
enum { TICKS_IN_USE_MAX = 8 };

/* One with locks is open for writing anyway, and must stay the one that is found. */
static bool is_unwritten(const struct descriptor *descriptor, uint32_t now, uint32_t max)
{
    if (descriptor->pins > 0)
        return false;
    uint32_t age = now - atomic_load(&descriptor->written);
    return age >= max && (descriptor->users == 0 || age >= max + TICKS_IN_USE_MAX);
}

void descriptor_tick(struct descriptor_cache *cache, const struct descriptor_ages *max)
{
    uint32_t now = atomic_fetch_add(&cache->now, 1) + 1;
    descriptor_lock(cache);
    while (!list_is_empty(&cache->unused)) {
        struct descriptor *oldest = LIST_ELEMENT(cache->unused.next, struct descriptor, link);
        if (now - oldest->released < max->unused)
            break;
        descriptor_retire(cache, oldest);
    }
    for (struct list *at = cache->writers.next, *next; at != &cache->writers; at = next) {
        struct descriptor *writer = LIST_ELEMENT(at, struct descriptor, writer_link);
        next = at->next;
        if (is_unwritten(writer, now, max->unwritten))
            descriptor_retire(cache, writer);
    }
    queue_closings(cache, NULL);
    descriptor_unlock(cache);
}

void descriptor_close_lane(struct descriptor_cache *cache, struct lane *lane)
{
    descriptor_lock(cache);
    lane->is_closing_queued = false;
    descriptor_unlock(cache);
    while (close_some(cache, lane) == SWEEP_MAX)
        continue;
}

void descriptor_cache_free(struct descriptor_cache *cache)
{
    if (cache == NULL)
        return;
    while (!list_is_empty(&cache->unused))
        descriptor_retire(cache, LIST_ELEMENT(cache->unused.next, struct descriptor, link));
    while (!list_is_empty(&cache->over))
        (void)close_some(cache, LIST_ELEMENT(cache->over.next, struct lane, over_link));
    CHECK(pthread_mutex_destroy(&cache->mutex) == 0);
    free(cache->buckets);
    free(cache);
}

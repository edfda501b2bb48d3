/*
 * syncer.c -- see syncer.h.
 *
 *   a file:   IDLE --add--> QUEUED --taken, with all who wait--> RUNNING --done--+--> IDLE
 *                              ^                                                 |
 *                              +------------ somebody came meanwhile ------------+
 *
 * Always true:
 *  (1) Who is answered was added before the sync that answers it began.
 *  (2) A file is synced by one thread at a time. The kernel reports a failure once: a call
 *      that comes after it finds the verifier changed already.
 *  (3) A failure forgets the file's descriptors: pages that could not be written are marked clean.
 *
 * What cannot be opened (a symbolic link, a FIFO, a device) is synced with its file system.
 */
#include "file/syncer.h"

#include "base/check.h"
#include "file/pool.h"
#include "file/service.h"

#include <errno.h>
#include <stdlib.h>

struct syncer {
    struct file_service *service;
    struct pool *pool;
    pthread_mutex_t mutex; /* guards the sync_ fields of descriptors and calls */
};

static void lock(struct syncer *syncer)
{
    CHECK(pthread_mutex_lock(&syncer->mutex) == 0);
}

static void unlock(struct syncer *syncer)
{
    CHECK(pthread_mutex_unlock(&syncer->mutex) == 0);
}

/* 0 or -errno. */
static int sync_one(struct syncer *syncer, struct descriptor *descriptor, bool with_metadata)
{
    const struct file_system *system = syncer->service->system;
    atomic_store(&descriptor->is_dirty, false);
    int fd = descriptor_open_for_reading(descriptor);
    if (fd < 0)
        fd = descriptor_for_reading(syncer->service->descriptors, descriptor);
    if (fd == -EINVAL)
        return system->syncfs(descriptor->sync_root_fd) == 0 ? 0 : -errno;
    if (fd < 0)
        return fd;
    /* Through the descriptor that wrote: it hears of every failure since. */
    int write_fd = atomic_load(&descriptor->write_fd);
    fd = write_fd >= 0 ? write_fd : fd;
    return (with_metadata ? system->fsync(fd) : system->fdatasync(fd)) == 0 ? 0 : -errno;
}

/* Adds those who wait to a list; do they need more than the data? */
static bool take(struct descriptor *descriptor, struct list *ret)
{
    bool with_metadata = descriptor->needs_metadata;
    while (!list_is_empty(&descriptor->sync_waiters)) {
        struct list *link = descriptor->sync_waiters.next;
        list_remove(link);
        list_append(ret, link);
    }
    descriptor->needs_metadata = false;
    descriptor->is_sync_queued = false;
    descriptor->is_sync_running = true;
    return with_metadata;
}

static void answer(struct syncer *syncer, struct list *waiters, int code)
{
    while (!list_is_empty(waiters)) {
        struct call_sync *sync = LIST_ELEMENT(waiters->next, struct call_sync, link);
        struct call *call = sync->call;
        list_remove(&sync->link);
        lock(syncer);
        if (code != 0)
            call->sync_error = code;
        bool is_last = --call->syncs_left == 0;
        unlock(syncer);
        if (is_last)
            call_finish(call);
    }
}

static void run(void *context, struct pool_lane *lane, struct list *work)
{
    struct syncer *syncer = context;
    struct descriptor *descriptor = LIST_ELEMENT(work, struct descriptor, sync_link);
    struct descriptor_cache *cache = syncer->service->descriptors;
    struct list waiters;

    list_init(&waiters);
    lock(syncer);
    bool with_metadata = take(descriptor, &waiters);
    unlock(syncer);
    /* The calls keep it, but they end before the last look below. */
    descriptor_keep(cache, descriptor);
    int code = sync_one(syncer, descriptor, with_metadata);
    if (code != 0) {
        file_count_error(syncer->service);
        descriptor_forget(cache, descriptor);
    }
    lock(syncer);
    if (code != 0) /* who came meanwhile may have written what was lost */
        (void)take(descriptor, &waiters);
    descriptor->is_sync_running = false;
    bool is_needed = !list_is_empty(&descriptor->sync_waiters);
    descriptor->is_sync_queued = is_needed;
    unlock(syncer);
    if (is_needed)
        pool_add(syncer->pool, lane, POOL_OWN, &descriptor->sync_link);
    answer(syncer, &waiters, code);
    descriptor_release(cache, descriptor);
    descriptor_sweep(cache, LIST_ELEMENT(lane, struct lane, syncs));
}

static void begin(void *context)
{
    (void)context;
    identity_begin_thread();
    identity_own();
}

struct syncer *syncer_new(uint32_t threads, struct file_service *service)
{
    struct syncer *syncer = calloc(1, sizeof *syncer);
    if (syncer == NULL)
        return NULL;
    syncer->service = service;
    CHECK(pthread_mutex_init(&syncer->mutex, NULL) == 0);
    syncer->pool = pool_new(threads, begin, run, syncer);
    if (syncer->pool != NULL)
        return syncer;
    syncer_free(syncer);
    return NULL;
}

void syncer_free(struct syncer *syncer)
{
    if (syncer == NULL)
        return;
    pool_free(syncer->pool);
    CHECK(pthread_mutex_destroy(&syncer->mutex) == 0);
    free(syncer);
}

/* True: it must be queued. */
static bool add(struct call_sync *sync)
{
    struct descriptor *descriptor = sync->descriptor;
    list_append(&descriptor->sync_waiters, &sync->link);
    descriptor->needs_metadata |= sync->with_metadata;
    descriptor->sync_root_fd = sync->call->export->root_fd;
    if (descriptor->is_sync_queued || descriptor->is_sync_running)
        return false;
    return descriptor->is_sync_queued = true;
}

void syncer_add(struct syncer *syncer, struct call *call)
{
    struct descriptor *queued[CALL_SYNCS_MAX];
    uint32_t count = 0, sync_count = call->sync_count;
    lock(syncer);
    call->syncs_left = sync_count;
    for (uint32_t i = 0; i < sync_count; i++)
        if (add(&call->syncs[i]))
            queued[count++] = call->syncs[i].descriptor;
    /* Still under the lock: the call may be over as soon as the first of them ran. */
    for (uint32_t i = 0; i < count; i++)
        pool_add(syncer->pool, &queued[i]->lane->syncs, POOL_OWN, &queued[i]->sync_link);
    unlock(syncer);
}

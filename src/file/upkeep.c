/*
 * upkeep.c -- see upkeep.h.
 *
 * The thread itself never waits for a file system: what is to be closed is queued for threads of
 * its lane.
 */
#include "file/upkeep.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

enum {
    TICKS_UNWRITTEN = 4, /* open for writing */
    TICKS_UNUSED = 20,   /* open at all */
    TICKS_STUCK = 6,
    TICK_MS = 500, /* unless a test wants it faster */
};

struct upkeep {
    struct file_service *service;
    unsigned long thread;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t stopped;
    bool is_stopping;
};

static void refuse(struct file_service *service, struct list *queue, struct lane *lane)
{
    while (!list_is_empty(queue)) {
        struct list *work = queue->next;
        list_remove(work);
        if (work == &lane->closing)
            pool_add(service->pool, &lane->calls, work);
        else
            file_refuse(LIST_ELEMENT(work, struct call, link));
    }
}

/* The only file system there is may keep its queue: nobody else waits. */
static void look(void *context, struct lane *lane)
{
    struct file_service *service = context;
    struct list queue;
    list_init(&queue);
    struct list *ret_queue = atomic_load(&service->is_shared) ? &queue : NULL;
    bool is_stuck = pool_is_stuck(service->pool, &lane->calls, TICKS_STUCK, ret_queue);
    atomic_store(&lane->is_stuck, is_stuck);
    refuse(service, &queue, lane);
}

static void tick(struct file_service *service, uint32_t ms)
{
    static const struct descriptor_ages ages = {.unused = TICKS_UNUSED,
                                                .unwritten = TICKS_UNWRITTEN};
    descriptor_tick(service->descriptors, &ages);
    lane_list_each(service->lanes, look, service);
    if (service->options.intents != NULL)
        intent_ring_tick(service->options.intents, ms);
}

/* ---- life ---- */

static struct timespec after(uint32_t ms)
{
    struct timespec at;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &at) == 0);
    at.tv_sec += ms / 1000;
    at.tv_nsec += (long)(ms % 1000) * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    return at;
}

static void *run(void *argument)
{
    struct upkeep *upkeep = argument;
    uint32_t ms = upkeep->service->options.limits.tick_ms;
    ms = ms == 0 ? TICK_MS : ms;
    CHECK(pthread_mutex_lock(&upkeep->mutex) == 0);
    while (!upkeep->is_stopping) {
        struct timespec until = after(ms);
        int code = 0;
        while (code == 0 && !upkeep->is_stopping)
            code = pthread_cond_timedwait(&upkeep->stopped, &upkeep->mutex, &until);
        CHECK(code == 0 || code == ETIMEDOUT);
        if (!upkeep->is_stopping)
            tick(upkeep->service, ms);
    }
    CHECK(pthread_mutex_unlock(&upkeep->mutex) == 0);
    return NULL;
}

struct upkeep *upkeep_new(struct file_service *service)
{
    struct upkeep *upkeep = calloc(1, sizeof *upkeep);
    if (upkeep == NULL)
        return NULL;
    upkeep->service = service;
    pthread_condattr_t monotonic;
    CHECK(pthread_condattr_init(&monotonic) == 0);
    CHECK(pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0);
    CHECK(pthread_cond_init(&upkeep->stopped, &monotonic) == 0);
    CHECK(pthread_condattr_destroy(&monotonic) == 0);
    CHECK(pthread_mutex_init(&upkeep->mutex, NULL) == 0);
    if (pool_start_thread(run, upkeep, &upkeep->thread))
        return upkeep;
    free(upkeep);
    return NULL;
}

void upkeep_free(struct upkeep *upkeep)
{
    if (upkeep == NULL)
        return;
    CHECK(pthread_mutex_lock(&upkeep->mutex) == 0);
    upkeep->is_stopping = true;
    CHECK(pthread_cond_signal(&upkeep->stopped) == 0);
    CHECK(pthread_mutex_unlock(&upkeep->mutex) == 0);
    CHECK(pthread_join(upkeep->thread, NULL) == 0);
    CHECK(pthread_cond_destroy(&upkeep->stopped) == 0);
    CHECK(pthread_mutex_destroy(&upkeep->mutex) == 0);
    free(upkeep);
}

/*
 * upkeep.c -- see upkeep.h.
 *
 * The thread itself never waits for a file system: what is to be closed is queued for threads of
 * its lane.
 */
#include "file/upkeep.h"

#include "base/check.h"
#include "base/units.h"
#include "file/aside.h"

#include <stdlib.h>

enum {
    TICKS_UNWRITTEN = 4, /* open for writing */
    TICKS_UNUSED = 20,   /* open at all */
    TICKS_STUCK = 6,
    TICK_MS = 500, /* unless a test wants it faster */
};

struct upkeep {
    struct file_service *service;
    struct aside thread;
};

static void refuse(struct file_service *service, struct list *queue, struct lane *lane)
{
    while (!list_is_empty(queue)) {
        struct list *work = queue->next;
        list_remove(work);
        if (work == &lane->closing)
            pool_add(service->pool, &lane->calls, POOL_OWN, work);
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

static void *run(void *argument)
{
    struct upkeep *upkeep = argument;
    uint32_t ms = upkeep->service->options.limits.tick_ms;
    ms = ms == 0 ? TICK_MS : ms;
    aside_lock(&upkeep->thread);
    for (;;) {
        aside_pause(&upkeep->thread, ms * MS_NS);
        if (aside_is_stopping(&upkeep->thread))
            break;
        tick(upkeep->service, ms);
    }
    aside_unlock(&upkeep->thread);
    return NULL;
}

struct upkeep *upkeep_new(struct file_service *service)
{
    struct upkeep *upkeep = calloc(1, sizeof *upkeep);
    if (upkeep == NULL)
        return NULL;
    upkeep->service = service;
    if (aside_start(&upkeep->thread, run, upkeep))
        return upkeep;
    free(upkeep);
    return NULL;
}

void upkeep_free(struct upkeep *upkeep)
{
    if (upkeep == NULL)
        return;
    aside_stop(&upkeep->thread);
    free(upkeep);
}

/*
 * lane.c -- see lane.h.
 *
 * A lane that nobody refers to stays, for the next file system: a thread of a pool may just be
 * leaving it.
 */
#include "file/lane.h"

#include "base/check.h"

#include <pthread.h>
#include <stdlib.h>

struct lane_list {
    pthread_mutex_t mutex;
    struct list all;
    uint32_t count;
};

static void lock(struct lane_list *lanes)
{
    CHECK(pthread_mutex_lock(&lanes->mutex) == 0);
}

static void unlock(struct lane_list *lanes)
{
    CHECK(pthread_mutex_unlock(&lanes->mutex) == 0);
}

struct lane_list *lane_list_new(void)
{
    struct lane_list *lanes = calloc(1, sizeof *lanes);
    if (lanes == NULL)
        return NULL;
    CHECK(pthread_mutex_init(&lanes->mutex, NULL) == 0);
    list_init(&lanes->all);
    return lanes;
}

void lane_list_free(struct lane_list *lanes)
{
    if (lanes == NULL)
        return;
    CHECK(lanes->count == 0);
    for (struct list *at = lanes->all.next, *next; at != &lanes->all; at = next) {
        next = at->next;
        free(LIST_ELEMENT(at, struct lane, link));
    }
    CHECK(pthread_mutex_destroy(&lanes->mutex) == 0);
    free(lanes);
}

void lane_init(struct lane *lane)
{
    *lane = (struct lane){0};
    pool_lane_init(&lane->calls);
    pool_lane_init(&lane->syncs);
    list_init(&lane->over);
    list_init(&lane->over_link);
    list_init(&lane->closing);
    list_init(&lane->link);
}

/* The mutex is held. NULL: no memory. */
static struct lane *find(struct lane_list *lanes, dev_t device)
{
    struct lane *lane, *spare = NULL;
    for (struct list *at = lanes->all.next; at != &lanes->all; at = at->next) {
        lane = LIST_ELEMENT(at, struct lane, link);
        if (lane->references > 0 && lane->device == device)
            return lane;
        if (lane->references == 0)
            spare = lane;
    }
    lane = spare != NULL ? spare : malloc(sizeof *lane);
    if (lane != NULL && lane != spare) {
        lane_init(lane);
        lane->lanes = lanes;
        list_append(&lanes->all, &lane->link);
    }
    if (lane != NULL)
        lane->device = device;
    return lane;
}

struct lane *lane_get(struct lane_list *lanes, dev_t device)
{
    lock(lanes);
    struct lane *found = find(lanes, device);
    if (found != NULL && found->references++ == 0)
        lanes->count++;
    unlock(lanes);
    return found;
}

struct lane *lane_keep(struct lane *lane)
{
    lock(lane->lanes);
    CHECK(lane->references > 0);
    lane->references++;
    unlock(lane->lanes);
    return lane;
}

void lane_drop(struct lane *lane)
{
    if (lane == NULL)
        return;
    struct lane_list *lanes = lane->lanes;
    lock(lanes);
    CHECK(lane->references > 0);
    if (--lane->references == 0)
        lanes->count--;
    unlock(lanes);
}

uint32_t lane_list_count(struct lane_list *lanes)
{
    lock(lanes);
    uint32_t count = lanes->count;
    unlock(lanes);
    return count;
}

void lane_list_each(struct lane_list *lanes, void (*visit)(void *context, struct lane *lane),
                    void *context)
{
    lock(lanes);
    for (struct list *at = lanes->all.next; at != &lanes->all; at = at->next)
        visit(context, LIST_ELEMENT(at, struct lane, link));
    unlock(lanes);
}

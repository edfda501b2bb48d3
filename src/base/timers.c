/*
 * timers.c -- the heap of timers.h.
 *
 * Always true, and asserted by timers_check():
 *  (1) No item is due before its parent, by (deadline, order).
 *  (2) place[slot] - 1 is where the slot's item is; 0 for a slot that is not in the heap.
 */
#include "base/timers.h"

#include "base/check.h"
#include "base/table.h"

#include <errno.h>
#include <stdlib.h>

int timers_init(struct timers *timers, uint32_t slot_max)
{
    *timers = (struct timers){.slot_max = slot_max};
    size_t count = slot_max > 0 ? slot_max : 1;
    timers->heap = calloc(count, sizeof *timers->heap);
    timers->place = calloc(count, sizeof *timers->place);
    if (timers->heap == NULL || timers->place == NULL) {
        timers_done(timers);
        return -ENOMEM;
    }
    return 0;
}

void timers_done(struct timers *timers)
{
    free(timers->heap);
    free(timers->place);
    *timers = (struct timers){0};
}

static bool is_before(const struct timers_item *a, const struct timers_item *b)
{
    return a->deadline_ns != b->deadline_ns ? a->deadline_ns < b->deadline_ns : a->order < b->order;
}

static void put(struct timers *timers, uint32_t at, struct timers_item item)
{
    timers->heap[at] = item;
    timers->place[item.slot] = at + 1;
}

/* The item belongs somewhere at or above `at`. */
static void rise(struct timers *timers, uint32_t at, struct timers_item item)
{
    while (at > 0 && is_before(&item, &timers->heap[(at - 1) / 2])) {
        put(timers, at, timers->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    put(timers, at, item);
}

/* The item belongs somewhere at or below `at`. */
static void sink(struct timers *timers, uint32_t at, struct timers_item item)
{
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= timers->count)
            break;
        if (child + 1 < timers->count && is_before(&timers->heap[child + 1], &timers->heap[child]))
            child++;
        if (!is_before(&timers->heap[child], &item))
            break;
        put(timers, at, timers->heap[child]);
        at = child;
    }
    put(timers, at, item);
}

void timers_set(struct timers *timers, uint32_t slot, uint64_t deadline_ns)
{
    timers_clear(timers, slot);
    struct timers_item item = {deadline_ns, timers->order_next++, slot};
    rise(timers, timers->count++, item);
}

void timers_clear(struct timers *timers, uint32_t slot)
{
    CHECK(slot < timers->slot_max);
    if (timers->place[slot] == 0)
        return;
    uint32_t at = timers->place[slot] - 1;
    timers->place[slot] = 0;
    struct timers_item last = timers->heap[--timers->count];
    if (last.slot == slot)
        return;
    if (at > 0 && is_before(&last, &timers->heap[(at - 1) / 2]))
        rise(timers, at, last);
    else
        sink(timers, at, last);
}

bool timers_is_set(const struct timers *timers, uint32_t slot)
{
    CHECK(slot < timers->slot_max);
    return timers->place[slot] != 0;
}

uint64_t timers_deadline_ns(const struct timers *timers, uint32_t slot)
{
    CHECK(timers_is_set(timers, slot));
    return timers->heap[timers->place[slot] - 1].deadline_ns;
}

uint64_t timers_next_ns(const struct timers *timers)
{
    return timers->count == 0 ? UINT64_MAX : timers->heap[0].deadline_ns;
}

uint32_t timers_take(struct timers *timers, uint64_t now_ns)
{
    if (timers->count == 0 || timers->heap[0].deadline_ns > now_ns)
        return SLOT_NONE;
    uint32_t slot = timers->heap[0].slot;
    timers_clear(timers, slot);
    return slot;
}

void timers_check(const struct timers *timers)
{
    for (uint32_t at = 0; at < timers->count; at++) {
        CHECK(timers->place[timers->heap[at].slot] == at + 1);
        CHECK(at == 0 || !is_before(&timers->heap[at], &timers->heap[(at - 1) / 2]));
    }
    uint32_t set = 0;
    for (uint32_t slot = 0; slot < timers->slot_max; slot++)
        set += timers->place[slot] != 0;
    CHECK(set == timers->count);
}

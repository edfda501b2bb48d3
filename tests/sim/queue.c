/*
 * queue.c -- a binary heap of events; see queue.h.
 */
#include "queue.h"

#include <stdlib.h>

static bool is_before(const struct queue_event *a, const struct queue_event *b)
{
    return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->order < b->order;
}

static void swap(struct queue_event *a, struct queue_event *b)
{
    struct queue_event keep = *a;
    *a = *b;
    *b = keep;
}

void queue_put_back(struct queue *queue, const struct queue_event *event)
{
    if (queue->count == queue->max) {
        uint32_t max = queue->max ? queue->max * 2 : 256;
        struct queue_event *heap = realloc(queue->heap, max * sizeof *heap);
        if (!heap)
            abort();
        queue->heap = heap;
        queue->max = max;
    }
    uint32_t at = queue->count++;
    queue->heap[at] = *event;
    while (at > 0 && is_before(&queue->heap[at], &queue->heap[(at - 1) / 2])) {
        swap(&queue->heap[at], &queue->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
}

void queue_add(struct queue *queue, uint64_t time_ns, enum event_name name, void *subject,
               uint64_t ticket)
{
    struct queue_event event = {time_ns, queue->next_order++, ticket, name, subject};
    queue_put_back(queue, &event);
}

bool queue_take(struct queue *queue, struct queue_event *ret)
{
    if (queue->count == 0)
        return false;
    *ret = queue->heap[0];
    queue->heap[0] = queue->heap[--queue->count];
    for (uint32_t at = 0;;) {
        uint32_t first = at, left = 2 * at + 1, right = left + 1;
        if (left < queue->count && is_before(&queue->heap[left], &queue->heap[first]))
            first = left;
        if (right < queue->count && is_before(&queue->heap[right], &queue->heap[first]))
            first = right;
        if (first == at)
            return true;
        swap(&queue->heap[at], &queue->heap[first]);
        at = first;
    }
}

void queue_done(struct queue *queue)
{
    free(queue->heap);
    *queue = (struct queue){0};
}

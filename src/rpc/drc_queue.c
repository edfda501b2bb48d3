/*
 * drc_queue.c -- queues of entries of the duplicate request cache that are done; see drc_parts.h.
 */
#include "rpc/drc_parts.h"

static struct drc_link *link_of(const struct drc *drc, enum drc_which which, uint32_t slot)
{
    return drc_link_of(table_at(&drc->entries, slot), which);
}

void drc_queue_append(struct drc *drc, struct drc_queue *queue, enum drc_which which, uint32_t slot,
                      struct drc_entry *entry)
{
    *drc_link_of(entry, which) = (struct drc_link){.next = SLOT_NONE, .prev = queue->last};
    if (queue->last == SLOT_NONE)
        queue->first = slot;
    else
        link_of(drc, which, queue->last)->next = slot;
    queue->last = slot;
}

void drc_queue_remove(struct drc *drc, struct drc_queue *queue, enum drc_which which,
                      struct drc_entry *entry)
{
    struct drc_link link = *drc_link_of(entry, which);
    if (link.prev == SLOT_NONE)
        queue->first = link.next;
    else
        link_of(drc, which, link.prev)->next = link.next;
    if (link.next == SLOT_NONE)
        queue->last = link.prev;
    else
        link_of(drc, which, link.next)->prev = link.prev;
}

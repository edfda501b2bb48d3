/*
 * event.c -- the ring of events; see event.h.
 */
#include "core/event.h"

void event_add(struct event_ring *ring, enum event_kind kind, const struct address *from,
               struct bytes name, uint64_t value)
{
    event_add_of_file(ring, kind, from, name, value, (struct bytes){0});
}

void event_add_part(struct event_ring *ring, enum event_kind kind, const struct address *from,
                    struct bytes name, uint64_t value, uint64_t total)
{
    uint32_t before = ring->count;
    event_add(ring, kind, from, name, value);
    if (ring->count > before)
        ring->at[(ring->head + before) % EVENT_RING_MAX].total = total;
}

void event_add_of_file(struct event_ring *ring, enum event_kind kind, const struct address *from,
                       struct bytes name, uint64_t value, struct bytes fh)
{
    if (ring->count == EVENT_RING_MAX) {
        ring->lost++;
        return;
    }
    struct event *event = &ring->at[(ring->head + ring->count) % EVENT_RING_MAX];
    ring->count++;
    *event = (struct event){.kind = kind, .value = value, .name_len = name.len};
    if (from != NULL)
        event->from = *from;
    if (name.len > 0)
        memcpy(event->name, name.at, name.len < EVENT_NAME_MAX ? name.len : EVENT_NAME_MAX);
    if (fh.len == 0 || fh.len > EVENT_FH_MAX) /* longer ones name no file of ours */
        return;
    event->fh_len = fh.len;
    memcpy(event->fh, fh.at, fh.len);
}

void event_add_summary(struct event_ring *ring, enum event_kind kind, struct bytes name,
                       uint64_t value)
{
    if (ring->count == EVENT_RING_MAX) {
        ring->count--;
        ring->lost++;
    }
    event_add(ring, kind, NULL, name, value);
}

bool event_take(struct event_ring *ring, struct event *ret)
{
    if (ring->count == 0)
        return false;
    *ret = ring->at[ring->head];
    ring->head = (ring->head + 1) % EVENT_RING_MAX;
    ring->count--;
    return true;
}

/*
 * outbox.c -- the queue of gated replies; see outbox.h.
 *
 *   entries:  [ head | ... | tail )           a ring of structs, numbered 0, 1, 2, ...
 *   peers:    [      | ... |      )           who gets them, where that is remembered
 *   bytes:    ... [ message ][ message ] ...   a ring of bytes; a message never wraps
 *
 * Numbers count from the beginning of time. The places in memory are kept and moved on beside them,
 * because a division is dear and every answer would need a dozen. When the rest of the ring is too
 * short for a whole message it is skipped, so the reserve asked for is one message more than
 * strictly needed. A queue that is empty begins again at the first places: answers that wait for
 * nothing use the same memory each time, which is in the processor's cache.
 *
 * Always true: after_txn does not decrease from head to tail (CHECKed at every add). The bytes in
 * use are those from the head's place to write_place, which is behind the newest message; if that
 * is not behind the head's place they go on from the beginning of the ring. No message is empty:
 * otherwise a ring that is full would look like one without any bytes.
 */
#include "rpc/outbox.h"

#include "base/check.h"
#include "base/fetch.h"

#include <stdlib.h>

#define PLACE_NONE UINT64_MAX

struct outbox {
    struct outbox_entry *entries;
    struct peer *peers; /* beside the entries */
    uint8_t *bytes;
    uint64_t bytes_max;
    uint64_t first, next;             /* numbers of the head and of the next entry */
    uint32_t first_place, next_place; /* where these are in the ring of entries */
    uint64_t write_place;             /* behind the newest message in the ring of bytes */
    uint64_t reserved_place;          /* what outbox_reserve said last, or PLACE_NONE */
    uint64_t txn_newest;
    uint32_t entries_max, message_max;
};

struct outbox *outbox_new(uint32_t entries_max, uint32_t message_max, uint64_t bytes_max)
{
    CHECK(entries_max > 0);
    CHECK(bytes_max >= 2 * (uint64_t)message_max);
    struct outbox *outbox = calloc(1, sizeof *outbox);
    if (outbox == NULL)
        return NULL;
    outbox->entries_max = entries_max;
    outbox->message_max = message_max;
    outbox->bytes_max = bytes_max;
    outbox->reserved_place = PLACE_NONE;
    outbox->entries =
        aligned_alloc(sizeof *outbox->entries, (size_t)entries_max * sizeof *outbox->entries);
    outbox->peers = calloc(entries_max, sizeof *outbox->peers);
    outbox->bytes = calloc(1, bytes_max);
    if (outbox->entries == NULL || outbox->peers == NULL || outbox->bytes == NULL) {
        outbox_free(outbox);
        return NULL;
    }
    return outbox;
}

void outbox_free(struct outbox *outbox)
{
    if (outbox == NULL)
        return;
    free(outbox->entries);
    free(outbox->peers);
    free(outbox->bytes);
    free(outbox);
}

/* The place behind this one in a ring of so many. */
static uint32_t place_after(uint32_t place, uint32_t count)
{
    return place + 1 < count ? place + 1 : 0;
}

bool outbox_has_room(const struct outbox *outbox)
{
    uint32_t count = outbox_count(outbox);
    if (count == outbox->entries_max)
        return false;
    if (count == 0)
        return true;
    uint64_t head_place = outbox->entries[outbox->first_place].place;
    uint64_t end_place = outbox->write_place + outbox->message_max;
    if (outbox->write_place <= head_place) /* free is what lies between them */
        return end_place <= head_place;
    return end_place <= outbox->bytes_max || outbox->message_max <= head_place;
}

uint8_t *outbox_reserve(struct outbox *outbox)
{
    CHECK(outbox_has_room(outbox));
    /* Behind the newest one, or at the beginning of the ring. */
    uint64_t left = outbox->bytes_max - outbox->write_place;
    outbox->reserved_place = left >= outbox->message_max ? outbox->write_place : 0;
    return outbox->bytes + outbox->reserved_place;
}

void outbox_redirect(struct outbox *outbox, struct outbox_entry *entry, const struct rpc_source *to)
{
    entry->route = to->route;
    entry->has_peer = entry->is_call || to->peer.transport == TRANSPORT_UDP;
    if (entry->has_peer)
        outbox->peers[entry - outbox->entries] = to->peer;
}

uint64_t outbox_add(struct outbox *outbox, const struct outbox_entry *entry,
                    const struct rpc_source *to, uint32_t len)
{
    CHECK(outbox->reserved_place != PLACE_NONE); /* so there is room */
    CHECK(len > 0);
    CHECK(len <= outbox->message_max);
    CHECK(entry->after_txn >= outbox->txn_newest);
    outbox->txn_newest = entry->after_txn;
    struct outbox_entry *added = &outbox->entries[outbox->next_place];
    *added = *entry;
    added->place = outbox->reserved_place;
    added->len = len;
    outbox_redirect(outbox, added, to);
    outbox->write_place = added->place + len;
    outbox->reserved_place = PLACE_NONE;
    outbox->next_place = place_after(outbox->next_place, outbox->entries_max);
    fetch_line(&outbox->entries[outbox->next_place]);
    return outbox->next++;
}

uint64_t outbox_txn_newest(const struct outbox *outbox)
{
    return outbox->txn_newest;
}

struct outbox_entry *outbox_find(struct outbox *outbox, uint64_t number)
{
    if (number < outbox->first || number >= outbox->next)
        return NULL;
    uint64_t place = outbox->first_place + (number - outbox->first);
    return &outbox->entries[place < outbox->entries_max ? place : place - outbox->entries_max];
}

const struct outbox_entry *outbox_head(const struct outbox *outbox, uint64_t durable_txn)
{
    if (outbox->first == outbox->next)
        return NULL;
    const struct outbox_entry *head = &outbox->entries[outbox->first_place];
    return head->after_txn <= durable_txn ? head : NULL;
}

struct bytes outbox_message(const struct outbox *outbox, const struct outbox_entry *entry)
{
    return (struct bytes){outbox->bytes + entry->place, entry->len};
}

const struct peer *outbox_peer(const struct outbox *outbox, const struct outbox_entry *entry)
{
    return entry->has_peer ? &outbox->peers[entry - outbox->entries] : NULL;
}

void outbox_pop(struct outbox *outbox)
{
    CHECK(outbox->first < outbox->next);
    outbox->first_place = place_after(outbox->first_place, outbox->entries_max);
    outbox->first++;
    outbox->reserved_place = PLACE_NONE;
    if (outbox->first == outbox->next) {
        outbox->first_place = outbox->next_place = 0;
        outbox->write_place = 0;
    }
}

uint32_t outbox_count(const struct outbox *outbox)
{
    return (uint32_t)(outbox->next - outbox->first);
}

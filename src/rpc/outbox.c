/*
 * outbox.c -- the queue of gated replies; see outbox.h.
 *
 *   entries:  [ head | ... | tail )           a ring of structs, numbered 0, 1, 2, ...
 *   bytes:    ... [ message ][ message ] ...   a ring of bytes; a message never wraps
 *
 * Numbers and offsets count from the beginning of time. The places in memory are kept and moved on
 * beside them, because a division is dear and every answer would need a dozen. When the rest of the
 * ring is too short for a whole message it is skipped, so the reserve asked for is one message more
 * than strictly needed. A queue that is empty begins again at the first places: answers that wait
 * for nothing use the same memory each time, which is in the processor's cache.
 *
 * Always true: after_txn does not decrease from head to tail (CHECKed at every add); the bytes in
 * use are those from the head's offset to the end of the newest message.
 */
#include "rpc/outbox.h"

#include "base/check.h"

#include <stdlib.h>

struct outbox {
    struct outbox_entry *entries;
    uint8_t *bytes;
    uint64_t bytes_max;
    uint64_t first, next;             /* numbers of the head and of the next entry */
    uint32_t first_place, next_place; /* where these are in the ring of entries */
    uint64_t write_at;                /* offset behind the newest message */
    uint64_t write_place;             /* where that is in the ring of bytes */
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
    outbox->entries = calloc(entries_max, sizeof *outbox->entries);
    outbox->bytes = calloc(1, bytes_max);
    if (outbox->entries == NULL || outbox->bytes == NULL) {
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
    free(outbox->bytes);
    free(outbox);
}

/* Where a message of the maximal size would start: behind the newest, or at the beginning of the
 * ring. */
static uint64_t next_message_place(const struct outbox *outbox)
{
    uint64_t left = outbox->bytes_max - outbox->write_place;
    return left >= outbox->message_max ? outbox->write_place : 0;
}

static uint64_t next_offset(const struct outbox *outbox)
{
    uint64_t left = outbox->bytes_max - outbox->write_place;
    return left >= outbox->message_max ? outbox->write_at : outbox->write_at + left;
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
    uint64_t in_use_from = outbox->entries[outbox->first_place].offset;
    return next_offset(outbox) + outbox->message_max - in_use_from <= outbox->bytes_max;
}

uint8_t *outbox_reserve(struct outbox *outbox)
{
    CHECK(outbox_has_room(outbox));
    return outbox->bytes + next_message_place(outbox);
}

uint64_t outbox_add(struct outbox *outbox, const struct outbox_entry *entry, uint32_t len)
{
    CHECK(outbox_has_room(outbox));
    CHECK(len <= outbox->message_max);
    CHECK(entry->after_txn >= outbox->txn_newest);
    outbox->txn_newest = entry->after_txn;
    struct outbox_entry *added = &outbox->entries[outbox->next_place];
    *added = *entry;
    added->offset = next_offset(outbox);
    added->place = next_message_place(outbox);
    added->len = len;
    outbox->write_at = added->offset + len;
    outbox->write_place = added->place + len;
    outbox->next_place = place_after(outbox->next_place, outbox->entries_max);
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

void outbox_pop(struct outbox *outbox)
{
    CHECK(outbox->first < outbox->next);
    outbox->first_place = place_after(outbox->first_place, outbox->entries_max);
    outbox->first++;
    if (outbox->first == outbox->next) {
        outbox->first_place = outbox->next_place = 0;
        outbox->write_place = 0;
    }
}

uint32_t outbox_count(const struct outbox *outbox)
{
    return (uint32_t)(outbox->next - outbox->first);
}

/*
 * drc_check.c -- what is always true of the duplicate request cache; the list is in drc.c.
 */
#include "base/check.h"
#include "rpc/drc_parts.h"

/* Its length. An entry is on it because it is done, and the links back are those there. */
static uint32_t check_queue(const struct drc *drc, const struct drc_queue *queue,
                            enum drc_which which, uint32_t caller)
{
    uint32_t length = 0, before = SLOT_NONE;
    for (uint32_t slot = queue->first; slot != SLOT_NONE; length++) {
        struct drc_entry *entry = table_at(&drc->entries, slot);
        CHECK(entry->is_done);
        CHECK(which < DRC_FAR_OF_ALL || entry->reply_len > DRC_REPLY_NEAR);
        CHECK(caller == SLOT_NONE || entry->caller == caller);
        CHECK(drc_link_of(entry, which)->prev == before);
        before = slot;
        slot = drc_link_of(entry, which)->next;
    }
    CHECK(queue->last == before);
    return length;
}

/* As the newest of its owner it is found, and no other is. */
static void check_newest(const struct drc *drc, uint32_t slot, const struct drc_entry *entry)
{
    uint32_t found_count = 0;
    uint64_t hash = drc_owner_hash(drc, entry->caller, entry->owner);
    uint32_t at = hash_index_first(&drc->by_owner, hash);
    for (; at != SLOT_NONE; at = hash_index_next(&drc->by_owner, at)) {
        const struct drc_entry *other = table_at(&drc->entries, at);
        if (other->owner != entry->owner || other->caller != entry->caller)
            continue;
        CHECK(at == slot);
        found_count++;
    }
    CHECK(found_count == 1);
}

/* What its reply takes of the arena. */
static uint32_t check_reply(const struct drc *drc, const struct drc_entry *entry)
{
    CHECK(entry->is_done || entry->reply_len == 0);
    CHECK(entry->reply_len <= DRC_REPLY_MAX);
    if (entry->reply_len <= DRC_REPLY_NEAR)
        return 0;
    (void)arena_at(drc->replies, entry->reply_cell, entry->reply_len); /* aborts: no such cell */
    return arena_cell_len(entry->reply_len);
}

/* What the replies of a caller take of the arena. All of them are in its queue of those. */
static uint64_t far_bytes(const struct drc *drc, uint32_t slot, const struct drc_caller *caller)
{
    uint64_t bytes = 0;
    uint32_t count = 0;
    for (uint32_t at = caller->done.first; at != SLOT_NONE;) {
        const struct drc_entry *entry = table_at(&drc->entries, at);
        bytes += check_reply(drc, entry);
        count += entry->reply_len > DRC_REPLY_NEAR;
        at = entry->links[DRC_OF_CALLER].next;
    }
    CHECK(count == check_queue(drc, &caller->far, DRC_FAR_OF_CALLER, slot));
    return bytes;
}

/* How many are done. */
static uint32_t check_entries(const struct drc *drc)
{
    uint32_t done_count = 0, newest_count = 0, whole_count = 0;
    uint32_t far_count = 0;
    uint64_t reply_bytes = 0;
    uint32_t slot = table_next(&drc->entries, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(&drc->entries, slot)) {
        const struct drc_entry *entry = table_at(&drc->entries, slot);
        CHECK(table_is_live(&drc->callers, entry->caller));
        bool is_newest = entry->owner != 0 && !entry->is_old;
        if (is_newest)
            check_newest(drc, slot, entry);
        reply_bytes += check_reply(drc, entry);
        done_count += entry->is_done;
        far_count += entry->reply_len > DRC_REPLY_NEAR;
        newest_count += is_newest;
        whole_count += is_newest && drc_is_whole(entry);
    }
    CHECK(done_count == check_queue(drc, &drc->done, DRC_OF_ALL, SLOT_NONE));
    CHECK(far_count == check_queue(drc, &drc->far, DRC_FAR_OF_ALL, SLOT_NONE));
    CHECK(newest_count == drc->by_owner.count);
    CHECK(whole_count == drc->whole_count);
    CHECK(reply_bytes == arena_used(drc->replies)); /* so nobody else has a cell */
    return done_count;
}

uint32_t drc_check(struct drc *drc)
{
    table_check(&drc->entries);
    table_check(&drc->callers);
    uint32_t done_count = check_entries(drc), in_callers = 0;
    uint32_t slot = table_next(&drc->callers, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(&drc->callers, slot)) {
        const struct drc_caller *caller = table_at(&drc->callers, slot);
        CHECK(caller->entry_count > 0);
        CHECK(caller->done_count <= DRC_PER_ADDRESS);
        CHECK(caller->done_count == check_queue(drc, &caller->done, DRC_OF_CALLER, slot));
        CHECK(caller->far_bytes <= DRC_FAR_BYTES);
        CHECK(caller->far_bytes == far_bytes(drc, slot, caller));
        done_count -= caller->done_count;
        in_callers += caller->entry_count;
    }
    CHECK(done_count == 0);
    CHECK(in_callers == drc->entries.count);
    CHECK(drc->last_caller == SLOT_NONE || table_is_live(&drc->callers, drc->last_caller));
    return in_callers;
}

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
        const struct drc_entry *entry = table_at(&drc->entries, slot);
        CHECK(entry->is_done);
        CHECK(caller == SLOT_NONE || entry->caller == caller);
        CHECK(entry->links[which].prev == before);
        before = slot;
        slot = entry->links[which].next;
    }
    CHECK(queue->last == before);
    return length;
}

/* How many are done. */
static uint32_t check_entries(const struct drc *drc)
{
    uint32_t done_count = 0, whole_count = 0;
    uint32_t slot = table_next(&drc->entries, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(&drc->entries, slot)) {
        const struct drc_entry *entry = table_at(&drc->entries, slot);
        CHECK(table_is_live(&drc->callers, entry->caller));
        CHECK(entry->is_done || entry->reply_len == 0);
        CHECK(entry->reply_len <= DRC_REPLY_MAX);
        bool is_newest = entry->owner != 0 && !entry->is_old;
        uint64_t hash = drc_owner_hash(drc, entry->caller, entry->owner);
        CHECK(!is_newest || hash_index_has(&drc->by_owner, hash, slot));
        done_count += entry->is_done;
        whole_count += is_newest && drc_is_whole(entry);
    }
    CHECK(done_count == check_queue(drc, &drc->done, DRC_OF_ALL, SLOT_NONE));
    CHECK(whole_count == drc->whole_count);
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
        done_count -= caller->done_count;
        in_callers += caller->entry_count;
    }
    CHECK(done_count == 0);
    CHECK(in_callers == drc->entries.count);
    CHECK(drc->last_caller == SLOT_NONE || table_is_live(&drc->callers, drc->last_caller));
    return in_callers;
}

/*
 * file.c -- the pool of files that something is on; see file.h.
 *
 * A file is its handle: the slot of the handle's bytes in the pool of handles is the slot of the
 * file, and the references that keep the bytes keep the file. What is known of a file lies in an
 * array beside the pool.
 *
 * Always true, and asserted by file_check():
 *  (1) A file has at least one reference for each of its locks and offers. Waiters, shares and a
 *      request in flight hold others.
 *  (2) A file that loses its last reference has nothing on it (asserted by file_release).
 *  (3) `set` is the one with the longest prefix of its handle (D14).
 */
#include "core/file.h"

#include "base/check.h"
#include "core/state.h"

#include <errno.h>
#include <stdlib.h>

int file_init(struct core *core, const uint32_t slots[])
{
    uint32_t slots_max = slots[RECORD_LOCK] + slots[RECORD_WAITER] + slots[RECORD_SHARE];
    struct files *all = &core->files;
    int err = intern_init(&all->handles, core->arena, slots_max, core->seed);
    if (err != 0)
        return err;
    all->at = calloc(slots_max > 0 ? slots_max : 1, sizeof *all->at);
    return all->at == NULL ? -ENOMEM : 0;
}

void file_done(struct core *core)
{
    intern_done(&core->files.handles);
    free(core->files.at);
    core->files.at = NULL;
}

struct file *file_at(const struct core *core, uint32_t slot)
{
    CHECK(table_is_live(&core->files.handles.table, slot));
    return &core->files.at[slot];
}

struct bytes file_handle(const struct core *core, uint32_t slot)
{
    return intern_bytes(&core->files.handles, slot);
}

/* Of two sets with the same prefix the first one has the file. */
static uint32_t set_of(const struct core *core, struct bytes fh)
{
    uint32_t set = 0, longest = 0;
    for (uint32_t i = 1; i < core->limits.file_set_count; i++) {
        struct bytes prefix = core->limits.file_sets[i].prefix;
        if (prefix.len <= longest || prefix.len > fh.len)
            continue;
        if (memcmp(prefix.at, fh.at, prefix.len) == 0) {
            set = i;
            longest = prefix.len;
        }
    }
    return set;
}

uint32_t file_find(const struct core *core, struct bytes fh)
{
    return intern_find(&core->files.handles, fh);
}

uint32_t file_add(struct core *core, struct bytes fh)
{
    struct files *all = &core->files;
    uint32_t slot = intern_add(&all->handles, fh);
    if (slot != SLOT_NONE && intern_references(&all->handles, slot) == 1) {
        all->at[slot] = (struct file){.set = set_of(core, fh), .charged = SLOT_NONE};
        list_init(&all->at[slot].wake_turn);
        list_init(&all->at[slot].behind);
        list_init(&all->at[slot].refused);
        list_init(&all->at[slot].gone);
        mirror_open(core, slot);
    }
    return slot;
}

void file_keep(struct core *core, uint32_t slot)
{
    intern_keep(&core->files.handles, slot);
}

bool file_release(struct core *core, uint32_t slot)
{
    const struct file *file = file_at(core, slot);
    if (intern_references(&core->files.handles, slot) == 1)
        mirror_close(core, slot);
    if (!intern_release(&core->files.handles, slot))
        return false;
    CHECK(file->locks == 0);
    CHECK(file->waiters == 0);
    CHECK(file->lock_count == 0);
    return true;
}

void file_check(const struct core *core)
{
    const struct table *table = &core->files.handles.table;
    table_check(table);
    for (uint32_t slot = table_next(table, SLOT_NONE); slot != SLOT_NONE;
         slot = table_next(table, slot)) {
        const struct file *file = file_at(core, slot);
        CHECK(intern_references(&core->files.handles, slot) >= file->lock_count);
        CHECK(file->set == set_of(core, file_handle(core, slot)));
    }
}

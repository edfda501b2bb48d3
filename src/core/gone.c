/*
 * gone.c -- see gone.h.
 */
#include "core/gone.h"

#include "base/check.h"
#include "core/state.h"

int gone_init(struct core *core, const uint32_t slots[])
{
    (void)slots;
    list_init(&core->gone.files);
    return 0;
}

void gone_begin(struct core *core, struct bytes fh)
{
    uint32_t slot = file_find(core, fh);
    if (slot == SLOT_NONE || !list_is_empty(&file_at(core, slot)->gone))
        return;
    MARK("file_is_gone");
    file_keep(core, slot);
    file_at(core, slot)->gone_count = 0;
    list_append(&core->gone.files, &file_at(core, slot)->gone);
}

void gone_work(struct core *core)
{
    uint32_t left = GONE_PER_TURN;
    while (left > 0 && !list_is_empty(&core->gone.files)) {
        struct file *file = LIST_ELEMENT(core->gone.files.next, struct file, gone);
        uint32_t slot = (uint32_t)(file - core->files.at);
        uint32_t freed = share_free_all(core, slot, left);
        freed += lock_free_held(core, slot, left - freed);
        file->gone_count += freed;
        if (freed == left)
            return; /* there may be more */
        left -= freed;
        list_remove(&file->gone);
        if (file->gone_count > 0)
            event_add_of_file(&core->events, EVENT_FILE_GONE, &(struct address){0},
                              (struct bytes){0}, file->gone_count, file_handle(core, slot));
        file_release(core, slot);
    }
}

uint64_t gone_deadline_ns(const struct core *core)
{
    return list_is_empty(&core->gone.files) ? UINT64_MAX : core->now_ns;
}

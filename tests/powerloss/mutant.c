/*
 * mutant.c -- tapes made worse; see mutant.h.
 *
 * A commit of LMDB is on the tape as: writes of pages, the sync of the file (begin, end), the write
 * of the meta page through O_DSYNC (the write, and that it is synced). A frame of the journal is a
 * write, and the sync of that file.
 */
#include "mutant.h"

#include "disk.h"
#include "history.h"

#include <stdlib.h>
#include <string.h>

typedef bool (*make_fn)(const struct tape *tape, struct tape *ret);

static void add(struct tape *tape, const struct tape_event *event)
{
    tape->events[tape->count++] = *event;
}

static bool is_file_sync(const struct tape_event *event)
{
    const uint32_t type = event->head.type;
    return type == TAPE_WRITE_SYNCED || ((type == TAPE_SYNC_BEGIN || type == TAPE_SYNC_END) &&
                                         !(event->head.flags & TAPE_IS_DIRECTORY));
}

static bool is_page_write(const struct tape_event *event)
{
    return event->head.type == TAPE_WRITE && event->data && !disk_is_meta_write(event);
}

/* No file is ever synced; directories are. */
static bool make_no_fdatasync(const struct tape *tape, struct tape *ret)
{
    for (size_t i = 0; i < tape->count; i++)
        if (!is_file_sync(&tape->events[i]))
            add(ret, &tape->events[i]);
    return ret->count < tape->count;
}

/* The store is made as it must be, and no batch is synced once the first answer has left. */
static bool make_batches_unsynced(const struct tape *tape, struct tape *ret)
{
    bool has_answered = false;
    for (size_t i = 0; i < tape->count; i++) {
        has_answered |= tape->events[i].head.type == TAPE_SEND;
        if (!has_answered || !is_file_sync(&tape->events[i]))
            add(ret, &tape->events[i]);
    }
    return ret->count < tape->count;
}

/* Is it the file of a journal, now or later? */
static bool is_journal(const struct tape *tape, uint64_t file)
{
    for (size_t i = 0; i < tape->count; i++)
        if (disk_is_frame_write(&tape->events[i]) && tape->events[i].head.file == file)
            return true;
    return false;
}

/* Of what follows the first answer, syncs of one of the two files are left out. */
static bool leave_out_syncs(const struct tape *tape, bool of_journal, struct tape *ret)
{
    bool has_answered = false;
    for (size_t i = 0; i < tape->count; i++) {
        const struct tape_event *event = &tape->events[i];
        has_answered |= event->head.type == TAPE_SEND;
        if (!has_answered || !is_file_sync(event) ||
            is_journal(tape, event->head.file) != of_journal)
            add(ret, event);
    }
    return ret->count < tape->count;
}

/* Frames are written, and acknowledged, and not synced; the tables are. */
static bool make_frames_unsynced(const struct tape *tape, struct tape *ret)
{
    return leave_out_syncs(tape, true, ret);
}

/* Frames are written over when the tables have them, which are not synced. */
static bool make_tables_unsynced(const struct tape *tape, struct tape *ret)
{
    return leave_out_syncs(tape, false, ret);
}

/* Names are never synced; files are. */
static bool make_no_directory_sync(const struct tape *tape, struct tape *ret)
{
    for (size_t i = 0; i < tape->count; i++)
        if (!(tape->events[i].head.flags & TAPE_IS_DIRECTORY))
            add(ret, &tape->events[i]);
    return ret->count < tape->count;
}

/* Where in the new tape the pages of the commit begin whose meta page is written next. */
static size_t find_commit(const struct tape *tape, uint64_t file)
{
    size_t begin = tape->count;
    for (size_t i = tape->count; i-- > 0;) {
        const struct tape_event *event = &tape->events[i];
        if (event->head.type == TAPE_WRITE_SYNCED || event->head.type == TAPE_START)
            break;
        if (is_page_write(event) && event->head.file == file)
            begin = i;
    }
    return begin;
}

static void insert(struct tape *tape, size_t at, const struct tape_event *event)
{
    memmove(&tape->events[at + 1], &tape->events[at], (tape->count - at) * sizeof(tape->events[0]));
    tape->events[at] = *event;
    tape->count++;
}

/* The page that makes a commit the current one is on the disk before the pages it leads to. */
static bool make_meta_before_data(const struct tape *tape, struct tape *ret)
{
    bool is_changed = false;
    for (size_t i = 0; i < tape->count; i++) {
        const struct tape_event *event = &tape->events[i];
        if (i + 1 == tape->count || !disk_is_meta_write(event) ||
            event[1].head.type != TAPE_WRITE_SYNCED) {
            add(ret, event);
            continue;
        }
        size_t begin = find_commit(ret, event->head.file);
        is_changed |= begin < ret->count;
        insert(ret, begin, event);
        insert(ret, begin + 1, event + 1);
        i++;
    }
    return is_changed;
}

/* Answers leave when pages or a frame are written, and the sync is made afterwards. They do not
 * leave before their call came. */
static bool make_ack_before_sync(const struct tape *tape, struct tape *ret)
{
    bool is_changed = false;
    for (size_t i = 0; i < tape->count; i++) {
        const struct tape_event *event = &tape->events[i];
        size_t at = ret->count;
        bool is_committed = false;
        for (size_t k = ret->count; k-- > 0 && event->head.type == TAPE_SEND;) {
            const struct tape_event *before = &ret->events[k];
            struct history_post post;
            is_committed |= before->head.type == TAPE_WRITE_SYNCED ||
                            (before->head.type == TAPE_SYNC_END && is_file_sync(before));
            if (before->head.type == TAPE_POST) {
                memcpy(&post, before->data, sizeof(post));
                if (post.xid == history_newest_xid(event))
                    break;
            }
            if (is_committed && before->head.type == TAPE_SYNC_BEGIN && is_file_sync(before)) {
                at = k;
                is_changed = true;
                break;
            }
        }
        insert(ret, at, event);
    }
    return is_changed;
}

/* An answer, as against a call that the server makes itself: the word behind the xid is 1. */
static bool is_answer(const struct tape_event *event)
{
    const uint32_t at = (event->head.flags & TAPE_IS_STREAM ? 4 : 0) + 4;
    return event->head.type == TAPE_SEND && event->head.data_len >= at + 4 &&
           event->data[at + 3] == 1;
}

/* The end of a sync whose begin is between these two events. */
static bool ends_sync_of(const struct tape *tape, size_t index, size_t begin, size_t end)
{
    const struct tape_head *head = &tape->events[index].head;
    if (head->type != TAPE_SYNC_END)
        return false;
    for (size_t i = begin; i <= end && i < tape->count; i++) {
        const struct tape_head *other = &tape->events[i].head;
        if (other->type == TAPE_SYNC_BEGIN && is_file_sync(&tape->events[i]) &&
            other->pid == head->pid && other->file == head->file && other->offset == head->offset)
            return true;
    }
    return false;
}

/* The last start does not sync the page that makes its first commit, with the new state, the
 * current one, before it answers. */
static bool make_state_unsynced(const struct tape *tape, struct tape *ret)
{
    size_t begin = tape->count, end;
    while (begin-- > 0 && tape->events[begin].head.type != TAPE_START)
        continue;
    while (begin < tape->count && tape->events[begin].head.type != TAPE_WRITE_SYNCED)
        begin++;
    for (end = begin; end < tape->count; end++)
        if (is_answer(&tape->events[end]))
            break;
    for (size_t i = 0; i < tape->count; i++) {
        bool is_inside = i >= begin && i <= end;
        if (is_inside ? !is_file_sync(&tape->events[i]) : !ends_sync_of(tape, i, begin, end))
            add(ret, &tape->events[i]);
    }
    return ret->count < tape->count;
}

static const struct {
    const char *name, *text;
    make_fn make;
} mutants[MUTANT_COUNT] = {
    {"batches-unsynced", "no batch is synced behind the first answer", make_batches_unsynced},
    {"no-fdatasync", "the data file is never synced", make_no_fdatasync},
    {"no-directory-sync", "the directories are never synced", make_no_directory_sync},
    {"meta-before-data", "the meta page is synced before the data", make_meta_before_data},
    {"ack-before-sync", "answers leave before the sync of their commit", make_ack_before_sync},
    {"state-unsynced", "a start answers before its new state is synced", make_state_unsynced},
    {"frames-unsynced", "frames of the journal are not synced", make_frames_unsynced},
    {"tables-unsynced", "the tables are not synced before frames are written over",
     make_tables_unsynced},
};

const char *mutant_name(uint32_t index)
{
    return mutants[index].name;
}

const char *mutant_text(uint32_t index)
{
    return mutants[index].text;
}

bool mutant_make(uint32_t index, const struct tape *tape, struct tape *ret)
{
    struct tape worse = {.events = calloc(tape->count + 1, sizeof(worse.events[0]))};
    if (!worse.events)
        abort();
    if (!mutants[index].make(tape, &worse)) {
        tape_free(&worse);
        return false;
    }
    *ret = worse;
    return true;
}

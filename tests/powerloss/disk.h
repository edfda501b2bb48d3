/*
 * disk.h -- a disk that loses power: what it holds for certain, and what it may hold.
 *
 * Events of a tape go in one by one. At any moment the store directory can be rebuilt as a power
 * cut could have left it. The model:
 *
 *  (1) What was written before the beginning of a sync of that file that has returned is there.
 *      So are the bytes of a write through O_DSYNC that has returned: those bytes only.
 *  (2) Any other write is pending. It may be there, not there, or there in part, in sectors of 512
 *      bytes, whatever became of the writes before and after it. The same holds for the length.
 *  (3) A name (created, renamed, removed) is certain after a sync of the directory that began
 *      later; before that it is pending, each for itself. A rename is whole or not at all. Syncing
 *      a file does not make its name certain. The store directory itself is certain after a sync of
 *      the one above it.
 *  (4) The end of a process changes nothing: its writes stay pending.
 *
 * Real file systems promise more (ordered metadata, names that come with a synced file); a store
 * that survives this model needs none of it.
 */
#ifndef POWERLOSS_DISK_H
#define POWERLOSS_DISK_H

#include "image.h"
#include "tape.h"

/* A way in which pending changes survive. */
enum disk_variant {
    DISK_ALL_KEPT,
    DISK_ALL_DROPPED,
    DISK_NAMES_DROPPED, /* contents kept */
    DISK_NAMES_KEPT,    /* contents dropped */
    DISK_LENGTHS_KEPT,  /* names too; the data is not there: zeros */
    DISK_LAST_KEPT,     /* of each file the last pending write alone; names kept */
    DISK_FIRST_DROPPED, /* of each file all but the first pending write; names kept */
    DISK_SHUFFLED,      /* each write and name or not, in any order; seeded */
    DISK_SHUFFLED_AGAIN,
    DISK_TORN, /* the same by sectors */
    DISK_TORN_AGAIN,
    DISK_VARIANTS,
};
const char *disk_variant_text(enum disk_variant variant);

struct disk;

struct disk *disk_new(void);
void disk_free(struct disk *disk);

/* NULL, or why the event makes no sense. Events that are not the disk's are ignored. */
const char *disk_note(struct disk *disk, const struct tape_event *event);
/* Whether this event wrote one of the two pages that make a commit of LMDB the current one. */
bool disk_is_meta_write(const struct tape_event *event);

/* Whether it wrote a frame of the journal (src/store/journal.c). */
bool disk_is_frame_write(const struct tape_event *event);

void disk_rebuild(const struct disk *disk, enum disk_variant variant, uint64_t seed,
                  struct image *ret);
#endif

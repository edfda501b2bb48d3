/*
 * journal.h -- batches that are durable before the tables of an embedded store have them.
 *
 *   DIR/journal   a file of fixed length, written with zeros when it is made:
 *
 *   | frame 41 | frame 42 | frame 43 | what is left of older laps ...          |
 *   0                                ^ end                                     len
 *
 * A frame is a batch behind a header, begins at the start of a block and ends with the last byte of
 * one. Appending one is a write of blocks that the file has already, and one sync of it. When the
 * tables have everything (fold.h) the file is begun again: the next frame is the first.
 *
 * A frame counts if its checksum is right, it carries the id of this run of the store, and its
 * number is one more than that of the frame before, of which the first is one more than what the
 * tables have. Who holds the tables keeps id, number and length with them, and takes another id at
 * every start.
 *
 * Always true:
 *  (1) No block is written that holds a part of a frame that the tables do not have.
 *  (2) A frame is written when the one before it is durable (or, unsynced, was given to the
 *      kernel). So behind one that cannot be read there is none that counts, unless the file was
 *      damaged, or the machine stopped in an unsynced run.
 *  (3) The number of a frame is never used again under the same id.
 */
#ifndef STORE_JOURNAL_H
#define STORE_JOURNAL_H

#include "store/directory.h"

#define JOURNAL_FILE "journal"

/* Zeroed but for fd = -1: none, which has space for nothing. */
struct journal {
    int fd;             /* -1: none */
    const uint8_t *map; /* the file, for reading */
    uint64_t len;       /* of the file: whole blocks */
    uint64_t id;
    uint64_t number;              /* of the last frame, or of the last one that the tables have */
    uint64_t end;                 /* where the next frame begins */
    struct journal_frame *frames; /* owned; those that the tables do not have */
    uint32_t frame_count;
};

/* Length for a new file: HOLDFAST_JOURNAL_LEN if that is set, for tests; 0: none is wanted. */
uint64_t journal_wanted_len(void);

/* Makes the file, durably. -ENOSPC: there is no ample room for it, or the limit on lengths of files
 * is below that; any negative errno: there is none. */
__attribute__((warn_unused_result)) int journal_make(const struct directory *directory,
                                                     uint64_t len);

/* Opens the file. 0 or negative errno: -ENOENT, -EINVAL when it has a length of no journal. */
__attribute__((warn_unused_result)) int journal_open(struct journal *ret,
                                                     const struct directory *directory);
void journal_close(struct journal *journal);

/* Begins with an id that was never used. 0 or negative errno. */
__attribute__((warn_unused_result)) int journal_begin(struct journal *journal);

/* Finds the frames behind `number` under this id. True: behind what was found there are others that
 * count, so something is missing in between (2). */
bool journal_find(struct journal *journal, uint64_t id, uint64_t number);

bool journal_has_space(const struct journal *journal, const struct store_batch *batch);
/* Of a batch that it has space for. 0 or negative errno: it may or may not be there. */
__attribute__((warn_unused_result)) int
journal_append(struct journal *journal, const struct store_batch *batch, bool must_sync);
/* Frame `index` as a batch: its count and changes. The view dies with the next append. */
struct store_batch journal_get(const struct journal *journal, uint32_t index);

/* The tables have every frame. */
void journal_restart(struct journal *journal);

#endif

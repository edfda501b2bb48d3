/*
 * journal.h -- batches that are durable before the tables of an embedded store have them.
 *
 *   DIR/journal   a file of fixed length, written with zeros when it is made:
 *
 *   | owner | frame 41 | frame 42 | frame 43 | older frames, or zeros ...        |
 *   0       4096                             ^ end                               len
 *
 * A frame is a batch behind a header, begins at the start of a block and ends with the last byte of
 * one. Appending one is a write of blocks that the file has already, and one sync of it. When the
 * tables have everything (fold.h) the file is begun again: the next frame is the first.
 *
 * A frame counts if its checksum is right, it carries the id of this run of the store, and its
 * number is one more than that of the frame before, of which the first is one more than what the
 * tables have. Who holds the tables keeps id, number and length with them, and takes another id at
 * every start. The block of the owner has the id, too: a file without it is of another store, or of
 * another run, and says nothing of what is missing. It has two places for it, in sectors of their
 * own: the new id is written beside the old one, then the tables take it, then it is in both.
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

/* Opens the file. 0 or negative errno: -ENOENT; -EINVAL when it is no file, or has a length of no
 * journal; -EBUSY when another server has it. */
__attribute__((warn_unused_result)) int journal_open(struct journal *ret,
                                                     const struct directory *directory);
void journal_close(struct journal *journal);

/* Is it of this run? */
bool journal_is_of(const struct journal *journal, uint64_t id);

/* Begins with an id that was never used, and is durably the file's beside `old`, whose frames still
 * count. 0 or negative errno. */
__attribute__((warn_unused_result)) int journal_begin(struct journal *journal, uint64_t old);
/* The tables know the id: no other one counts. A crash may still find both. */
__attribute__((warn_unused_result)) int journal_settle(const struct journal *journal);

/* Are all its blocks its own, and may they be written? What restores zeros as holes leaves a file
 * that needs space when it is written. */
bool journal_is_solid(const struct journal *journal);

/* Finds the frames behind `number` under this id. True: behind what was found there are others that
 * count, so something is missing in between (2). */
bool journal_find(struct journal *journal, uint64_t id, uint64_t number);

bool journal_has_space(const struct journal *journal, const struct store_batch *batch);
/* Of a batch that it has space for. 0 or negative errno: it may or may not be there. */
__attribute__((warn_unused_result)) int
journal_append(struct journal *journal, const struct store_batch *batch, bool must_sync);
/* Frame `index` as a batch: its count and changes. The view dies with the next append. */
struct store_batch journal_get(const struct journal *journal, uint32_t index);

/* The tables have every frame; the memory for reading them is given back. */
void journal_restart(struct journal *journal);

#endif

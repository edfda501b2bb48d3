/*
 * reserve.h -- disk space that a data file owns before it needs it (R-PER-8).
 *
 * A full disk must never fail a commit: it would stop the server. So the file is kept longer than
 * its last used page by a stretch of written zeros, which later writes only overwrite. When the
 * stretch and the free pages inside the file fall below the low-water mark and cannot be made more,
 * there is no room for new records, while the rest still carries the commits that remove old ones.
 *
 * The owner of the file sets the mark: what commits can need that were admitted before the lack of
 * room was known.
 */
#ifndef STORE_RESERVE_H
#define STORE_RESERVE_H

#include <stdbool.h>
#include <stdint.h>

struct reserve {
    int fd;               /* the data file; borrowed */
    uint64_t limit_len;   /* the file may not grow beyond this (the size of the memory map) */
    uint64_t used_end;    /* end of the last page in use */
    uint64_t solid_end;   /* end of what is on the disk: that counts */
    uint64_t written_end; /* end of what was written; beyond solid_end, nobody knows */
    uint64_t low_len;     /* the low-water mark */
    uint64_t spare_len;   /* bytes below used_end that are free to be used again */
    bool is_stuck;        /* the last try to grow failed */
    bool has_room;
};

/* What is behind the last page counts as far as it has no holes, and is cut off from there on. 0,
 * or negative errno: -EFBIG if not even the pages in use may be written. No room until it was
 * noted. */
__attribute__((warn_unused_result)) int reserve_init(struct reserve *reserve, int fd,
                                                     uint64_t limit_len, uint64_t used_end);

/* The file was synced, with whatever was written: where the last page in use ends now, and what
 * must be left for the next commits. What was spare is forgotten: a commit may have used it. */
void reserve_note_used(struct reserve *reserve, uint64_t used_end, uint64_t low_len);
/* How much below that is free again; worth finding out only while reserve_is_low. */
void reserve_note_spare(struct reserve *reserve, uint64_t spare_len);

/* Tries to have `ahead_len` bytes behind the last page in use; what a failure means is seen later,
 * by reserve_has_room. Not synced, so it does not count before reserve_note_used: the commit that
 * needs it does that. */
void reserve_grow(struct reserve *reserve, uint64_t ahead_len);

/* Can `len` bytes be used without going below the low-water mark, also after a power loss? Grows
 * for that as far as the full stretch, and so much beyond it, and syncs. */
bool reserve_can_spend(struct reserve *reserve, uint64_t len, uint64_t beyond_len);

/* Grows past the low-water mark, by a bounded piece, and syncs: starts and commits wait for it. */
void reserve_refill(struct reserve *reserve);

/* One slice towards the full stretch, synced. True when there is more to do. */
bool reserve_tend(struct reserve *reserve);

/* What is behind the last page is not enough by itself. */
bool reserve_is_low(const struct reserve *reserve);
bool reserve_has_room(const struct reserve *reserve);

#endif

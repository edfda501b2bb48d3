/*
 * disk.h -- the simulated store: what survives a crash, and nothing else.
 *
 * The image is a map from (kind, slot) to a value. A batch that the store has taken is a view of
 * the core's own memory until it is applied, so a core that scribbles on a batch in flight is
 * seen. Under `--sync process` a second image holds what a power loss would leave.
 *
 * A disk may have an end. Before it comes the reserve, as that of the LMDB back end: two batches
 * that the core may have filled before it hears that there is no room, and a quarter of what is
 * stored for UNLOCKs that split. Nothing else may need it.
 */
#ifndef SIM_DISK_H
#define SIM_DISK_H

#include "store/record.h"

struct disk_value {
    uint32_t len; /* 0: no record */
    uint8_t bytes[RECORD_VALUE_MAX];
};

struct disk_image {
    struct disk_value *kinds[RECORD_KIND_END];
    uint32_t slots_max[RECORD_KIND_END];
};

struct disk {
    struct disk_image kept;   /* survives kill -9 */
    struct disk_image synced; /* survives power loss; the same unless the disk is lazy */
    bool is_lazy;             /* --sync process: only must_sync batches are synced */
    bool is_new;              /* nothing was ever committed */
    bool is_busy;
    uint64_t ticket; /* counts batches taken; names the one in flight */
    struct store_batch batch;
    uint64_t batch_sum;

    /* Room for so many records, and what is reserved behind it; 0: any number (R-PER-8). */
    uint32_t room, reserve;
    uint32_t full_at; /* how many there were when room ran out; 0: it has not */
};

void disk_done(struct disk *disk);

/* The highest stored slot + 1. */
uint32_t disk_slots_used(const struct disk *disk, enum record_kind kind);
/* The value of a slot; empty when there is none. */
struct bytes disk_at(const struct disk *disk, enum record_kind kind, uint32_t slot);
/* As src/store/reserve.c judges it: new records are welcome. */
bool disk_has_room(const struct disk *disk);
/* More is stored than the room, its reserve, and a quarter of what was there for splits. */
bool disk_is_overrun(const struct disk *disk);
uint32_t disk_count(const struct disk *disk, enum record_kind kind);

/* The server record; false when there is none or it cannot be read. */
bool disk_server(const struct disk *disk, struct record_server *ret);

/* Hold a batch; apply the held batch; forget it. A wrong batch is told in words, else NULL. */
const char *disk_take(struct disk *disk, const struct store_batch *batch);
const char *disk_apply(struct disk *disk);
void disk_drop(struct disk *disk);

/* The machine loses power: only what was synced is left. */
void disk_lose_power(struct disk *disk);
/* Another value of the same length, as a crafted store would have it. */
void disk_rewrite(struct disk *disk, enum record_kind kind, uint32_t slot, struct bytes bytes);
/* Damage one byte of a value. */
void disk_corrupt(struct disk *disk, enum record_kind kind, uint32_t slot);

#endif

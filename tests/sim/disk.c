/*
 * disk.c -- the simulated store; see disk.h.
 *
 * A batch is checked like a back end would: its number follows the stored one, it carries the
 * server record with that number, every change names a known kind, and its bytes are the same when
 * it is applied as when it was taken.
 */
#include "disk.h"

#include <stdlib.h>

static uint64_t sum_of(const struct store_batch *batch)
{
    uint64_t sum = batch->txn ^ UINT64_C(0xcbf29ce484222325);
    for (uint64_t i = 0; i < batch->changes.len; i++)
        sum = (sum ^ batch->changes.at[i]) * UINT64_C(0x100000001b3);
    return sum;
}

static struct disk_value *value_at(struct disk_image *image, enum record_kind kind, uint32_t slot)
{
    if (slot >= image->slots_max[kind]) {
        uint32_t max = image->slots_max[kind] ? image->slots_max[kind] : 16;
        while (max <= slot)
            max *= 2;
        struct disk_value *values = realloc(image->kinds[kind], max * sizeof *values);
        if (!values)
            abort();
        for (uint32_t i = image->slots_max[kind]; i < max; i++)
            values[i].len = 0;
        image->kinds[kind] = values;
        image->slots_max[kind] = max;
    }
    return &image->kinds[kind][slot];
}

static void copy_image(struct disk_image *to, const struct disk_image *from)
{
    for (uint32_t kind = 1; kind < RECORD_KIND_END; kind++) {
        uint32_t max = from->slots_max[kind];
        if (max > 0)
            (void)value_at(to, kind, max - 1);
        for (uint32_t slot = 0; slot < to->slots_max[kind]; slot++) {
            uint32_t len = slot < max ? from->kinds[kind][slot].len : 0;
            to->kinds[kind][slot].len = len;
            if (len > 0)
                memcpy(to->kinds[kind][slot].bytes, from->kinds[kind][slot].bytes, len);
        }
    }
}

void disk_done(struct disk *disk)
{
    for (uint32_t kind = 0; kind < RECORD_KIND_END; kind++) {
        free(disk->kept.kinds[kind]);
        free(disk->synced.kinds[kind]);
    }
    *disk = (struct disk){0};
}

uint32_t disk_slots_used(const struct disk *disk, enum record_kind kind)
{
    uint32_t used = disk->kept.slots_max[kind];
    while (used > 0 && disk->kept.kinds[kind][used - 1].len == 0)
        used--;
    return used;
}

struct bytes disk_at(const struct disk *disk, enum record_kind kind, uint32_t slot)
{
    if (slot >= disk->kept.slots_max[kind])
        return (struct bytes){NULL, 0};
    const struct disk_value *value = &disk->kept.kinds[kind][slot];
    return (struct bytes){value->bytes, value->len};
}

uint32_t disk_count(const struct disk *disk, enum record_kind kind)
{
    uint32_t count = 0;
    for (uint32_t slot = 0; slot < disk->kept.slots_max[kind]; slot++)
        count += disk->kept.kinds[kind][slot].len > 0;
    return count;
}

static uint32_t count_all(const struct disk *disk)
{
    uint32_t count = 0;
    for (uint32_t kind = RECORD_SERVER + 1; kind < RECORD_KIND_END; kind++)
        count += disk_count(disk, kind);
    return count;
}

bool disk_has_room(const struct disk *disk)
{
    return disk->full_at == 0;
}

bool disk_is_overrun(const struct disk *disk)
{
    return disk->full_at != 0 && count_all(disk) > disk->room + disk->reserve + disk->full_at / 4;
}

/* Once lost, room comes back only a little below its end: it does not flicker. */
static void judge_room(struct disk *disk)
{
    uint32_t count = disk->room != 0 ? count_all(disk) : 0;
    if (disk->full_at == 0 && disk->room != 0 && count >= disk->room)
        disk->full_at = count;
    else if (count + 2 < disk->room || disk->room == 0)
        disk->full_at = 0;
}

bool disk_server(const struct disk *disk, struct record_server *ret)
{
    struct bytes value = disk_at(disk, RECORD_SERVER, 0);
    return value.len > 0 && record_get_server(value, ret) == RECORD_GOOD;
}

static const char *check_batch(const struct disk *disk, const struct store_batch *batch)
{
    struct record_server server = {0}, stored = {0};
    struct record_change change;
    uint32_t count = 0;
    bool has_server = false;
    for (uint64_t at = 0; store_batch_next(batch, &at, &change); count++) {
        if (change.kind < RECORD_SERVER || change.kind >= RECORD_KIND_END)
            return "a batch names an unknown kind";
        if (!change.deleted && (change.value.len == 0 || change.value.len > RECORD_VALUE_MAX))
            return "a batch holds a value without bytes or with too many";
        if (change.kind == RECORD_SERVER) {
            if (has_server || change.deleted || change.slot != 0 ||
                record_get_server(change.value, &server) != RECORD_GOOD)
                return "a batch carries a wrong server record";
            has_server = true;
        }
    }
    if (count != batch->count)
        return "a batch does not hold as many changes as it says";
    if (!has_server || server.txn != batch->txn || server.epoch != batch->epoch)
        return "a batch does not carry its own number";
    if (disk_server(disk, &stored) && batch->txn != stored.txn + 1)
        return "a batch does not follow the stored one";
    return NULL;
}

const char *disk_take(struct disk *disk, const struct store_batch *batch)
{
    if (disk->is_busy)
        return "a batch was handed over while another one is being committed";
    disk->is_busy = true;
    disk->ticket++;
    disk->batch = *batch;
    disk->batch_sum = sum_of(batch);
    return check_batch(disk, batch);
}

const char *disk_apply(struct disk *disk)
{
    if (sum_of(&disk->batch) != disk->batch_sum)
        return "a batch changed while the store had it";
    struct record_change change;
    for (uint64_t at = 0; store_batch_next(&disk->batch, &at, &change);) {
        struct disk_value *value = value_at(&disk->kept, change.kind, change.slot);
        value->len = change.deleted ? 0 : change.value.len;
        if (!change.deleted)
            memcpy(value->bytes, change.value.at, change.value.len);
    }
    if (disk->is_lazy && disk->batch.must_sync)
        copy_image(&disk->synced, &disk->kept);
    judge_room(disk);
    disk->is_busy = false;
    disk->is_new = false;
    return NULL;
}

void disk_drop(struct disk *disk)
{
    disk->is_busy = false;
}

void disk_lose_power(struct disk *disk)
{
    if (disk->is_lazy)
        copy_image(&disk->kept, &disk->synced);
    judge_room(disk);
}

void disk_rewrite(struct disk *disk, enum record_kind kind, uint32_t slot, struct bytes bytes)
{
    struct disk_value *value = value_at(&disk->kept, kind, slot);
    if (value->len != bytes.len)
        abort();
    memcpy(value->bytes, bytes.at, bytes.len);
}

void disk_corrupt(struct disk *disk, enum record_kind kind, uint32_t slot)
{
    struct disk_value *value = value_at(&disk->kept, kind, slot);
    if (value->len > 0)
        value->bytes[value->len / 2] ^= 0x5a;
}

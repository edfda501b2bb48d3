/*
 * journal.c -- the frames of a journal; see journal.h. journal_file.c makes and opens the file.
 *
 * The owner, twice, at 0 and 512: magic, CRC-32C of what follows, id. A frame, big-endian:
 *
 *    0  u32  magic
 *    4  u32  CRC-32C of everything behind this field, up to the end of the changes
 *    8  u64  id
 *   16  u64  number
 *   24  u64  length of the changes
 *   32  u32  how many they are
 *   36  u32  0
 *   40       the changes, as a batch has them (record.h)
 *            zeros up to the end of the block
 *
 * Blocks are as long as what disks and file systems write in one piece at the most common: a power
 * cut in a write may tear the blocks of that write and no others.
 */
#include "store/journal.h"

#include "base/check.h"
#include "store/crc32c.h"
#include "store/journal_file.h"

#include <errno.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    HEADER_LEN = 40,
    CHECKED_FROM = 8,
    FRAMES_FROM = JOURNAL_BLOCK, /* behind the owner's block */
    OWNER_LEN = 16,              /* magic, checksum, id */
    OWNER_PLACES = 2,
    SECTOR_LEN = 512,
};
static const uint32_t MAGIC = 0x48464a31;       /* "HFJ1" */
static const uint32_t OWNER_MAGIC = 0x48464f31; /* "HFO1" */

struct header {
    uint64_t id, number, changes_len;
    uint32_t crc, count;
};

static uint64_t frame_len(uint64_t changes_len)
{
    uint64_t len = HEADER_LEN + changes_len;
    return (len + JOURNAL_BLOCK - 1) / JOURNAL_BLOCK * JOURNAL_BLOCK;
}

/* ---- reading ---- */

/* False: no frame, or none that ends within the file. */
static bool get_header(const struct journal *journal, uint64_t at, struct header *ret)
{
    if (at >= journal->len || load_be32(journal->map + at) != MAGIC)
        return false;
    const uint8_t *bytes = journal->map + at;
    *ret = (struct header){
        .crc = load_be32(bytes + 4),
        .id = load_be64(bytes + 8),
        .number = load_be64(bytes + 16),
        .changes_len = load_be64(bytes + 24),
        .count = load_be32(bytes + 32),
    };
    return ret->changes_len <= journal->len - at - HEADER_LEN;
}

static bool is_intact(const struct journal *journal, uint64_t at, const struct header *header)
{
    struct bytes checked = {journal->map + at + CHECKED_FROM,
                            (uint32_t)(HEADER_LEN - CHECKED_FROM + header->changes_len)};
    return crc32c(0, checked) == header->crc;
}

static struct store_batch batch_at(const struct journal *journal, uint64_t at, uint64_t len,
                                   uint32_t count)
{
    return (struct store_batch){.count = count, .changes = {.at = journal->map + at, .len = len}};
}

static bool counts(const struct journal *journal, const struct header *header)
{
    if (header->id != journal->id || header->number != journal->number + 1 ||
        !is_intact(journal, journal->end, header))
        return false;
    struct store_batch batch =
        batch_at(journal, journal->end + HEADER_LEN, header->changes_len, header->count);
    return store_batch_is_sound(&batch);
}

static void add_frame(struct journal *journal, uint64_t changes_len, uint32_t count)
{
    journal->frames[journal->frame_count++] =
        (struct journal_frame){journal->end + HEADER_LEN, changes_len, count};
    journal->number++;
    journal->end += frame_len(changes_len);
}

/* A later frame of this id, anywhere behind what was found. */
static bool has_later(const struct journal *journal)
{
    struct header header;
    for (uint64_t at = journal->end; at < journal->len; at += JOURNAL_BLOCK)
        if (get_header(journal, at, &header) && header.id == journal->id &&
            header.number > journal->number && is_intact(journal, at, &header))
            return true;
    return false;
}

bool journal_find(struct journal *journal, uint64_t id, uint64_t number)
{
    struct header header;
    journal->id = id;
    journal->number = number;
    journal_restart(journal);
    while (get_header(journal, journal->end, &header) && counts(journal, &header))
        add_frame(journal, header.changes_len, header.count);
    return has_later(journal);
}

struct store_batch journal_get(const struct journal *journal, uint32_t index)
{
    CHECK(index < journal->frame_count);
    const struct journal_frame *frame = &journal->frames[index];
    return batch_at(journal, frame->at, frame->len, frame->count);
}

/* All of it, however often the kernel takes a part. */
static int write_parts(int fd, struct iovec *parts, int count, uint64_t at)
{
    while (count > 0) {
        ssize_t written = pwritev(fd, parts, count, (off_t)at);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? -errno : -EIO;
        at += (uint64_t)written;
        size_t left = (size_t)written;
        for (; count > 0 && left >= parts->iov_len; parts++, count--)
            left -= parts->iov_len;
        if (count > 0) {
            parts->iov_base = (uint8_t *)parts->iov_base + left;
            parts->iov_len -= left;
        }
    }
    return 0;
}

/* ---- whose it is ---- */

static bool has_owner(const struct journal *journal, uint32_t place, uint64_t id)
{
    const uint8_t *bytes = journal->map + (size_t)place * SECTOR_LEN;
    return load_be32(bytes) == OWNER_MAGIC && load_be64(bytes + CHECKED_FROM) == id &&
           load_be32(bytes + 4) ==
               crc32c(0, (struct bytes){bytes + CHECKED_FROM, OWNER_LEN - CHECKED_FROM});
}

bool journal_is_of(const struct journal *journal, uint64_t id)
{
    return has_owner(journal, 0, id) || has_owner(journal, 1, id);
}

static int put_owner(const struct journal *journal, uint32_t place)
{
    uint8_t bytes[OWNER_LEN];
    store_be32(bytes, OWNER_MAGIC);
    store_be64(bytes + CHECKED_FROM, journal->id);
    store_be32(bytes + 4,
               crc32c(0, (struct bytes){bytes + CHECKED_FROM, OWNER_LEN - CHECKED_FROM}));
    struct iovec part = {bytes, sizeof bytes};
    return write_parts(journal->fd, &part, 1, (uint64_t)place * SECTOR_LEN);
}

int journal_begin(struct journal *journal, uint64_t old)
{
    journal_restart(journal);
    journal->number = 0;
    if (getrandom(&journal->id, sizeof journal->id, 0) != (ssize_t)sizeof journal->id)
        return -EIO;
    /* What a killed process left in the page cache: the place that keeps the old id must have it on
     * the disk before the other one is written over. */
    if (fdatasync(journal->fd) != 0)
        return -errno;
    int code = put_owner(journal, has_owner(journal, 0, old) ? 1 : 0);
    return code == 0 && fdatasync(journal->fd) != 0 ? -errno : code;
}

int journal_settle(const struct journal *journal)
{
    int code = 0;
    for (uint32_t place = 0; code == 0 && place < OWNER_PLACES; place++)
        if (!has_owner(journal, place, journal->id))
            code = put_owner(journal, place);
    return code;
}

/* ---- writing ---- */

bool journal_has_space(const struct journal *journal, const struct store_batch *batch)
{
    return journal->fd >= 0 && batch->changes.len <= journal->len &&
           frame_len(batch->changes.len) <= journal->len - journal->end;
}

static void put_header(uint8_t bytes[static HEADER_LEN], const struct journal *journal,
                       const struct store_batch *batch)
{
    memset(bytes, 0, HEADER_LEN);
    store_be32(bytes, MAGIC);
    store_be64(bytes + 8, journal->id);
    store_be64(bytes + 16, journal->number + 1);
    store_be64(bytes + 24, batch->changes.len);
    store_be32(bytes + 32, batch->count);
    uint32_t crc = crc32c(0, (struct bytes){bytes + CHECKED_FROM, HEADER_LEN - CHECKED_FROM});
    crc = crc32c(crc, (struct bytes){batch->changes.at, (uint32_t)batch->changes.len});
    store_be32(bytes + 4, crc);
}

int journal_append(struct journal *journal, const struct store_batch *batch, bool must_sync)
{
    static const uint8_t zeros[JOURNAL_BLOCK];
    uint8_t head[HEADER_LEN];
    CHECK(journal_has_space(journal, batch));
    put_header(head, journal, batch);
    uint64_t len = frame_len(batch->changes.len);
    struct iovec parts[] = {
        {head, sizeof head},
        {(void *)(uintptr_t)batch->changes.at, batch->changes.len},
        {(void *)(uintptr_t)zeros, len - HEADER_LEN - batch->changes.len},
    };
    int code = write_parts(journal->fd, parts, 3, journal->end);
    if (code == 0 && must_sync && fdatasync(journal->fd) != 0)
        code = -errno;
    if (code != 0)
        return code;
    add_frame(journal, batch->changes.len, batch->count);
    return 0;
}

void journal_restart(struct journal *journal)
{
    journal->end = FRAMES_FROM;
    journal->frame_count = 0;
    journal_give_back(journal);
}

/*
 * reserve.c -- keeps written zeros behind the last used page of a data file; see reserve.h.
 *
 *   0          used_end              solid_end               used_end + low_len + AHEAD_LEN
 *   |  pages     |  written zeros      |  still to be reserved             |
 *
 * The zeros are written, not only allocated: a block that is allocated but unwritten may need space
 * for the file system's own books at the moment it is written, which is the moment that must not
 * fail. (A file system that never overwrites in place cannot promise this to anybody.) And they are
 * synced: some file systems find out only then that there is no space. After a sync that failed
 * what is in the page cache says nothing of the disk, so it is written again.
 *
 * A copy of a store may have holes where the zeros were. A file longer than this process may write
 * (ulimit -f) has space that is not ours. Neither counts.
 *
 * Always true:
 *  (1) Only bytes behind solid_end and the last page are written or cut off here. What is before
 *      belongs to LMDB, or is zeros from here.
 *  (2) Failing to reserve never fails anything else. It is seen through reserve_has_room, and tried
 *      again each time the store is tended.
 *  (3) While there is room, at least low_len bytes are there to be written without asking anybody.
 *  (4) Once lost, room comes back only a margin above the mark: it does not flicker.
 */
#include "store/reserve.h"

#include "base/minmax.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t MIB = UINT64_C(1024) * 1024;

#define AHEAD_LEN  (48 * MIB) /* what is kept beyond the low-water mark */
#define MARGIN_LEN (2 * MIB)  /* invariant (4) */
#define REFILL_MAX (24 * MIB) /* what a start or a commit waits for */
#define SLICE_LEN  (1 * MIB)  /* what one call of reserve_tend adds: some milliseconds */

static const uint8_t zeros[64 * 1024];

/* The largest length the file may have: beyond RLIMIT_FSIZE a write is not refused but answered
 * with SIGXFSZ, which ends the process. */
static uint64_t file_end_max(const struct reserve *reserve)
{
    struct rlimit limit;
    uint64_t end_max = reserve->limit_len;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        end_max = min_u64(end_max, limit.rlim_cur);
    return end_max;
}

/* Where the first hole behind the last page begins, or the end of the file. A file system that does
 * not know holes says the latter. */
static uint64_t find_hole(int fd, uint64_t used_end, uint64_t file_end)
{
    off_t hole = used_end < file_end ? lseek(fd, (off_t)used_end, SEEK_HOLE) : -1;
    return hole < 0 ? file_end : min_u64((uint64_t)hole, file_end);
}

int reserve_init(struct reserve *reserve, int fd, uint64_t limit_len, uint64_t used_end)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return -errno;
    uint64_t file_end = (uint64_t)status.st_size, solid_end = find_hole(fd, used_end, file_end);
    bool is_cut = solid_end == file_end || ftruncate(fd, (off_t)solid_end) == 0;
    if (!is_cut || fdatasync(fd) != 0) /* a killed process may have written it */
        solid_end = used_end;
    *reserve = (struct reserve){.fd = fd,
                                .limit_len = limit_len,
                                .used_end = used_end,
                                .solid_end = solid_end,
                                .written_end = solid_end};
    return used_end > file_end_max(reserve) ? -EFBIG : 0;
}

static uint64_t ahead_len_of(const struct reserve *reserve)
{
    uint64_t end = min_u64(reserve->solid_end, file_end_max(reserve));
    return end > reserve->used_end ? end - reserve->used_end : 0;
}

/* To be called after every change of a length. */
static void judge(struct reserve *reserve)
{
    uint64_t free_len = ahead_len_of(reserve) + reserve->spare_len;
    if (free_len < reserve->low_len)
        reserve->has_room = false;
    else if (free_len >= reserve->low_len + MARGIN_LEN)
        reserve->has_room = true;
}

void reserve_note_used(struct reserve *reserve, uint64_t used_end, uint64_t low_len)
{
    reserve->used_end = used_end;
    reserve->low_len = low_len;
    reserve->spare_len = 0;
    /* A commit may have gone past what was reserved. */
    reserve->solid_end = reserve->written_end = max_u64(reserve->written_end, used_end);
    /* Not judged: reserve_refill and reserve_note_spare follow, and know more. */
}

void reserve_note_spare(struct reserve *reserve, uint64_t spare_len)
{
    reserve->spare_len = spare_len;
    judge(reserve);
}

/* Writes zeros up to `end`. False: not all of it could be written. */
static bool extend(struct reserve *reserve, uint64_t end)
{
    uint64_t end_max = file_end_max(reserve);
    bool is_cut = end > end_max;
    if (is_cut)
        end = end_max;
    while (reserve->written_end < end) {
        uint64_t len = min_u64(end - reserve->written_end, sizeof zeros);
        ssize_t written = pwrite(reserve->fd, zeros, (size_t)len, (off_t)reserve->written_end);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        reserve->written_end += (uint64_t)written;
    }
    return !is_cut;
}

/* What was written counts from here on. False: it does not, and is written again. */
static bool sync_written(struct reserve *reserve)
{
    if (reserve->written_end == reserve->solid_end)
        return true;
    if (fdatasync(reserve->fd) != 0) {
        reserve->written_end = reserve->solid_end;
        reserve->is_stuck = true;
        return false;
    }
    reserve->solid_end = reserve->written_end;
    return true;
}

void reserve_grow(struct reserve *reserve, uint64_t ahead_len)
{
    if (ahead_len_of(reserve) < ahead_len)
        reserve->is_stuck = !extend(reserve, reserve->used_end + ahead_len);
}

bool reserve_can_spend(struct reserve *reserve, uint64_t len, uint64_t beyond_len)
{
    if (len > AHEAD_LEN - MARGIN_LEN + beyond_len)
        return false;
    uint64_t wanted_len = reserve->low_len + MARGIN_LEN + len;
    if (ahead_len_of(reserve) >= wanted_len)
        return true;
    /* By a slice at least: each time is a sync. */
    reserve_grow(reserve, wanted_len + SLICE_LEN);
    return sync_written(reserve) && ahead_len_of(reserve) >= wanted_len;
}

void reserve_refill(struct reserve *reserve)
{
    uint64_t wanted_len = reserve->low_len + MARGIN_LEN;
    uint64_t piece_len = ahead_len_of(reserve) + REFILL_MAX;
    reserve_grow(reserve, min_u64(wanted_len, piece_len));
    (void)sync_written(reserve);
    if (!reserve_is_low(reserve))
        judge(reserve); /* otherwise what is spare decides, which reserve_note_spare will tell */
}

bool reserve_tend(struct reserve *reserve)
{
    uint64_t target_end = reserve->used_end + reserve->low_len + AHEAD_LEN;
    /* Not for less than a slice: each commit would wait for the sync of a few pages before it. */
    if (reserve->used_end + ahead_len_of(reserve) + SLICE_LEN > target_end) {
        reserve->is_stuck = false;
        return false;
    }
    bool is_extended = extend(reserve, min_u64(reserve->solid_end + SLICE_LEN, target_end));
    is_extended &= sync_written(reserve);
    reserve->is_stuck = !is_extended;
    judge(reserve);
    return is_extended && reserve->solid_end < target_end;
}

bool reserve_is_low(const struct reserve *reserve)
{
    return ahead_len_of(reserve) < reserve->low_len + MARGIN_LEN;
}

bool reserve_has_room(const struct reserve *reserve)
{
    return reserve->has_room;
}

/*
 * reserve.c -- keeps written zeros behind the last used page of a data file; see reserve.h.
 *
 *   0          used_end              file_end                used_end + low_len + AHEAD_LEN
 *   |  pages     |  written zeros      |  still to be reserved             |
 *
 * The zeros are written, not only allocated: a block that is allocated but unwritten may need space
 * for the file system's own books at the moment it is written, which is the moment that must not
 * fail. (A file system that never overwrites in place cannot promise this to anybody.)
 *
 * Always true:
 *  (1) Only bytes behind the end of the file are written here. What is in the file belongs to LMDB,
 *      and what lies between its last page and the end of the file is zeros from here.
 *  (2) Failing to reserve never fails anything else. It is seen through reserve_has_room, and tried
 *      again each time the store is tended.
 *  (3) While there is room, at least low_len bytes are there to be written without asking anybody.
 *  (4) Once lost, room comes back only a margin above the mark: it does not flicker.
 */
#include "store/reserve.h"

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

int reserve_init(struct reserve *reserve, int fd, uint64_t limit_len)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return -errno;
    *reserve = (struct reserve){
        .fd = fd,
        .limit_len = limit_len,
        .file_end = (uint64_t)status.st_size,
    };
    return 0;
}

static uint64_t ahead_len_of(const struct reserve *reserve)
{
    return reserve->file_end > reserve->used_end ? reserve->file_end - reserve->used_end : 0;
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
    if (reserve->file_end < used_end) /* a commit went past what was reserved */
        reserve->file_end = used_end;
    /* Not judged: reserve_refill and reserve_note_spare follow, and know more. */
}

void reserve_note_spare(struct reserve *reserve, uint64_t spare_len)
{
    reserve->spare_len = spare_len;
    judge(reserve);
}

/* The largest length the file may have: beyond RLIMIT_FSIZE a write is not refused but answered
 * with SIGXFSZ, which ends the process. */
static uint64_t file_end_max(const struct reserve *reserve)
{
    struct rlimit limit;
    uint64_t end_max = reserve->limit_len;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        limit.rlim_cur < end_max)
        end_max = limit.rlim_cur;
    return end_max;
}

/* Writes zeros from the end of the file up to `end`. False: not all of it could be written. */
static bool extend(struct reserve *reserve, uint64_t end)
{
    uint64_t end_max = file_end_max(reserve);
    bool is_cut = end > end_max;
    if (is_cut)
        end = end_max;
    while (reserve->file_end < end) {
        uint64_t len = end - reserve->file_end;
        if (len > sizeof zeros)
            len = sizeof zeros;
        ssize_t written = pwrite(reserve->fd, zeros, (size_t)len, (off_t)reserve->file_end);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        reserve->file_end += (uint64_t)written;
    }
    return !is_cut;
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
    return fdatasync(reserve->fd) == 0 && ahead_len_of(reserve) >= wanted_len;
}

void reserve_refill(struct reserve *reserve)
{
    uint64_t wanted_len = reserve->low_len + MARGIN_LEN;
    uint64_t piece_len = ahead_len_of(reserve) + REFILL_MAX;
    reserve_grow(reserve, wanted_len < piece_len ? wanted_len : piece_len);
    if (!reserve_is_low(reserve))
        judge(reserve); /* otherwise what is spare decides, which reserve_note_spare will tell */
}

bool reserve_tend(struct reserve *reserve)
{
    uint64_t target_end = reserve->used_end + reserve->low_len + AHEAD_LEN;
    /* Not for less than a slice: each commit would wait for the sync of a few pages before it. */
    if (reserve->file_end + SLICE_LEN > target_end) {
        reserve->is_stuck = false;
        return false;
    }
    uint64_t old_end = reserve->file_end;
    uint64_t end = old_end + SLICE_LEN;
    bool is_extended = extend(reserve, end < target_end ? end : target_end);
    /* Space counts when it is on the disk: some file systems find out only then. */
    if (reserve->file_end > old_end && fdatasync(reserve->fd) != 0)
        is_extended = false;
    reserve->is_stuck = !is_extended;
    judge(reserve);
    return is_extended && reserve->file_end < target_end;
}

bool reserve_is_low(const struct reserve *reserve)
{
    return ahead_len_of(reserve) < reserve->low_len + MARGIN_LEN;
}

bool reserve_has_room(const struct reserve *reserve)
{
    return reserve->has_room;
}

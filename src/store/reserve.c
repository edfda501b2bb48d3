/*
 * reserve.c -- keeps written zeros behind the last used page of a data file; see reserve.h.
 *
 *   0          used_end              file_end                         used_end + AHEAD_LEN
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
 *  (3) Once stuck it stays so until the low-water mark is passed again: room does not flicker.
 */
#include "store/reserve.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t MIB = UINT64_C(1024) * 1024;

#define AHEAD_LEN     (64 * MIB) /* what is kept behind the last used page */
#define FIRST_LEN     (4 * MIB)  /* of it, what a start waits for */
#define SLICE_LEN     (1 * MIB)  /* what one call of reserve_tend adds: some milliseconds */
#define LOW_WATER_LEN (16 * MIB) /* below it, and unable to grow: no room for new records */

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

void reserve_note_used(struct reserve *reserve, uint64_t used_end)
{
    reserve->used_end = used_end;
    if (reserve->file_end < used_end) /* a commit went past what was reserved */
        reserve->file_end = used_end;
}

void reserve_note_spare(struct reserve *reserve, uint64_t spare_len)
{
    reserve->spare_len = spare_len;
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

static void note_outcome(struct reserve *reserve, bool is_extended)
{
    if (ahead_len_of(reserve) >= LOW_WATER_LEN)
        reserve->is_stuck = false;
    else if (!is_extended)
        reserve->is_stuck = true;
}

void reserve_grow(struct reserve *reserve, uint64_t ahead_len)
{
    if (ahead_len_of(reserve) < ahead_len)
        note_outcome(reserve, extend(reserve, reserve->used_end + ahead_len));
}

void reserve_begin(struct reserve *reserve)
{
    reserve_grow(reserve, FIRST_LEN);
}

bool reserve_tend(struct reserve *reserve)
{
    uint64_t target_end = reserve->used_end + AHEAD_LEN;
    if (reserve->file_end >= target_end) {
        reserve->is_stuck = false;
        return false;
    }
    uint64_t old_end = reserve->file_end;
    uint64_t end = old_end + SLICE_LEN;
    bool is_extended = extend(reserve, end < target_end ? end : target_end);
    /* Space counts when it is on the disk: some file systems find out only then. */
    if (reserve->file_end > old_end && fdatasync(reserve->fd) != 0)
        is_extended = false;
    note_outcome(reserve, is_extended);
    return is_extended && reserve->file_end < target_end;
}

bool reserve_has_room(const struct reserve *reserve)
{
    return !reserve->is_stuck || ahead_len_of(reserve) + reserve->spare_len >= LOW_WATER_LEN;
}

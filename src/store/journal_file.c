/*
 * journal_file.c -- makes, opens and maps the file of a journal; see journal.h.
 *
 * The file is made under another name, synced, and renamed: one with the name is complete. It is
 * written with zeros, not only allocated, for the reason reserve.c gives; and it never grows, so
 * that syncing a frame needs nothing of the file system but the blocks of that frame.
 *
 * It is made where there is ample room only: a nearly full disk belongs to the tables, which can do
 * without a journal.
 *
 * What was read through the map counts as memory of this process until it is given back. The file
 * keeps it, so who reads it once more finds what was written last.
 */
#include "store/journal_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define NEW_FILE "journal.new"

static const uint64_t USUAL_LEN = UINT64_C(16) * 1024 * 1024;
static const uint64_t LEN_MIN = UINT64_C(2) * JOURNAL_BLOCK; /* the owner and a frame */
static const uint64_t LEN_MAX = UINT64_C(1024) * 1024 * 1024;

enum { AMPLE = 8 }; /* times its length must be free */

uint64_t journal_wanted_len(void)
{
    const char *text = getenv("HOLDFAST_JOURNAL_LEN");
    uint64_t len = text != NULL ? strtoull(text, NULL, 10) : USUAL_LEN;
    if (len < LEN_MIN)
        return 0;
    return len > LEN_MAX ? LEN_MAX : len / JOURNAL_BLOCK * JOURNAL_BLOCK;
}

/* The largest file that this process may write. */
static bool is_allowed(uint64_t len)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= len;
}

static bool has_ample_room(const struct directory *directory, uint64_t len)
{
    struct statvfs disk;
    return is_allowed(len) && fstatvfs(directory->fd, &disk) == 0 &&
           (uint64_t)disk.f_bavail * disk.f_frsize >= AMPLE * len;
}

static int write_zeros(int fd, uint64_t len)
{
    static const uint8_t zeros[16 * JOURNAL_BLOCK];
    for (uint64_t at = 0; at < len;) {
        size_t part = len - at < sizeof zeros ? (size_t)(len - at) : sizeof zeros;
        ssize_t written = pwrite(fd, zeros, part, (off_t)at);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? -errno : -EIO;
        at += (uint64_t)written;
    }
    return fsync(fd) == 0 ? 0 : -errno;
}

int journal_make(const struct directory *directory, uint64_t len)
{
    (void)unlinkat(directory->fd, NEW_FILE, 0); /* of a start that was killed */
    if (!has_ample_room(directory, len))
        return -ENOSPC;
    int fd = openat(directory->fd, NEW_FILE, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int code = write_zeros(fd, len);
    if (close(fd) != 0 && code == 0)
        code = -errno;
    if (code == 0) {
        directory_adopt(directory, NEW_FILE);
        code = directory_rename(directory, NEW_FILE, JOURNAL_FILE);
    }
    if (code != 0)
        (void)unlinkat(directory->fd, NEW_FILE, 0);
    return code;
}

static int map_file(struct journal *journal)
{
    struct stat status;
    if (fstat(journal->fd, &status) != 0)
        return -errno;
    uint64_t len = (uint64_t)status.st_size;
    if (!S_ISREG(status.st_mode) || len < LEN_MIN || len > LEN_MAX || len % JOURNAL_BLOCK != 0)
        return -EINVAL;
    journal->frames = calloc(len / JOURNAL_BLOCK, sizeof *journal->frames);
    if (journal->frames == NULL)
        return -ENOMEM;
    void *map = mmap(NULL, len, PROT_READ, MAP_SHARED, journal->fd, 0);
    if (map == MAP_FAILED)
        return -errno;
    journal->map = map;
    journal->len = len;
    return 0;
}

int journal_open(struct journal *ret, const struct directory *directory)
{
    *ret = (struct journal){.fd = -1};
    int mode = directory->is_reader ? O_RDONLY : O_RDWR;
    struct journal journal = {
        .fd = openat(directory->fd, JOURNAL_FILE, mode | O_CLOEXEC | O_NONBLOCK)};
    if (journal.fd < 0)
        return -errno;
    int code = map_file(&journal);
    /* A link may lead to the journal of another store. */
    if (code == 0 && !directory->is_reader && flock(journal.fd, LOCK_EX | LOCK_NB) != 0)
        code = -EBUSY;
    if (code != 0) {
        journal_close(&journal);
        return code;
    }
    *ret = journal;
    return 0;
}

void journal_give_back(const struct journal *journal)
{
    if (journal->map != NULL)
        (void)madvise((void *)(uintptr_t)journal->map, journal->len, MADV_DONTNEED); /* a hint */
}

bool journal_is_solid(const struct journal *journal)
{
    struct stat status;
    if (!is_allowed(journal->len) || fstat(journal->fd, &status) != 0)
        return false;
    if ((uint64_t)status.st_blocks * 512 >= journal->len)
        return true;
    /* One that compresses zeros, and never overwrites in place, has no space to give ahead. */
    return fallocate(journal->fd, 0, 0, (off_t)journal->len) == 0 || errno == EOPNOTSUPP;
}

void journal_close(struct journal *journal)
{
    if (journal->map != NULL)
        (void)munmap((void *)(uintptr_t)journal->map, journal->len);
    if (journal->fd >= 0)
        (void)close(journal->fd); /* what must be on the disk was synced */
    free(journal->frames);
    *journal = (struct journal){.fd = -1};
}

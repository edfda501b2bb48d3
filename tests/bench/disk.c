/*
 * disk.c -- see disk.h.
 */
#include "bench/disk.h"

#include "bench/process.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define SYNCS 500

static int compare_times(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

bool disk_measure(const char *path, struct disk_times *ret)
{
    static const char block[4096] = {1};
    static double times[SYNCS];
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    bool is_good = fd >= 0 && write(fd, block, sizeof block) == sizeof block && fsync(fd) == 0;
    for (uint32_t i = 0; i < SYNCS && is_good; i++) {
        uint64_t from_ns = process_now_ns();
        is_good = pwrite(fd, block, sizeof block, 0) == sizeof block && fdatasync(fd) == 0;
        times[i] = (double)(process_now_ns() - from_ns) / 1e3;
    }
    if (fd >= 0)
        close(fd);
    unlink(path);
    qsort(times, SYNCS, sizeof times[0], compare_times);
    *ret = (struct disk_times){times[SYNCS / 2], times[SYNCS * 99 / 100]};
    return is_good;
}

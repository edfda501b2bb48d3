/*
 * disk.h -- what the disk takes by itself: no durable answer is faster.
 */
#ifndef BENCH_DISK_H
#define BENCH_DISK_H

#include <stdbool.h>

struct disk_times {
    double p50_us, p99_us; /* of writing 4 KiB in place and an fdatasync, one after another */
};

/* In a file of its own at this path, which is removed. False: it could not be measured. */
bool disk_measure(const char *path, struct disk_times *ret);

#endif

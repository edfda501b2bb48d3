/*
 * system.h -- the system calls that tests make fail: syncs, writes, and what fills pipes.
 */
#ifndef FILE_SYSTEM_H
#define FILE_SYSTEM_H

#include <stddef.h>
#include <sys/types.h>

struct file_system {
    int (*fsync)(int fd);
    int (*fdatasync)(int fd);
    int (*syncfs)(int fd);
    ssize_t (*pwrite)(int fd, const void *data, size_t len, off_t offset);
    ssize_t (*splice)(int from, off_t *offset, int to, off_t *to_offset, size_t len,
                      unsigned flags);
};

/* The kernel's. */
extern const struct file_system file_system_real;

#endif

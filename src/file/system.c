/*
 * system.c -- see system.h.
 */
#include "file/system.h"

#include <fcntl.h>
#include <unistd.h>

const struct file_system file_system_real = {
    .fsync = fsync,
    .fdatasync = fdatasync,
    .syncfs = syncfs,
    .pwrite = pwrite,
    .splice = splice,
};

/*
 * slow_sync.c -- a library for LD_PRELOAD that makes every fdatasync, and every pwritev, wait while
 * a file exists.
 *
 * The file's path is HOLDFAST_SLOW_SYNC. While it is there the store thread hangs in its commit, as
 * it does on a disk that does not answer; nothing else of the server waits for it. A commit begins
 * with a pwritev, so one that hangs has not changed anything.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

typedef int (*sync_fn)(int fd);
typedef ssize_t (*write_fn)(int fd, const struct iovec *parts, int count, off64_t offset);

static void wait_for_gate(void)
{
    const char *gate = getenv("HOLDFAST_SLOW_SYNC");
    const struct timespec pause = {.tv_nsec = 2000000};
    while (gate && access(gate, F_OK) == 0)
        nanosleep(&pause, NULL);
}

int fdatasync(int fd)
{
    union {
        void *found;
        sync_fn call;
    } next = {.found = dlsym(RTLD_NEXT, "fdatasync")};
    wait_for_gate();
    return next.call(fd);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset)
{
    union {
        void *found;
        write_fn call;
    } next = {.found = dlsym(RTLD_NEXT, "pwritev64")};
    wait_for_gate();
    return next.call(fd, parts, count, offset);
}

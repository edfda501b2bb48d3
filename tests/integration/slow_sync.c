/*
 * slow_sync.c -- a library for LD_PRELOAD that makes every fdatasync wait while a file exists.
 *
 * The file's path is HOLDFAST_SLOW_SYNC. While it is there the store thread hangs in its commit, as
 * it does on a disk that does not answer; nothing else of the server waits for it.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

typedef int (*sync_fn)(int fd);

int fdatasync(int fd)
{
    const char *gate = getenv("HOLDFAST_SLOW_SYNC");
    const struct timespec pause = {.tv_nsec = 2000000};
    union {
        void *found;
        sync_fn call;
    } next = {.found = dlsym(RTLD_NEXT, "fdatasync")};
    while (gate && access(gate, F_OK) == 0)
        nanosleep(&pause, NULL);
    return next.call(fd);
}

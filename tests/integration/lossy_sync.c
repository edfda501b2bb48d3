/*
 * lossy_sync.c -- a library for LD_PRELOAD: a disk that loses what it could not sync.
 *
 * It concerns files directly below the directory HOLDFAST_LOSSY_FILES. What a sync made durable of
 * one is kept as a copy in HOLDFAST_LOSSY_DISK, named by its inode: that is what a power loss would
 * leave. While the file HOLDFAST_LOSSY_DISK/fail is there, syncs fail with EIO: all of them if it
 * has no content, every n-th if it has a number. A failed sync puts the file's bytes back to the
 * copy, as a kernel that drops the pages it could not write. While HOLDFAST_LOSSY_DISK/hang is
 * there, syncs wait, as on a disk that does not answer.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX = 65536 };

typedef int (*sync_fn)(int fd);

static atomic_uint count;

static int really(const char *name, int fd)
{
    union {
        void *found;
        sync_fn call;
    } next = {.found = dlsym(RTLD_NEXT, name)};
    return next.call(fd);
}

/* Is it a file of ours? Its copy's path. A directory is, and has none. */
static int is_ours(int fd, struct stat *st, char copy[512])
{
    const char *files = getenv("HOLDFAST_LOSSY_FILES"), *disk = getenv("HOLDFAST_LOSSY_DISK");
    char link[64], path[512] = "";
    if (!files || !disk || fstat(fd, st) != 0)
        return 0;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    if (readlink(link, path, sizeof(path) - 1) < 0 || strncmp(path, files, strlen(files)) != 0)
        return 0;
    snprintf(copy, 512, "%s/%llu", disk, (unsigned long long)st->st_ino);
    return 1;
}

static int must_fail(void)
{
    char path[512], text[16] = "";
    snprintf(path, sizeof(path), "%s/fail", getenv("HOLDFAST_LOSSY_DISK"));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t len = read(fd, text, sizeof(text) - 1);
    close(fd);
    unsigned each = (unsigned)strtoul(text, NULL, 10);
    return len >= 0 && (each == 0 || atomic_fetch_add(&count, 1) % each == each - 1);
}

static void wait_while_hanging(void)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/hang", getenv("HOLDFAST_LOSSY_DISK"));
    while (access(path, F_OK) == 0)
        usleep(2000);
}

/* All of it, seen through a descriptor of our own: theirs may be for writing only. */
static ssize_t read_all(const char *path, char *data)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? 0 : read(fd, data, FILE_MAX);
    if (fd >= 0)
        close(fd);
    return len;
}

static void keep(const char *copy, const char *data, ssize_t len)
{
    char fresh[600];
    snprintf(fresh, sizeof(fresh), "%s.%u", copy, atomic_fetch_add(&count, 0) + (unsigned)gettid());
    int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, data, (size_t)len) != len || close(fd) != 0 || rename(fresh, copy) != 0)
        abort();
}

static void lose(int fd, const char *copy)
{
    char data[FILE_MAX];
    ssize_t len = read_all(copy, data);
    if (ftruncate(fd, len) != 0 || pwrite(fd, data, (size_t)len, 0) != len)
        abort();
}

static int sync_or_lose(const char *name, int fd)
{
    struct stat st;
    char copy[512], link[64], data[FILE_MAX];
    ssize_t len = 0;
    if (!is_ours(fd, &st, copy))
        return really(name, fd);
    wait_while_hanging();
    int is_file = S_ISREG(st.st_mode);
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    if (must_fail()) {
        int own = is_file ? open(link, O_RDWR | O_CLOEXEC) : -1;
        if (own >= 0) {
            lose(own, copy);
            close(own);
        }
        errno = EIO;
        return -1;
    }
    if (is_file)
        len = read_all(link, data); /* what comes later may miss this sync */
    if (really(name, fd) != 0)
        return -1;
    if (is_file)
        keep(copy, data, len);
    return 0;
}

int fsync(int fd)
{
    return sync_or_lose("fsync", fd);
}

int fdatasync(int fd)
{
    return sync_or_lose("fdatasync", fd);
}

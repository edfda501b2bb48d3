/*
 * unsynced.c -- the file `unsynced` in a store directory; see unsynced.h.
 *
 * It holds the boot id as in /proc/sys/kernel/random/boot_id. Where the kernel does not tell its
 * boot id, the file says "unknown", which never equals anything: losing too much trust is the safe
 * side.
 *
 * Always true:
 *  (1) The mark is durable before the first commit that is not synced.
 *  (2) It goes away, or is replaced, only after everything before it is synced.
 */
#include "store/unsynced.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define MARK_NAME     "unsynced"
#define MARK_NEW_NAME "unsynced.new"
#define BOOT_ID_PATH  "/proc/sys/kernel/random/boot_id"
#define UNKNOWN       "unknown"

enum { BOOT_ID_MAX = 64 };

/* Reads a short text file up to its line end. 0 or negative errno. */
static int read_line(int at_fd, const char *name, char ret_line[static BOOT_ID_MAX])
{
    char line[BOOT_ID_MAX];
    int fd = openat(at_fd, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t len = read(fd, line, sizeof line - 1);
    int code = len < 0 ? -errno : 0;
    (void)close(fd); /* only read */
    if (code != 0)
        return code;
    line[len] = '\0';
    char *end = strchr(line, '\n');
    if (end != NULL)
        *end = '\0';
    memcpy(ret_line, line, sizeof line);
    return 0;
}

/* The boot id of this kernel, or "unknown". */
static void get_boot_id(char ret_id[static BOOT_ID_MAX])
{
    ret_id[0] = '\0';
    if (read_line(AT_FDCWD, BOOT_ID_PATH, ret_id) != 0 || ret_id[0] == '\0')
        memcpy(ret_id, UNKNOWN, sizeof UNKNOWN);
}

int unsynced_get(const struct directory *directory, enum unsynced_mark *ret)
{
    char marked[BOOT_ID_MAX], current[BOOT_ID_MAX];
    int code = read_line(directory->fd, MARK_NAME, marked);
    if (code == -ENOENT) {
        *ret = UNSYNCED_NONE;
        return 0;
    }
    if (code != 0)
        return code;
    get_boot_id(current);
    bool is_same = strcmp(marked, current) == 0 && strcmp(marked, UNKNOWN) != 0;
    *ret = is_same ? UNSYNCED_SAME_BOOT : UNSYNCED_OTHER_BOOT;
    return 0;
}

/* Replaces the mark by this line, which is durable before it gets the name. */
static int set_line(const struct directory *directory, const char *line)
{
    size_t len = strlen(line);
    int fd = openat(directory->fd, MARK_NEW_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int code = 0;
    ssize_t written = write(fd, line, len);
    if (written < 0)
        code = -errno;
    else if ((size_t)written != len)
        code = -ENOSPC; /* only a full disk cuts a write this short */
    else if (fsync(fd) != 0)
        code = -errno;
    if (close(fd) != 0 && code == 0)
        code = -errno;
    if (code != 0) {
        (void)unlinkat(directory->fd, MARK_NEW_NAME, 0); /* a leftover does no harm */
        return code;
    }
    directory_adopt(directory, MARK_NEW_NAME);
    return directory_rename(directory, MARK_NEW_NAME, MARK_NAME);
}

int unsynced_set(const struct directory *directory)
{
    char boot_id[BOOT_ID_MAX];
    get_boot_id(boot_id);
    return set_line(directory, boot_id);
}

int unsynced_set_lost(const struct directory *directory)
{
    return set_line(directory, UNKNOWN);
}

int unsynced_clear(const struct directory *directory)
{
    if (unlinkat(directory->fd, MARK_NAME, 0) != 0 && errno != ENOENT)
        return -errno;
    return directory_sync(directory);
}

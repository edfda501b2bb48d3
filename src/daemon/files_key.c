/*
 * files_key.c -- see files_key.h.
 *
 * A file of 16 random bytes. It is written under another name, synced, and renamed: there is never
 * half a key. A key that cannot be read is an error and never replaced: every handle that clients
 * have would be forged from then on.
 */
#include "daemon/files_key.h"

#include "base/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { KEY_LEN = 16, PATH_SIZE = 4200 };

static const char scheme[] = "lmdb:", name[] = "handle.key", name_new[] = "handle.key.new";

static struct mac_key key_of(const uint8_t bytes[static KEY_LEN])
{
    return (struct mac_key){{load_be64(bytes), load_be64(bytes + 8)}};
}

/* 0, -ENOENT: there is none, or another -errno. */
static int read_key(int directory, struct mac_key *ret)
{
    int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    uint8_t bytes[KEY_LEN + 1];
    ssize_t len = read(fd, bytes, sizeof bytes);
    int err = len < 0 ? -errno : len == KEY_LEN ? 0 : -EBADMSG;
    (void)close(fd);
    if (err == 0)
        *ret = key_of(bytes);
    return err;
}

static int write_key(int directory, struct mac_key *ret)
{
    uint8_t bytes[KEY_LEN];
    CHECK(getrandom(bytes, sizeof bytes, 0) == sizeof bytes);
    int fd = openat(directory, name_new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    bool is_written = write(fd, bytes, sizeof bytes) == sizeof bytes && fsync(fd) == 0;
    int err = is_written ? 0 : -errno;
    (void)close(fd);
    if (err == 0 && (renameat(directory, name_new, directory, name) != 0 || fsync(directory) != 0))
        err = -errno;
    if (err == 0)
        *ret = key_of(bytes);
    return err;
}

const char *files_key_directory(const char *store_url)
{
    bool is_on_disk = strncmp(store_url, scheme, sizeof scheme - 1) == 0;
    return is_on_disk ? store_url + sizeof scheme - 1 : NULL;
}

int files_key_get(const char *store_url, struct mac_key *ret, struct text *ret_why)
{
    const char *path = files_key_directory(store_url);
    if (path == NULL) {
        CHECK(getrandom(ret, sizeof *ret, 0) == sizeof *ret);
        return 0;
    }
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int err = directory < 0 ? -errno : read_key(directory, ret);
    if (err == -ENOENT && directory >= 0)
        err = write_key(directory, ret);
    if (directory >= 0)
        (void)close(directory);
    if (err == 0)
        return 0;
    text_add(ret_why, "the key of the file handles, ");
    text_add(ret_why, path);
    text_add(ret_why, "/");
    text_add(ret_why, name);
    text_add(ret_why, err == -EBADMSG
                          ? ", is damaged; restore it from a backup, or remove it and have every "
                            "client mount again"
                          : ", cannot be read or made: ");
    text_add(ret_why, err == -EBADMSG ? "" : strerror(-err));
    return err;
}

/*
 * statd_import.c -- reads rpc.statd's state directory; see statd_import.h.
 *
 * Always true: an entry that cannot be read is an error, never the end of the list: the rest would
 * be forgotten (P3).
 */
#include "daemon/statd_import.h"
#include "base/units.h"
#include "wire/sockaddr.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STATE_MAX INT32_MAX /* the protocol's number is signed */

/* Who owns the directory is not who reads it: no link is followed, nothing is waited for. */
enum { FILE_FLAGS = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC };

/* What is read, and where a sentence goes if it cannot be. */
struct reading {
    const char *path;
    statd_import_visit_fn visit;
    void *context;
    struct text *why;
};

/* `name` is of the directory or, if it is not NULL, `file` in it. */
static int fail(const struct reading *reading, const char *name, const char *file, int error)
{
    struct text *why = reading->why;
    text_add(why, reading->path);
    text_add(why, "/");
    text_add(why, name);
    if (file != NULL) {
        text_add(why, "/");
        text_add_escaped(why, bytes_of_text(file), 128);
    }
    text_add(why, ": ");
    if (error == ENOTSUP) {
        text_add(why, "not a file, so not one of rpc.statd; remove it. Nothing was imported");
        return -error;
    }
    if (error == ERANGE) {
        text_add(why, "not four bytes with a state number (1 to 2147483647); if the number is "
                      "lost, remove the file and start rpc.statd once. Nothing was imported");
        return -error;
    }
    if (error == EBADMSG) {
        text_add(why, "not a registration of this machine's lock manager; remove the file if no "
                      "lock of that host matters. Nothing was imported");
        return -error;
    }
    text_add(why, strerror(error));
    text_add(why, "; give the directory of rpc.statd, usually /var/lib/nfs");
    return -error;
}

struct address statd_import_resolve(const struct statd_import_host *host)
{
    struct address address = {0};
    if (address_parse(bytes_of_text(host->name), &address))
        return address;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    if (getaddrinfo(host->name, NULL, &hints, &found) != 0)
        return address;
    if (found->ai_family == AF_INET) {
        const struct sockaddr_in *at = (const struct sockaddr_in *)(const void *)found->ai_addr;
        address = address_v4((const uint8_t *)&at->sin_addr);
    } else if (found->ai_family == AF_INET6) {
        const struct sockaddr_in6 *at = (const struct sockaddr_in6 *)(const void *)found->ai_addr;
        address = sockaddr_v6((const uint8_t *)&at->sin6_addr, at->sin6_scope_id);
    }
    freeaddrinfo(found);
    return address;
}

int statd_import_content(const struct statd_import_host *host,
                         char ret[static STATD_IMPORT_CONTENT_MAX])
{
    int fd = openat(host->directory, host->name, FILE_FLAGS);
    int len = 0;
    if (fd < 0)
        return -errno;
    for (;;) {
        ssize_t got = read(fd, ret + len, (size_t)(STATD_IMPORT_CONTENT_MAX - len));
        if (got < 0)
            len = -errno;
        if (got <= 0)
            break;
        len += (int)got;
        if (len == STATD_IMPORT_CONTENT_MAX) {
            len = -EFBIG;
            break;
        }
    }
    (void)close(fd);
    return len;
}

static int visit_file(const struct reading *reading, int directory, const char *name, int seen)
{
    struct stat status;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return 0;
    if (name[0] == '.') {
        (void)fprintf(stderr, "holdfast store import: %s: ignored, as rpc.statd does\n", name);
        return 0;
    }
    if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISREG(status.st_mode))
        return -ENOTSUP;
    struct statd_import_host host = {
        .name = name,
        .since_ns = (uint64_t)status.st_mtim.tv_sec * SECOND_NS + (uint64_t)status.st_mtim.tv_nsec,
        .is_retired = seen >= 0,
        .is_known = seen >= 0 && faccessat(seen, name, F_OK, 0) == 0,
        .directory = directory,
    };
    return reading->visit(reading->context, &host);
}

/* Takes `directory` over, which is called `name`. `seen`: the one that was read before, or -1. */
static int read_hosts(const struct reading *reading, int directory, const char *name, int seen)
{
    DIR *entries = fdopendir(directory);
    if (entries == NULL) {
        int error = errno;
        (void)close(directory);
        return fail(reading, name, NULL, error);
    }
    int result = 0;
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(entries);
        if (entry == NULL) {
            result = errno == 0 ? 0 : fail(reading, name, NULL, errno);
            break;
        }
        result = visit_file(reading, dirfd(entries), entry->d_name, seen);
        if (result != 0) {
            result = fail(reading, name, entry->d_name, -result);
            break;
        }
    }
    (void)closedir(entries);
    return result;
}

static int open_directory(int parent, const char *name)
{
    return openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int read_state(int directory, uint32_t *ret)
{
    uint32_t words[2] = {0};
    int fd = openat(directory, "state", FILE_FLAGS);
    if (fd < 0)
        return -errno;
    ssize_t len = read(fd, words, sizeof words);
    (void)close(fd);
    if (len != sizeof words[0] || words[0] == 0 || words[0] > STATE_MAX)
        return -ERANGE;
    *ret = words[0];
    return 0;
}

static int read_both(const struct reading *reading, int fd)
{
    int sm = open_directory(fd, "sm"); /* kept open to look into */
    int again = sm < 0 ? -1 : open_directory(fd, "sm");
    if (again < 0) {
        int error = errno;
        if (sm >= 0)
            (void)close(sm);
        return fail(reading, "sm", NULL, error);
    }
    int result = read_hosts(reading, again, "sm", -1);
    if (result == 0) {
        int bak = open_directory(fd, "sm.bak");
        if (bak >= 0)
            result = read_hosts(reading, bak, "sm.bak", sm);
        else if (errno != ENOENT)
            result = fail(reading, "sm.bak", NULL, errno);
    }
    (void)close(sm);
    return result;
}

int statd_import_read(const char *directory, statd_import_visit_fn visit, void *context,
                      uint32_t *ret_state, struct text *ret_why)
{
    uint32_t state = 0;
    struct reading reading = {
        .path = directory, .visit = visit, .context = context, .why = ret_why};
    int fd = open_directory(AT_FDCWD, directory);
    if (fd < 0)
        return fail(&reading, "", NULL, errno);
    int result = read_state(fd, &state);
    if (result != 0)
        result = fail(&reading, "state", NULL, -result);
    else
        result = read_both(&reading, fd);
    (void)close(fd);
    if (result == 0)
        *ret_state = state;
    return result;
}

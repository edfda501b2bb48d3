/*
 * statd_import.c -- reads rpc.statd's state directory; see statd_import.h.
 *
 * The hosts are lock clients of the kernel's lock manager, which rpc.statd served on this machine.
 * They are known by name only, so each name is resolved here and now: while the old server still
 * runs, the names mean what they meant to it.
 */
#include "daemon/statd_import.h"
#include "base/units.h"
#include "wire/sockaddr.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(struct text *ret_why, const char *directory, const char *name, int error)
{
    text_add(ret_why, directory);
    text_add(ret_why, "/");
    text_add(ret_why, name);
    text_add(ret_why, ": ");
    text_add(ret_why, strerror(error));
    text_add(ret_why, "; give the directory of rpc.statd, usually /var/lib/nfs");
    return -error;
}

static struct address resolve(const char *name)
{
    struct address address = {0};
    if (address_parse(bytes_of_text(name), &address))
        return address;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    if (getaddrinfo(name, NULL, &hints, &found) != 0)
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

static int visit_file(int directory, const char *name, statd_import_visit_fn visit, void *context)
{
    struct stat status;
    if (name[0] == '.')
        return 0;
    if (fstatat(directory, name, &status, 0) != 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISREG(status.st_mode))
        return 0;
    struct statd_import_host host = {
        .name = bytes_of_text(name),
        .address = resolve(name),
        .since_ns = (uint64_t)status.st_mtim.tv_sec * SECOND_NS,
    };
    return visit(context, &host);
}

/*
 * `seen` is a directory that was read before: what it has is passed over; -1: none. An unreadable
 * entry is an error, never the end of the list: the rest would be forgotten (P3).
 */
static int read_hosts(int directory, int seen, statd_import_visit_fn visit, void *context)
{
    DIR *entries = fdopendir(directory); /* takes it over */
    if (entries == NULL) {
        int error = errno;
        (void)close(directory);
        return -error;
    }
    int result = 0;
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(entries);
        if (entry == NULL)
            result = -errno;
        else if (seen < 0 || faccessat(seen, entry->d_name, F_OK, 0) != 0)
            result = visit_file(dirfd(entries), entry->d_name, visit, context);
        if (entry == NULL || result != 0)
            break;
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
    int fd = openat(directory, "state", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t len = read(fd, ret, sizeof *ret);
    (void)close(fd);
    return len == sizeof *ret ? 0 : -EINVAL;
}

/* What the visitor returned, or a negative errno with *ret_why filled. */
static int read_both(int fd, const char *path, statd_import_visit_fn visit, void *context,
                     struct text *ret_why)
{
    int sm = open_directory(fd, "sm"); /* kept open to look into */
    int again = sm < 0 ? -1 : open_directory(fd, "sm");
    if (again < 0) {
        int error = errno;
        if (sm >= 0)
            (void)close(sm);
        return fail(ret_why, path, "sm", error);
    }
    int result = read_hosts(again, -1, visit, context);
    if (result < 0)
        result = fail(ret_why, path, "sm", -result);
    if (result == 0) {
        int bak = open_directory(fd, "sm.bak");
        if (bak >= 0)
            result = read_hosts(bak, sm, visit, context);
        else if (errno != ENOENT)
            result = -errno;
        if (result < 0)
            result = fail(ret_why, path, "sm.bak", -result);
    }
    (void)close(sm);
    return result;
}

int statd_import_read(const char *directory, statd_import_visit_fn visit, void *context,
                      uint32_t *ret_state, struct text *ret_why)
{
    uint32_t state = 0;
    int fd = open_directory(AT_FDCWD, directory);
    if (fd < 0)
        return fail(ret_why, directory, "", errno);
    int result = read_state(fd, &state);
    if (result != 0)
        result = fail(ret_why, directory, "state", -result);
    else
        result = read_both(fd, directory, visit, context, ret_why);
    (void)close(fd);
    if (result == 0)
        *ret_state = state;
    return result;
}

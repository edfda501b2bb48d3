/*
 * machine.c -- see machine.h.
 *
 * Every file here is the kernel's or an administrator's, small, and read once. Its name can be
 * given another root with HOLDFAST_MACHINE_ROOT, for tests: none may write the files of the machine
 * it runs on, or wait for its reboot.
 */
#include "daemon/machine.h"

#include "base/hex.h"
#include "base/units.h"
#include "wire/sockaddr.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

enum { PATH_LEN_MAX = 512, CONTENT_MAX = 4096 };

static int open_file(const char *path, int flags)
{
    char full[PATH_LEN_MAX];
    const char *root = getenv("HOLDFAST_MACHINE_ROOT");
    int len = snprintf(full, sizeof full, "%s%s", root != NULL ? root : "", path);
    if (len < 0 || len >= (int)sizeof full)
        return -ENAMETOOLONG;
    int fd = open(full, flags | O_CLOEXEC | O_NOCTTY);
    return fd < 0 ? -errno : fd;
}

/* The beginning of a file as text; its length, or a negative errno. */
static int read_file(const char *path, char ret[static CONTENT_MAX])
{
    int fd = open_file(path, O_RDONLY);
    if (fd < 0)
        return fd;
    ssize_t len = read(fd, ret, CONTENT_MAX - 1);
    int result = len < 0 ? -errno : (int)len;
    (void)close(fd);
    if (result >= 0)
        ret[result] = '\0';
    return result;
}

static int write_file(const char *path, const char *content)
{
    int fd = open_file(path, O_WRONLY);
    if (fd < 0)
        return fd;
    ssize_t len = write(fd, content, strlen(content));
    int result = len < 0 ? -errno : 0;
    (void)close(fd);
    return result;
}

/* 32 hexadecimal digits with dashes between some of them. */
static bool parse_boot(const char *text, uint8_t ret[static RECORD_BOOT_LEN])
{
    char digits[2 * RECORD_BOOT_LEN + 1];
    uint32_t count = 0, len = 0;
    for (; *text != '\0' && *text != '\n'; text++)
        if (*text != '-' && count < sizeof digits - 1)
            digits[count++] = *text;
        else if (*text != '-')
            return false;
    digits[count] = '\0';
    return hex_parse(digits, ret, RECORD_BOOT_LEN, &len) && len == RECORD_BOOT_LEN;
}

int machine_identify(struct machine_identity *ret, struct text *ret_why)
{
    static const char path[] = "/proc/sys/kernel/random/boot_id";
    char content[CONTENT_MAX];
    struct machine_identity identity = {.netns = 0};
    int result = read_file(path, content);
    if (result >= 0)
        result = parse_boot(content, identity.boot) ? 0 : -EINVAL;
    if (result != 0) {
        text_add(ret_why, "cannot read which boot this is from ");
        text_add(ret_why, path);
        text_add(ret_why, ": ");
        text_add(ret_why, strerror(-result));
        text_add(ret_why, "; without it every start would look like a reboot; mount /proc");
        return result;
    }
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    socklen_t len = sizeof identity.netns;
    if (fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &identity.netns, &len) != 0)
        identity.netns = 0; /* before Linux 5.14: the boot has to do */
    if (fd >= 0)
        (void)close(fd);
    *ret = identity;
    return 0;
}

uint32_t machine_addresses(struct address *ret, uint32_t max)
{
    struct ifaddrs *all = NULL;
    uint32_t count = 0;
    if (getifaddrs(&all) != 0)
        return 0;
    for (const struct ifaddrs *at = all; at != NULL && count < max; at = at->ifa_next) {
        uint16_t port;
        struct address address = {0};
        if (at->ifa_addr != NULL)
            address = sockaddr_address(at->ifa_addr, &port);
        if (address.family != 0)
            ret[count++] = address;
    }
    freeifaddrs(all);
    return count;
}

/* A line that is neither empty nor a comment. */
static bool has_entry(const char *path)
{
    char content[CONTENT_MAX];
    if (read_file(path, content) <= 0)
        return false;
    for (const char *line = content; *line != '\0';) {
        line += strspn(line, " \t");
        if (*line != '#' && *line != '\n' && *line != '\0')
            return true;
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return false;
}

static bool exists(const char *path)
{
    int fd = open_file(path, O_PATH | O_NOFOLLOW);
    if (fd >= 0)
        (void)close(fd);
    return fd >= 0;
}

bool machine_exports(void)
{
    char content[CONTENT_MAX];
    bool has_threads =
        read_file("/proc/fs/nfsd/threads", content) > 0 && strtol(content, NULL, 10) > 0;
    return has_threads || has_entry("/etc/exports") || has_entry("/var/lib/nfs/etab") ||
           exists("/etc/systemd/system/multi-user.target.wants/nfs-server.service") ||
           exists("/etc/systemd/system/multi-user.target.wants/nfs-ganesha.service");
}

uint64_t machine_booted_ns(void)
{
    struct timespec wall, up;
    if (clock_gettime(CLOCK_REALTIME, &wall) != 0 || clock_gettime(CLOCK_BOOTTIME, &up) != 0)
        return 0;
    uint64_t wall_ns = (uint64_t)wall.tv_sec * SECOND_NS + (uint64_t)wall.tv_nsec;
    uint64_t up_ns = (uint64_t)up.tv_sec * SECOND_NS + (uint64_t)up.tv_nsec;
    return wall_ns > up_ns ? wall_ns - up_ns : 0;
}

bool machine_ran_sm_notify(void)
{
    return exists("/run/sm-notify.pid");
}

int machine_set_state(uint32_t state)
{
    char content[16];
    (void)snprintf(content, sizeof content, "%u\n", state);
    return write_file("/proc/sys/fs/nfs/nsm_local_state", content);
}

int machine_end_grace(void)
{
    return write_file("/proc/fs/lockd/nlm_end_grace", "Y\n");
}

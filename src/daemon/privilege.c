/*
 * privilege.c -- from root to somebody who may do less; see privilege.h.
 *
 * Giving files away is the dangerous part: in a directory where the user could already write, a
 * hard link to somebody else's file would make root give that file away too. So files are given
 * away only in a directory that nobody but root could write to until now, and the directory itself
 * goes last: when anything fails, the next start finds it still root's and begins again.
 *
 * The one capability that stays is CAP_NET_BIND_SERVICE: calls to clients may need a privileged
 * port of their own each (R-NOTIFY-3), long after the drop. A change of user ids clears all
 * capabilities unless the process asked to keep them; so all are kept over the change, and then all
 * but this one are given up. Effective ones are cleared by the change in any case, so that in
 * between nothing can be done with them.
 */
#include "daemon/privilege.h"

#include "base/check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/capability.h>

static int fail(struct text *ret_why, const char *what, const char *whom, const char *next,
                int error)
{
    text_add(ret_why, what);
    text_add_escaped(ret_why, bytes_of_text(whom), 200);
    text_add(ret_why, ": ");
    text_add(ret_why, next != NULL ? next : strerror(error));
    return -error;
}

int privilege_resolve(const char *user, struct privilege *ret, struct text *ret_why)
{
    if (user == NULL) {
        *ret = (struct privilege){.is_needed = false};
        return 0;
    }
    /* The start is single-threaded and keeps no pointer: the plain call is enough. */
    errno = 0;
    const struct passwd *entry = getpwnam(user);
    if (entry == NULL) {
        int error =
            errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == EIO ? errno : ENOENT;
        return fail(ret_why, "--user ", user,
                    error == ENOENT ? "no such user on this machine; create it or name another"
                                    : NULL,
                    error);
    }
    if (geteuid() == entry->pw_uid && getuid() == entry->pw_uid) {
        *ret = (struct privilege){.is_needed = false};
        return 0;
    }
    if (geteuid() != 0)
        return fail(ret_why, "--user ", user,
                    "only root can become another user; start as root or leave the option out",
                    EPERM);
    *ret = (struct privilege){.is_needed = true, .uid = entry->pw_uid, .gid = entry->pw_gid};
    return 0;
}

int privilege_resolve_group(const char *group, struct privilege *privilege, struct text *ret_why)
{
    if (group == NULL)
        return 0;
    const struct group *entry = getgrnam(group);
    char *end;
    errno = 0;
    unsigned long number = strtoul(group, &end, 10);
    bool is_number =
        group[0] >= '0' && group[0] <= '9' && *end == '\0' && errno == 0 && number < (gid_t)-1;
    if (entry == NULL && !is_number)
        return fail(ret_why, "--tracker-group ", group,
                    "no such group on this machine; create it or name another", ENOENT);
    privilege->has_group = true;
    privilege->group = entry != NULL ? entry->gr_gid : (gid_t)number;
    return 0;
}

/* Regular files with one name only; anything else in a store directory is not the store's. */
static int give_files(const struct privilege *privilege, DIR *list)
{
    struct dirent *entry;
    errno = 0;
    while ((entry = readdir(list)) != NULL) {
        struct stat status;
        if (fstatat(dirfd(list), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
            return -errno;
        if (S_ISREG(status.st_mode) && status.st_nlink == 1 &&
            fchownat(dirfd(list), entry->d_name, privilege->uid, privilege->gid,
                     AT_SYMLINK_NOFOLLOW) != 0)
            return -errno;
        errno = 0;
    }
    return -errno;
}

static int give_directory(const struct privilege *privilege, int fd)
{
    int copy = dup(fd);
    if (copy < 0)
        return -errno;
    DIR *list = fdopendir(copy);
    if (list == NULL) {
        int error = errno;
        (void)close(copy);
        return -error;
    }
    int result = give_files(privilege, list);
    if (result == 0 && fchown(fd, privilege->uid, privilege->gid) != 0)
        result = -errno;
    (void)closedir(list); /* only read */
    return result;
}

int privilege_hand_over(const struct privilege *privilege, const char *directory,
                        struct text *ret_why)
{
    if (!privilege->is_needed)
        return 0;
    if (mkdir(directory, 0700) != 0 && errno != EEXIST)
        return fail(ret_why, "cannot create ", directory, NULL, errno);
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return fail(ret_why, "cannot open the directory ", directory, NULL, errno);
    struct stat status;
    int result = fstat(fd, &status) == 0 ? 0 : -errno;
    if (result != 0) {
        (void)fail(ret_why, "cannot look at ", directory, NULL, -result);
    } else if (status.st_uid != privilege->uid) {
        if (status.st_uid != 0 || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
            result = fail(ret_why, "cannot use ", directory,
                          "it belongs neither to the --user nor to root alone; chown -R it to that "
                          "user, or choose another --store",
                          EPERM);
        else if ((result = give_directory(privilege, fd)) != 0)
            (void)fail(ret_why, "cannot chown to the --user: ", directory, NULL, -result);
    }
    (void)close(fd);
    return result;
}

/* Gives up every capability but CAP_NET_BIND_SERVICE, if we have that. 0 or a negative errno. */
static int keep_bind_only(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
    if (syscall(SYS_capget, &header, data) != 0)
        return -errno;
    uint32_t kept = data[0].permitted & UINT32_C(1) << CAP_NET_BIND_SERVICE;
    memset(data, 0, sizeof data);
    data[0].permitted = data[0].effective = kept;
    return syscall(SYS_capset, &header, data) == 0 ? 0 : -errno;
}

int privilege_drop(const struct privilege *privilege, struct text *ret_why)
{
    if (!privilege->is_needed)
        return 0;
    /* Groups first: without root they can no longer be changed. */
    const gid_t groups[] = {privilege->gid, privilege->group};
    if (setgroups(privilege->has_group ? 2 : 1, groups) != 0)
        return fail(ret_why, "cannot drop privileges in ", "setgroups", NULL, errno);
    if (setresgid(privilege->gid, privilege->gid, privilege->gid) != 0)
        return fail(ret_why, "cannot drop privileges in ", "setresgid", NULL, errno);
    if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0)
        return fail(ret_why, "cannot drop privileges in ", "prctl", NULL, errno);
    if (setresuid(privilege->uid, privilege->uid, privilege->uid) != 0)
        return fail(ret_why, "cannot drop privileges in ", "setresuid", NULL, errno);
    int result = privilege->uid == 0 ? 0 : keep_bind_only();
    if (result != 0)
        return fail(ret_why, "cannot drop privileges in ", "capset", NULL, -result);
    (void)prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0); /* there is nothing left to keep */
    CHECK(geteuid() == privilege->uid);
    CHECK(getegid() == privilege->gid);
    CHECK(privilege->uid == 0 || setuid(0) != 0);
    return 0;
}

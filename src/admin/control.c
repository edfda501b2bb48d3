/*
 * control.c -- making and removing the file of the control socket; see control.h.
 *
 * Two servers that start at once must not take each other's file for a dead one's, so everything
 * from the first look to listen() happens while the directory is locked (flock).
 */
#include "admin/control.h"

#include "base/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 64 };

/* What was found where the socket shall be. */
enum found { FOUND_NOTHING, FOUND_LIVE, FOUND_FOREIGN, FOUND_DEAD, FOUND_OTHER };

/* A name for the file that fits into a socket address, however long its path is. */
static bool set_name(const struct control *control, const char *path, struct sockaddr_un *ret)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    int len = snprintf(ret->sun_path, sizeof ret->sun_path, "%s", path);
    if (len >= 0 && (size_t)len < sizeof ret->sun_path)
        return true;
    len = snprintf(ret->sun_path, sizeof ret->sun_path, "/proc/self/fd/%d/%s",
                   control->directory_fd, control->name);
    return len >= 0 && (size_t)len < sizeof ret->sun_path;
}

static enum found look(const struct control *control, const struct sockaddr_un *name)
{
    struct stat info;
    if (fstatat(control->directory_fd, control->name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? FOUND_NOTHING : FOUND_OTHER;
    if (!S_ISSOCK(info.st_mode))
        return FOUND_OTHER;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return FOUND_OTHER;
    /* EAGAIN: its backlog is full, so somebody listens. */
    int error = connect(fd, (const struct sockaddr *)name, sizeof *name) == 0 ? 0 : errno;
    (void)close(fd);
    return error == 0 || error == EAGAIN ? FOUND_LIVE
           : error == EACCES             ? FOUND_FOREIGN /* its mode, not its directory */
           : error == ECONNREFUSED       ? FOUND_DEAD
           : error == ENOENT             ? FOUND_NOTHING
                                         : FOUND_OTHER; /* of another kind */
}

/* 0 or an errno. The mode is the socket's own before it has a name: no moment is open to others. */
static int bind_at(struct control *control, const struct sockaddr_un *name)
{
    struct stat info;
    control->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (control->fd < 0)
        return errno;
    if (fchmod(control->fd, 0600) != 0 ||
        bind(control->fd, (const struct sockaddr *)name, sizeof *name) != 0)
        return errno;
    if (fchmodat(control->directory_fd, control->name, 0600, 0) != 0 ||
        fstatat(control->directory_fd, control->name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
        listen(control->fd, BACKLOG) != 0) {
        int error = errno;
        (void)unlinkat(control->directory_fd, control->name, 0);
        return error;
    }
    control->device = info.st_dev;
    control->inode = info.st_ino;
    return 0;
}

static bool refuse(const char *path, const char *cause, const char *advice, struct text *ret_why)
{
    text_add(ret_why, "--control: cannot listen on ");
    text_add_escaped(ret_why, bytes_of_text(path), 300);
    text_add(ret_why, ": ");
    text_add(ret_why, cause);
    text_add(ret_why, advice);
    return false;
}

/* The directory is locked. */
static bool open_locked(struct control *control, const char *path, int *ret_exit_code,
                        struct text *ret_why)
{
    struct sockaddr_un name;
    *ret_exit_code = CONTROL_EXIT_USAGE;
    if (!set_name(control, path, &name))
        return refuse(path, "the name is too long", "; choose a shorter one", ret_why);
    switch (look(control, &name)) {
    case FOUND_NOTHING:
        break;
    case FOUND_DEAD:
        if (unlinkat(control->directory_fd, control->name, 0) != 0)
            return refuse(path, strerror(errno), "; a dead server left it, remove it", ret_why);
        break;
    case FOUND_LIVE:
        *ret_exit_code = CONTROL_EXIT_IN_USE;
        return refuse(path, "another server answers there",
                      "; stop it, or choose another path with --control", ret_why);
    case FOUND_FOREIGN: /* it cannot be asked whether it lives, so it is taken to */
        *ret_exit_code = CONTROL_EXIT_IN_USE;
        return refuse(
            path, "it is the socket of another user's server",
            "; stop that or, if it has ended, remove the file, or choose another path with "
            "--control",
            ret_why);
    case FOUND_OTHER:
        return refuse(path,
                      "there is something that is no socket of a server, or cannot be looked at",
                      "; move it away, or choose another path with --control", ret_why);
    }
    int error = bind_at(control, &name);
    return error == 0 || refuse(path, strerror(error),
                                error == EACCES || error == EROFS
                                    ? "; the directory must be writable for the server's user"
                                    : "",
                                ret_why);
}

static bool split(const char *path, char **ret_directory, char **ret_name)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    size_t len = slash == NULL ? 0 : slash == path ? 1 : (size_t)(slash - path);
    *ret_directory = slash == NULL ? strdup(".") : strndup(path, len);
    *ret_name = strdup(name);
    return *ret_directory != NULL && *ret_name != NULL && name[0] != '\0';
}

bool control_open(const char *path, struct control *ret, int *ret_exit_code, struct text *ret_why)
{
    struct control control = {.fd = -1, .directory_fd = -1};
    char *directory = NULL;
    bool is_open = false;
    *ret_exit_code = CONTROL_EXIT_USAGE;
    if (!split(path, &directory, &control.name)) {
        (void)refuse(path, "not the path of a file", "", ret_why);
    } else {
        control.directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (control.directory_fd < 0 || flock(control.directory_fd, LOCK_EX) != 0)
            (void)refuse(path, strerror(errno), "; its directory must be there", ret_why);
        else
            is_open = open_locked(&control, path, ret_exit_code, ret_why);
    }
    free(directory);
    if (is_open) {
        CHECK(flock(control.directory_fd, LOCK_UN) == 0);
        *ret = control;
        return true;
    }
    if (control.fd >= 0)
        (void)close(control.fd);
    if (control.directory_fd >= 0)
        (void)close(control.directory_fd);
    free(control.name);
    return false;
}

static bool is_ours(const struct control *control)
{
    struct stat info;
    return fstatat(control->directory_fd, control->name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
           info.st_dev == control->device && info.st_ino == control->inode;
}

int control_give(const struct control *control, uid_t uid, gid_t gid)
{
    if (control->name == NULL || !is_ours(control))
        return 0;
    return fchownat(control->directory_fd, control->name, uid, gid, AT_SYMLINK_NOFOLLOW) == 0
               ? 0
               : errno;
}

void control_close(struct control *control)
{
    if (control->name == NULL)
        return;
    if (is_ours(control))
        (void)unlinkat(control->directory_fd, control->name, 0);
    (void)close(control->directory_fd);
    free(control->name);
    *control = (struct control){0};
}

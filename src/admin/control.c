/*
 * control.c -- creates and removes the control socket; see control.h.
 *
 * Two servers that start at once must not mistake each other's socket for a dead server's, so
 * everything from the decisive check to listen() happens while a file next to the socket is locked:
 * the *guard*, NAME.lock. Anyone who can open a file can lock it and keep us waiting: so the guard
 * is a file that nobody else can open, never the directory, and waiting for it is logged and has a
 * deadline. It is held for a few system calls and removed by its holder, so that no file with the
 * wrong owner is left for the next start.
 *
 * Always true: the holder of the lock on a guard that still has its name is alone. A file that lost
 * its name between open and flock is no longer the guard; the search starts again.
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
#include <time.h>
#include <unistd.h>

enum { BACKLOG = 64, PAUSE_MS = 20 };

/* What was found where the socket should be. */
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
    /* EAGAIN: its backlog is full, so it is listening. */
    int error = connect(fd, (const struct sockaddr *)name, sizeof *name) == 0 ? 0 : errno;
    (void)close(fd);
    return error == 0 || error == EAGAIN ? FOUND_LIVE
           : error == EACCES             ? FOUND_FOREIGN /* its mode, not its directory */
           : error == ECONNREFUSED       ? FOUND_DEAD
           : error == ENOENT             ? FOUND_NOTHING
                                         : FOUND_OTHER; /* of another kind */
}

/* The group first: no other one is ever let in. False: errno says why not. */
static bool let_in(const struct control *control)
{
    return control->group == CONTROL_NO_GROUP ||
           (fchownat(control->directory_fd, control->name, (uid_t)-1, control->group,
                     AT_SYMLINK_NOFOLLOW) == 0 &&
            fchmodat(control->directory_fd, control->name, 0660, 0) == 0);
}

/* 0 or an errno. The mode is set before the socket has a name: it is never open to others. */
static int bind_at(struct control *control, const struct sockaddr_un *name)
{
    struct stat info;
    control->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (control->fd < 0)
        return errno;
    if (fchmod(control->fd, 0600) != 0 ||
        bind(control->fd, (const struct sockaddr *)name, sizeof *name) != 0)
        return errno;
    if (fchmodat(control->directory_fd, control->name, 0600, 0) != 0 || !let_in(control) ||
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

/* Can the socket be made where this was found? False: refused. */
static bool is_usable(enum found found, const char *path, int *ret_exit_code, struct text *ret_why)
{
    switch (found) {
    case FOUND_NOTHING:
    case FOUND_DEAD:
        return true;
    case FOUND_LIVE:
        *ret_exit_code = CONTROL_EXIT_IN_USE;
        return refuse(path, "another server is using it",
                      "; stop it, or choose another path with --control", ret_why);
    case FOUND_FOREIGN: /* it cannot be probed, so it counts as alive */
        *ret_exit_code = CONTROL_EXIT_IN_USE;
        return refuse(path, "another user's server is using it",
                      "; stop it or, if it is no longer running, remove the file, or choose "
                      "another path with --control",
                      ret_why);
    case FOUND_OTHER:
        return refuse(path, "the path exists but is not a server's socket, or cannot be examined",
                      "; move it away, or choose another path with --control", ret_why);
    }
    UNREACHABLE();
}

static const char *advice_of(int error)
{
    return error == EPERM
               ? "; the server must start as root, or its user be a member of --tracker-group; "
                 "systemd's SystemCallFilter must allow @chown"
           : error == EACCES || error == EROFS
               ? "; its directory must be writable by the server's user"
               : "";
}

/* ---- the guard ---- */

/*
 * Nobody else can have opened it: it is ours, grants others nothing and has only this name. To
 * root, the directory's owner counts as us: the user of --user may have left it.
 */
static bool is_private(const struct control *control, int fd)
{
    struct stat info, directory;
    if (fstat(fd, &info) != 0 || fstat(control->directory_fd, &directory) != 0)
        return false;
    bool is_owned = info.st_uid == geteuid() || (geteuid() == 0 && info.st_uid == directory.st_uid);
    return S_ISREG(info.st_mode) && is_owned && info.st_nlink <= 1 &&
           (info.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

static bool has_name(const struct control *control, int fd, const char *guard)
{
    struct stat opened, named;
    return fstat(fd, &opened) == 0 &&
           fstatat(control->directory_fd, guard, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

enum grip { GRIP_TAKEN, GRIP_OTHERS, GRIP_AGAIN, GRIP_OPEN_TO_OTHERS, GRIP_FAILED };

/* One try; errno of GRIP_FAILED. */
static enum grip try_guard(const struct control *control, const char *guard, int *ret_fd)
{
    int fd = openat(control->directory_fd, guard,
                    O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno == ELOOP || errno == EISDIR ? GRIP_OPEN_TO_OTHERS : GRIP_FAILED;
    enum grip grip = !is_private(control, fd)            ? GRIP_OPEN_TO_OTHERS
                     : flock(fd, LOCK_EX | LOCK_NB) == 0 ? GRIP_TAKEN
                     : errno == EWOULDBLOCK              ? GRIP_OTHERS
                     : errno == EINTR                    ? GRIP_AGAIN
                                                         : GRIP_FAILED;
    if (grip == GRIP_TAKEN && !has_name(control, fd, guard))
        grip = GRIP_AGAIN;
    if (grip == GRIP_TAKEN) {
        *ret_fd = fd;
        return grip;
    }
    int error = errno;
    (void)close(fd);
    errno = error;
    return grip;
}

static int64_t now_ms(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void say_waiting(const struct control_words *words, const char *path)
{
    char buffer[512];
    struct text sentence;
    if (words == NULL || words->say == NULL)
        return;
    text_init(&sentence, buffer, sizeof buffer);
    text_add(&sentence, "--control: waiting for the lock of ");
    text_add_escaped(&sentence, bytes_of_text(path), 300);
    text_add(&sentence, ".lock, which another server holds while it starts; at most ");
    text_add_u64(&sentence, CONTROL_PATIENCE_MS / 1000);
    text_add(&sentence, " s");
    words->say(words->context, buffer);
}

static bool take_guard(const struct control *control, const char *path, const char *guard,
                       const struct control_words *words, int *ret_fd, int *ret_exit_code,
                       struct text *ret_why)
{
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
    int64_t until_ms = now_ms() + CONTROL_PATIENCE_MS;
    for (bool has_said = false;;) {
        switch (try_guard(control, guard, ret_fd)) {
        case GRIP_TAKEN:
            return true;
        case GRIP_FAILED:
            return refuse(path, strerror(errno), advice_of(errno), ret_why);
        case GRIP_OPEN_TO_OTHERS:
            return refuse(
                path,
                "its lock file (the same name plus .lock) belongs to another user or can be opened "
                "by others",
                "; remove it, and choose a --control path in a directory that others cannot write",
                ret_why);
        case GRIP_OTHERS:
            if (!has_said)
                say_waiting(words, path);
            has_said = true;
            break;
        case GRIP_AGAIN:
            break;
        }
        if (now_ms() >= until_ms) {
            *ret_exit_code = CONTROL_EXIT_IN_USE;
            return refuse(path,
                          "another server has been starting there for 5 s: it holds the lock on "
                          "this name plus .lock",
                          "; stop it (fuser -v shows it), or choose another path with --control",
                          ret_why);
        }
        (void)nanosleep(&pause, NULL); /* an early wake-up does no harm */
    }
}

/* The guard is held. */
static bool open_guarded(struct control *control, const char *path, const struct sockaddr_un *name,
                         int *ret_exit_code, struct text *ret_why)
{
    enum found found = look(control, name);
    if (!is_usable(found, path, ret_exit_code, ret_why))
        return false;
    if (found == FOUND_DEAD && unlinkat(control->directory_fd, control->name, 0) != 0)
        return refuse(path, strerror(errno), "; a crashed server left it behind, remove it",
                      ret_why);
    int error = bind_at(control, name);
    return error == 0 || refuse(path, strerror(error), advice_of(error), ret_why);
}

/* The first check needs no guard: what is in use now stays so, no matter who else is starting. */
static bool open_in_directory(struct control *control, const char *path,
                              const struct control_words *words, int *ret_exit_code,
                              struct text *ret_why)
{
    struct sockaddr_un name;
    char *guard = NULL;
    int fd = -1;
    if (!set_name(control, path, &name))
        return refuse(path, "the name is too long", "; choose a shorter one", ret_why);
    if (!is_usable(look(control, &name), path, ret_exit_code, ret_why))
        return false;
    if (asprintf(&guard, "%s.lock", control->name) < 0)
        return refuse(path, strerror(ENOMEM), "", ret_why);
    bool is_open = take_guard(control, path, guard, words, &fd, ret_exit_code, ret_why);
    if (is_open) {
        is_open = open_guarded(control, path, &name, ret_exit_code, ret_why);
        (void)unlinkat(control->directory_fd, guard, 0); /* while it is still locked */
        (void)close(fd);
    }
    free(guard);
    return is_open;
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

bool control_open(const char *path, gid_t group, const struct control_words *words,
                  struct control *ret, int *ret_exit_code, struct text *ret_why)
{
    struct control control = {.fd = -1, .directory_fd = -1, .group = group};
    char *directory = NULL;
    bool is_open = false;
    *ret_exit_code = CONTROL_EXIT_USAGE;
    if (!split(path, &directory, &control.name)) {
        (void)refuse(path, "not a file path", "", ret_why);
    } else {
        control.directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (control.directory_fd < 0)
            (void)refuse(path, strerror(errno), "; its directory must exist", ret_why);
        else
            is_open = open_in_directory(&control, path, words, ret_exit_code, ret_why);
    }
    free(directory);
    if (is_open) {
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

bool control_is_reachable(const struct control *control, gid_t group)
{
    struct stat info;
    if (fstat(control->directory_fd, &info) != 0)
        return false;
    return (info.st_mode & (info.st_gid == group ? S_IXGRP : S_IXOTH)) != 0;
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

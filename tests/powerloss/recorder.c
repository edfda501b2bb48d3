/*
 * recorder.c -- a library for LD_PRELOAD that records what a server does to its store, and when
 * bytes leave it.
 *
 * It stands between the server (with liblmdb and libuv) and libc, on everything that creates,
 * renames, removes, writes, resizes or syncs below one directory, and on everything that sends. One
 * record per call goes to the tape (tape.h), each by a single write in O_APPEND mode under a mutex:
 * one total order over threads, a forked child, and the servers that are started one after the
 * other.
 *
 * The order is conservative for durability: where two things overlap, the tape shows the one that
 * is harder for the store.
 *
 *  (1) A change is recorded when its call has returned. While it runs the disk may hold any part of
 *      it; the replayer makes the same parts from the cut behind the record, with at least as much
 *      acknowledged.
 *  (2) A sync is recorded when it begins and when it has returned. It covers what was recorded
 *      before its beginning, and counts from its end on. A change that overlaps it is not covered.
 *  (3) A write through O_DSYNC or O_SYNC is two records: the write, and that it is synced. It
 *      covers its own bytes and nothing else of the file.
 *  (4) What is sent is recorded before the call is made: an acknowledgement that somebody could
 *      have seen never stands behind a later event. So the tape may show one that never left, which
 *      only asks more of the store.
 *
 * It keeps no table of descriptors: /proc/self/fd says what a descriptor is. It does not see stores
 * through a shared map, stdio, or raw system calls; the workload compares the directory with what
 * the tape makes of it, so whatever it does not see fails the test instead of passing it.
 *
 * Environment: HOLDFAST_RECORD_STORE, the absolute path of the directory; HOLDFAST_RECORD_TAPE, the
 * file to append to; HOLDFAST_RECORD_KILL=TYPE:N, end this process by SIGKILL directly behind its
 * N-th record of that type: a kill -9 in exactly this place.
 */
/* Both spellings of each call are defined here, so the headers must not make one the other, nor
 * define them inline. */
#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "tape.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static struct {
    pthread_mutex_t mutex;
    pthread_once_t once;
    int fd; /* the tape; -1: nothing is recorded */
    char store[PATH_MAX];
    size_t store_len;
    uint64_t syncs;
    long kill_type, kill_after;
} recorder = {.mutex = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT, .fd = -1};

static void begin(void)
{
    const char *store = getenv("HOLDFAST_RECORD_STORE"), *tape = getenv("HOLDFAST_RECORD_TAPE");
    const char *kill_at = getenv("HOLDFAST_RECORD_KILL");
    if (!store || !tape || strlen(store) >= sizeof(recorder.store))
        return;
    recorder.store_len = strlen(store);
    memcpy(recorder.store, store, recorder.store_len + 1);
    if (kill_at)
        sscanf(kill_at, "%ld:%ld", &recorder.kill_type, &recorder.kill_after);
    recorder.fd = (int)syscall(SYS_openat, AT_FDCWD, tape, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (recorder.fd < 0)
        abort(); /* a run that is not recorded must not look like one that did nothing */
}

/* The function of that name behind this library. */
static void find_real(const char *name, void *ret_function)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found)
        abort();
    memcpy(ret_function, &found, sizeof(found));
}

#define REAL(name)                                                                                 \
    static __typeof__(&name) real;                                                                 \
    if (!real)                                                                                     \
    find_real(#name, &real)

/* ---- appending; errno is left as it was, for the caller of the recorded call ---- */

static void append_locked(struct tape_head *head, const char *name, const struct iovec *data,
                          int data_count)
{
    struct iovec parts[2 + IOV_MAX];
    int count = 0;
    head->magic = TAPE_MAGIC;
    head->pid = (uint32_t)getpid();
    parts[count++] = (struct iovec){head, sizeof(*head)};
    if (head->name_len > 0)
        parts[count++] = (struct iovec){(void *)(uintptr_t)name, head->name_len};
    for (int i = 0; i < data_count && head->data_len > 0; i++)
        parts[count++] = data[i];
    size_t len = sizeof(*head) + head->name_len + head->data_len;
    if (syscall(SYS_writev, recorder.fd, parts, count) != (long)len)
        abort();
    if (recorder.kill_type == (long)head->type && --recorder.kill_after == 0)
        raise(SIGKILL);
}

static void append(struct tape_head head, const char *name, const struct iovec *data,
                   int data_count)
{
    int before = errno;
    pthread_mutex_lock(&recorder.mutex);
    append_locked(&head, name, data, data_count);
    pthread_mutex_unlock(&recorder.mutex);
    errno = before;
}

static void append_names(enum tape_type type, uint64_t file, const char *name, size_t len)
{
    append((struct tape_head){.type = type, .file = file, .name_len = (uint32_t)len}, name, NULL,
           0);
}

/* ---- what is ours ---- */

/* The part of an absolute path below the store; "" and ".." as in tape.h. NULL: not ours. */
static const char *part_of_store(const char *path)
{
    pthread_once(&recorder.once, begin);
    if (recorder.fd < 0)
        return NULL;
    const size_t len = recorder.store_len;
    if (strncmp(path, recorder.store, len) == 0 && (path[len] == '\0' || path[len] == '/'))
        return path[len] == '\0' ? "" : path + len + 1;
    const char *last = strrchr(recorder.store, '/');
    if (strncmp(path, recorder.store, (size_t)(last - recorder.store)) == 0 &&
        path[last - recorder.store] == '\0')
        return "..";
    return NULL;
}

/* What a descriptor is, in the words of the kernel. */
static bool describe(int fd, char ret[static PATH_MAX])
{
    char link[32];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, ret, PATH_MAX - 1);
    ret[len < 0 ? 0 : len] = '\0';
    return len > 0;
}

/* The file of a descriptor, when it is below the store. */
static bool find_file(int fd, struct stat *ret)
{
    char path[PATH_MAX];
    int before = errno;
    const char *part = describe(fd, path) ? part_of_store(path) : NULL;
    bool is_ours = part && *part && strcmp(part, "..") != 0 && fstat(fd, ret) == 0;
    errno = before;
    return is_ours;
}

/* The part below the store of a path that is relative to a descriptor. */
static const char *find_name(int at, const char *path, char buffer[static 2 * PATH_MAX])
{
    int before = errno;
    if (path[0] == '/') {
        snprintf(buffer, PATH_MAX, "%s", path);
    } else {
        char directory[PATH_MAX];
        bool is_known =
            at == AT_FDCWD ? getcwd(directory, sizeof(directory)) != NULL : describe(at, directory);
        snprintf(buffer, 2 * PATH_MAX, "%s/%s", is_known ? directory : "", path);
    }
    errno = before;
    return part_of_store(buffer);
}

/* ---- names ---- */

static int call_openat(int at, const char *path, int flags, mode_t mode)
{
    REAL(openat64);
    return real(at, path, flags, mode);
}

static int record_open(int at, const char *path, int flags, mode_t mode)
{
    char buffer[2 * PATH_MAX];
    struct stat status;
    const char *name = flags & (O_CREAT | O_TRUNC) ? find_name(at, path, buffer) : NULL;
    bool existed = name && syscall(SYS_faccessat, at, path, F_OK) == 0;
    int fd = call_openat(at, path, flags, mode);
    if (fd < 0 || !name || !find_file(fd, &status))
        return fd;
    if (!existed)
        append_names(TAPE_CREATE, status.st_ino, name, strlen(name));
    else if (flags & O_TRUNC)
        append((struct tape_head){.type = TAPE_RESIZE, .file = status.st_ino}, NULL, NULL, 0);
    return fd;
}

static mode_t mode_of(int flags, va_list arguments)
{
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

#define DEFINE_OPEN(name)                                                                          \
    int name(const char *path, int flags, ...)                                                     \
    {                                                                                              \
        va_list arguments;                                                                         \
        va_start(arguments, flags);                                                                \
        mode_t mode = mode_of(flags, arguments);                                                   \
        va_end(arguments);                                                                         \
        return record_open(AT_FDCWD, path, flags, mode);                                           \
    }
#define DEFINE_OPENAT(name)                                                                        \
    int name(int at, const char *path, int flags, ...)                                             \
    {                                                                                              \
        va_list arguments;                                                                         \
        va_start(arguments, flags);                                                                \
        mode_t mode = mode_of(flags, arguments);                                                   \
        va_end(arguments);                                                                         \
        return record_open(at, path, flags, mode);                                                 \
    }
/* What fortified code calls when it gives no mode. */
#define DEFINE_OPEN_2(name)                                                                        \
    int name(const char *path, int flags);                                                         \
    int name(const char *path, int flags)                                                          \
    {                                                                                              \
        return record_open(AT_FDCWD, path, flags, 0);                                              \
    }
#define DEFINE_OPENAT_2(name)                                                                      \
    int name(int at, const char *path, int flags);                                                 \
    int name(int at, const char *path, int flags)                                                  \
    {                                                                                              \
        return record_open(at, path, flags, 0);                                                    \
    }
DEFINE_OPEN(open)
DEFINE_OPEN(open64)
DEFINE_OPENAT(openat)
DEFINE_OPENAT(openat64)
DEFINE_OPEN_2(__open_2)
DEFINE_OPEN_2(__open64_2)
DEFINE_OPENAT_2(__openat_2)
DEFINE_OPENAT_2(__openat64_2)

int creat(const char *path, mode_t mode)
{
    return record_open(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

int creat64(const char *path, mode_t mode)
{
    return creat(path, mode);
}

static void record_mkdir(int at, const char *path)
{
    char buffer[2 * PATH_MAX];
    const char *name = find_name(at, path, buffer);
    if (name)
        append_names(TAPE_MKDIR, 0, name, strlen(name));
}

int mkdir(const char *path, mode_t mode)
{
    REAL(mkdir);
    int result = real(path, mode);
    if (result == 0)
        record_mkdir(AT_FDCWD, path);
    return result;
}

int mkdirat(int at, const char *path, mode_t mode)
{
    REAL(mkdirat);
    int result = real(at, path, mode);
    if (result == 0)
        record_mkdir(at, path);
    return result;
}

static void record_rename(int from_at, const char *from, int to_at, const char *to)
{
    char from_buffer[2 * PATH_MAX], to_buffer[2 * PATH_MAX], names[2 * PATH_MAX];
    const char *from_name = find_name(from_at, from, from_buffer);
    const char *to_name = find_name(to_at, to, to_buffer);
    if (!from_name || !to_name)
        return; /* into or out of the store: the comparison of the workload would see it */
    int len = snprintf(names, sizeof(names), "%s%c%s", from_name, '\0', to_name);
    append_names(TAPE_RENAME, 0, names, (size_t)len);
}

int rename(const char *from, const char *to)
{
    REAL(rename);
    int result = real(from, to);
    if (result == 0)
        record_rename(AT_FDCWD, from, AT_FDCWD, to);
    return result;
}

int renameat(int from_at, const char *from, int to_at, const char *to)
{
    REAL(renameat);
    int result = real(from_at, from, to_at, to);
    if (result == 0)
        record_rename(from_at, from, to_at, to);
    return result;
}

int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags)
{
    REAL(renameat2);
    int result = real(from_at, from, to_at, to, flags);
    if (result == 0)
        record_rename(from_at, from, to_at, to);
    return result;
}

static int record_unlink(int result, int at, const char *path)
{
    char buffer[2 * PATH_MAX];
    const char *name = result == 0 ? find_name(at, path, buffer) : NULL;
    if (name)
        append_names(TAPE_UNLINK, 0, name, strlen(name));
    return result;
}

int unlink(const char *path)
{
    REAL(unlink);
    return record_unlink(real(path), AT_FDCWD, path);
}

int unlinkat(int at, const char *path, int flags)
{
    REAL(unlinkat);
    return record_unlink(real(at, path, flags), at, path);
}

int remove(const char *path)
{
    REAL(remove);
    return record_unlink(real(path), AT_FDCWD, path);
}

/* ---- what files hold ---- */

static bool is_zero(const struct iovec *parts, int count)
{
    for (int i = 0; i < count; i++) {
        const uint8_t *at = parts[i].iov_base;
        if (parts[i].iov_len > 0 && (at[0] != 0 || memcmp(at, at + 1, parts[i].iov_len - 1) != 0))
            return false;
    }
    return true;
}

/* `offset` -1: at the position of the descriptor, which the call has moved. Zeros stay off the
 * tape: the store writes 64 MiB of them. */
static ssize_t record_write(ssize_t written, int fd, const struct iovec *parts, int count,
                            off64_t offset)
{
    struct stat status;
    struct iovec done[IOV_MAX];
    int done_count = 0;
    if (written <= 0 || count > IOV_MAX || !find_file(fd, &status))
        return written;
    int before = errno;
    for (size_t left = (size_t)written; left > 0; left -= done[done_count++].iov_len) {
        done[done_count] = parts[done_count];
        if (done[done_count].iov_len > left)
            done[done_count].iov_len = left;
    }
    if (offset < 0)
        offset = lseek64(fd, 0, SEEK_CUR) - written;
    struct tape_head head = {.type = TAPE_WRITE,
                             .file = status.st_ino,
                             .offset = (uint64_t)offset,
                             .len = (uint64_t)written,
                             .data_len = is_zero(done, done_count) ? 0 : (uint32_t)written};
    bool is_synced = fcntl(fd, F_GETFL) & O_DSYNC; /* O_SYNC has this bit as well */
    pthread_mutex_lock(&recorder.mutex);
    append_locked(&head, NULL, done, done_count);
    head.type = TAPE_WRITE_SYNCED;
    head.data_len = 0;
    if (is_synced)
        append_locked(&head, NULL, NULL, 0);
    pthread_mutex_unlock(&recorder.mutex);
    errno = before;
    return written;
}

static ssize_t record_plain(ssize_t written, int fd, const void *data, size_t len, off64_t offset)
{
    struct iovec part = {(void *)(uintptr_t)data, len};
    return record_write(written, fd, &part, 1, offset);
}

#define DEFINE_PWRITE(name, offset_type)                                                           \
    ssize_t name(int fd, const void *data, size_t len, offset_type offset)                         \
    {                                                                                              \
        REAL(name);                                                                                \
        return record_plain(real(fd, data, len, offset), fd, data, len, offset);                   \
    }
DEFINE_PWRITE(pwrite, off_t)
DEFINE_PWRITE(pwrite64, off64_t)

#define DEFINE_PWRITEV(name, offset_type)                                                          \
    ssize_t name(int fd, const struct iovec *parts, int count, offset_type offset)                 \
    {                                                                                              \
        REAL(name);                                                                                \
        return record_write(real(fd, parts, count, offset), fd, parts, count, offset);             \
    }
DEFINE_PWRITEV(pwritev, off_t)
DEFINE_PWRITEV(pwritev64, off64_t)

static void record_size(int fd, uint64_t len)
{
    struct stat status;
    if (find_file(fd, &status))
        append((struct tape_head){.type = TAPE_RESIZE, .file = status.st_ino, .len = len}, NULL,
               NULL, 0);
}

#define DEFINE_FTRUNCATE(name, offset_type)                                                        \
    int name(int fd, offset_type len)                                                              \
    {                                                                                              \
        REAL(name);                                                                                \
        int result = real(fd, len);                                                                \
        if (result == 0)                                                                           \
            record_size(fd, (uint64_t)len);                                                        \
        return result;                                                                             \
    }
DEFINE_FTRUNCATE(ftruncate, off_t)
DEFINE_FTRUNCATE(ftruncate64, off64_t)

/* Whatever was allocated, only the length can be seen in what the file holds. */
static int record_allocation(int result, int fd)
{
    struct stat status;
    if (result == 0 && find_file(fd, &status))
        record_size(fd, (uint64_t)status.st_size);
    return result;
}

#define DEFINE_FALLOCATE(name, offset_type)                                                        \
    int name(int fd, int mode, offset_type offset, offset_type len)                                \
    {                                                                                              \
        REAL(name);                                                                                \
        return record_allocation(real(fd, mode, offset, len), fd);                                 \
    }
DEFINE_FALLOCATE(fallocate, off_t)
DEFINE_FALLOCATE(fallocate64, off64_t)

#define DEFINE_POSIX_FALLOCATE(name, offset_type)                                                  \
    int name(int fd, offset_type offset, offset_type len)                                          \
    {                                                                                              \
        REAL(name);                                                                                \
        return record_allocation(real(fd, offset, len), fd);                                       \
    }
DEFINE_POSIX_FALLOCATE(posix_fallocate, off_t)
DEFINE_POSIX_FALLOCATE(posix_fallocate64, off64_t)

/* ---- syncs ---- */

typedef int (*sync_fn)(int fd);

static int record_sync(sync_fn call, int fd)
{
    char path[PATH_MAX];
    struct stat status;
    int before = errno;
    const char *part = describe(fd, path) ? part_of_store(path) : NULL;
    bool is_ours = part && fstat(fd, &status) == 0;
    errno = before;
    if (!is_ours)
        return call(fd);
    struct tape_head head = {.type = TAPE_SYNC_BEGIN,
                             .flags = S_ISDIR(status.st_mode) ? TAPE_IS_DIRECTORY : 0,
                             .file = status.st_ino,
                             .name_len = (uint32_t)strlen(part)};
    head.offset = __atomic_add_fetch(&recorder.syncs, 1, __ATOMIC_RELAXED);
    append(head, part, NULL, 0);
    int result = call(fd);
    head.type = TAPE_SYNC_END;
    if (result == 0)
        append(head, part, NULL, 0);
    return result;
}

int fsync(int fd)
{
    REAL(fsync);
    return record_sync(real, fd);
}

int fdatasync(int fd)
{
    REAL(fdatasync);
    return record_sync(real, fd);
}

int sync_file_range(int fd, off64_t offset, off64_t len, unsigned flags)
{
    REAL(sync_file_range);
    struct stat status;
    int result = real(fd, offset, len, flags);
    if (result == 0 && find_file(fd, &status))
        append((struct tape_head){.type = TAPE_SYNC_RANGE,
                                  .file = status.st_ino,
                                  .offset = (uint64_t)offset,
                                  .len = (uint64_t)len},
               NULL, NULL, 0);
    return result;
}

/* ---- what leaves ---- */

/* Before the call is made. Unix sockets (the service manager's) carry no promise. */
static void record_send(int fd, const struct iovec *parts, size_t count)
{
    int before = errno, type = 0, domain = 0;
    socklen_t type_len = sizeof(type), domain_len = sizeof(domain);
    size_t len = 0;
    pthread_once(&recorder.once, begin);
    if (recorder.fd >= 0 && count <= IOV_MAX &&
        getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) == 0 &&
        getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &domain_len) == 0 && domain != AF_UNIX) {
        for (size_t i = 0; i < count; i++)
            len += parts[i].iov_len;
        append((struct tape_head){.type = TAPE_SEND,
                                  .flags = type == SOCK_STREAM ? TAPE_IS_STREAM : 0,
                                  .len = len,
                                  .data_len = (uint32_t)len},
               NULL, parts, (int)count);
    }
    errno = before;
}

ssize_t write(int fd, const void *data, size_t len)
{
    REAL(write);
    struct iovec part = {(void *)(uintptr_t)data, len};
    record_send(fd, &part, 1);
    return record_write(real(fd, data, len), fd, &part, 1, -1);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    REAL(writev);
    record_send(fd, parts, (size_t)count);
    return record_write(real(fd, parts, count), fd, parts, count, -1);
}

ssize_t send(int fd, const void *data, size_t len, int flags)
{
    REAL(send);
    struct iovec part = {(void *)(uintptr_t)data, len};
    record_send(fd, &part, 1);
    return real(fd, data, len, flags);
}

ssize_t sendto(int fd, const void *data, size_t len, int flags, __CONST_SOCKADDR_ARG to,
               socklen_t to_len)
{
    REAL(sendto);
    struct iovec part = {(void *)(uintptr_t)data, len};
    record_send(fd, &part, 1);
    return real(fd, data, len, flags, to, to_len);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    REAL(sendmsg);
    record_send(fd, message->msg_iov, message->msg_iovlen);
    return real(fd, message, flags);
}

int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
    REAL(sendmmsg);
    for (unsigned i = 0; i < count; i++)
        record_send(fd, messages[i].msg_hdr.msg_iov, messages[i].msg_hdr.msg_iovlen);
    return real(fd, messages, count, flags);
}

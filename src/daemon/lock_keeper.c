/*
 * lock_keeper.c -- see lock_keeper.h.
 */
#include "daemon/lock_keeper.h"

#include "base/check.h"
#include "base/units.h"
#include "file/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
    LISTEN_FD = 3, /* what it is started with: its socket, */
    DIRECTORY_FD,  /* and where that is */
    TICK_MS = 1000,
    MANY_BLOCKS = 2048, /* of 512 bytes */
    LINGER_S = 120,     /* long enough for any restart, short enough for who stopped it for good */
};

static const char socket_name[] = "locks.keeper", scheme[] = "lmdb:";

/* ---- the keeper ---- */

struct kept {
    struct keeper_message message;
    int fd; /* -1: dropped */
};

struct lock_keeper {
    int server; /* -1: none */
    uint64_t left_ms;
    struct kept *at; /* by id */
    uint32_t count, room, dropped;
    ino_t inode; /* of our socket's file */
};

static uint64_t now_ms(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / MS_NS;
}

/* The file of our socket; 0: it is gone. */
static ino_t socket_inode(void)
{
    struct stat st;
    return fstatat(DIRECTORY_FD, socket_name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_ino : 0;
}

/* False: it cannot. */
static bool keep(struct lock_keeper *keeper, const struct keeper_message *message, int fd)
{
    if (fd < 0)
        return false; /* there was no place for it */
    if (keeper->count == keeper->room) {
        uint32_t room = keeper->room == 0 ? 64 : 2 * keeper->room;
        struct kept *at = realloc(keeper->at, room * sizeof *at);
        if (at == NULL)
            return false;
        keeper->at = at;
        keeper->room = room;
    }
    /* Two threads of the server may send in another order than they numbered. */
    uint32_t at = keeper->count++;
    for (; at > 0 && keeper->at[at - 1].message.id > message->id; at--)
        keeper->at[at] = keeper->at[at - 1];
    keeper->at[at] = (struct kept){*message, fd};
    return true;
}

static void *close_one(void *fd)
{
    (void)close((int)(intptr_t)fd);
    return NULL;
}

/* The last one who has a removed file frees its blocks, which takes seconds if they are many: then
 * somebody else does it, or the server would think that nobody is here. */
static void close_kept(int fd)
{
    struct stat st;
    pthread_t thread;
    if (fstat(fd, &st) == 0 && st.st_nlink == 0 && st.st_blocks > MANY_BLOCKS &&
        pthread_create(&thread, NULL, close_one, (void *)(intptr_t)fd) == 0)
        (void)pthread_detach(thread);
    else
        (void)close(fd);
}

/* They are in order of their ids. */
static void drop(struct lock_keeper *keeper, uint64_t id)
{
    uint32_t low = 0, high = keeper->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (keeper->at[middle].message.id < id)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == keeper->count || keeper->at[low].message.id != id || keeper->at[low].fd < 0)
        return;
    close_kept(keeper->at[low].fd);
    keeper->at[low].fd = -1;
    if (++keeper->dropped * 2 <= keeper->count)
        return;
    uint32_t left = 0;
    for (uint32_t i = 0; i < keeper->count; i++)
        if (keeper->at[i].fd >= 0)
            keeper->at[left++] = keeper->at[i];
    keeper->count = left;
    keeper->dropped = 0;
}

static bool give_all(struct lock_keeper *keeper)
{
    const struct keeper_message end = {.kind = KEEPER_END};
    for (uint32_t i = 0; i < keeper->count; i++) {
        struct keeper_message message = keeper->at[i].message;
        message.kind = KEEPER_HELD;
        if (keeper->at[i].fd >= 0 && !keeper_send(keeper->server, &message, keeper->at[i].fd))
            return false;
    }
    return keeper_send(keeper->server, &end, -1);
}

static void lose_server(struct lock_keeper *keeper)
{
    if (keeper->server >= 0)
        (void)close(keeper->server);
    keeper->server = -1;
    keeper->left_ms = now_ms();
}

/* A server whose lock cannot be kept must know: it is left, and says so. */
static void hear(struct lock_keeper *keeper)
{
    struct keeper_message message;
    int fd;
    bool is_good = keeper_receive(keeper->server, &message, &fd);
    if (is_good && message.kind == KEEPER_KEEP && keep(keeper, &message, fd))
        return;
    if (fd >= 0)
        (void)close(fd);
    if (is_good && message.kind == KEEPER_DROP)
        drop(keeper, message.id);
    else if (!is_good || message.kind != KEEPER_ASK || !give_all(keeper))
        lose_server(keeper);
}

static bool is_needed(const struct lock_keeper *keeper)
{
    if (keeper->server >= 0)
        return true;
    return keeper->count > keeper->dropped &&
           now_ms() - keeper->left_ms < (uint64_t)LINGER_S * 1000 &&
           socket_inode() == keeper->inode;
}

/* The next server may have more than the one that started it. */
static void take_all_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

int lock_keeper_run(void)
{
    struct lock_keeper keeper = {.server = -1, .inode = socket_inode()};
    take_all_descriptors();
    (void)signal(SIGPIPE, SIG_IGN);
    if (chdir("/") != 0 || keeper.inode == 0)
        return 1;
    keeper.server = accept4(LISTEN_FD, NULL, NULL, SOCK_CLOEXEC); /* it is there already */
    while (is_needed(&keeper)) {
        struct pollfd pollers[] = {{.fd = LISTEN_FD, .events = POLLIN},
                                   {.fd = keeper.server, .events = POLLIN}};
        if (poll(pollers, 2, TICK_MS) <= 0)
            continue;
        if (pollers[1].revents != 0)
            hear(&keeper);
        if (pollers[0].revents != 0) {
            /* The store has one server: this is the next. What the last one sent is kept first. */
            while (keeper.server >= 0 && poll(&pollers[1], 1, 0) == 1)
                hear(&keeper);
            lose_server(&keeper);
            keeper.server = accept4(LISTEN_FD, NULL, NULL, SOCK_CLOEXEC);
        }
    }
    if (socket_inode() == keeper.inode)
        (void)unlinkat(DIRECTORY_FD, socket_name, 0);
    free(keeper.at);
    return 0;
}

/* ---- how a server finds it ---- */

/* A path of any length is this short. */
static struct sockaddr_un address_in(int directory)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", directory,
                   socket_name);
    return address;
}

static int connect_to(int directory)
{
    const struct sockaddr_un address = address_in(directory);
    /* One that stands still, and whose queue is full, is not waited for: -EAGAIN. */
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 &&
        fcntl(fd, F_SETFL, 0) == 0)
        return fd;
    int err = -errno;
    (void)close(fd);
    return err;
}

static int listen_in(int directory)
{
    const struct sockaddr_un address = address_in(directory);
    (void)unlinkat(directory, socket_name, 0); /* of one that has ended */
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (bind(fd, (const struct sockaddr *)&address, sizeof address) == 0 &&
        fchmodat(directory, socket_name, 0600, 0) == 0 && listen(fd, 4) == 0)
        return fd;
    int err = -errno;
    (void)close(fd);
    return err;
}

/* Out of the way of those two: dup2 would close it. */
static int move_away(int fd)
{
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, DIRECTORY_FD + 1);
    return moved < 0 ? -errno : moved;
}

static int spawn(int listener, int directory)
{
    char self[] = "/proc/self/exe", name[] = "holdfastd", verb[] = LOCK_KEEPER_VERB;
    char *const arguments[] = {name, verb, NULL}, *const environment[] = {NULL};
    int from = move_away(listener), at = move_away(directory), err = from < 0 ? -from : 0;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    CHECK(posix_spawn_file_actions_init(&actions) == 0); /* neither needs memory */
    CHECK(posix_spawnattr_init(&attributes) == 0);
    for (int fd = 0; err == 0 && fd < LISTEN_FD; fd++)
        err = posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
    if (err == 0)
        err = posix_spawn_file_actions_adddup2(&actions, from, LISTEN_FD);
    if (err == 0)
        err = posix_spawn_file_actions_adddup2(&actions, at, DIRECTORY_FD);
    if (err == 0)
        err = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    pid_t pid;
    if (err == 0)
        err = posix_spawn(&pid, self, &actions, &attributes, arguments, environment);
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)(close(from) | close(at));
    return -err;
}

static int start(int directory)
{
    int listener = listen_in(directory);
    if (listener < 0)
        return listener;
    int fd = connect_to(directory); /* it is accepted when it runs */
    int err = fd < 0 ? fd : spawn(listener, directory);
    (void)close(listener);
    if (err >= 0)
        return fd;
    if (fd >= 0)
        (void)close(fd);
    return err;
}

int lock_keeper_connect(const char *store_url, bool may_start)
{
    if (strncmp(store_url, scheme, sizeof scheme - 1) != 0)
        return -ENOTDIR;
    int directory = open(store_url + sizeof scheme - 1, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return -errno;
    int fd = connect_to(directory);
    if (may_start && (fd == -ENOENT || fd == -ECONNREFUSED))
        fd = start(directory);
    (void)close(directory);
    return fd;
}

/*
 * callout_keeper.c -- see callout_keeper.h.
 *
 *               all have ended
 *   RUNNING ----------------------------> exit
 *      |                                   ^
 *      | 10 s, or told to stop             | all have ended
 *      +---------------> KILLING ----------+
 *
 * A child of the program that makes itself a session leaves its process group, and is no child of
 * ours while its parent lives. But we are the reaper of all our descendants: one that loses its
 * parent becomes our child. So our children are killed until there are none left. If the monitor
 * dies we are told to stop.
 */
#include "daemon/callout_keeper.h"

#include "base/check.h"
#include "base/units.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    CANNOT_EXECUTE = 126,
    NOT_FOUND = 127,
    KILLED = 128, /* and the number of the signal */
    KILL_PAUSE_MS = 5,
    KILL_SECONDS_MAX = 5, /* what a file system that hangs has of them cannot be waited for */
    READ_MAX = 65536,
};

struct keeper {
    pid_t program;
    int status;  /* of the program, as waitpid says it */
    int output;  /* what it prints; -1: nothing more */
    int signals; /* that we are sent */
    uint32_t said;
};

static uint64_t now_ms(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / MS_NS;
}

/* The parent of a process; -1: it is gone, or not to be seen. */
static pid_t parent_of(const char *process)
{
    char path[64], line[512];
    (void)snprintf(path, sizeof path, "/proc/%.20s/stat", process);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, line, sizeof line - 1);
    if (fd >= 0)
        (void)close(fd);
    if (len <= 0)
        return -1;
    line[len] = '\0';
    const char *behind_name = strrchr(line, ')'); /* which may have blanks and brackets */
    int parent;
    return behind_name != NULL && sscanf(behind_name + 1, " %*c %d", &parent) == 1 ? parent : -1;
}

static void kill_children(void)
{
    DIR *processes = opendir("/proc");
    if (processes == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(processes)) != NULL;)
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
            parent_of(entry->d_name) == getpid())
            (void)kill((pid_t)strtol(entry->d_name, NULL, 10), SIGKILL);
    (void)closedir(processes);
}

/* Who has ended. True: that was the last. */
static bool reap(struct keeper *keeper)
{
    for (;;) {
        int status;
        pid_t child = waitpid(-1, &status, WNOHANG);
        if (child <= 0)
            return child < 0 && errno == ECHILD;
        if (child == keeper->program)
            keeper->status = status;
    }
}

static void kill_all(struct keeper *keeper)
{
    uint64_t until_ms = now_ms() + KILL_SECONDS_MAX * UINT64_C(1000);
    while (!reap(keeper) && now_ms() < until_ms) {
        kill_children();
        (void)poll(NULL, 0, KILL_PAUSE_MS);
    }
}

/* What is printed is read to the end, so that nobody waits; the beginning of it is let through. */
static void read_output(struct keeper *keeper)
{
    static char buffer[READ_MAX];
    ssize_t len = read(keeper->output, buffer, sizeof buffer);
    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (len <= 0) {
        (void)close(keeper->output);
        keeper->output = -1;
        return;
    }
    size_t room = CALLOUT_KEEPER_OUTPUT_MAX - keeper->said;
    size_t kept = (size_t)len < room ? (size_t)len : room;
    if (kept > 0 && write(STDOUT_FILENO, buffer, kept) == (ssize_t)kept)
        keeper->said += (uint32_t)kept;
}

/* True: all have ended. False: they took too long, or somebody wants us to stop. */
static bool watch(struct keeper *keeper)
{
    uint64_t until_ms = now_ms() + CALLOUT_KEEPER_SECONDS_MAX * UINT64_C(1000);
    for (uint64_t now = now_ms(); now < until_ms; now = now_ms()) {
        struct pollfd files[] = {{.fd = keeper->signals, .events = POLLIN},
                                 {.fd = keeper->output, .events = POLLIN}};
        (void)poll(files, 2, (int)(until_ms - now));
        if (files[1].revents != 0)
            read_output(keeper);
        struct signalfd_siginfo signal;
        if (files[0].revents != 0 && read(keeper->signals, &signal, sizeof signal) > 0 &&
            signal.ssi_signo != SIGCHLD)
            return false;
        if (reap(keeper)) {
            if (keeper->output >= 0)
                read_output(keeper);
            return true;
        }
    }
    return false;
}

static void execute(const sigset_t *before, int output, char **argv)
{
    CHECK(sigprocmask(SIG_SETMASK, before, NULL) == 0);
    (void)signal(SIGPIPE, SIG_DFL);
    if (dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0)
        _exit(CANNOT_EXECUTE);
    (void)execvp(argv[0], argv);
    (void)dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(errno));
    _exit(errno == ENOENT ? NOT_FOUND : CANNOT_EXECUTE);
}

static bool begin(struct keeper *keeper, char **argv)
{
    sigset_t ours, before;
    int pipes[2];
    pid_t parent = getppid();
    CHECK(sigemptyset(&ours) == 0 && sigaddset(&ours, SIGCHLD) == 0 &&
          sigaddset(&ours, SIGTERM) == 0 && sigaddset(&ours, SIGINT) == 0 &&
          sigaddset(&ours, SIGHUP) == 0);
    CHECK(sigprocmask(SIG_BLOCK, &ours, &before) == 0);
    (void)signal(SIGPIPE, SIG_IGN); /* the monitor may be gone: then we are told to stop */
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0 || prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 ||
        getppid() != parent || pipe2(pipes, O_CLOEXEC | O_NONBLOCK) != 0)
        return false;
    keeper->signals = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
    keeper->program = keeper->signals < 0 ? -1 : fork();
    if (keeper->program == 0) {
        (void)fcntl(pipes[1], F_SETFL, 0); /* the program is not made for less */
        execute(&before, pipes[1], argv);
    }
    (void)close(pipes[1]);
    keeper->output = pipes[0];
    return keeper->program > 0;
}

int callout_keeper_run(int argc, char **argv)
{
    struct keeper keeper = {.status = 0};
    if (argc < 2 || !begin(&keeper, argv + 1))
        return CANNOT_EXECUTE;
    if (!watch(&keeper)) {
        kill_all(&keeper);
        (void)raise(SIGALRM);
    }
    return WIFSIGNALED(keeper.status) ? KILLED + WTERMSIG(keeper.status)
                                      : WEXITSTATUS(keeper.status);
}

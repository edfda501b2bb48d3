/*
 * runner.c -- starts, watches and kills the processes of this test; see runner.h.
 *
 * PR_SET_PDEATHSIG makes the kernel end them when the test ends, however it ends.
 */
#include "runner.h"

#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { READY_MS = 60000 };

const char *runner_variable(const char *name)
{
    const char *value = getenv(name);
    if (!value) {
        fprintf(stderr, "%s is not set: run this through `meson test`, or set it\n", name);
        exit(1);
    }
    return value;
}

static void become_child(int out, const char *log, pid_t parent)
{
    int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    int err = log ? open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    if (err >= 0)
        dup2(err, STDERR_FILENO);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
}

static void run_server(const struct runner *runner, int out, pid_t parent)
{
    const char *command = runner_variable("HOLDFASTD");
    char store[512], control[512];
    become_child(out, runner->log, parent);
    snprintf(store, sizeof(store), "lmdb:%s", runner->store);
    /* A socket is no part of the store: nothing of it is recorded. */
    snprintf(control, sizeof(control), "%s.control", runner->store);
    /* So short that the tables take what it has every few batches. */
    setenv("HOLDFAST_JOURNAL_LEN", "65536", 1);
    if (runner->tape) {
        setenv("HOLDFAST_RECORD_STORE", runner->store, 1);
        setenv("HOLDFAST_RECORD_TAPE", runner->tape, 1);
        if (runner->kill)
            setenv("HOLDFAST_RECORD_KILL", runner->kill, 1);
        setenv("LD_PRELOAD", runner_variable("RECORDER"), 1);
    }
    execl(command, command, "--listen", "127.0.0.1", "--port", "0", "--http", "off", "--no-rpcbind",
          "--store", store, "--sync", runner->sync, "--control", control, (char *)NULL);
    _exit(127);
}

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* holdfast: ready on port N (state S, C clients, ... */
static bool parse_readiness(const char *line, struct runner *runner)
{
    unsigned port, state, clients;
    if (sscanf(line, "holdfast: ready on port %u (state %u, %u client", &port, &state, &clients) !=
        3)
        return false;
    runner->port = (uint16_t)port;
    runner->state = state;
    runner->clients = clients;
    return true;
}

static bool wait_ready(struct runner *runner, int out)
{
    char line[256];
    size_t len = 0;
    uint64_t deadline_ms = now_ms() + READY_MS;
    for (;;) {
        struct pollfd ready = {.fd = out, .events = POLLIN};
        uint64_t at_ms = now_ms();
        if (at_ms >= deadline_ms || poll(&ready, 1, (int)(deadline_ms - at_ms)) <= 0)
            return false;
        ssize_t n = read(out, line + len, sizeof(line) - 1 - len);
        if (n <= 0)
            return false;
        len += (size_t)n;
        line[len] = '\0';
        if (strchr(line, '\n'))
            return parse_readiness(line, runner);
        if (len == sizeof(line) - 1)
            return false;
    }
}

bool runner_start(struct runner *runner)
{
    int out[2];
    pid_t parent = getpid();
    fflush(stdout);
    if (pipe2(out, O_CLOEXEC) != 0)
        abort();
    runner->pid = fork();
    if (runner->pid == 0)
        run_server(runner, out[1], parent);
    close(out[1]);
    bool is_ready = runner->pid > 0 && wait_ready(runner, out[0]);
    close(out[0]);
    if (!is_ready)
        runner_kill(runner);
    return is_ready;
}

void runner_kill(struct runner *runner)
{
    int status = 0;
    if (runner->pid > 0) {
        kill(runner->pid, SIGKILL);
        waitpid(runner->pid, &status, 0);
        runner->was_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    }
    runner->pid = 0;
}

const char *runner_last_line(const char *log)
{
    static char line[512];
    line[0] = '\0';
    FILE *file = fopen(log, "re");
    while (file && fgets(line, sizeof(line), file))
        line[strcspn(line, "\n")] = '\0';
    if (file)
        fclose(file);
    return line;
}

FILE *runner_dump_begin(const char *store, pid_t *ret_pid)
{
    const char *command = runner_variable("STORE_DUMP");
    char url[512];
    int out[2];
    pid_t parent = getpid();
    snprintf(url, sizeof(url), "lmdb:%s", store);
    fflush(stdout);
    if (pipe2(out, O_CLOEXEC) != 0)
        abort();
    pid_t pid = fork();
    if (pid == 0) {
        become_child(out[1], NULL, parent);
        execl(command, command, url, (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    FILE *output = fdopen(out[0], "r");
    if (pid < 0 || !output)
        abort();
    *ret_pid = pid;
    return output;
}

int runner_dump_end(FILE *output, pid_t pid)
{
    int status = 0;
    fclose(output);
    if (waitpid(pid, &status, 0) != pid)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int remove_one(const char *path, const struct stat *status, int flag, struct FTW *walk)
{
    (void)status;
    (void)flag;
    (void)walk;
    return remove(path);
}

void runner_remove(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/*
 * process.c -- the servers and tools that the bench starts; see process.h.
 *
 * PR_SET_PDEATHSIG ends a child with the bench, and the bench runs as the first process of a
 * process namespace (tests/bench/run), so that nothing survives it however it ends.
 */
#include "bench/process.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STOP_MS UINT32_C(10000)

static struct {
    char directory[256];
    uint32_t started_count;
} processes;

uint64_t process_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void process_pause_ms(uint32_t pause_ms)
{
    struct timespec pause = {.tv_sec = pause_ms / 1000,
                             .tv_nsec = (long)(pause_ms % 1000) * 1000000};
    nanosleep(&pause, NULL);
}

void process_set_directory(const char *directory)
{
    snprintf(processes.directory, sizeof(processes.directory), "%s", directory);
}

static void run_child(const struct process *process, const char *const arguments[], pid_t parent)
{
    int log = open(process->log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    int null = open("/dev/null", O_RDWR);
    dup2(null, 0);
    dup2(log, 1);
    dup2(log, 2);
    for (int fd = 3; fd < 64; fd++)
        close(fd);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    execvp(arguments[0], (char *const *)(uintptr_t)arguments);
    dprintf(2, "cannot run %s: %s\n", arguments[0], strerror(errno));
    _exit(127);
}

bool process_start(struct process *process, const char *const arguments[])
{
    const char *name = strrchr(arguments[0], '/');
    pid_t parent = getpid();
    snprintf(process->log, sizeof(process->log), "%s/%s.%u.log", processes.directory,
             name ? name + 1 : arguments[0], ++processes.started_count);
    fflush(stdout);
    process->pid = fork();
    if (process->pid == 0)
        run_child(process, arguments, parent);
    if (process->pid < 0)
        process->pid = 0;
    return process->pid > 0;
}

bool process_is_alive(const struct process *process)
{
    siginfo_t info = {0};
    return process->pid > 0 &&
           waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0;
}

static int reap(struct process *process)
{
    int status = 0;
    waitpid(process->pid, &status, 0);
    process->pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int process_wait_end(struct process *process, uint32_t timeout_ms)
{
    uint64_t deadline_ns = process_now_ns() + timeout_ms * UINT64_C(1000000);
    if (process->pid <= 0)
        return -1;
    while (process_is_alive(process)) {
        if (process_now_ns() > deadline_ns) {
            kill(process->pid, SIGKILL);
            (void)reap(process);
            return -1;
        }
        process_pause_ms(1);
    }
    return reap(process);
}

int process_stop(struct process *process, int signal)
{
    if (process->pid <= 0)
        return -1;
    kill(process->pid, signal);
    return process_wait_end(process, STOP_MS);
}

static bool find_line(const struct process *process, const char *text, bool is_at_begin, char *ret,
                      size_t size)
{
    FILE *file = fopen(process->log, "re");
    char *line = NULL;
    size_t line_size = 0;
    bool found = false;
    if (!file)
        return false;
    while (getline(&line, &line_size, file) > 0) {
        /* A line without its end is still being written. */
        const char *at = strstr(line, text);
        if (at && (at == line || !is_at_begin) && strchr(line, '\n')) {
            snprintf(ret, size, "%s", line);
            found = true;
        }
    }
    free(line);
    fclose(file);
    return found;
}

bool process_last_line(const struct process *process, const char *begin, char *ret, size_t size)
{
    return find_line(process, begin, true, ret, size);
}

bool process_find_line(const struct process *process, const char *part, char *ret, size_t size)
{
    return find_line(process, part, false, ret, size);
}

bool process_wait_line(const struct process *process, const char *begin, uint32_t timeout_ms,
                       char *ret, size_t size)
{
    uint64_t deadline_ns = process_now_ns() + timeout_ms * UINT64_C(1000000);
    for (;;) {
        bool is_alive = process_is_alive(process);
        if (process_last_line(process, begin, ret, size))
            return true;
        if (!is_alive || process_now_ns() > deadline_ns)
            return false;
        process_pause_ms(1);
    }
}

bool process_wait_port(const struct process *process, uint16_t port, uint32_t timeout_ms)
{
    uint64_t deadline_ns = process_now_ns() + timeout_ms * UINT64_C(1000000);
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (;;) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        bool is_open = connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0;
        close(fd);
        if (is_open)
            return true;
        if (!process_is_alive(process) || process_now_ns() > deadline_ns)
            return false;
        process_pause_ms(5);
    }
}

const char *process_last_words(const struct process *process)
{
    static char words[200];
    if (!process_last_line(process, "", words, sizeof(words)))
        return "it said nothing";
    words[strcspn(words, "\n")] = '\0';
    return words;
}

static void place_task(pid_t task, enum process_place place)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t set;
    CPU_ZERO(&set);
    for (long i = 0; i < count && i < CPU_SETSIZE; i++)
        if (place == PROCESS_ANYWHERE || (place == PROCESS_LAST) == (i == count - 1))
            CPU_SET((size_t)i, &set);
    if (count > 1)
        (void)sched_setaffinity(task, sizeof(set), &set); /* then the rates are noisier */
}

void process_place(const struct process *process, enum process_place place)
{
    char path[64];
    if (!process) {
        place_task(0, place);
        return;
    }
    snprintf(path, sizeof(path), "/proc/%d/task", (int)process->pid);
    DIR *tasks = opendir(path);
    for (struct dirent *task = tasks ? readdir(tasks) : NULL; task; task = readdir(tasks))
        if (task->d_name[0] != '.')
            place_task((pid_t)strtol(task->d_name, NULL, 10), place);
    if (tasks)
        closedir(tasks);
}

/* The first number of a task's schedstat is the time it ran, in nanoseconds. */
static uint64_t task_cpu_ns(pid_t pid, const char *task)
{
    char path[128], text[128];
    snprintf(path, sizeof(path), "/proc/%d/task/%.16s/schedstat", (int)pid, task);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    uint64_t ns = fgets(text, sizeof(text), file) ? strtoull(text, NULL, 10) : 0;
    fclose(file);
    return ns;
}

uint64_t process_cpu_ns(const struct process *process)
{
    char path[64];
    uint64_t total_ns = 0;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)process->pid);
    DIR *tasks = opendir(path);
    if (!tasks)
        return 0;
    for (struct dirent *task = readdir(tasks); task; task = readdir(tasks))
        if (task->d_name[0] != '.')
            total_ns += task_cpu_ns(process->pid, task->d_name);
    closedir(tasks);
    return total_ns;
}

/* A line of its status in /proc, such as "VmRSS:". */
static uint64_t status_kib(const struct process *process, const char *name)
{
    char path[64], line[128];
    uint64_t kib = 0;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)process->pid);
    FILE *file = fopen(path, "re");
    while (file && kib == 0 && fgets(line, sizeof(line), file))
        if (strncmp(line, name, strlen(name)) == 0)
            kib = strtoull(line + strlen(name), NULL, 10);
    if (file)
        fclose(file);
    return kib;
}

uint64_t process_resident_kib(const struct process *process)
{
    return status_kib(process, "VmRSS:");
}

uint64_t process_own_kib(const struct process *process)
{
    return status_kib(process, "RssAnon:");
}

bool process_is_installed(const char *program)
{
    const char *path = getenv("PATH");
    char candidate[512];
    while (path && *path != '\0') {
        size_t len = strcspn(path, ":");
        snprintf(candidate, sizeof(candidate), "%.*s/%s", (int)len, path, program);
        if (access(candidate, X_OK) == 0)
            return true;
        path += len + (path[len] == ':');
    }
    return false;
}

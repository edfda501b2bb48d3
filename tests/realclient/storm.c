/*
 * storm.c -- processes of one guest that lock at random and tell a referee what they rely on.
 *
 * usage: storm REFEREE-ADDRESS PORT PATH PROCESSES SECONDS SEED
 *
 * Every process opens PATH, connects to the referee (referee.c), and takes and gives back locks on
 * its first bytes. It tells the referee
 *   - "I give up": before a call that may leave it with less than it has;
 *   - "I have": after a call that succeeded,
 * and waits for the answer. So what the referee believes of a process is never more than what the
 * process may rely on at that moment: two that conflict there conflict in truth.
 *
 * Who holds something does not block, so no circle of waiters is made. A blocked call is given up
 * after a while by a signal, which makes the kernel cancel it. At the end everything is given back,
 * and what happened is printed.
 */
#include "storm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PROCESSES_MAX = 1000, PATIENCE_S = 20, CONNECT_TRIES = 50 };

/* What happened, in memory that all processes share. */
struct tally {
    unsigned granted, waited, refused, interrupted, deadlocks, released;
};

static struct tally *tally;
static const char *referee_address;
static uint16_t referee_port;

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "storm: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void on_alarm(int signal)
{
    (void)signal;
}

static void add(unsigned *counter)
{
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

/* xorshift64: the same seed, the same operations. */
static uint32_t draw(uint64_t *random, uint32_t below)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return (uint32_t)(*random >> 33) % below;
}

static int connect_referee(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(referee_port)};
    if (inet_pton(AF_INET, referee_address, &to.sin_addr) != 1)
        die(referee_address);
    for (int i = 0; i < CONNECT_TRIES; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
            die("socket");
        if (connect(fd, (const struct sockaddr *)&to, sizeof to) == 0)
            return fd;
        close(fd);
        (void)usleep(100000);
    }
    die("the referee does not listen");
}

static void tell(int referee, enum storm_word word, uint8_t mode, uint32_t start, uint32_t len)
{
    struct storm_message message = {(uint8_t)word, mode, (uint8_t)start, (uint8_t)len};
    uint8_t answer;
    ssize_t count;
    if (write(referee, &message, sizeof message) != sizeof message)
        die("the referee is gone");
    do
        count = read(referee, &answer, 1);
    while (count < 0 && errno == EINTR);
    if (count != 1)
        die("the referee is gone");
}

/* What this process has of each byte. */
struct process {
    int fd, referee;
    uint64_t random;
    uint8_t has[STORM_BYTES];
};

static bool holds_something(const struct process *process)
{
    for (int i = 0; i < STORM_BYTES; i++)
        if (process->has[i] != STORM_NOTHING)
            return true;
    return false;
}

static bool may_lose(const struct process *process, uint8_t mode, uint32_t start, uint32_t len)
{
    for (uint32_t i = start; i < start + len; i++)
        if (process->has[i] > mode)
            return true;
    return false;
}

static void count_failure(bool is_wait)
{
    if (errno == EAGAIN || errno == EACCES)
        add(&tally->refused);
    else if (errno == EINTR && is_wait)
        add(&tally->interrupted);
    else if (errno == EDEADLK)
        add(&tally->deadlocks);
    else
        die("fcntl");
}

static void step(struct process *process, uint8_t mode, uint32_t start, uint32_t len)
{
    static const short types[] = {F_UNLCK, F_RDLCK, F_WRLCK};
    struct flock lock = {.l_type = types[mode], .l_start = start, .l_len = len};
    bool is_wait =
        mode != STORM_NOTHING && !holds_something(process) && draw(&process->random, 2) == 0;
    if (may_lose(process, mode, start, len))
        tell(process->referee, STORM_GIVES_UP, mode, start, len);
    if (is_wait)
        alarm(PATIENCE_S);
    int result = fcntl(process->fd, is_wait ? F_SETLKW : F_SETLK, &lock);
    int err = errno;
    alarm(0);
    errno = err;
    if (result < 0) {
        count_failure(is_wait);
        return; /* the referee believes less than is true where a weaker mode was refused */
    }
    memset(process->has + start, mode, len);
    if (mode == STORM_NOTHING) {
        add(&tally->released);
        return;
    }
    tell(process->referee, STORM_HAS, mode, start, len);
    add(is_wait ? &tally->waited : &tally->granted);
}

static _Noreturn void live(const char *path, uint64_t seed, unsigned seconds)
{
    struct sigaction action = {.sa_handler = on_alarm}; /* without SA_RESTART */
    struct process process = {.random = seed * 2654435761U + 88172645463325252U};
    sigaction(SIGALRM, &action, NULL);
    process.fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (process.fd < 0)
        die(path);
    process.referee = connect_referee();
    time_t end = time(NULL) + (time_t)seconds;
    while (time(NULL) < end) {
        uint32_t len = 1 + draw(&process.random, draw(&process.random, 8) == 0 ? STORM_BYTES : 6);
        uint32_t start = draw(&process.random, STORM_BYTES - len + 1);
        uint32_t dice = draw(&process.random, 10);
        step(&process,
             dice < 4   ? STORM_WRITING
             : dice < 7 ? STORM_READING
                        : STORM_NOTHING,
             start, len);
        (void)usleep(1000 * draw(&process.random, 20));
    }
    step(&process, STORM_NOTHING, 0, STORM_BYTES);
    tell(process.referee, STORM_LEAVES, 0, 0, 0);
    exit(0);
}

int main(int argc, char **argv)
{
    if (argc != 7) {
        fputs("usage: storm REFEREE-ADDRESS PORT PATH PROCESSES SECONDS SEED\n", stderr);
        return 2;
    }
    long count = strtol(argv[4], NULL, 10), seconds = strtol(argv[5], NULL, 10);
    uint64_t seed = strtoull(argv[6], NULL, 10);
    referee_address = argv[1];
    referee_port = (uint16_t)strtol(argv[2], NULL, 10);
    if (count <= 0 || count > PROCESSES_MAX || seconds <= 0) {
        fputs("storm: 1 to 1000 processes, at least one second\n", stderr);
        return 2;
    }
    tally = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (tally == MAP_FAILED)
        die("mmap");
    for (long i = 0; i < count; i++) {
        pid_t pid = fork();
        if (pid < 0)
            die("fork");
        if (pid == 0)
            live(argv[3], seed * PROCESSES_MAX + (uint64_t)i + 1, (unsigned)seconds);
    }
    int status, failed = 0;
    while (wait(&status) > 0)
        failed += status != 0;
    printf("granted %u waited %u refused %u interrupted %u deadlocks %u released %u failed %d\n",
           tally->granted, tally->waited, tally->refused, tally->interrupted, tally->deadlocks,
           tally->released, failed);
    return failed != 0;
}

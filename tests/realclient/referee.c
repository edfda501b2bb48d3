/*
 * referee.c -- the model that the processes of a storm (storm.c) are held against.
 *
 * usage: referee ADDRESS PORT PROCESSES
 *
 * For every byte it knows who relies on what. Two processes that rely on a byte, one of them for
 * writing, have been granted locks that exclude each other: that is printed, and the exit status is
 * 1. It ends when so many processes have come and have taken their leave. Writes one line "ready"
 * when it listens.
 */
#include "storm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PROCESSES_MAX = 1000 };

struct process {
    struct sockaddr_in at;
    bool has_left;
    uint8_t has[STORM_BYTES];
};

static struct process processes[PROCESSES_MAX];
static struct pollfd polled[PROCESSES_MAX + 1]; /* the listener is the last one */
static int known, wanted, conflicts, lost;
static unsigned long messages;

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "referee: %s: %s\n", what, strerror(errno));
    exit(2);
}

static void report(int who, int other, int byte)
{
    char name[INET_ADDRSTRLEN], other_name[INET_ADDRSTRLEN], clock[32];
    time_t now = time(NULL);
    inet_ntop(AF_INET, &processes[who].at.sin_addr, name, sizeof name);
    inet_ntop(AF_INET, &processes[other].at.sin_addr, other_name, sizeof other_name);
    strftime(clock, sizeof clock, "%H:%M:%S", gmtime(&now));
    printf("conflict at %s: byte %d, %s relies on mode %d, %s on mode %d\n", clock, byte, name,
           processes[who].has[byte], other_name, processes[other].has[byte]);
    conflicts++;
}

static void judge(int who, int byte)
{
    for (int other = 0; other < known; other++) {
        uint8_t mine = processes[who].has[byte], its = processes[other].has[byte];
        if (other != who && mine + its > STORM_READING * 2 && mine != STORM_NOTHING &&
            its != STORM_NOTHING)
            report(who, other, byte);
    }
}

static void hear(int who, const struct storm_message *message)
{
    struct process *process = &processes[who];
    messages++;
    if (message->word == STORM_LEAVES) {
        process->has_left = true;
        return;
    }
    for (int byte = message->start; byte < message->start + message->len && byte < STORM_BYTES;
         byte++) {
        if (message->word == STORM_HAS)
            process->has[byte] = message->mode;
        else if (process->has[byte] > message->mode)
            process->has[byte] = message->mode;
        if (message->word == STORM_HAS)
            judge(who, byte);
    }
}

static void serve(int who)
{
    struct storm_message message;
    ssize_t count = read(polled[who].fd, &message, sizeof message);
    if (count == (ssize_t)sizeof message) {
        hear(who, &message);
        if (write(polled[who].fd, "+", 1) == 1)
            return;
    }
    if (!processes[who].has_left) {
        printf("a process of the storm has ended without a word\n");
        lost++;
        processes[who].has_left = true;
    }
    close(polled[who].fd);
    polled[who].fd = -1; /* poll leaves it out */
}

static void admit(int listener)
{
    struct sockaddr_in at;
    socklen_t len = sizeof at;
    int fd = accept(listener, (struct sockaddr *)&at, &len);
    if (fd < 0)
        die("accept");
    if (known == wanted) {
        close(fd);
        return;
    }
    processes[known].at = at;
    polled[known++] = (struct pollfd){.fd = fd, .events = POLLIN};
}

static bool all_left(void)
{
    int left = 0;
    for (int i = 0; i < known; i++)
        left += processes[i].has_left;
    return left == wanted;
}

static int listen_at(const char *address, const char *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    int yes = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    at.sin_port = htons((uint16_t)strtol(port, NULL, 10));
    if (inet_pton(AF_INET, address, &at.sin_addr) != 1 || fd < 0)
        die(address);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, (const struct sockaddr *)&at, sizeof at) < 0 || listen(fd, 128) < 0)
        die(address);
    return fd;
}

int main(int argc, char **argv)
{
    wanted = argc == 4 ? (int)strtol(argv[3], NULL, 10) : 0;
    if (wanted <= 0 || wanted > PROCESSES_MAX) {
        fputs("usage: referee ADDRESS PORT PROCESSES (1 to 1000)\n", stderr);
        return 2;
    }
    int listener = listen_at(argv[1], argv[2]);
    puts("ready");
    fflush(stdout);
    while (!all_left()) {
        polled[known] = (struct pollfd){.fd = listener, .events = POLLIN};
        int members = known;
        if (poll(polled, (nfds_t)members + 1, -1) < 0)
            die("poll");
        bool is_new = polled[members].revents != 0;
        for (int i = 0; i < members; i++)
            if (polled[i].fd >= 0 && polled[i].revents != 0)
                serve(i);
        if (is_new)
            admit(listener);
    }
    printf("processes %d messages %lu conflicts %d lost %d\n", known, messages, conflicts, lost);
    return conflicts > 0 || lost > 0;
}

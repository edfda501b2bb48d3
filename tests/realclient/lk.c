/*
 * lk.c -- takes, tests and holds locks on command: the hands of the scenarios inside a guest.
 *
 * A session is a process that keeps a file open and its locks held. It is told what to do through a
 * fifo and writes what came of it into a log, so that a script can leave it blocked in the kernel
 * and look at it later. Linked statically: a guest has no library but those of its NFS programs.
 *
 *   lk open [-o|-f] S PATH      starts session S on PATH: POSIX locks, -o: OFD locks, -f: flock(2)
 *   lk post S OP...             hands it an operation and prints a ticket
 *   lk reply S TICKET [SECS]    waits for the outcome
 *   lk do S OP...               both; waits at most 60 s
 *   lk int S, lk kill S         SIGINT, SIGKILL
 *   lk close S                  ends it, which drops its locks
 *   lk try PATH OP...           the operation in this process; its locks go with it
 *   lk count PATH N             N times: lock, read the number in PATH past the page cache, add
 *                               one, write it, unlock. Prints how often others had moved it.
 *   lk add [-o] PATH SECONDS    the same for so long, through the page cache, with pauses in which
 *                               others get their turn
 *   lk clock SECONDS            sets the clock
 *
 * OP is one of
 *   set r|w|u START LEN         F_SETLK: ok, or the name of the errno
 *   wait r|w|u START LEN        F_SETLKW, likewise
 *   get r|w START LEN           F_GETLK: free, or held r|w START LEN
 *   map N                       of bytes 0 to N-1 what others leave to us: . everything, r reading,
 *                               w nothing
 * A LEN of 0 means to the end of the file; flock looks at neither number.
 *
 * An outcome is "TIME MILLISECONDS RESULT", the time being that of the end. Exit: 0, 1 for EAGAIN,
 * 2 for any other errno, 3 when lk itself failed, 124 for no outcome in time.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SESSIONS "/run/lk"

enum { MAP_MAX = 999, RESULT_MAX = 1024, LINE_MAX_LEN = 1200, COUNTER_LEN = 16, TURN_MS = 20 };
enum { EXIT_REFUSED = 1, EXIT_ERRNO = 2, EXIT_BROKEN = 3, EXIT_PENDING = 124 };

static enum kind { POSIX, OFD, FLOCK } kind;

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "lk: %s: %s\n", what, strerror(errno));
    exit(EXIT_BROKEN);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void nap_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

static int open_file(const char *path, int flags)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | flags, 0666);
    if (fd < 0)
        die(path);
    return fd;
}

/* ---- one operation ---- */

static int lock(int fd, int command, char mode, long start, long len, struct flock *ret)
{
    bool is_set = command == F_SETLK;
    *ret = (struct flock){.l_whence = SEEK_SET, .l_start = start, .l_len = len};
    ret->l_type = mode == 'r' ? F_RDLCK : mode == 'w' ? F_WRLCK : F_UNLCK;
    if (kind == FLOCK)
        return flock(fd, (mode == 'r'   ? LOCK_SH
                          : mode == 'w' ? LOCK_EX
                                        : LOCK_UN) |
                             (is_set ? LOCK_NB : 0));
    if (kind == OFD)
        command = is_set ? F_OFD_SETLK : command == F_SETLKW ? F_OFD_SETLKW : F_OFD_GETLK;
    return fcntl(fd, command, ret);
}

static int say_errno(char *ret)
{
    int err = errno;
    snprintf(ret, RESULT_MAX, "%s", strerrorname_np(err));
    return err == EAGAIN || err == EACCES ? EXIT_REFUSED : EXIT_ERRNO;
}

/* What others leave of each byte. It asks what would be refused: whom a conflict is blamed on is
 * not the point. */
static int map(int fd, long count, char *ret)
{
    struct flock found;
    for (long i = 0; i < count; i++) {
        if (lock(fd, F_GETLK, 'r', i, 1, &found) < 0)
            return say_errno(ret);
        bool may_read = found.l_type == F_UNLCK;
        if (may_read && lock(fd, F_GETLK, 'w', i, 1, &found) < 0)
            return say_errno(ret);
        ret[i] = !may_read ? 'w' : found.l_type == F_UNLCK ? '.' : 'r';
    }
    ret[count] = '\0';
    return 0;
}

/* The exit status; the result is in ret, RESULT_MAX bytes. */
static int perform(int fd, const char *text, char *ret)
{
    char verb[8] = "", mode = 0;
    long start = 0, len = 0;
    struct flock found;
    if (sscanf(text, "map %ld", &len) == 1 && len > 0 && len <= MAP_MAX)
        return map(fd, len, ret);
    int words = sscanf(text, "%7s %c %ld %ld", verb, &mode, &start, &len);
    bool is_get = strcmp(verb, "get") == 0, is_wait = strcmp(verb, "wait") == 0;
    if (words != 4 || (!is_get && !is_wait && strcmp(verb, "set") != 0)) {
        snprintf(ret, RESULT_MAX, "not an operation: %.100s", text);
        return EXIT_BROKEN;
    }
    int command = is_get ? F_GETLK : is_wait ? F_SETLKW : F_SETLK;
    if (lock(fd, command, mode, start, len, &found) < 0)
        return say_errno(ret);
    if (!is_get)
        snprintf(ret, RESULT_MAX, "ok");
    else if (found.l_type == F_UNLCK)
        snprintf(ret, RESULT_MAX, "free");
    else
        snprintf(ret, RESULT_MAX, "held %c %ld %ld", found.l_type == F_RDLCK ? 'r' : 'w',
                 (long)found.l_start, (long)found.l_len);
    return 0;
}

static void join(char *ret, size_t size, char **words)
{
    size_t len = 0;
    ret[0] = '\0';
    for (; *words != NULL && len < size; words++)
        len += (size_t)snprintf(ret + len, size - len, "%s ", *words);
}

static int try(const char *path, char **words)
{
    char text[512], result[RESULT_MAX];
    join(text, sizeof text, words);
    int fd = open_file(path, 0);
    double begin = now();
    int status = perform(fd, text, result);
    printf("%.3f %.0f %s\n", now(), (now() - begin) * 1e3, result);
    return status;
}

/* ---- sessions ---- */

/* Only to make a system call return EINTR. */
static void on_signal(int signal)
{
    (void)signal;
}

static const char *session_path(const char *session, const char *suffix)
{
    static char paths[4][256];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], SESSIONS "/%s.%s", session, suffix);
    return path;
}

/* Lines "TICKET OP..." from the fifo become lines "TICKET TIME MILLISECONDS STATUS RESULT". */
static _Noreturn void obey(FILE *in, FILE *log, int fd)
{
    char line[512], ticket[64], result[RESULT_MAX];
    for (;;) {
        int skip = 0;
        if (fgets(line, sizeof line, in) == NULL) {
            if (errno != EINTR)
                exit(EXIT_BROKEN);
            clearerr(in); /* a signal while there was nothing to do */
            continue;
        }
        if (sscanf(line, "%63s %n", ticket, &skip) != 1)
            continue;
        if (strncmp(line + skip, "close", 5) == 0) {
            fprintf(log, "%s %.3f 0 0 ok\n", ticket, now());
            exit(0);
        }
        double begin = now();
        int status = perform(fd, line + skip, result);
        fprintf(log, "%s %.3f %.0f %d %s\n", ticket, now(), (now() - begin) * 1e3, status, result);
        fflush(log);
    }
}

static int open_session(const char *session, const char *path)
{
    struct sigaction action = {.sa_handler = on_signal}; /* without SA_RESTART */
    int fd = open_file(path, 0);
    unlink(session_path(session, "log"));
    unlink(session_path(session, "fifo"));
    if (mkfifo(session_path(session, "fifo"), 0600) < 0)
        die("mkfifo");
    /* Open for writing too, so that it never comes to an end. */
    int fifo = open(session_path(session, "fifo"), O_RDWR | O_CLOEXEC);
    FILE *in = fifo < 0 ? NULL : fdopen(fifo, "r");
    FILE *log = fopen(session_path(session, "log"), "a");
    FILE *pid_file = fopen(session_path(session, "pid"), "w");
    if (in == NULL || log == NULL || pid_file == NULL)
        die(session);
    sigaction(SIGINT, &action, NULL);
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0)
        die("fork");
    if (pid == 0) {
        setsid();
        obey(in, log, fd);
    }
    fprintf(pid_file, "%d\n", pid);
    fclose(pid_file);
    return 0;
}

static int post(const char *session, char **words, char *ret_ticket, size_t ticket_size)
{
    char text[400], line[512];
    join(text, sizeof text, words);
    snprintf(ret_ticket, ticket_size, "%.6f", now());
    int len = snprintf(line, sizeof line, "%s %s\n", ret_ticket, text);
    int fd = open(session_path(session, "fifo"), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || write(fd, line, (size_t)len) != len)
        die(session);
    close(fd);
    return 0;
}

/* The exit status of a ticket, after its outcome was printed; negative: there is none yet. */
static int find_reply(const char *session, const char *ticket)
{
    char line[LINE_MAX_LEN], time[64], ms[64];
    size_t ticket_len = strlen(ticket);
    int status = -1;
    FILE *log = fopen(session_path(session, "log"), "r");
    while (log != NULL && fgets(line, sizeof line, log) != NULL) {
        int skip = 0;
        if (strncmp(line, ticket, ticket_len) != 0 || line[ticket_len] != ' ' ||
            strchr(line, '\n') == NULL)
            continue;
        if (sscanf(line + ticket_len, "%63s %63s %d %n", time, ms, &status, &skip) == 3)
            printf("%s %s %s", time, ms, line + ticket_len + skip);
        break;
    }
    if (log != NULL)
        fclose(log);
    return status;
}

static int reply(const char *session, const char *ticket, double seconds)
{
    double end = now() + seconds;
    for (;;) {
        int status = find_reply(session, ticket);
        if (status >= 0)
            return status;
        if (now() >= end) {
            puts("pending");
            return EXIT_PENDING;
        }
        nap_ms(10);
    }
}

static int post_and_reply(const char *session, char **words)
{
    char ticket[64];
    post(session, words, ticket, sizeof ticket);
    return reply(session, ticket, 60);
}

static int signal_session(const char *session, int signal)
{
    int pid = 0;
    FILE *file = fopen(session_path(session, "pid"), "r");
    if (file == NULL || fscanf(file, "%d", &pid) != 1 || pid <= 0 || kill(pid, signal) < 0)
        die(session);
    fclose(file);
    return 0;
}

/* ---- tools ---- */

/* Adds one under the lock; the number that it made. */
static long add_one(int fd)
{
    static char buffer[4096] __attribute__((aligned(4096)));
    struct flock found;
    if (lock(fd, F_SETLKW, 'w', 0, COUNTER_LEN, &found) < 0)
        die("lock");
    memset(buffer, 0, COUNTER_LEN + 1);
    if (pread(fd, buffer, COUNTER_LEN, 0) < 0)
        die("read");
    long value = strtol(buffer, NULL, 10) + 1;
    snprintf(buffer, sizeof buffer, "%*ld\n", COUNTER_LEN - 1, value);
    if (pwrite(fd, buffer, COUNTER_LEN, 0) != COUNTER_LEN)
        die("write");
    if (lock(fd, F_SETLK, 'u', 0, COUNTER_LEN, &found) < 0)
        die("unlock");
    return value;
}

/* So many times, or, if that is 0, for so long. */
static int count(int fd, long cycles, double seconds)
{
    long last = 0, handovers = 0, i = 0;
    double begin = now();
    for (; cycles > 0 ? i < cycles : now() - begin < seconds; i++) {
        long value = add_one(fd);
        handovers += i > 0 && value != last + 1;
        last = value;
        if (cycles == 0)
            nap_ms(TURN_MS);
    }
    printf("cycles %ld handovers %ld seconds %.2f last %ld\n", i, handovers, now() - begin, last);
    return 0;
}

static int set_clock(const char *text)
{
    double seconds = strtod(text, NULL);
    struct timespec t = {.tv_sec = (time_t)seconds};
    t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
    if (clock_settime(CLOCK_REALTIME, &t) < 0)
        die("clock");
    return 0;
}

static int command(const char *verb, char **words, int count_of_words)
{
    static char *close_words[] = {"close", NULL};
    char ticket[64];
    if (strcmp(verb, "clock") == 0)
        return set_clock(words[0]);
    if (strcmp(verb, "int") == 0)
        return signal_session(words[0], SIGINT);
    if (strcmp(verb, "kill") == 0)
        return signal_session(words[0], SIGKILL);
    if (strcmp(verb, "close") == 0)
        return post_and_reply(words[0], close_words);
    if (count_of_words < 2)
        return -1;
    if (strcmp(verb, "open") == 0)
        return open_session(words[0], words[1]);
    if (strcmp(verb, "reply") == 0)
        return reply(words[0], words[1], count_of_words > 2 ? strtod(words[2], NULL) : 60);
    if (strcmp(verb, "do") == 0)
        return post_and_reply(words[0], words + 1);
    if (strcmp(verb, "try") == 0)
        return try(words[0], words + 1);
    if (strcmp(verb, "count") == 0)
        return count(open_file(words[0], O_DIRECT), strtol(words[1], NULL, 10), 0);
    if (strcmp(verb, "add") == 0)
        return count(open_file(words[0], 0), 0, strtod(words[1], NULL));
    if (strcmp(verb, "post") != 0)
        return -1;
    post(words[0], words + 1, ticket, sizeof ticket);
    puts(ticket);
    return 0;
}

int main(int argc, char **argv)
{
    char **words = argv + 2;
    (void)mkdir(SESSIONS, 0755);
    if (argc > 2 && words[0][0] == '-') {
        kind = strcmp(words[0], "-o") == 0 ? OFD : FLOCK;
        words++;
    }
    int left = argc - (int)(words - argv);
    int status = left > 0 ? command(argv[1], words, left) : -1;
    if (status < 0)
        fputs("usage: lk open|post|reply|do|int|kill|close|try|count|add|clock ...; see lk.c\n",
              stderr);
    return status < 0 ? EXIT_BROKEN : status;
}

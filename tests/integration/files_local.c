/*
 * files_local.c -- programs on the server and NFS clients exclude each other (F-MIRROR), and locks
 * of a removed file go (F-LOCK).
 *
 * Passing shows: what a client holds no program can lock, also while the server is down after kill
 * -9 and when it is back; what a program holds no client can lock, and TEST says so; two clients
 * and two programs count in one file under its lock while the server is killed again and again, and
 * nothing is lost; when the keeper was killed as well and a program was faster, the log says so; a
 * file that is removed on the server has no locks soon after; --local-locks off does none of it.
 */
#include "lock_asker.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_MS = 20000, PAUSE_MS = 2, COUNT_MIN = 40, KILL_PAUSE_MS = 150 };

static struct files_stage stage;
static const char *path;
static struct peer_link nfs;
static const struct asker client = {"127.0.0.1", {.uid = 1000, .gid = 1000}, false};

static void pause_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    (void)nanosleep(&time, NULL);
}

static struct peer_nfs_fh make(const char *name, const char *text)
{
    char file[512];
    files_stage_put_local(path, name, text, 0666);
    snprintf(file, sizeof(file), "%s/%s", path, name);
    if (chown(file, 1000, 1000) != 0)
        abort();
    return files_stage_lookup(&nfs, files_stage_mount(&nfs, path), name);
}

static int open_local(const char *name)
{
    char file[512];
    snprintf(file, sizeof(file), "%s/%s", path, name);
    int fd = open(file, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        abort();
    return fd;
}

static struct peer_nlm_args of_process(const struct peer_nfs_fh *fh, uint32_t svid)
{
    struct peer_nlm_args args = lock_asker_about(fh);
    args.lock.svid = svid;
    return args;
}

static uint32_t ask(uint32_t procedure, const struct peer_nfs_fh *fh, uint32_t svid)
{
    return lock_asker_ask(&stage.server, &client, procedure, of_process(fh, svid));
}

static void expect(uint32_t wanted, const char *why, uint32_t procedure,
                   const struct peer_nfs_fh *fh)
{
    lock_asker_expect(&stage.server, wanted, why, &client, procedure, lock_asker_about(fh));
}

static bool program_takes(int fd, short type)
{
    struct flock flock = {.l_type = type, .l_whence = SEEK_SET, .l_len = 10};
    return fcntl(fd, F_OFD_SETLK, &flock) == 0;
}

/* What is unlocked is free as soon as that is durable and the turn has ended. */
static void expect_free(const char *why, int fd)
{
    bool is_taken = program_takes(fd, F_WRLCK);
    for (long ms = 0; ms < PATIENCE_MS && !is_taken; ms += PAUSE_MS) {
        pause_ms(PAUSE_MS);
        is_taken = program_takes(fd, F_WRLCK);
    }
    HARNESS_EXPECT(is_taken, "%s: a program cannot have what nobody holds", why);
    (void)program_takes(fd, F_UNLCK);
}

static void expect_log(const char *text)
{
    long ms = 0;
    while (ms < PATIENCE_MS && !harness_log_contains(&stage.server, text)) {
        pause_ms(PAUSE_MS);
        ms += PAUSE_MS;
    }
    HARNESS_EXPECT(ms < PATIENCE_MS, "the log does not say: %s", text);
}

static void check_both_ways(void)
{
    struct peer_nfs_fh fh = make("both", "text");
    int fd = open_local("both");
    expect(PEER_NLM_IS_GRANTED, "before any program", PEER_NLM_LOCK, &fh);
    HARNESS_EXPECT(!program_takes(fd, F_WRLCK), "a program has what a client holds");
    HARNESS_EXPECT(!program_takes(fd, F_RDLCK), "a program reads what a client writes");
    expect(PEER_NLM_IS_GRANTED, "and freed", PEER_NLM_UNLOCK, &fh);
    expect_free("after UNLOCK", fd);
    HARNESS_EXPECT(program_takes(fd, F_RDLCK), "a program cannot lock a free file");
    expect(PEER_NLM_IS_DENIED, "a program reads", PEER_NLM_LOCK, &fh);
    expect(PEER_NLM_IS_DENIED, "a program reads", PEER_NLM_TEST, &fh);
    struct peer_nlm_args shared = lock_asker_about(&fh);
    shared.exclusive = false;
    lock_asker_expect(&stage.server, PEER_NLM_IS_GRANTED, "both read", &client, PEER_NLM_LOCK,
                      shared);
    lock_asker_expect(&stage.server, PEER_NLM_IS_GRANTED, "and freed", &client, PEER_NLM_UNLOCK,
                      shared);
    (void)close(fd);
    expect(PEER_NLM_IS_GRANTED, "the program has ended", PEER_NLM_LOCK, &fh);
    expect(PEER_NLM_IS_GRANTED, "and freed", PEER_NLM_UNLOCK, &fh);
}

/* A program that waits in the kernel, and says when it has the lock. */
static pid_t wait_in_kernel(const char *name, int *ret_pipe)
{
    int ends[2];
    if (pipe(ends) != 0)
        abort();
    pid_t pid = fork();
    if (pid == 0) {
        struct flock flock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
        int fd = open_local(name);
        if (fcntl(fd, F_SETLKW, &flock) == 0)
            (void)!write(ends[1], "", 1);
        _exit(0);
    }
    (void)close(ends[1]);
    *ret_pipe = ends[0];
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return pid;
}

static bool has_got_it(int pipe_fd, long patience_ms)
{
    char byte;
    for (long ms = 0; ms <= patience_ms; ms += PAUSE_MS) {
        if (read(pipe_fd, &byte, 1) == 1)
            return true;
        pause_ms(PAUSE_MS);
    }
    return false;
}

static void check_kill(void)
{
    struct peer_nfs_fh fh = make("killed", "text");
    int pipe_fd, fd = open_local("killed");
    expect(PEER_NLM_IS_GRANTED, "before the crash", PEER_NLM_LOCK, &fh);
    pid_t program = wait_in_kernel("killed", &pipe_fd);
    (void)harness_stop(&stage.server, SIGKILL);
    HARNESS_EXPECT(!has_got_it(pipe_fd, 300), "no server runs, and a program has the lock");
    HARNESS_EXPECT(!program_takes(fd, F_RDLCK), "no server runs, and a program reads");
    if (!files_stage_start(&stage))
        return;
    HARNESS_EXPECT(!has_got_it(pipe_fd, 100), "the server is back, and a program has the lock");
    expect(PEER_NLM_IS_GRANTED, "it is still held", PEER_NLM_LOCK, &fh);
    expect(PEER_NLM_IS_GRANTED, "and freed", PEER_NLM_UNLOCK, &fh);
    HARNESS_EXPECT(has_got_it(pipe_fd, PATIENCE_MS), "UNLOCK, and no program has the lock");
    (void)waitpid(program, NULL, 0);
    expect_free("after both", fd);
    (void)close(pipe_fd);
    (void)close(fd);
}

/* The keeper of this test's store: the only one whose directory lies in it. */
static pid_t find_keeper(void)
{
    DIR *processes = opendir("/proc");
    pid_t found = 0;
    for (const struct dirent *at; processes != NULL && (at = readdir(processes)) != NULL;) {
        char name[300], target[512] = "";
        snprintf(name, sizeof(name), "/proc/%s/fd/4", at->d_name);
        pid_t pid = (pid_t)strtol(at->d_name, NULL, 10);
        if (pid > 0 && pid != stage.server.pid && readlink(name, target, sizeof(target) - 1) > 0 &&
            strcmp(target, stage.server.store) == 0)
            found = pid;
    }
    if (processes != NULL)
        (void)closedir(processes);
    return found;
}

static void check_program_was_faster(void)
{
    struct peer_nfs_fh fh = make("faster", "text");
    int fd = open_local("faster");
    expect(PEER_NLM_IS_GRANTED, "before the crash", PEER_NLM_LOCK, &fh);
    pid_t keeper = find_keeper();
    HARNESS_EXPECT(keeper > 0, "there is no keeper");
    if (keeper > 0)
        (void)kill(keeper, SIGKILL);
    (void)harness_stop(&stage.server, SIGKILL);
    expect_free("server and keeper are killed", fd);
    HARNESS_EXPECT(program_takes(fd, F_WRLCK), "a program cannot lock");
    if (!files_stage_start(&stage))
        return;
    expect_log("has locked bytes that an NFS client holds");
    expect_log("faster");
    (void)close(fd);
    expect(PEER_NLM_IS_GRANTED, "and freed", PEER_NLM_UNLOCK, &fh);
}

static void check_removed(void)
{
    struct peer_nfs_fh fh = make("removed", "text");
    char file[512];
    snprintf(file, sizeof(file), "%s/removed", path);
    expect(PEER_NLM_IS_GRANTED, "before it is removed", PEER_NLM_LOCK, &fh);
    HARNESS_EXPECT(unlink(file) == 0, "cannot remove %s", file);
    expect(PEER_NLM_IS_STALE_FH, "a removed file", PEER_NLM_TEST, &fh);
    expect_log("freed the locks of a file that was removed");
    expect(PEER_NLM_IS_STALE_FH, "when that is durable", PEER_NLM_TEST, &fh);
    if (files_stage_crash(&stage))
        HARNESS_EXPECT(stage.server.locks == 0, "%u locks of a removed file", stage.server.locks);
    /* By a client. */
    struct peer_nfs_fh again = make("again", "text");
    expect(PEER_NLM_IS_GRANTED, "before it is removed", PEER_NLM_LOCK, &again);
    FILES_EXPECT(PEER_NFS_IS_OK, "removed by a client", &nfs, PEER_NFS_REMOVE,
                 .fh = files_stage_mount(&nfs, path), .name = {"again", 5});
    expect_log("freed the locks of a file that was removed");
    expect(PEER_NLM_IS_STALE_FH, "when that is durable", PEER_NLM_TEST, &again);
    if (files_stage_crash(&stage))
        HARNESS_EXPECT(stage.server.locks == 0, "%u locks of removed files", stage.server.locks);
}

/* ---- counting ---- */

static long number_in(const char *text, size_t len)
{
    char buffer[32] = "";
    memcpy(buffer, text, len < 31 ? len : 31);
    return strtol(buffer, NULL, 10);
}

/* The size of a file says it. */
static void note_count(const char *who, uint32_t number, long count)
{
    char name[64], file[600];
    snprintf(name, sizeof(name), "%s-%u", who, number);
    files_stage_put_local(harness_path("counts"), name, "", 0644);
    snprintf(file, sizeof(file), "%s/%s", harness_path("counts"), name);
    if (truncate(file, count) != 0)
        abort();
    printf("# %s %u counted %ld\n", who, number, count);
    fflush(stdout);
}

static void lock_until_granted(const struct peer_nfs_fh *fh, uint32_t svid)
{
    while (ask(PEER_NLM_LOCK, fh, svid) != PEER_NLM_IS_GRANTED)
        pause_ms(1);
}

/* A client that goes on after an error would count wrongly all by itself. */
static const struct peer_nfs_res *must(const char *what, const struct peer_nfs_res *res)
{
    if (res->status == PEER_NFS_IS_OK)
        return res;
    printf("# %s answered %s\n", what, peer_nfs_status_text(res->status));
    fflush(stdout);
    _exit(1);
}

static void count_as_client(struct peer_nfs_fh fh, uint32_t svid, int stop)
{
    struct peer_link link;
    char byte, text[32];
    long count = 0;
    files_stage_link(&link, 1000, 1000);
    link.next_xid = (uint32_t)getpid() << 16;
    while (count < COUNT_MIN || read(stop, &byte, 1) < 0) {
        lock_until_granted(&fh, svid);
        const struct peer_nfs_res *res =
            must("READ", FILES_ASK(&link, PEER_NFS_READ, .fh = fh, .count = sizeof(text) - 1));
        long next = number_in((const char *)res->data.at, res->data.len) + 1;
        snprintf(text, sizeof(text), "%-20ld", next);
        (void)must("WRITE", FILES_ASK(&link, PEER_NFS_WRITE, .fh = fh, .count = 20,
                                      .stable = PEER_NFS_FILE_SYNC, .data = {text, 20}));
        while (ask(PEER_NLM_UNLOCK, &fh, svid) != PEER_NLM_IS_GRANTED)
            pause_ms(1);
        count++;
    }
    peer_link_done(&link);
    note_count("client", svid, count);
}

static void count_as_program(uint32_t number, int stop)
{
    char byte, text[32];
    long count = 0;
    int fd = open_local("counter");
    while (count < COUNT_MIN || read(stop, &byte, 1) < 0) {
        struct flock flock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 10};
        if (fcntl(fd, F_SETLKW, &flock) != 0)
            abort();
        ssize_t len = pread(fd, text, sizeof(text) - 1, 0);
        snprintf(text, sizeof(text), "%-20ld", number_in(text, (size_t)len) + 1);
        pause_ms(1);
        if (pwrite(fd, text, 20, 0) != 20)
            abort();
        flock.l_type = F_UNLCK;
        (void)fcntl(fd, F_SETLK, &flock);
        count++;
        pause_ms(2); /* so that clients, which poll, find it free */
    }
    note_count("program", number, count);
}

/* How much the processes have counted, as the sizes of files say. */
static long counted(void)
{
    DIR *directory = opendir(harness_path("counts"));
    long sum = 0;
    for (const struct dirent *at; directory != NULL && (at = readdir(directory)) != NULL;) {
        struct stat st;
        char file[600];
        snprintf(file, sizeof(file), "%s/%s", harness_path("counts"), at->d_name);
        if (stat(file, &st) == 0 && S_ISREG(st.st_mode))
            sum += st.st_size;
    }
    if (directory != NULL)
        (void)closedir(directory);
    return sum;
}

static void check_counter(void)
{
    uint32_t kills = harness_number("HOLDFAST_FILES_LOCAL_KILLS", 8);
    int stop[2];
    struct peer_nfs_fh fh = make("counter", "0");
    pid_t workers[4];
    if (mkdir(harness_path("counts"), 0755) != 0 || pipe(stop) != 0)
        abort();
    (void)fcntl(stop[0], F_SETFL, O_NONBLOCK);
    for (int i = 0; i < 4; i++) {
        workers[i] = fork();
        if (workers[i] != 0)
            continue;
        (void)close(stop[1]);
        if (i < 2)
            count_as_client(fh, 100 + (uint32_t)i, stop[0]);
        else
            count_as_program((uint32_t)i, stop[0]);
        _exit(0);
    }
    for (uint32_t i = 0; i < kills; i++) {
        pause_ms(KILL_PAUSE_MS);
        if (!files_stage_crash(&stage))
            break;
        HARNESS_EXPECT(!harness_log_contains(&stage.server, "has locked bytes"),
                       "after kill %u a program and a client hold the same", i);
    }
    (void)close(stop[1]);
    for (int i = 0; i < 4; i++) {
        int status;
        (void)waitpid(workers[i], &status, 0);
        HARNESS_EXPECT(status == 0, "worker %d ended with %d", i, status);
    }
    char text[32] = "";
    int fd = open_local("counter");
    (void)!pread(fd, text, sizeof(text) - 1, 0);
    (void)close(fd);
    long wanted = counted(), found = number_in(text, strlen(text));
    HARNESS_EXPECT(found == wanted, "the counter says %ld, and %ld were counted", found, wanted);
    printf("# %u kills, %ld counted\n", kills, wanted);
}

static void check_off(void)
{
    struct peer_nfs_fh fh = make("off", "text");
    int fd = open_local("off");
    expect(PEER_NLM_IS_GRANTED, "--local-locks on", PEER_NLM_LOCK, &fh);
    (void)harness_stop(&stage.server, SIGTERM);
    HARNESS_EXPECT(!program_takes(fd, F_WRLCK), "a program is not kept out after a stop");
    files_stage_option(&stage, "--local-locks", "off");
    if (!files_stage_start(&stage))
        return;
    expect(PEER_NLM_IS_GRANTED, "--local-locks off", PEER_NLM_LOCK, &fh);
    expect_free("--local-locks off", fd); /* also of what was kept */
    expect(PEER_NLM_IS_GRANTED, "and freed", PEER_NLM_UNLOCK, &fh);
    (void)close(fd);
}

int main(void)
{
    files_stage_init(&stage, "files_local");
    path = files_stage_export(&stage, "files", "*(rw)");
    if (chmod(path, 0777) != 0)
        abort();
    files_stage_option(&stage, "--recovery", "resume");
    files_stage_option(&stage, "--nlm-port", "2050"); /* where clients find it after a kill */
    if (files_stage_start(&stage)) {
        files_stage_link(&nfs, 1000, 1000);
        check_both_ways();
        check_kill();
        check_program_was_faster();
        check_removed();
        check_counter();
        check_off();
        peer_link_done(&nfs);
    }
    return files_stage_finish(&stage);
}

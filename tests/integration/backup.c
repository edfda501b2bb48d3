/*
 * backup.c -- `holdfast store export` of a running server, again and again, while clients lock and
 * unlock and the server is killed at times.
 *
 * usage: backup lmdb|postgres
 *
 * Passing proves:
 *  (1) an export is the state after one batch: bytes 0 to 99 of a file, out of which a client
 *      unlocks 40 to 59 and locks them again, are one lock or two, never anything else; what was
 *      granted before the export began is in it, what was asked for after its end is not;
 *  (2) it imports, and the copy has the same digest;
 *  (3) while its reader has stopped, others get their locks, and a stop and kill -9 of the server
 *      wait for nobody; the export then fails with a sentence, no file appears, and what there is
 *      of it is refused by import unless --incomplete is given, which marks the store. With
 *      PostgreSQL the export does not need the server and completes;
 *  (4) a second export meanwhile is refused with a sentence; a reader that takes nothing is cut off
 *      after 30 s, and the next one is served (lmdb);
 *  (5) a full disk fails the export and nothing else (lmdb);
 *  (6) a file that was cut anywhere, also inside a line, or whose last line says that the export
 *      broke off, is refused with the next step, and --incomplete imports what comes before; a bad
 *      line that ends is damage, which nothing imports.
 */
#include "lock_bulk.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILLER       UINT32_C(0x7f060001) /* 127.6.0.1 */
#define PAIRS_SOURCE UINT32_C(0x7f060002)
#define MARKER       UINT32_C(0x7f060003)
#define FILL         40000
#define PAIRS        300
#define PAIRS_FIRST  100 /* their files */
#define MARKS_FILE   7
#define ROUNDS       4
#define EXPORTS      3 /* in each */
#define ARGUMENTS    12

static struct harness_server server;
static bool is_postgres;
static char url[512];
static uint32_t turn;  /* of the pairs */
static uint32_t marks; /* locks of the marker, all granted */

/* ---- clients ---- */

static struct lock_call filler_lock(uint32_t number)
{
    return (struct lock_call){.procedure = PEER_NLM_LOCK,
                              .name = "filler",
                              .svid = 1,
                              .file = 1,
                              .offset = (uint64_t)number * 2,
                              .len = 1,
                              .exclusive = true,
                              .state = 3};
}

static struct lock_call pair_whole(uint32_t number)
{
    return (struct lock_call){.procedure = PEER_NLM_LOCK,
                              .name = "pairs",
                              .svid = number,
                              .file = PAIRS_FIRST + number,
                              .len = 100,
                              .exclusive = true,
                              .state = 3};
}

static struct lock_call pair_cut(uint32_t number)
{
    struct lock_call call = pair_whole(number);
    call.procedure = PEER_NLM_UNLOCK;
    call.offset = 40;
    call.len = 20;
    call.cookie = (turn + 1) * PAIRS + number;
    return call;
}

static struct lock_call pair_join(uint32_t number)
{
    struct lock_call call = pair_cut(number);
    call.procedure = PEER_NLM_LOCK;
    return call;
}

static bool run_bulk(const char *what, uint32_t source, uint32_t count, lock_bulk_fn call)
{
    struct lock_bulk bulk = {.what = what, .source = source, .count = count, .call = call};
    return lock_bulk_run(&server, &bulk) &&
           HARNESS_EXPECT(bulk.by_status[PEER_NLM_IS_GRANTED] == count, "%s: %u of %u granted",
                          what, bulk.by_status[PEER_NLM_IS_GRANTED], count);
}

static void mark(void)
{
    struct lock_call call = filler_lock(marks);
    call.name = "marker";
    call.file = MARKS_FILE;
    int status = lock_call_once(&server, MARKER, false, &call, NULL);
    if (HARNESS_EXPECT(status == PEER_NLM_IS_GRANTED, "mark %u: %s", marks, lock_call_text(status)))
        marks++;
}

/* A child that cuts and joins pairs until it is killed. */
static pid_t start_pairs(void)
{
    pid_t parent = getpid();
    fflush(stdout);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || !freopen("/dev/null", "w", stdout))
        _exit(1);
    do
        turn++;
    while (run_bulk("cut", PAIRS_SOURCE, PAIRS, pair_cut) &&
           run_bulk("join", PAIRS_SOURCE, PAIRS, pair_join));
    for (;;)
        pause(); /* the server was killed */
}

static void end_child(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* ---- the command ---- */

/* Standard output goes to `out`, and what it says to the file "said". */
static pid_t spawn_tool(int out, va_list words)
{
    const char *arguments[ARGUMENTS] = {getenv("HOLDFAST"), "store"};
    int count = 2;
    while ((arguments[count] = va_arg(words, const char *)) != NULL)
        if (++count == ARGUMENTS)
            abort();
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(open("/dev/null", O_RDONLY), 0);
        dup2(out, 1);
        dup2(open(harness_path("said"), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
        execv(arguments[0], (char *const *)(uintptr_t)arguments);
        _exit(127);
    }
    return pid;
}

static int exit_code_of(pid_t pid)
{
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

static int run_tool(const char *out_path, ...)
{
    va_list words;
    int out = open(out_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    va_start(words, out_path);
    pid_t pid = spawn_tool(out, words);
    va_end(words);
    close(out);
    return exit_code_of(pid);
}

static pid_t spawn_export(int out, ...)
{
    va_list words;
    va_start(words, out);
    pid_t pid = spawn_tool(out, words);
    va_end(words);
    return pid;
}

static bool has_said(const char *words)
{
    char text[2048];
    FILE *file = fopen(harness_path("said"), "re");
    size_t len = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
    if (file)
        fclose(file);
    text[len] = '\0';
    return HARNESS_EXPECT(strstr(text, words) != NULL, "no \"%s\" in: %s", words, text);
}

/* ---- what an export says ---- */

struct picture {
    uint32_t whole[PAIRS], left[PAIRS], right[PAIRS], other;
    uint32_t fill, marks, mark_max;
    bool is_incomplete, has_end;
    char digest[17];
};

static uint64_t number_of(const char *line, const char *key)
{
    const char *at = strstr(line, key);
    return at ? strtoull(at + strlen(key), NULL, 10) : UINT64_MAX;
}

static uint32_t file_of(const char *line)
{
    uint8_t fh[LOCK_CALL_FH_LEN];
    const char *at = strstr(line, "\"fh\": \"");
    for (uint32_t i = 0; at && i < LOCK_CALL_FH_LEN; i++) {
        unsigned byte;
        if (sscanf(at + 7 + 2 * i, "%2x", &byte) != 1)
            return UINT32_MAX;
        fh[i] = (uint8_t)byte;
    }
    return at ? lock_call_file(fh, LOCK_CALL_FH_LEN) : UINT32_MAX;
}

static void see_lock(struct picture *picture, const char *line)
{
    uint64_t offset = number_of(line, "\"offset\": "), len = number_of(line, "\"length\": ");
    uint32_t file = file_of(line), pair = file - PAIRS_FIRST;
    if (file == 1) {
        picture->fill++;
    } else if (file == MARKS_FILE) {
        picture->marks++;
        if (offset / 2 >= picture->mark_max)
            picture->mark_max = (uint32_t)offset / 2 + 1;
    } else if (pair < PAIRS) {
        picture->whole[pair] += offset == 0 && len == 100;
        picture->left[pair] += offset == 0 && len == 40;
        picture->right[pair] += offset == 60 && len == 40;
        picture->other += !(offset == 0 && len == 100) && len != 40;
    } else {
        picture->other++;
    }
}

static void look_at(const char *path, struct picture *ret)
{
    char *line = NULL;
    size_t size = 0;
    FILE *file = fopen(path, "re");
    *ret = (struct picture){0};
    while (file && getline(&line, &size, file) > 0) {
        if (strncmp(line, "{\"kind\": \"lock\"", 15) == 0)
            see_lock(ret, line);
        if (strstr(line, "\"incomplete\": 1"))
            ret->is_incomplete = true;
        const char *digest = strstr(line, "\"digest\": \"");
        ret->has_end = strncmp(line, "{\"kind\": \"end\"", 14) == 0 && digest != NULL;
        if (ret->has_end)
            snprintf(ret->digest, sizeof(ret->digest), "%.16s", digest + 11);
    }
    free(line);
    if (file)
        fclose(file);
}

/* (1) `least` marks were granted before it began, and none after `most` before its end. */
static void expect_one_batch(const char *path, uint32_t least, uint32_t most)
{
    struct picture picture;
    uint32_t torn = 0, cut = 0;
    look_at(path, &picture);
    for (uint32_t i = 0; i < PAIRS; i++) {
        bool is_whole = picture.whole[i] == 1 && picture.left[i] == 0 && picture.right[i] == 0;
        bool is_cut = picture.whole[i] == 0 && picture.left[i] == 1 && picture.right[i] == 1;
        torn += !is_whole && !is_cut;
        cut += is_cut;
    }
    HARNESS_EXPECT(picture.has_end, "%s has no end", path);
    HARNESS_EXPECT(torn == 0 && picture.other == 0, "%u pairs are torn, %u locks are nobody's",
                   torn, picture.other);
    HARNESS_EXPECT(picture.fill == FILL, "%u of %u locks", picture.fill, FILL);
    HARNESS_EXPECT(
        picture.marks == picture.mark_max && picture.marks >= least && picture.marks <= most,
        "%u marks up to %u, %u to %u are right", picture.marks, picture.mark_max, least, most);
    printf("%s: %u of %u pairs are cut, %u marks\n", path, cut, PAIRS, picture.marks);
}

/* (2) */
static void expect_copy(const char *path, uint32_t round)
{
    struct picture here, there;
    char name[32], copy[256];
    const char *again = harness_path("again.json");
    snprintf(name, sizeof(name), "copy%u", round);
    snprintf(copy, sizeof(copy), "lmdb:%s", harness_path(name));
    look_at(path, &here);
    HARNESS_EXPECT(run_tool("/dev/null", "import", "--store", copy, path, NULL) == 0, "import");
    has_said(here.digest);
    HARNESS_EXPECT(run_tool(again, "export", "--store", copy, NULL) == 0, "export of the copy");
    look_at(again, &there);
    HARNESS_EXPECT(strcmp(here.digest, there.digest) == 0, "%s became %s", here.digest,
                   there.digest);
}

/* ---- scenes ---- */

/* An export whose reader has read one byte and then stops. */
struct stopped {
    pid_t pid;
    int fd;
    FILE *out;
};

static void begin_stopped(struct stopped *stopped, const char *out_path)
{
    int ends[2];
    char first;
    if (pipe2(ends, O_CLOEXEC) != 0)
        abort();
    stopped->pid = spawn_export(ends[1], "export", "--store", url, NULL);
    close(ends[1]);
    stopped->fd = ends[0];
    stopped->out = fopen(out_path, "we");
    HARNESS_EXPECT(stopped->out && read(stopped->fd, &first, 1) == 1 &&
                       fputc(first, stopped->out) == first,
                   "the export does not begin");
}

/* Reads the rest. The exit code. */
static int end_stopped(struct stopped *stopped)
{
    char piece[65536];
    ssize_t len;
    while ((len = read(stopped->fd, piece, sizeof(piece))) > 0)
        fwrite(piece, 1, (size_t)len, stopped->out);
    close(stopped->fd);
    fclose(stopped->out);
    return exit_code_of(stopped->pid);
}

/* Only --incomplete imports it. */
static void expect_refused(const char *path, const char *why, struct picture *ret)
{
    static uint32_t number;
    char name[32], copy[256];
    const char *json = harness_path("part.json");
    snprintf(name, sizeof(name), "part%u", number++);
    snprintf(copy, sizeof(copy), "lmdb:%s", harness_path(name));
    HARNESS_EXPECT(run_tool("/dev/null", "import", "--store", copy, path, NULL) == 1,
                   "a cut export is imported");
    has_said(why);
    has_said("--incomplete imports what there is. Nothing was imported");
    HARNESS_EXPECT(access(copy + 5, F_OK) != 0, "and something was written");
    HARNESS_EXPECT(run_tool("/dev/null", "import", "--incomplete", "--store", copy, path, NULL) ==
                       0,
                   "import --incomplete");
    HARNESS_EXPECT(run_tool(json, "export", "--store", copy, NULL) == 0, "export");
    look_at(json, ret);
    HARNESS_EXPECT(ret->is_incomplete && ret->has_end, "it does not say so");
}

static void write_at(const char *path, off_t end, const char *words)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t len = (ssize_t)strlen(words);
    HARNESS_EXPECT(fd >= 0 && ftruncate(fd, end) == 0 && pwrite(fd, words, (size_t)len, end) == len,
                   "%s: %s", path, strerror(errno));
    close(fd);
}

/* (6) What is left of a whole export by a kill, a full disk or a server that gave up. */
static void cut_anywhere(const char *path)
{
    struct picture picture;
    char *line = NULL, name[256];
    size_t size = 0;
    off_t end = 0, last = 0; /* where the last line begins, and the one before it */
    FILE *file = fopen(path, "re");
    for (ssize_t len = 0, next; file && (next = getline(&line, &size, file)) > 0; len = next) {
        last = end;
        end += len;
    }
    free(line);
    if (!HARNESS_EXPECT(file && end > last && last > 0, "%s", path))
        return;
    fclose(file);
    write_at(path, end, "{\"kind\": \"error\", \"error\": \"no disk\"}\n");
    expect_refused(path, "the export broke off: no disk.", &picture);
    HARNESS_EXPECT(picture.fill == FILL, "%u of %u locks", picture.fill, FILL);
    write_at(path, end, "{\"kind\": \"end\", \"rec");
    expect_refused(path, "the export was cut inside this line.", &picture);
    HARNESS_EXPECT(picture.fill == FILL, "%u of %u locks", picture.fill, FILL);
    write_at(path, end, "");
    expect_refused(path, "the last line is missing: the export was cut.", &picture);
    write_at(path, end - 10, "");
    expect_refused(path, "the export was cut inside this line.", &picture);
    write_at(path, end - 10, "\n"); /* that is no cut */
    snprintf(name, sizeof(name), "lmdb:%s", harness_path("damaged"));
    HARNESS_EXPECT(run_tool("/dev/null", "import", "--incomplete", "--store", name, path, NULL) ==
                       1,
                   "damage is taken");
    HARNESS_EXPECT(access(name + 5, F_OK) != 0, "and something was written");
}

static void export_once(uint32_t round)
{
    const char *path = harness_path("backup.json");
    mark();
    uint32_t before = marks;
    for (uint32_t i = 0; i < EXPORTS; i++) {
        HARNESS_EXPECT(run_tool("/dev/null", "export", "--store", url, path, NULL) == 0, "export");
        expect_one_batch(path, before, before);
    }
    mark();
    expect_copy(path, round);
    if (round == 0)
        cut_anywhere(path);
    unlink(path);
}

/* (3) */
static void stop_during(int number)
{
    struct picture picture;
    struct stopped stopped;
    const char *path = harness_path("stopped.json"), *other = harness_path("other.json");
    uint32_t before = marks;
    begin_stopped(&stopped, path);
    mark();
    if (!is_postgres) {
        HARNESS_EXPECT(run_tool("/dev/null", "export", "--store", url, other, NULL) == 1,
                       "two at once");
        has_said("another export is running");
        HARNESS_EXPECT(access(other, F_OK) != 0, "and a file is there");
    }
    int code = harness_stop(&server, number);
    HARNESS_EXPECT(code == (number == SIGKILL ? 128 + SIGKILL : 0), "ended with %d", code);
    code = end_stopped(&stopped);
    if (is_postgres) {
        HARNESS_EXPECT(code == 0, "the export ended with %d", code);
        expect_one_batch(path, before, before + 1);
        return;
    }
    HARNESS_EXPECT(code == 1, "the export ended with %d", code);
    has_said("before it was complete");
    expect_refused(path, "the export was cut", &picture);
}

/* (4) */
static void cut_off_silent(void)
{
    struct stopped stopped;
    uint64_t until_ns = dial_now_ns() + UINT64_C(90000000000);
    begin_stopped(&stopped, harness_path("silent.json"));
    while (!harness_log_contains(&server, "an export of the store broke off") &&
           dial_now_ns() < until_ns)
        mark();
    HARNESS_EXPECT(harness_log_contains(&server, "took nothing for 30 s"), "nobody is cut off");
    HARNESS_EXPECT(run_tool("/dev/null", "export", "--store", url, NULL) == 0, "the next one");
    HARNESS_EXPECT(end_stopped(&stopped) == 1, "the reader does not hear of it");
}

/* (5) */
static void fill_disk(void)
{
    HARNESS_EXPECT(run_tool("/dev/full", "export", "--store", url, NULL) == 1, "a full disk");
    has_said("cannot write the export: No space left on device");
    mark();
    HARNESS_EXPECT(run_tool("/dev/null", "export", "--store", url, "/no/such/place", NULL) == 1,
                   "no directory");
    has_said("/no/such/place: No such file or directory");
}

static bool start(void)
{
    if (!harness_start(&server))
        return false;
    uint32_t least = FILL + PAIRS + marks;
    return HARNESS_EXPECT(server.locks >= least && server.locks <= least + PAIRS,
                          "%u locks of %u and up to %u more", server.locks, least, PAIRS);
}

int main(int count, char **arguments)
{
    harness_init("backup");
    is_postgres = count == 2 && strcmp(arguments[1], "postgres") == 0;
    server = (struct harness_server){.listen = "127.0.0.1",
                                     .store = is_postgres ? harness_postgres("backup")
                                                          : harness_path("store"),
                                     .extra = {"--recovery", "resume"}};
    snprintf(url, sizeof(url), "%s%s", is_postgres ? "" : "lmdb:", server.store);
    if (!harness_start(&server) || !run_bulk("fill", FILLER, FILL, filler_lock) ||
        !run_bulk("pairs", PAIRS_SOURCE, PAIRS, pair_whole))
        return harness_finish();
    for (uint32_t round = 0; round < ROUNDS; round++) {
        turn = round * 1000000;
        pid_t pairs = start_pairs();
        export_once(round);
        stop_during(round % 2 == 0 ? SIGKILL : SIGTERM);
        end_child(pairs);
        if (!start())
            return harness_finish();
    }
    if (!is_postgres) {
        turn = ROUNDS * 1000000;
        pid_t pairs = start_pairs();
        cut_off_silent();
        fill_disk();
        end_child(pairs);
    }
    HARNESS_EXPECT(harness_stop(&server, SIGTERM) == 0, "a clean stop");
    return harness_finish();
}

/*
 * rows_files.c -- NFS in memory, against nfs-ganesha; see rows.h.
 *
 * Both serve a directory of their own on one tmpfs; holdfast with `async`, because nfs-ganesha
 * never waits for the disk but for WRITE and COMMIT: what is compared is the work of the server.
 * They are measured in turns, and the other one is idle meanwhile.
 */
#include "bench/files_load.h"
#include "bench/ganesha.h"
#include "bench/rows.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#define MEMORY      "/run/bench-files" /* tests/bench/run has a tmpfs there */
#define CONNECTIONS 8
#define IN_FLIGHT   16
#define FILE_LEN    (1024 * 1024)
#define CROWD       1000
#define ENTRIES     50000
#define LIST_GOAL_S 0.3
#define ROUNDS_MAX  5

struct goal {
    double cpu, rate; /* at most, at least; 0: none */
};

static const struct row {
    const char *key, *title;
    struct files_load load;
    struct goal goal;
} table[] = {
    {"files-getattr", "GETATTR", {"getattr", 8, 16, 0, 0}, {0.2, 0}},
    {"files-access", "ACCESS", {"access", 8, 16, 0, 0}, {0.2, 0}},
    {"files-lookup", "LOOKUP", {"lookup", 8, 16, 0, 0}, {0.2, 0}},
    {"files-read-4k", "READ of 4 KiB", {"read", 8, 16, 4096, 0}, {0.2, 0}},
    {"files-write-8k", "WRITE of 8 KiB, COMMIT", {"write", 8, 16, 8192, 0}, {0.2, 0}},
    {"files-create", "CREATE, REMOVE", {"create", 8, 16, 0, 0}, {0.2, 0}},
    {"files-mkdir", "MKDIR, RMDIR", {"mkdir", 8, 16, 0, 0}, {0.2, 0}},
    {"files-rename", "RENAME", {"rename", 8, 16, 0, 0}, {0.2, 0}},
    {"files-setattr", "SETATTR", {"setattr", 8, 16, 0, 0}, {0.2, 0}},
    {"files-untar", "as tar unpacks", {"untar", 8, 16, 0, 0}, {0.25, 0}},
    {"files-read-64k", "READ of 64 KiB", {"read", 8, 16, 65536, 0}, {0, 1.5}},
    {"files-write-64k", "WRITE of 64 KiB, COMMIT", {"write", 8, 16, 65536, 0}, {0, 1.5}},
    {"files-read-1m", "READ of 1 MiB", {"read", 8, 16, FILE_LEN, 0}, {0, 1.5}},
    {"files-write-1m", "WRITE of 1 MiB, COMMIT", {"write", 8, 16, FILE_LEN, 0}, {0, 1.5}},
    {"files-1-getattr", "GETATTR, 1 x 1", {"getattr", 1, 1, 0, 0}, {1, 1}},
    {"files-1-lookup", "LOOKUP, 1 x 1", {"lookup", 1, 1, 0, 0}, {1, 1}},
    {"files-1-create", "CREATE, REMOVE, 1 x 1", {"create", 1, 1, 0, 0}, {1, 1}},
    {"files-1-write", "WRITE of 8 KiB, 1 x 1", {"write", 1, 1, 8192, 0}, {1, 1}},
};

#define ROWS (sizeof(table) / sizeof(table[0]))

struct contest {
    struct peers_server holdfastd;
    struct ganesha ganesha;
    bool has_ganesha;
    struct files_load_target ours, theirs;
};

static bool start_ours(struct contest *contest)
{
    return files_load_start_server(&contest->holdfastd, contest->ours.directory, "rw,async", NULL);
}

static bool start(struct rows *rows, struct contest *contest)
{
    *contest = (struct contest){
        .ours = {&contest->holdfastd.process, FILES_LOAD_PORT, FILES_LOAD_PORT, MEMORY "/ours",
                 "files-ours.handles"},
        .theirs = {&contest->ganesha.server.process, GANESHA_NFS_PORT, GANESHA_MOUNT_PORT,
                   MEMORY "/theirs", "files-theirs.handles"},
    };
    (void)mkdir(MEMORY, 0755);
    (void)mkdir(contest->ours.directory, 0755);
    (void)mkdir(contest->theirs.directory, 0755);
    if (!start_ours(contest) ||
        !files_load_prepare(&contest->ours, CONNECTIONS, IN_FLIGHT, FILE_LEN)) {
        rows_fail(rows, "files: %s", peers_why());
        return false;
    }
    contest->has_ganesha = ganesha_start_files(&contest->ganesha, contest->theirs.directory) &&
                           files_load_prepare(&contest->theirs, CONNECTIONS, IN_FLIGHT, FILE_LEN);
    return true;
}

/* ---- calls ---- */

static void measure_row(struct rows *rows, struct contest *contest, const struct row *row,
                        struct report_line *line)
{
    struct files_load load = row->load;
    struct report_sample ours, theirs;
    load.milliseconds = rows->is_quick ? 100 : load.size >= 65536 ? 3000 : 1000;
    if (!files_load_measure(&contest->ours, &load, &ours)) {
        rows_fail(rows, "%s: %s", row->title, peers_why());
        return;
    }
    if (contest->has_ganesha && !files_load_measure(&contest->theirs, &load, &theirs)) {
        report_skip(line, "nfs-ganesha: %s", peers_why());
        return;
    }
    report_add_round(line, &ours, contest->has_ganesha ? &theirs : NULL);
}

/* What one call of a row carries, in MB. */
static double megabytes(const struct files_load *load, double rate)
{
    double share = strcmp(load->kind, "write") == 0 ? 16.0 / 17 : 1; /* the others are COMMITs */
    return rate * share * load->size / 1e6;
}

static void judge(const struct row *row, struct report_line *line)
{
    double cpu = report_cpu_ratio(line), rate = report_ratio(line);
    char text[REPORT_TEXT_MAX / 2] = "", goals[64] = "";
    if (cpu == 0)
        return;
    if (row->load.size >= 65536)
        snprintf(text, sizeof(text), "%.0f MB/s, nfs-ganesha %.0f; ",
                 megabytes(&row->load, report_ours(line).rate),
                 megabytes(&row->load, report_theirs(line).rate));
    if (row->goal.cpu > 0)
        snprintf(goals, sizeof(goals), "CPU ratio %.3f (goal <= %.2f) ", cpu, row->goal.cpu);
    if (row->goal.rate > 0)
        snprintf(goals + strlen(goals), sizeof(goals) - strlen(goals), "rate ratio %.2f (>= %.1f)",
                 rate, row->goal.rate);
    report_note(line, "%s%s; tmpfs, async", text, goals);
    line->verdict = (row->goal.cpu == 0 || cpu <= row->goal.cpu) &&
                            (row->goal.rate == 0 || rate >= row->goal.rate)
                        ? REPORT_PASS
                        : REPORT_FAIL;
}

static bool is_whole(const struct rows *rows)
{
    return !rows->only || strcmp(rows->only, "files") == 0;
}

static bool is_asked_for(const struct rows *rows, const struct row *row)
{
    return is_whole(rows) || strncmp(row->key, rows->only, strlen(rows->only)) == 0;
}

static void measure_calls(struct rows *rows, struct contest *contest)
{
    struct report_line *lines[ROWS];
    uint32_t rounds = rows->rounds < ROUNDS_MAX ? rows->rounds : ROUNDS_MAX;
    for (size_t i = 0; i < ROWS; i++) {
        if (!is_asked_for(rows, &table[i]))
            continue;
        lines[i] = report_add_line(rows->report, table[i].key, table[i].title, "nfs-ganesha", 0);
        if (!contest->has_ganesha)
            report_note(lines[i], "nfs-ganesha: %s", peers_why());
    }
    for (uint32_t round = 1; round <= rounds && !rows->has_failed; round++)
        for (size_t i = 0; i < ROWS && !rows->has_failed; i++) {
            if (!is_asked_for(rows, &table[i]))
                continue;
            rows_say("%s, round %u of %u", table[i].title, round, rounds);
            measure_row(rows, contest, &table[i], lines[i]);
        }
    for (size_t i = 0; i < ROWS; i++)
        if (is_asked_for(rows, &table[i]))
            judge(&table[i], lines[i]);
}

/* ---- a listing, and a crowd ---- */

static bool list_once(const struct files_load_target *target, const char *directory,
                      uint32_t wanted, double *ret_s)
{
    char nfs[16], mount[16], line[128];
    unsigned entries, bare, calls;
    uint64_t took_ns;
    snprintf(nfs, sizeof(nfs), "%u", target->nfs_port);
    snprintf(mount, sizeof(mount), "%u", target->mount_port);
    const char *const words[] = {"list", nfs, mount, directory, NULL};
    if (!files_load_run_tree(words, line, sizeof(line)) ||
        sscanf(line, "tree entries=%u bare=%u calls=%u took_ns=%" SCNu64, &entries, &bare, &calls,
               &took_ns) != 4)
        return false;
    if (entries != wanted + 2 || bare > 0)
        return peers_fail("%u entries of %u, %u of them bare", entries, wanted + 2, bare);
    *ret_s = (double)took_ns / 1e9;
    return true;
}

static bool fill(const struct files_load_target *target, uint32_t count, char path[600])
{
    char number[16], line[64];
    snprintf(path, 600, "%s/list", target->directory);
    snprintf(number, sizeof(number), "%u", count);
    (void)mkdir(path, 0755);
    const char *const words[] = {"fill", path, number, NULL};
    return files_load_run_tree(words, line, sizeof(line));
}

static uint64_t resident_kib(const struct process *process)
{
    char path[64], line[128];
    unsigned long long kib = 0;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)process->pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file) && sscanf(line, "VmRSS: %llu", &kib) != 1)
        continue;
    if (file)
        fclose(file);
    return kib;
}

static void measure_listing(struct rows *rows, struct contest *contest)
{
    uint32_t count = rows->is_quick ? 1000 : ENTRIES;
    struct report_line *line =
        report_add_line(rows->report, "files-list", "READDIRPLUS of a large directory", NULL, 0);
    char ours[600], theirs[600], other[64] = "";
    double cold_s, warm_s, cold_other_s, warm_other_s;
    peers_stop(&contest->holdfastd, SIGTERM);
    if (!fill(&contest->ours, count, ours) || !start_ours(contest)) {
        rows_fail(rows, "a directory of %u entries: %s", count, peers_why());
        return;
    }
    uint64_t before_kib = resident_kib(&contest->holdfastd.process);
    if (!list_once(&contest->ours, ours, count, &cold_s) ||
        !list_once(&contest->ours, ours, count, &warm_s)) {
        rows_fail(rows, "READDIRPLUS: %s", peers_why());
        return;
    }
    uint64_t after_kib = resident_kib(&contest->holdfastd.process);
    if (contest->has_ganesha && fill(&contest->theirs, count, theirs) &&
        list_once(&contest->theirs, theirs, count, &cold_other_s) &&
        list_once(&contest->theirs, theirs, count, &warm_other_s))
        snprintf(other, sizeof(other), "; nfs-ganesha %.3f s, again %.3f s", cold_other_s,
                 warm_other_s);
    struct report_sample sample = {.rate = count / cold_s};
    report_add_round(line, &sample, NULL);
    report_note(line, "%u entries in %.3f s (goal %.1f), again %.3f s%s; resident +%" PRIu64 " KiB",
                count, cold_s, LIST_GOAL_S, warm_s, other, after_kib - before_kib);
    line->verdict = cold_s <= LIST_GOAL_S ? REPORT_PASS : REPORT_FAIL;
}

static void measure_crowd(struct rows *rows, struct contest *contest)
{
    uint32_t count = rows->is_quick ? 100 : CROWD;
    struct files_load load = {"getattr", count, 1, 0, rows->is_quick ? 100 : 2000};
    struct report_sample ours, theirs = {0};
    char title[48];
    snprintf(title, sizeof(title), "GETATTR of %u connections", count);
    struct report_line *line =
        report_add_line(rows->report, "files-crowd", title, "nfs-ganesha", 0);
    if (!files_load_prepare(&contest->ours, count, 1, 0) ||
        !files_load_measure(&contest->ours, &load, &ours)) {
        rows_fail(rows, "%u connections: %s", count, peers_why());
        return;
    }
    bool has_theirs = contest->has_ganesha && files_load_prepare(&contest->theirs, count, 1, 0) &&
                      files_load_measure(&contest->theirs, &load, &theirs);
    report_add_round(line, &ours, has_theirs ? &theirs : NULL);
    if (has_theirs)
        report_note(line, "all are served; p99 %.1f ms, nfs-ganesha %.1f ms", ours.p99_us / 1e3,
                    theirs.p99_us / 1e3);
    else
        report_note(line, "all are served; p99 %.1f ms; nfs-ganesha: %.120s", ours.p99_us / 1e3,
                    peers_why());
    line->verdict = REPORT_PASS;
}

void rows_files(struct rows *rows)
{
    static struct contest contest;
    if (start(rows, &contest)) {
        measure_calls(rows, &contest);
        if (!rows->has_failed && is_whole(rows))
            measure_listing(rows, &contest);
        if (!rows->has_failed && is_whole(rows))
            measure_crowd(rows, &contest);
    }
    peers_stop(&contest.holdfastd, SIGKILL);
    ganesha_stop(&contest.ganesha);
    peers_remove("files-store");
}

/*
 * rows_files_durable.c -- durable work on files, against the file system itself, and what locks
 * feel of files; see rows.h.
 *
 * The directory is on a disk, and exported with `sync`. The other one is one thread that does the
 * same work without a server, with the sync of both data and metadata that the server does, shared
 * by as many operations as the server's callers could share.
 */
#include "bench/files_load.h"
#include "bench/rows.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIRECTORY  "files-disk"
#define ROUNDS_MAX 5
#define RATE_GOAL  0.8
#define P99_GOAL   3.0

/* Files that are locked, and where their handles are. */
#define LOCKED       "files-locked.handles"
#define LOCKED_COUNT 10

static const struct durable {
    const char *key, *title, *other, *local;
    struct files_load load;
} table[] = {
    {"files-durable-create",
     "CREATE durable, 32 callers",
     "32 per fsync",
     "local-create",
     {"make", 8, 4, 0, 0}},
    {"files-durable-write",
     "WRITE 8 KiB FILE_SYNC, 128 callers",
     "16 per fsync",
     "local-write",
     {"sync", 8, 16, 0, 0}},
};

static bool work_locally(const char *verb, uint32_t milliseconds, struct report_sample *ret)
{
    char directory[600], number[16], line[128];
    unsigned operations;
    uint64_t took_ns;
    snprintf(directory, sizeof(directory), "%s", peers_path(DIRECTORY "/local"));
    snprintf(number, sizeof(number), "%u", milliseconds);
    (void)mkdir(directory, 0755);
    const char *const words[] = {verb, directory, number, NULL};
    if (!files_load_run_tree(words, line, sizeof(line)) ||
        sscanf(line, "tree operations=%u took_ns=%" SCNu64, &operations, &took_ns) != 2)
        return false;
    *ret = (struct report_sample){.rate = operations * 1e9 / (double)took_ns};
    peers_remove(DIRECTORY "/local");
    return true;
}

static void measure_durable(struct rows *rows, const struct files_load_target *target,
                            const struct durable *row)
{
    struct report_line *line =
        report_add_line(rows->report, row->key, row->title, row->other, RATE_GOAL);
    struct files_load load = row->load;
    uint32_t rounds = rows->rounds < ROUNDS_MAX ? rows->rounds : ROUNDS_MAX;
    load.milliseconds = rows->is_quick ? 100 : 1500;
    for (uint32_t round = 1; round <= rounds; round++) {
        struct report_sample ours, theirs;
        rows_say("%s, round %u of %u", row->title, round, rounds);
        /* Names of a round are another round's, too: each has directories of its own. */
        if (!files_load_prepare(target, load.connections, load.in_flight, 16 * 8192) ||
            !files_load_measure(target, &load, &ours) ||
            !work_locally(row->local, load.milliseconds, &theirs)) {
            rows_fail(rows, "%s: %s", row->title, peers_why());
            return;
        }
        report_add_round(line, &ours, &theirs);
        for (uint32_t c = 0; c < load.connections; c++) {
            char name[64];
            snprintf(name, sizeof(name), DIRECTORY "/files/c%u", c);
            peers_remove(name);
        }
    }
    report_note(line, "on the disk, sync: data and metadata are durable before each answer");
}

/* ---- locks meanwhile ---- */

static bool lock_alone(const struct peers_server *server, uint32_t milliseconds,
                       struct report_sample *ret)
{
    struct peers_traffic pairs = {.kind = "pairs",
                                  .connections = 1,
                                  .in_flight = 1,
                                  .milliseconds = milliseconds,
                                  .drain_ms = 10000,
                                  .is_locks = true,
                                  .files = LOCKED_COUNT,
                                  .handles = LOCKED};
    uint64_t ignored;
    return peers_measure_locks(server, &pairs, ret, &ignored);
}

static void measure_locks(struct rows *rows, const struct peers_server *server,
                          const struct files_load_target *target)
{
    struct report_line *line = report_add_line(rows->report, "files-locks",
                                               "LOCK/UNLOCK under full file load", "without", 0);
    uint32_t rounds = rows->rounds < ROUNDS_MAX ? rows->rounds : ROUNDS_MAX;
    uint32_t milliseconds = rows->is_quick ? 100 : 2000;
    struct files_load load = {"write", 8, 16, 65536, 2 * milliseconds};
    if (!files_load_prepare(target, load.connections, load.in_flight, 0) ||
        !files_load_make_lockable(target, LOCKED_COUNT, LOCKED)) {
        rows_fail(rows, "%s", peers_why());
        return;
    }
    for (uint32_t round = 1; round <= rounds; round++) {
        struct report_sample alone, loaded, files;
        struct process process = {0};
        uint64_t answered;
        rows_say("locks beside WRITE of 64 KiB, round %u of %u", round, rounds);
        bool is_good =
            lock_alone(server, milliseconds, &alone) && files_load_begin(target, &load, &process);
        process_pause_ms(milliseconds / 4);
        is_good = is_good && lock_alone(server, milliseconds, &loaded);
        if (!files_load_end(&process, &files, &answered) || !is_good) {
            rows_fail(rows, "locks beside files: %s", peers_why());
            return;
        }
        report_add_round(line, &loaded, &alone);
    }
    report_note(
        line, "p99 %.0f us, without %.0f us: ratio %.2f (goal <= %.0f); WRITE 64 KiB, 8 x 16",
        report_ours(line).p99_us, report_theirs(line).p99_us, report_p99_ratio(line), P99_GOAL);
    line->verdict = report_p99_ratio(line) <= P99_GOAL ? REPORT_PASS : REPORT_FAIL;
}

void rows_files_durable(struct rows *rows)
{
    struct peers_server server = {0};
    char directory[600];
    if (rows->only && strcmp(rows->only, "files") != 0)
        return; /* some lines of the other rows */
    (void)mkdir(peers_path(DIRECTORY), 0755);
    snprintf(directory, sizeof(directory), "%s", peers_path(DIRECTORY "/files"));
    (void)mkdir(directory, 0755);
    struct files_load_target target = {&server.process, FILES_LOAD_PORT, FILES_LOAD_PORT, directory,
                                       "files-disk.handles"};
    if (!files_load_start_server(&server, directory, "rw,sync", NULL))
        rows_fail(rows, "files on a disk: %s", peers_why());
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]) && !rows->has_failed; i++)
        measure_durable(rows, &target, &table[i]);
    if (!rows->has_failed)
        measure_locks(rows, &server, &target);
    peers_stop(&server, SIGKILL);
    peers_remove("files-store");
    peers_remove(DIRECTORY);
}

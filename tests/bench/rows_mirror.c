/*
 * rows_mirror.c -- what it costs clients that programs on the server see their locks; see rows.h.
 *
 * The other one is the same server with --local-locks off. Both have an export on a disk and 1,000
 * files in it; a round is one of each, one after the other. Each has a directory of its own: a
 * server that is killed leaves the kernel's locks to its keeper, which ends a moment after its
 * store.
 */
#include "bench/files_load.h"
#include "bench/rows.h"

#include <signal.h>
#include <sys/stat.h>

#define HANDLES     "mirror.handles"
#define FILE_COUNT  1000
#define ROUNDS_MAX  7
#define MIRROR_GOAL 0.8

static bool measure_one(const struct rows *rows, const char *local_locks, uint32_t files,
                        struct report_sample *ret)
{
    static uint32_t number;
    struct peers_server server = {0};
    char name[32], directory[600];
    uint64_t changes;
    snprintf(name, sizeof(name), "mirror-files-%u", number++);
    snprintf(directory, sizeof(directory), "%s", peers_path(name));
    (void)mkdir(directory, 0755);
    struct files_load_target target = {&server.process, FILES_LOAD_PORT, FILES_LOAD_PORT, directory,
                                       HANDLES};
    struct peers_traffic pairs = {.kind = "pairs",
                                  .connections = 32,
                                  .in_flight = 32,
                                  .milliseconds = rows->is_quick ? 200 : 3000,
                                  .drain_ms = 10000,
                                  .is_locks = true,
                                  .files = files,
                                  .handles = HANDLES};
    bool is_good = files_load_start_server(&server, directory, "rw", local_locks) &&
                   files_load_make_lockable(&target, files, HANDLES) &&
                   peers_measure_locks(&server, &pairs, ret, &changes);
    peers_stop(&server, SIGKILL);
    peers_remove("files-store");
    peers_remove(name);
    return is_good;
}

static void measure(struct rows *rows, const char *key, const char *title, uint32_t files)
{
    struct report_line *line =
        report_add_line(rows->report, key, title, "--local-locks off", MIRROR_GOAL);
    uint32_t rounds = rows->rounds < ROUNDS_MAX ? rows->rounds : ROUNDS_MAX;
    for (uint32_t round = 1; round <= rounds; round++) {
        struct report_sample on, off;
        rows_say("%s, round %u of %u", title, round, rounds);
        if (!measure_one(rows, "on", files, &on) || !measure_one(rows, "off", files, &off)) {
            rows_fail(rows, "%s: %s", title, peers_why());
            return;
        }
        report_add_round(line, &on, &off);
    }
}

void rows_mirror(struct rows *rows)
{
    measure(rows, "mirror", "LOCK/UNLOCK 32 x 32, seen by programs", FILE_COUNT);
    if (!rows->has_failed)
        measure(rows, "mirror-one-file", "LOCK/UNLOCK 32 x 32 on one file, seen by programs", 1);
}

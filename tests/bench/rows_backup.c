/*
 * rows_backup.c -- rows of a store that is exported while it is in use; see rows.h.
 *
 * A million locks are taken through the server. Then pairs are measured in turns alone and while
 * `holdfastd store export` runs, which copies all of them through the server: by one client, one
 * call at a time, and by many. The lines go nowhere: where an operator puts them is not measured.
 *
 * At the end one export goes to a file, is imported, and exported again: the digests are the same,
 * or the row fails.
 */
#include "bench/peers.h"
#include "bench/rows.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>

#define WIDE          32 /* connections, and calls in flight on each */
#define DRAIN_MS      10000
#define HOLD_MS       180000
#define EXPORT_MS     300000
#define ROUNDS_MAX    3
#define FILES         1000
#define HOLDERS_FIRST "127.1.0.1"
#define P99_RATIO_MAX 2.0
#define LOAD_MIN_MS   1000
#define LOAD_MAX_MS   10000

static const char store[] = "backup", copy[] = "backup-copy", lines[] = "backup.json";

struct backup {
    struct peers_server server;
    uint32_t held;
    uint32_t load_ms; /* about as long as an export takes */
    uint64_t quiet_kib, busy_kib;
};

static bool hold_many(struct rows *rows, struct backup *backup)
{
    static const char *const more[] = {"--max-locks", "1100000", NULL};
    struct peers_traffic hold = {.kind = "hold",
                                 .connections = WIDE,
                                 .in_flight = WIDE,
                                 .drain_ms = HOLD_MS,
                                 .is_locks = true,
                                 .files = FILES,
                                 .held = backup->held,
                                 .source = HOLDERS_FIRST,
                                 .sources = WIDE};
    struct report_sample ignored;
    uint64_t changes;
    if (peers_start_holdfastd(&backup->server, store, 1000, more) &&
        peers_measure_locks(&backup->server, &hold, &ignored, &changes))
        return true;
    rows_fail(rows, "%u locks: %s", backup->held, peers_why());
    return false;
}

/* `holdfastd store VERB` with the store and the file. */
static bool begin(struct process *process, const char *verb, const char *of, const char *file)
{
    char url[600];
    snprintf(url, sizeof(url), "lmdb:%s", peers_path(of));
    const char *arguments[] = {peers_holdfastd(), "store", verb, "--store", url, file, NULL};
    return process_start(process, arguments);
}

/* To its end; what it says of the records. */
static bool finish(struct rows *rows, struct process *process, const char *verb, char *ret,
                   size_t size)
{
    char begin_of_line[64];
    snprintf(begin_of_line, sizeof(begin_of_line), "holdfast store %s: ", verb);
    if (process_wait_end(process, EXPORT_MS) == 0 &&
        process_last_line(process, begin_of_line, ret, size)) {
        ret[strcspn(ret, "\n")] = '\0';
        memmove(ret, ret + strlen(begin_of_line), strlen(ret + strlen(begin_of_line)) + 1);
        return true;
    }
    rows_fail(rows, "%s: %s", verb, process_last_words(process));
    return false;
}

/* An export in peace: how long it takes. */
static bool measure_export(struct rows *rows, struct backup *backup, struct report_line *line)
{
    struct process process = {0};
    char said[128];
    uint64_t start_ns = process_now_ns(), cpu_ns = process_cpu_ns(&backup->server.process);
    if (!begin(&process, "export", store, "/dev/null") ||
        !finish(rows, &process, "export", said, sizeof(said)))
        return false;
    double seconds = (double)(process_now_ns() - start_ns) / 1e9;
    cpu_ns = process_cpu_ns(&backup->server.process) - cpu_ns;
    struct report_sample sample = {.rate = backup->held / seconds,
                                   .cpu_us = (double)cpu_ns / 1e3 / backup->held};
    report_add_round(line, &sample, NULL);
    report_note(line, "%.2f s: %s", seconds, said);
    backup->quiet_kib = process_resident_kib(&backup->server.process);
    uint32_t took_ms = (uint32_t)(seconds * 1000);
    backup->load_ms = took_ms < LOAD_MIN_MS   ? LOAD_MIN_MS
                      : took_ms > LOAD_MAX_MS ? LOAD_MAX_MS
                                              : took_ms;
    return true;
}

static bool measure_pairs(struct rows *rows, struct backup *backup, uint32_t width,
                          struct report_sample *ret)
{
    struct peers_traffic traffic = {.kind = "pairs",
                                    .connections = width,
                                    .in_flight = width,
                                    .milliseconds = rows->is_quick ? 150 : backup->load_ms,
                                    .drain_ms = DRAIN_MS,
                                    .is_locks = true,
                                    .files = FILES};
    uint64_t changes;
    if (peers_measure_locks(&backup->server, &traffic, ret, &changes))
        return true;
    rows_fail(rows, "LOCK and UNLOCK beside an export: %s", peers_why());
    return false;
}

static bool measure_exported(struct rows *rows, struct backup *backup, uint32_t width,
                             struct report_sample *ret)
{
    struct process process = {0};
    char said[128];
    if (!begin(&process, "export", store, "/dev/null")) {
        rows_fail(rows, "no export can be started");
        return false;
    }
    bool is_measured = measure_pairs(rows, backup, width, ret);
    uint64_t busy_kib = process_resident_kib(&backup->server.process);
    backup->busy_kib = busy_kib > backup->busy_kib ? busy_kib : backup->busy_kib;
    return finish(rows, &process, "export", said, sizeof(said)) && is_measured;
}

/* Which of the two comes first changes from round to round. */
static void measure_round(struct rows *rows, struct backup *backup, uint32_t width, bool is_later,
                          struct report_line *line)
{
    struct report_sample alone, exported;
    if ((is_later || measure_pairs(rows, backup, width, &alone)) &&
        measure_exported(rows, backup, width, &exported) &&
        (!is_later || measure_pairs(rows, backup, width, &alone)))
        report_add_round(line, &exported, &alone);
}

static void judge(struct report_line *line, const struct backup *backup)
{
    double ratio = report_p99_ratio(line);
    report_note(line,
                "p99 %.2f ms while exported, %.2f ms alone: %.2f times; the slowest %.2f and %.2f "
                "ms; %" PRIu64 " MiB more memory",
                report_ours(line).p99_us / 1e3, report_theirs(line).p99_us / 1e3, ratio,
                report_ours(line).max_us / 1e3, report_theirs(line).max_us / 1e3,
                backup->busy_kib > backup->quiet_kib ? (backup->busy_kib - backup->quiet_kib) / 1024
                                                     : 0);
    line->verdict = ratio <= P99_RATIO_MAX ? REPORT_PASS : REPORT_FAIL;
}

/* "1000012 records, digest 0123456789abcdef" three times. */
static void verify_copy(struct rows *rows)
{
    struct process process = {0};
    char file[600], exported[128], imported[128], again[128];
    snprintf(file, sizeof(file), "%s", peers_path(lines));
    if (begin(&process, "export", store, file) &&
        finish(rows, &process, "export", exported, sizeof(exported)) &&
        begin(&process, "import", copy, file) &&
        finish(rows, &process, "import", imported, sizeof(imported)) &&
        begin(&process, "export", copy, "/dev/null") &&
        finish(rows, &process, "export", again, sizeof(again)) &&
        (strcmp(exported, imported) != 0 || strcmp(exported, again) != 0))
        rows_fail(rows, "exported %s; imported %s; the copy has %s", exported, imported, again);
}

static struct report_line *add_line(struct rows *rows, const char *key, const char *what,
                                    uint32_t held, const char *other)
{
    char title[48];
    snprintf(title, sizeof(title), "%s, %u stored", what, held);
    return report_add_line(rows->report, key, title, other, 0);
}

void rows_backup(struct rows *rows)
{
    struct backup backup = {.held = rows->is_quick ? 5000 : 1000000};
    uint32_t rounds = rows->rounds < ROUNDS_MAX ? rows->rounds : ROUNDS_MAX;
    struct report_line *whole = add_line(rows, "backup-export", "export", backup.held, NULL);
    struct report_line *one = add_line(rows, "backup-one", "LOCK, exported", backup.held, "alone");
    struct report_line *wide =
        add_line(rows, "backup-wide", "LOCK 32 x 32, exported", backup.held, "alone");
    rows_say("taking %u locks to be exported", backup.held);
    bool is_ready = hold_many(rows, &backup) && measure_export(rows, &backup, whole);
    for (uint32_t round = 1; is_ready && round <= rounds && !rows->has_failed; round++) {
        rows_say("LOCK and UNLOCK while %u locks are exported, round %u of %u", backup.held, round,
                 rounds);
        measure_round(rows, &backup, 1, round % 2 == 0, one);
        if (!rows->has_failed)
            measure_round(rows, &backup, WIDE, round % 2 == 0, wide);
    }
    if (is_ready && !rows->has_failed) {
        judge(one, &backup);
        judge(wide, &backup);
        verify_copy(rows);
    }
    peers_stop(&backup.server, SIGKILL);
    peers_remove(store);
    peers_remove(copy);
}

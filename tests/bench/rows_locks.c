/*
 * rows_locks.c -- rows of locks that come and go; see rows.h.
 *
 * In each round holdfastd with nothing, 100,000 and a million locks stored, holdfastd that does not
 * wait for the disk, and nfs-ganesha are measured one after the other under the same load; the
 * others are idle meanwhile. Stored locks are taken through the server, by clients of their own, in
 * the same files. Then one client alone, one call at a time, beside what the disk itself takes.
 *
 * Nothing counts that is not stored. When a server is stopped it says how many changes of lock
 * records it made durable, and it must be as many as locks were taken and given up; started again,
 * it must have exactly those locks that are still held.
 */
#include "bench/disk.h"
#include "bench/ganesha.h"
#include "bench/rows.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define CONNECTIONS   32
#define IN_FLIGHT     32
#define DRAIN_MS      10000
#define HOLD_MS       180000
#define ROUNDS_MAX    5
#define FILES         1000
#define HOLDERS_FIRST "127.1.0.1"
#define START_S       1.5
#define LOCK_BYTES    180.0
#define DISK_TIMES    1.3

/* A server that is measured. */
struct level {
    const char *key, *store;
    const char *sync; /* --sync */
    uint32_t held, quick_held;
    double goal, cpu_us; /* of nfs-ganesha's rate, at least; of an operation, at most; 0: none */
    struct peers_server holdfastd;
    uint64_t changes; /* locks that were taken and given up */
    struct report_sample sample;
    struct report_line *ganesha, *itself; /* compared with nfs-ganesha, and with the first one */
};

static bool start_level(struct level *level)
{
    const char *const more[] = {"--max-locks", "1100000", "--sync", level->sync, NULL};
    return peers_start_holdfastd(&level->holdfastd, level->store, 1000, more);
}

/* As many locks as there shall be, through the server itself. */
static bool fill_level(struct rows *rows, struct level *level)
{
    struct peers_traffic hold = {.kind = "hold",
                                 .connections = CONNECTIONS,
                                 .in_flight = IN_FLIGHT,
                                 .drain_ms = HOLD_MS,
                                 .is_locks = true,
                                 .files = FILES,
                                 .held = level->held,
                                 .source = HOLDERS_FIRST,
                                 .sources = CONNECTIONS};
    struct report_sample ignored;
    if (!start_level(level) ||
        (level->held > 0 &&
         !peers_measure_locks(&level->holdfastd, &hold, &ignored, &level->changes))) {
        rows_fail(rows, "%u locks: %s", level->held, peers_why());
        return false;
    }
    return true;
}

static struct peers_traffic pairs(const struct rows *rows, const char *handles)
{
    return (struct peers_traffic){.kind = "pairs",
                                  .connections = CONNECTIONS,
                                  .in_flight = IN_FLIGHT,
                                  .milliseconds = rows->is_quick ? 150 : 1500,
                                  .drain_ms = DRAIN_MS,
                                  .is_locks = true,
                                  .files = FILES,
                                  .handles = handles};
}

static void measure_level(struct rows *rows, struct level *level)
{
    struct peers_traffic traffic = pairs(rows, NULL);
    uint64_t changes;
    if (!peers_measure_locks(&level->holdfastd, &traffic, &level->sample, &changes))
        rows_fail(rows, "LOCK and UNLOCK with %u stored: %s", level->held, peers_why());
    else
        level->changes += changes;
}

/* The committed changes are two for each pair and one for each lock that stays; and those stay. */
static void verify_level(struct rows *rows, struct level *level)
{
    struct peers_durable durable;
    peers_stop(&level->holdfastd, SIGTERM);
    if (!peers_read_durable(&level->holdfastd, &durable)) {
        rows_fail(rows, "%s", peers_why());
        return;
    }
    uint64_t of_pairs = level->changes - level->held;
    report_note(level->itself ? level->itself : level->ganesha,
                "%" PRIu64 " pairs and %" PRIu64 " lock changes in %" PRIu64 " commits",
                of_pairs / 2, durable.lock_changes - level->held, durable.batches);
    if (durable.lock_changes != level->changes || of_pairs % 2 != 0)
        rows_fail(rows,
                  "%" PRIu64 " locks were taken or given up, and %" PRIu64
                  " changes of lock records were committed",
                  level->changes, durable.lock_changes);
    else if (!start_level(level))
        rows_fail(rows, "after a restart: %s", peers_why());
    else if (level->holdfastd.locks != level->held)
        rows_fail(rows, "%u locks are held, %u are there after a restart", level->held,
                  level->holdfastd.locks);
}

static void skip_ganesha(struct level levels[], uint32_t count)
{
    report_skip(levels[0].ganesha, "nfs-ganesha: %s", peers_why());
    for (uint32_t i = 1; i < count; i++)
        report_skip(levels[i].ganesha, "as above");
}

static void measure_round(struct rows *rows, struct level levels[], uint32_t count,
                          struct ganesha *ganesha)
{
    struct peers_traffic traffic = pairs(rows, ganesha->handles);
    struct report_sample theirs;
    uint64_t ignored;
    for (uint32_t i = 0; i < count && !rows->has_failed; i++)
        measure_level(rows, &levels[i]);
    if (rows->has_failed)
        return;
    for (uint32_t i = 0; i < count; i++)
        if (levels[i].itself)
            report_add_round(levels[i].itself, &levels[i].sample, &levels[0].sample);
    if (levels[0].ganesha->skipped[0] != '\0')
        return;
    if (!peers_measure_locks(&ganesha->server, &traffic, &theirs, &ignored)) {
        skip_ganesha(levels, count);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        report_add_round(levels[i].ganesha, &levels[i].sample, &theirs);
}

/* The lines of one level; what is stored is compared with nothing stored, too. */
static void add_lines(struct rows *rows, struct level *level)
{
    char title[48], key[48];
    bool is_process = strcmp(level->sync, "process") == 0;
    if (level->held > 0)
        snprintf(title, sizeof(title), "LOCK/UNLOCK, %u stored", level->held);
    else
        snprintf(title, sizeof(title), "LOCK/UNLOCK, 32 x 32%s", is_process ? ", process" : "");
    snprintf(key, sizeof(key), "%s-ganesha", level->key);
    level->ganesha = report_add_line(rows->report, key, title, "nfs-ganesha", level->goal);
    level->ganesha->cpu_goal_us = level->cpu_us;
    if (level->held == 0)
        return;
    snprintf(key, sizeof(key), "%s-self", level->key);
    level->itself = report_add_line(rows->report, key, title, "itself at 0", 0);
}

/* verify_level has just started both: how long that took, and what a lock takes. */
static void judge_start(struct rows *rows, const struct level *empty, const struct level *full)
{
    char title[48];
    snprintf(title, sizeof(title), "start with %u locks", full->held);
    struct report_line *line = report_add_line(rows->report, "locks-start", title, NULL, 0);
    double took_s = (double)(full->holdfastd.ready_ns - full->holdfastd.started_ns) / 1e9;
    double cpu_s = (double)process_cpu_ns(&full->holdfastd.process) / 1e9;
    uint64_t empty_kib = process_own_kib(&empty->holdfastd.process);
    uint64_t full_kib = process_own_kib(&full->holdfastd.process);
    double bytes = ((double)full_kib - (double)empty_kib) * 1024 / full->held;
    report_note(line, "ready after %.2f s (goal %g), %.2f s of CPU; %.0f bytes a lock (goal %g)",
                took_s, START_S, cpu_s, bytes, LOCK_BYTES);
    line->verdict = took_s <= START_S && bytes <= LOCK_BYTES ? REPORT_PASS : REPORT_FAIL;
}

/* One client, one call at a time, against an fdatasync of 4 KiB. */
static void measure_alone(struct rows *rows, struct level *level)
{
    struct peers_traffic traffic = pairs(rows, NULL);
    struct disk_times disk;
    uint64_t changes;
    struct report_line *line =
        report_add_line(rows->report, "locks-1x1", "LOCK/UNLOCK, 1 x 1", NULL, 0);
    traffic.connections = traffic.in_flight = 1;
    rows_say("durable LOCK and UNLOCK, one call at a time");
    if (!disk_measure(peers_path("disk"), &disk) ||
        !peers_measure_locks(&level->holdfastd, &traffic, &level->sample, &changes)) {
        rows_fail(rows, "one call at a time: %s", peers_why());
        return;
    }
    level->changes += changes;
    report_add_round(line, &level->sample, NULL);
    double times = level->sample.p50_us / disk.p50_us;
    report_note(line, "%.1f times an fdatasync of 4 KiB, which takes %.0f us (goal %g)", times,
                disk.p50_us, DISK_TIMES);
    line->verdict = times <= DISK_TIMES ? REPORT_PASS : REPORT_FAIL;
}

static void measure_levels(struct rows *rows, struct level levels[], uint32_t count)
{
    uint32_t rounds = rows->rounds < ROUNDS_MAX ? rows->rounds : ROUNDS_MAX;
    struct ganesha ganesha = {0};
    for (uint32_t i = 0; i < count; i++) {
        rows_say("%u locks are taken", levels[i].held);
        if (!fill_level(rows, &levels[i]))
            return;
    }
    if (!ganesha_start(&ganesha, FILES))
        skip_ganesha(levels, count);
    for (uint32_t round = 1; round <= rounds && !rows->has_failed; round++) {
        rows_say("durable LOCK and UNLOCK, round %u of %u", round, rounds);
        measure_round(rows, levels, count, &ganesha);
    }
    ganesha_stop(&ganesha);
    if (!rows->has_failed)
        measure_alone(rows, &levels[0]);
}

void rows_locks(struct rows *rows)
{
    enum { EMPTY, MANY, FULL, UNSYNCED, LEVELS };
    struct level levels[LEVELS] = {
        [EMPTY] = {"locks", "locks-0", "full", .goal = 20, .cpu_us = 2.5},
        [MANY] = {"locks-100000", "locks-many", "full", 100000, 1000, .goal = 18, .cpu_us = 3},
        [FULL] = {"locks-stored", "locks-full", "full", 1000000, 5000, .goal = 15, .cpu_us = 3.5},
        [UNSYNCED] = {"locks-process", "locks-process", "process", .goal = 25},
    };
    for (uint32_t i = 0; i < LEVELS; i++) {
        if (rows->is_quick)
            levels[i].held = levels[i].quick_held;
        add_lines(rows, &levels[i]);
    }
    measure_levels(rows, levels, LEVELS);
    for (uint32_t i = 0; i < LEVELS && !rows->has_failed; i++)
        verify_level(rows, &levels[i]);
    if (!rows->has_failed)
        judge_start(rows, &levels[EMPTY], &levels[FULL]);
    for (uint32_t i = 0; i < LEVELS; i++) {
        peers_stop(&levels[i].holdfastd, SIGKILL);
        peers_remove(levels[i].store);
    }
}

/*
 * rows_locks.c -- rows of locks that come and go; see rows.h.
 *
 * In each round holdfastd without stored locks, holdfastd with a million of them, and nfs-ganesha
 * are measured one after the other under the same load; the others are idle meanwhile. The million
 * is taken through the server, by clients of their own, in the same files.
 *
 * Nothing counts that is not stored. When a server is stopped it says how many changes of lock
 * records it made durable, and it must be as many as locks were taken and given up; started again,
 * it must have exactly those locks that are still held.
 */
#include "bench/ganesha.h"
#include "bench/rows.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define CONNECTIONS     32
#define IN_FLIGHT       32
#define DRAIN_MS        10000
#define HOLD_MS         180000
#define ROUNDS_MAX      5
#define FILES           1000
#define GANESHA_GOAL    4
#define HOLDERS_FIRST   "127.1.0.1"
#define NEWCOMERS_FIRST "127.32.0.0"
#define NEWCOMERS_MS    10000
#define NEWCOMERS_S     1.0

/* ---- pairs ---- */

struct level {
    const char *store;
    uint32_t held;
    struct peers_server holdfastd;
    uint64_t changes; /* locks that were taken and given up */
    struct report_sample sample;
};

static bool start_level(struct level *level)
{
    static const char *const more[] = {"--max-locks", "1100000", NULL};
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
static void verify_level(struct rows *rows, struct level *level, struct report_line *line)
{
    struct peers_durable durable;
    peers_stop(&level->holdfastd, SIGTERM);
    if (!peers_read_durable(&level->holdfastd, &durable)) {
        rows_fail(rows, "%s", peers_why());
        return;
    }
    uint64_t of_pairs = level->changes - level->held;
    report_note(line, "%" PRIu64 " pairs and %" PRIu64 " lock changes in %" PRIu64 " commits",
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

struct pair_lines {
    struct report_line *ganesha, *stored, *stored_ganesha;
};

static void measure_round(struct rows *rows, struct level *empty, struct level *full,
                          struct ganesha *ganesha, const struct pair_lines *lines)
{
    struct peers_traffic traffic = pairs(rows, ganesha->handles);
    struct report_sample theirs;
    uint64_t ignored;
    measure_level(rows, empty);
    if (!rows->has_failed)
        measure_level(rows, full);
    if (rows->has_failed)
        return;
    report_add_round(lines->stored, &full->sample, &empty->sample);
    if (lines->ganesha->skipped[0] != '\0')
        return;
    if (peers_measure_locks(&ganesha->server, &traffic, &theirs, &ignored)) {
        report_add_round(lines->ganesha, &empty->sample, &theirs);
        report_add_round(lines->stored_ganesha, &full->sample, &theirs);
        return;
    }
    report_skip(lines->ganesha, "nfs-ganesha: %s", peers_why());
    report_skip(lines->stored_ganesha, "as above");
}

void rows_locks(struct rows *rows)
{
    uint32_t held = rows->is_quick ? 5000 : 1000000;
    uint32_t rounds = rows->rounds < ROUNDS_MAX ? rows->rounds : ROUNDS_MAX;
    struct level empty = {.store = "locks-0"}, full = {.store = "locks-full", .held = held};
    struct ganesha ganesha = {0};
    char title[48];
    snprintf(title, sizeof(title), "LOCK/UNLOCK, %u stored", held);
    struct pair_lines lines = {
        .ganesha = report_add_line(rows->report, "locks-ganesha", "LOCK/UNLOCK, 32 x 32 in flight",
                                   "nfs-ganesha", GANESHA_GOAL),
        .stored_ganesha = report_add_line(rows->report, "locks-stored-ganesha", title,
                                          "nfs-ganesha", GANESHA_GOAL),
        .stored = report_add_line(rows->report, "locks-stored-self", title, "itself at 0", 0),
    };
    rows_say("%u locks are taken", held);
    if (fill_level(rows, &empty) && fill_level(rows, &full) && !ganesha_start(&ganesha, FILES)) {
        report_skip(lines.ganesha, "nfs-ganesha: %s", peers_why());
        report_skip(lines.stored_ganesha, "as above");
    }
    for (uint32_t round = 1; round <= rounds && !rows->has_failed; round++) {
        rows_say("durable LOCK and UNLOCK, round %u of %u", round, rounds);
        measure_round(rows, &empty, &full, &ganesha, &lines);
    }
    if (!rows->has_failed)
        verify_level(rows, &empty, lines.ganesha);
    if (!rows->has_failed)
        verify_level(rows, &full, lines.stored);
    peers_stop(&empty.holdfastd, SIGKILL);
    peers_stop(&full.holdfastd, SIGKILL);
    ganesha_stop(&ganesha);
    peers_remove(empty.store);
    peers_remove(full.store);
}

/* ---- newcomers ---- */

struct arrival {
    uint32_t granted;
    double took_s;
    bool is_alive;
    struct report_sample sample;
};

static bool bring_newcomers(const struct peers_server *server, uint32_t count, const char *handles,
                            struct arrival *ret)
{
    struct process process = {0};
    char port[16], number[16], limit[16], line[128], path[600];
    unsigned granted, wrong, alive;
    uint64_t took_ns, before_ns = process_cpu_ns(&server->process);
    snprintf(port, sizeof(port), "%u", server->port);
    snprintf(number, sizeof(number), "%u", count);
    snprintf(limit, sizeof(limit), "%u", NEWCOMERS_MS);
    snprintf(path, sizeof(path), "%s", handles ? peers_path(handles) : "");
    const char *arguments[] = {peers_tool("lockers"), "newcomers", port,
                               NEWCOMERS_FIRST,       number,      limit,
                               handles ? path : NULL, NULL};
    if (!process_start(&process, arguments) || process_wait_end(&process, 3 * NEWCOMERS_MS) != 0 ||
        !process_last_line(&process, "newcomers granted=", line, sizeof(line)) ||
        sscanf(line, "newcomers granted=%u wrong=%u took_ns=%" SCNu64 " alive=%u", &granted, &wrong,
               &took_ns, &alive) != 4)
        return peers_fail("%s", process_last_words(&process));
    uint64_t cpu_ns = process_cpu_ns(&server->process) - before_ns;
    *ret = (struct arrival){.granted = granted, .took_s = (double)took_ns / 1e9, .is_alive = alive};
    if (granted > 0)
        ret->sample = (struct report_sample){.rate = granted / ret->took_s,
                                             .cpu_us = (double)cpu_ns / 1e3 / granted};
    return true;
}

/* The other one may not live through it; then it is asked no more. */
static void describe_arrivals(struct report_line *line, uint32_t count, const struct arrival *ours,
                              double slowest_s, bool has_theirs, const struct arrival *theirs)
{
    char text[REPORT_TEXT_MAX / 2];
    if (!has_theirs)
        snprintf(text, sizeof(text), "nfs-ganesha: %.80s", peers_why());
    else if (theirs->granted == count)
        snprintf(text, sizeof(text), "nfs-ganesha: all within %.2f s", theirs->took_s);
    else
        snprintf(text, sizeof(text), "nfs-ganesha: %u within %d s%s", theirs->granted,
                 NEWCOMERS_MS / 1000, theirs->is_alive ? "" : ", then it stopped answering");
    report_note(line, "%u of %u granted, the slowest round took %.3f s; %s", ours->granted, count,
                slowest_s, text);
}

/* False: the server could not be asked, or gave a wrong answer. */
static bool arrive_once(struct rows *rows, uint32_t count, struct arrival *ret)
{
    struct peers_server server = {0};
    struct peers_durable durable;
    peers_remove("newcomers");
    bool has_run = peers_start_holdfastd(&server, "newcomers", count, NULL) &&
                   bring_newcomers(&server, count, NULL, ret);
    peers_stop(&server, SIGTERM);
    has_run = has_run && peers_read_durable(&server, &durable);
    if (!has_run)
        rows_fail(rows, "%u new clients: %s", count, peers_why());
    else if (ret->granted == count && durable.lock_changes != count)
        rows_fail(rows, "%u locks were granted and %" PRIu64 " committed", count,
                  durable.lock_changes);
    peers_remove("newcomers");
    return !rows->has_failed;
}

void rows_newcomers(struct rows *rows)
{
    uint32_t count = rows->is_quick ? 100 : 1000, rounds = rows->is_quick ? 1 : 3;
    struct arrival ours = {0}, theirs = {0};
    struct ganesha ganesha = {0};
    double slowest_s = 0;
    bool are_granted = true;
    char title[48];
    snprintf(title, sizeof(title), "first lock of %u clients at once", count);
    struct report_line *line = report_add_line(rows->report, "newcomers", title, "nfs-ganesha", 0);
    rows_say("%u new clients at once", count);
    bool has_theirs = ganesha_start(&ganesha, FILES) &&
                      bring_newcomers(&ganesha.server, count, ganesha.handles, &theirs);
    ganesha_stop(&ganesha);
    for (uint32_t round = 0; round < rounds; round++) {
        if (!arrive_once(rows, count, &ours))
            return;
        are_granted = are_granted && ours.granted == count;
        slowest_s = ours.took_s > slowest_s ? ours.took_s : slowest_s;
        report_add_round(line, &ours.sample, has_theirs ? &theirs.sample : NULL);
    }
    describe_arrivals(line, count, &ours, slowest_s, has_theirs, &theirs);
    line->verdict = are_granted && slowest_s < NEWCOMERS_S ? REPORT_PASS : REPORT_FAIL;
}

/*
 * rows_postgres.c -- the row of the shared store; see rows.h.
 *
 * A PostgreSQL of its own (tests/postgres) runs on this machine, on a disk, with fsync and
 * synchronous_commit as they are by default: on. In each round holdfastd is measured on it, and
 * then one transaction per request (transactions.c) on another database of it.
 */
#include "bench/rows.h"

#include "bench/peers.h"
#include "postgres/cluster.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECTIONS 32
#define IN_FLIGHT   32
#define DRAIN_MS    10000
#define FILES       1000
#define GOAL        20

static bool measure_ours(const struct rows *rows, const struct peers_server *server,
                         struct report_sample *ret, uint64_t *changes)
{
    uint64_t more;
    struct peers_traffic traffic = {.kind = "pairs",
                                    .connections = CONNECTIONS,
                                    .in_flight = IN_FLIGHT,
                                    .milliseconds = rows->is_quick ? 300 : 3000,
                                    .drain_ms = DRAIN_MS,
                                    .is_locks = true,
                                    .files = FILES};
    if (!peers_measure_locks(server, &traffic, ret, &more))
        return false;
    *changes += more;
    return true;
}

static bool measure_theirs(const struct rows *rows, const struct cluster *cluster,
                           struct report_sample *ret)
{
    struct process process = {0};
    char line[128];
    *ret = (struct report_sample){0};
    const char *arguments[] = {peers_tool("transactions"),
                               strchr(cluster_url(cluster, "one_by_one"), ':') + 1,
                               rows->is_quick ? "300" : "3000", NULL};
    if (!process_start(&process, arguments) || process_wait_end(&process, DRAIN_MS) != 0 ||
        !process_last_line(&process, "transactions ", line, sizeof(line)) ||
        sscanf(line, "transactions %lf", &ret->rate) != 1)
        return peers_fail("one transaction per request: %s", process_last_words(&process));
    return true;
}

static void measure(struct rows *rows, const struct cluster *cluster, struct peers_server *server,
                    struct report_line *line)
{
    struct report_sample ours, theirs;
    struct peers_durable durable;
    uint64_t changes = 0;
    for (uint32_t round = 1; round <= rows->rounds; round++) {
        rows_say("LOCK and UNLOCK with PostgreSQL, round %u of %u", round, rows->rounds);
        if (!measure_ours(rows, server, &ours, &changes) ||
            !measure_theirs(rows, cluster, &theirs)) {
            rows_fail(rows, "PostgreSQL: %s", peers_why());
            return;
        }
        report_add_round(line, &ours, &theirs);
    }
    peers_stop(server, SIGTERM);
    if (!peers_read_durable(server, &durable))
        rows_fail(rows, "%s", peers_why());
    else if (durable.lock_changes != changes)
        rows_fail(rows, "%" PRIu64 " locks were taken or given up, %" PRIu64 " changes committed",
                  changes, durable.lock_changes);
    else
        report_note(line, "%" PRIu64 " lock changes in %" PRIu64 " commits", changes,
                    durable.batches);
}

void rows_postgres(struct rows *rows)
{
    struct cluster cluster = {0};
    struct peers_server server = {0};
    const char *why = "the private PostgreSQL does not start";
    struct report_line *line = report_add_line(
        rows->report, "postgres", "LOCK/UNLOCK 32 x 32, PostgreSQL", "1 per transaction", GOAL);
    setenv("TMPDIR", "/var/tmp", 0); /* on a disk: a sync must cost what it costs */
    if (!cluster_init(&cluster, &why)) {
        report_skip(line, "%s", why);
        return;
    }
    cluster.is_synced = true;
    char url[256] = "";
    bool is_ready = cluster_start(&cluster) && cluster_fresh(&cluster, "shared") &&
                    cluster_fresh(&cluster, "one_by_one");
    if (is_ready)
        snprintf(url, sizeof(url), "%s", cluster_url(&cluster, "shared"));
    if (!is_ready || !peers_start_holdfastd(&server, url, 1000, NULL))
        rows_fail(rows, "PostgreSQL: %s", is_ready ? peers_why() : why);
    else
        measure(rows, &cluster, &server, line);
    peers_stop(&server, SIGKILL);
    cluster_done(&cluster);
}

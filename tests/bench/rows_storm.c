/*
 * rows_storm.c -- what an honest client feels of a hostile one; see rows.h and storm.c.
 *
 * Each storm has a server of its own: what the hostile client leaves behind would be the next
 * one's. It may have all of every table (--max-per-address 100): the shares that keep it small are
 * not what is measured.
 */
#include "bench/peers.h"
#include "bench/rows.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>

#define LOCK_GOAL_MS  25.0
#define GRANT_GOAL_MS 1000.0
#define STORM_MS      300000

static const struct storm {
    const char *name, *title;
    uint32_t count, quick_count;
} storms[] = {
    {"waiters", "storm: 100,000 waiters of one owner", 100000, 500},
    {"readers", "storm: 5,000 readers, a writer polls", 5000, 200},
    {"offers", "storm: 99,000 offers to a silent host", 99000, 500},
    {"connections", "storm: 8 connections at full speed", 0, 0},
};

struct figures {
    uint64_t locks, mean_ns, max_ns, grants, grant_mean_ns, grant_max_ns;
};

static bool ride_out(const struct rows *rows, const struct storm *storm,
                     const struct peers_server *server, struct figures *ret)
{
    struct process process;
    char port[16], count[16], line[256];
    snprintf(port, sizeof(port), "%u", server->port);
    snprintf(count, sizeof(count), "%u", rows->is_quick ? storm->quick_count : storm->count);
    const char *arguments[] = {
        peers_tool("storm"), storm->name, port, count, rows->is_quick ? "300" : "5000", NULL};
    if (!process_start(&process, arguments) || process_wait_end(&process, STORM_MS) != 0)
        return peers_fail("%s", process_last_words(&process));
    return process_find_line(&process, "storm locks=", line, sizeof(line)) &&
           sscanf(strstr(line, "storm locks="),
                  "storm locks=%" SCNu64 " mean_ns=%" SCNu64 " max_ns=%" SCNu64 " grants=%" SCNu64
                  " grant_mean_ns=%" SCNu64 " grant_max_ns=%" SCNu64,
                  &ret->locks, &ret->mean_ns, &ret->max_ns, &ret->grants, &ret->grant_mean_ns,
                  &ret->grant_max_ns) == 6;
}

static void judge(struct report_line *line, const struct figures *figures)
{
    double mean_ms = (double)figures->mean_ns / 1e6, grant_ms = (double)figures->grant_max_ns / 1e6;
    struct report_sample sample = {.rate = (double)figures->locks * 1e9 /
                                           ((double)figures->mean_ns * (double)figures->locks),
                                   .max_us = (double)figures->max_ns / 1e3};
    report_add_round(line, &sample, NULL);
    report_note(line,
                "LOCK %.2f ms (goal %.0f), at most %.1f ms; GRANTED after %.1f ms, at most %.1f ms "
                "(goal %.0f)",
                mean_ms, LOCK_GOAL_MS, (double)figures->max_ns / 1e6,
                (double)figures->grant_mean_ns / 1e6, grant_ms, GRANT_GOAL_MS);
    line->verdict = mean_ms < LOCK_GOAL_MS && grant_ms < GRANT_GOAL_MS ? REPORT_PASS : REPORT_FAIL;
}

void rows_storm(struct rows *rows)
{
    static const char *const more[] = {"--max-waiters",          "200000", "--max-locks", "1100000",
                                       "--max-locks-per-client", "500000", NULL};
    peers_stop_rpcbind(); /* the honest client takes port 111 */
    for (size_t i = 0; i < sizeof(storms) / sizeof(storms[0]) && !rows->has_failed; i++) {
        struct peers_server server = {0};
        struct figures figures = {0};
        char key[48];
        snprintf(key, sizeof(key), "storm-%s", storms[i].name);
        struct report_line *line = report_add_line(rows->report, key, storms[i].title, NULL, 0);
        rows_say("%s", storms[i].title);
        if (!peers_start_holdfastd(&server, "storm", 1000, more) ||
            !ride_out(rows, &storms[i], &server, &figures))
            rows_fail(rows, "%s: %s", storms[i].name, peers_why());
        else
            judge(line, &figures);
        peers_stop(&server, SIGKILL);
        peers_remove("storm");
    }
}

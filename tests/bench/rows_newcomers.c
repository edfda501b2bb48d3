/*
 * rows_newcomers.c -- rows of clients that come all at once; see rows.h.
 *
 * Each round has a fresh server. Over UDP a client that hears nothing calls again after a second,
 * as kernels do; one lost datagram would show.
 */
#include "bench/ganesha.h"
#include "bench/rows.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>

#define FILES           1000
#define NEWCOMERS_FIRST "127.32.0.0"
#define NEWCOMERS_MS    10000

struct arrival {
    uint32_t granted;
    double took_s;
    bool is_alive;
    struct report_sample sample;
};

/* How they come. */
struct way {
    const char *key, *of, *verb; /* of the line, of its title, of tests/bench/lockers.c */
    double goal_s;               /* the last one is granted by then */
};

static const struct way by_tcp = {"newcomers", "", "newcomers", 1.0};
static const struct way by_udp = {"newcomers-udp", " (UDP)", "newcomers-udp", 0.5};

static bool bring_newcomers(const struct way *way, const struct peers_server *server,
                            uint32_t count, const char *handles, struct arrival *ret)
{
    struct process process = {0};
    char port[16], number[16], limit[16], line[128], path[600];
    unsigned granted, wrong, alive;
    uint64_t took_ns, before_ns = process_cpu_ns(&server->process);
    snprintf(port, sizeof(port), "%u", server->port);
    snprintf(number, sizeof(number), "%u", count);
    snprintf(limit, sizeof(limit), "%u", NEWCOMERS_MS);
    snprintf(path, sizeof(path), "%s", handles ? peers_path(handles) : "");
    const char *arguments[] = {peers_tool("lockers"), way->verb, port,
                               NEWCOMERS_FIRST,       number,    limit,
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
static bool arrive_once(struct rows *rows, const struct way *way, uint32_t count,
                        struct arrival *ret)
{
    struct peers_server server = {0};
    struct peers_durable durable;
    peers_remove("newcomers");
    bool has_run = peers_start_holdfastd(&server, "newcomers", count, NULL) &&
                   bring_newcomers(way, &server, count, NULL, ret);
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

static void measure_way(struct rows *rows, const struct way *way)
{
    uint32_t count = rows->is_quick ? 100 : 1000, rounds = rows->is_quick ? 1 : 3;
    struct arrival ours = {0}, theirs = {0};
    struct ganesha ganesha = {0};
    double slowest_s = 0;
    bool are_granted = true;
    char title[48];
    snprintf(title, sizeof(title), "first lock of %u clients%s", count, way->of);
    struct report_line *line = report_add_line(rows->report, way->key, title, "nfs-ganesha", 0);
    rows_say("%s at once", title);
    bool has_theirs = ganesha_start(&ganesha, FILES) &&
                      bring_newcomers(way, &ganesha.server, count, ganesha.handles, &theirs);
    ganesha_stop(&ganesha);
    for (uint32_t round = 0; round < rounds; round++) {
        if (!arrive_once(rows, way, count, &ours))
            return;
        are_granted = are_granted && ours.granted == count;
        slowest_s = ours.took_s > slowest_s ? ours.took_s : slowest_s;
        report_add_round(line, &ours.sample, has_theirs ? &theirs.sample : NULL);
    }
    describe_arrivals(line, count, &ours, slowest_s, has_theirs, &theirs);
    line->verdict = are_granted && slowest_s < way->goal_s ? REPORT_PASS : REPORT_FAIL;
}

void rows_newcomers(struct rows *rows)
{
    measure_way(rows, &by_tcp);
    if (!rows->has_failed)
        measure_way(rows, &by_udp);
}

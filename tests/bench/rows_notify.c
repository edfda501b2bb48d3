/*
 * rows_notify.c -- rows of hosts that are told of a restart; see rows.h.
 *
 * The hosts register from addresses of their own, the server is killed with -9 and started again,
 * and the time runs from its readiness line. Hosts that answer are played by tests/bench/hosts.c,
 * which says when the last of them was called and what it was told. For silent hosts a rule of
 * nftables drops what is sent to them, and remembers to whom something was sent; when the server
 * has tried all of them once, and in vain, is read from its log. Where a server does not call
 * back at all, which is seen by waiting, the rows are skipped.
 */
#include "bench/rows.h"

#include "bench/peers.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REACHABLE_FIRST  ROWS_HOSTS_FIRST
#define SILENT_FIRST     ROWS_SILENT_FIRST
#define SILENT_NET       "127.200.0.0/16"
#define SILENT_PREFIX    "127.200."
#define REACHABLE_ROUNDS 3
#define REACHABLE_GOAL_S 0.8
#define SILENT_GOAL_MS   6000
#define LATENCY_GOAL_US  20000.0
#define PROBE_NS         UINT64_C(10000000000) /* who calls nobody for so long never does */
#define TELL_NS          UINT64_C(30000000000)
#define SILENT_MS        8000
#define ROUND_NS         UINT64_C(20000000000) /* then the round will never end */

static double seconds_between(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? (double)(to_ns - from_ns) / 1e9 : 0;
}

/*
 * Starts a server, registers the hosts with it, and kills it. If `ret_calm` is given, one client
 * registers and unregisters before that, for comparison.
 */
static bool prepare_crash(const char *first, uint32_t count, struct report_sample *ret_calm)
{
    struct peers_server server;
    const struct peers_traffic churn = {
        .kind = "churn", .connections = 1, .in_flight = 1, .milliseconds = 1000, .drain_ms = 5000};
    bool is_prepared = peers_start_holdfastd(&server, "notify", count + 1000, NULL) &&
                       (!ret_calm || peers_measure(&server, &churn, ret_calm)) &&
                       peers_enroll(&server, first, count, NULL);
    peers_stop(&server, SIGKILL);
    return is_prepared;
}

/* Until all hosts are called, or nobody is for PROBE_NS, or TELL_NS are over. */
static bool wait_told(const struct process *process, uint32_t count, uint64_t from_ns,
                      struct peers_hosts *ret)
{
    for (;;) {
        if (!peers_read_hosts(process, ret))
            return false;
        uint64_t waited_ns = process_now_ns() - from_ns;
        if (ret->called == count || waited_ns > TELL_NS ||
            (ret->called == 0 && waited_ns > PROBE_NS))
            return true;
        process_pause_ms(10);
    }
}

static void judge_round(struct rows *rows, struct report_line *line,
                        const struct peers_server *server, const struct peers_hosts *hosts,
                        uint32_t count)
{
    if (hosts->called > 0 &&
        (hosts->state_low != server->state || hosts->state_high != server->state))
        rows_fail(rows, "hosts were told states %u to %u, the server's is %u", hosts->state_low,
                  hosts->state_high, server->state);
    if (hosts->foreign > 0 || hosts->unreadable > 0)
        rows_fail(rows, "%u calls went to addresses that never registered, %u were no calls",
                  hosts->foreign, hosts->unreadable);
    if (hosts->called == 0)
        report_skip(line, "no callback within 10 s of readiness: this server does not call back");
    else if (hosts->called < count)
        line->verdict = REPORT_FAIL;
}

/* False: no need for another round. */
static bool tell_once(struct rows *rows, struct report_line *line, uint32_t count)
{
    struct peers_server server = {0};
    struct process process = {0};
    struct peers_hosts hosts = {0};
    peers_remove("notify");
    bool has_run = prepare_crash(REACHABLE_FIRST, count, NULL) &&
                   peers_start_hosts(&process, REACHABLE_FIRST, count) &&
                   peers_start_holdfastd(&server, "notify", count + 1000, NULL) &&
                   wait_told(&process, count, server.ready_ns, &hosts);
    if (!has_run) {
        report_skip(line, "%s", peers_why());
    } else {
        /* At least a millisecond: the readiness line is seen a little after it is written. */
        double took_s = seconds_between(server.ready_ns, hosts.last_ns) + 0.001;
        struct report_sample ours = {.rate = hosts.called / took_s,
                                     .cpu_us =
                                         (double)process_cpu_ns(&server.process) / 1e3 / count};
        judge_round(rows, line, &server, &hosts, count);
        if (hosts.called > 0)
            report_add_round(line, &ours, NULL);
        report_note(line, "%u of %u told, the last %.2f s after readiness; %u look-ups, %u calls",
                    hosts.called, count, took_s, hosts.asked, hosts.calls);
    }
    peers_stop(&server, SIGKILL);
    (void)process_stop(&process, SIGKILL);
    return has_run && hosts.called > 0 && !rows->has_failed;
}

/* sm-notify gets the same hosts and a bounded time. */
bool rows_sm_notify(uint32_t count, uint32_t limit_s, struct report_sample *ret, uint32_t *ret_told)
{
    struct process process = {0}, notifier = {0};
    struct peers_hosts hosts = {0};
    struct in_addr first;
    const char *arguments[] = {"sm-notify", "-f", "-d", "-P", peers_path("sm-notify"), NULL};
    inet_pton(AF_INET, REACHABLE_FIRST, &first);
    bool has_run = process_is_installed("sm-notify") &&
                   peers_write_statd_directory("sm-notify", ntohl(first.s_addr), count) &&
                   peers_start_hosts(&process, REACHABLE_FIRST, count);
    uint64_t start_ns = process_now_ns(), cpu_ns = 0;
    has_run = has_run && process_start(&notifier, arguments);
    while (has_run && process_is_alive(&notifier) && hosts.called < count &&
           process_now_ns() - start_ns < limit_s * UINT64_C(1000000000)) {
        process_pause_ms(50);
        cpu_ns = process_cpu_ns(&notifier);
        has_run = peers_read_hosts(&process, &hosts);
    }
    if (has_run) { /* its last calls may not be in the line yet */
        process_pause_ms(100);
        has_run = peers_read_hosts(&process, &hosts);
    }
    double took_s = hosts.called == count ? seconds_between(start_ns, hosts.last_ns)
                                          : seconds_between(start_ns, process_now_ns());
    (void)process_stop(&notifier, SIGKILL);
    (void)process_stop(&process, SIGKILL);
    peers_remove("sm-notify");
    if (!has_run || hosts.called == 0)
        return false;
    *ret = (struct report_sample){.rate = hosts.called / took_s,
                                  .cpu_us = (double)cpu_ns / 1e3 / hosts.called};
    *ret_told = hosts.called;
    return true;
}

void rows_reachable(struct rows *rows)
{
    uint32_t count = rows->is_quick ? 100 : 10000, limit_s = rows->is_quick ? 10 : 60, told;
    uint32_t rounds = rows->rounds < REACHABLE_ROUNDS ? rows->rounds : REACHABLE_ROUNDS;
    struct report_sample theirs;
    char title[48];
    snprintf(title, sizeof(title), "hosts told, %u answer", count);
    struct report_line *line =
        report_add_line(rows->report, "notify-reachable", title, "sm-notify", 0);
    peers_stop_rpcbind(); /* the fake hosts take port 111 */
    bool goes_on = true;
    for (uint32_t round = 1; round <= rounds && goes_on; round++) {
        rows_say("%u hosts that answer, round %u of %u", count, round, rounds);
        goes_on = tell_once(rows, line, count);
    }
    peers_remove("notify");
    if (line->skipped[0] != '\0' || rows->has_failed)
        return;
    if (line->verdict != REPORT_FAIL) /* which is a host that was not told */
        line->verdict =
            count / report_ours(line).rate <= REACHABLE_GOAL_S ? REPORT_PASS : REPORT_FAIL;
    rows_say("the same hosts told by sm-notify, at most %u s", limit_s);
    size_t len = strlen(line->note);
    if (!rows_sm_notify(count, limit_s, &theirs, &told)) {
        snprintf(line->note + len, sizeof(line->note) - len,
                 "; sm-notify (Debian: nfs-common) could not be measured");
        return;
    }
    for (uint32_t i = 0; i < line->rounds; i++)
        line->theirs[i] = theirs;
    snprintf(line->note + len, sizeof(line->note) - len, "; sm-notify: %u told in %.0f s", told,
             told / theirs.rate);
}

/* ---- silent hosts ---- */

bool rows_silence(void)
{
    struct process process = {0};
    const char *rules[][PROCESS_ARGUMENTS_MAX] = {
        {"nft", "add table ip bench", NULL},
        {"nft", "add set ip bench asked { type ipv4_addr; size 65536; flags dynamic; }", NULL},
        {"nft", "add chain ip bench input { type filter hook input priority 0; }", NULL},
        {"nft",
         "add rule ip bench input ip daddr " SILENT_NET " add @asked { ip daddr } counter drop",
         NULL},
    };
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
        if (!peers_run(rules[i], &process))
            return false;
    return true;
}

void rows_end_silence(void)
{
    struct process process = {0};
    const char *arguments[] = {"nft", "delete table ip bench", NULL};
    (void)peers_run(arguments, &process); /* the namespace goes with the bench anyhow */
}

static uint32_t count_in_file(const char *path, const char *word)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t size = 0;
    uint32_t count = 0;
    if (!file)
        return 0;
    while (getline(&line, &size, file) > 0)
        for (const char *at = strstr(line, word); at; at = strstr(at + 1, word))
            count++;
    free(line);
    fclose(file);
    return count;
}

/* How many hosts something was sent to. */
static uint32_t count_asked(void)
{
    struct process process = {0};
    const char *arguments[] = {"nft", "list set ip bench asked", NULL};
    if (!peers_run(arguments, &process))
        return 0;
    uint32_t count = count_in_file(process.log, SILENT_PREFIX);
    unlink(process.log);
    return count;
}

struct silence {
    struct report_sample calm; /* SM_MON of one client while nobody is silent */
    uint32_t asked;
    double asked_s; /* when that many were asked */
    bool is_round_over;
    struct peers_round round;
};

static void watch_silence(const struct peers_server *server, uint32_t count, uint32_t limit_ms,
                          struct silence *ret)
{
    uint64_t end_ns = server->ready_ns + limit_ms * UINT64_C(1000000);
    while (process_now_ns() < end_ns ||
           (!ret->is_round_over && process_now_ns() < end_ns + ROUND_NS)) {
        uint32_t asked = ret->asked < count ? count_asked() : ret->asked;
        if (asked > ret->asked) {
            ret->asked = asked;
            ret->asked_s = seconds_between(server->ready_ns, process_now_ns());
        }
        ret->is_round_over = ret->is_round_over || peers_read_round(server, &ret->round);
        process_pause_ms(250);
    }
}

static void judge_silence(struct rows *rows, struct report_line *line,
                          const struct silence *silence, uint32_t count,
                          const struct report_sample *null, const struct report_sample *mon)
{
    /* A disk that is slow for everybody is not the fault of silent hosts. */
    bool is_quick_for_others =
        null->p99_us <= LATENCY_GOAL_US &&
        (mon->p99_us <= LATENCY_GOAL_US || mon->p99_us <= 2 * silence->calm.p99_us);
    const struct peers_round *round = &silence->round;
    bool is_in_time = round->failed == count && round->took_ms <= SILENT_GOAL_MS;
    report_note(
        line,
        "%u of %u asked by %.1f s, %u failed by %.2f s; meanwhile us: NULL p50 %.0f p99 %.0f"
        " max %.0f, SM_MON/UNMON p50 %.0f p99 %.0f max %.0f",
        silence->asked, count, silence->asked_s, round->failed, round->took_ms / 1e3, null->p50_us,
        null->p99_us, null->max_us, mon->p50_us, mon->p99_us, mon->max_us);
    if (silence->asked == 0)
        report_skip(line,
                    "nothing was sent to a silent host within %d s of readiness: this server"
                    " does not call back",
                    SILENT_MS / 1000);
    else if (!silence->is_round_over)
        rows_fail(rows, "the server did not say that the first round is over: %s", peers_why());
    else if (round->count != count || round->reached > 0)
        rows_fail(rows, "the server says that it reached %u of %u silent hosts; there are %u",
                  round->reached, round->count, count);
    else
        line->verdict = silence->asked == count && is_quick_for_others && is_in_time ? REPORT_PASS
                                                                                     : REPORT_FAIL;
}

static void measure_silence(struct rows *rows, struct report_line *line,
                            const struct peers_server *server, uint32_t count,
                            struct silence *silence)
{
    uint32_t milliseconds = rows->is_quick ? 3000 : SILENT_MS;
    struct peers_traffic traffic[] = {
        {.kind = "null",
         .connections = 1,
         .in_flight = 1,
         .milliseconds = milliseconds - 500,
         .drain_ms = 5000},
        {.kind = "churn",
         .connections = 1,
         .in_flight = 1,
         .milliseconds = milliseconds - 500,
         .drain_ms = 5000},
    };
    struct process generators[2] = {{0}, {0}};
    struct report_sample samples[2];
    uint64_t answered;
    bool has_run = peers_begin_traffic(server, &traffic[0], &generators[0]) &&
                   peers_begin_traffic(server, &traffic[1], &generators[1]);
    watch_silence(server, count, milliseconds, silence);
    for (int i = 0; i < 2; i++)
        has_run = has_run && peers_end_traffic(&generators[i], &traffic[i], &samples[i], &answered);
    if (!has_run) {
        rows_fail(rows, "while hosts are silent: %s", peers_why());
        return;
    }
    report_add_round(line, &samples[1], &silence->calm);
    judge_silence(rows, line, silence, count, &samples[0], &samples[1]);
}

void rows_silent(struct rows *rows)
{
    uint32_t count = rows->is_quick ? 100 : 10000;
    struct peers_server server = {0};
    struct silence silence = {0};
    const char *const quicker[] = {"--notify-timeout", "2", NULL};
    char title[48];
    snprintf(title, sizeof(title), "SM_MON 1 x 1, %u silent hosts", count);
    struct report_line *line =
        report_add_line(rows->report, "notify-silent", title, "none silent", 0);
    rows_say("%u silent hosts", count);
    peers_stop_rpcbind();
    peers_remove("notify");
    if (!prepare_crash(SILENT_FIRST, count, &silence.calm))
        rows_fail(rows, "%s", peers_why());
    else if (!rows_silence())
        report_skip(line, "no way to make hosts silent (Debian: nftables): %s", peers_why());
    else if (!peers_start_holdfastd(&server, "notify", count + 1000,
                                    rows->is_quick ? quicker : NULL))
        rows_fail(rows, "%s", peers_why());
    else
        measure_silence(rows, line, &server, count, &silence);
    rows_end_silence();
    peers_stop(&server, SIGKILL);
    peers_remove("notify");
}

/*
 * rows_http.c -- rows of those who read over HTTP; see rows.h.
 *
 * First, what readers cost those who lock: pairs are measured on one server in turns without and
 * with 100 scrapes of the metrics each second and 50 open streams of events. Which of the two comes
 * first changes from round to round, so that a machine that becomes slower is nobody's fault.
 *
 * Then, what many stored locks cost readers, and a whole listing those who lock: status, metrics
 * and all pages of the list are read in peace; after that one client locks and unlocks, one call at
 * a time, in turns alone and while the list is read again and again.
 *
 * A reader's answer that is late is slow; one that is refused, cut short or without the locks that
 * are held is wrong (tests/bench/readers.c).
 */
#include "bench/peers.h"
#include "bench/rows.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>

#define CONNECTIONS    32
#define IN_FLIGHT      32
#define DRAIN_MS       10000
#define HOLD_MS        180000
#define ROUNDS_MAX     3 /* long ones: each is as long as a whole list, and half as long again */
#define FILES          1000
#define HOLDERS_FIRST  "127.1.0.1"
#define BEGIN_MS       20000
#define READ_MS        300000
#define SCRAPES        100
#define STREAMS        50
#define WATCHED_GOAL   0.95
#define WATCHED_MS     1000 /* each stream has one status in it */
#define WATCHED_TIMES  2    /* as many rounds: the goal is near 1, and machines are noisy */
#define SCRAPES_LEAST  0.9  /* of those that are due: else the row shows nothing */
#define STATUS_MAX_MS  5.0
#define METRICS_MAX_MS 20.0
#define PAGE_MAX_MS    10.0
#define P99_RATIO_MAX  1.5
#define FOREVER        1000000
#define LISTED_MIN_MS  2000
#define LISTED_MAX_MS  20000

struct site {
    const char *store;
    struct peers_server server;
    uint32_t http_port;
    uint64_t changes; /* locks that were taken and given up */
};

static bool start_site(struct rows *rows, struct site *site)
{
    static const char *const more[] = {"--max-locks", "1100000", "--http", "127.0.0.1:0", NULL};
    static const char said[] = "serving HTTP port=";
    char line[256];
    if (!peers_start_holdfastd(&site->server, site->store, 1000, more)) {
        rows_fail(rows, "with HTTP: %s", peers_why());
        return false;
    }
    uint64_t deadline_ns = process_now_ns() + BEGIN_MS * UINT64_C(1000000);
    while (process_now_ns() < deadline_ns) {
        if (process_find_line(&site->server.process, said, line, sizeof(line)) &&
            sscanf(strstr(line, said) + strlen(said), "%u", &site->http_port) == 1)
            return true;
        process_pause_ms(1);
    }
    rows_fail(rows, "holdfastd does not say where HTTP is: %s",
              process_last_words(&site->server.process));
    return false;
}

static bool measure_pairs(struct rows *rows, struct site *site, uint32_t width,
                          uint32_t milliseconds, struct report_sample *ret)
{
    struct peers_traffic traffic = {.kind = "pairs",
                                    .connections = width,
                                    .in_flight = width,
                                    .milliseconds = milliseconds,
                                    .drain_ms = DRAIN_MS,
                                    .is_locks = true,
                                    .files = FILES};
    uint64_t changes;
    if (!peers_measure_locks(&site->server, &traffic, ret, &changes)) {
        rows_fail(rows, "LOCK and UNLOCK beside HTTP: %s", peers_why());
        return false;
    }
    site->changes += changes;
    return true;
}

/* What was acknowledged is stored, whoever read meanwhile. */
static void verify_site(struct rows *rows, struct site *site)
{
    struct peers_durable durable;
    peers_stop(&site->server, SIGTERM);
    if (!peers_read_durable(&site->server, &durable))
        rows_fail(rows, "%s", peers_why());
    else if (durable.lock_changes != site->changes)
        rows_fail(rows, "%" PRIu64 " locks were taken or given up, %" PRIu64 " changes committed",
                  site->changes, durable.lock_changes);
}

/* Starts readers that go on until they are stopped, and waits until they are at it. */
static bool begin_readers(struct rows *rows, const struct site *site, const char *kind,
                          uint32_t first, uint32_t second, struct process *ret)
{
    char port[16], texts[2][16], begun[32], line[256];
    snprintf(port, sizeof(port), "%u", site->http_port);
    snprintf(texts[0], sizeof(texts[0]), "%u", first);
    snprintf(texts[1], sizeof(texts[1]), "%u", second);
    snprintf(begun, sizeof(begun), "%s begun", kind);
    const char *arguments[] = {peers_tool("readers"), kind, port, texts[0], texts[1], NULL};
    if (process_start(ret, arguments) &&
        process_wait_line(ret, begun, BEGIN_MS, line, sizeof(line)))
        return true;
    rows_fail(rows, "%s", process_last_words(ret));
    (void)process_stop(ret, SIGKILL);
    return false;
}

/* ---- those who watch ---- */

struct watchers {
    uint64_t scrapes, missed, events, took_ns;
};

static bool end_watchers(struct rows *rows, struct process *process, struct watchers *sum)
{
    struct watchers watchers;
    char line[256];
    if (process_stop(process, SIGTERM) != 0 ||
        !process_last_line(process, "watch scrapes=", line, sizeof(line)) ||
        sscanf(line,
               "watch scrapes=%" SCNu64 " missed=%" SCNu64 " events=%" SCNu64 " took_ns=%" SCNu64,
               &watchers.scrapes, &watchers.missed, &watchers.events, &watchers.took_ns) != 4) {
        rows_fail(rows, "scrapes and streams of events: %s", process_last_words(process));
        return false;
    }
    sum->scrapes += watchers.scrapes;
    sum->missed += watchers.missed;
    sum->events += watchers.events;
    sum->took_ns += watchers.took_ns;
    return true;
}

static bool measure_watched(struct rows *rows, struct site *site, struct report_sample *ret,
                            struct watchers *sum)
{
    struct process process = {0};
    if (!begin_readers(rows, site, "watch", SCRAPES, STREAMS, &process))
        return false;
    bool is_measured =
        measure_pairs(rows, site, CONNECTIONS, rows->is_quick ? 200 : WATCHED_MS, ret);
    return end_watchers(rows, &process, sum) && is_measured;
}

static bool measure_unwatched(struct rows *rows, struct site *site, struct report_sample *ret)
{
    return measure_pairs(rows, site, CONNECTIONS, rows->is_quick ? 200 : WATCHED_MS, ret);
}

static void judge_watched(struct report_line *line, const struct watchers *sum)
{
    double rate = (double)sum->scrapes * 1e9 / (double)sum->took_ns, low = 0, high = 0;
    for (uint32_t i = 0; i < line->rounds; i++) {
        double ratio = line->ours[i].rate / line->theirs[i].rate;
        low = i == 0 || ratio < low ? ratio : low;
        high = ratio > high ? ratio : high;
    }
    report_note(line,
                "%.1f scrapes/s, %" PRIu64 " missed; %" PRIu64 " events to %d streams; ratios of"
                " %u rounds from %.2f to %.2f",
                rate, sum->missed, sum->events, STREAMS, line->rounds, low, high);
    if (rate < SCRAPES * SCRAPES_LEAST) {
        line->goal = 0;
        line->verdict = REPORT_FAIL;
    }
}

static void measure_watching(struct rows *rows)
{
    struct site site = {.store = "http-watched"};
    struct report_sample watched, unwatched;
    uint32_t rounds = rows->is_quick ? 1 : rows->rounds * WATCHED_TIMES;
    struct watchers sum = {0};
    struct report_line *line =
        report_add_line(rows->report, "http-watched", "LOCK/UNLOCK, scraped and watched",
                        "unwatched", WATCHED_GOAL);
    /* The first pairs fill caches and make the store grow: they are not compared. */
    bool is_warm = start_site(rows, &site) && measure_unwatched(rows, &site, &unwatched);
    for (uint32_t round = 1; is_warm && round <= rounds && !rows->has_failed; round++) {
        rows_say("LOCK and UNLOCK with %d scrapes/s and %d streams, round %u of %u", SCRAPES,
                 STREAMS, round, rounds);
        bool is_later = round % 2 == 0;
        if ((is_later || measure_unwatched(rows, &site, &unwatched)) &&
            measure_watched(rows, &site, &watched, &sum) &&
            (!is_later || measure_unwatched(rows, &site, &unwatched)))
            report_add_round(line, &watched, &unwatched);
    }
    if (!rows->has_failed) {
        judge_watched(line, &sum);
        verify_site(rows, &site);
    }
    peers_stop(&site.server, SIGKILL);
    peers_remove(site.store);
}

/* ---- many locks ---- */

struct answers {
    uint32_t count;
    uint64_t rows, took_ns, p50_ns, p99_ns, max_ns;
};

static bool read_answers(const struct process *process, const char *kind, struct answers *ret)
{
    char line[256], begin[32];
    snprintf(begin, sizeof(begin), "%s answers=", kind);
    return process_last_line(process, begin, line, sizeof(line)) &&
           sscanf(line + strlen(begin),
                  "%u rows=%" SCNu64 " took_ns=%" SCNu64 " p50_ns=%" SCNu64 " p99_ns=%" SCNu64
                  " max_ns=%" SCNu64,
                  &ret->count, &ret->rows, &ret->took_ns, &ret->p50_ns, &ret->p99_ns,
                  &ret->max_ns) == 6;
}

/* Runs readers to their end. `arguments` has room for the program and the port. */
static bool measure_answers(struct rows *rows, const struct site *site, const char *arguments[],
                            struct report_line *line, double most_ms, struct answers *ret)
{
    struct process process = {0};
    char port[16];
    uint64_t before_ns = process_cpu_ns(&site->server.process);
    snprintf(port, sizeof(port), "%u", site->http_port);
    arguments[0] = peers_tool("readers");
    arguments[2] = port;
    if (!process_start(&process, arguments) || process_wait_end(&process, READ_MS) != 0 ||
        !read_answers(&process, arguments[1], ret)) {
        rows_fail(rows, "%s: %s", line->title, process_last_words(&process));
        return false;
    }
    uint64_t cpu_ns = process_cpu_ns(&site->server.process) - before_ns;
    struct report_sample sample = {.rate = ret->count * 1e9 / (double)ret->took_ns,
                                   .cpu_us = (double)cpu_ns / 1e3 / ret->count,
                                   .p50_us = (double)ret->p50_ns / 1e3,
                                   .p99_us = (double)ret->p99_ns / 1e3,
                                   .max_us = (double)ret->max_ns / 1e3};
    report_add_round(line, &sample, NULL);
    report_note(line, "%u answers: median %.2f ms, 99 of 100 within %.2f ms, the slowest %.2f ms",
                ret->count, (double)ret->p50_ns / 1e6, (double)ret->p99_ns / 1e6,
                (double)ret->max_ns / 1e6);
    line->verdict = (double)ret->p99_ns / 1e6 < most_ms ? REPORT_PASS : REPORT_FAIL;
    return true;
}

static bool hold_many(struct rows *rows, struct site *site, uint32_t held)
{
    struct peers_traffic hold = {.kind = "hold",
                                 .connections = CONNECTIONS,
                                 .in_flight = IN_FLIGHT,
                                 .drain_ms = HOLD_MS,
                                 .is_locks = true,
                                 .files = FILES,
                                 .held = held,
                                 .source = HOLDERS_FIRST,
                                 .sources = CONNECTIONS};
    struct report_sample ignored;
    if (!start_site(rows, site))
        return false;
    if (!peers_measure_locks(&site->server, &hold, &ignored, &site->changes)) {
        rows_fail(rows, "%u locks: %s", held, peers_why());
        return false;
    }
    return true;
}

struct many_lines {
    struct report_line *status, *metrics, *page, *listed;
};

/* Also how long a whole list takes. */
static bool measure_in_peace(struct rows *rows, const struct site *site, uint32_t held,
                             const struct many_lines *lines, uint32_t *ret_list_ms)
{
    char locks[64], metric[64], text[16];
    const char *times = rows->is_quick ? "20" : "500";
    struct answers answers;
    snprintf(locks, sizeof(locks), "\"locks\":%u,", held);
    snprintf(metric, sizeof(metric), "nlm_locks_held{share=\"default\"} %u\n", held);
    snprintf(text, sizeof(text), "%u", held);
    const char *status[] = {NULL, "ask", NULL, "/api/v1/status", times, locks, NULL};
    const char *metrics[] = {NULL, "ask", NULL, "/metrics", times, metric, NULL};
    const char *list[] = {NULL, "list", NULL, text, "1", NULL};
    if (!measure_answers(rows, site, status, lines->status, STATUS_MAX_MS, &answers) ||
        !measure_answers(rows, site, metrics, lines->metrics, METRICS_MAX_MS, &answers) ||
        !measure_answers(rows, site, list, lines->page, PAGE_MAX_MS, &answers))
        return false;
    if (answers.rows != held) {
        rows_fail(rows, "%u locks are held, %" PRIu64 " are listed", held, answers.rows);
        return false;
    }
    *ret_list_ms = (uint32_t)(answers.took_ns / 1000000);
    return true;
}

/* One client alone, and then while the list is read. */
static bool measure_listed(struct rows *rows, struct site *site, uint32_t held,
                           uint32_t milliseconds, struct report_line *line, uint64_t *rows_listed)
{
    struct process process = {0};
    struct report_sample alone, listed;
    struct answers answers;
    if (!measure_pairs(rows, site, 1, milliseconds, &alone) ||
        !begin_readers(rows, site, "list", held, FOREVER, &process))
        return false;
    bool is_measured = measure_pairs(rows, site, 1, milliseconds, &listed);
    if (process_stop(&process, SIGTERM) != 0 || !read_answers(&process, "list", &answers)) {
        rows_fail(rows, "the list, while others lock: %s", process_last_words(&process));
        return false;
    }
    *rows_listed += answers.rows;
    if (is_measured)
        report_add_round(line, &listed, &alone);
    return is_measured;
}

static void judge_listed(struct report_line *line, uint64_t rows_listed)
{
    double ratio = report_p99_ratio(line);
    report_note(line,
                "p99 %.2f ms while %" PRIu64 " locks were listed, %.2f ms alone: %.2f times; the"
                " slowest %.2f and %.2f ms",
                report_ours(line).p99_us / 1e3, rows_listed, report_theirs(line).p99_us / 1e3,
                ratio, report_ours(line).max_us / 1e3, report_theirs(line).max_us / 1e3);
    line->verdict = ratio <= P99_RATIO_MAX ? REPORT_PASS : REPORT_FAIL;
}

static struct report_line *add_line(struct rows *rows, const char *key, const char *what,
                                    uint32_t held, const char *other)
{
    char title[48];
    snprintf(title, sizeof(title), "%s, %u stored", what, held);
    return report_add_line(rows->report, key, title, other, 0);
}

static void measure_many(struct rows *rows)
{
    struct site site = {.store = "http-many"};
    uint32_t held = rows->is_quick ? 20000 : 1000000, list_ms = 0;
    uint32_t rounds = rows->rounds < ROUNDS_MAX ? rows->rounds : ROUNDS_MAX;
    uint64_t rows_listed = 0;
    struct many_lines lines = {
        .status = add_line(rows, "http-status", "/api/v1/status", held, NULL),
        .metrics = add_line(rows, "http-metrics", "/metrics", held, NULL),
        .page = add_line(rows, "http-page", "1,000 of the list", held, NULL),
        .listed = add_line(rows, "http-listed", "LOCK, listed", held, "not listed"),
    };
    rows_say("taking %u locks to be listed", held);
    if (hold_many(rows, &site, held) && measure_in_peace(rows, &site, held, &lines, &list_ms)) {
        uint32_t wanted_ms = list_ms + list_ms / 2;
        uint32_t milliseconds = wanted_ms < LISTED_MIN_MS   ? LISTED_MIN_MS
                                : wanted_ms > LISTED_MAX_MS ? LISTED_MAX_MS
                                                            : wanted_ms;
        for (uint32_t round = 1; round <= rounds && !rows->has_failed; round++) {
            rows_say("LOCK and UNLOCK while %u locks are listed, round %u of %u", held, round,
                     rounds);
            (void)measure_listed(rows, &site, held, rows->is_quick ? 300 : milliseconds,
                                 lines.listed, &rows_listed);
        }
    }
    if (!rows->has_failed) {
        judge_listed(lines.listed, rows_listed);
        verify_site(rows, &site);
    }
    peers_stop(&site.server, SIGKILL);
    peers_remove(site.store);
}

void rows_http(struct rows *rows)
{
    measure_watching(rows);
    if (!rows->has_failed)
        measure_many(rows);
}

/*
 * rows_file.c -- rows of one file with many locks; see rows.h.
 *
 * Two servers: on one of them one client holds 100,000 locks of a thousand owners in one file, on
 * the other one 10. Another client asks TEST and takes and gives up locks in that file, in turns on
 * both; what counts is the ratio. In the end FREE_ALL frees the client that holds them, while
 * another one asks.
 */
#include "bench/peers.h"
#include "bench/rows.h"

#include <inttypes.h>
#include <signal.h>

#define CONNECTIONS   32
#define IN_FLIGHT     32
#define DRAIN_MS      10000
#define HOLD_MS       120000
#define ROUNDS_MAX    5
#define FEW           10
#define HOLDER        "127.2.0.1"
#define RATIO_MAX     1.7  /* many locks cost so much more than few at most */
#define TAKE_MAX_S    10.0 /* "seconds" */
#define FREE_MAX_S    1.0
#define DELAY_MAX_MS  100.0
#define FREE_LIMIT_MS 60000

struct file {
    const char *store;
    uint32_t held;
    struct peers_server server;
    struct report_sample taking, test, pairs;
};

static struct peers_traffic load(const struct rows *rows, const char *kind, uint32_t held)
{
    return (struct peers_traffic){.kind = kind,
                                  .connections = CONNECTIONS,
                                  .in_flight = IN_FLIGHT,
                                  .milliseconds = rows->is_quick ? 100 : 1000,
                                  .drain_ms = DRAIN_MS,
                                  .is_locks = true,
                                  .files = 1,
                                  .held = held};
}

/* One client takes what is to be held. */
static bool take_all(struct rows *rows, struct file *file)
{
    struct peers_traffic hold = load(rows, "hold", file->held);
    uint64_t changes;
    hold.milliseconds = 0;
    hold.drain_ms = HOLD_MS;
    hold.source = HOLDER;
    if (peers_start_holdfastd(&file->server, file->store, 1000, NULL) &&
        peers_measure_locks(&file->server, &hold, &file->taking, &changes))
        return true;
    rows_fail(rows, "%u locks on one file: %s", file->held, peers_why());
    return false;
}

static bool measure_file(struct rows *rows, struct file *file)
{
    struct peers_traffic test = load(rows, "test", file->held),
                         pairs = load(rows, "pairs", file->held);
    uint64_t ignored;
    test.is_apart = true;
    if (peers_measure_locks(&file->server, &test, &file->test, &ignored) &&
        peers_measure_locks(&file->server, &pairs, &file->pairs, &ignored))
        return true;
    rows_fail(rows, "%u locks on the file: %s", file->held, peers_why());
    return false;
}

/* Neither the time of the server nor the rate may be worse than that. */
static void judge_ratio(struct report_line *line)
{
    bool is_cheap = report_cpu_ratio(line) <= RATIO_MAX && report_ratio(line) >= 1 / RATIO_MAX;
    line->verdict = is_cheap ? REPORT_PASS : REPORT_FAIL;
}

static void judge_taking(struct report_line *line, const struct file *file)
{
    double took_s = file->held / file->taking.rate;
    report_add_round(line, &file->taking, NULL);
    report_note(line, "taken in %.2f s", took_s);
    line->verdict = took_s <= TAKE_MAX_S ? REPORT_PASS : REPORT_FAIL;
}

/* FREE_ALL from the holder; tests/bench/lockers.c watches. */
static void free_all(struct rows *rows, struct file *file, struct report_line *line)
{
    struct process process = {0};
    char port[16], held[16], text[256];
    uint64_t took_ns, tests, calm_max_ns, max_ns;
    uint64_t before_ns = process_cpu_ns(&file->server.process);
    snprintf(port, sizeof(port), "%u", file->server.port);
    snprintf(held, sizeof(held), "%u", file->held);
    const char *arguments[] = {peers_tool("lockers"), "free", port, HOLDER, held, NULL};
    if (!process_start(&process, arguments) || process_wait_end(&process, FREE_LIMIT_MS) != 0 ||
        !process_last_line(&process, "free took_ns=", text, sizeof(text)) ||
        sscanf(text,
               "free took_ns=%" SCNu64 " tests=%" SCNu64 " calm_max_ns=%" SCNu64 " max_ns=%" SCNu64,
               &took_ns, &tests, &calm_max_ns, &max_ns) != 4) {
        rows_fail(rows, "FREE_ALL of %u locks: %s", file->held, process_last_words(&process));
        return;
    }
    uint64_t cpu_ns = process_cpu_ns(&file->server.process) - before_ns;
    double took_s = (double)took_ns / 1e9, delay_ms = (double)max_ns / 1e6;
    struct report_sample sample = {.rate = file->held / took_s,
                                   .cpu_us = (double)cpu_ns / 1e3 / file->held,
                                   .max_us = (double)max_ns / 1e3};
    report_add_round(line, &sample, NULL);
    report_note(line,
                "freed in %.3f s; %" PRIu64 " TESTs of another client meanwhile, the slowest took"
                " %.1f ms (before: %.1f ms)",
                took_s, tests, delay_ms, (double)calm_max_ns / 1e6);
    line->verdict = took_s < FREE_MAX_S && delay_ms <= DELAY_MAX_MS ? REPORT_PASS : REPORT_FAIL;
}

static struct report_line *add_line(struct rows *rows, const char *key, const char *format,
                                    uint32_t held, const char *other)
{
    char title[48];
    snprintf(title, sizeof(title), "%s%u%s", format, held, " on the file");
    return report_add_line(rows->report, key, title, other, 0);
}

void rows_file(struct rows *rows)
{
    uint32_t count = rows->is_quick ? 5000 : 100000;
    uint32_t rounds = rows->rounds < ROUNDS_MAX ? rows->rounds : ROUNDS_MAX;
    struct file few = {.store = "file-few", .held = FEW},
                many = {.store = "file-many", .held = count};
    struct report_line *taking = add_line(rows, "file-take", "LOCK, ", count, NULL);
    struct report_line *test = add_line(rows, "file-test", "TEST, ", count, "10 on it");
    struct report_line *pairs = add_line(rows, "file-pairs", "LOCK/UNLOCK, ", count, "10 on it");
    struct report_line *freeing = add_line(rows, "file-free", "FREE_ALL, ", count, NULL);
    rows_say("%u locks on one file", count);
    if (take_all(rows, &few) && take_all(rows, &many))
        judge_taking(taking, &many);
    for (uint32_t round = 1; round <= rounds && !rows->has_failed; round++) {
        rows_say("TEST, LOCK and UNLOCK on that file, round %u of %u", round, rounds);
        if (!measure_file(rows, &few) || !measure_file(rows, &many))
            break;
        report_add_round(test, &many.test, &few.test);
        report_add_round(pairs, &many.pairs, &few.pairs);
    }
    if (!rows->has_failed) {
        judge_ratio(test);
        judge_ratio(pairs);
        free_all(rows, &many, freeing);
    }
    peers_stop(&few.server, SIGKILL);
    peers_stop(&many.server, SIGKILL);
    peers_remove(few.store);
    peers_remove(many.store);
}

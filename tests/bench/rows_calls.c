/*
 * rows_calls.c -- rows of calls and answers; see rows.h.
 *
 * In each round every program is measured once, one after the other, under the same load; the
 * others are idle meanwhile. rpc.statd is started anew for each round of registrations: of the
 * 1,024 calls in flight it answers a few in the time it has, and would work on the rest for
 * minutes.
 */
#include "bench/rows.h"

#include "bench/peers.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#define CONNECTIONS 32
#define IN_FLIGHT   32
#define DRAIN_MS    10000
#define FILL_MS     60000
#define LEVELS      3
#define MON_ROUNDS  3

void rows_say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "bench: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
}

void rows_fail(struct rows *rows, const char *format, ...)
{
    va_list arguments;
    rows->has_failed = true;
    va_start(arguments, format);
    fprintf(stderr, "bench: WRONG: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
}

/* ---- NULL and SM_STAT ---- */

struct call_row {
    const char *key, *title, *kind;
    uint32_t connections, in_flight;
    double goal;
    bool with_statd;
    struct report_line *echo_line, *statd_line;
};

struct calls {
    struct peers_server holdfastd, echo, statd;
    bool has_echo, has_statd;
};

static void add_call_lines(struct rows *rows, struct call_row *row)
{
    char key[48];
    snprintf(key, sizeof(key), "%s-echo", row->key);
    row->echo_line = report_add_line(rows->report, key, row->title, "raw echo", row->goal);
    if (!row->with_statd)
        return;
    snprintf(key, sizeof(key), "%s-statd", row->key);
    row->statd_line = report_add_line(rows->report, key, row->title, "rpc.statd", 0);
}

static void measure_calls(struct rows *rows, const struct calls *calls, const struct call_row *row)
{
    struct peers_traffic traffic = {.kind = row->kind,
                                    .connections = row->connections,
                                    .in_flight = row->in_flight,
                                    .milliseconds = rows->is_quick ? 100 : 400,
                                    .drain_ms = DRAIN_MS,
                                    .is_apart = row->in_flight > 1};
    struct report_sample ours, theirs;
    if (!peers_measure(&calls->holdfastd, &traffic, &ours)) {
        rows_fail(rows, "%s, holdfastd: %s", row->title, peers_why());
        return;
    }
    if (calls->has_echo) {
        if (peers_measure(&calls->echo, &traffic, &theirs))
            report_add_round(row->echo_line, &ours, &theirs);
        else
            report_skip(row->echo_line, "the echo: %s", peers_why());
    }
    if (row->statd_line && calls->has_statd) {
        if (peers_measure(&calls->statd, &traffic, &theirs))
            report_add_round(row->statd_line, &ours, &theirs);
        else
            report_skip(row->statd_line, "rpc.statd: %s", peers_why());
    }
}

void rows_calls(struct rows *rows)
{
    struct call_row table[] = {
        {"null-32x32", "NULL, 32 x 32 in flight", "null", CONNECTIONS, IN_FLIGHT, 0.85, true, NULL,
         NULL},
        {"null-1x1", "NULL, 1 x 1", "null", 1, 1, 0, true, NULL, NULL},
        {"stat-32x32", "SM_STAT, 32 x 32 in flight", "stat", CONNECTIONS, IN_FLIGHT, 0.75, false,
         NULL, NULL},
    };
    const size_t count = sizeof(table) / sizeof(table[0]);
    struct calls calls;
    for (size_t i = 0; i < count; i++)
        add_call_lines(rows, &table[i]);
    if (!peers_start_holdfastd(&calls.holdfastd, "calls", 1000, NULL)) {
        rows_fail(rows, "%s", peers_why());
        return;
    }
    calls.has_echo = peers_start_echo(&calls.echo);
    for (size_t i = 0; !calls.has_echo && i < count; i++)
        report_skip(table[i].echo_line, "%s", peers_why());
    calls.has_statd = peers_start_statd(&calls.statd, "statd-calls", 0);
    for (size_t i = 0; !calls.has_statd && i < count; i++)
        if (table[i].statd_line)
            report_skip(table[i].statd_line, "%s", peers_why());
    for (uint32_t round = 1; round <= rows->rounds && !rows->has_failed; round++) {
        rows_say("NULL and SM_STAT, round %u of %u", round, rows->rounds);
        for (size_t i = 0; i < count && !rows->has_failed; i++)
            measure_calls(rows, &calls, &table[i]);
    }
    peers_stop(&calls.holdfastd, SIGTERM);
    peers_stop(&calls.echo, SIGTERM);
    peers_stop(&calls.statd, SIGKILL);
    peers_remove("calls");
    peers_remove("statd-calls");
}

/* ---- SM_MON and SM_UNMON ---- */

struct level {
    uint32_t registered;
    uint32_t statd_ms; /* 0: not measured against rpc.statd */
    char store[24], keys[24], statd[24], statd_keys[24];
    struct peers_server holdfastd;
    struct report_line *line;
};

static void prepare_level(struct rows *rows, struct level *level, uint32_t registered,
                          uint32_t statd_ms)
{
    char key[48], title[48];
    *level = (struct level){.registered = registered, .statd_ms = statd_ms};
    snprintf(level->store, sizeof(level->store), "mon-%u", registered);
    snprintf(level->keys, sizeof(level->keys), "mon-%u.keys", registered);
    snprintf(level->statd, sizeof(level->statd), "statd-%u", registered);
    snprintf(level->statd_keys, sizeof(level->statd_keys), "statd-%u.keys", registered);
    snprintf(key, sizeof(key), "mon-%u-%s", registered, statd_ms > 0 ? "statd" : "self");
    snprintf(title, sizeof(title), "SM_MON/UNMON, %u registered", registered);
    level->line =
        report_add_line(rows->report, key, title, statd_ms > 0 ? "rpc.statd" : "itself at 0",
                        registered == 10000    ? 1000
                        : registered == 100000 ? 0.7
                                               : 0);
}

static bool fill_level(struct rows *rows, struct level *level)
{
    struct peers_traffic fill = {.kind = "fill",
                                 .connections = CONNECTIONS,
                                 .in_flight = IN_FLIGHT,
                                 .drain_ms = FILL_MS,
                                 .registered = level->registered,
                                 .keys = level->keys};
    struct report_sample ignored;
    if (!peers_start_holdfastd(&level->holdfastd, level->store, level->registered + 10000, NULL) ||
        !peers_measure(&level->holdfastd, &fill, &ignored)) {
        rows_fail(rows, "%u registrations: %s", level->registered, peers_why());
        return false;
    }
    return true;
}

static bool measure_statd(struct level *level, struct report_sample *ret)
{
    struct peers_server statd;
    struct peers_traffic churn = {.kind = "churn",
                                  .connections = CONNECTIONS,
                                  .in_flight = IN_FLIGHT,
                                  .milliseconds = level->statd_ms,
                                  .registered = level->registered,
                                  .keys = level->statd_keys};
    if (!peers_start_statd(&statd, level->statd, level->registered)) {
        report_skip(level->line, "%s", peers_why());
        return false;
    }
    bool is_measured = peers_measure(&statd, &churn, ret);
    if (!is_measured)
        report_skip(level->line, "rpc.statd: %s", peers_why());
    peers_stop(&statd, SIGKILL);
    return is_measured;
}

/* `first` is what the first level reached in this round. */
static void measure_level(struct rows *rows, struct level *level, struct report_sample *first)
{
    struct peers_traffic churn = {.kind = "churn",
                                  .connections = CONNECTIONS,
                                  .in_flight = IN_FLIGHT,
                                  .milliseconds = rows->is_quick ? 150 : 1000,
                                  .drain_ms = DRAIN_MS,
                                  .registered = level->registered,
                                  .keys = level->keys};
    struct report_sample ours, theirs = {0};
    if (!peers_measure(&level->holdfastd, &churn, &ours)) {
        rows_fail(rows, "%s, holdfastd: %s", level->line->title, peers_why());
        return;
    }
    if (first->rate == 0)
        *first = ours;
    if (level->statd_ms == 0)
        report_add_round(level->line, &ours, first);
    else if (level->line->skipped[0] == '\0' && measure_statd(level, &theirs))
        report_add_round(level->line, &ours, &theirs);
}

/* kill -9, and a start: exactly as many must be there as were acknowledged. */
static void verify_level(struct rows *rows, struct level *level)
{
    peers_stop(&level->holdfastd, SIGKILL);
    if (!peers_start_holdfastd(&level->holdfastd, level->store, level->registered + 10000, NULL))
        rows_fail(rows, "after kill -9: %s", peers_why());
    else if (level->holdfastd.clients != level->registered)
        rows_fail(rows, "%u registrations are acknowledged, %u are there after kill -9",
                  level->registered, level->holdfastd.clients);
}

void rows_registrations(struct rows *rows)
{
    struct level levels[LEVELS];
    uint32_t rounds = rows->rounds < MON_ROUNDS ? rows->rounds : MON_ROUNDS;
    prepare_level(rows, &levels[0], 0, rows->is_quick ? 200 : 1000);
    prepare_level(rows, &levels[1], rows->is_quick ? 200 : 10000, rows->is_quick ? 500 : 4000);
    prepare_level(rows, &levels[2], rows->is_quick ? 2000 : 100000, 0);
    for (uint32_t i = 0; i < LEVELS && !rows->has_failed; i++)
        (void)fill_level(rows, &levels[i]); /* has_failed says it */
    for (uint32_t round = 1; round <= rounds && !rows->has_failed; round++) {
        struct report_sample first = {0};
        rows_say("durable SM_MON and SM_UNMON, round %u of %u", round, rounds);
        for (uint32_t i = 0; i < LEVELS && !rows->has_failed; i++)
            measure_level(rows, &levels[i], &first);
    }
    for (uint32_t i = 0; i < LEVELS; i++) {
        if (!rows->has_failed)
            verify_level(rows, &levels[i]);
        peers_stop(&levels[i].holdfastd, SIGKILL);
        peers_remove(levels[i].store);
        peers_remove(levels[i].statd);
    }
}

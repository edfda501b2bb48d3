/*
 * report.h -- what the bench found: ratios, a table, a file, and a comparison with an older file.
 *
 * A line compares holdfastd with one other program, or stands alone. Machines are noisy, so both
 * are measured in turns, round after round, and only the ratio inside a round means something; a
 * line shows the median of the rounds' ratios. The figures beside it are medians too, for
 * orientation.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define REPORT_ROUNDS_MAX 32
#define REPORT_LINES_MAX  80
#define REPORT_TEXT_MAX   240

/* One measurement. 0 means "not measured". */
struct report_sample {
    double rate;   /* operations per second */
    double cpu_us; /* of the server, per operation */
    double p50_us, p99_us, max_us;
};

enum report_verdict { REPORT_NO_GOAL, REPORT_PASS, REPORT_FAIL };

struct report_line {
    char key[48];   /* names the line in files */
    char title[48]; /* names it in the table */
    char other[24]; /* who is compared with; "" for nobody */
    char note[REPORT_TEXT_MAX], skipped[REPORT_TEXT_MAX];
    double goal;                 /* least ratio that is right; 0: none */
    double cpu_goal_us;          /* most CPU of an operation that is, with a goal; 0: none */
    enum report_verdict verdict; /* of a goal that is no ratio */
    uint32_t rounds;
    struct report_sample ours[REPORT_ROUNDS_MAX], theirs[REPORT_ROUNDS_MAX];
};

struct report {
    uint32_t lines_count;
    struct report_line lines[REPORT_LINES_MAX];
};

/* `other` may be NULL. Aborts when there are too many lines. */
struct report_line *report_add_line(struct report *report, const char *key, const char *title,
                                    const char *other, double goal);
/* One round; theirs may be NULL. Rounds beyond REPORT_ROUNDS_MAX are dropped. */
void report_add_round(struct report_line *line, const struct report_sample *ours,
                      const struct report_sample *theirs);
__attribute__((format(printf, 2, 3))) void report_skip(struct report_line *line, const char *format,
                                                       ...);
__attribute__((format(printf, 2, 3))) void report_note(struct report_line *line, const char *format,
                                                       ...);

/* Medians over the rounds; 0 when nothing was measured. */
struct report_sample report_ours(const struct report_line *line);
struct report_sample report_theirs(const struct report_line *line);
double report_ratio(const struct report_line *line);     /* of rates: more is better */
double report_cpu_ratio(const struct report_line *line); /* of CPU time: less is better */
double report_p99_ratio(const struct report_line *line); /* of slow answers: less is better */
/* Of the goal, if there is one and something was measured. */
enum report_verdict report_judge(const struct report_line *line);

void report_print(const struct report *report, FILE *out);
/* `about` is text for people: when, where, which version. False: errno says why. */
bool report_write(const struct report *report, const char *about, const char *path);
/* Compares with what report_write wrote. False: the file cannot be read, or holds no line. */
bool report_compare(const struct report *report, const char *path, FILE *out);

#endif

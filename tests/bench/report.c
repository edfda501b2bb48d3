/*
 * report.c -- what the bench found; see report.h.
 *
 * The file is JSON with one line of text for each line of the report, so that our own reader needs
 * no parser: it looks for the names of the fields. Text in it is ours and has no quotes; what is
 * not ours (last words of a program) is cleaned when it is taken.
 */
#include "bench/report.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

__attribute__((format(printf, 3, 0))) static void set_text(char *to, size_t size,
                                                           const char *format, va_list arguments)
{
    vsnprintf(to, size, format, arguments);
    for (char *at = to; *at != '\0'; at++)
        if (*at == '"' || *at == '\\' || (unsigned char)*at < ' ')
            *at = '\'';
}

struct report_line *report_add_line(struct report *report, const char *key, const char *title,
                                    const char *other, double goal)
{
    if (report->lines_count == REPORT_LINES_MAX) {
        fprintf(stderr, "report_add_line: more than %d lines\n", REPORT_LINES_MAX);
        abort();
    }
    struct report_line *line = &report->lines[report->lines_count++];
    *line = (struct report_line){.goal = goal};
    snprintf(line->key, sizeof(line->key), "%s", key);
    snprintf(line->title, sizeof(line->title), "%s", title);
    snprintf(line->other, sizeof(line->other), "%s", other ? other : "");
    return line;
}

void report_add_round(struct report_line *line, const struct report_sample *ours,
                      const struct report_sample *theirs)
{
    if (line->rounds == REPORT_ROUNDS_MAX)
        return;
    line->ours[line->rounds] = *ours;
    line->theirs[line->rounds] = theirs ? *theirs : (struct report_sample){0};
    line->rounds++;
}

void report_skip(struct report_line *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set_text(line->skipped, sizeof(line->skipped), format, arguments);
    va_end(arguments);
}

void report_note(struct report_line *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set_text(line->note, sizeof(line->note), format, arguments);
    va_end(arguments);
}

static int compare_numbers(const void *a, const void *b)
{
    double x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return (x > y) - (x < y);
}

/* Of the values that are there: 0 means "not measured". */
static double median(const double *values, uint32_t count)
{
    double sorted[REPORT_ROUNDS_MAX];
    uint32_t used = 0;
    for (uint32_t i = 0; i < count; i++)
        if (values[i] > 0)
            sorted[used++] = values[i];
    if (used == 0)
        return 0;
    qsort(sorted, used, sizeof(sorted[0]), compare_numbers);
    return used % 2 == 1 ? sorted[used / 2] : (sorted[used / 2 - 1] + sorted[used / 2]) / 2;
}

static struct report_sample middle(const struct report_sample *samples, uint32_t count)
{
    double fields[5][REPORT_ROUNDS_MAX];
    for (uint32_t i = 0; i < count; i++) {
        fields[0][i] = samples[i].rate;
        fields[1][i] = samples[i].cpu_us;
        fields[2][i] = samples[i].p50_us;
        fields[3][i] = samples[i].p99_us;
        fields[4][i] = samples[i].max_us;
    }
    return (struct report_sample){median(fields[0], count), median(fields[1], count),
                                  median(fields[2], count), median(fields[3], count),
                                  median(fields[4], count)};
}

struct report_sample report_ours(const struct report_line *line)
{
    return middle(line->ours, line->rounds);
}

struct report_sample report_theirs(const struct report_line *line)
{
    return middle(line->theirs, line->rounds);
}

double report_ratio(const struct report_line *line)
{
    double ratios[REPORT_ROUNDS_MAX] = {0};
    for (uint32_t i = 0; i < line->rounds; i++)
        if (line->theirs[i].rate > 0)
            ratios[i] = line->ours[i].rate / line->theirs[i].rate;
    return median(ratios, line->rounds);
}

double report_cpu_ratio(const struct report_line *line)
{
    double ratios[REPORT_ROUNDS_MAX] = {0};
    for (uint32_t i = 0; i < line->rounds; i++)
        if (line->theirs[i].cpu_us > 0)
            ratios[i] = line->ours[i].cpu_us / line->theirs[i].cpu_us;
    return median(ratios, line->rounds);
}

double report_p99_ratio(const struct report_line *line)
{
    double ratios[REPORT_ROUNDS_MAX] = {0};
    for (uint32_t i = 0; i < line->rounds; i++)
        if (line->theirs[i].p99_us > 0)
            ratios[i] = line->ours[i].p99_us / line->theirs[i].p99_us;
    return median(ratios, line->rounds);
}

enum report_verdict report_judge(const struct report_line *line)
{
    double ratio = report_ratio(line);
    if (line->goal == 0 || line->skipped[0] != '\0' || ratio == 0)
        return line->verdict;
    bool is_cheap = line->cpu_goal_us == 0 || report_ours(line).cpu_us <= line->cpu_goal_us;
    return ratio >= line->goal && is_cheap ? REPORT_PASS : REPORT_FAIL;
}

/* "1234567" with separators, "12.3", "-" for nothing; valid until the fourth call after it. */
static const char *number(double value, int digits)
{
    static char texts[4][40];
    static uint32_t turn;
    char plain[40], *text = texts[turn++ % 4];
    if (value == 0)
        return "-";
    if (value < 1000) {
        snprintf(text, sizeof(texts[0]), "%.*f", digits, value);
        return text;
    }
    int len = snprintf(plain, sizeof(plain), "%.0f", value), out = 0;
    for (int i = 0; i < len && out < (int)sizeof(texts[0]) - 2; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            text[out++] = ',';
        text[out++] = plain[i];
    }
    text[out] = '\0';
    return text;
}

static void print_line(const struct report_line *line, FILE *out)
{
    static const char *const verdicts[] = {"", "PASS", "FAIL"};
    struct report_sample ours = report_ours(line), theirs = report_theirs(line);
    if (line->skipped[0] != '\0') {
        fprintf(out, "%-34s %-12s skipped: %s\n", line->title, line->other, line->skipped);
        return;
    }
    fprintf(out, "%-34s %-12s %11s %11s %9s", line->title, line->other, number(ours.rate, 1),
            number(theirs.rate, 1), number(report_ratio(line), 2));
    fprintf(out, " %9s %10s %7s %10s", number(ours.cpu_us, 2), number(theirs.cpu_us, 2),
            number(report_cpu_ratio(line), 2), number(ours.p50_us, 0));
    fprintf(out, " %10s", number(ours.p99_us, 0));
    if (line->cpu_goal_us > 0)
        fprintf(out, "  %s (>= %g, <= %g us)", verdicts[report_judge(line)], line->goal,
                line->cpu_goal_us);
    else if (line->goal > 0)
        fprintf(out, "  %s (>= %g)", verdicts[report_judge(line)], line->goal);
    else if (line->verdict != REPORT_NO_GOAL)
        fprintf(out, "  %s", verdicts[line->verdict]);
    fprintf(out, "\n");
    if (line->note[0] != '\0')
        fprintf(out, "%-34s %s\n", "", line->note);
}

void report_print(const struct report *report, FILE *out)
{
    fprintf(out, "%-34s %-12s %33s %27s %20s\n", "", "", "operations per second",
            "server CPU us/operation", "our latency, us");
    fprintf(out, "%-34s %-12s %11s %11s %9s %9s %10s %7s %10s %10s  %s\n", "what", "other", "ours",
            "other's", "ratio", "ours", "other's", "ratio", "p50", "p99", "goal");
    for (uint32_t i = 0; i < report->lines_count; i++)
        print_line(&report->lines[i], out);
}

static void write_line(const struct report_line *line, bool is_last, FILE *file)
{
    struct report_sample ours = report_ours(line), theirs = report_theirs(line);
    fprintf(file, "    {\"key\": \"%s\", \"title\": \"%s\", \"other\": \"%s\", \"rounds\": %u,",
            line->key, line->title, line->other, line->rounds);
    fprintf(file, " \"rate\": %.3f, \"other_rate\": %.3f, \"ratio\": %.5f,", ours.rate, theirs.rate,
            report_ratio(line));
    fprintf(file, " \"cpu_us\": %.4f, \"other_cpu_us\": %.4f, \"cpu_ratio\": %.5f,", ours.cpu_us,
            theirs.cpu_us, report_cpu_ratio(line));
    fprintf(file, " \"p50_us\": %.1f, \"p99_us\": %.1f, \"max_us\": %.1f, \"goal\": %g,",
            ours.p50_us, ours.p99_us, ours.max_us, line->goal);
    fprintf(file, " \"note\": \"%s\", \"skipped\": \"%s\"}%s\n", line->note, line->skipped,
            is_last ? "" : ",");
}

bool report_write(const struct report *report, const char *about, const char *path)
{
    FILE *file = fopen(path, "we");
    if (!file)
        return false;
    fprintf(file, "{\n  \"format\": 1,\n  \"about\": \"%s\",\n  \"lines\": [\n", about);
    for (uint32_t i = 0; i < report->lines_count; i++)
        write_line(&report->lines[i], i + 1 == report->lines_count, file);
    fprintf(file, "  ]\n}\n");
    return fclose(file) == 0;
}

static double field(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at ? strtod(at + strlen(name), NULL) : 0;
}

static void compare_line(const struct report_line *line, const char *then, FILE *out)
{
    double ratio = report_ratio(line), cpu = report_cpu_ratio(line);
    double ratio_then = field(then, "\"ratio\": "), cpu_then = field(then, "\"cpu_ratio\": ");
    fprintf(out, "%-34s %-12s %10s %10s %8s", line->title, line->other, number(ratio_then, 3),
            number(ratio, 3), number(ratio_then > 0 ? ratio / ratio_then : 0, 2));
    fprintf(out, " %10s %10s", number(cpu_then, 3), number(cpu, 3));
    fprintf(out, " %8s\n", number(cpu_then > 0 ? cpu / cpu_then : 0, 2));
}

bool report_compare(const struct report *report, const char *path, FILE *out)
{
    FILE *file = fopen(path, "re");
    char *text = NULL, key[64];
    size_t size = 0;
    uint32_t found = 0;
    if (!file)
        return false;
    fprintf(out,
            "\nCompared with %s (ratios to the other program; the last column of each three"
            " is now / then)\n",
            path);
    fprintf(out, "%-34s %-12s %10s %10s %8s %10s %10s %8s\n", "what", "other", "rate then", "now",
            "change", "CPU then", "now", "change");
    while (getline(&text, &size, file) > 0) {
        for (uint32_t i = 0; i < report->lines_count; i++) {
            const struct report_line *line = &report->lines[i];
            snprintf(key, sizeof(key), "\"key\": \"%s\"", line->key);
            if (line->other[0] == '\0' || !strstr(text, key))
                continue;
            found++;
            if (line->skipped[0] == '\0' && strstr(text, "\"skipped\": \"\""))
                compare_line(line, text, out);
            else
                fprintf(out, "%-34s %-12s skipped now or then\n", line->title, line->other);
        }
    }
    free(text);
    fclose(file);
    return found > 0;
}

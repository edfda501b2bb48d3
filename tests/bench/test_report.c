/*
 * test_report.c -- the figures of the bench: ratios are made inside a round, the median ignores
 * what was not measured, goals are judged by it, and a written file can be compared with.
 */
#include "bench/report.h"
#include "unit/test.h"

#include <unistd.h>

static struct report report;

static struct report_line *fresh(double goal)
{
    report = (struct report){0};
    return report_add_line(&report, "key", "title", "other", goal);
}

static void add(struct report_line *line, double ours, double theirs)
{
    struct report_sample a = {.rate = ours, .cpu_us = 1, .p99_us = theirs},
                         b = {.rate = theirs, .cpu_us = 2, .p99_us = ours};
    report_add_round(line, &a, &b);
}

/* What the report prints, as one text that the caller frees. */
static char *printed(const char *compare_with)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    if (!compare_with)
        report_print(&report, out);
    else
        assert_true(report_compare(&report, compare_with, out));
    fclose(out);
    return text;
}

TEST(test_report__ratios_are_made_inside_a_round)
{
    struct report_line *line = fresh(0);
    add(line, 100, 200); /* the machine is fast */
    add(line, 10, 20);   /* slow */
    add(line, 5, 50);    /* disturbed */
    assert_float_equal(report_ratio(line), 0.5, 1e-9);
    assert_float_equal(report_cpu_ratio(line), 0.5, 1e-9);
    assert_float_equal(report_p99_ratio(line), 2, 1e-9);
    assert_float_equal(report_ours(line).rate, 10, 1e-9);
    assert_float_equal(report_theirs(line).rate, 50, 1e-9);
}

TEST(test_report__median_of_an_even_count_is_between)
{
    struct report_line *line = fresh(0);
    add(line, 1, 1);
    add(line, 3, 1);
    assert_float_equal(report_ratio(line), 2, 1e-9);
}

TEST(test_report__what_was_not_measured_does_not_count)
{
    struct report_line *line = fresh(2);
    assert_float_equal(report_ratio(line), 0, 0);
    assert_int_equal(report_judge(line), REPORT_NO_GOAL);
    add(line, 9, 0);
    add(line, 9, 3);
    assert_float_equal(report_ratio(line), 3, 1e-9);
}

TEST(test_report__goals_are_judged)
{
    struct report_line *line = fresh(0.6);
    add(line, 6, 10);
    assert_int_equal(report_judge(line), REPORT_PASS);
    line->cpu_goal_us = 1; /* as much as it took */
    assert_int_equal(report_judge(line), REPORT_PASS);
    line->cpu_goal_us = 0.9;
    assert_int_equal(report_judge(line), REPORT_FAIL);
    line = fresh(0.6);
    add(line, 59, 100);
    assert_int_equal(report_judge(line), REPORT_FAIL);
    char *text = printed(NULL);
    assert_non_null(strstr(text, "FAIL (>= 0.6)"));
    free(text);
    report_skip(line, "it is not there");
    assert_int_equal(report_judge(line), REPORT_NO_GOAL);
}

TEST(test_report__rounds_beyond_the_limit_are_dropped)
{
    struct report_line *line = fresh(0);
    for (uint32_t i = 0; i < REPORT_ROUNDS_MAX + 5; i++)
        add(line, 1, 1);
    assert_int_equal(line->rounds, REPORT_ROUNDS_MAX);
}

TEST(test_report__a_skipped_line_says_why)
{
    struct report_line *line = fresh(0);
    report_skip(line, "\"%s\"\n", "quoted");
    assert_string_equal(line->skipped, "'quoted''");
    char *text = printed(NULL);
    assert_non_null(strstr(text, "skipped: 'quoted''"));
    free(text);
}

TEST(test_report__a_file_is_compared_with)
{
    char path[] = "/tmp/holdfast-report-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    add(fresh(0), 10, 40);
    assert_true(report_write(&report, "about", path));
    add(fresh(0), 20, 40);
    char *text = printed(path);
    assert_non_null(strstr(text, "0.250"));
    assert_non_null(strstr(text, "0.500"));
    assert_non_null(strstr(text, "2.00"));
    free(text);
    report_skip(&report.lines[0], "gone");
    text = printed(path);
    assert_non_null(strstr(text, "skipped now or then"));
    free(text);
    snprintf(report.lines[0].key, sizeof(report.lines[0].key), "another");
    FILE *nowhere = fopen("/dev/null", "w");
    assert_false(report_compare(&report, path, nowhere));
    unlink(path);
    assert_false(report_compare(&report, path, nowhere));
    fclose(nowhere);
}

TEST_MAIN(NULL, NULL, NULL, NULL)

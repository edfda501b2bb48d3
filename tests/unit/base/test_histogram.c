/*
 * test_histogram.c -- shows where values are counted, at, below and above every bound, and that the
 * texts of the scales are what their bounds are.
 */
#include "base/histogram.h"
#include "unit/test.h"

TEST(test_histogram__counts_up_to_and_including_a_bound)
{
    const struct histogram_scale *const scales[] = {&histogram_durations, &histogram_counts};
    for (size_t i = 0; i < 2; i++) {
        struct histogram histogram;
        histogram_init(&histogram, scales[i]);
        uint64_t sum = 0;
        for (uint32_t j = 0; j < scales[i]->count; j++) {
            histogram_add(&histogram, scales[i]->bounds[j]);
            histogram_add(&histogram, scales[i]->bounds[j] + 1);
            sum += 2 * scales[i]->bounds[j] + 1;
        }
        /* Bounds 1 and 2 are neighbours: 1 + 1 is the second bound itself. */
        assert_int_equal(histogram.counts[0], 1);
        assert_int_equal(histogram.counts[scales[i]->count], 1);
        assert_int_equal(histogram_total(&histogram), 2 * scales[i]->count);
        assert_int_equal(histogram.sum, sum);
        histogram_add(&histogram, 0);
        histogram_add(&histogram, UINT64_MAX / 2);
        assert_int_equal(histogram.counts[0], 2);
        assert_int_equal(histogram.counts[scales[i]->count], 2);
    }
}

TEST(test_histogram__scales_ascend_and_say_what_they_are)
{
    assert_int_equal(histogram_durations.bounds[0], 10000);
    assert_int_equal(histogram_durations.bounds[histogram_durations.count - 1], 10000000000);
    for (uint32_t i = 0; i < histogram_durations.count; i++) {
        double seconds = strtod(histogram_durations.texts[i], NULL);
        assert_true(seconds * 1e9 > (double)histogram_durations.bounds[i] - 0.5 &&
                    seconds * 1e9 < (double)histogram_durations.bounds[i] + 0.5);
        assert_true(i == 0 || histogram_durations.bounds[i] > histogram_durations.bounds[i - 1]);
    }
    for (uint32_t i = 0; i < histogram_counts.count; i++) {
        assert_int_equal(strtoull(histogram_counts.texts[i], NULL, 10), histogram_counts.bounds[i]);
        assert_true(i == 0 || histogram_counts.bounds[i] > histogram_counts.bounds[i - 1]);
    }
}

TEST_MAIN(NULL, NULL, NULL, NULL)

/*
 * histogram.h -- how many values fell between which bounds, and their sum.
 *
 * Adding costs a few comparisons and touches one cache line or two; nothing is ever allocated. A
 * value equal to a bound counts below it, as in Prometheus' "le".
 */
#ifndef BASE_HISTOGRAM_H
#define BASE_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BOUNDS_MAX 20

/* Ascending bounds, with the text of each for printing. */
struct histogram_scale {
    uint32_t count;
    uint64_t bounds[HISTOGRAM_BOUNDS_MAX];
    const char *texts[HISTOGRAM_BOUNDS_MAX];
};

/* 10 us to 10 s, in nanoseconds; the texts are seconds. */
extern const struct histogram_scale histogram_durations;
/* 1 to 8,192 by powers of two. */
extern const struct histogram_scale histogram_counts;

struct histogram {
    const struct histogram_scale *scale;
    uint64_t sum;
    uint64_t counts[HISTOGRAM_BOUNDS_MAX + 1]; /* the last one: above every bound */
};

void histogram_init(struct histogram *histogram, const struct histogram_scale *scale);
void histogram_add(struct histogram *histogram, uint64_t value);
/* How many values there were. */
uint64_t histogram_total(const struct histogram *histogram);

#endif

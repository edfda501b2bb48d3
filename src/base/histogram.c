/*
 * histogram.c -- see histogram.h.
 */
#include "base/histogram.h"

#include "base/units.h"

#define US UINT64_C(1000)
#define MS MS_NS
#define S  SECOND_NS

const struct histogram_scale histogram_durations = {
    .count = 19,
    .bounds = {10 * US, 25 * US, 50 * US, 100 * US, 250 * US, 500 * US, 1 * MS, 2500 * US, 5 * MS,
               10 * MS, 25 * MS, 50 * MS, 100 * MS, 250 * MS, 500 * MS, 1 * S, 2500 * MS, 5 * S,
               10 * S},
    .texts = {"0.00001", "0.000025", "0.00005", "0.0001", "0.00025", "0.0005", "0.001", "0.0025",
              "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1", "2.5", "5", "10"},
};

const struct histogram_scale histogram_counts = {
    .count = 14,
    .bounds = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192},
    .texts = {"1", "2", "4", "8", "16", "32", "64", "128", "256", "512", "1024", "2048", "4096",
              "8192"},
};

void histogram_init(struct histogram *histogram, const struct histogram_scale *scale)
{
    *histogram = (struct histogram){.scale = scale};
}

void histogram_add(struct histogram *histogram, uint64_t value)
{
    const struct histogram_scale *scale = histogram->scale;
    uint32_t at = 0;
    while (at < scale->count && value > scale->bounds[at])
        at++;
    histogram->counts[at]++;
    histogram->sum += value;
}

uint64_t histogram_total(const struct histogram *histogram)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i <= histogram->scale->count; i++)
        total += histogram->counts[i];
    return total;
}

/*
 * metric.h -- writes metrics in Prometheus' text format, version 0.0.4.
 *
 * A metric is written by metric_begin() and one metric_add() per sample. Label values are written
 * as they are: who passes anything but a constant escapes it.
 */
#ifndef ADMIN_METRIC_H
#define ADMIN_METRIC_H

#include "base/histogram.h"
#include "base/text.h"

/* A label and its value; `key` NULL: none. */
struct metric_label {
    const char *key;
    const char *value;
};

void metric_begin(struct text *out, const char *name, const char *type, const char *help);
void metric_add(struct text *out, const char *name, const struct metric_label *first,
                const struct metric_label *second, uint64_t value);
void metric_histogram(struct text *out, const char *name, const struct metric_label *label,
                      const struct histogram *histogram);

/* Whole metrics: one sample without labels; the same in seconds; two results of one counter. */
void metric_one(struct text *out, const char *name, const char *type, const char *help,
                uint64_t value);
void metric_seconds(struct text *out, const char *name, const char *type, const char *help,
                    uint64_t ns);
void metric_results(struct text *out, const char *name, const char *help,
                    const char *const words[2], const uint64_t values[2]);

#endif

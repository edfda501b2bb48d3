/*
 * metrics.h -- GET /metrics: counters for Prometheus.
 *
 * Names, labels and their values are a contract with alert rules and dashboards; docs/metrics.md
 * lists them. A scrape costs the same whatever is stored: events are counted as they happen.
 */
#ifndef ADMIN_METRICS_H
#define ADMIN_METRICS_H

#include "admin/exchange.h"

void metrics_answer(struct exchange *exchange);

#endif

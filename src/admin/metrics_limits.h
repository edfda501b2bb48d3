/*
 * metrics_limits.h -- metrics of limits and of the process: what there may be beside what there is.
 *
 * A limit and its use are two metrics with the same label, so one rule can compare all of them.
 */
#ifndef ADMIN_METRICS_LIMITS_H
#define ADMIN_METRICS_LIMITS_H

#include "admin/admin.h"

void metrics_limits_add(struct text *out, const struct admin *admin);

#endif

/*
 * monitoring.h -- what the procedures of NSM decide.
 */
#ifndef CORE_MONITORING_H
#define CORE_MONITORING_H

#include "core/message.h"

struct core;

/* Any request of NSM. */
void monitoring_answer(struct core *core, const struct peer *from, const struct request *request,
                       struct response *ret);

#endif

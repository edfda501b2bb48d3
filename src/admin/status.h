/*
 * status.h -- GET /api/v1/status: one screen, whatever is stored.
 */
#ifndef ADMIN_STATUS_H
#define ADMIN_STATUS_H

#include "admin/exchange.h"
#include "core/view.h"

void status_answer(struct exchange *exchange);
/* The same as a value, also for the event stream. */
void status_write(struct writer *writer, const struct admin *admin);

#endif

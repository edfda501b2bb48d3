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

/*
 * Of what a client has in a recovery, how much it has reclaimed: locks and share reservations. What
 * is left is counted in pieces, so while a lock is reclaimed in part this may be too low, never too
 * high.
 */
uint32_t status_reclaimed(const struct view_client *view);

#endif

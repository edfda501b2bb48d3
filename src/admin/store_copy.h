/*
 * store_copy.h -- GET /api/v1/store: a copy of the store as of one batch, as lines of JSON.
 *
 * Over the control socket only. The server's thread does no more than pass bytes on: the lines are
 * made by the store thread, in what time its commits leave (store/copy.h).
 *
 * Who stops reading, or reads too slowly, is cut off: others wait for their turn.
 */
#ifndef ADMIN_STORE_COPY_H
#define ADMIN_STORE_COPY_H

#include "admin/exchange.h"

/* The header that says which store it is. */
#define STORE_COPY_HEADER "Holdfast-Store"

/* The route. */
void store_copy_answer(struct exchange *exchange);

#endif

/*
 * tracked.h -- the routes of tracked clients: how a server of another protocol registers them,
 * finds them again, and hears whose time has run out (core/tracking.h).
 *
 *   PUT    /api/v1/tracked/{protocol}/{key}             register
 *   GET    /api/v1/tracked/{protocol}/{key}
 *   PATCH  /api/v1/tracked/{protocol}/{key}             other bytes
 *   DELETE /api/v1/tracked/{protocol}/{key}
 *   POST   /api/v1/tracked/{protocol}/{key}/reconnect
 *   POST   /api/v1/tracked/{protocol}/{key}/disconnect
 *   POST   /api/v1/tracked/{protocol}/expired           the next whose time has run out
 *   GET    /api/v1/tracked
 *
 * A key in a path, and in every response, is text; "hex:0a0b" is one of other bytes. The bytes of
 * its protocol are shown over the control socket only.
 */
#ifndef ADMIN_TRACKED_H
#define ADMIN_TRACKED_H

#include "admin/exchange.h"

void tracked_register(struct exchange *exchange);
void tracked_reconnect(struct exchange *exchange);
void tracked_disconnect(struct exchange *exchange);
void tracked_update(struct exchange *exchange);
void tracked_remove(struct exchange *exchange);
void tracked_take(struct exchange *exchange);
void tracked_show(struct exchange *exchange);
void tracked_list(struct exchange *exchange);

/* "connected", "disconnected", "expired". */
const char *tracked_word(enum record_tracked_state state);
/* The members of a client, inside an object that has begun. */
void tracked_add(struct writer *out, const struct tracker_view *view, bool has_bytes);

#endif

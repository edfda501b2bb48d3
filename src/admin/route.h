/*
 * route.h -- the table of routes; everything else is refused.
 *
 *   GET    /, /page.js, /page.css       the web page
 *   GET    /healthz                     200: the server is responsive
 *   GET    /readyz                      200: clients are served; 503: the reason in words
 *   GET    /metrics                     counters, for Prometheus
 *   GET    /api/v1/status               state, counts, grace and who is missing, store, rpcbind
 *   GET    /api/v1/config               every option, its value and origin
 *   GET    /api/v1/clients              ?match, ?state, ?limit and ?cursor as all lists below
 *   GET    /api/v1/clients/{id}
 *   GET    /api/v1/locks                ?match, ?client, ?file, ?share, ?export
 *   GET    /api/v1/waiters              the same
 *   GET    /api/v1/notifications        notifications of our restart
 *   GET    /api/v1/shares               the named sets of files
 *   GET    /api/v1/exports              exported directories, their clients, how much they are used
 *   GET    /api/v1/samples              what was going on in the last hour (samples.h)
 *   GET    /api/v1/events               what happens, as it happens (events.h)
 *   DELETE /api/v1/grace                control socket: end the grace period
 *   DELETE /api/v1/clients/{id}         control socket: release its locks; ?file: on that file
 *   POST   /api/v1/clients/{id}/notify  control socket: notify it again
 *   POST   /api/v1/reload               control socket: read the options again
 *   ...    /api/v1/tracked              clients of other protocols (tracked.h)
 *
 * Any other path is a 404, another method a 405 with Allow, a change that does not come over the
 * control socket a 403, a parameter that is unknown, empty or repeated a 400. Errors are JSON,
 * {"error": ..., "hint": ...}.
 */
#ifndef ADMIN_ROUTE_H
#define ADMIN_ROUTE_H

#include "admin/exchange.h"

/*
 * Fills in route, answer and id of an exchange whose path is set. False: refused, with a response.
 */
bool route_find(struct exchange *exchange, const char *method);
/* Of the route that was found. */
bool route_takes_body(const struct exchange *exchange);
/* For libmicrohttpd: percent-encoding, in paths and parameters. */
size_t route_unescape(void *context, struct MHD_Connection *connection, char *text);

#endif

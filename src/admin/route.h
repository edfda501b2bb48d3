/*
 * route.h -- the table of what can be asked for, and the refusal of everything else.
 *
 *   GET    /                            the web page
 *   GET    /healthz                     200: the loop turns
 *   GET    /readyz                      200: clients are served; 503: the reason in words
 *   GET    /metrics                     counters, for Prometheus
 *   GET    /api/v1/status               state, counts, grace and who is missing, store, rpcbind
 *   GET    /api/v1/config               every option, its value, and who set it
 *   GET    /api/v1/clients              ?state, and ?limit and ?cursor as all lists below
 *   GET    /api/v1/clients/{id}
 *   GET    /api/v1/locks                ?client, ?file, ?share
 *   GET    /api/v1/waiters              the same
 *   GET    /api/v1/notifications        who is told of our restart
 *   GET    /api/v1/shares               the named sets of files
 *   GET    /api/v1/events               what happens, as it happens (events.h)
 *   DELETE /api/v1/grace                control socket: grace is over
 *   DELETE /api/v1/clients/{id}         control socket: free what it has; ?file: there
 *   POST   /api/v1/clients/{id}/notify  control socket: tell it of our state once more
 *
 * A path that is not here is a 404, another method a 405 with Allow, a change that does not come
 * over the control socket a 403, a parameter that the route does not know, that has no value or
 * comes twice a 400. Errors are JSON, {"error": ..., "hint": ...}.
 */
#ifndef ADMIN_ROUTE_H
#define ADMIN_ROUTE_H

#include "admin/exchange.h"

/*
 * Fills in route, answer and id of an exchange whose path is set. False: it is refused, and that is
 * its answer.
 */
bool route_find(struct exchange *exchange, const char *method);

#endif

/*
 * events.h -- GET /api/v1/events: what happens, as it happens (server-sent events).
 *
 *   event: status     every second, and first of all: what /api/v1/status says
 *   event: KIND       something happened: registered, client_added, blocked, granted,
 *                     client_rebooted, not_reached, grace_over, holder_silent, ...
 *                     {"time", "kind", "address", "name", "value"}
 *   event: more       {"count"}: so many things happened that were not sent one by one
 *   event: lost       {"count"}: the reader was too slow for those, or too long away
 *
 * The newest KEPT_MAX events are kept, once for all streams; a stream is a place among them. A
 * reader that comes back within that says how far it got (Last-Event-ID, or ?after=) and misses
 * nothing; ?after=0 is for one that comes for the first time and wants to know what happened
 * before. Ids are RUN-NUMBER: a reader that comes back after a restart, which is what it waits for,
 * has an id of another run and gets everything that is kept of this one. A status has no id and is
 * not kept: the next one says all of it. Memory is bounded whatever readers do: one that does not
 * read loses events, then its connection.
 *
 * Events are kept even while nobody listens: the next reader may be one that comes back. The status
 * is made only for readers.
 */
#ifndef ADMIN_EVENTS_H
#define ADMIN_EVENTS_H

#include "admin/exchange.h"

#include <uv.h>

struct events;

/* `run` is unique to this run. NULL: no memory. */
struct events *events_new(uv_loop_t *loop, const struct admin *admin, uint64_t run);
/* When every endpoint is freed; the memory goes when the loop has closed the timer. NULL is legal.
 */
void events_free(struct events *events);
/* The name of an event in a stream; NULL: for the log only. */
const char *events_name(enum event_kind kind);

/* The end of a turn: sends what the core reported, before the log takes it, and takes what it
 * reports for streams only. */
void events_turn(struct events *events, const struct event_ring *reported, struct event_ring *feed);

/* The route. */
void events_answer(struct exchange *exchange);

#endif

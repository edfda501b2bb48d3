/*
 * session.h -- sessions of another protocol, which use the tracker (D15): register, lose their
 * connection, come back, or run out of time.
 *
 *  T1  What was stored is there after any crash, with the id and the bytes that were stored last or
 *      newer ones; what was removed does not come back (P1).
 *  T2  Nobody's time is over before it is: after a disconnection its time to live, after a restart
 *      the window at least, from readiness on. Until then it comes back with id and bytes as they
 *      were.
 *  T3  Whose time is over waits for its protocol, also over restarts, until it is removed, and is
 *      handed out again when the one who took it never heard of it; with faults off everybody's
 *      time ends, and nothing is left.
 *
 * What a session does is done in one step of the core, and counts as stored when a batch that was
 * taken later is.
 */
#ifndef SIM_SESSION_H
#define SIM_SESSION_H

#include "world.h"

/* Nothing when the plan has no sessions. */
void session_init(struct world *world);
void session_done(struct world *world);

/* One of them does something. */
void session_act(struct world *world);
/* The batch that was taken last is durable. */
void session_stored(struct world *world);
/* The server has started; it is ready. */
void session_started(struct world *world);
void session_ready(struct world *world);

/* In the calm: everybody has left. */
bool session_all_finished(const struct world *world);
void session_check_empty(struct world *world);

#endif

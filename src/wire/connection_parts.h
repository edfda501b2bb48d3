/*
 * connection_parts.h -- the insides of a connection, for connection.c and connection_write.c.
 */
#ifndef WIRE_CONNECTION_PARTS_H
#define WIRE_CONNECTION_PARTS_H

#include "wire/connection.h"

/* A peer that sent EOF and got every reply is closed. */
void connection_finish(struct connection *c);
/* One that is in the middle of a record, or of its replies, waits for the peer to move; see tcp.c
 * for what follows. */
void connection_note_waiting(struct connection *c);
/* The peer has moved: a record is complete, or replies were read. Its time starts again. */
void connection_note_progress(struct connection *c);

#endif

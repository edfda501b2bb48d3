/*
 * connection_parts.h -- the insides of a connection, for connection.c, connection_inlet.c and
 * connection_write.c.
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

/* ---- connection_inlet.c ---- */

/* True: what is missing of the record goes into a pipe. */
bool connection_open_inlet(struct connection *c);
/* From the socket into the pipe: how many bytes. 0: none, the pipe is left, and who reads next
 * learns why. */
uint32_t connection_fill_inlet(struct connection *c);
/* Its record was dealt with, or the connection ends: what is in the pipe is not needed any more. */
void connection_drop_inlet(struct connection *c);

#endif

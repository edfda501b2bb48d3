/*
 * start_serve.h -- the steps of the start that join the parts that turn; when they are ready, and
 * the lines that say so.
 */
#ifndef DAEMON_START_SERVE_H
#define DAEMON_START_SERVE_H

#include "daemon/daemon.h"

/* What reads and writes our sockets. */
int start_serve_files(struct daemon *daemon);
int start_serve_wire(struct daemon *daemon);
/* Calls of our own, and the resolver. */
int start_serve_calls(struct daemon *daemon);
/* The loop's turn, and the store thread. */
int start_serve_driver(struct daemon *daemon);
/* From here on clients are answered. */
int start_serve_listen(struct daemon *daemon);
int start_serve_register(struct daemon *daemon);
/* Until it is told to stop, or must. Returns the exit code. */
int start_serve_run(struct daemon *daemon);

/* For the registrar: the registration stands, as far as that is possible (10.1); or the start has
 * failed after all. */
void start_serve_registered(void *context, int exit_code);

#endif

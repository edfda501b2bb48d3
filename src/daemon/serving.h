/*
 * serving.h -- the parts that turn, joined; when they are ready, and the lines that say so.
 */
#ifndef DAEMON_SERVING_H
#define DAEMON_SERVING_H

#include "daemon/daemon.h"

/* From here on clients are answered. */
int serving_start(struct daemon *daemon);
/* For the registrar: the registration stands, as far as that is possible (10.1); or the start has
 * failed after all. */
void serving_settled(void *context, int exit_code);
/* Until it is told to stop, or must. */
int serving_run(struct daemon *daemon);

#endif

/*
 * notify_ready.h -- tells the service manager that the server is ready or stopping.
 *
 * The protocol of sd_notify(3): one datagram of VARIABLE=value lines to the unix socket that
 * $NOTIFY_SOCKET names, a path or, after '@', an abstract name. Nobody asked when it is not set.
 */
#ifndef DAEMON_NOTIFY_READY_H
#define DAEMON_NOTIFY_READY_H

/*
 * `status` is one line for people, or NULL. 0: told, or nobody asked. A negative errno: the manager
 * could not be reached; worth a warning, never a reason to stop serving.
 */
int notify_ready_started(const char *status);
int notify_ready_stopping(const char *status);

#endif

/*
 * sd_notify.h -- tells the service manager that the server is ready, alive or stopping.
 *
 * The protocol of sd_notify(3): one datagram of VARIABLE=value lines to the unix socket that
 * $NOTIFY_SOCKET names, a path or, after '@', an abstract name. Nobody asked when it is not set.
 */
#ifndef DAEMON_SD_NOTIFY_H
#define DAEMON_SD_NOTIFY_H

/*
 * `status` is one line for people, or NULL. 0: told, or nobody asked. A negative errno: the manager
 * could not be reached; worth a warning, never a reason to stop serving.
 */
int sd_notify_started(const char *status);
int sd_notify_stopping(const char *status);

/* For the watchdog (watchdog.h). Results as above. */
int sd_notify_alive(void);

#endif

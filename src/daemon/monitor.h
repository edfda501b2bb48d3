/*
 * monitor.h -- --role monitor beside its machine: whose boot it is, when its NFS server is up, what
 * the kernel is told.
 *
 *                 an NFS server is set up              it is registered with rpcbind
 *   monitor_run ------------------------> WAITING ------------------------------------> SERVED
 *        |                                   |  --notify-after                            ^
 *        |                                   +--------------------------------------------+
 *        +--------------------------------------------------------------------------------+
 *           none is
 *
 * From SERVED on the watched hosts are notified (core_input CORE_SERVED). READY=1 was said before:
 * the NFS server is started after us.
 */
#ifndef DAEMON_MONITOR_H
#define DAEMON_MONITOR_H

#include "daemon/daemon.h"

struct monitor;

/* Before privileges are dropped: takes the port of the upcalls, reads which boot this is. 0, or an
 * exit code after a sentence in the log. Other roles: nothing. */
__attribute__((warn_unused_result)) int monitor_prepare(struct daemon *daemon);
/* We are ready: from here on it turns with the loop. */
void monitor_run(struct daemon *daemon);
/* Closes its handles; the memory goes with monitor_free, after the loop has closed them. */
void monitor_close(struct monitor *monitor);
void monitor_free(struct monitor *monitor);

#endif

/*
 * process.h -- what the kernel says of this process.
 */
#ifndef DAEMON_PROCESS_H
#define DAEMON_PROCESS_H

#include "admin/admin.h"

/* What cannot be known is 0. start_wall_ns is not touched. */
void process_read(struct admin_process *ret);

#endif

/*
 * caller.h -- who is at the other end of the control socket, as the kernel says, and what it may.
 *
 *   root, and the user we run as    everything
 *   members of --tracker-group      the routes of tracked clients (route.c), and nothing else
 *   others                          nothing, whatever the mode of the file
 */
#ifndef ADMIN_CALLER_H
#define ADMIN_CALLER_H

#include "admin/admin.h"

enum caller_may { CALLER_MAY_NOTHING, CALLER_MAY_TRACK, CALLER_MAY_ALL };

/* `fd` is its connection. */
enum caller_may caller_identify(int fd, const struct admin *admin, struct admin_caller *ret);

#endif

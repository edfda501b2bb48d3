/*
 * control.h -- the control socket: a unix socket that only its owner and root can open.
 *
 * Its file has mode 0600 from the moment it exists. A file that a dead server left behind is
 * replaced; one that somebody answers on or that is another user's, and anything that is not a
 * socket, is left alone and refused. A path may be longer than a socket's name: the last part alone
 * must fit.
 */
#ifndef ADMIN_CONTROL_H
#define ADMIN_CONTROL_H

#include "base/text.h"

#include <sys/types.h>

#define CONTROL_EXIT_IN_USE 69 /* exit codes of control_open's failures */
#define CONTROL_EXIT_USAGE  2

struct control {
    int fd; /* listening; whoever serves it closes it */
    int directory_fd;
    char *name; /* of the file in that directory; owned */
    dev_t device;
    ino_t inode;
};

/* True, or false with a sentence in *ret_why, an exit code, and nothing held. */
__attribute__((warn_unused_result)) bool control_open(const char *path, struct control *ret,
                                                      int *ret_exit_code, struct text *ret_why);
/* The file becomes this user's, if it is still ours; before root is given up. 0 or an errno; a
 * zeroed struct is legal. */
__attribute__((warn_unused_result)) int control_give(const struct control *control, uid_t uid,
                                                     gid_t gid);
/* Removes the file if it is still ours; while the fd is open, or another file may look like it. The
 * fd is left alone; a zeroed struct is legal. */
void control_close(struct control *control);

#endif

/*
 * control.h -- the control socket: a unix socket that only its owner and root can open, and with
 * --tracker-group the members of that group.
 *
 * Its file has mode 0600 from the moment it exists; 0660 only when it is that group's. A file
 * left behind by a dead server is replaced; one that a server listens on or that belongs to
 * another user, and anything that is not a socket, is left alone and refused. A path may be
 * longer than a socket address: only its last part must fit.
 *
 * While it is created, the file NAME.lock next to it is locked against a second server. Only our
 * user can open that, so nobody else can use it to keep us from starting; waiting for it is logged,
 * lasts CONTROL_PATIENCE_MS at most, and it is removed afterwards.
 */
#ifndef ADMIN_CONTROL_H
#define ADMIN_CONTROL_H

#include "base/text.h"

#include <sys/types.h>

#define CONTROL_EXIT_IN_USE 69 /* exit codes of control_open's failures */
#define CONTROL_EXIT_USAGE  2

struct control {
    int fd; /* listening; closed by the HTTP server */
    int directory_fd;
    gid_t group; /* that may open it, or CONTROL_NO_GROUP */
    char *name;  /* of the file in that directory; owned */
    dev_t device;
    ino_t inode;
};

#define CONTROL_PATIENCE_MS 5000
#define CONTROL_NO_GROUP    ((gid_t)-1)

/* Receives a sentence about what is being waited for; may be NULL. */
struct control_words {
    void (*say)(void *context, const char *sentence);
    void *context;
};

/* `group` may open it, too, unless CONTROL_NO_GROUP. True, or false with a sentence in *ret_why, an
 * exit code, and nothing held. */
__attribute__((warn_unused_result)) bool control_open(const char *path, gid_t group,
                                                      const struct control_words *words,
                                                      struct control *ret, int *ret_exit_code,
                                                      struct text *ret_why);
/* Can members of this group reach the file through its directory? Those above are not looked at. */
bool control_is_reachable(const struct control *control, gid_t group);
/* Gives the file to this user and group, if it is still ours; call before dropping root. 0 or an
 * errno; a zeroed struct is legal. */
__attribute__((warn_unused_result)) int control_give(const struct control *control, uid_t uid,
                                                     gid_t gid);
/* Removes the file if it is still ours; call while the fd is open, or another file may look like
 * it. The fd is left alone; a zeroed struct is legal. */
void control_close(struct control *control);

#endif

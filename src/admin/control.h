/*
 * control.h -- the control socket: a unix socket that only its owner and root can open.
 *
 * Its file has mode 0600 from the moment it exists. A file that a dead server left behind is
 * replaced; one that somebody answers on or that is another user's, and anything that is not a
 * socket, is left alone and refused. A path may be longer than a socket's name: the last part alone
 * must fit.
 *
 * While it is made, the file NAME.lock beside it is locked against a second server that starts.
 * Only our user can open that, so nobody else can keep us from starting with it; it is waited for
 * with a word, for CONTROL_PATIENCE_MS at most, and gone afterwards.
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

#define CONTROL_PATIENCE_MS 5000

/* Hears, in a sentence, what is waited for; may be NULL. */
struct control_words {
    void (*say)(void *context, const char *sentence);
    void *context;
};

/* True, or false with a sentence in *ret_why, an exit code, and nothing held. */
__attribute__((warn_unused_result)) bool control_open(const char *path,
                                                      const struct control_words *words,
                                                      struct control *ret, int *ret_exit_code,
                                                      struct text *ret_why);
/* The file becomes this user's, if it is still ours; before root is given up. 0 or an errno; a
 * zeroed struct is legal. */
__attribute__((warn_unused_result)) int control_give(const struct control *control, uid_t uid,
                                                     gid_t gid);
/* Removes the file if it is still ours; while the fd is open, or another file may look like it. The
 * fd is left alone; a zeroed struct is legal. */
void control_close(struct control *control);

#endif

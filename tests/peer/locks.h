/*
 * locks.h -- the lock commands of `peer`: lock, test, unlock, cancel, wait, free-all.
 */
#ifndef PEER_LOCKS_H
#define PEER_LOCKS_H

#include "peer/dial.h"

struct locks_options {
    struct dial_route route;
    uint32_t timeout_ms;
    const char *name; /* caller_name; NULL: "peer" */
    uint32_t svid, vers;
    char **arguments; /* the command and what follows */
    int arguments_count;
};

bool locks_is_command(const char *command);
/* The exit status: 0 granted or free, 1 refused or no answer, 2 usage. */
int locks_run(const struct locks_options *options);

#endif

/*
 * locks.h -- the lock commands of `peer`: lock, test, unlock, cancel, free-all, and those that stay
 * (stay.h).
 */
#ifndef PEER_LOCKS_H
#define PEER_LOCKS_H

#include "peer/dial.h"
#include "peer/peer_nlm.h"

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

const char *locks_name(const struct locks_options *options);
/* Prints an NLM status, or a negative errno, in words; the exit status. The holder may be NULL. */
int locks_print(const struct locks_options *options, int status, const struct peer_nlm_res *res);

#endif

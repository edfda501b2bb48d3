/*
 * files.h -- the file commands of `peer`: an NFS client without a kernel, one command at a time.
 */
#ifndef PEER_FILES_H
#define PEER_FILES_H

#include "peer/peer_link.h"

struct files_options {
    struct dial_route route;
    uint32_t timeout_ms;
    struct peer_link_identity who;
    char **arguments; /* "files", the exported directory, the command and what follows */
    int arguments_count;
};

/* The exit status: 0 done, 1 refused or no answer, 2 usage. */
int files_run(const struct files_options *options);

#endif

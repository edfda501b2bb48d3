/*
 * programs.h -- the numbers of the RPC programs that are served, called, or both.
 */
#ifndef BASE_PROGRAMS_H
#define BASE_PROGRAMS_H

enum {
    PORTMAP_PROGRAM = 100000,
    NFS_PROGRAM = 100003,
    MOUNT_PROGRAM = 100005,
    NLM_PROGRAM = 100021,
    NSM_PROGRAM = 100024,
};

#endif

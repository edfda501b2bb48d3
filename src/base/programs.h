/*
 * programs.h -- the numbers of the RPC programs that are served, called, or both.
 */
#ifndef BASE_PROGRAMS_H
#define BASE_PROGRAMS_H

enum {
    PORTMAP_PROGRAM = 100000,
    NLM_PROGRAM = 100021,
    NSM_PROGRAM = 100024,
};

#endif

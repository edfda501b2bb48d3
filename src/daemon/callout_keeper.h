/*
 * callout_keeper.h -- the process between the monitor and one run of --callout: it ends with all
 * that the program started, and lets little of what that prints through.
 *
 *   holdfastd keep-callout PROG ARGUMENT...
 *
 * holdfastd starts itself like that (callout_runner.c). Exit: the program's code, 128 and the
 * signal that ended it, 126 or 127 if it could not be executed; by SIGALRM if it took too long.
 */
#ifndef DAEMON_CALLOUT_KEEPER_H
#define DAEMON_CALLOUT_KEEPER_H

#define CALLOUT_KEEPER_VERB "keep-callout"

enum {
    CALLOUT_KEEPER_SECONDS_MAX = 10,  /* then all of it is killed */
    CALLOUT_KEEPER_OUTPUT_MAX = 1024, /* bytes that are let through */
};

/* argv[0] is the verb. Returns the exit code. */
int callout_keeper_run(int argc, char **argv);

#endif

/*
 * runner.h -- the processes of this test: the server, and the tool that prints a store.
 *
 * Where they are comes from the environment, which meson sets: HOLDFASTD, STORE_DUMP, RECORDER (the
 * library). Every server listens on a free port of 127.0.0.1 and dies with the test.
 */
#ifndef POWERLOSS_RUNNER_H
#define POWERLOSS_RUNNER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct runner {
    /* Set before runner_start; the rest is filled by it. */
    const char *store; /* directory */
    const char *log;   /* where its standard error goes */
    const char *sync;  /* full or process */
    const char *tape;  /* NULL: not recorded */
    const char *kill;  /* NULL, or the recorder's HOLDFAST_RECORD_KILL */

    pid_t pid; /* 0: none */
    uint16_t port;
    uint32_t state, clients;
    bool was_killed; /* it ended by SIGKILL, ours or its own */
};

/* A variable of the environment; without it the test ends. */
const char *runner_variable(const char *name);

/* Starts and waits for the readiness line. False: it ended, or was not ready within 20 s. */
bool runner_start(struct runner *runner);
/* SIGKILL, and waits for the end. */
void runner_kill(struct runner *runner);

/* The last line of a log, without its end; "" when there is none. Valid until the next call. */
const char *runner_last_line(const char *log);

/* Runs store_dump on a directory; what it prints. runner_dump_end gives its exit status. */
FILE *runner_dump_begin(const char *store, pid_t *ret_pid);
int runner_dump_end(FILE *output, pid_t pid);

/* Removes a directory with everything in it, if it is there. */
void runner_remove(const char *path);

#endif

/*
 * store_command.h -- `holdfast store ...`: operations on a store that no server is using; an export
 * also of one that a server uses.
 */
#ifndef DAEMON_STORE_COMMAND_H
#define DAEMON_STORE_COMMAND_H

#include "daemon/config.h"

enum {
    STORE_COMMAND_NO = 1, /* exit codes */
    STORE_COMMAND_USAGE = CONFIG_EXIT,
    STORE_COMMAND_STORE = 74,
};

/* What the command line said. */
struct store_command {
    const char *verb;
    const char *file;  /* or the directory of rpc.statd */
    const char *other; /* --from or --to: whose files these are; NULL: our own lines */
    bool print_only, is_down, skip_unresolved, is_confirmed, names_store, is_incomplete;
    uint32_t step_count;
    struct config config;
};

/* argv[0] is "store". Returns the exit code. */
int store_command_run(int argc, char **argv);

/* "holdfast store VERB: SENTENCE" to standard error; returns `exit_code`. */
int store_command_fail(const struct store_command *command, int exit_code, const char *sentence);
/* The same of a file that cannot be opened or read: STORE_COMMAND_NO. */
int store_command_fail_file(const struct store_command *command, const char *path, int err);
/* The same, as options.say of a store; `context` is the command. */
void store_command_say(void *context, const char *sentence);

#endif

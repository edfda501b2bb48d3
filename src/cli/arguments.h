/*
 * arguments.h -- the words and options of one command, checked against its row.
 */
#ifndef CLI_ARGUMENTS_H
#define CLI_ARGUMENTS_H

#include "cli/command.h"

#include <stdbool.h>

enum { ARGUMENTS_OPTIONS_MAX = 16, ARGUMENTS_WORDS_MAX = 4 };

struct arguments {
    const struct command *command;
    const char *names[ARGUMENTS_OPTIONS_MAX]; /* of the options that were given */
    const char *values[ARGUMENTS_OPTIONS_MAX];
    int option_count;
    const char *words[ARGUMENTS_WORDS_MAX];
    int word_count;
};

/*
 * True: continue. False: the command ends with *ret_exit_code, because of --help or an error;
 * either was printed. Options may come before and after the words.
 */
bool arguments_read(const struct command *command, int argc, char **argv, struct arguments *ret,
                    int *ret_exit_code);

bool arguments_has(const struct arguments *arguments, const char *name);
/* The value of an option; NULL: not given. */
const char *arguments_value(const struct arguments *arguments, const char *name);

/* Is this value a file handle, in pairs of hexadecimal digits? */
bool arguments_is_handle(const char *value);

/* 0 if all output was written. */
int arguments_finish(void);

#endif

/*
 * command.h -- the table of subcommands.
 *
 * One row per command: the dispatcher, `help`, `COMMAND --help`, the completion and the manual page
 * read it. Adding a command is adding a row.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

enum {
    EXIT_OK = 0,
    EXIT_NO = 1, /* refused, or a negative result */
    EXIT_USAGE = 2,
    EXIT_UNREACHABLE = 75, /* the server is unreachable */
};

struct arguments;
struct http_client;

struct command_option {
    const char *name; /* without the dashes; NULL ends a list */
    const char
        *argument; /* name of its value, or its choices separated by |; NULL: it takes none */
    const char *help;
};

struct command {
    const char *name;
    /* A command that talks to the server: `check` looks at its arguments (NULL: nothing to check),
     * `ask` has the connection. Both return an exit code, after printing what is wrong. */
    int (*check)(const struct arguments *arguments);
    int (*ask)(struct http_client *http, const struct arguments *arguments);
    int (*run)(const struct command *command, int argc, char **argv); /* else; argv[0]: its name */
    const char *words; /* what follows the name, in [brackets] what may; NULL: nothing */
    const struct command_option *options; /* NULL: none of its own; see command_common */
    bool is_alone;                        /* it does not talk to the server */
    const char *help;                     /* one line */
    const char *more;                     /* more text for --help and the manual; NULL: none */
};

extern const struct command command_table[];
extern const size_t command_count;

/* Options of every command; the first one only of those that talk to the server. */
extern const struct command_option command_common[];
const struct command_option *command_common_of(const struct command *command);

/* Of clients; the last three of tracked ones. */
#define COMMAND_STATES "freeing|given_up|crashed|recovering|active|connected|disconnected|expired"

/* The rows' functions, by file. */
int serve_run(const struct command *command, int argc, char **argv);
int serve_store(const struct command *command, int argc, char **argv);
int main_help(const struct command *command, int argc, char **argv);
int main_version(const struct command *command, int argc, char **argv);
int change_end_grace(struct http_client *http, const struct arguments *arguments);
int change_move(struct http_client *http, const struct arguments *arguments);
int change_restart_notice(struct http_client *http, const struct arguments *arguments);
int change_release(struct http_client *http, const struct arguments *arguments);
int clients_run(struct http_client *http, const struct arguments *arguments);
int clients_check(const struct arguments *arguments);
int change_check_move(const struct arguments *arguments);
int change_check_release(const struct arguments *arguments);
int host_run(struct http_client *http, const struct arguments *arguments);
int locks_run(struct http_client *http, const struct arguments *arguments);
int exports_run(struct http_client *http, const struct arguments *arguments);
int explain_run(struct http_client *http, const struct arguments *arguments);
int probe_check_client(const struct command *command, int argc, char **argv);
int probe_drill(const struct command *command, int argc, char **argv);
int manual_run(const struct command *command, int argc, char **argv);
int completion_run(const struct command *command, int argc, char **argv);
int reload_run(struct http_client *http, const struct arguments *arguments);
int status_run(struct http_client *http, const struct arguments *arguments);

#endif

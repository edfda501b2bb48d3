/*
 * command.c -- the rows of the table; see command.h.
 */
#include "cli/command.h"

const struct command_option command_common[] = {
    {"control", "PATH", "The control socket of the server to ask."},
    {"help", NULL, "Print what the command does and exit."},
    {0},
};

static const struct command_option release_options[] = {
    {"file", "HEX", "Only what it holds in the file with this handle."},
    {"yes", NULL, "Do not ask whether it is meant."},
    {0},
};

static const struct command_option show_options[] = {
    {"json", NULL, "Print what the server says, as it says it."},
    {0},
};

const struct command commands[] = {
    {.name = "serve",
     .run = serve_run,
     .words = "[options]",
     .help = "run the server in the foreground; serve --help lists its options"},
    {.name = "status",
     .run = status_run,
     .options = show_options,
     .help = "one screen: state, locks, clients, store; in a recovery, who is missing"},
    {.name = "release",
     .run = change_release,
     .words = "CLIENT",
     .options = release_options,
     .help = "free what a client holds",
     .more = "For a client that is gone for good. It is told that its locks are lost, if it is "
             "there after all; nothing keeps it from writing in the belief that it has them."},
    {.name = "end-grace",
     .run = change_end_grace,
     .help = "end the recovery now; what nobody has reclaimed is given up"},
    {.name = "help", .run = about_help, .help = "print this text"},
    {.name = "version", .run = about_version, .help = "print the version"},
};

const size_t command_count = sizeof commands / sizeof commands[0];

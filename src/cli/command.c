/*
 * command.c -- the rows of the table; see command.h.
 */
#include "cli/command.h"

const struct command_option command_common[] = {
    {"control", "PATH", "The control socket of the server to ask."},
    {"help", NULL, "Print what the command does and exit."},
    {0},
};

const struct command_option *command_common_of(const struct command *command)
{
    return command->is_alone ? command_common + 1 : command_common;
}

static const struct command_option release_options[] = {
    {"file", "HEX", "Only what it holds in the file with this handle."},
    {"yes", NULL, "Skip confirmation."},
    {0},
};

static const struct command_option confirmed_options[] = {
    {"yes", NULL, "Skip confirmation."},
    {0},
};

static const struct command_option status_options[] = {
    {"watch", NULL, "Show it again every second, with progress in a recovery."},
    {"json", NULL, "Print what the server says, as it says it; with --watch a line each time."},
    {0},
};

static const struct command_option client_options[] = {
    {"state", COMMAND_STATES, "Only clients in this state."},
    {"protocol", "PROTOCOL", "Only those of nlm (they lock), nsm (they monitor) or another one."},
    {"name", "NAME", "Only those of this name."},
    {"mon-name", "NAME", "Only registrations that watch the host of this name."},
    {"json", NULL, "Print what the server says, as it says it."},
    {0},
};

static const struct command_option lock_options[] = {
    {"client", "CLIENT", "Only those of this client."},
    {"file", "HEX", "Only those on the file with this handle."},
    {"path", "FILE", "Only those on this file of this machine, which is exported."},
    {"waiting", NULL, "Requests that wait for a lock, and whom they wait for."},
    {"json", NULL, "Print what the server says, as it says it."},
    {0},
};

static const struct command_option explain_options[] = {
    {"json", NULL, "Print it as JSON."},
    {0},
};

static const struct command_option probe_options[] = {
    {"timeout", "SECONDS", "How long one question may take; 2 unless given."},
    {"json", NULL, "Print what was found as JSON."},
    {0},
};

const struct command commands[] = {
    {.name = "serve",
     .run = serve_run,
     .words = "[options]",
     .is_alone = true,
     .help = "run the server in the foreground; serve --help lists its options"},
    {.name = "status",
     .run = status_run,
     .options = status_options,
     .help = "one screen: state, locks, clients, store; in a recovery, who is missing"},
    {.name = "clients",
     .run = list_clients,
     .words = "[CLIENT]",
     .options = client_options,
     .help = "clients that are known, or one in full",
     .more =
         "A client is given by its id (c17), its address or its name. Where a machine is called "
         "like an id of another one, id:c17 and name:c17 tell them apart."},
    {.name = "locks",
     .run = list_locks,
     .options = lock_options,
     .help = "locks that are held, or requests that wait"},
    {.name = "explain",
     .run = explain_run,
     .words = "CLIENT",
     .options = explain_options,
     .help = "what becomes of its locks if the server, or the client, crashes now"},
    {.name = "check-client",
     .run = probe_check_client,
     .words = "ADDRESS",
     .options = probe_options,
     .is_alone = true,
     .help = "ask a client's portmapper, lock manager and status monitor; say what is missing"},
    {.name = "drill",
     .run = probe_drill,
     .options = probe_options,
     .help = "ask every client now: who would be told after a crash"},
    {.name = "release",
     .run = change_release,
     .words = "CLIENT",
     .options = release_options,
     .help = "free what a client holds; forget one that holds nothing",
     .more = "For a client that is gone for good. It is told that its locks are lost, if it is "
             "there after all; nothing keeps it from writing in the belief that it has them. A "
             "registration of SM_MON, given by its id, is forgotten."},
    {.name = "move",
     .run = change_move,
     .words = "CLIENT ADDRESS",
     .options = confirmed_options,
     .help = "say that a client, with its locks, is at another address now",
     .more = "For a host whose address changed and that its own old locks keep out; status shows "
             "such conflicts. If the host at the old address is alive, two hosts then rely on the "
             "same locks: only you can know that it is one host."},
    {.name = "end-grace",
     .run = change_end_grace,
     .options = confirmed_options,
     .help = "end the recovery now; what nobody has reclaimed is given up"},
    {.name = "store",
     .run = serve_store,
     .words = "clear|export|import|migrate [options]",
     .is_alone = true,
     .help = "clear, export, import or migrate what is stored; store --help",
     .more = "clear removes every record of a store that no server uses, and asks first. Clients "
             "that hold locks are not told."},
    {.name = "completion",
     .run = manual_completion,
     .is_alone = true,
     .help = "print completions for bash: source <(holdfast completion)"},
    {.name = "manual",
     .run = manual_run,
     .is_alone = true,
     .help = "print the manual page: holdfast manual | man -l -"},
    {.name = "help",
     .run = about_help,
     .words = "[COMMAND]",
     .is_alone = true,
     .help = "list the commands, or say what one of them does"},
    {.name = "version", .run = about_version, .is_alone = true, .help = "print the version"},
};

const size_t command_count = sizeof commands / sizeof commands[0];

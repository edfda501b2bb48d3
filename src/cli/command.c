/*
 * command.c -- the rows of the table; see command.h.
 */
#include "cli/command.h"

#include "cli/lock_sort.h"

const struct command_option command_common[] = {
    {"control", "PATH", "Control socket of the server."},
    {"help", NULL, "Describe the command and exit."},
    {0},
};

const struct command_option *command_common_of(const struct command *command)
{
    return command->is_alone ? command_common + 1 : command_common;
}

static const struct command_option release_options[] = {
    {"file", "HEX", "Only locks on the file with this handle."},
    {"yes", NULL, "Skip confirmation."},
    {0},
};

static const struct command_option confirmed_options[] = {
    {"yes", NULL, "Skip confirmation."},
    {0},
};

static const struct command_option status_options[] = {
    {"watch", NULL, "Refresh every second; during recovery, show progress."},
    {"json", NULL, "Print the server's JSON, unchanged; with --watch, one line per update."},
    {0},
};

static const struct command_option client_options[] = {
    {"state", COMMAND_STATES, "Only clients in this state."},
    {"protocol", "PROTOCOL",
     "Only clients of this protocol: nlm (locks), nsm (monitors) or another."},
    {"name", "NAME", "Only clients with this name."},
    {"mon-name", "NAME", "Only registrations that monitor this host."},
    {"json", NULL, "Print the server's JSON, unchanged."},
    {0},
};

static const struct command_option json_options[] = {
    {"json", NULL, "Print the server's JSON, unchanged."},
    {0},
};

static const struct command_option lock_options[] = {
    {"client", "CLIENT", "Only this client's."},
    {"file", "HEX", "Only on files whose handle is this one, or begins with it."},
    {"path", "FILE", "Only on this file, which this machine exports."},
    {"export", "DIR", "Only on files of this exported directory."},
    {"waiting", NULL, "List waiting requests instead, and who blocks them."},
    {"sort", LOCK_SORT_WORDS, "Oldest first, by client, by file, or most waiting first."},
    {"limit", "N", "Show no more than N of them; the total counts all."},
    {"json", NULL, "Print the rows as the server's JSON, with their total."},
    {0},
};

static const struct command_option group_options[] = {
    {"store", "URL", "The store: postgres:CONNINFO."},
    {"config", "FILE", "Read it from the server's configuration file."},
    {"json", NULL, "Print it as JSON."},
    {0},
};

static const struct command_option explain_options[] = {
    {"json", NULL, "Print it as JSON."},
    {0},
};

static const struct command_option probe_options[] = {
    {"timeout", "SECONDS", "Timeout of one call; default 2."},
    {"json", NULL, "Print the result as JSON."},
    {0},
};

static const struct command_option drill_options[] = {
    {"all", NULL, "List those who could be notified as well."},
    {"timeout", "SECONDS", "Timeout of one call; default 2."},
    {"json", NULL, "Print the result for everybody as JSON."},
    {0},
};

const struct command command_table[] = {
    {.name = "serve",
     .run = serve_run,
     .words = "[options]",
     .is_alone = true,
     .help = "run the server in the foreground; serve --help lists its options"},
    {.name = "status",
     .ask = status_run,
     .options = status_options,
     .help = "one screen: who waits for whom, clients, locks, store; who is missing",
     .more = "The exit code is 1 if something needs attention, and the lines ATTENTION say what: a "
             "client that blocks others and does not answer, an unreachable client with locks to "
             "reclaim, a store that is full or stalled, an rpcbind that does not know the server, "
             "80 % of a limit. It is 75 if the server cannot be reached; so it can be used as a "
             "check."},
    {.name = "clients",
     .check = clients_check,
     .ask = clients_run,
     .words = "[CLIENT]",
     .options = client_options,
     .help = "list clients, or show one in full",
     .more = "Name a client by its id (c17), address or name. If one host's name looks like "
             "another's id, write id:c17 or name:c17."},
    {.name = "hosts",
     .ask = host_run,
     .options = json_options,
     .help = "monitor role: list watched hosts and what each is owed",
     .more =
         "For a server with --role monitor. OWED: notice, if the host has yet to be notified of "
         "this machine's last reboot; upcall, if the lock manager has yet to be notified of the "
         "host's. LAST NOTICE: when the host last reported a reboot."},
    {.name = "locks",
     .ask = locks_run,
     .options = lock_options,
     .help = "list held locks, or waiting requests"},
    {.name = "exports",
     .ask = exports_run,
     .options = json_options,
     .help = "list exported directories, their clients, and how much they are used",
     .more =
         "MOUNTS: mounts that clients reported and have not reported as unmounted; only a hint. "
         "OPEN: files that the server keeps open. With the option async the server replies "
         "before a change is on disk."},
    {.name = "explain",
     .ask = explain_run,
     .words = "CLIENT",
     .options = explain_options,
     .help = "what happens to its locks if the server or the client crashes now"},
    {.name = "check-client",
     .run = probe_check_client,
     .words = "ADDRESS",
     .options = probe_options,
     .is_alone = true,
     .help = "check a client's portmapper, lock manager and status monitor"},
    {.name = "drill",
     .run = probe_drill,
     .options = drill_options,
     .help = "check every client: who could not be notified after a crash"},
    {.name = "release",
     .check = change_check_release,
     .ask = change_release,
     .words = "CLIENT",
     .options = release_options,
     .help = "release a client's locks; forget a client that holds none",
     .more = "For a client that is gone for good. If it is alive after all, it is notified that "
             "its locks are lost, but nothing stops it from writing as if it still held them. An "
             "SM_MON registration, named by its id, is removed."},
    {.name = "move",
     .check = change_check_move,
     .ask = change_move,
     .words = "CLIENT ADDRESS",
     .options = confirmed_options,
     .help = "move a client and its locks to its new address",
     .more = "For a host whose address changed and whose own old locks now block it; status shows "
             "such conflicts. If the host at the old address is alive, two hosts then rely on the "
             "same locks: only you can know that both are the same host."},
    {.name = "end-grace",
     .ask = change_end_grace,
     .options = confirmed_options,
     .help = "end the grace period now; release locks that were not reclaimed"},
    {.name = "reload",
     .ask = reload_run,
     .options = json_options,
     .help = "read options and exports again, and say what changed",
     .more =
         "The same as SIGHUP. An error in a file, line or directory changes nothing, and the exit "
         "code is 1. Exports, names and log options can change, and two limits can be raised, "
         "while the server runs; other differences are listed and need a restart."},
    {.name = "restart-notice",
     .ask = change_restart_notice,
     .options = confirmed_options,
     .help = "monitor role: notify every watched host, as after a reboot",
     .more = "For a lock manager that lost its locks though the machine did not reboot, for "
             "example after rpc.nfsd 0. The same as sm-notify -f. Hosts then reclaim their locks, "
             "so first start the NFS server, and with it its grace period."},
    {.name = "store",
     .run = serve_store,
     .words = "clear|export|import|migrate [options]",
     .is_alone = true,
     .help = "clear, export, import or migrate the store; see store --help",
     .more = "export also works while the server runs: it writes the state of one moment and does "
             "not stop locks. clear removes every record of a store that no server is using; it "
             "asks first. Clients that hold locks are not notified."},
    {.name = "groups",
     .run = serve_store,
     .options = group_options,
     .is_alone = true,
     .help = "list the groups of a shared store, who serves each and who stands by",
     .more =
         "For a store that several servers share (serve --group). The exit code is 1 if a group "
         "has no active server."},
    {.name = "completion",
     .run = completion_run,
     .words = "[bash|zsh|fish]",
     .is_alone = true,
     .help = "print completions for a shell: source <(holdfast completion bash)"},
    {.name = "manual",
     .run = manual_run,
     .is_alone = true,
     .help = "print the manual page: holdfast manual | man -l -"},
    {.name = "help",
     .run = main_help,
     .words = "[COMMAND]",
     .is_alone = true,
     .help = "list the commands, or describe one"},
    {.name = "version", .run = main_version, .is_alone = true, .help = "print the version"},
};

const size_t command_count = sizeof command_table / sizeof command_table[0];

/*
 * store_command.c -- migrate, export, import, clear; see store_command.h.
 *
 * The command `holdfast` links no store: it runs holdfastd with these words. Options other than the
 * subcommand's own are the server's, so --store, --role and --config mean what they mean to it.
 */
#include "daemon/store_command.h"

#include "daemon/store_clear.h"
#include "daemon/store_export.h"
#include "daemon/store_import.h"
#include "store/store.h"

#include <stdio.h>

enum { ARGUMENTS_MAX = 32 };

static const char usage[] =
    "Usage: holdfast store COMMAND [--store URL] [--group NAME] [--role ROLE] [--config FILE]\n"
    "                              [--control PATH]\n\n"
    "  migrate [--print] [--down]   upgrade the tables of a postgres: store to this version; "
    "--print:\n"
    "                               only show the SQL; --down: back one version, if that loses "
    "no records\n"
    "  export [FILE]                write every record as a line of JSON, to standard output or "
    "FILE;\n"
    "                               also while the server runs, without stopping locks: the state "
    "is\n"
    "                               that of one moment, and comes through --control\n"
    "  export --to rpc.statd DIR    write what a status monitor knows as the files of rpc.statd, "
    "to go\n"
    "                               back to it; DIR/sm and DIR/sm.bak must be empty\n"
    "  import [FILE]                fill an empty store from such lines, from standard input or "
    "FILE\n"
    "         [--incomplete]        even if some are missing or were edited; the store is marked\n"
    "                               incomplete, so the next start grants every reclaim\n"
    "  import --from rpc.statd DIR  fill an empty store with the clients in rpc.statd's "
    "directory,\n"
    "                               usually /var/lib/nfs, so that the next start notifies them\n"
    "         [--skip-unresolved]   skip names that do not resolve\n"
    "         [--role monitor]      with its registrations instead: a status monitor carries on "
    "where\n"
    "                               rpc.statd was, and in the same boot notifies nobody\n"
    "  clear --store URL [--yes]    remove every record of a store that no server is using; "
    "clients\n"
    "                               that hold locks are not notified. State numbers continue.\n"
    "                               Asks first, unless --yes is given\n\n"
    "Exit codes: 0 ok, 1 incomplete, 2 usage, 74 store failure, 76 replaced by a server, 78 store\n"
    "newer than this program.\n";

int store_command_fail(const struct store_command *command, int exit_code, const char *sentence)
{
    (void)fprintf(stderr, "holdfast store %s: %s\n", command->verb, sentence);
    return exit_code;
}

int store_command_fail_file(const struct store_command *command, const char *path, int err)
{
    (void)fprintf(stderr, "holdfast store %s: %s: %s\n", command->verb, path, strerror(err));
    return STORE_COMMAND_NO;
}

void store_command_say(void *context, const char *sentence)
{
    (void)store_command_fail(context, 0, sentence);
}

/* ---- migrate ---- */

static void show_step(void *context, uint32_t from, uint32_t to, const char *sql)
{
    struct store_command *command = context;
    (void)printf("-- version %u to %u\n%s", from, to, command->print_only ? sql : "");
    command->step_count++;
}

static int run_migrate(struct store_command *command)
{
    struct store_failure failure = {0};
    const char *group = command->config.group;
    struct store_migration how = {.print_only = command->print_only,
                                  .is_down = command->is_down,
                                  .group = group[0] != '\0' ? group : NULL,
                                  .visit = show_step,
                                  .context = command};
    if (store_migrate(command->config.store, &how, &failure) != 0)
        return store_command_fail(command, failure.exit_code, failure.text);
    if (command->step_count == 0)
        (void)printf("-- nothing to do\n");
    return 0;
}

/* ---- clear ---- */

static int run_clear(struct store_command *command)
{
    if (command->file != NULL)
        return store_command_fail(command, STORE_COMMAND_USAGE,
                                  "takes no FILE; name the store with --store");
    if (!command->names_store)
        return store_command_fail(command, STORE_COMMAND_USAGE,
                                  "name the store with --store; clear has no default");
    return store_clear_run(&command->config, command->is_confirmed);
}

/* ---- the command line ---- */

static const struct {
    const char *verb;
    int (*run)(struct store_command *command);
} verbs[] = {{"migrate", run_migrate},
             {"export", store_export_run},
             {"import", store_import_run},
             {"clear", run_clear}};

/* The option that says whose files are meant. */
static const char *other_of(const struct store_command *command)
{
    return strcmp(command->verb, "export") == 0 ? "--to" : "--from";
}

/* Takes the subcommand's own words out; the server's options are left in `rest`. */
static int read_order(int argc, char **argv, struct store_command *command, char **rest,
                      int *rest_count)
{
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--print") == 0) {
            command->print_only = true;
        } else if (strcmp(argv[i], "--down") == 0) {
            command->is_down = true;
        } else if (strcmp(argv[i], "--skip-unresolved") == 0) {
            command->skip_unresolved = true;
        } else if (strcmp(argv[i], "--incomplete") == 0) {
            command->is_incomplete = true;
        } else if (strcmp(argv[i], "--yes") == 0) {
            command->is_confirmed = true;
        } else if (strcmp(argv[i], other_of(command)) == 0 && i + 1 < argc) {
            command->other = argv[++i];
        } else if (strncmp(argv[i], "--", 2) != 0 && command->file == NULL) {
            command->file = argv[i];
        } else if (*rest_count + 2 >= ARGUMENTS_MAX) {
            return store_command_fail(command, STORE_COMMAND_USAGE, "too many arguments");
        } else {
            command->names_store |=
                strcmp(argv[i], "--store") == 0 || strncmp(argv[i], "--store=", 8) == 0;
            rest[(*rest_count)++] = argv[i];
            if (strncmp(argv[i], "--", 2) == 0 && strchr(argv[i], '=') == NULL && i + 1 < argc)
                rest[(*rest_count)++] = argv[++i];
        }
    }
    char buffer[1024];
    struct text why;
    text_init(&why, buffer, sizeof buffer);
    if (config_read(*rest_count, rest, &command->config, &why) != 0)
        return store_command_fail(command, STORE_COMMAND_USAGE, buffer);
    if (command->config.group_names.count <= 1)
        return 0;
    config_done(&command->config);
    return store_command_fail(command, STORE_COMMAND_USAGE,
                              "several groups are named; name the one that is meant with --group");
}

int store_command_run(int argc, char **argv)
{
    struct store_command command = {.verb = argc > 1 ? argv[1] : "help"};
    char *rest[ARGUMENTS_MAX] = {argv[0]};
    int rest_count = 1;
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(command.verb, verbs[i].verb) != 0)
            continue;
        int result = read_order(argc, argv, &command, rest, &rest_count);
        if (result != 0)
            return result;
        result = verbs[i].run(&command);
        config_done(&command.config);
        if (fflush(stdout) != 0)
            result =
                store_command_fail(&command, STORE_COMMAND_NO, "cannot write to standard output");
        return result;
    }
    bool is_help = strcmp(command.verb, "help") == 0 || strcmp(command.verb, "--help") == 0 ||
                   strcmp(command.verb, "-h") == 0;
    if (!is_help)
        (void)fprintf(
            stderr,
            "holdfast store: unknown command \"%s\"; use migrate, export, import or clear, "
            "see holdfast store --help\n",
            command.verb);
    else
        (void)fputs(usage, argc > 1 ? stdout : stderr);
    return is_help && argc > 1 ? 0 : STORE_COMMAND_USAGE;
}

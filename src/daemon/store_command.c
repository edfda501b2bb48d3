/*
 * store_command.c -- migrate, export, import, clear; see store_command.h.
 *
 * The command `holdfast` links no store: it runs holdfastd with these words. Options other than the
 * subcommand's own are the server's, so --store and --config mean what they mean to it.
 *
 * An export is a reader: it changes nothing in the store, whoever runs it. If the store may have
 * lost changes (D16) it says so, in the lines too.
 *
 * An import fills an empty store with one batch: it is whole or not there. The start that follows
 * is like one after a crash, which is what a move looks like to clients. One from rpc.statd brings
 * clients without their locks: the store is marked incomplete (D16), so that this start grants
 * every reclaim that conflicts with nothing, and notifies every client.
 */
#include "daemon/store_command.h"

#include "base/check.h"
#include "base/units.h"
#include "daemon/config.h"
#include "daemon/statd_import.h"
#include "daemon/store_clear.h"
#include "daemon/store_json.h"
#include "store/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { EXIT_NO = 1, EXIT_USAGE = 2, EXIT_STORE = 74, ARGUMENTS_MAX = 32 };

static const char usage[] =
    "Usage: holdfast store COMMAND [--store URL] [--config FILE]\n\n"
    "  migrate [--print] [--down]   upgrade the tables of a postgres: store to this version; "
    "--print:\n"
    "                               only show the SQL; --down: back one version, if it has no "
    "records\n"
    "  export [FILE]                write every record as a line of JSON, to standard output or "
    "FILE\n"
    "  import [FILE]                fill an empty store from such lines, from standard input or "
    "FILE\n"
    "  import --from rpc.statd DIR  fill an empty store with the clients in rpc.statd's "
    "directory,\n"
    "                               usually /var/lib/nfs, so that the next start notifies them\n"
    "         [--skip-unresolved]   skip names that do not resolve\n"
    "  clear --store URL [--yes]    remove every record of a store that no server is using; "
    "clients\n"
    "                               that hold locks are not notified. State numbers continue.\n"
    "                               Asks first, unless --yes is given\n\n"
    "Exit codes: 0 ok, 1 incomplete, 2 usage, 74 store failure, 76 replaced by a server, 78 store\n"
    "newer than this program.\n";

/* What the command line said. */
struct command {
    const char *verb;
    const char *file; /* or the directory of rpc.statd */
    const char *from; /* NULL: our own lines */
    bool print_only, is_down, skip_unresolved, is_confirmed, names_store;
    uint32_t step_count;
    struct config config;
};

static int fail(const struct command *command, int exit_code, const char *sentence)
{
    (void)fprintf(stderr, "holdfast store %s: %s\n", command->verb, sentence);
    return exit_code;
}

/* Reports what is being waited for; for options.say. */
static void say(void *context, const char *sentence)
{
    (void)fail(context, 0, sentence);
}

/* ---- migrate ---- */

static void show_step(void *context, uint32_t from, uint32_t to, const char *sql)
{
    struct command *command = context;
    (void)printf("-- version %u to %u\n%s", from, to, command->print_only ? sql : "");
    command->step_count++;
}

static int run_migrate(struct command *command)
{
    struct store_failure failure = {0};
    struct store_migration how = {.print_only = command->print_only,
                                  .is_down = command->is_down,
                                  .visit = show_step,
                                  .context = command};
    if (store_migrate(command->config.store, &how, &failure) != 0)
        return fail(command, failure.exit_code, failure.text);
    if (command->step_count == 0)
        (void)printf("-- nothing to do\n");
    return 0;
}

/* ---- export ---- */

struct export
{
    FILE *out;
    bool may_have_lost; /* D16: the lines must say so, whatever the server record says */
    uint64_t count, unreadable;
};

static int export_record(void *context, enum record_kind kind, uint32_t slot, struct bytes value)
{
    struct export *export = context;
    static char buffer[STORE_JSON_LINE_MAX];
    uint8_t marked[RECORD_VALUE_MAX];
    struct record_server server;
    if (export->may_have_lost && kind == RECORD_SERVER &&
        record_get_server(value, &server) == RECORD_GOOD) {
        server.flags |= RECORD_SERVER_INCOMPLETE;
        value = (struct bytes){marked, record_put_server(marked, &server)};
    }
    export->unreadable += store_json_put(buffer, kind, slot, value) ? 0 : 1;
    export->count++;
    return fprintf(export->out, "%s\n", buffer) < 0 ? EXIT_NO : 0;
}

static int run_export(struct command *command)
{
    struct store_failure failure = {0};
    struct export export = {.out = stdout};
    struct store_summary summary;
    const struct store_options options = {.is_reader = true,
                                          .timeout_ns = command->config.store_timeout_s * SECOND_NS,
                                          .say = say,
                                          .context = command};
    struct store *store = store_open(command->config.store, &options, &failure);
    if (store == NULL)
        return fail(command, failure.exit_code, failure.text);
    store_summarize(store, &summary);
    export.may_have_lost = summary.may_have_lost;
    if (summary.note[0] != '\0')
        say(command, summary.note);
    if (command->file != NULL && (export.out = fopen(command->file, "we")) == NULL) {
        store_close(store);
        return fail(command, EXIT_NO, strerror(errno));
    }
    int result = store_load(store, export_record, &export, &failure);
    store_close(store);
    if (result == 0 && (fflush(export.out) != 0 || ferror(export.out)))
        result = EXIT_NO;
    if (export.out != stdout && fclose(export.out) != 0)
        result = EXIT_NO;
    if (result < 0)
        return fail(command, failure.exit_code, failure.text);
    if (result != 0)
        return fail(command, EXIT_NO, "cannot write the export; the disk may be full");
    (void)fprintf(stderr, "holdfast store export: %llu records\n",
                  (unsigned long long)export.count);
    if (export.unreadable > 0)
        return fail(command, EXIT_NO, "some records are damaged; import refuses their lines");
    return 0;
}

/* ---- import ---- */

/* A batch that grows, and the server record that goes with it. */
struct import {
    struct batch_writer writer;
    struct record_server server;
    bool has_server;
    uint32_t next_slot; /* of clients from rpc.statd */
    uint64_t unresolved;
};

static bool add_record(struct import *import, enum record_kind kind, uint32_t slot,
                       struct bytes value)
{
    struct batch_writer *writer = &import->writer;
    if (writer->max - writer->len < RECORD_VALUE_MAX + BATCH_CHANGE_OVERHEAD) {
        uint64_t max = writer->max * 2 + (1 << 20);
        uint8_t *start = realloc(writer->start, max);
        if (start == NULL)
            return false;
        writer->start = start;
        writer->max = max;
    }
    batch_put(writer, kind, slot, value);
    return true;
}

static int refuse_line(const struct command *command, uint64_t number, const char *why)
{
    char sentence[320];
    (void)snprintf(sentence, sizeof sentence, "line %llu: %s; nothing was imported",
                   (unsigned long long)number, why);
    return fail(command, EXIT_NO, sentence);
}

static int read_lines(const struct command *command, FILE *in, struct import *import)
{
    char *line = NULL, why[256];
    size_t size = 0;
    int result = 0;
    for (uint64_t number = 1; result == 0 && getline(&line, &size, in) > 0; number++) {
        uint8_t value[RECORD_VALUE_MAX];
        struct record_change change;
        struct text cause;
        text_init(&cause, why, sizeof why);
        if (store_json_get(line, value, &change, &cause) != 0) {
            result = refuse_line(command, number, why);
        } else if (change.kind == RECORD_SERVER) {
            CHECK(record_get_server(change.value, &import->server) == RECORD_GOOD);
            if (import->has_server)
                result = refuse_line(command, number, "a second server record");
            import->has_server = true;
        } else if (!add_record(import, change.kind, change.slot, change.value)) {
            result = fail(command, EXIT_STORE, "out of memory");
        }
    }
    if (result == 0 && ferror(in))
        result = fail(command, EXIT_NO, strerror(errno));
    if (result == 0 && !import->has_server)
        result = fail(command, EXIT_NO, "no server record; nothing was imported");
    free(line);
    return result;
}

static int import_host(void *context, const struct statd_import_host *host)
{
    struct import *import = context;
    if (host->address.family == 0) {
        import->unresolved++;
        (void)fprintf(stderr,
                      "holdfast store import: %.*s: does not resolve, so it cannot be notified; "
                      "fix DNS or /etc/hosts\n",
                      (int)host->name.len, (const char *)host->name.at);
        return 0;
    }
    uint8_t value[RECORD_VALUE_MAX];
    struct record_client client = {.id = import->server.next_id++,
                                   .registered_ns = host->since_ns,
                                   .seen_ns = host->since_ns,
                                   .address = host->address,
                                   .transport = RECORD_TCP,
                                   .versions = 1 << 4,
                                   .told_state = 0,
                                   .incarnation = 1,
                                   .flags = RECORD_CLIENT_MONITORED,
                                   .caller_name = host->name};
    uint32_t slot = import->next_slot++;
    uint32_t len = record_put_client(value, slot, &client);
    return add_record(import, RECORD_CLIENT, slot, (struct bytes){value, len}) ? 0 : EXIT_STORE;
}

static int read_statd(const struct command *command, struct import *import)
{
    char buffer[320];
    struct text why;
    text_init(&why, buffer, sizeof buffer);
    uint32_t state = 0;
    import->server = (struct record_server){.next_id = 1, .flags = RECORD_SERVER_INCOMPLETE};
    int result = statd_import_read(command->file, import_host, import, &state, &why);
    if (result < 0)
        return fail(command, EXIT_USAGE, buffer);
    if (result > 0)
        return fail(command, result, "out of memory");
    if (import->unresolved > 0 && !command->skip_unresolved)
        return fail(command, EXIT_NO,
                    "some names do not resolve; nothing was imported. --skip-unresolved skips "
                    "them, and they are never notified");
    import->server.state = import->server.restart_state = state | 1;
    import->has_server = true;
    return 0;
}

static int refuse_record(void *context, enum record_kind kind, uint32_t slot, struct bytes value)
{
    (void)context, (void)kind, (void)slot, (void)value;
    return EXIT_NO;
}

/*
 * One batch into a store that must be empty. It is opened as by a server: nobody else has it, and
 * in a shared store the epoch is the next one. A server that began on it when it was empty, and was
 * cut off before its first batch, would otherwise read back the number of ours and take it for its
 * own.
 */
static int write_store(struct command *command, struct import *import)
{
    struct store_failure failure = {0};
    const struct store_options options = {.is_server = true,
                                          .timeout_ns = command->config.store_timeout_s * SECOND_NS,
                                          .say = say,
                                          .context = command};
    struct store *store = store_open(command->config.store, &options, &failure);
    if (store == NULL)
        return fail(command, failure.exit_code, failure.text);
    int result = store_load(store, refuse_record, NULL, &failure);
    if (result == EXIT_NO)
        result = fail(command, EXIT_NO,
                      "the store is not empty; name one that is empty or does not exist. Nothing "
                      "was imported");
    else if (result != 0)
        result = fail(command, failure.exit_code, failure.text);
    if (result == 0) {
        uint8_t value[RECORD_VALUE_MAX];
        import->server.txn = 1;
        uint32_t len = record_put_server(value, &import->server);
        if (!add_record(import, RECORD_SERVER, 0, (struct bytes){value, len}))
            result = fail(command, EXIT_STORE, "out of memory");
    }
    struct store_batch batch = {.txn = 1,
                                .epoch = import->server.epoch,
                                .must_sync = true,
                                .count = import->writer.count,
                                .changes = {import->writer.start, import->writer.len}};
    if (result == 0 && store_commit(store, &batch, &failure) != 0)
        result = fail(command, failure.exit_code, failure.text);
    store_close(store);
    return result;
}

static int run_import(struct command *command)
{
    struct import import = {0};
    FILE *in = stdin;
    int result = 0;
    if (command->from != NULL && strcmp(command->from, "rpc.statd") != 0)
        return fail(command, EXIT_USAGE, "--from supports only rpc.statd");
    if (command->from != NULL && command->file == NULL)
        return fail(command, EXIT_USAGE,
                    "--from rpc.statd needs a directory, usually /var/lib/nfs");
    if (command->from != NULL) {
        result = read_statd(command, &import);
    } else if (command->file != NULL && (in = fopen(command->file, "re")) == NULL) {
        result = fail(command, EXIT_NO, strerror(errno));
    } else {
        result = read_lines(command, in, &import);
        if (in != stdin)
            (void)fclose(in);
    }
    if (result == 0)
        result = write_store(command, &import);
    if (result == 0)
        (void)fprintf(stderr, "holdfast store import: %u records\n", import.writer.count);
    free(import.writer.start);
    return result;
}

/* ---- clear ---- */

static int run_clear(struct command *command)
{
    if (command->file != NULL)
        return fail(command, EXIT_USAGE, "takes no FILE; name the store with --store");
    if (!command->names_store)
        return fail(command, EXIT_USAGE, "name the store with --store; clear has no default");
    return store_clear_run(command->config.store, command->config.store_timeout_s * SECOND_NS,
                           command->is_confirmed);
}

/* ---- the command line ---- */

static const struct {
    const char *verb;
    int (*run)(struct command *command);
} verbs[] = {
    {"migrate", run_migrate}, {"export", run_export}, {"import", run_import}, {"clear", run_clear}};

/* Takes the subcommand's own words out; the server's options are left in `rest`. */
static int read_order(int argc, char **argv, struct command *command, char **rest, int *rest_count)
{
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--print") == 0) {
            command->print_only = true;
        } else if (strcmp(argv[i], "--down") == 0) {
            command->is_down = true;
        } else if (strcmp(argv[i], "--skip-unresolved") == 0) {
            command->skip_unresolved = true;
        } else if (strcmp(argv[i], "--yes") == 0) {
            command->is_confirmed = true;
        } else if (strcmp(argv[i], "--from") == 0 && i + 1 < argc) {
            command->from = argv[++i];
        } else if (strncmp(argv[i], "--", 2) != 0 && command->file == NULL) {
            command->file = argv[i];
        } else if (*rest_count + 2 >= ARGUMENTS_MAX) {
            return fail(command, EXIT_USAGE, "too many arguments");
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
        return fail(command, EXIT_USAGE, buffer);
    return 0;
}

int store_command_run(int argc, char **argv)
{
    struct command command = {.verb = argc > 1 ? argv[1] : "help"};
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
            result = fail(&command, EXIT_NO, "cannot write to standard output");
        return result;
    }
    bool is_help = strcmp(command.verb, "help") == 0 || strcmp(command.verb, "--help") == 0 ||
                   strcmp(command.verb, "-h") == 0;
    (void)fputs(usage, is_help ? stdout : stderr);
    return is_help && argc > 1 ? 0 : EXIT_USAGE;
}

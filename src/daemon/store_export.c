/*
 * store_export.c -- see store_export.h.
 *
 * An export is a reader: it changes nothing in the store, no matter who runs it. If the store may
 * have lost changes (D16) it says so, in the lines too.
 *
 *   lmdb:      opened, if nobody has it; else from the server that has it (store_live.h)
 *   memory:    from the server: there is nothing else
 *   postgres:  in one transaction, also while a server uses it
 *
 * Whichever way, it is the state after one batch, and the last line proves it (store/lines.h).
 */
#include "daemon/store_export.h"

#include "base/units.h"
#include "daemon/store_file.h"
#include "daemon/store_json.h"
#include "daemon/store_live.h"
#include "daemon/store_to_statd.h"
#include "store/lines.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

struct export
{
    FILE *out;
    bool may_have_lost; /* D16: the lines must say so, whatever the server record says */
    uint64_t unreadable;
    struct digest digest;
};

/* NULL with *ret_failure filled. */
static struct store *open_reader(struct store_command *command, struct store_summary *ret_summary,
                                 struct store_failure *ret_failure)
{
    struct store_options options = {.is_reader = true,
                                    .timeout_ns = command->config.store_timeout_s * SECOND_NS,
                                    .say = store_command_say,
                                    .context = command};
    options.group_count = config_group_list(&command->config.group_names, options.groups);
    struct store *store = store_open(command->config.store, &options, ret_failure);
    if (store == NULL)
        return NULL;
    store_summarize(store, ret_summary);
    if (ret_summary->note[0] != '\0')
        store_command_say(command, ret_summary->note);
    return store;
}

struct store *store_export_open(struct store_command *command, struct store_summary *ret_summary,
                                int *ret_code)
{
    struct store_failure failure = {0};
    struct store *store = open_reader(command, ret_summary, &failure);
    if (store == NULL)
        *ret_code = store_command_fail(command, failure.exit_code, failure.text);
    return store;
}

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
    digest_add(&export->digest, kind, slot, value);
    return fprintf(export->out, "%s\n", buffer) < 0 ? STORE_COMMAND_NO : 0;
}

/* 0; what the visitor returned; or, negative, an exit code after a sentence. */
static int read_records(struct store_command *command, struct export *export)
{
    struct store_failure failure = {0};
    struct store_summary summary = {0};
    if (store_url_keeps_nothing(command->config.store))
        return store_live_load(command, NULL, export_record, export);
    struct store *store = open_reader(command, &summary, &failure);
    if (store == NULL && failure.is_in_use)
        return store_live_load(command, &failure, export_record, export);
    if (store == NULL)
        return -store_command_fail(command, failure.exit_code, failure.text);
    export->may_have_lost = summary.may_have_lost;
    int result = store_load(store, export_record, export, &failure);
    store_close(store);
    return result < 0 ? -store_command_fail(command, failure.exit_code, failure.text) : result;
}

static int fail_write(const struct store_command *command, int err)
{
    char sentence[128];
    (void)snprintf(sentence, sizeof sentence, "cannot write the export: %s", strerror(err));
    return store_command_fail(command, STORE_COMMAND_NO, sentence);
}

/* It is whole, and has its name; only its directory could not be synced. */
static int fail_sync(const struct store_command *command, int err)
{
    char sentence[PATH_MAX + 256];
    (void)snprintf(sentence, sizeof sentence,
                   "the export is written, but not known to be durable: cannot sync the directory "
                   "of %s: %s; export into another directory, or run sync",
                   command->file, strerror(err));
    return store_command_fail(command, STORE_COMMAND_NO, sentence);
}

static int export_lines(struct store_command *command)
{
    struct store_file file;
    char end[LINES_MAX];
    int error = store_file_open(&file, command->file);
    if (error != 0)
        return store_command_fail_file(command, command->file, error);
    struct export export = {.out = file.out};
    int result = read_records(command, &export);
    if (result != 0) {
        error = errno;
        store_file_drop(&file);
        return result < 0 ? -result : fail_write(command, error);
    }
    uint32_t len = lines_put_end(end, &export.digest);
    if (fwrite(end, 1, len, file.out) != len) {
        error = errno;
        store_file_drop(&file);
        return fail_write(command, error);
    }
    error = store_file_keep(&file);
    if (error > 0)
        return fail_write(command, error);
    (void)fprintf(stderr, "holdfast store export: %llu record%s, digest %016llx\n",
                  (unsigned long long)export.digest.count, export.digest.count == 1 ? "" : "s",
                  (unsigned long long)export.digest.sum);
    if (error < 0)
        result = fail_sync(command, -error);
    if (export.unreadable > 0)
        return store_command_fail(command, STORE_COMMAND_NO,
                                  "some records are damaged; import refuses their lines");
    return result;
}

int store_export_run(struct store_command *command)
{
    if (command->other == NULL)
        return export_lines(command);
    if (strcmp(command->other, "rpc.statd") != 0)
        return store_command_fail(command, STORE_COMMAND_USAGE, "--to supports only rpc.statd");
    if (command->file == NULL)
        return store_command_fail(command, STORE_COMMAND_USAGE,
                                  "--to rpc.statd needs a directory, usually /var/lib/nfs");
    return store_to_statd(command);
}

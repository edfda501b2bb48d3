/*
 * store_export.c -- see store_export.h.
 *
 * An export is a reader: it changes nothing in the store, no matter who runs it. If the store may
 * have lost changes (D16) it says so, in the lines too.
 */
#include "daemon/store_export.h"

#include "base/units.h"
#include "daemon/store_json.h"
#include "daemon/store_to_statd.h"

#include <errno.h>
#include <stdio.h>

struct export
{
    FILE *out;
    bool may_have_lost; /* D16: the lines must say so, whatever the server record says */
    uint64_t count, unreadable;
};

struct store *store_export_open(struct store_command *command, struct store_summary *ret_summary,
                                int *ret_code)
{
    struct store_failure failure = {0};
    const struct store_options options = {.is_reader = true,
                                          .timeout_ns = command->config.store_timeout_s * SECOND_NS,
                                          .say = store_command_say,
                                          .context = command};
    struct store *store = store_open(command->config.store, &options, &failure);
    if (store == NULL) {
        *ret_code = store_command_fail(command, failure.exit_code, failure.text);
        return NULL;
    }
    store_summarize(store, ret_summary);
    if (ret_summary->note[0] != '\0')
        store_command_say(command, ret_summary->note);
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
    export->count++;
    return fprintf(export->out, "%s\n", buffer) < 0 ? STORE_COMMAND_NO : 0;
}

static int export_lines(struct store_command *command)
{
    struct store_failure failure = {0};
    struct export export = {.out = stdout};
    struct store_summary summary;
    int result = 0;
    struct store *store = store_export_open(command, &summary, &result);
    if (store == NULL)
        return result;
    export.may_have_lost = summary.may_have_lost;
    if (command->file != NULL && (export.out = fopen(command->file, "we")) == NULL) {
        store_close(store);
        return store_command_fail(command, STORE_COMMAND_NO, strerror(errno));
    }
    result = store_load(store, export_record, &export, &failure);
    store_close(store);
    if (result == 0 && (fflush(export.out) != 0 || ferror(export.out)))
        result = STORE_COMMAND_NO;
    if (export.out != stdout && fclose(export.out) != 0)
        result = STORE_COMMAND_NO;
    if (result < 0)
        return store_command_fail(command, failure.exit_code, failure.text);
    if (result != 0)
        return store_command_fail(command, STORE_COMMAND_NO,
                                  "cannot write the export; the disk may be full");
    (void)fprintf(stderr, "holdfast store export: %llu records\n",
                  (unsigned long long)export.count);
    if (export.unreadable > 0)
        return store_command_fail(command, STORE_COMMAND_NO,
                                  "some records are damaged; import refuses their lines");
    return 0;
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

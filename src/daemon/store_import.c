/*
 * store_import.c -- see store_import.h.
 *
 * An import fills an empty store with one batch: it is whole or not there. So is what it reads: the
 * last line says how many records there must be, and which. With --incomplete it need not be there,
 * nor fit, and may be a part of a line, as a kill or a full disk leaves it: the store is marked
 * incomplete then (D16). Every other line must be good all the same.
 *
 * The start that follows
 * is like one after a crash, which is what a move looks like to clients. One from rpc.statd brings
 * a lock server clients without their locks: the store is marked incomplete (D16), so that this
 * start grants every reclaim that conflicts with nothing, and notifies every client.
 */
#include "daemon/store_import.h"

#include "base/check.h"
#include "base/units.h"
#include "daemon/store_from_statd.h"
#include "daemon/store_json.h"
#include "store/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

bool store_import_add(struct store_import *import, enum record_kind kind, uint32_t slot,
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
    store_batch_put(writer, kind, slot, value);
    digest_add(&import->digest, kind, slot, value);
    return true;
}

static int refuse_line(const struct store_command *command, uint64_t number, const char *why)
{
    char sentence[320];
    (void)snprintf(sentence, sizeof sentence, "line %llu: %s; nothing was imported",
                   (unsigned long long)number, why);
    return store_command_fail(command, STORE_COMMAND_NO, sentence);
}

/* What was read of the lines. */
struct reading {
    struct digest digest, said;
    bool has_end; /* of a whole export, */
    bool is_cut;  /* or of one that is not */
};

#define WHAT_NOW " Make a new export; --incomplete imports what there is. Nothing was imported"

/* The export ends here, and is not whole. */
static int end_early(const struct store_command *command, struct reading *reading, uint64_t number,
                     const char *how, const char *why)
{
    char sentence[512];
    reading->is_cut = true;
    if (command->is_incomplete)
        return 0;
    (void)snprintf(sentence, sizeof sentence, "line %llu: %s%s." WHAT_NOW,
                   (unsigned long long)number, how, why);
    return store_command_fail(command, STORE_COMMAND_NO, sentence);
}

static int read_line(const struct store_command *command, struct bytes line, uint64_t number,
                     struct store_import *import, struct reading *reading)
{
    uint8_t value[RECORD_VALUE_MAX];
    char why[256];
    struct record_change change;
    struct text cause;
    text_init(&cause, why, sizeof why);
    if (reading->has_end || reading->is_cut)
        return refuse_line(command, number, "a line after the last one");
    int result = store_json_get((const char *)line.at, value, &change, &reading->said, &cause);
    reading->has_end = result == STORE_JSON_END;
    if (reading->has_end)
        return 0;
    if (result == STORE_JSON_BROKEN)
        return end_early(command, reading, number, "the export broke off: ", why);
    if (result == -EBADMSG && line.at[line.len - 1] != '\n')
        return end_early(command, reading, number, "the export was cut", " inside this line");
    if (result != 0)
        return refuse_line(command, number, why);
    digest_add(&reading->digest, change.kind, change.slot, change.value);
    if (change.kind == RECORD_SERVER) {
        CHECK(record_get_server(change.value, &import->server) == RECORD_GOOD);
        if (import->has_server)
            return refuse_line(command, number, "a second server record");
        import->has_server = true;
    } else if (!store_import_add(import, change.kind, change.slot, change.value)) {
        return store_command_fail(command, STORE_COMMAND_STORE, "out of memory");
    }
    return 0;
}

/* Are these the lines that were exported, and all of them? */
static int check_whole(const struct store_command *command, const struct reading *reading)
{
    char sentence[320];
    if (!reading->has_end)
        return store_command_fail(command, STORE_COMMAND_NO,
                                  "the last line is missing: the export was cut." WHAT_NOW);
    if (reading->digest.count == reading->said.count && reading->digest.sum == reading->said.sum)
        return 0;
    (void)snprintf(sentence, sizeof sentence,
                   "not the lines that were exported: %llu records with digest %016llx, and the "
                   "last line says %llu with %016llx." WHAT_NOW,
                   (unsigned long long)reading->digest.count,
                   (unsigned long long)reading->digest.sum, (unsigned long long)reading->said.count,
                   (unsigned long long)reading->said.sum);
    return store_command_fail(command, STORE_COMMAND_NO, sentence);
}

static int read_lines(const struct store_command *command, FILE *in, struct store_import *import)
{
    char *line = NULL;
    size_t size = 0;
    int result = 0;
    struct reading reading = {0};
    ssize_t len = 0;
    for (uint64_t number = 1; result == 0 && (len = getline(&line, &size, in)) > 0; number++)
        result = read_line(command, (struct bytes){(const uint8_t *)line, (uint32_t)len}, number,
                           import, &reading);
    free(line);
    if (result == 0 && ferror(in))
        result = store_command_fail_file(
            command, command->file != NULL ? command->file : "standard input", errno);
    if (result == 0 && !import->has_server)
        result = store_command_fail(
            command, STORE_COMMAND_NO,
            "no server record: this is no export, or it was cut in its first line; "
            "nothing was imported");
    if (result == 0 && !command->is_incomplete)
        result = check_whole(command, &reading);
    if (command->is_incomplete)
        import->server.flags |= RECORD_SERVER_INCOMPLETE;
    return result;
}

static int refuse_record(void *context, enum record_kind kind, uint32_t slot, struct bytes value)
{
    (void)context, (void)kind, (void)slot, (void)value;
    return STORE_COMMAND_NO;
}

/*
 * One batch into a store that must be empty. It is opened as by a server: nobody else has it, and
 * in a shared store the epoch is the next one. A server that began on it when it was empty, and was
 * cut off before its first batch, would otherwise read back the number of ours and take it for its
 * own.
 */
static int write_store(struct store_command *command, struct store_import *import)
{
    struct store_failure failure = {0};
    struct store_options options = {.is_server = true,
                                    .timeout_ns = command->config.store_timeout_s * SECOND_NS,
                                    .say = store_command_say,
                                    .context = command};
    options.group_count = config_group_list(&command->config.group_names, options.groups);
    struct store *store = store_open(command->config.store, &options, &failure);
    if (store == NULL)
        return store_command_fail(command, failure.exit_code, failure.text);
    int result = store_load(store, refuse_record, NULL, &failure);
    if (result == STORE_COMMAND_NO)
        result = store_command_fail(
            command, STORE_COMMAND_NO,
            "the store is not empty; name one that is empty or does not exist. Nothing "
            "was imported");
    else if (result != 0)
        result = store_command_fail(command, failure.exit_code, failure.text);
    if (result == 0) {
        uint8_t value[RECORD_VALUE_MAX];
        import->server.txn = 1;
        uint32_t len = record_put_server(value, &import->server);
        if (!store_import_add(import, RECORD_SERVER, 0, (struct bytes){value, len}))
            result = store_command_fail(command, STORE_COMMAND_STORE, "out of memory");
    }
    struct store_batch batch = {.txn = 1,
                                .epoch = import->server.epoch,
                                .must_sync = true,
                                .count = import->writer.count,
                                .changes = {import->writer.start, import->writer.len}};
    if (result == 0 && store_commit(store, &batch, &failure) != 0)
        result = store_command_fail(command, failure.exit_code, failure.text);
    store_close(store);
    return result;
}

int store_import_run(struct store_command *command)
{
    struct store_import import = {0};
    FILE *in = stdin;
    int result = 0;
    if (command->other != NULL && strcmp(command->other, "rpc.statd") != 0)
        return store_command_fail(command, STORE_COMMAND_USAGE, "--from supports only rpc.statd");
    if (command->other != NULL && command->file == NULL)
        return store_command_fail(command, STORE_COMMAND_USAGE,
                                  "--from rpc.statd needs a directory, usually /var/lib/nfs");
    if (command->other != NULL) {
        result = store_from_statd(command, &import);
    } else if (command->file != NULL && (in = fopen(command->file, "re")) == NULL) {
        result = store_command_fail_file(command, command->file, errno);
    } else {
        result = read_lines(command, in, &import);
        if (in != stdin)
            (void)fclose(in);
    }
    if (result == 0)
        result = write_store(command, &import);
    if (result == 0)
        (void)fprintf(stderr, "holdfast store import: %llu record%s, digest %016llx\n",
                      (unsigned long long)import.digest.count, import.digest.count == 1 ? "" : "s",
                      (unsigned long long)import.digest.sum);
    free(import.writer.start);
    return result;
}

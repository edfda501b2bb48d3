/*
 * store_clear.c -- see store_clear.h.
 *
 *   open as a server does -> read what is there -> ask -> remove, batch by batch
 *
 * The server record stays. State numbers that were used before the clearing would tell a client
 * that nothing has happened since, so they must go on (R-PER-4), and so must client ids and epochs.
 * It is marked incomplete (D16): clients know of locks that the store does not, so the next start
 * has a full grace period and grants every reclaim that conflicts with nothing.
 *
 * A clearing takes the next epoch, as a start does (D6). In a shared store, a server that is only
 * cut off from it would otherwise read back the number of its own cut batch, which may be the
 * number of one of these, and take it for landed.
 *
 * Always true:
 *  (1) Every batch carries the mark: no removal is durable before it.
 *  (2) What refers to a client goes no later than the client. The kinds are in that order, and are
 *      removed from the last to the first. So a clearing may end after any batch: what is left is
 *      a smaller store, incomplete, and can be started on or cleared again.
 */
#include "daemon/store_clear.h"

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    EXIT_NO = 1,
    EXIT_USAGE = 2,
    EXIT_STORE = 74,
    EXIT_NEWER = 78,
    BATCH_REMOVALS_MAX = 10000, /* this many are committed well within any --store-timeout */
};

/* What the store holds. */
struct content {
    uint32_t *slots; /* owned; of all but the server record, in the order they are loaded in */
    uint64_t slot_count, slot_max;
    uint64_t counts[RECORD_KIND_END];
    struct record_server server;
    enum record_result server_result; /* when counts[RECORD_SERVER] > 0 */
};

static int fail(int exit_code, const char *sentence)
{
    (void)fprintf(stderr, "holdfast store clear: %s\n", sentence);
    return exit_code;
}

/* Reports what is being waited for; for options.say. */
static void say(void *context, const char *sentence)
{
    (void)context;
    (void)fail(0, sentence);
}

/* ---- what is there ---- */

static int note_record(void *context, enum record_kind kind, uint32_t slot, struct bytes value)
{
    struct content *content = context;
    if (kind == RECORD_SERVER) {
        if (slot == 0) { /* any other is damage; the first commit removes it */
            content->counts[kind]++;
            content->server_result = record_get_server(value, &content->server);
        }
        return 0;
    }
    if (content->slot_count == content->slot_max) {
        uint64_t max = content->slot_max * 2 + 1024;
        uint32_t *slots = realloc(content->slots, max * sizeof *slots);
        if (slots == NULL)
            return EXIT_STORE;
        content->slots = slots;
        content->slot_max = max;
    }
    content->slots[content->slot_count++] = slot;
    content->counts[kind]++;
    return 0;
}

static int read_content(struct store *store, struct content *content)
{
    struct store_failure failure = {0};
    int result = store_load(store, note_record, content, &failure);
    if (result < 0)
        return fail(failure.exit_code, failure.text);
    if (result > 0)
        return fail(result, "out of memory; nothing was removed");
    bool has_server = content->counts[RECORD_SERVER] > 0;
    if (has_server && content->server_result == RECORD_NEWER)
        return fail(EXIT_NEWER, "this store was written by a newer holdfast; clear it with that "
                                "version. Nothing was removed");
    if ((!has_server && content->slot_count > 0) ||
        (has_server && content->server_result != RECORD_GOOD))
        return fail(
            EXIT_STORE,
            "its server record, which holds the last state number, is lost or damaged; start the "
            "server on it once to create a new one, then clear it. Nothing was removed");
    return 0;
}

/* The kind of the record at `index` of `slots`. */
static enum record_kind kind_at(const struct content *content, uint64_t index)
{
    int kind = RECORD_SERVER + 1;
    while (index >= content->counts[kind]) {
        index -= content->counts[kind++];
        CHECK(kind < RECORD_KIND_END);
    }
    return (enum record_kind)kind;
}

/* ---- confirmation ---- */

static bool is_meant(const char *url, const struct content *content)
{
    char shown[256], answer[16];
    store_show_url(url, shown, sizeof shown);
    (void)fprintf(stderr, "This removes every record of %s:\n", shown);
    for (int kind = RECORD_SERVER + 1; kind < RECORD_KIND_END; kind++)
        if (content->counts[kind] > 0)
            (void)fprintf(stderr, "  %-10s %llu\n", record_kind_name((enum record_kind)kind),
                          (unsigned long long)content->counts[kind]);
    (void)fputs("Clients that hold locks are not notified, and cannot reclaim after the next "
                "start. Others\n"
                "can then lock the same bytes, so two clients may write at once.\n"
                "Continue? [y/N] ",
                stderr);
    (void)fflush(stderr);
    if (fgets(answer, sizeof answer, stdin) == NULL)
        return false;
    return answer[0] == 'y' || answer[0] == 'Y';
}

/* ---- removing ---- */

/* One batch: the server record, and up to BATCH_REMOVALS_MAX removals before `end`. Returns where
 * it began. */
static uint64_t fill_batch(struct content *content, uint64_t end, struct batch_writer *writer)
{
    uint64_t first = end > BATCH_REMOVALS_MAX ? end - BATCH_REMOVALS_MAX : 0;
    uint8_t value[RECORD_VALUE_MAX];
    content->server.txn++;
    writer->len = 0;
    writer->count = 0;
    store_batch_put(writer, RECORD_SERVER, 0,
                    (struct bytes){value, record_put_server(value, &content->server)});
    for (uint64_t i = first; i < end; i++)
        store_batch_delete(writer, kind_at(content, i), content->slots[i]);
    return first;
}

static int remove_all(struct store *store, struct content *content)
{
    static uint8_t buffer[RECORD_VALUE_MAX + (BATCH_REMOVALS_MAX + 1) * BATCH_CHANGE_OVERHEAD];
    struct batch_writer writer = {.start = buffer, .max = sizeof buffer};
    struct store_failure failure = {0};
    uint64_t end = content->slot_count;
    content->server.epoch++;
    content->server.flags &= RECORD_SERVER_MONITOR; /* whose store it is */
    content->server.flags |= RECORD_SERVER_INCOMPLETE;
    do {
        uint64_t first = fill_batch(content, end, &writer);
        struct store_batch batch = {.txn = content->server.txn,
                                    .epoch = content->server.epoch,
                                    .must_sync = true,
                                    .count = writer.count,
                                    .changes = {writer.start, writer.len}};
        if (store_commit(store, &batch, &failure) != 0) {
            (void)fail(failure.exit_code, failure.text);
            return fail(failure.exit_code, "some records may already be removed; run clear again");
        }
        end = first;
    } while (end > 0);
    return 0;
}

static int clear(struct store *store, const char *url, bool is_confirmed)
{
    struct content content = {0};
    int result = read_content(store, &content);
    if (result == 0 && content.counts[RECORD_SERVER] == 0) {
        (void)fail(0, "the store is empty; nothing to remove");
    } else if (result == 0 && !is_confirmed && !is_meant(url, &content)) {
        result = fail(EXIT_NO, "nothing was removed");
    } else if (result == 0) {
        result = remove_all(store, &content);
        if (result == 0)
            (void)fprintf(
                stderr,
                "holdfast store clear: %llu record%s removed. Clients that held locks are "
                "not notified. The next start treats the store as incomplete: a full "
                "grace period, every reclaim that conflicts with nothing is granted, and "
                "the state number is above %u\n",
                (unsigned long long)content.slot_count, content.slot_count == 1 ? "" : "s",
                content.server.state);
    }
    free(content.slots);
    return result;
}

int store_clear_run(const struct config *config, bool is_confirmed)
{
    const char *url = config->store;
    struct store_failure failure = {0};
    if (store_url_keeps_nothing(url))
        return fail(EXIT_USAGE, "memory: keeps nothing on disk; restart the server instead");
    if (!is_confirmed && !isatty(STDIN_FILENO))
        return fail(EXIT_USAGE, "needs confirmation, but standard input is not a terminal; use "
                                "--yes to skip the question");
    /* Opened like a server: exclusively, and in a shared store with the next epoch. */
    struct store_options options = {
        .is_server = true, .timeout_ns = config->store_timeout_s * SECOND_NS, .say = say};
    options.group_count = config_group_list(&config->group_names, options.groups);
    struct store *store = store_open(url, &options, &failure);
    if (store == NULL)
        return fail(failure.exit_code, failure.text);
    int result = clear(store, url, is_confirmed);
    store_close(store);
    return result;
}

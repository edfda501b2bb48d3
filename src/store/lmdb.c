/*
 * lmdb.c -- the embedded back end: one LMDB data file in a directory of its own.
 *
 *   DIR/data.mdb     the records; one table per kind, keyed by slot
 *   DIR/lock         who uses it (directory.c)
 *   DIR/unsynced     there is more in the page cache than on the disk (unsynced.c)
 *   DIR/data.mdb.damaged-N   what could not be read after a power loss (salvage.c)
 *
 * The key of a record is its slot and slots are used again last-freed-first, so a commit dirties
 * pages in proportion to what changed and not to what is stored (P7).
 *
 * --sync full: each commit is synced by LMDB itself, data first and then the page that makes it the
 * current one, so at any moment the disk holds the last commit or the one before.
 *
 * --sync process: commits stay in the page cache, in the order they were made; a killed process
 * loses nothing. Batches that add a client or change the server record are synced (D16). When the
 * machine stops, the file may be torn: the mark `unsynced` tells the next start, which verifies and
 * copies the store before it is used and reports that changes may have been lost.
 *
 * Always true:
 *  (1) Nobody writes to a data file that might be torn.
 *  (2) The mark of another boot stays until a batch is durable that was made in knowledge of it: a
 *      crash in between must not hide the loss.
 *  (3) After a failed commit the store does nothing more; the next start finds out what landed.
 */
#include "store/backend.h"

#include "base/check.h"
#include "store/lmdb_reader.h"
#include "store/reserve.h"
#include "store/salvage.h"
#include "store/unsynced.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Freed by the last commit: more than a commit that changes nothing frees by itself. */
enum { WORTH_A_COMMIT = 1024 * 1024 };

struct lmdb {
    struct directory directory;
    struct lmdb_env env;
    struct reserve reserve;
    uint64_t tree_len; /* what the next commit may have to copy at most */
    bool sync_process;
    /* Damaged records lie behind every intact one, from this slot on; the first commit removes
     * them, because the core cannot: its tables end before. */
    bool has_strays;
    uint32_t stray_from[RECORD_KIND_END];
    bool is_loss_marked; /* invariant (2): the mark of another boot is still there */
    bool has_failed;
};

/* ---- opening ---- */

/* The state of data.mdb before this start touches it. */
struct finding {
    enum unsynced_mark mark;
    bool exists;
    uint64_t file_len;
};

static int look(const struct lmdb *lmdb, struct finding *ret, struct store_failure *ret_failure)
{
    struct finding finding = {0};
    struct stat status;
    int code = unsynced_get(&lmdb->directory, &finding.mark);
    if (code != 0) {
        directory_fail(&lmdb->directory, "cannot read its file \"unsynced\"", -code, ret_failure);
        return -EIO;
    }
    if (fstatat(lmdb->directory.fd, LMDB_ENV_FILE, &status, 0) == 0) {
        finding.exists = true;
        finding.file_len = (uint64_t)status.st_size;
        if (!S_ISREG(status.st_mode)) {
            directory_fail(&lmdb->directory, "data.mdb is not a file", MDB_INVALID, ret_failure);
            return -EIO;
        }
    } else if (errno != ENOENT) {
        directory_fail(&lmdb->directory, "cannot find data.mdb", errno, ret_failure);
        return -EIO;
    }
    *ret = finding;
    return 0;
}

/*
 * The machine stopped in an unsynced run. Leaves a data.mdb that is safe to use, or none when the
 * old one was set aside; the note says which.
 */
static int recover_unsynced(struct lmdb *lmdb, struct finding *finding,
                            struct store_summary *summary, struct store_failure *ret_failure)
{
    const struct directory *directory = &lmdb->directory;
    enum salvage_result result = SALVAGE_DAMAGED;
    char aside[32];

    summary->may_have_lost = true;
    lmdb->is_loss_marked = true;
    if (!finding->exists) {
        /* The mark may be of this boot: it must not vouch for the file that is made now. */
        int code = unsynced_set_lost(directory);
        if (code != 0) {
            directory_fail(directory, "cannot write its file \"unsynced\"", -code, ret_failure);
            return -EIO;
        }
        (void)snprintf(summary->note, sizeof summary->note,
                       "store lmdb:%.200s: data.mdb is missing after an unclean end of a run with "
                       "--sync process; starting with an empty store that counts as incomplete",
                       directory->path);
        return 0;
    }
    if (finding->file_len > 0)
        result = salvage_run(directory, ret_failure);
    if (result == SALVAGE_FAILED)
        return -EIO;
    if (result != SALVAGE_DAMAGED) {
        (void)snprintf(summary->note, sizeof summary->note,
                       "store lmdb:%.200s: the machine stopped during a run with --sync process; "
                       "the last changes may be missing, so the store counts as incomplete",
                       directory->path);
        return 0;
    }
    int code = salvage_set_aside(directory, aside);
    if (code != 0) {
        directory_fail(directory, "cannot move the damaged data.mdb aside", -code, ret_failure);
        return -EIO;
    }
    finding->exists = false;
    (void)snprintf(summary->note, sizeof summary->note,
                   "store lmdb:%.200s: data.mdb is damaged: the machine stopped during a run with "
                   "--sync process; kept as %s, starting with an empty store that counts as "
                   "incomplete",
                   directory->path, aside);
    return 0;
}

/*
 * A file that ends before its last page was cut, or its last pages were freed before they were ever
 * written. Only reading it tells; reading a cut file through the map would kill the process.
 */
static int verify_short(struct lmdb *lmdb, struct store_failure *ret_failure)
{
    lmdb_env_close(&lmdb->env);
    enum salvage_result result = salvage_run(&lmdb->directory, ret_failure);
    if (result == SALVAGE_FAILED)
        return -EIO;
    int code = result == SALVAGE_DAMAGED
                   ? MDB_CORRUPTED
                   : lmdb_env_open(&lmdb->env, &lmdb->directory, LMDB_ENV_FILE, 0);
    if (code != 0) {
        directory_fail(&lmdb->directory, "data.mdb is truncated", code, ret_failure);
        return -EIO;
    }
    return 0;
}

static int open_env(struct lmdb *lmdb, const struct finding *finding,
                    struct store_failure *ret_failure)
{
    const struct directory *directory = &lmdb->directory;
    char unknown[64];
    int code = 0;

    if (!finding->exists && (code = lmdb_env_create(directory)) != 0) {
        directory_fail(directory, "cannot create data.mdb", code, ret_failure);
        return -EIO;
    }
    if (finding->exists && finding->file_len == 0) {
        directory_fail(directory, "data.mdb is empty, and holdfast did not leave it so",
                       MDB_INVALID, ret_failure);
        return -EIO;
    }
    code = lmdb_env_open(&lmdb->env, directory, LMDB_ENV_FILE, 0);
    if (code != 0) {
        directory_fail(directory, "cannot open data.mdb", code, ret_failure);
        return -EIO;
    }
    if (finding->exists && finding->file_len < lmdb_env_used_end(&lmdb->env) &&
        verify_short(lmdb, ret_failure) != 0)
        return -EIO;
    code = lmdb_env_find_unknown(&lmdb->env, unknown);
    if (code == 0 && unknown[0] != '\0') {
        store_fail(ret_failure, STORE_EXIT_NEWER,
                   "store lmdb:%.200s: it has a table \"%s\" that this version does not know: a "
                   "newer holdfast or another program wrote it; start that version, or choose "
                   "another --store",
                   directory->path, unknown);
        return -EIO;
    }
    if (code == 0)
        code = lmdb_env_make_tables(&lmdb->env);
    /* Only now: what makes the tables is synced whatever the mode, because no mark is set yet. */
    if (code == 0 && lmdb->sync_process)
        code = mdb_env_set_flags(lmdb->env.env, MDB_NOSYNC, 1);
    if (code != 0) {
        directory_fail(directory, "cannot read the tables of data.mdb", code, ret_failure);
        return -EIO;
    }
    return 0;
}

/* Brings the mark into line with this run: set by --sync process, gone otherwise. */
static int adjust_mark(struct lmdb *lmdb, enum unsynced_mark mark,
                       struct store_failure *ret_failure)
{
    if (lmdb->is_loss_marked)
        return 0; /* invariant (2) */
    int code = 0;
    if (lmdb->sync_process && mark == UNSYNCED_NONE)
        code = -unsynced_set(&lmdb->directory);
    if (!lmdb->sync_process && mark != UNSYNCED_NONE) {
        code = mdb_env_sync(lmdb->env.env, 1);
        if (code == 0)
            code = -unsynced_clear(&lmdb->directory);
    }
    if (code != 0) {
        directory_fail(&lmdb->directory, "cannot write its file \"unsynced\"", code, ret_failure);
        return -EIO;
    }
    return 0;
}

/*
 * The highest slot of an intact record. A damaged key may be any number, and must not make the core
 * reserve memory for so many slots. The checksum covers the key.
 */
static int find_slots_used(struct lmdb *lmdb, MDB_cursor *cursor, int kind, uint32_t *ret)
{
    MDB_val key, value;
    union record_any record;
    uint32_t slot = 0;
    int code = mdb_cursor_get(cursor, &key, &value, MDB_LAST);
    for (; code == 0; code = mdb_cursor_get(cursor, &key, &value, MDB_PREV)) {
        if (key.mv_size != sizeof slot || value.mv_size > UINT32_MAX)
            return MDB_CORRUPTED;
        memcpy(&slot, key.mv_data, sizeof slot);
        struct bytes bytes = {value.mv_data, (uint32_t)value.mv_size};
        if (slot < RECORD_SLOT_MAX &&
            record_get(bytes, (enum record_kind)kind, slot, &record) != RECORD_CORRUPT)
            break; /* of this format or a newer one */
        lmdb->has_strays = true;
    }
    if (code != 0 && code != MDB_NOTFOUND)
        return code;
    *ret = code == 0 ? slot + 1 : 0;
    lmdb->stray_from[kind] = *ret;
    return 0;
}

static int summarize(struct lmdb *lmdb, struct store_summary *summary)
{
    MDB_txn *txn = NULL;
    int code = mdb_txn_begin(lmdb->env.env, NULL, MDB_RDONLY, &txn);
    if (code != 0)
        return code;
    for (int kind = RECORD_SERVER; code == 0 && kind < RECORD_KIND_END; kind++) {
        MDB_cursor *cursor = NULL;
        if (lmdb->env.is_missing[kind])
            continue;
        code = mdb_cursor_open(txn, lmdb->env.tables[kind], &cursor);
        if (code != 0)
            break;
        code = find_slots_used(lmdb, cursor, kind, &summary->slots_used[kind]);
        mdb_cursor_close(cursor);
    }
    mdb_txn_abort(txn);
    return code;
}

/*
 * What a batch can need behind the last page in use: for each record it puts, a page of its own or
 * one from a split (and their share of the pages above); a copy of each page it touches, which are
 * a leaf, its neighbour and the page above them per change, at most all there are; and LMDB's own
 * books.
 */
static uint64_t need_of(const struct lmdb *lmdb, uint64_t put_count, uint64_t change_count)
{
    const uint64_t page_len = lmdb_env_page_len(&lmdb->env);
    uint64_t touched_len = 3 * change_count * page_len;
    if (touched_len > lmdb->tree_len)
        touched_len = lmdb->tree_len;
    return (put_count + put_count / 16 + 64) * page_len + touched_len;
}

/*
 * After every commit: how much is left, and is it enough? The low-water mark is the sum of what can
 * come after a yes: two batches of new records, because the core fills one while another commits
 * and hears of the end of room only then; two of repeats, whose old pages come free for the third;
 * one SM_UNMON_ALL or FREE_ALL, which removes any number of records from any number of pages; and
 * a quarter more of what is there, because an UNLOCK out of the middle of a lock makes two of it,
 * each as long as it was, and must not fail (R-RNG-5).
 */
static void settle(struct lmdb *lmdb)
{
    lmdb->tree_len = lmdb_env_tree_len(&lmdb->env);
    uint64_t low_len = 2 * need_of(lmdb, STORE_BATCH_PUTS_MAX, 0) +
                       2 * need_of(lmdb, STORE_BATCH_PUTS_MAX, STORE_BATCH_PUTS_MAX) +
                       lmdb->tree_len + lmdb->tree_len / 4;
    reserve_note_used(&lmdb->reserve, lmdb_env_used_end(&lmdb->env), low_len);
    reserve_refill(&lmdb->reserve);
    if (reserve_is_low(&lmdb->reserve))
        reserve_note_spare(&lmdb->reserve, lmdb_env_space(&lmdb->env).spare_len);
}

static int begin_reserve(struct lmdb *lmdb)
{
    int fd = -1;
    int code = mdb_env_get_fd(lmdb->env.env, &fd);
    if (code == 0)
        code = -reserve_init(&lmdb->reserve, fd, lmdb_env_map_len(&lmdb->env));
    if (code != 0)
        return code;
    settle(lmdb);
    return 0;
}

static int open_store(struct lmdb *lmdb, struct store_summary *summary,
                      struct store_failure *ret_failure)
{
    struct finding finding;
    if (look(lmdb, &finding, ret_failure) != 0)
        return -EIO;
    bool is_lost =
        finding.mark == UNSYNCED_OTHER_BOOT || (finding.mark != UNSYNCED_NONE && !finding.exists);
    if (is_lost && recover_unsynced(lmdb, &finding, summary, ret_failure) != 0)
        return -EIO;
    if (is_lost && finding.exists && look(lmdb, &finding, ret_failure) != 0)
        return -EIO; /* the copy has another length */
    if (open_env(lmdb, &finding, ret_failure) != 0)
        return -EIO;
    if (adjust_mark(lmdb, finding.mark, ret_failure) != 0)
        return -EIO;
    int code = summarize(lmdb, summary);
    if (code == 0)
        code = begin_reserve(lmdb);
    if (code == 0)
        code = -directory_sync(&lmdb->directory);
    if (code != 0) {
        directory_fail(&lmdb->directory, "cannot read data.mdb", code, ret_failure);
        return -EIO;
    }
    return 0;
}

static int open_reader(struct lmdb *lmdb, struct store_summary *summary,
                       struct store_failure *ret_failure)
{
    if (lmdb_reader_open(&lmdb->env, &lmdb->directory, summary, ret_failure) != 0)
        return -EIO;
    int code = summarize(lmdb, summary);
    if (code == 0)
        return 0;
    directory_fail(&lmdb->directory, "cannot read data.mdb", code, ret_failure);
    return -EIO;
}

static void lmdb_release(struct lmdb *lmdb)
{
    lmdb_env_close(&lmdb->env);
    directory_close(&lmdb->directory);
    free(lmdb);
}

static void *lmdb_open(const char *rest, const struct store_options *options,
                       struct store_summary *ret_summary, struct store_failure *ret_failure)
{
    if (rest[0] == '\0') {
        store_fail(ret_failure, STORE_EXIT_USAGE,
                   "store \"lmdb:\": the directory is missing; use lmdb:DIR");
        return NULL;
    }
    struct lmdb *lmdb = calloc(1, sizeof *lmdb);
    if (lmdb == NULL) {
        store_fail(ret_failure, STORE_EXIT_STORE, "store lmdb:%.200s: out of memory", rest);
        return NULL;
    }
    bool is_reader = options->is_reader;
    lmdb->sync_process = options->sync_process && !is_reader;
    if ((is_reader ? directory_open_reader(&lmdb->directory, rest, ret_failure)
                   : directory_open(&lmdb->directory, rest, ret_failure)) != 0) {
        free(lmdb);
        return NULL;
    }
    if ((is_reader ? open_reader(lmdb, ret_summary, ret_failure)
                   : open_store(lmdb, ret_summary, ret_failure)) != 0) {
        lmdb_release(lmdb);
        return NULL;
    }
    return lmdb;
}

/* ---- reading ---- */

/* What the visitor returned in *ret_stop; LMDB's code as the result. */
static int load_table(const struct lmdb *lmdb, MDB_txn *txn, int kind, store_visit_fn visit,
                      void *context, int *ret_stop)
{
    MDB_cursor *cursor = NULL;
    MDB_val key, value;
    int code = mdb_cursor_open(txn, lmdb->env.tables[kind], &cursor);
    if (code != 0)
        return code;
    while (*ret_stop == 0 && (code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
        uint32_t slot;
        if (key.mv_size != sizeof slot || value.mv_size > UINT32_MAX) {
            code = MDB_CORRUPTED;
            break;
        }
        memcpy(&slot, key.mv_data, sizeof slot);
        *ret_stop = visit(context, (enum record_kind)kind, slot,
                          (struct bytes){value.mv_data, (uint32_t)value.mv_size});
    }
    mdb_cursor_close(cursor);
    return code == MDB_NOTFOUND ? 0 : code;
}

static int lmdb_load(void *self, store_visit_fn visit, void *context,
                     struct store_failure *ret_failure)
{
    const struct lmdb *lmdb = self;
    MDB_txn *txn = NULL;
    int stop = 0;
    int code = mdb_txn_begin(lmdb->env.env, NULL, MDB_RDONLY, &txn);
    for (int kind = RECORD_SERVER; code == 0 && stop == 0 && kind < RECORD_KIND_END; kind++)
        if (!lmdb->env.is_missing[kind])
            code = load_table(lmdb, txn, kind, visit, context, &stop);
    mdb_txn_abort(txn); /* does nothing to NULL */
    if (directory_is_shared(&lmdb->directory)) {
        store_fail(ret_failure, STORE_EXIT_STORE,
                   "store lmdb:%.200s: a server started on it, so the data read may be incomplete; "
                   "stop it and try again",
                   lmdb->directory.path);
        return -EIO;
    }
    if (code != 0) {
        directory_fail(&lmdb->directory, "cannot read data.mdb", code, ret_failure);
        return -EIO;
    }
    return stop;
}

/* ---- writing ---- */

static uint64_t count_puts(const struct store_batch *batch)
{
    struct record_change change;
    uint64_t at = 0, count = 0;
    while (batch_next(batch, &at, &change))
        count += change.deleted ? 0 : 1;
    return count;
}

/* The core reported them when it loaded them, and the store counts as incomplete. */
static int remove_strays(struct lmdb *lmdb, MDB_txn *txn)
{
    int code = 0;
    for (int kind = RECORD_SERVER; code == 0 && kind < RECORD_KIND_END; kind++) {
        MDB_cursor *cursor = NULL;
        MDB_val key = {sizeof lmdb->stray_from[kind], &lmdb->stray_from[kind]}, value;
        code = mdb_cursor_open(txn, lmdb->env.tables[kind], &cursor);
        if (code != 0)
            break;
        code = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
        while (code == 0) {
            code = mdb_cursor_del(cursor, 0);
            if (code == 0)
                code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
        }
        mdb_cursor_close(cursor);
        if (code == MDB_NOTFOUND)
            code = 0;
    }
    return code;
}

/* Slots come in ascending order within a kind: a page that a run of removals empties is used again
 * for the copy of the next one, so that removing everything needs next to no space. */
static int apply(struct lmdb *lmdb, MDB_txn *txn, const struct store_batch *batch)
{
    struct record_change change;
    uint64_t at = 0;
    int code = 0;
    while (code == 0 && batch_next(batch, &at, &change)) {
        MDB_val key = {sizeof change.slot, &change.slot};
        MDB_dbi table = lmdb->env.tables[change.kind];
        if (change.deleted) {
            code = mdb_del(txn, table, &key, NULL);
            if (code == MDB_NOTFOUND)
                code = 0;
        } else {
            MDB_val value = {change.value.len, (void *)(uintptr_t)change.value.at};
            code = mdb_put(txn, table, &key, &value, 0);
        }
    }
    return code;
}

static int write_batch(struct lmdb *lmdb, const struct store_batch *batch)
{
    MDB_txn *txn = NULL;
    int code = mdb_txn_begin(lmdb->env.env, NULL, 0, &txn);
    if (code != 0)
        return code;
    if (lmdb->has_strays)
        code = remove_strays(lmdb, txn);
    if (code == 0)
        code = apply(lmdb, txn, batch);
    if (code != 0) {
        mdb_txn_abort(txn);
        return code;
    }
    code = mdb_txn_commit(txn);
    if (code == 0 && lmdb->sync_process && (batch->must_sync || lmdb->is_loss_marked))
        code = mdb_env_sync(lmdb->env.env, 1);
    return code;
}

static int lmdb_commit(void *self, const struct store_batch *batch,
                       struct store_failure *ret_failure)
{
    struct lmdb *lmdb = self;
    if (lmdb->has_failed || lmdb->directory.is_reader) {
        store_fail(ret_failure, STORE_EXIT_STORE, "store lmdb:%.200s: %s", lmdb->directory.path,
                   lmdb->has_failed ? "an earlier commit failed; start again"
                                    : "it was opened read-only");
        return -EIO;
    }
    reserve_grow(&lmdb->reserve, need_of(lmdb, count_puts(batch), batch->count));
    int code = write_batch(lmdb, batch);
    if (code != 0) {
        lmdb->has_failed = true;
        directory_fail(&lmdb->directory, "cannot commit to data.mdb", code, ret_failure);
        return -EIO;
    }
    lmdb->has_strays = false;
    if (lmdb->is_loss_marked) {
        /* Failing here only means that the next start assumes a loss once more. */
        code =
            lmdb->sync_process ? unsynced_set(&lmdb->directory) : unsynced_clear(&lmdb->directory);
        lmdb->is_loss_marked = code != 0;
    }
    settle(lmdb);
    return 0;
}

/*
 * A commit that changes nothing: the server record is written as it is. What the commit before it
 * freed can be used again afterwards; without it, a full store whose records were all removed would
 * refuse new ones until one more is removed.
 */
static int turn_over(struct lmdb *lmdb)
{
    MDB_txn *txn = NULL;
    uint32_t slot = 0;
    uint8_t copy[RECORD_VALUE_MAX];
    MDB_val key = {sizeof slot, &slot}, value;
    int code = mdb_txn_begin(lmdb->env.env, NULL, 0, &txn);
    if (code != 0)
        return code;
    code = mdb_get(txn, lmdb->env.tables[RECORD_SERVER], &key, &value);
    if (code == 0 && value.mv_size <= sizeof copy) {
        memcpy(copy, value.mv_data, value.mv_size);
        value.mv_data = copy;
        code = mdb_put(txn, lmdb->env.tables[RECORD_SERVER], &key, &value, 0);
    }
    if (code != 0) {
        mdb_txn_abort(txn);
        return code == MDB_NOTFOUND ? 0 : code;
    }
    return mdb_txn_commit(txn);
}

/* Below the low-water mark, and unable to grow: what was freed inside the file is looked for. */
static void find_spare(struct lmdb *lmdb)
{
    if (lmdb_env_space(&lmdb->env).fresh_len >= WORTH_A_COMMIT)
        lmdb->has_failed = turn_over(lmdb) != 0;
    settle(lmdb);
}

static bool lmdb_tend(void *self)
{
    struct lmdb *lmdb = self;
    if (lmdb->has_failed || lmdb->directory.is_reader)
        return false;
    bool has_more = reserve_tend(&lmdb->reserve);
    if (lmdb->reserve.is_stuck && reserve_is_low(&lmdb->reserve))
        find_spare(lmdb);
    return has_more;
}

static bool lmdb_has_room(const void *self)
{
    const struct lmdb *lmdb = self;
    return !lmdb->directory.is_reader && reserve_has_room(&lmdb->reserve);
}

static void lmdb_close(void *self)
{
    struct lmdb *lmdb = self;
    /* When either fails the mark stays, which only costs trust. */
    if (lmdb->sync_process && !lmdb->has_failed && !lmdb->is_loss_marked &&
        mdb_env_sync(lmdb->env.env, 1) == 0)
        (void)!unsynced_clear(&lmdb->directory);
    lmdb_release(lmdb);
}

const struct store_backend store_lmdb = {
    .scheme = "lmdb",
    .usage = "lmdb:DIR",
    .open = lmdb_open,
    .load = lmdb_load,
    .commit = lmdb_commit,
    .tend = lmdb_tend,
    .has_room = lmdb_has_room,
    .close = lmdb_close,
};

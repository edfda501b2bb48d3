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

#include "store/lmdb_env.h"
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
    bool sync_process;
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
                       "store lmdb:%.200s: data.mdb is missing although a run with --sync process "
                       "was not closed; starting with an empty store that counts as incomplete",
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
        directory_fail(&lmdb->directory, "data.mdb is shorter than it must be", code, ret_failure);
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
        directory_fail(directory, "data.mdb is empty, which no holdfast leaves behind", MDB_INVALID,
                       ret_failure);
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

/* The highest slot of each kind. A store without any record never saw a commit: it is new. */
static int summarize(struct lmdb *lmdb, struct store_summary *summary)
{
    MDB_txn *txn = NULL;
    bool is_empty = true;
    int code = mdb_txn_begin(lmdb->env.env, NULL, MDB_RDONLY, &txn);
    if (code != 0)
        return code;
    for (int kind = RECORD_SERVER; code == 0 && kind < RECORD_KIND_END; kind++) {
        MDB_cursor *cursor = NULL;
        MDB_val key, value;
        code = mdb_cursor_open(txn, lmdb->env.tables[kind], &cursor);
        if (code != 0)
            break;
        code = mdb_cursor_get(cursor, &key, &value, MDB_LAST);
        if (code == 0) {
            uint32_t slot = 0;
            if (key.mv_size == sizeof slot)
                memcpy(&slot, key.mv_data, sizeof slot);
            else
                code = MDB_CORRUPTED;
            summary->slots_used[kind] = slot == UINT32_MAX ? slot : slot + 1;
            is_empty = false;
        } else if (code == MDB_NOTFOUND) {
            code = 0;
        }
        mdb_cursor_close(cursor);
    }
    mdb_txn_abort(txn);
    summary->is_new = is_empty && !summary->may_have_lost;
    return code;
}

static int begin_reserve(struct lmdb *lmdb)
{
    int fd = -1;
    int code = mdb_env_get_fd(lmdb->env.env, &fd);
    if (code == 0)
        code = -reserve_init(&lmdb->reserve, fd, lmdb_env_map_len(&lmdb->env));
    if (code != 0)
        return code;
    reserve_note_used(&lmdb->reserve, lmdb_env_used_end(&lmdb->env));
    reserve_begin(&lmdb->reserve);
    if (lmdb->reserve.is_stuck)
        reserve_note_spare(&lmdb->reserve, lmdb_env_space(&lmdb->env).spare_len);
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
    lmdb->sync_process = options->sync_process;
    if (directory_open(&lmdb->directory, rest, ret_failure) != 0) {
        free(lmdb);
        return NULL;
    }
    if (open_store(lmdb, ret_summary, ret_failure) != 0) {
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
        code = load_table(lmdb, txn, kind, visit, context, &stop);
    mdb_txn_abort(txn); /* does nothing to NULL */
    if (code != 0) {
        directory_fail(&lmdb->directory, "cannot read data.mdb", code, ret_failure);
        return -EIO;
    }
    return stop;
}

/* ---- writing ---- */

/*
 * What a batch can need behind the last page in use: its bytes in pages that are half full after a
 * split, a copy of each page it touches (at most all there are), and LMDB's own books.
 */
static uint64_t need_of(const struct lmdb *lmdb, const struct store_batch *batch)
{
    const uint64_t page_len = lmdb_env_page_len(&lmdb->env);
    uint64_t touched_len = batch->count * page_len;
    if (touched_len > lmdb->reserve.used_end)
        touched_len = lmdb->reserve.used_end;
    return 2 * batch->changes.len + touched_len + 64 * page_len;
}

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
    if (lmdb->has_failed) {
        store_fail(ret_failure, STORE_EXIT_STORE,
                   "store lmdb:%.200s: an earlier commit failed; start again",
                   lmdb->directory.path);
        return -EIO;
    }
    reserve_grow(&lmdb->reserve, need_of(lmdb, batch));
    int code = write_batch(lmdb, batch);
    if (code != 0) {
        lmdb->has_failed = true;
        directory_fail(&lmdb->directory, "cannot commit to data.mdb", code, ret_failure);
        return -EIO;
    }
    if (lmdb->is_loss_marked) {
        /* Failing here only means that the next start assumes a loss once more. */
        code =
            lmdb->sync_process ? unsynced_set(&lmdb->directory) : unsynced_clear(&lmdb->directory);
        lmdb->is_loss_marked = code != 0;
    }
    reserve_note_used(&lmdb->reserve, lmdb_env_used_end(&lmdb->env));
    return 0;
}

/*
 * A commit that changes nothing: the server record is written as it is. What the commit before it
 * freed can be used again afterwards; without it, a full store whose records were all removed would
 * refuse new ones until somebody removes one more.
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
    struct lmdb_env_space space = lmdb_env_space(&lmdb->env);
    if (space.fresh_len >= WORTH_A_COMMIT) {
        lmdb->has_failed = turn_over(lmdb) != 0;
        reserve_note_used(&lmdb->reserve, lmdb_env_used_end(&lmdb->env));
        space = lmdb_env_space(&lmdb->env);
    }
    reserve_note_spare(&lmdb->reserve, space.spare_len);
}

static bool lmdb_tend(void *self)
{
    struct lmdb *lmdb = self;
    if (lmdb->has_failed)
        return false;
    bool has_more = reserve_tend(&lmdb->reserve);
    if (lmdb->reserve.is_stuck)
        find_spare(lmdb);
    return has_more;
}

static bool lmdb_has_room(const void *self)
{
    const struct lmdb *lmdb = self;
    return reserve_has_room(&lmdb->reserve);
}

static const char *lmdb_directory(const void *self)
{
    const struct lmdb *lmdb = self;
    return lmdb->directory.path;
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
    .directory = lmdb_directory,
    .close = lmdb_close,
};

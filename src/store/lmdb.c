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
#include "store/lmdb_store.h"
#include "store/unsynced.h"

#include <errno.h>
#include <stdlib.h>

/* ---- opening and closing ---- */

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
    if ((is_reader ? lmdb_open_reader(lmdb, ret_summary, ret_failure)
                   : lmdb_open_server(lmdb, ret_summary, ret_failure)) != 0) {
        lmdb_release(lmdb);
        return NULL;
    }
    return lmdb;
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

/* ---- reading ---- */

struct reading {
    MDB_txn *txn;
    int kind;
    uint32_t from;
    uint64_t end; /* UINT64_MAX: none. A damaged key may be any number */
};

/* What the visitor returned in *ret_stop; LMDB's code as the result. */
static int load_table(const struct lmdb *lmdb, struct reading reading, store_visit_fn visit,
                      void *context, int *ret_stop)
{
    MDB_cursor *cursor = NULL;
    MDB_val key = {sizeof reading.from, &reading.from}, value;
    int code = mdb_cursor_open(reading.txn, lmdb->env.tables[reading.kind], &cursor);
    if (code != 0)
        return code;
    for (MDB_cursor_op op = MDB_SET_RANGE;
         *ret_stop == 0 && (code = mdb_cursor_get(cursor, &key, &value, op)) == 0; op = MDB_NEXT) {
        uint32_t slot;
        if (key.mv_size != sizeof slot || value.mv_size > UINT32_MAX) {
            code = MDB_CORRUPTED;
            break;
        }
        memcpy(&slot, key.mv_data, sizeof slot);
        if (slot >= reading.end)
            break;
        *ret_stop = visit(context, (enum record_kind)reading.kind, slot,
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
            code =
                load_table(lmdb, (struct reading){txn, kind, 0, UINT64_MAX}, visit, context, &stop);
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

/* Of a server: its thread is the one that commits, so no page that is read here is used again. */
static int lmdb_walk(void *self, struct store_slots slots, store_visit_fn visit, void *context,
                     struct store_failure *ret_failure)
{
    const struct lmdb *lmdb = self;
    MDB_txn *txn = NULL;
    int stop = 0;
    int code = mdb_txn_begin(lmdb->env.env, NULL, MDB_RDONLY, &txn);
    struct reading reading = {txn, (int)slots.kind, slots.from, slots.end};
    if (code == 0)
        code = load_table(lmdb, reading, visit, context, &stop);
    mdb_txn_abort(txn); /* does nothing to NULL */
    if (code == 0)
        return stop;
    directory_fail(&lmdb->directory, "cannot read data.mdb", code, ret_failure);
    return -EIO;
}

/* ---- writing ---- */

static uint64_t count_puts(const struct store_batch *batch)
{
    struct record_change change;
    uint64_t at = 0, count = 0;
    while (store_batch_next(batch, &at, &change))
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
    while (code == 0 && store_batch_next(batch, &at, &change)) {
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
    reserve_grow(&lmdb->reserve, lmdb_space_need(lmdb, count_puts(batch), batch->count));
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
    lmdb_space_adjust(lmdb);
    return 0;
}

static bool lmdb_tend(void *self)
{
    struct lmdb *lmdb = self;
    if (lmdb->has_failed || lmdb->directory.is_reader)
        return false;
    bool has_more = reserve_tend(&lmdb->reserve);
    if (lmdb->reserve.is_stuck && reserve_is_low(&lmdb->reserve))
        lmdb_space_find(lmdb);
    return has_more;
}

static bool lmdb_has_room(const void *self)
{
    const struct lmdb *lmdb = self;
    return !lmdb->directory.is_reader && reserve_has_room(&lmdb->reserve);
}

const struct store_backend store_lmdb = {
    .scheme = "lmdb",
    .usage = "lmdb:DIR",
    .is_directory = true,
    .open = lmdb_open,
    .load = lmdb_load,
    .commit = lmdb_commit,
    .walk = lmdb_walk,
    .tend = lmdb_tend,
    .has_room = lmdb_has_room,
    .close = lmdb_close,
};

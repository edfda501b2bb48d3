/*
 * lmdb.c -- the embedded back end: one LMDB data file in a directory of its own.
 *
 *   DIR/data.mdb     the records; one table per kind, keyed by slot
 *   DIR/journal      the last batches, until the tables have them (journal.h)
 *   DIR/lock         who uses it (directory.c)
 *   DIR/unsynced     there is more in the page cache than on the disk (unsynced.c)
 *   DIR/data.mdb.damaged-N   what could not be read after a power loss (salvage.c)
 *
 *                append                        fold
 *   batch ---------------------> journal ---------------------> tables
 *     |                                                           ^
 *     +-- no space in the journal, or to fold it into; no journal-+
 *
 * A commit is a frame of the journal: one write of whole blocks, and one sync of it. When the
 * journal is full, the tables take what it comes to (fold.h) with the batch that had no space, in
 * one commit of LMDB; and so when there is more to fold than batches should wait for, at the
 * beginning and at the end of a run, and before a copy. Without a journal every batch goes into the
 * tables.
 *
 * The key of a record is its slot and slots are used again last-freed-first, so a fold dirties
 * pages in proportion to what changed and not to what is stored (P7). LMDB syncs each of its
 * commits itself, data first and then the page that makes it the current one, so at any moment the
 * disk holds the last fold or the one before.
 *
 * --sync process: frames stay in the page cache, in the order they were made; a killed process
 * loses nothing. Batches that add a client or change the server record are synced (D16), and with
 * them all frames before. When the machine stops, frames may be missing: the mark `unsynced` tells
 * the next start, which takes those before the first that is missing, and reports that changes may
 * have been lost. (Versions without a journal left the tables unsynced, too, so it also verifies
 * and copies data.mdb.)
 *
 * Always true:
 *  (1) Nobody writes to a data file that might be torn.
 *  (2) The mark of another boot stays until a batch is durable that was made in knowledge of it: a
 *      crash in between must not hide the loss.
 *  (3) After a failed commit the store does nothing more; the next start finds out what landed.
 *  (4) Tables and frames behind the place (lmdb_place.h) are together what was committed, in that
 *      order. A frame is written over only when tables that have it are durable.
 *  (5) What is in the journal can be folded into the tables without asking anybody for space, and
 *      the low-water mark is left (lmdb_space.c).
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
    fold_free(&lmdb->fold);
    fold_list_free(&lmdb->unfolded);
    journal_close(&lmdb->journal);
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
    lmdb->journal.fd = -1;
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
    /* When either fails nothing is lost: the next start folds, or the mark costs trust. */
    if (!lmdb->has_failed && !lmdb->directory.is_reader && lmdb_fold_last(lmdb) == 0 &&
        lmdb->sync_process && !lmdb->is_loss_marked)
        (void)!unsynced_clear(&lmdb->directory);
    lmdb_release(lmdb);
}

/* ---- reading ---- */

struct reading {
    MDB_txn *txn;
    int kind;
    uint32_t from;
    uint64_t end; /* UINT64_MAX: none. A damaged key may be any number */
    store_visit_fn visit;
    void *context;
    /* Of a reader: changes of this kind that the tables do not have, and were not visited yet. */
    uint32_t change, changes_end; /* places in `unfolded` */
    int stop;                     /* what the visitor returned */
};

/* Visits what was put before a slot, and passes over what was removed. True: the slot itself is
 * among them. */
static bool visit_changes(const struct lmdb *lmdb, struct reading *reading, uint64_t slot)
{
    bool is_there = false;
    for (; reading->stop == 0 && reading->change < reading->changes_end; reading->change++) {
        const struct record_change *change = &lmdb->unfolded.changes[reading->change];
        if (change->slot > slot)
            break;
        is_there |= change->slot == slot;
        if (!change->deleted)
            reading->stop =
                reading->visit(reading->context, change->kind, change->slot, change->value);
    }
    return is_there;
}

static int load_table(const struct lmdb *lmdb, struct reading *reading)
{
    MDB_cursor *cursor = NULL;
    MDB_val key = {sizeof reading->from, &reading->from}, value;
    int code = mdb_cursor_open(reading->txn, lmdb->env.tables[reading->kind], &cursor);
    if (code != 0)
        return code;
    for (MDB_cursor_op op = MDB_SET_RANGE;
         reading->stop == 0 && (code = mdb_cursor_get(cursor, &key, &value, op)) == 0;
         op = MDB_NEXT) {
        uint32_t slot;
        if (key.mv_size != sizeof slot || value.mv_size > UINT32_MAX) {
            code = MDB_CORRUPTED;
            break;
        }
        memcpy(&slot, key.mv_data, sizeof slot);
        if (slot >= reading->end)
            break;
        if (!visit_changes(lmdb, reading, slot) && reading->stop == 0)
            reading->stop = reading->visit(reading->context, (enum record_kind)reading->kind, slot,
                                           (struct bytes){value.mv_data, (uint32_t)value.mv_size});
    }
    mdb_cursor_close(cursor);
    return code == MDB_NOTFOUND ? 0 : code;
}

/* Every record of a kind. */
static int load_kind(const struct lmdb *lmdb, struct reading *reading, int kind)
{
    const struct fold_list *unfolded = &lmdb->unfolded;
    int code = 0;
    reading->kind = kind;
    reading->from = 0;
    reading->end = UINT64_MAX;
    reading->change = reading->changes_end;
    while (reading->changes_end < unfolded->count &&
           (int)unfolded->changes[reading->changes_end].kind == kind)
        reading->changes_end++;
    if (!lmdb->env.is_missing[kind])
        code = load_table(lmdb, reading);
    if (code == 0)
        (void)visit_changes(lmdb, reading, UINT64_MAX);
    return code;
}

void lmdb_fail(struct lmdb *lmdb, const char *what, int code)
{
    lmdb->has_failed = true;
    directory_fail(&lmdb->directory, what, code, &lmdb->why);
}

static int refuse(const struct lmdb *lmdb, struct store_failure *ret_failure)
{
    if (lmdb->has_failed)
        *ret_failure = lmdb->why;
    else
        store_fail(ret_failure, STORE_EXIT_STORE, "store lmdb:%.200s: it was opened read-only",
                   lmdb->directory.path);
    return -EIO;
}

static int lmdb_fold_all(void *self, struct store_failure *ret_failure)
{
    struct lmdb *lmdb = self;
    if (lmdb->has_failed)
        return refuse(lmdb, ret_failure);
    int code = lmdb->fold.changed.count > 0 ? lmdb_fold(lmdb, NULL) : 0;
    if (code == 0)
        return 0;
    lmdb_fail(lmdb, "cannot commit to data.mdb", code);
    return refuse(lmdb, ret_failure);
}

static int lmdb_load(void *self, store_visit_fn visit, void *context,
                     struct store_failure *ret_failure)
{
    const struct lmdb *lmdb = self;
    if (!lmdb->directory.is_reader && lmdb_fold_all(self, ret_failure) != 0)
        return -EIO;
    struct reading reading = {.visit = visit, .context = context};
    int code = mdb_txn_begin(lmdb->env.env, NULL, MDB_RDONLY, &reading.txn);
    for (int kind = RECORD_SERVER; code == 0 && reading.stop == 0 && kind < RECORD_KIND_END; kind++)
        code = load_kind(lmdb, &reading, kind);
    mdb_txn_abort(reading.txn); /* does nothing to NULL */
    bool is_used = lmdb->directory.is_reader && lmdb_env_is_used(&lmdb->env);
    if (is_used || directory_is_shared(&lmdb->directory)) {
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
    return reading.stop;
}

/* Of a server: its thread is the one that commits, so no page that is read here is used again. */
static int lmdb_walk(void *self, struct store_slots slots, store_visit_fn visit, void *context,
                     struct store_failure *ret_failure)
{
    const struct lmdb *lmdb = self;
    struct reading reading = {.kind = (int)slots.kind,
                              .from = slots.from,
                              .end = slots.end,
                              .visit = visit,
                              .context = context};
    int code = mdb_txn_begin(lmdb->env.env, NULL, MDB_RDONLY, &reading.txn);
    if (code == 0)
        code = load_table(lmdb, &reading);
    mdb_txn_abort(reading.txn); /* does nothing to NULL */
    if (code == 0)
        return reading.stop;
    directory_fail(&lmdb->directory, "cannot read data.mdb", code, ret_failure);
    return -EIO;
}

/* ---- writing ---- */

/* May a batch that was added to `fold` wait in the journal? Not if there would be no space to fold
 * it (5). What is damaged in the tables is removed with the first batch. */
static bool may_append(struct lmdb *lmdb, const struct store_batch *batch)
{
    return !lmdb->has_strays && !lmdb_fold_is_due(lmdb) &&
           journal_has_space(&lmdb->journal, batch) &&
           reserve_can_spend(&lmdb->reserve, lmdb_space_fold_need(lmdb), 2 * lmdb->tree_len);
}

static int append(struct lmdb *lmdb, const struct store_batch *batch)
{
    bool must_sync = !lmdb->sync_process || batch->must_sync || lmdb->is_loss_marked;
    return -journal_append(&lmdb->journal, batch, must_sync);
}

static int lmdb_commit(void *self, const struct store_batch *batch,
                       struct store_failure *ret_failure)
{
    struct lmdb *lmdb = self;
    if (lmdb->has_failed || lmdb->directory.is_reader)
        return refuse(lmdb, ret_failure);
    int code = fold_add(&lmdb->fold, batch) ? 0 : ENOMEM;
    bool is_appended = code == 0 && may_append(lmdb, batch);
    if (code == 0)
        code = is_appended ? append(lmdb, batch) : lmdb_fold(lmdb, batch);
    if (code != 0) {
        lmdb_fail(lmdb, is_appended ? "cannot write to journal" : "cannot commit to data.mdb",
                  code);
        return refuse(lmdb, ret_failure);
    }
    if (lmdb->is_loss_marked) {
        /* Failing here only means that the next start assumes a loss once more. */
        code =
            lmdb->sync_process ? unsynced_set(&lmdb->directory) : unsynced_clear(&lmdb->directory);
        lmdb->is_loss_marked = code != 0;
    }
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
    .fold = lmdb_fold_all,
    .walk = lmdb_walk,
    .tend = lmdb_tend,
    .has_room = lmdb_has_room,
    .close = lmdb_close,
};

/*
 * lmdb_fold.c -- from the journal into the tables; see lmdb.c, whose invariants (4) and (5) are
 * kept here.
 *
 * At a start the journal of the last run is read from the place that the tables know
 * (lmdb_place.h):
 *
 *   place says   journal          a start                       a reader
 *   none needed  whatever it is   makes or begins it            does not look at it
 *   needed       whole            folds it, begins it again     reads its frames with the tables
 *   needed       missing          counts the store incomplete   the same
 *   needed       damaged, or of   refuses                       refuses
 *                another run
 *     and a power loss cut an       reads what counts of it, or   the same
 *     unsynced run (unsynced.c)     nothing: the loss is told
 *   no data.mdb  there            counts the store incomplete   refuses
 *
 * Batches wait while there is a fold. How long one takes is the disk's: a record all over a large
 * table is a page, and a page of a slow disk some milliseconds. So it is measured, and the next one
 * comes before there is more to fold than fits BEARABLE_NS.
 *
 * The place gets a new id in the commit that folds what was found, so the frames of the run before
 * count up to that commit and never again.
 */
#include "store/lmdb_store.h"

#include "base/check.h"
#include "base/minmax.h"
#include "base/units.h"
#include "store/backend.h"
#include "store/unsynced.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#define BEARABLE_NS (250 * MS_NS)

enum {
    FOLD_MAX_FIRST = 8192, /* changes, while nothing was measured */
    FOLD_MAX_LEAST = 1024, /* below it every batch would be folded */
};

static uint64_t now_ns(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

bool lmdb_fold_is_due(const struct lmdb *lmdb)
{
    uint32_t most = lmdb->fold_max > 0 ? lmdb->fold_max : FOLD_MAX_FIRST;
    return lmdb->fold.changed.count > most;
}

/* One that had little to do says nothing of a large one, but that it may be larger. */
static void note_duration(struct lmdb *lmdb, uint32_t count, uint64_t took_ns)
{
    uint64_t most = count * BEARABLE_NS / (took_ns + 1);
    if (count >= FOLD_MAX_LEAST || took_ns > BEARABLE_NS)
        lmdb->fold_max = (uint32_t)min_u64(max_u64(most, FOLD_MAX_LEAST), UINT32_MAX);
}

/* ---- one commit of LMDB ---- */

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
static int apply(struct lmdb *lmdb, MDB_txn *txn, const struct fold_list *list)
{
    int code = 0;
    for (uint32_t i = 0; code == 0 && i < list->count; i++) {
        struct record_change *change = &list->changes[i];
        MDB_val key = {sizeof change->slot, &change->slot};
        MDB_dbi table = lmdb->env.tables[change->kind];
        if (change->deleted) {
            code = mdb_del(txn, table, &key, NULL);
            if (code == MDB_NOTFOUND)
                code = 0;
        } else {
            MDB_val value = {change->value.len, (void *)(uintptr_t)change->value.at};
            code = mdb_put(txn, table, &key, &value, 0);
        }
    }
    return code;
}

static int write_tables(struct lmdb *lmdb, const struct fold_list *list, bool has_batch,
                        const struct lmdb_place *place)
{
    MDB_txn *txn = NULL;
    int code = mdb_txn_begin(lmdb->env.env, NULL, 0, &txn);
    if (code != 0)
        return code;
    if (lmdb->has_strays && has_batch) /* by who knows of them */
        code = remove_strays(lmdb, txn);
    if (code == 0)
        code = apply(lmdb, txn, list);
    if (code == 0)
        code = lmdb_place_put(&lmdb->env, txn, place);
    if (code != 0) {
        mdb_txn_abort(txn);
        return code;
    }
    return mdb_txn_commit(txn);
}

static int fold_to(struct lmdb *lmdb, const struct store_batch *batch,
                   const struct lmdb_place *place)
{
    struct fold_list list;
    reserve_grow(&lmdb->reserve, lmdb_space_fold_need(lmdb));
    if (!fold_take(&lmdb->fold, &lmdb->journal, batch, &list))
        return ENOMEM;
    uint64_t begin_ns = now_ns();
    int code = write_tables(lmdb, &list, batch != NULL, place);
    note_duration(lmdb, list.count, now_ns() - begin_ns);
    fold_list_free(&list);
    if (code != 0)
        return code;
    lmdb->has_strays &= batch == NULL;
    journal_restart(&lmdb->journal);
    lmdb_space_adjust(lmdb);
    return 0;
}

int lmdb_fold(struct lmdb *lmdb, const struct store_batch *batch)
{
    const struct journal *journal = &lmdb->journal;
    return fold_to(lmdb, batch, &(struct lmdb_place){journal->id, journal->number, journal->len});
}

int lmdb_fold_last(struct lmdb *lmdb)
{
    return lmdb->journal.fd < 0 ? 0 : fold_to(lmdb, NULL, &(struct lmdb_place){0});
}

/* ---- at a start ---- */

static int refuse(const struct lmdb *lmdb, const char *what, struct store_failure *ret_failure)
{
    store_fail(ret_failure, STORE_EXIT_STORE,
               "store lmdb:%.200s: %s, so changes that were acknowledged cannot be read; "
               "restore the whole directory from a backup, or move journal away: the server then "
               "starts with what data.mdb has, which counts as incomplete",
               lmdb->directory.path, what);
    return -EIO;
}

/* A crash before the first batch must not hide it: invariant (2). */
int lmdb_fold_go_without(struct lmdb *lmdb, const char *file, struct store_summary *summary,
                         struct store_failure *ret_failure)
{
    summary->may_have_lost = true;
    (void)snprintf(summary->note, sizeof summary->note,
                   "store lmdb:%.200s: %s is missing, and with it changes that were acknowledged; "
                   "the store counts as incomplete",
                   lmdb->directory.path, file);
    if (lmdb->directory.is_reader)
        return 0;
    lmdb->is_loss_marked = true;
    int code = unsynced_set_lost(&lmdb->directory);
    if (code == 0)
        return 0;
    directory_fail(&lmdb->directory, "cannot write its file \"unsynced\"", -code, ret_failure);
    return -EIO;
}

static int add_frames(struct lmdb *lmdb)
{
    for (uint32_t i = 0; i < lmdb->journal.frame_count; i++) {
        struct store_batch batch = journal_get(&lmdb->journal, i);
        if (!fold_add(&lmdb->fold, &batch))
            return ENOMEM;
    }
    if (!lmdb->directory.is_reader)
        return 0;
    return fold_take(&lmdb->fold, &lmdb->journal, NULL, &lmdb->unfolded) ? 0 : ENOMEM;
}

int lmdb_fold_find(struct lmdb *lmdb, bool is_lost, struct store_summary *summary,
                   struct store_failure *ret_failure)
{
    struct lmdb_place place;
    int code = lmdb_place_get(&lmdb->env, &place);
    if (code == MDB_VERSION_MISMATCH) {
        store_fail(ret_failure, STORE_EXIT_NEWER,
                   "store lmdb:%.200s: a newer holdfast wrote its journal; start that version, or "
                   "choose another --store",
                   lmdb->directory.path);
        return -EIO;
    }
    if (code != 0) {
        directory_fail(&lmdb->directory, "cannot read table \"place\" of data.mdb", code,
                       ret_failure);
        return -EIO;
    }
    if (place.journal_len == 0)
        return 0;
    code = -journal_open(&lmdb->journal, &lmdb->directory);
    if (code == ENOENT)
        return lmdb_fold_go_without(lmdb, JOURNAL_FILE, summary, ret_failure);
    const char *why = NULL;
    if (code == EINVAL || (code == 0 && lmdb->journal.len != place.journal_len))
        why = "journal has another length than it had";
    else if (code == 0 && !journal_is_of(&lmdb->journal, place.id))
        why = "journal is of another store, or of another run of this one";
    /* Of what was not synced, one file may be older than the other. That is told already. */
    if (why != NULL && is_lost) {
        journal_close(&lmdb->journal);
        return 0;
    }
    if (why == NULL && code == 0 && journal_find(&lmdb->journal, place.id, place.number) &&
        !is_lost)
        why = "journal is damaged";
    if (why != NULL)
        return refuse(lmdb, why, ret_failure);
    if (code == 0)
        code = add_frames(lmdb);
    if (code == 0)
        return 0;
    directory_fail(&lmdb->directory, "cannot read journal", code, ret_failure);
    return -EIO;
}

/* One that was closed may be there, of any length. One with frames that are needed stays. */
static int make_journal(struct lmdb *lmdb)
{
    uint64_t len = journal_wanted_len();
    if (lmdb->journal.fd >= 0)
        return journal_is_solid(&lmdb->journal) ? 0 : -ENOSPC;
    if (len == 0)
        return 0;
    if (journal_open(&lmdb->journal, &lmdb->directory) == 0 && journal_is_solid(&lmdb->journal))
        return 0;
    journal_close(&lmdb->journal);
    int code = journal_make(&lmdb->directory, len);
    return code != 0 ? code : journal_open(&lmdb->journal, &lmdb->directory);
}

/* The tables take what the last run left, and the journal is this run's. */
static int begin_journal(struct lmdb *lmdb)
{
    struct journal begun = lmdb->journal; /* its frames are needed until the commit */
    int code = -journal_begin(&begun, lmdb->journal.id);
    if (code == 0)
        code = fold_to(lmdb, NULL, &(struct lmdb_place){begun.id, begun.number, begun.len});
    if (code == 0)
        code = -journal_settle(&begun);
    if (code == 0)
        lmdb->journal = begun;
    return code;
}

/* The same without one for this run. */
static int end_journal(struct lmdb *lmdb)
{
    int code = lmdb_fold_last(lmdb);
    journal_close(&lmdb->journal);
    return code;
}

int lmdb_fold_begin(struct lmdb *lmdb, struct store_summary *summary,
                    struct store_failure *ret_failure)
{
    /* Names that a killed start has made are durable before the tables speak of them, and data.mdb
     * before there is a journal. */
    int code = directory_sync(&lmdb->directory);
    if (code != 0) {
        directory_fail(&lmdb->directory, "cannot sync the directory", -code, ret_failure);
        return -EIO;
    }
    int no_journal = make_journal(lmdb);
    if (no_journal != 0 && summary->note[0] == '\0')
        (void)snprintf(summary->note, sizeof summary->note,
                       "store lmdb:%.200s: cannot create journal: %s; commits take longer without "
                       "one. A start with more free space creates it",
                       lmdb->directory.path, strerror(-no_journal));
    if (lmdb->journal.fd >= 0)
        code = no_journal != 0 ? end_journal(lmdb) : begin_journal(lmdb);
    if (code == 0)
        return 0;
    directory_fail(&lmdb->directory, "cannot commit to data.mdb", code, ret_failure);
    return -EIO;
}

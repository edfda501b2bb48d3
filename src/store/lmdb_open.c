/*
 * lmdb_open.c -- what a start does with a data file that an earlier run left; see lmdb.c.
 *
 * Nothing in it is believed before the mark `unsynced` was looked at and the length of the file
 * compared with its last page in use; what may be torn is read in a child process first
 * (salvage.c).
 */
#include "store/lmdb_store.h"

#include "store/backend.h"
#include "store/lmdb_reader.h"
#include "store/salvage.h"
#include "store/unsynced.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* The state of data.mdb before this start touches it. */
struct finding {
    enum unsynced_mark mark;
    bool exists;
    uint64_t file_len;
    bool has_journal; /* which is made after it */
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
    finding.has_journal = faccessat(lmdb->directory.fd, JOURNAL_FILE, F_OK, 0) == 0;
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
        /* The tables have the frames by now; an earlier version may have left them unsynced. */
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
    for (uint32_t i = 0; i < lmdb->unfolded.count; i++) {
        const struct record_change *change = &lmdb->unfolded.changes[i];
        uint32_t *used = &summary->slots_used[change->kind];
        if (!change->deleted && change->slot < RECORD_SLOT_MAX && change->slot >= *used)
            *used = change->slot + 1;
    }
    return code;
}

int lmdb_open_server(struct lmdb *lmdb, struct store_summary *summary,
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
    if (!is_lost && !finding.exists && finding.has_journal &&
        lmdb_fold_go_without(lmdb, LMDB_ENV_FILE, summary, ret_failure) != 0)
        return -EIO;
    if (open_env(lmdb, &finding, ret_failure) != 0)
        return -EIO;
    int code = lmdb_space_begin(lmdb);
    if (code == 0) {
        if (lmdb_fold_find(lmdb, is_lost, summary, ret_failure) != 0 ||
            lmdb_fold_begin(lmdb, summary, ret_failure) != 0 ||
            adjust_mark(lmdb, finding.mark, ret_failure) != 0)
            return -EIO;
        code = summarize(lmdb, summary);
    }
    if (code == EFBIG) {
        store_fail(ret_failure, STORE_EXIT_STORE,
                   "store lmdb:%.200s: data.mdb is longer than the limit on files allows this "
                   "process to write; raise that (ulimit -f, LimitFSIZE=)",
                   lmdb->directory.path);
        return -EIO;
    }
    if (code != 0) {
        directory_fail(&lmdb->directory, "cannot read data.mdb", code, ret_failure);
        return -EIO;
    }
    return 0;
}

int lmdb_open_reader(struct lmdb *lmdb, struct store_summary *summary,
                     struct store_failure *ret_failure)
{
    if (lmdb_reader_open(&lmdb->env, &lmdb->directory, summary, ret_failure) != 0 ||
        lmdb_fold_find(lmdb, summary->may_have_lost, summary, ret_failure) != 0)
        return -EIO;
    int code = summarize(lmdb, summary);
    if (code == 0)
        return 0;
    directory_fail(&lmdb->directory, "cannot read data.mdb", code, ret_failure);
    return -EIO;
}

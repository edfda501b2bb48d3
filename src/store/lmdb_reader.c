/*
 * lmdb_reader.c -- see lmdb_reader.h.
 *
 *   data.mdb whole ............................ opened as it is, for reading only
 *   the machine stopped in an unsynced run, or
 *   the file ends before its last page ........ verified and copied, elsewhere, by a child process;
 *                                               the copy is read
 *   it cannot be read ......................... refused; a server would set it aside
 */
#include "store/lmdb_reader.h"

#include "store/backend.h"
#include "store/salvage.h"
#include "store/unsynced.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

/* What LMDB would read through its map must be there. */
static bool is_short(const struct lmdb_env *env, uint64_t file_len)
{
    return file_len < lmdb_env_used_end(env);
}

static int look(const struct directory *directory, enum unsynced_mark *ret_mark, uint64_t *ret_len,
                struct store_failure *ret_failure)
{
    struct stat status;
    int code = unsynced_get(directory, ret_mark);
    if (code != 0) {
        directory_fail(directory, "cannot read its file \"unsynced\"", -code, ret_failure);
        return -EIO;
    }
    if (fstatat(directory->fd, LMDB_ENV_FILE, &status, 0) != 0) {
        if (errno == ENOENT)
            store_fail(
                ret_failure, STORE_EXIT_STORE,
                "store lmdb:%.200s: it has no data.mdb; name the server's store with --store",
                directory->path);
        else
            directory_fail(directory, "cannot find data.mdb", errno, ret_failure);
        return -EIO;
    }
    if (!S_ISREG(status.st_mode) || status.st_size == 0) {
        directory_fail(directory, "data.mdb is empty or not a file", MDB_INVALID, ret_failure);
        return -EIO;
    }
    *ret_len = (uint64_t)status.st_size;
    return 0;
}

static int read_copy(struct lmdb_env *ret, const struct directory *directory,
                     struct store_failure *ret_failure)
{
    switch (salvage_look(directory, ret, ret_failure)) {
    case SALVAGE_COPIED:
        return 0;
    case SALVAGE_FAILED:
        return -EIO;
    case SALVAGE_FOREIGN: /* its own program knows how to read it */
        store_fail(ret_failure, STORE_EXIT_NEWER,
                   "store lmdb:%.200s: it has tables that this version does not know: a newer "
                   "holdfast or another program wrote it; read it with that version",
                   directory->path);
        return -EIO;
    case SALVAGE_DAMAGED:
        break;
    }
    store_fail(ret_failure, STORE_EXIT_STORE,
               "store lmdb:%.200s: data.mdb is damaged and cannot be read; nothing was changed. A "
               "server that starts on it sets it aside if the machine stopped during a run with "
               "--sync process; otherwise restore it from a backup",
               directory->path);
    return -EIO;
}

static int read_in_place(struct lmdb_env *ret, const struct directory *directory, uint64_t file_len,
                         struct store_failure *ret_failure)
{
    int code = lmdb_env_open(ret, directory, LMDB_ENV_FILE, MDB_RDONLY);
    if (code != 0) {
        directory_fail(directory, "cannot open data.mdb", code, ret_failure);
        return -EIO;
    }
    if (lmdb_env_is_used(ret)) {
        directory_fail(directory, "cannot read data.mdb", EBUSY, ret_failure);
        return -EIO;
    }
    if (!is_short(ret, file_len))
        return 0;
    lmdb_env_close(ret);
    return read_copy(ret, directory, ret_failure);
}

int lmdb_reader_open(struct lmdb_env *ret, const struct directory *directory,
                     struct store_summary *summary, struct store_failure *ret_failure)
{
    enum unsynced_mark mark;
    uint64_t file_len;
    char unknown[64];
    if (look(directory, &mark, &file_len, ret_failure) != 0)
        return -EIO;
    if (mark == UNSYNCED_OTHER_BOOT) {
        summary->may_have_lost = true;
        (void)snprintf(summary->note, sizeof summary->note,
                       "store lmdb:%.200s: the machine stopped during a run with --sync process; "
                       "the last changes may be missing, so the data counts as incomplete",
                       directory->path);
    }
    int code = mark == UNSYNCED_OTHER_BOOT ? read_copy(ret, directory, ret_failure)
                                           : read_in_place(ret, directory, file_len, ret_failure);
    if (code != 0)
        return code;
    code = lmdb_env_find_unknown(ret, unknown);
    if (code == 0 && unknown[0] != '\0') {
        store_fail(ret_failure, STORE_EXIT_NEWER,
                   "store lmdb:%.200s: it has a table \"%s\" that this version does not know: a "
                   "newer holdfast or another program wrote it; read it with that version",
                   directory->path, unknown);
        return -EIO;
    }
    if (code == 0)
        code = lmdb_env_find_tables(ret);
    if (code != 0) {
        directory_fail(directory, "cannot read the tables of data.mdb", code, ret_failure);
        return -EIO;
    }
    return 0;
}

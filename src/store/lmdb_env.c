/*
 * lmdb_env.c -- LMDB environments with our flags, tables and map size; see lmdb_env.h.
 *
 * MDB_NOLOCK: one process and one thread at a time use the file, which our own lock file and
 * store.h guarantee, so LMDB's reader table and its shared mutexes would only be one more thing
 * that a crash can leave behind.
 *
 * The map is far larger than the file (64 GiB). It is address space, not memory or disk: LMDB reads
 * through it and the file grows under it. A map that is too small fails a commit, one that is too
 * large costs nothing; a million locks take 0.4 GB, with the space kept ahead of them.
 *
 * Always true:
 *  (1) A file named data.mdb is complete: it is made under another name, synced, and renamed. An
 *      interrupted start never leaves a half-made store that the next one would have to explain.
 *  (2) Nothing is written to a file before its tables are known to be ours.
 */
#include "store/lmdb_env.h"

#include "base/check.h"
#include "base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#if UINTPTR_MAX > UINT32_MAX
static const size_t MAP_LEN = (size_t)64 * 1024 * 1024 * 1024;
#else
static const size_t MAP_LEN = (size_t)1024 * 1024 * 1024;
#endif

/* More tables than we have, so that one too many is found by name and not by a limit. */
enum { TABLES_MAX = RECORD_KIND_END + 16 };

/* LMDB does this for some of its files only, and the server starts other programs. */
static int close_on_exec(MDB_env *env)
{
    int fd = -1;
    int code = mdb_env_get_fd(env, &fd);
    if (code == 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
        code = errno;
    return code;
}

/* The file itself keeps a second writer out, too: `lock` may have been removed as a stale file.
 * Tied to the descriptor, like the lock on that. A reader that looks whether somebody has it
 * (lmdb_env_is_used) is gone at the next try. */
static int keep_others_out(MDB_env *env)
{
    enum { TRIES = 20 };
    const struct timespec pause = {.tv_nsec = 5 * MS_NS};
    int fd;
    int code = mdb_env_get_fd(env, &fd);
    for (int i = 1; code == 0; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
            return 0;
        if (i == TRIES)
            return EBUSY;
        (void)nanosleep(&pause, NULL);
    }
    return code;
}

bool lmdb_env_is_used(const struct lmdb_env *env)
{
    int fd;
    if (mdb_env_get_fd(env->env, &fd) != 0)
        return false;
    if (flock(fd, LOCK_SH | LOCK_NB) != 0)
        return errno == EWOULDBLOCK;
    (void)flock(fd, LOCK_UN);
    return false;
}

int lmdb_env_open(struct lmdb_env *env, const struct directory *directory, const char *file,
                  unsigned flags)
{
    MDB_env *opened = NULL;
    char *path = NULL;
    if (asprintf(&path, "%s/%s", directory->path, file) < 0)
        return ENOMEM;
    int code = mdb_env_create(&opened);
    if (code == 0)
        code = mdb_env_set_mapsize(opened, MAP_LEN);
    if (code == 0)
        code = mdb_env_set_maxdbs(opened, TABLES_MAX);
    if (code == 0)
        code = mdb_env_open(opened, path, MDB_NOSUBDIR | MDB_NOLOCK | flags, 0600);
    if (code == 0)
        code = close_on_exec(opened);
    if (code == 0 && (flags & MDB_RDONLY) == 0)
        code = keep_others_out(opened);
    free(path);
    if (code != 0) {
        mdb_env_close(opened); /* does nothing to NULL */
        return code;
    }
    env->env = opened;
    return 0;
}

void lmdb_env_close(struct lmdb_env *env)
{
    mdb_env_close(env->env);
    env->env = NULL;
}

const char *lmdb_env_table_name(int table)
{
    return table == LMDB_ENV_PLACE ? "place" : record_kind_name((enum record_kind)table);
}

static bool is_known(const MDB_val *name)
{
    for (int table = LMDB_ENV_PLACE; table < RECORD_KIND_END; table++) {
        const char *known = lmdb_env_table_name(table);
        if (name->mv_size == strlen(known) && memcmp(name->mv_data, known, name->mv_size) == 0)
            return true;
    }
    return false;
}

/* A key of the main table that leads to no table was never written by anybody: the page is another
 * one, or torn. */
static int check_is_table(MDB_txn *txn, const MDB_val *name)
{
    char text[512]; /* LMDB has no longer keys */
    MDB_dbi table;
    if (name->mv_size == 0 || name->mv_size >= sizeof text)
        return MDB_CORRUPTED;
    memcpy(text, name->mv_data, name->mv_size);
    text[name->mv_size] = '\0';
    return mdb_dbi_open(txn, text, 0, &table) == 0 ? 0 : MDB_CORRUPTED;
}

/* The names of all tables are the keys of LMDB's main table. */
static int find_unknown(MDB_txn *txn, char ret_name[static 64])
{
    MDB_dbi main_table;
    MDB_cursor *cursor = NULL;
    MDB_val name, ignored;
    int code = mdb_dbi_open(txn, NULL, 0, &main_table);
    if (code == 0)
        code = mdb_cursor_open(txn, main_table, &cursor);
    if (code != 0)
        return code;
    ret_name[0] = '\0';
    while ((code = mdb_cursor_get(cursor, &name, &ignored, MDB_NEXT)) == 0) {
        if (is_known(&name))
            continue;
        int len = name.mv_size < 63 ? (int)name.mv_size : 63;
        for (int i = 0; i < len; i++) {
            char c = ((const char *)name.mv_data)[i];
            ret_name[i] = c >= ' ' && c <= '~' ? c : '?';
        }
        ret_name[len] = '\0';
        code = check_is_table(txn, &name);
        break;
    }
    mdb_cursor_close(cursor);
    return code == MDB_NOTFOUND ? 0 : code;
}

int lmdb_env_find_unknown(const struct lmdb_env *env, char ret_name[static 64])
{
    MDB_txn *txn = NULL;
    int code = mdb_txn_begin(env->env, NULL, MDB_RDONLY, &txn);
    if (code != 0)
        return code;
    code = find_unknown(txn, ret_name);
    mdb_txn_abort(txn);
    return code;
}

int lmdb_env_make_tables(struct lmdb_env *env)
{
    MDB_txn *txn = NULL;
    int code = mdb_txn_begin(env->env, NULL, 0, &txn);
    if (code != 0)
        return code;
    for (int table = LMDB_ENV_PLACE; code == 0 && table < RECORD_KIND_END; table++) {
        unsigned flags = 0;
        code = mdb_dbi_open(txn, lmdb_env_table_name(table), MDB_CREATE | MDB_INTEGERKEY,
                            &env->tables[table]);
        if (code == 0)
            code = mdb_dbi_flags(txn, env->tables[table], &flags);
        if (code == 0 && flags != MDB_INTEGERKEY)
            code = MDB_INCOMPATIBLE;
    }
    if (code != 0) {
        mdb_txn_abort(txn);
        return code;
    }
    return mdb_txn_commit(txn);
}

int lmdb_env_find_tables(struct lmdb_env *env)
{
    MDB_txn *txn = NULL;
    int code = mdb_txn_begin(env->env, NULL, MDB_RDONLY, &txn);
    if (code != 0)
        return code;
    for (int table = LMDB_ENV_PLACE; code == 0 && table < RECORD_KIND_END; table++) {
        unsigned flags = 0;
        code = mdb_dbi_open(txn, lmdb_env_table_name(table), 0, &env->tables[table]);
        env->is_missing[table] = code == MDB_NOTFOUND;
        if (env->is_missing[table]) {
            code = 0;
            continue;
        }
        if (code == 0)
            code = mdb_dbi_flags(txn, env->tables[table], &flags);
        if (code == 0 && flags != MDB_INTEGERKEY)
            code = MDB_INCOMPATIBLE;
    }
    if (code != 0) {
        mdb_txn_abort(txn);
        return code;
    }
    return mdb_txn_commit(txn); /* the tables stay open after it; nothing is written */
}

int lmdb_env_create(const struct directory *directory)
{
    struct lmdb_env env = {0};
    if (unlinkat(directory->fd, LMDB_ENV_NEW_FILE, 0) != 0 && errno != ENOENT)
        return errno;
    int code = lmdb_env_open(&env, directory, LMDB_ENV_NEW_FILE, 0);
    if (code != 0)
        return code;
    code = lmdb_env_make_tables(&env); /* a synced commit, which also syncs LMDB's first pages */
    lmdb_env_close(&env);
    if (code != 0)
        return code;
    directory_adopt(directory, LMDB_ENV_NEW_FILE);
    return -directory_rename(directory, LMDB_ENV_NEW_FILE, LMDB_ENV_FILE);
}

uint64_t lmdb_env_page_len(const struct lmdb_env *env)
{
    MDB_stat stat;
    CHECK(mdb_env_stat(env->env, &stat) == 0); /* fails for NULL arguments only */
    return stat.ms_psize;
}

uint64_t lmdb_env_used_end(const struct lmdb_env *env)
{
    MDB_envinfo info;
    CHECK(mdb_env_info(env->env, &info) == 0); /* likewise */
    return ((uint64_t)info.me_last_pgno + 1) * lmdb_env_page_len(env);
}

uint64_t lmdb_env_map_len(const struct lmdb_env *env)
{
    MDB_envinfo info;
    CHECK(mdb_env_info(env->env, &info) == 0); /* likewise */
    return info.me_mapsize;
}

/*
 * A value that is longer than half a page has a page of its own, which is never copied: changing or
 * removing it frees that page. But the leaf above it can split, and it holds 64 such values at the
 * very least. The list of free pages takes 8 bytes for each page at most, old list and new.
 */
uint64_t lmdb_env_tree_len(const struct lmdb_env *env)
{
    const uint64_t page_len = lmdb_env_page_len(env);
    uint64_t used_end = lmdb_env_used_end(env), pages = 0;
    MDB_txn *txn = NULL;
    int code = mdb_txn_begin(env->env, NULL, MDB_RDONLY, &txn);
    for (int kind = RECORD_SERVER; code == 0 && kind < RECORD_KIND_END; kind++) {
        MDB_stat stat;
        code = mdb_stat(txn, env->tables[kind], &stat);
        if (code == 0)
            pages += stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages / 64;
    }
    mdb_txn_abort(txn); /* does nothing to NULL */
    if (code != 0)
        return used_end; /* the safe side */
    return pages * page_len + UINT64_C(16) * (used_end / page_len);
}

/*
 * LMDB's table 0 has an entry for each commit that freed pages: the commit's number, and a list of
 * words of which the first is the count. What the last commit freed is not free yet: a crash may
 * still go back to the one before.
 */
static void count_free_pages(MDB_txn *txn, size_t last_txn, struct lmdb_env_space *ret)
{
    MDB_cursor *cursor = NULL;
    MDB_val key, list;
    if (mdb_cursor_open(txn, 0, &cursor) != 0)
        return;
    while (mdb_cursor_get(cursor, &key, &list, MDB_NEXT) == 0) {
        size_t freed_by, count;
        if (key.mv_size != sizeof freed_by || list.mv_size < sizeof count)
            break;
        memcpy(&freed_by, key.mv_data, sizeof freed_by);
        memcpy(&count, list.mv_data, sizeof count);
        *(freed_by < last_txn ? &ret->spare_len : &ret->fresh_len) += count;
    }
    mdb_cursor_close(cursor);
}

struct lmdb_env_space lmdb_env_space(const struct lmdb_env *env)
{
    struct lmdb_env_space space = {0};
    MDB_txn *txn = NULL;
    if (mdb_txn_begin(env->env, NULL, MDB_RDONLY, &txn) != 0)
        return space; /* nothing is known to be spare, which is the safe side */
    count_free_pages(txn, mdb_txn_id(txn), &space);
    mdb_txn_abort(txn);
    space.spare_len *= lmdb_env_page_len(env);
    space.fresh_len *= lmdb_env_page_len(env);
    return space;
}

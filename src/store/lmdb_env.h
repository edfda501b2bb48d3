/*
 * lmdb_env.h -- opening a data file of LMDB the way this program uses it.
 *
 * One table per record kind, named by record_kind_name, keyed by slot, and one more for the place
 * in the journal (lmdb_place.h). Codes are LMDB's own or errno (mdb_strerror knows both).
 */
#ifndef STORE_LMDB_ENV_H
#define STORE_LMDB_ENV_H

#include "store/directory.h"

#include <lmdb.h>

#define LMDB_ENV_FILE     "data.mdb"
#define LMDB_ENV_NEW_FILE "data.mdb.new"

/* Tables are numbered by kind; no kind has this number. */
enum { LMDB_ENV_PLACE = 0 };

struct lmdb_env {
    MDB_env *env; /* NULL when not open */
    MDB_dbi tables[RECORD_KIND_END];
    bool is_missing[RECORD_KIND_END]; /* of a reader: a table that was not made yet is empty */
};

const char *lmdb_env_table_name(int table);

/* For a reader: has a server locked the file, whether or not there is a `lock` beside it? */
bool lmdb_env_is_used(const struct lmdb_env *env);

/* Opens a data file in the directory with more flags (MDB_RDONLY, MDB_NOSYNC); no table yet. */
__attribute__((warn_unused_result)) int lmdb_env_open(struct lmdb_env *env,
                                                      const struct directory *directory,
                                                      const char *file, unsigned flags);
void lmdb_env_close(struct lmdb_env *env);

/* Looks for a table that this version does not know: its name, cut to fit and with '?' for whatever
 * cannot be printed, or "". */
__attribute__((warn_unused_result)) int lmdb_env_find_unknown(const struct lmdb_env *env,
                                                              char ret_name[static 64]);

/* Opens every table and makes those that are missing. Writes nothing when none is. */
__attribute__((warn_unused_result)) int lmdb_env_make_tables(struct lmdb_env *env);

/* The same for a reader, which makes none. */
__attribute__((warn_unused_result)) int lmdb_env_find_tables(struct lmdb_env *env);

/* Makes an empty data file, which exists durably and complete or not at all. */
__attribute__((warn_unused_result)) int lmdb_env_create(const struct directory *directory);

/* Length of a page, end of the last page in use, end of the memory map: all in bytes. */
uint64_t lmdb_env_page_len(const struct lmdb_env *env);
uint64_t lmdb_env_used_end(const struct lmdb_env *env);
uint64_t lmdb_env_map_len(const struct lmdb_env *env);

/* Bytes in pages that a commit may have to copy because it changes a record in them or below them:
 * those of our tables, and what LMDB writes to keep its list of free pages. */
uint64_t lmdb_env_tree_len(const struct lmdb_env *env);

/* Bytes in freed pages: those that the next commit can use again, and those that the last commit
 * freed, which the one after the next can. */
struct lmdb_env_space {
    uint64_t spare_len, fresh_len;
};
struct lmdb_env_space lmdb_env_space(const struct lmdb_env *env);

#endif

/*
 * lmdb_store.h -- the insides of the embedded back end, for lmdb.c, lmdb_fold.c, lmdb_open.c and
 * lmdb_space.c; nobody else looks in here. lmdb.c says what must always be true.
 */
#ifndef STORE_LMDB_STORE_H
#define STORE_LMDB_STORE_H

#include "store/fold.h"
#include "store/lmdb_place.h"
#include "store/reserve.h"

struct lmdb {
    struct directory directory;
    struct lmdb_env env;
    struct journal journal;
    struct fold fold;          /* what the journal has and the tables do not; */
    struct fold_list unfolded; /* of a reader, which leaves both as they are */
    struct reserve reserve;
    uint32_t fold_max; /* so many changes are folded in bearable time on this disk */
    uint64_t tree_len; /* what the next commit may have to copy at most */
    bool sync_process;
    /* Damaged records lie behind every intact one, from this slot on; the first commit removes
     * them, because the core cannot: its tables end before. */
    bool has_strays;
    uint32_t stray_from[RECORD_KIND_END];
    bool is_loss_marked; /* invariant (2): the mark of another boot is still there */
    bool has_failed;
    struct store_failure why; /* it has */
};

/* lmdb.c. A commit failed, with LMDB's code or an errno: the store does nothing more, and says why.
 */
void lmdb_fail(struct lmdb *lmdb, const char *what, int code);

/* lmdb_open.c. Its directory is open: so is the store, for a server or read-only. 0; or -EIO with
 * *ret_failure filled. */
__attribute__((warn_unused_result)) int lmdb_open_server(struct lmdb *lmdb,
                                                         struct store_summary *summary,
                                                         struct store_failure *ret_failure);
__attribute__((warn_unused_result)) int lmdb_open_reader(struct lmdb *lmdb,
                                                         struct store_summary *summary,
                                                         struct store_failure *ret_failure);

/* lmdb_fold.c. Brings the tables up to date with the journal, and with a batch behind it unless
 * that is NULL, durably. Both were added to `fold`. LMDB's code. */
__attribute__((warn_unused_result)) int lmdb_fold(struct lmdb *lmdb,
                                                  const struct store_batch *batch);
/* Are as many changes waiting as a fold should have? */
bool lmdb_fold_is_due(const struct lmdb *lmdb);
/* The same at the end of a run: the next start needs no journal. */
__attribute__((warn_unused_result)) int lmdb_fold_last(struct lmdb *lmdb);
/* The tables are open. Finds what the journal of the last run has and they do not. `is_lost`: the
 * machine stopped in an unsynced run, so frames may be missing. 0; or -EIO with *ret_failure
 * filled. */
__attribute__((warn_unused_result)) int lmdb_fold_find(struct lmdb *lmdb, bool is_lost,
                                                       struct store_summary *summary,
                                                       struct store_failure *ret_failure);
/* A file of the store is missing that it had. Likewise. */
__attribute__((warn_unused_result)) int lmdb_fold_go_without(struct lmdb *lmdb, const char *file,
                                                             struct store_summary *summary,
                                                             struct store_failure *ret_failure);
/* The tables take that, and a journal begins for this run, if there can be one. Likewise. */
__attribute__((warn_unused_result)) int lmdb_fold_begin(struct lmdb *lmdb,
                                                        struct store_summary *summary,
                                                        struct store_failure *ret_failure);

/* lmdb_space.c. Begins to keep space ahead of need; 0 or LMDB's code. */
__attribute__((warn_unused_result)) int lmdb_space_begin(struct lmdb *lmdb);
/* Bytes that a batch may need: how many records it puts, how many it changes in all. */
uint64_t lmdb_space_need(const struct lmdb *lmdb, uint64_t put_count, uint64_t change_count);
/* The same for a fold. */
uint64_t lmdb_space_fold_need(const struct lmdb *lmdb);
/* After every commit of the tables: how much is left, and is it enough? */
void lmdb_space_adjust(struct lmdb *lmdb);
/* Below the low-water mark, and unable to grow: looks for what was freed inside the file. */
void lmdb_space_find(struct lmdb *lmdb);

#endif

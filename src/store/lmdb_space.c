/*
 * lmdb_space.c -- is there room in the file for all that may still come; see lmdb_store.h.
 *
 * A commit must not fail for want of space after the core has said yes. So space is written ahead
 * of need (reserve.c), as much as the worst that can come after a yes, and the core is told to
 * refuse new records before it is used up.
 */
#include "store/lmdb_store.h"

/* Freed by the last commit: more than a commit that changes nothing frees by itself. */
enum { WORTH_A_COMMIT = 1024 * 1024 };

/*
 * What a batch can need behind the last page in use: for each record it puts, a page of its own or
 * one from a split (and their share of the pages above); a copy of each page it touches, which are
 * a leaf, its neighbour and the page above them per change, at most all there are; and LMDB's own
 * books.
 */
uint64_t lmdb_space_need(const struct lmdb *lmdb, uint64_t put_count, uint64_t change_count)
{
    const uint64_t page_len = lmdb_env_page_len(&lmdb->env);
    uint64_t touched_len = 3 * change_count * page_len;
    if (touched_len > lmdb->tree_len)
        touched_len = lmdb->tree_len;
    return (put_count + put_count / 16 + 64) * page_len + touched_len;
}

/*
 * Each record that is different may be one put, and touch pages. Where they are many, what they add
 * is less than a page each: a full page splits into two halves, and the next split of either needs
 * another half of a page of records. So every page that there is may split once, and what is added
 * takes twice its length, and a quarter for its keys and whatever does not fill a page.
 */
uint64_t lmdb_space_fold_need(const struct lmdb *lmdb)
{
    enum { NODE_LEN = 16 }; /* what LMDB adds to a value: header, key, pointer */
    const uint64_t page_len = lmdb_env_page_len(&lmdb->env);
    const uint64_t puts = fold_puts_max(&lmdb->fold),
                   value_len = lmdb->fold.value_len_max + NODE_LEN;
    uint64_t need = lmdb_space_need(lmdb, puts, lmdb->fold.changed.count);
    if (value_len > page_len / 8)
        return need; /* pages may be far from half full */
    uint64_t len = 64 * page_len + 2 * lmdb->tree_len + puts * value_len * 9 / 4;
    return len < need ? len : need;
}

/*
 * The low-water mark is the sum of what can come after a yes: two batches of new records, because
 * the core fills one while another commits and hears of the end of room only then; two of repeats,
 * whose old pages come free for the third; one SM_UNMON_ALL or FREE_ALL, which removes any number
 * of records from any number of pages; and a quarter more of what is there, because an UNLOCK out
 * of the middle of a lock makes two of it, each as long as it was, and must not fail (R-RNG-5).
 */
void lmdb_space_adjust(struct lmdb *lmdb)
{
    lmdb->tree_len = lmdb_env_tree_len(&lmdb->env);
    uint64_t low_len = 2 * lmdb_space_need(lmdb, STORE_BATCH_PUTS_MAX, 0) +
                       2 * lmdb_space_need(lmdb, STORE_BATCH_PUTS_MAX, STORE_BATCH_PUTS_MAX) +
                       lmdb->tree_len + lmdb->tree_len / 4;
    reserve_note_used(&lmdb->reserve, lmdb_env_used_end(&lmdb->env), low_len);
    reserve_refill(&lmdb->reserve);
    if (reserve_is_low(&lmdb->reserve))
        reserve_note_spare(&lmdb->reserve, lmdb_env_space(&lmdb->env).spare_len);
}

int lmdb_space_begin(struct lmdb *lmdb)
{
    int fd = -1;
    int code = mdb_env_get_fd(lmdb->env.env, &fd);
    if (code == 0)
        code = -reserve_init(&lmdb->reserve, fd, lmdb_env_map_len(&lmdb->env),
                             lmdb_env_used_end(&lmdb->env));
    if (code != 0)
        return code;
    lmdb_space_adjust(lmdb);
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

void lmdb_space_find(struct lmdb *lmdb)
{
    int code = 0;
    if (lmdb_env_space(&lmdb->env).fresh_len >= WORTH_A_COMMIT)
        code = lmdb->fold.changed.count > 0 ? lmdb_fold(lmdb, NULL) : turn_over(lmdb);
    if (code == 0)
        lmdb_space_adjust(lmdb);
    else
        lmdb_fail(lmdb, "cannot commit to data.mdb", code);
}

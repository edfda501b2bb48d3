/*
 * lmdb_place.c -- the one entry of table "place"; see lmdb_place.h.
 *
 *    0  u32  format, 1
 *    4  u32  CRC-32C of what follows
 *    8  u64  id
 *   16  u64  number
 *   24  u64  length of the journal
 */
#include "store/lmdb_place.h"

#include "store/crc32c.h"

enum { FORMAT = 1, PLACE_LEN = 32, CHECKED_FROM = 8 };

static uint32_t checksum(const uint8_t bytes[static PLACE_LEN])
{
    return crc32c(0, (struct bytes){bytes + CHECKED_FROM, PLACE_LEN - CHECKED_FROM});
}

static int decode(const MDB_val *value, struct lmdb_place *ret)
{
    const uint8_t *bytes = value->mv_data;
    if (value->mv_size >= 4 && load_be32(bytes) > FORMAT)
        return MDB_VERSION_MISMATCH;
    if (value->mv_size != PLACE_LEN || load_be32(bytes) != FORMAT ||
        load_be32(bytes + 4) != checksum(bytes))
        return MDB_CORRUPTED;
    *ret = (struct lmdb_place){
        .id = load_be64(bytes + 8),
        .number = load_be64(bytes + 16),
        .journal_len = load_be64(bytes + 24),
    };
    return 0;
}

int lmdb_place_get(const struct lmdb_env *env, struct lmdb_place *ret)
{
    uint32_t slot = 0;
    MDB_txn *txn = NULL;
    MDB_val key = {sizeof slot, &slot}, value;
    *ret = (struct lmdb_place){0};
    if (env->is_missing[LMDB_ENV_PLACE])
        return 0;
    int code = mdb_txn_begin(env->env, NULL, MDB_RDONLY, &txn);
    if (code == 0)
        code = mdb_get(txn, env->tables[LMDB_ENV_PLACE], &key, &value);
    if (code == 0)
        code = decode(&value, ret);
    mdb_txn_abort(txn); /* does nothing to NULL */
    return code == MDB_NOTFOUND ? 0 : code;
}

int lmdb_place_put(const struct lmdb_env *env, MDB_txn *txn, const struct lmdb_place *place)
{
    uint32_t slot = 0;
    uint8_t bytes[PLACE_LEN];
    MDB_val key = {sizeof slot, &slot}, value = {sizeof bytes, bytes};
    store_be32(bytes, FORMAT);
    store_be64(bytes + 8, place->id);
    store_be64(bytes + 16, place->number);
    store_be64(bytes + 24, place->journal_len);
    store_be32(bytes + 4, checksum(bytes));
    return mdb_put(txn, env->tables[LMDB_ENV_PLACE], &key, &value, 0);
}

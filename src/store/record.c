/*
 * record.c -- the bytes of stored records and of batches.
 *
 * All integers are big-endian. A stored value is a header and a body:
 *
 *   offset  size  header
 *        0     1  kind (enum record_kind)
 *        1     1  0
 *        2     2  format version: what RECORD_FORMAT was when it was written
 *        4     4  CRC-32C of: kind (4) and slot (4) of the key, then bytes 0..3, then the body
 *        8        the body, to the end of the value
 *
 *   server:      txn 8, epoch 8, next_id 8, state 4, flags 4, restart_state 4
 *   registrant:  id 8, registered_ns 8, server_epoch 8, address A, local A, port 4, transport 4,
 *                my_prog 4, my_vers 4, my_proc 4, told_state 4, relayed_state 4, priv 16,
 *                mon_name N, my_name N
 *   notice:      heard_ns 8, address A, state 4, mon_name N
 *
 *   A, address:  family 1 (0 none, 4, 6), then nothing | 4 bytes | 16 bytes,
 *                length of the zone 4, zone (the name of an interface; only of link-local ones)
 *   N, name:     length 2, then that many bytes
 *
 * The bodies of the lock manager's kinds stand at the top of record_lock.c, that of a tracked
 * client at the top of record_tracked.c.
 *
 * A change in a batch, which lives in memory only:
 *
 *        0     1  kind
 *        1     1  1 when it deletes, else 0
 *        2     2  0
 *        4     4  slot
 *        8     4  length of the value, 0 when it deletes
 *       12        the value
 *
 * Always true:
 *  (1) The checksum covers the key, so a good record under another slot or in another kind's table
 *      is found to be damaged. It is verified before anything else is believed, the version too:
 *      damage never looks like a newer format.
 *  (2) Every encoder's output is accepted by its decoder, and a decoder consumes the whole body: a
 *      value has one meaning, and a longer or shorter one has none.
 *  (3) A decoder refuses what no encoder writes (an even state, an unknown flag, transport or
 *      family), so the core may rely on what it loads as on what it made itself.
 *
 * A change of any of these bytes and every new kind raise RECORD_FORMAT (R-PER-5). Format 2 brought
 * the kinds of record_lock.c. Format 3 brought that of record_tracked.c, the last field of the
 * server record, and two flags; format 4 one more flag of a client and of a lock, and the name of
 * the interface in a link-local address, where its number was. A decoder reads them all.
 */
#include "store/record_bytes.h"

enum {
    SINCE = 1, /* these kinds are there since the first format */
    RESTART_STATE_SINCE = 3,

    REGISTRANT_LEN_MAX =
        HEADER_LEN + 3 * 8 + 2 * ADDRESS_LEN_MAX + 7 * 4 + RECORD_PRIV_LEN + 2 * NAME_LEN_MAX,
    NOTICE_LEN_MAX = HEADER_LEN + 8 + ADDRESS_LEN_MAX + 4 + NAME_LEN_MAX,
    SERVER_FLAGS = RECORD_SERVER_INCOMPLETE | RECORD_SERVER_SETTLED | RECORD_SERVER_WAITERS,
};

_Static_assert(REGISTRANT_LEN_MAX <= RECORD_VALUE_MAX, "two longest names must fit");
_Static_assert(NOTICE_LEN_MAX <= RECORD_VALUE_MAX, "a longest name must fit");

const char *record_kind_name(enum record_kind kind)
{
    switch (kind) {
    case RECORD_SERVER:
        return "server";
    case RECORD_REGISTRANT:
        return "registrant";
    case RECORD_NOTICE:
        return "notice";
    case RECORD_CLIENT:
        return "client";
    case RECORD_LOCK:
        return "lock";
    case RECORD_WAITER:
        return "waiter";
    case RECORD_SHARE:
        return "share";
    case RECORD_TRACKED:
        return "tracked";
    case RECORD_KIND_END:
        break;
    }
    UNREACHABLE();
}

uint32_t record_put_server(uint8_t *buffer, const struct record_server *record)
{
    CHECK(record->state % 2 == 1 && record->restart_state % 2 == 1);
    CHECK(has_only(record->flags, SERVER_FLAGS));
    struct writer out = put_header(buffer, RECORD_SERVER);
    put_u64(&out, record->txn);
    put_u64(&out, record->epoch);
    put_u64(&out, record->next_id);
    put_u32(&out, record->state);
    put_u32(&out, record->flags);
    put_u32(&out, record->restart_state);
    return put_checksum(&out, RECORD_SERVER, 0);
}

uint32_t record_put_registrant(uint8_t *buffer, uint32_t slot,
                               const struct record_registrant *record)
{
    CHECK(is_transport(record->transport));
    struct writer out = put_header(buffer, RECORD_REGISTRANT);
    put_u64(&out, record->id);
    put_u64(&out, record->registered_ns);
    put_u64(&out, record->server_epoch);
    put_address(&out, &record->address);
    put_address(&out, &record->local);
    put_u32(&out, record->port);
    put_u32(&out, record->transport);
    put_u32(&out, record->my_prog);
    put_u32(&out, record->my_vers);
    put_u32(&out, record->my_proc);
    put_u32(&out, record->told_state);
    put_u32(&out, record->relayed_state);
    put_raw(&out, record->priv, RECORD_PRIV_LEN);
    put_name(&out, record->mon_name);
    put_name(&out, record->my_name);
    return put_checksum(&out, RECORD_REGISTRANT, slot);
}

uint32_t record_put_notice(uint8_t *buffer, uint32_t slot, const struct record_notice *record)
{
    struct writer out = put_header(buffer, RECORD_NOTICE);
    put_u64(&out, record->heard_ns);
    put_address(&out, &record->address);
    put_u32(&out, record->state);
    put_name(&out, record->mon_name);
    return put_checksum(&out, RECORD_NOTICE, slot);
}

enum record_result record_get_server(struct bytes value, struct record_server *ret)
{
    struct reader in;
    enum record_result result = get_header(value, RECORD_SERVER, 0, SINCE, &in);
    if (result != RECORD_GOOD)
        return result;
    struct record_server record = {0};
    record.txn = get_u64(&in);
    record.epoch = get_u64(&in);
    record.next_id = get_u64(&in);
    record.state = get_u32(&in);
    record.flags = get_u32(&in);
    record.restart_state = in.version < RESTART_STATE_SINCE ? record.state : get_u32(&in);
    if (!is_done(&in) || record.state % 2 == 0 || record.restart_state % 2 == 0)
        return RECORD_CORRUPT;
    if (!has_only(record.flags, SERVER_FLAGS))
        return RECORD_CORRUPT;
    *ret = record;
    return RECORD_GOOD;
}

enum record_result record_get_registrant(struct bytes value, uint32_t slot,
                                         struct record_registrant *ret)
{
    struct reader in;
    enum record_result result = get_header(value, RECORD_REGISTRANT, slot, SINCE, &in);
    if (result != RECORD_GOOD)
        return result;
    struct record_registrant record = {0};
    record.id = get_u64(&in);
    record.registered_ns = get_u64(&in);
    record.server_epoch = get_u64(&in);
    record.address = get_address(&in);
    record.local = get_address(&in);
    record.port = get_u32(&in);
    record.transport = get_u32(&in);
    record.my_prog = get_u32(&in);
    record.my_vers = get_u32(&in);
    record.my_proc = get_u32(&in);
    record.told_state = get_u32(&in);
    record.relayed_state = get_u32(&in);
    memcpy(record.priv, get_raw(&in, RECORD_PRIV_LEN), RECORD_PRIV_LEN);
    record.mon_name = get_name(&in);
    record.my_name = get_name(&in);
    if (!is_done(&in) || !is_transport(record.transport))
        return RECORD_CORRUPT;
    *ret = record;
    return RECORD_GOOD;
}

enum record_result record_get_notice(struct bytes value, uint32_t slot, struct record_notice *ret)
{
    struct reader in;
    enum record_result result = get_header(value, RECORD_NOTICE, slot, SINCE, &in);
    if (result != RECORD_GOOD)
        return result;
    struct record_notice record = {0};
    record.heard_ns = get_u64(&in);
    record.address = get_address(&in);
    record.state = get_u32(&in);
    record.mon_name = get_name(&in);
    if (!is_done(&in))
        return RECORD_CORRUPT;
    *ret = record;
    return RECORD_GOOD;
}

/* ---- batches ---- */

static void batch_add(struct batch_writer *writer, enum record_kind kind, uint32_t slot,
                      bool deleted, struct bytes value)
{
    CHECK(kind >= RECORD_SERVER && kind < RECORD_KIND_END);
    CHECK(writer->len <= writer->max);
    CHECK(writer->max - writer->len >= (uint64_t)BATCH_CHANGE_OVERHEAD + value.len);
    struct writer out = {writer->start + writer->len, 0};
    put_u8(&out, (uint8_t)kind);
    put_u8(&out, deleted);
    put_u8(&out, 0);
    put_u8(&out, 0);
    put_u32(&out, slot);
    put_u32(&out, value.len);
    CHECK(out.len == BATCH_CHANGE_OVERHEAD);
    put_raw(&out, value.at, value.len);
    writer->len += out.len;
    writer->count++;
}

void batch_put(struct batch_writer *writer, enum record_kind kind, uint32_t slot,
               struct bytes value)
{
    CHECK(value.len >= HEADER_LEN && value.len <= RECORD_VALUE_MAX);
    batch_add(writer, kind, slot, false, value);
}

void batch_delete(struct batch_writer *writer, enum record_kind kind, uint32_t slot)
{
    batch_add(writer, kind, slot, true, (struct bytes){NULL, 0});
}

bool batch_next(const struct store_batch *batch, uint64_t *at, struct record_change *ret)
{
    CHECK(*at <= batch->changes.len);
    uint64_t left = batch->changes.len - *at;
    if (left == 0)
        return false;
    CHECK(left >= BATCH_CHANGE_OVERHEAD);
    const uint8_t *change = batch->changes.at + *at;
    uint32_t value_len = load_be32(change + 8);
    CHECK(left - BATCH_CHANGE_OVERHEAD >= value_len);
    CHECK(change[0] >= RECORD_SERVER && change[0] < RECORD_KIND_END);
    ret->kind = (enum record_kind)change[0];
    ret->deleted = change[1] != 0;
    ret->slot = load_be32(change + 4);
    ret->value = (struct bytes){change + BATCH_CHANGE_OVERHEAD, value_len};
    *at += BATCH_CHANGE_OVERHEAD + (uint64_t)value_len;
    return true;
}

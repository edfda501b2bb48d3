/*
 * record_tracked.c -- the bytes of a tracked client: one of a protocol that is neither NLM nor NSM.
 *
 * The header of a value, and A (address) and N (name), are described at the top of record.c, H
 * (handle) at the top of record_lock.c; this kind exists since format 3. The body:
 *
 *   tracked:  id 8, registered_ns 8, server_epoch 8, deadline_ns 8, address A, window_s 4, ttl_s 4,
 *             generation 4, state 4, protocol P, key H, bytes N
 *
 *   P, protocol:  length 1 (1 to 16), then that many of a-z, 0-9 and '-'
 *
 * Always true: one function says what a sound record is; the encoder insists on it and
 * the decoder refuses everything else.
 */
#include "store/record_bytes.h"

enum {
    SINCE = 3, /* the format that brought this kind */

    TRACKED_LEN_MAX = HEADER_LEN + 4 * 8 + ADDRESS_LEN_MAX + 4 * 4 + 1 + RECORD_PROTOCOL_MAX +
                      HANDLE_LEN_MAX + NAME_LEN_MAX,
};

_Static_assert(TRACKED_LEN_MAX <= RECORD_VALUE_MAX, "the longest key and bytes must fit");
_Static_assert(RECORD_KEY_MAX == RECORD_FH_MAX, "a key is written as a handle is");
_Static_assert(RECORD_BYTES_MAX == RECORD_NAME_MAX, "and its bytes as a name");

bool record_is_protocol(struct bytes name)
{
    if (name.len == 0 || name.len > RECORD_PROTOCOL_MAX)
        return false;
    for (uint32_t i = 0; i < name.len; i++) {
        uint8_t c = name.at[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-')
            return false;
    }
    return true;
}

static bool is_sound(const struct record_tracked *record)
{
    bool is_connected = record->state == RECORD_TRACKED_CONNECTED;
    if (record->state < RECORD_TRACKED_CONNECTED || record->state > RECORD_TRACKED_EXPIRED)
        return false;
    if (is_connected && (record->deadline_ns != 0 || record->ttl_s != 0))
        return false;
    return record->generation != 0 && record_is_protocol(record->protocol);
}

static void put_protocol(struct writer *out, struct bytes protocol)
{
    put_u8(out, (uint8_t)protocol.len);
    put_raw(out, protocol.at, protocol.len);
}

static struct bytes get_protocol(struct reader *in)
{
    uint32_t len = get_u8(in);
    const uint8_t *at = get_raw(in, len);
    return in->failed ? (struct bytes){NULL, 0} : (struct bytes){at, len};
}

uint32_t record_put_tracked(uint8_t *buffer, uint32_t slot, const struct record_tracked *record)
{
    CHECK(is_sound(record));
    struct writer out = put_header(buffer, RECORD_TRACKED);
    put_u64(&out, record->id);
    put_u64(&out, record->registered_ns);
    put_u64(&out, record->server_epoch);
    put_u64(&out, record->deadline_ns);
    put_address(&out, &record->address);
    put_u32(&out, record->window_s);
    put_u32(&out, record->ttl_s);
    put_u32(&out, record->generation);
    put_u32(&out, record->state);
    put_protocol(&out, record->protocol);
    put_handle(&out, record->key);
    put_name(&out, record->bytes);
    return put_checksum(&out, RECORD_TRACKED, slot);
}

enum record_result record_get_tracked(struct bytes value, uint32_t slot, struct record_tracked *ret)
{
    struct reader in;
    enum record_result result = get_header(value, RECORD_TRACKED, slot, SINCE, &in);
    if (result != RECORD_GOOD)
        return result;
    struct record_tracked record = {0};
    record.id = get_u64(&in);
    record.registered_ns = get_u64(&in);
    record.server_epoch = get_u64(&in);
    record.deadline_ns = get_u64(&in);
    record.address = get_address(&in);
    record.window_s = get_u32(&in);
    record.ttl_s = get_u32(&in);
    record.generation = get_u32(&in);
    record.state = get_u32(&in);
    record.protocol = get_protocol(&in);
    record.key = get_handle(&in);
    record.bytes = get_name(&in);
    if (!is_done(&in) || !is_sound(&record))
        return RECORD_CORRUPT;
    *ret = record;
    return RECORD_GOOD;
}

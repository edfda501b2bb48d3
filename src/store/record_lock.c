/*
 * record_lock.c -- the bytes of what the lock manager stores: clients, locks, waiters, shares.
 *
 * The header of a value, and A (address) and N (name), are described at the top of record.c; these
 * kinds exist since format 2. The bodies:
 *
 *   client:  id 8, registered_ns 8, seen_ns 8, rebooted_ns 8, untold_ns 8, server_epoch 8,
 *            address A, local A, transport 4, versions 4, grant_proc 4, state_seen 4,
 *            free_below 4, told_state 4, incarnation 4, flags 4, caller_name N
 *   lock:    of O, granted_ns 8, start 8, end 8, len 8, svid 4, flags 4, fh H, oh N
 *   waiter:  of O, queued_ns 8, order 8, cookie 8, offset 8, len 8, local A, offer 4, svid 4,
 *            version 4, transport 4, flags 4, caller_name N, fh H, oh N
 *   share:   of O, granted_ns 8, mode 4, access 4, flags 4, fh H, oh N
 *
 *   O, whose it is:   client_id 8, client 4, incarnation 4, state 4
 *   H, file handle:   length 1 (1 to 64), then that many bytes
 *
 * A lock of a Linux client takes about 120 bytes, so that a page holds 30 of them.
 *
 * Always true: one function says what a sound record of a kind is; its encoder insists on it and
 * its decoder refuses everything else. Whatever is loaded could have been written.
 */
#include "store/record_bytes.h"

enum {
    SINCE = 2, /* the format that brought these kinds */

    OF_LEN = 8 + 3 * 4,
    CLIENT_LEN_MAX = HEADER_LEN + 6 * 8 + 2 * ADDRESS_LEN_MAX + 8 * 4 + NAME_LEN_MAX,
    LOCK_LEN_MAX = HEADER_LEN + OF_LEN + 4 * 8 + 2 * 4 + HANDLE_LEN_MAX + NAME_LEN_MAX,
    WAITER_LEN_MAX =
        HEADER_LEN + OF_LEN + 5 * 8 + ADDRESS_LEN_MAX + 5 * 4 + HANDLE_LEN_MAX + 2 * NAME_LEN_MAX,
    SHARE_LEN_MAX = HEADER_LEN + OF_LEN + 8 + 3 * 4 + HANDLE_LEN_MAX + NAME_LEN_MAX,

    NLM_VERSIONS = 1 << 1 | 1 << 3 | 1 << 4,
    CLIENT_FLAGS = RECORD_CLIENT_MONITORED | RECORD_CLIENT_CRASHED | RECORD_CLIENT_UNUSED |
                   RECORD_CLIENT_RECOUNTED | RECORD_CLIENT_WAITS | RECORD_CLIENT_CALIBRATED,
    LOCK_FLAGS =
        RECORD_LOCK_EXCLUSIVE | RECORD_LOCK_OFFER | RECORD_LOCK_UNMONITORED | RECORD_LOCK_LINGERS,
    WAITER_FLAGS = RECORD_WAITER_EXCLUSIVE | RECORD_WAITER_MESSAGE,
    SHARE_FLAGS = RECORD_LOCK_UNMONITORED,
    SHARE_MODE_MAX = 3,
};

_Static_assert(CLIENT_LEN_MAX <= RECORD_VALUE_MAX, "a longest name must fit");
_Static_assert(LOCK_LEN_MAX <= RECORD_VALUE_MAX, "a longest owner and handle must fit");
_Static_assert(WAITER_LEN_MAX <= RECORD_VALUE_MAX, "a longest name, owner and handle must fit");
_Static_assert(SHARE_LEN_MAX <= RECORD_VALUE_MAX, "a longest owner and handle must fit");

/* ---- whose it is ---- */

static bool of_is_sound(const struct record_of *of)
{
    return of->client < RECORD_SLOT_MAX && of->incarnation != 0;
}

static void put_of(struct writer *out, const struct record_of *of)
{
    put_u64(out, of->client_id);
    put_u32(out, of->client);
    put_u32(out, of->incarnation);
    put_u32(out, of->state);
}

static struct record_of get_of(struct reader *in)
{
    struct record_of of = {0};
    of.client_id = get_u64(in);
    of.client = get_u32(in);
    of.incarnation = get_u32(in);
    of.state = get_u32(in);
    return of;
}

/* ---- clients ---- */

static bool client_is_sound(const struct record_client *record)
{
    if (!is_transport(record->transport) || !has_only(record->versions, NLM_VERSIONS))
        return false;
    if (record->grant_proc != 0 && record->grant_proc != 5 && record->grant_proc != 10)
        return false;
    return record->incarnation != 0 && has_only(record->flags, CLIENT_FLAGS);
}

uint32_t record_put_client(uint8_t *buffer, uint32_t slot, const struct record_client *record)
{
    CHECK(client_is_sound(record));
    struct writer out = put_header(buffer, RECORD_CLIENT);
    put_u64(&out, record->id);
    put_u64(&out, record->registered_ns);
    put_u64(&out, record->seen_ns);
    put_u64(&out, record->rebooted_ns);
    put_u64(&out, record->untold_ns);
    put_u64(&out, record->server_epoch);
    put_address(&out, &record->address);
    put_address(&out, &record->local);
    put_u32(&out, record->transport);
    put_u32(&out, record->versions);
    put_u32(&out, record->grant_proc);
    put_u32(&out, record->state_seen);
    put_u32(&out, record->free_below);
    put_u32(&out, record->told_state);
    put_u32(&out, record->incarnation);
    put_u32(&out, record->flags);
    put_name(&out, record->caller_name);
    return put_checksum(&out, RECORD_CLIENT, slot);
}

enum record_result record_get_client(struct bytes value, uint32_t slot, struct record_client *ret)
{
    struct reader in;
    enum record_result result = get_header(value, RECORD_CLIENT, slot, SINCE, &in);
    if (result != RECORD_GOOD)
        return result;
    struct record_client record = {0};
    record.id = get_u64(&in);
    record.registered_ns = get_u64(&in);
    record.seen_ns = get_u64(&in);
    record.rebooted_ns = get_u64(&in);
    record.untold_ns = get_u64(&in);
    record.server_epoch = get_u64(&in);
    record.address = get_address(&in);
    record.local = get_address(&in);
    record.transport = get_u32(&in);
    record.versions = get_u32(&in);
    record.grant_proc = get_u32(&in);
    record.state_seen = get_u32(&in);
    record.free_below = get_u32(&in);
    record.told_state = get_u32(&in);
    record.incarnation = get_u32(&in);
    record.flags = get_u32(&in);
    record.caller_name = get_name(&in);
    if (!is_done(&in) || !client_is_sound(&record))
        return RECORD_CORRUPT;
    *ret = record;
    return RECORD_GOOD;
}

/* ---- locks ---- */

static bool lock_is_sound(const struct record_lock *record)
{
    bool lingers = (record->flags & RECORD_LOCK_LINGERS) != 0;
    return of_is_sound(&record->of) && record->start <= record->end &&
           has_only(record->flags, LOCK_FLAGS) && (!lingers || (record->flags & RECORD_LOCK_OFFER));
}

uint32_t record_put_lock(uint8_t *buffer, uint32_t slot, const struct record_lock *record)
{
    CHECK(lock_is_sound(record));
    struct writer out = put_header(buffer, RECORD_LOCK);
    put_of(&out, &record->of);
    put_u64(&out, record->granted_ns);
    put_u64(&out, record->start);
    put_u64(&out, record->end);
    put_u64(&out, record->len);
    put_u32(&out, record->svid);
    put_u32(&out, record->flags);
    put_handle(&out, record->fh);
    put_name(&out, record->oh);
    return put_checksum(&out, RECORD_LOCK, slot);
}

enum record_result record_get_lock(struct bytes value, uint32_t slot, struct record_lock *ret)
{
    struct reader in;
    enum record_result result = get_header(value, RECORD_LOCK, slot, SINCE, &in);
    if (result != RECORD_GOOD)
        return result;
    struct record_lock record = {0};
    record.of = get_of(&in);
    record.granted_ns = get_u64(&in);
    record.start = get_u64(&in);
    record.end = get_u64(&in);
    record.len = get_u64(&in);
    record.svid = get_u32(&in);
    record.flags = get_u32(&in);
    record.fh = get_handle(&in);
    record.oh = get_name(&in);
    if (!is_done(&in) || !lock_is_sound(&record))
        return RECORD_CORRUPT;
    *ret = record;
    return RECORD_GOOD;
}

/* ---- waiters ---- */

static bool waiter_is_sound(const struct record_waiter *record)
{
    if (!of_is_sound(&record->of) || !is_transport(record->transport))
        return false;
    if (record->version != 1 && record->version != 3 && record->version != 4)
        return false;
    if (record->offer != UINT32_MAX && record->offer >= RECORD_SLOT_MAX)
        return false;
    return has_only(record->flags, WAITER_FLAGS);
}

uint32_t record_put_waiter(uint8_t *buffer, uint32_t slot, const struct record_waiter *record)
{
    CHECK(waiter_is_sound(record));
    struct writer out = put_header(buffer, RECORD_WAITER);
    put_of(&out, &record->of);
    put_u64(&out, record->queued_ns);
    put_u64(&out, record->order);
    put_u64(&out, record->cookie);
    put_u64(&out, record->offset);
    put_u64(&out, record->len);
    put_address(&out, &record->local);
    put_u32(&out, record->offer);
    put_u32(&out, record->svid);
    put_u32(&out, record->version);
    put_u32(&out, record->transport);
    put_u32(&out, record->flags);
    put_name(&out, record->caller_name);
    put_handle(&out, record->fh);
    put_name(&out, record->oh);
    return put_checksum(&out, RECORD_WAITER, slot);
}

enum record_result record_get_waiter(struct bytes value, uint32_t slot, struct record_waiter *ret)
{
    struct reader in;
    enum record_result result = get_header(value, RECORD_WAITER, slot, SINCE, &in);
    if (result != RECORD_GOOD)
        return result;
    struct record_waiter record = {0};
    record.of = get_of(&in);
    record.queued_ns = get_u64(&in);
    record.order = get_u64(&in);
    record.cookie = get_u64(&in);
    record.offset = get_u64(&in);
    record.len = get_u64(&in);
    record.local = get_address(&in);
    record.offer = get_u32(&in);
    record.svid = get_u32(&in);
    record.version = get_u32(&in);
    record.transport = get_u32(&in);
    record.flags = get_u32(&in);
    record.caller_name = get_name(&in);
    record.fh = get_handle(&in);
    record.oh = get_name(&in);
    if (!is_done(&in) || !waiter_is_sound(&record))
        return RECORD_CORRUPT;
    *ret = record;
    return RECORD_GOOD;
}

/* ---- shares ---- */

static bool share_is_sound(const struct record_share *record)
{
    return of_is_sound(&record->of) && record->mode <= SHARE_MODE_MAX &&
           record->access <= SHARE_MODE_MAX && has_only(record->flags, SHARE_FLAGS);
}

uint32_t record_put_share(uint8_t *buffer, uint32_t slot, const struct record_share *record)
{
    CHECK(share_is_sound(record));
    struct writer out = put_header(buffer, RECORD_SHARE);
    put_of(&out, &record->of);
    put_u64(&out, record->granted_ns);
    put_u32(&out, record->mode);
    put_u32(&out, record->access);
    put_u32(&out, record->flags);
    put_handle(&out, record->fh);
    put_name(&out, record->oh);
    return put_checksum(&out, RECORD_SHARE, slot);
}

enum record_result record_get_share(struct bytes value, uint32_t slot, struct record_share *ret)
{
    struct reader in;
    enum record_result result = get_header(value, RECORD_SHARE, slot, SINCE, &in);
    if (result != RECORD_GOOD)
        return result;
    struct record_share record = {0};
    record.of = get_of(&in);
    record.granted_ns = get_u64(&in);
    record.mode = get_u32(&in);
    record.access = get_u32(&in);
    record.flags = get_u32(&in);
    record.fh = get_handle(&in);
    record.oh = get_name(&in);
    if (!is_done(&in) || !share_is_sound(&record))
        return RECORD_CORRUPT;
    *ret = record;
    return RECORD_GOOD;
}

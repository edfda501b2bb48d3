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
 * The body is the fields of its kind without anything between them, in the order of the rows below:
 *
 *   FIELD_U32       4
 *   FIELD_U64       8
 *   FIELD_TIME      8
 *   FIELD_PRIV      16
 *   FIELD_ADDRESS   family 1 (0 none, 4, 6), then nothing | 4 bytes | 16 bytes,
 *                   length of the zone 4, zone (the name of an interface; only of link-local ones)
 *   FIELD_NAME      length 2, then that many bytes
 *   FIELD_HANDLE    length 1 (1 to 64), then that many bytes
 *   FIELD_WORD      length 1 (1 to 16), then that many of a-z, 0-9 and '-'
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
 *  (2) What is encoded can be decoded, and a decoder consumes the whole body: a value has one
 *      meaning, and a longer or shorter one has none.
 *  (3) One rule says what a field may be. The encoder insists on it and the decoder refuses
 *      everything else, so the core may rely on what it loads as on what it made itself.
 *
 * A change of any of these bytes and every new kind raise RECORD_FORMAT (R-PER-5). Format 2 brought
 * clients, locks, waiters and shares. Format 3 brought tracked clients, the last field of the
 * server record, and two flags; format 4 one more flag of a client and of a lock, and the name of
 * the interface in a link-local address, where its number was; format 5 what a status monitor needs
 * to know: its boot, in the server record, and the addresses of those whom it watches; format 6
 * when its lock manager last lost its locks; format 7 the name of a tracked client. A decoder reads
 * them all.
 *
 * record_layout.h says how to add a field or a kind.
 */
#include "store/record_bytes.h"

enum {
    SERVER_FLAGS = RECORD_SERVER_INCOMPLETE | RECORD_SERVER_SETTLED | RECORD_SERVER_WAITERS |
                   RECORD_SERVER_MONITOR,
    CLIENT_FLAGS = RECORD_CLIENT_MONITORED | RECORD_CLIENT_CRASHED | RECORD_CLIENT_UNUSED |
                   RECORD_CLIENT_RECOUNTED | RECORD_CLIENT_WAITS | RECORD_CLIENT_CALIBRATED,
    LOCK_FLAGS =
        RECORD_LOCK_EXCLUSIVE | RECORD_LOCK_OFFER | RECORD_LOCK_UNMONITORED | RECORD_LOCK_LINGERS,
    WAITER_FLAGS = RECORD_WAITER_EXCLUSIVE | RECORD_WAITER_MESSAGE,
    NLM_VERSIONS = 1 << 1 | 1 << 3 | 1 << 4, /* as flags, and as a set of numbers */
    GRANT_PROCS = 1 << 0 | 1 << 5 | 1 << 10,
    TRANSPORTS = 1 << TRANSPORT_TCP | 1 << TRANSPORT_UDP,
    SHARE_MODES = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3,
    TRACKED_STATES = 1 << RECORD_TRACKED_CONNECTED | 1 << RECORD_TRACKED_DISCONNECTED |
                     1 << RECORD_TRACKED_EXPIRED,
};

static const char *const transports[] = {[TRANSPORT_TCP] = "tcp", [TRANSPORT_UDP] = "udp"};

/* ---- what rows are made of ---- */

/* The compiler refuses a member of another type than the field's. */
#define MEMBER(kind, member, field_type, c_type)                                                   \
    .name = #member, .type = (field_type),                                                         \
    .offset = __builtin_choose_expr(                                                               \
        __builtin_types_compatible_p(__typeof__(((struct record_##kind *)0)->member), c_type),     \
        offsetof(struct record_##kind, member), (void)0)

#define UINT32(kind, member)  MEMBER(kind, member, FIELD_U32, uint32_t)
#define UINT64(kind, member)  MEMBER(kind, member, FIELD_U64, uint64_t)
#define TIME(kind, member)    MEMBER(kind, member, FIELD_TIME, uint64_t)
#define ADDRESS(kind, member) MEMBER(kind, member, FIELD_ADDRESS, struct address)
#define NAME(kind, member)    MEMBER(kind, member, FIELD_NAME, struct bytes)
#define HANDLE(kind, member)  MEMBER(kind, member, FIELD_HANDLE, struct bytes)
#define WORD(kind, member)    MEMBER(kind, member, FIELD_WORD, struct bytes)
#define PRIV(kind, member)    MEMBER(kind, member, FIELD_PRIV, uint8_t[RECORD_PRIV_LEN])

#define RULE(which)            .rule = RULE_##which
#define ONE_OF(values)         .rule = RULE_ONE_OF, .known = (values)
#define FLAGS(flags)           .rule = RULE_FLAGS, .known = (flags)
#define TRANSPORT(kind)        UINT32(kind, transport), ONE_OF(TRANSPORTS), .words = transports
#define COLUMN(key)            .column = (key)
#define JSON(at, key)          .json_at = (at), .json = (key)
#define JSON_FLAG(at, key, of) JSON(at, key), .json_flag = (of)

/* The format that brought it. In a record of an older one it is 0, or what `other` is. */
#define SINCE(format) .since = (format)
#define SINCE_LIKE(format, kind, other)                                                            \
    .since = (format), .like = offsetof(struct record_##kind, other),                              \
    .like_len = sizeof((struct record_##kind *)0)->other

/* Whose a lock, waiter or share is. */
/* clang-format off */
#define OF(kind)                                                                                   \
    {UINT64(kind, of.client_id), COLUMN("client_id"), JSON(1, "client_id")},                       \
    {UINT32(kind, of.client), RULE(SLOT)},                                                         \
    {UINT32(kind, of.incarnation), RULE(NOT_ZERO)},                                                \
    {UINT32(kind, of.state)}
/* clang-format on */

/* ---- the fields ---- */

static const struct record_field server_fields[] = {
    {UINT64(server, txn)},
    {UINT64(server, epoch), JSON(1, "epoch")},
    {UINT64(server, next_id)},
    {UINT32(server, state), RULE(ODD), JSON(2, "state")},
    {UINT32(server, flags), FLAGS(SERVER_FLAGS),
     JSON_FLAG(4, "incomplete", RECORD_SERVER_INCOMPLETE)},
    {UINT32(server, restart_state), RULE(ODD), SINCE_LIKE(3, server, state),
     JSON(3, "restart_state")},
    {PRIV(server, boot), SINCE(5)},
    {UINT64(server, netns), SINCE(5)},
    {UINT64(server, boot_epoch), SINCE(5)},
    {UINT64(server, lockd_epoch), SINCE_LIKE(6, server, boot_epoch)},
};

static const struct record_field registrant_fields[] = {
    {UINT64(registrant, id), COLUMN("client_id"), JSON(1, "id")},
    {TIME(registrant, registered_ns), COLUMN("registered_at")},
    {UINT64(registrant, server_epoch), COLUMN("server_epoch")},
    {ADDRESS(registrant, address), COLUMN("address"), JSON(5, "address")},
    {ADDRESS(registrant, local), COLUMN("local_address")},
    {UINT32(registrant, port)},
    {TRANSPORT(registrant), COLUMN("transport")},
    {UINT32(registrant, my_prog), COLUMN("callback_prog"), JSON(4, "callback_prog")},
    {UINT32(registrant, my_vers), COLUMN("callback_vers")},
    {UINT32(registrant, my_proc), COLUMN("callback_proc")},
    {UINT32(registrant, told_state), COLUMN("told_state")},
    {UINT32(registrant, relayed_state), COLUMN("relayed_state")},
    {PRIV(registrant, priv), COLUMN("priv")},
    {NAME(registrant, mon_name), COLUMN("mon_name"), JSON(2, "mon_name")},
    {NAME(registrant, my_name), COLUMN("callback_host"), JSON(3, "callback_host")},
    {ADDRESS(registrant, hosts[0]), SINCE(5)},
    {ADDRESS(registrant, hosts[1]), SINCE(5)},
    {ADDRESS(registrant, hosts[2]), SINCE(5)},
    {ADDRESS(registrant, hosts[3]), SINCE(5)},
};

static const struct record_field notice_fields[] = {
    {TIME(notice, heard_ns)},
    {ADDRESS(notice, address), COLUMN("address")},
    {UINT32(notice, state), COLUMN("state"), JSON(2, "state")},
    {NAME(notice, mon_name), COLUMN("mon_name"), JSON(1, "mon_name")},
};

static const struct record_field client_fields[] = {
    {UINT64(client, id), COLUMN("client_id"), JSON(1, "id")},
    {TIME(client, registered_ns)},
    {TIME(client, seen_ns)},
    {TIME(client, rebooted_ns)},
    {TIME(client, untold_ns)},
    {UINT64(client, server_epoch)},
    {ADDRESS(client, address), COLUMN("address"), JSON(3, "address")},
    {ADDRESS(client, local)},
    {TRANSPORT(client)},
    {UINT32(client, versions), FLAGS(NLM_VERSIONS)},
    {UINT32(client, grant_proc), ONE_OF(GRANT_PROCS)},
    {UINT32(client, state_seen)},
    {UINT32(client, free_below)},
    {UINT32(client, told_state)},
    {UINT32(client, incarnation), RULE(NOT_ZERO)},
    {UINT32(client, flags), FLAGS(CLIENT_FLAGS)},
    {NAME(client, caller_name), COLUMN("caller_name"), JSON(2, "caller_name")},
};

/* A lock of a Linux client takes about 120 bytes, so that a page holds 30 of them. */
static const struct record_field lock_fields[] = {
    OF(lock),
    {TIME(lock, granted_ns)},
    {UINT64(lock, start), JSON(3, "offset")},
    {UINT64(lock, end), RULE(END), JSON(4, "length")},
    {UINT64(lock, len)},
    {UINT32(lock, svid)},
    {UINT32(lock, flags), FLAGS(LOCK_FLAGS), JSON_FLAG(5, "exclusive", RECORD_LOCK_EXCLUSIVE)},
    {HANDLE(lock, fh), COLUMN("fh"), JSON(2, "fh")},
    {NAME(lock, oh)},
};

static const struct record_field waiter_fields[] = {
    OF(waiter),
    {TIME(waiter, queued_ns)},
    {UINT64(waiter, order)},
    {UINT64(waiter, cookie)},
    {UINT64(waiter, offset), JSON(3, "offset")},
    {UINT64(waiter, len), JSON(4, "length")},
    {ADDRESS(waiter, local)},
    {UINT32(waiter, offer), RULE(SLOT_OR_NONE)},
    {UINT32(waiter, svid)},
    {UINT32(waiter, version), ONE_OF(NLM_VERSIONS)},
    {TRANSPORT(waiter)},
    {UINT32(waiter, flags), FLAGS(WAITER_FLAGS)},
    {NAME(waiter, caller_name)},
    {HANDLE(waiter, fh), COLUMN("fh"), JSON(2, "fh")},
    {NAME(waiter, oh)},
};

static const struct record_field share_fields[] = {
    OF(share),
    {TIME(share, granted_ns)},
    {UINT32(share, mode), ONE_OF(SHARE_MODES)},
    {UINT32(share, access), ONE_OF(SHARE_MODES)},
    {UINT32(share, flags), FLAGS(RECORD_LOCK_UNMONITORED)},
    {HANDLE(share, fh), COLUMN("fh"), JSON(2, "fh")},
    {NAME(share, oh)},
};

static const struct record_field tracked_fields[] = {
    {UINT64(tracked, id), COLUMN("client_id"), JSON(1, "id")},
    {TIME(tracked, registered_ns)},
    {UINT64(tracked, server_epoch)},
    {TIME(tracked, deadline_ns)},
    {ADDRESS(tracked, address)},
    {UINT32(tracked, window_s)},
    {UINT32(tracked, ttl_s)},
    {UINT32(tracked, generation), RULE(NOT_ZERO)},
    {UINT32(tracked, state), ONE_OF(TRACKED_STATES)},
    {WORD(tracked, protocol), COLUMN("protocol"), JSON(2, "protocol")},
    {HANDLE(tracked, key), JSON(3, "key")},
    {NAME(tracked, bytes)},
    {NAME(tracked, name), JSON(4, "name"), SINCE(7)},
};

_Static_assert(RECORD_KEY_MAX == RECORD_FH_MAX, "a key is written as a handle is");
_Static_assert(RECORD_BYTES_MAX == RECORD_NAME_MAX, "and its bytes as a name");

/* ---- what no single field says ---- */

/* Only an offer can linger. */
static bool lock_agrees(const void *record)
{
    uint32_t flags = ((const struct record_lock *)record)->flags;
    return (flags & RECORD_LOCK_LINGERS) == 0 || (flags & RECORD_LOCK_OFFER) != 0;
}

/* Who is connected has no time to be over. */
static bool tracked_agrees(const void *record)
{
    const struct record_tracked *tracked = record;
    return tracked->state != RECORD_TRACKED_CONNECTED ||
           (tracked->deadline_ns == 0 && tracked->ttl_s == 0);
}

/* ---- the kinds ---- */

#define FIELDS(kind)                                                                               \
    .size = sizeof(struct record_##kind), .fields = kind##_fields,                                 \
    .count = sizeof kind##_fields / sizeof kind##_fields[0]

static const struct record_layout layouts[RECORD_KIND_END] = {
    [RECORD_SERVER] = {"server", NULL, 1, FIELDS(server)},
    [RECORD_REGISTRANT] = {"registrant", "nsm_client_registrations", 1, FIELDS(registrant)},
    [RECORD_NOTICE] = {"notice", "notices", 1, FIELDS(notice)},
    [RECORD_CLIENT] = {"client", "clients", 2, FIELDS(client)},
    [RECORD_LOCK] = {"lock", "locks", 2, FIELDS(lock), .agrees = lock_agrees},
    [RECORD_WAITER] = {"waiter", "waiters", 2, FIELDS(waiter)},
    [RECORD_SHARE] = {"share", "shares", 2, FIELDS(share)},
    [RECORD_TRACKED] = {"tracked", "tracked", 3, FIELDS(tracked), .agrees = tracked_agrees},
};

_Static_assert(RECORD_KIND_END == RECORD_TRACKED + 1, "a new kind needs its row here");

const struct record_layout *record_layout_of(enum record_kind kind)
{
    CHECK(kind >= RECORD_SERVER && kind < RECORD_KIND_END);
    return &layouts[kind];
}

const char *record_kind_name(enum record_kind kind)
{
    return record_layout_of(kind)->name;
}

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

/* ---- the codecs ---- */

/* Expanded for each kind, so that the compiler knows its rows; see record_bytes.h. */
static ALWAYS_INLINE uint32_t put_kind(uint8_t *buffer, enum record_kind kind, uint32_t slot,
                                       const void *record)
{
    const struct record_layout *layout = &layouts[kind];
    struct writer out = {buffer, HEADER_LEN};
    CHECK(layout->agrees == NULL || layout->agrees(record));
#pragma GCC unroll 32
    for (uint32_t i = 0; i < layout->count; i++)
        put_field(&out, &layout->fields[i], record);
    seal(buffer, out.len, kind, slot);
    return out.len;
}

static ALWAYS_INLINE enum record_result get_kind(struct bytes value, enum record_kind kind,
                                                 uint32_t slot, void *ret)
{
    const struct record_layout *layout = &layouts[kind];
    enum record_result result = check_header(value, kind, slot, layout->since);
    if (result != RECORD_GOOD)
        return result;
    union record_any record;
    memset(&record, 0, layout->size);
    struct reader in = read_body(value);
#pragma GCC unroll 32
    for (uint32_t i = 0; i < layout->count; i++)
        get_field(&in, &layout->fields[i], &record);
    if (in.failed || in.rest.len != 0 || (layout->agrees != NULL && !layout->agrees(&record)))
        return RECORD_CORRUPT;
    memcpy(ret, &record, layout->size);
    return RECORD_GOOD;
}

uint32_t record_put_server(uint8_t *buffer, const struct record_server *record)
{
    return put_kind(buffer, RECORD_SERVER, 0, record);
}

enum record_result record_get_server(struct bytes value, struct record_server *ret)
{
    return get_kind(value, RECORD_SERVER, 0, ret);
}

#define CODECS(kind, KIND)                                                                         \
    uint32_t record_put_##kind(uint8_t *buffer, uint32_t slot, const struct record_##kind *record) \
    {                                                                                              \
        return put_kind(buffer, KIND, slot, record);                                               \
    }                                                                                              \
    enum record_result record_get_##kind(struct bytes value, uint32_t slot,                        \
                                         struct record_##kind *ret)                                \
    {                                                                                              \
        return get_kind(value, KIND, slot, ret);                                                   \
    }
#define PUT(kind, KIND)                                                                            \
    case KIND:                                                                                     \
        return record_put_##kind(buffer, slot, &record->kind);
#define GET(kind, KIND)                                                                            \
    case KIND:                                                                                     \
        return record_get_##kind(value, slot, &ret->kind);

/* The server record has no slot but 0. */
#define KINDS_WITH_SLOTS(EACH)                                                                     \
    EACH(registrant, RECORD_REGISTRANT)                                                            \
    EACH(notice, RECORD_NOTICE)                                                                    \
    EACH(client, RECORD_CLIENT)                                                                    \
    EACH(lock, RECORD_LOCK)                                                                        \
    EACH(waiter, RECORD_WAITER)                                                                    \
    EACH(share, RECORD_SHARE)                                                                      \
    EACH(tracked, RECORD_TRACKED)

KINDS_WITH_SLOTS(CODECS)

uint32_t record_put(uint8_t *buffer, enum record_kind kind, uint32_t slot,
                    const union record_any *record)
{
    switch (kind) {
        KINDS_WITH_SLOTS(PUT)
    case RECORD_SERVER:
        CHECK(slot == 0);
        return record_put_server(buffer, &record->server);
    case RECORD_KIND_END:
        break;
    }
    UNREACHABLE();
}

enum record_result record_get(struct bytes value, enum record_kind kind, uint32_t slot,
                              union record_any *ret)
{
    switch (kind) {
        KINDS_WITH_SLOTS(GET)
    case RECORD_SERVER:
        return slot == 0 ? record_get_server(value, &ret->server) : RECORD_CORRUPT;
    case RECORD_KIND_END:
        break;
    }
    UNREACHABLE();
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

void store_batch_put(struct batch_writer *writer, enum record_kind kind, uint32_t slot,
                     struct bytes value)
{
    CHECK(value.len >= HEADER_LEN && value.len <= RECORD_VALUE_MAX);
    batch_add(writer, kind, slot, false, value);
}

void store_batch_delete(struct batch_writer *writer, enum record_kind kind, uint32_t slot)
{
    batch_add(writer, kind, slot, true, (struct bytes){NULL, 0});
}

/* The length of the first change in `left` bytes; 0: there is none that makes sense. */
static uint64_t change_len(const uint8_t *change, uint64_t left)
{
    if (left < BATCH_CHANGE_OVERHEAD)
        return 0;
    uint32_t value_len = load_be32(change + 8);
    bool is_sound = change[0] >= RECORD_SERVER && change[0] < RECORD_KIND_END && change[1] <= 1 &&
                    value_len <= RECORD_VALUE_MAX && value_len <= left - BATCH_CHANGE_OVERHEAD;
    return is_sound ? BATCH_CHANGE_OVERHEAD + (uint64_t)value_len : 0;
}

bool store_batch_is_sound(const struct store_batch *batch)
{
    uint64_t at = 0;
    uint32_t count = 0;
    while (at < batch->changes.len) {
        uint64_t len = change_len(batch->changes.at + at, batch->changes.len - at);
        if (len == 0)
            return false;
        at += len;
        count++;
    }
    return count == batch->count;
}

bool store_batch_next(const struct store_batch *batch, uint64_t *at, struct record_change *ret)
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

/*
 * postgres_table.c -- records as rows; see postgres_table.h and src/store/sql.
 *
 * Each kind has a row in `tables` and a function that fills its cells, in the order of the columns.
 * Integers are big-endian, times microseconds since the year 2000: PostgreSQL's binary formats.
 */
#include "store/postgres_table.h"

#include "base/address.h"
#include "base/check.h"

/* The beginning of 2000 in seconds since 1970. */
#define YEAR_2000_S INT64_C(946684800)

#define SLOT                                                                                       \
    {                                                                                              \
        "slot", POSTGRES_INT4                                                                      \
    }
#define RECORD                                                                                     \
    {                                                                                              \
        "record", POSTGRES_BYTEA                                                                   \
    }

static const struct postgres_table tables[RECORD_KIND_END] = {
    [RECORD_REGISTRANT] = {"nsm_client_registrations",
                           {SLOT,
                            {"client_id", POSTGRES_INT8},
                            {"mon_name", POSTGRES_TEXT},
                            {"priv", POSTGRES_BYTEA},
                            {"callback_host", POSTGRES_TEXT},
                            {"callback_prog", POSTGRES_INT8},
                            {"callback_vers", POSTGRES_INT8},
                            {"callback_proc", POSTGRES_INT8},
                            {"registered_at", POSTGRES_TIME},
                            {"server_epoch", POSTGRES_INT8},
                            {"address", POSTGRES_TEXT},
                            {"local_address", POSTGRES_TEXT},
                            {"transport", POSTGRES_TEXT},
                            {"told_state", POSTGRES_INT8},
                            {"relayed_state", POSTGRES_INT8},
                            RECORD}},
    [RECORD_NOTICE] = {"notices",
                       {SLOT,
                        {"mon_name", POSTGRES_TEXT},
                        {"address", POSTGRES_TEXT},
                        {"state", POSTGRES_INT8},
                        RECORD}},
    [RECORD_CLIENT] = {"clients",
                       {SLOT,
                        {"client_id", POSTGRES_INT8},
                        {"caller_name", POSTGRES_TEXT},
                        {"address", POSTGRES_TEXT},
                        RECORD}},
    [RECORD_LOCK] = {"locks", {SLOT, {"client_id", POSTGRES_INT8}, {"fh", POSTGRES_BYTEA}, RECORD}},
    [RECORD_WAITER] = {"waiters",
                       {SLOT, {"client_id", POSTGRES_INT8}, {"fh", POSTGRES_BYTEA}, RECORD}},
    [RECORD_SHARE] = {"shares",
                      {SLOT, {"client_id", POSTGRES_INT8}, {"fh", POSTGRES_BYTEA}, RECORD}},
    [RECORD_TRACKED] = {"tracked",
                        {SLOT, {"client_id", POSTGRES_INT8}, {"protocol", POSTGRES_TEXT}, RECORD}},
};

_Static_assert(RECORD_KIND_END == RECORD_TRACKED + 1, "a new kind needs a table and a migration");

const struct postgres_table *postgres_table_of(enum record_kind kind)
{
    CHECK(kind > RECORD_SERVER && kind < RECORD_KIND_END);
    return &tables[kind];
}

uint32_t postgres_table_width(const struct postgres_table *table)
{
    uint32_t width = 0;
    while (table->columns[width].name != NULL)
        width++;
    return width;
}

/* ---- cells ---- */

/* Where the next cell of a row goes. */
struct row {
    struct postgres_scratch *scratch;
    struct postgres_cell *next;
};

static void add_bytes(struct row *row, struct bytes bytes)
{
    *row->next++ = (struct postgres_cell){.bytes = bytes};
}

static uint8_t *take(struct row *row, uint32_t len)
{
    struct postgres_scratch *scratch = row->scratch;
    CHECK(len <= sizeof scratch->at - scratch->len);
    uint8_t *at = scratch->at + scratch->len;
    scratch->len += len;
    return at;
}

static void add_u32(struct row *row, uint32_t value)
{
    uint8_t *at = take(row, 4);
    store_be32(at, value);
    add_bytes(row, (struct bytes){at, 4});
}

static void add_u64(struct row *row, uint64_t value)
{
    uint8_t *at = take(row, 8);
    store_be64(at, value);
    add_bytes(row, (struct bytes){at, 8});
}

static void add_time(struct row *row, uint64_t wall_ns)
{
    int64_t us = (int64_t)(wall_ns / 1000) - YEAR_2000_S * 1000000;
    add_u64(row, (uint64_t)us);
}

/* PostgreSQL takes no text that is not in the encoding of the database: what is no printable ASCII
 * is shown as %XX. */
static void add_name(struct row *row, struct bytes name)
{
    static const char digits[] = "0123456789ABCDEF";
    uint8_t *at = take(row, 3 * name.len);
    uint32_t len = 0;
    for (uint32_t i = 0; i < name.len; i++) {
        uint8_t c = name.at[i];
        if (c >= ' ' && c < 0x7f && c != '%') {
            at[len++] = c;
            continue;
        }
        at[len++] = '%';
        at[len++] = (uint8_t)digits[c >> 4];
        at[len++] = (uint8_t)digits[c & 15];
    }
    row->scratch->len -= 3 * name.len - len;
    add_bytes(row, (struct bytes){at, len});
}

static void add_address(struct row *row, const struct address *address)
{
    char *at = (char *)take(row, ADDRESS_TEXT_MAX);
    address_text(address, at);
    add_bytes(row, bytes_of_text(at));
}

/* ---- kinds: each false when the value cannot be read ---- */

static bool fill_registrant(struct row *row, uint32_t slot, struct bytes value)
{
    struct record_registrant record;
    if (record_get_registrant(value, slot, &record) != RECORD_GOOD)
        return false;
    uint8_t *priv = take(row, RECORD_PRIV_LEN);
    memcpy(priv, record.priv, RECORD_PRIV_LEN);
    add_u64(row, record.id);
    add_name(row, record.mon_name);
    add_bytes(row, (struct bytes){priv, RECORD_PRIV_LEN});
    add_name(row, record.my_name);
    add_u64(row, record.my_prog);
    add_u64(row, record.my_vers);
    add_u64(row, record.my_proc);
    add_time(row, record.registered_ns);
    add_u64(row, record.server_epoch);
    add_address(row, &record.address);
    add_address(row, &record.local);
    add_bytes(row, bytes_of_text(record.transport == RECORD_TCP ? "tcp" : "udp"));
    add_u64(row, record.told_state);
    add_u64(row, record.relayed_state);
    return true;
}

static bool fill_notice(struct row *row, uint32_t slot, struct bytes value)
{
    struct record_notice record;
    if (record_get_notice(value, slot, &record) != RECORD_GOOD)
        return false;
    add_name(row, record.mon_name);
    add_address(row, &record.address);
    add_u64(row, record.state);
    return true;
}

static bool fill_client(struct row *row, uint32_t slot, struct bytes value)
{
    struct record_client record;
    if (record_get_client(value, slot, &record) != RECORD_GOOD)
        return false;
    add_u64(row, record.id);
    add_name(row, record.caller_name);
    add_address(row, &record.address);
    return true;
}

static bool fill_lock(struct row *row, uint32_t slot, struct bytes value)
{
    struct record_lock record;
    if (record_get_lock(value, slot, &record) != RECORD_GOOD)
        return false;
    add_u64(row, record.of.client_id);
    add_bytes(row, record.fh);
    return true;
}

static bool fill_waiter(struct row *row, uint32_t slot, struct bytes value)
{
    struct record_waiter record;
    if (record_get_waiter(value, slot, &record) != RECORD_GOOD)
        return false;
    add_u64(row, record.of.client_id);
    add_bytes(row, record.fh);
    return true;
}

static bool fill_share(struct row *row, uint32_t slot, struct bytes value)
{
    struct record_share record;
    if (record_get_share(value, slot, &record) != RECORD_GOOD)
        return false;
    add_u64(row, record.of.client_id);
    add_bytes(row, record.fh);
    return true;
}

static bool fill_tracked(struct row *row, uint32_t slot, struct bytes value)
{
    struct record_tracked record;
    if (record_get_tracked(value, slot, &record) != RECORD_GOOD)
        return false;
    add_u64(row, record.id);
    add_name(row, record.protocol);
    return true;
}

typedef bool (*fill_fn)(struct row *row, uint32_t slot, struct bytes value);

static const fill_fn fillers[RECORD_KIND_END] = {
    [RECORD_REGISTRANT] = fill_registrant, [RECORD_NOTICE] = fill_notice,
    [RECORD_CLIENT] = fill_client,         [RECORD_LOCK] = fill_lock,
    [RECORD_WAITER] = fill_waiter,         [RECORD_SHARE] = fill_share,
    [RECORD_TRACKED] = fill_tracked,
};

void postgres_table_fill(enum record_kind kind, uint32_t slot, struct bytes value,
                         struct postgres_scratch *scratch,
                         struct postgres_cell ret[static POSTGRES_COLUMNS_MAX])
{
    uint32_t width = postgres_table_width(postgres_table_of(kind));
    scratch->len = 0;
    struct row row = {scratch, ret};
    add_u32(&row, slot);
    bool is_good = fillers[kind](&row, slot, value);
    CHECK(!is_good || row.next == ret + width - 1);
    for (uint32_t i = 1; !is_good && i + 1 < width; i++)
        ret[i] = (struct postgres_cell){.is_null = true};
    ret[width - 1] = (struct postgres_cell){.bytes = value};
}

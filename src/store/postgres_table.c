/*
 * postgres_table.c -- records as rows; see postgres_table.h and src/store/sql.
 *
 * A column is a field that names one (record_layout.h), and its type follows from the field's.
 * Integers are big-endian, times microseconds since the year 2000: PostgreSQL's binary formats.
 */
#include "store/postgres_table.h"

#include "base/address.h"
#include "base/check.h"
#include "store/record_layout.h"

/* The beginning of 2000 in seconds since 1970. */
#define YEAR_2000_S INT64_C(946684800)

const char *postgres_table_name(enum record_kind kind)
{
    CHECK(kind != RECORD_SERVER);
    return record_layout_of(kind)->table;
}

static enum postgres_type type_of(const struct record_field *field)
{
    switch (field->type) {
    case FIELD_U32:
    case FIELD_U64:
        return field->words == NULL ? POSTGRES_INT8 : POSTGRES_TEXT;
    case FIELD_TIME:
        return POSTGRES_TIME;
    case FIELD_ADDRESS:
    case FIELD_NAME:
    case FIELD_WORD:
        return POSTGRES_TEXT;
    case FIELD_HANDLE:
    case FIELD_PRIV:
        return POSTGRES_BYTEA;
    }
    UNREACHABLE();
}

uint32_t postgres_table_columns(enum record_kind kind,
                                struct postgres_column ret[static POSTGRES_COLUMNS_MAX])
{
    const struct record_layout *layout = record_layout_of(kind);
    uint32_t width = 0;
    ret[width++] = (struct postgres_column){"slot", POSTGRES_INT4};
    for (uint32_t i = 0; i < layout->count; i++) {
        const struct record_field *field = &layout->fields[i];
        if (field->column == NULL)
            continue;
        CHECK(width < POSTGRES_COLUMNS_MAX - 1);
        ret[width++] = (struct postgres_column){field->column, type_of(field)};
    }
    ret[width++] = (struct postgres_column){"record", POSTGRES_BYTEA};
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

static void add_copy(struct row *row, struct bytes bytes)
{
    uint8_t *at = take(row, bytes.len);
    memcpy(at, bytes.at, bytes.len);
    add_bytes(row, (struct bytes){at, bytes.len});
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

static void add_field(struct row *row, const struct record_field *field, const void *record)
{
    switch (field->type) {
    case FIELD_U32:
    case FIELD_U64:
        if (field->words != NULL)
            add_bytes(row, bytes_of_text(field->words[record_layout_number(field, record)]));
        else
            add_u64(row, record_layout_number(field, record));
        return;
    case FIELD_TIME:
        add_time(row, record_layout_number(field, record));
        return;
    case FIELD_ADDRESS:
        add_address(row, record_layout_address(field, record));
        return;
    case FIELD_NAME:
    case FIELD_WORD:
        add_name(row, record_layout_bytes(field, record));
        return;
    case FIELD_HANDLE:
        add_bytes(row, record_layout_bytes(field, record));
        return;
    case FIELD_PRIV: /* unlike the others it lies in the struct, not in the value */
        add_copy(row, record_layout_bytes(field, record));
        return;
    }
    UNREACHABLE();
}

uint32_t postgres_table_fill(enum record_kind kind, uint32_t slot, struct bytes value,
                             struct postgres_scratch *scratch,
                             struct postgres_cell ret[static POSTGRES_COLUMNS_MAX])
{
    const struct record_layout *layout = record_layout_of(kind);
    union record_any record;
    bool is_good = record_get(value, kind, slot, &record) == RECORD_GOOD;
    scratch->len = 0;
    struct row row = {scratch, ret};
    add_u32(&row, slot);
    for (uint32_t i = 0; i < layout->count; i++) {
        if (layout->fields[i].column == NULL)
            continue;
        if (is_good)
            add_field(&row, &layout->fields[i], &record);
        else
            *row.next++ = (struct postgres_cell){.is_null = true};
    }
    add_bytes(&row, value);
    return (uint32_t)(row.next - ret);
}

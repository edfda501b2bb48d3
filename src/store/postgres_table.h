/*
 * postgres_table.h -- the table of each kind of record, and what its columns show of a record.
 *
 * Column 0 is the slot, the last one the record itself; they are what is loaded. Those between are
 * the fields that have a column (record_layout.h), for people, and empty for a record that this
 * version cannot read.
 */
#ifndef STORE_POSTGRES_TABLE_H
#define STORE_POSTGRES_TABLE_H

#include "store/record.h"

#define POSTGRES_COLUMNS_MAX 16

enum postgres_type {
    POSTGRES_INT4,
    POSTGRES_INT8,
    POSTGRES_TEXT,
    POSTGRES_BYTEA,
    POSTGRES_TIME,
    POSTGRES_TYPE_END,
};

struct postgres_column {
    const char *name;
    enum postgres_type type;
};

/* One value, as PostgreSQL's binary format has it. */
struct postgres_cell {
    bool is_null;
    struct bytes bytes;
};

/* Room for the bytes of a row's cells that are not in the record itself. */
struct postgres_scratch {
    uint8_t at[2 * 3 * RECORD_NAME_MAX + 1024];
    uint32_t len;
};

/* The table of a kind other than RECORD_SERVER, and its columns; how many is returned. */
const char *postgres_table_name(enum record_kind kind);
uint32_t postgres_table_columns(enum record_kind kind,
                                struct postgres_column ret[static POSTGRES_COLUMNS_MAX]);

/* The cells of a record's row, one per column; they point into the value and the scratch. */
uint32_t postgres_table_fill(enum record_kind kind, uint32_t slot, struct bytes value,
                             struct postgres_scratch *scratch,
                             struct postgres_cell ret[static POSTGRES_COLUMNS_MAX]);

#endif
